// Solving a problem by pairs of coordinates [fan2005], from any feasible coefficients.
#pragma once

#include "marginwise/algo/exact/binary_problem.hpp"

namespace marginwise::exact {

class PairDescent {
  public:
    explicit PairDescent(BinaryProblem& problem) : B(problem), P(problem.P) {}

    // Moves violating pairs until the most violating one violates by at most `tolerance` times the
    // larger of its targets, or by rounding only. Keeps g up to date.
    void solve(double tolerance);

  private:
    bool solved(double tolerance) const;
    double curvature(Index i, Index j, double k_ij) const;
    Index partner(Index i, const double* k_i) const;
    bool move(Index i, Index j, const double* k_i);

    BinaryProblem& B;
    Problem& P;
};

inline void PairDescent::solve(double tolerance) {
    for (const Index k : B.excluded) {  // they do not move
        P.up[k] = -simd::Extremes::kInfinite;
        P.down[k] = simd::Extremes::kInfinite;
    }
    const Index most = 100000 + 100 * P.size;
    for (Index step = 0; step < most; ++step) {
        P.find_extremes();
        if (!P.extremes.both() || B.stopped() || solved(tolerance)) return;
        const Index i = P.extremes.i;
        const double* k_i = B.row(i);
        const Index j = partner(i, k_i);
        if (j == kNone || !move(i, j, k_i)) return;
        if (step % 1024 == 1023) B.rounding.measure();
    }
}

inline bool PairDescent::solved(double tolerance) const {
    const Index i = P.extremes.i, j = P.extremes.j;
    const double targets = std::max(std::abs(B.target(i)), std::abs(B.target(j)));
    const double rounding = 5 * (B.rounding.h_error(i) + B.rounding.h_error(j));
    return P.extremes.delta() <= std::max(tolerance * targets, rounding);
}

// K(i, i) + K(j, j) - 2 K(i, j), but at least its rounding error.
inline double PairDescent::curvature(Index i, Index j, double k_ij) const {
    const double both = P.diagonal[i] + P.diagonal[j];
    const double least = Rounding::kEpsilon * std::abs(both);
    return std::max({both - 2 * k_ij, least, 1e-300});
}

// The place to move against place i: the one with the largest gain of an unclipped step. This is
// the second-order choice of table().second_order, for rows in double by member and with a
// curvature floor relative to K.
inline Index PairDescent::partner(Index i, const double* k_i) const {
    Index j = kNone;
    double best = 0;
    for (Index l = 0; l < P.size; ++l) {
        const double gain = P.g[i] - P.g[l];
        if (!P.open[l] || P.down[l] != 0 || gain <= 0) continue;
        const double value = gain * (gain / curvature(i, l, k_i[B.member(l)]));
        if (value > best) best = value, j = l;
    }
    return j;
}

// Moves alpha of i up and alpha of j down by the same amount; returns whether they moved at all.
// The gradient is updated by the actual change of the coefficients.
inline bool PairDescent::move(Index i, Index j, const double* k_i) {
    const double* k_j = B.row(j);
    const double before_i = P.alpha[i], before_j = P.alpha[j];
    const double room_i = P.hi[i] - before_i, room_j = before_j - P.lo[j];
    const double step = (P.g[i] - P.g[j]) / curvature(i, j, k_i[B.member(j)]);
    const double lambda = std::min({step, room_i, room_j});
    P.alpha[i] = lambda >= room_i ? P.hi[i] : before_i + lambda;
    P.alpha[j] = lambda >= room_j ? P.lo[j] : before_j - lambda;
    const double up = P.alpha[i] - before_i, down = P.alpha[j] - before_j;
    for (Index l = 0; l < P.size; ++l)
        if (P.open[l]) P.g[l] -= up * k_i[B.member(l)] + down * k_j[B.member(l)];
    B.refresh(i);
    B.refresh(j);
    return up != 0.0 || down != 0.0;
}

}  // namespace marginwise::exact
