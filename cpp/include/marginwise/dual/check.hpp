// Checks of the invariants of the dual state.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

inline void require_invariant(bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("invariant broken: ") + what);
}

template <class T>
void Dual<T>::check(double tolerance, bool extremes) {
    Vector<Stats> before{stats};  // restored: the check does not count as work
    for (const Subproblem& sub : subproblems) before.push_back(sub.stats);
    Vector<Index> held_by(size(), 0);
    for (Index c = 0; c < problems(); ++c) check_problem(c, tolerance, extremes, held_by);
    Index dead_now = 0;
    for (Index s = 0; s < size(); ++s) {
        require_invariant(held_by[s] == holders[s], "holders[s] counts the problems that hold s");
        const bool is_dead = holders[s] == 0;
        require_invariant(is_dead || members.find(members.ids[s]) == s, "find(ids[s]) == s");
        dead_now += is_dead;
    }
    require_invariant(dead_now == dead, "dead counts the members that no problem holds");
    stats = before[0];
    for (Index c = 0; c < problems(); ++c) subproblems[c].stats = before[c + 1];
}

// Increments held_by[s] for each member s that the problem holds.
template <class T>
void Dual<T>::check_problem(Index c, double tolerance, bool extremes, Vector<Index>& held_by) {
    const Problem& P = subproblems[c].P;
    require_invariant(subproblems[c].asleep.empty(), "no member sleeps while the model is checked");
    double sum = 0, inherited = 0;
    Index closed = 0, free = 0;
    for (Index k = 0; k < P.size; ++k) {
        check_place(c, k, tolerance);
        closed += !P.open[k];
        if (!P.open[k]) continue;
        ++held_by[subproblems[c].member[k]];
        sum += P.alpha[k];
        inherited = std::max(inherited, std::abs(P.inherited[k]));
        free += P.lo[k] < P.alpha[k] && P.alpha[k] < P.hi[k];
    }
    require_invariant(closed == P.closed, "closed counts the closed places");
    require_invariant(free == P.free, "free counts the places with lo < alpha < hi");
    require_invariant(!P.biased || inherited > 0 || std::abs(sum) <= tolerance,
                      "sum of alpha == 0");
    require_invariant(own_[c].agrees(P.size), "own features are those of the places");
    for (const Suspects::Note& note : subproblems[c].suspects.sorted()) {
        const Index s = members.find(note.id);
        require_invariant(s == kNone || !subproblems[c].holds(s), "no suspect is held");
        require_invariant(note.value < subproblems[c].suspects.ramp, "suspects are below the ramp");
    }
    if (!extremes) return;
    const simd::Extremes now =
        table().extremes(P.g.data(), P.up.data(), P.down.data(), padded(P.size));
    require_invariant(now.i == P.extremes.i && now.j == P.extremes.j, "extremes are those of g");
}

template <class T>
void Dual<T>::check_place(Index c, Index k, double tolerance) {
    const Subproblem& sub = subproblems[c];
    const Problem& P = sub.P;
    const double a = P.alpha[k], lo = P.lo[k], hi = P.hi[k];
    if (!P.open[k]) {
        require_invariant(a == 0 && lo == 0 && hi == 0, "closed places have alpha = lo = hi = 0");
        require_invariant(P.up[k] != 0 && P.down[k] != 0, "closed places do not move");
        return;
    }
    const Index s = sub.member[k];
    require_invariant(sub.place[s] == k, "place[member[k]] == k");
    require_invariant(problems() > 1 || s == k, "places of a single problem are positions");
    require_invariant(sub.weight[s] == a, "weight[member[k]] == alpha[k]");
    require_invariant(lo <= a && a <= hi, "lo <= alpha <= hi");
    require_invariant((P.up[k] == 0) == (a < hi), "up == 0 iff alpha < hi");
    require_invariant((P.down[k] == 0) == (a > lo), "down == 0 iff alpha > lo");
    require_invariant(a != 0 || P.listed[k], "alpha == 0 is listed in idle");
    const float* held = row(c, k);
    Array<float> k_row(padded(size()));
    members.extract(s, work_[0].extracted);
    fill(work_[0].extracted, 0, 0, k_row.data());
    for (Index l = 0; l < P.size; ++l)
        require_invariant(!P.open[l] || held[l] == k_row[sub.member[l]], "rows hold K(k, l)");
    const double f = table().dot(P.alpha.data(), held, padded(P.size));
    require_invariant(std::abs(P.g[k] - (P.y(k) - f)) <= tolerance,
                      "g[k] == y[k] - sum_l alpha[l] K(k, l)");
}

}  // namespace marginwise
