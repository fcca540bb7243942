// Passes over all places of a problem. Passes over many places are split into parts for the threads
// of the pool. The parts, and thus the results, depend only on the number of places.
#pragma once

#include <array>

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/dual/problem.hpp"

namespace marginwise {

// A partition of n places; n is padded.
class Parts {
  public:
    static constexpr Index kMost = 8;

    explicit Parts(Index n) : n_(n), count_(std::clamp<Index>(n / kLeast, 1, kMost)) {}

    Index count() const { return count_; }
    Index begin(Index part) const { return tiles_for(n_ * part / count_) * kLanes; }
    Index end(Index part) const { return begin(part + 1); }

  private:
    static constexpr Index kLeast = 2048;  // least number of places worth a thread

    Index n_, count_;
};

// g -= lambda (k_i - k_j), and the extremes of the new g.
inline simd::Extremes step(Problem& P, const float* k_i, const float* k_j, double lambda,
                           ThreadPool& workers) {
    const Parts parts(padded(P.size));
    std::array<simd::Extremes, Parts::kMost> found;
    workers.run(parts.count(), [&](Index part, Index) {
        const Index k = parts.begin(part);
        found[part] = table().step(&P.g[k], k_i + k, k_j + k, lambda, &P.up[k], &P.down[k],
                                   parts.end(part) - k);
    });
    simd::Extremes best;
    for (Index part = 0; part < parts.count(); ++part) {
        const simd::Extremes& e = found[part];
        const Index k = parts.begin(part);
        if (e.g_max > best.g_max) best.g_max = e.g_max, best.i = e.i == kNone ? kNone : k + e.i;
        if (e.g_min < best.g_min) best.g_min = e.g_min, best.j = e.j == kNone ? kNone : k + e.j;
    }
    return best;
}

// The place with the largest second-order gain when paired with place i, whose kernel row is k_i.
inline Index second_order(const Problem& P, Index i, const float* k_i, ThreadPool& workers) {
    const Parts parts(padded(P.size));
    std::array<simd::Best, Parts::kMost> found;
    workers.run(parts.count(), [&](Index part, Index) {
        const Index k = parts.begin(part);
        found[part] = table().second_order(&P.g[k], k_i + k, &P.diagonal[k], &P.down[k], P.g[i],
                                           P.diagonal[i], parts.end(part) - k);
    });
    simd::Best best;
    for (Index part = 0; part < parts.count(); ++part)
        if (found[part].gain > best.gain)
            best = {parts.begin(part) + found[part].s, found[part].gain};
    return best.s;
}

}  // namespace marginwise
