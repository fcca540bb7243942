// The invariants of the dual state, executed.
#pragma once

#include "marginwise/dual.hpp"

namespace marginwise {

template <class T>
void Dual<T>::check(double tolerance, bool extremes) {
    const auto require = [](bool holds, const char* what) {
        if (!holds) throw std::logic_error(std::string("invariant broken: ") + what);
    };
    const Stats before = stats;  // looking does not count
    Vector<Index> held_by(size(), 0);
    for (Index c = 0; c < problems(); ++c) {
        Share& share = shares[c];
        Problem& P = share.P;
        double sum = 0;
        Index closed = 0, free = 0;
        for (Index k = 0; k < P.size; ++k) {
            const double a = P.alpha[k], lo = P.lo[k], hi = P.hi[k];
            if (!P.open[k]) {
                ++closed;
                require(a == 0 && lo == 0 && hi == 0, "closed places have alpha = lo = hi = 0");
                require(P.up[k] != 0 && P.down[k] != 0, "closed places do not move");
                continue;
            }
            const Index s = share.member[k];
            ++held_by[s];
            sum += a;
            require(share.place[s] == k, "place[member[k]] == k");
            require(problems() > 1 || s == k, "places of a single problem are positions");
            require(share.weight[s] == a, "weight[member[k]] == alpha[k]");
            require(lo <= a && a <= hi, "lo <= alpha <= hi");
            require((P.up[k] == 0) == (a < hi), "up == 0 iff alpha < hi");
            require((P.down[k] == 0) == (a > lo), "down == 0 iff alpha > lo");
            free += lo < a && a < hi;
            require(a != 0 || P.listed[k], "alpha == 0 is listed in idle");
            const float* held = row(c, k);
            Array<float> k_row(padded(size()));
            members.extract(s, extracted_);
            fill(extracted_, 0, 0, k_row.data());
            for (Index l = 0; l < P.size; ++l)
                require(!P.open[l] || held[l] == k_row[share.member[l]], "rows hold K(k, l)");
            const double f = table().dot(P.alpha.data(), held, padded(P.size));
            require(std::abs(P.g[k] - (P.y(k) - f)) <= tolerance,
                    "g[k] == y[k] - sum_l alpha[l] K(k, l)");
        }
        require(closed == P.closed, "closed counts the closed places");
        require(free == P.free, "free counts the places with lo < alpha < hi");
        require(!P.biased || std::abs(sum) <= tolerance, "sum of alpha == 0");
        if (!extremes) continue;
        const simd::Extremes now =
            table().extremes(P.g.data(), P.up.data(), P.down.data(), padded(P.size));
        require(now.i == P.extremes.i && now.j == P.extremes.j, "extremes are those of g");
    }
    Index dead_now = 0;
    for (Index s = 0; s < size(); ++s) {
        require(held_by[s] == holders[s], "holders[s] counts the problems that hold s");
        const bool is_dead = holders[s] == 0;
        require(is_dead || members.find(members.ids[s]) == s, "find(ids[s]) == s");
        dead_now += is_dead;
    }
    require(dead_now == dead, "dead counts the members that no problem holds");
    stats = before;
}

}  // namespace marginwise
