// Shrinking: the members that may still move, drawn together so that finishing walks short arrays.
//
// A member at a side of its box whose gradient holds it there cannot be part of a violating pair.
// The others are gathered, the problem is solved over them, and the result is carried back to all
// places. Nothing moves in the dual itself; if carrying back uncovers new violating pairs, the
// caller gathers again.
#pragma once

#include "marginwise/clock.hpp"
#include "marginwise/direction.hpp"

namespace marginwise {

template <class T>
class ActiveSet {
  public:
    // Gathers the places of problem c that are free or violate.
    ActiveSet(Dual<T>& D, Index c) : D_(D), c_(c), whole_(D.problem(c)), rows_(64 << 20) {
        for (const Index k : movable(whole_)) {
            at_.push_back(k);
            P_.add(whole_, k);
        }
        P_.find_extremes();
    }

    // Moves pairs by second-order choice until delta <= tau, or the deadline; tells which.
    bool solve(double tau, const Deadline& deadline) {
        constexpr Index kLook = 256, kShrink = 1024;  // steps between looks at the clock and at who
        for (Index n = 1; P_.extremes.both() && P_.extremes.delta() > tau; ++n) {  // may go
            if (n % kLook == 0 && deadline.passed()) return false;
            if (n % kShrink == 0) shrink();
            const Mover i{P_.extremes.i, row(P_.extremes.i)};
            const Index j = second_order_partner(P_, i);
            move_pair(P_, i, {j, row(j)});
            ++D_.stats.reprocess;
        }
        return true;
    }

    // Carries the new alpha and its effect on g to all places.
    void apply() {
        for (Index a = 0; a < P_.size; ++a) settle(a);
        std::vector<std::pair<Index, double>> changes;
        for (const auto& [k, alpha] : settled_) {
            changes.emplace_back(k, alpha - whole_.alpha[usize(k)]);
            whole_.alpha[usize(k)] = alpha;
            whole_.refresh(k);
            D_.weigh(c_, k);
        }
        D_.spread(c_, changes);
        whole_.find_extremes();
    }

  private:
    // Places that are free, or whose gradient may draw them off the side they are at.
    static Keep movable(const Problem& P) {
        Keep found;
        for (Index k = 0; k < P.size; ++k) {
            const bool up = P.up[usize(k)] == 0, down = P.down[usize(k)] == 0;
            const double g = P.g[usize(k)];
            if ((up && down) || (up && g >= P.extremes.g_min) || (down && g <= P.extremes.g_max))
                found.add(k);
        }
        return found;
    }

    // Drops the places that cannot move any more, if there are enough of them.
    void shrink() {
        const Keep keep = movable(P_);
        if (10 * keep.size() > 9 * P_.size) return;
        std::vector<std::uint8_t> stays(usize(P_.size), 0);
        for (const Index a : keep) stays[usize(a)] = 1;
        for (Index a = 0; a < P_.size; ++a)
            if (!stays[usize(a)]) {
                settle(a);
                rows_.drop(a);
            }
        rows_.compact(keep);
        P_.compact(keep);
        keep.close_up(at_);
    }

    void settle(Index a) {
        const Index k = at_[usize(a)];
        if (P_.alpha[usize(a)] != whole_.alpha[usize(k)])
            settled_.emplace_back(k, P_.alpha[usize(a)]);
    }

    // Row of the a-th active place over the active places. Where the dual does not have it, others
    // that finishing will ask for are fetched with it.
    const float* row(Index a) {
        if (const RowCache::Row* held = rows_.peek(a)) return rows_.take(a, held->length).values;
        std::vector<Index> wanted{a};
        if (!D_.has_row(c_, at_[usize(a)])) {
            wanted = wanted_soon(P_, a, rows_at_once(), [&](Index b) {
                return !rows_.peek(b) && !D_.has_row(c_, at_[usize(b)]);
            });
            std::vector<Index> places;
            for (const Index b : wanted) places.push_back(at_[usize(b)]);
            D_.fetch(c_, places);
        }
        for (auto b = wanted.rbegin(); b != wanted.rend(); ++b) gather(*b);
        return rows_.peek(a)->values;
    }

    // As many as the dual can fetch and there is room for here.
    Index rows_at_once() const {
        return std::clamp<Index>(rows_.room() - rows_.held(), 1, D_.rows_at_once(c_));
    }

    void gather(Index a) {
        const float* from = D_.row(c_, at_[usize(a)]);
        RowCache::Row& held = rows_.take(a, P_.size);
        for (Index b = 0; b < P_.size; ++b) held.values[b] = from[at_[usize(b)]];
        std::fill(held.values + P_.size, held.values + padded(P_.size), 0.0f);
        held.length = P_.size;
    }

    Dual<T>& D_;
    Index c_;
    Problem& whole_;
    std::vector<Index> at_;  // the place in `whole_` of each active place
    Problem P_;
    RowCache rows_;
    std::vector<std::pair<Index, double>> settled_;  // new alphas of places no longer active
};

// Solves problem c to tau over all its places, or until the deadline; tells which.
template <class T>
bool solve(Dual<T>& D, Index c, double tau, const Deadline& deadline) {
    const simd::Extremes& e = D.problem(c).extremes;
    while (e.both() && e.delta() > tau) {
        ActiveSet<T> active(D, c);
        const bool done = active.solve(tau, deadline);
        active.apply();
        if (!done) return false;
    }
    return true;
}

}  // namespace marginwise
