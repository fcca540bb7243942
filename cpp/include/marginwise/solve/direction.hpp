// Direction searches: which members to move, how far, and the move itself.
#pragma once

#include <limits>

#include "marginwise/dual/dual.hpp"
#include "marginwise/solve/passes.hpp"

namespace marginwise {

// A place of a problem and its kernel row.
struct Mover {
    Index k;
    const float* row;
};

// The distance from a bound at which a coefficient counts as having reached it: rounding, or so
// small a fraction of the step that another step is not worth it. It is far smaller than the step,
// so no step is lost, however wide the box is.
inline double slip(double alpha, double side, double width, double step) {
    constexpr double kUlps = 4 * std::numeric_limits<double>::epsilon();
    return std::max(kUlps * std::max(std::abs(alpha), std::abs(side)),
                    std::min(1e-12 * width, 1e-6 * std::abs(step)));
}

// Rounding errors of alpha up to this size need not be applied to g.
constexpr double kNegligible = 1e-12;

// The part of a step that the larger of two coefficients can represent.
inline double representable(double step, double alpha, double beta) {
    const double larger = std::max(std::abs(alpha), std::abs(beta));
    if (larger * std::numeric_limits<double>::epsilon() <= kNegligible) return step;
    const double to = larger + step;
    return to - larger;
}

// Moves along e_i - e_j to the maximum of the dual or the first side of the box
// [bordes2005, eq. 8]; updates alpha, g and the extremes. Returns whether alpha changed.
inline bool move_pair(Problem& P, Mover i, Mover j, ThreadPool& workers = ThreadPool::alone()) {
    const double from_i = P.alpha[i.k], from_j = P.alpha[j.k];

    // Determine curvature
    const double k_ij = static_cast<double>(i.row[j.k]);
    const double curvature =
        std::max(P.diagonal[i.k] + P.diagonal[j.k] - 2.0 * k_ij, simd::kLeastCurvature);

    // Determine maximal step
    const double room_i = P.hi[i.k] - from_i, room_j = from_j - P.lo[j.k];
    const double best = representable((P.g[i.k] - P.g[j.k]) / curvature, from_i, from_j);
    const double lambda = std::min({best, room_i, room_j});

    // Perform update; snap to a bound that is reached up to rounding
    const double width = P.hi[i.k] - P.lo[i.k] + P.hi[j.k] - P.lo[j.k];
    const double slip_i = slip(from_i, P.hi[i.k], width, lambda);
    const double slip_j = slip(from_j, P.lo[j.k], width, lambda);
    P.alpha[i.k] = lambda >= room_i - slip_i ? P.hi[i.k] : from_i + lambda;
    P.alpha[j.k] = lambda >= room_j - slip_j ? P.lo[j.k] : from_j - lambda;
    P.refresh(i.k);
    P.refresh(j.k);
    const double rise = P.alpha[i.k] - from_i, fall = from_j - P.alpha[j.k];
    if (rise == 0.0 && fall == 0.0) return false;
    P.extremes = step(P, i.row, j.row, lambda, workers);
    if (std::max(std::abs(rise - lambda), std::abs(fall - lambda)) > kNegligible) {
        table().add(P.g.data(), i.row, lambda - rise, padded(P.size));
        table().add(P.g.data(), j.row, fall - lambda, padded(P.size));
        P.find_extremes();
    }
    return true;
}

template <class T>
bool move_pair(Dual<T>& D, Index c, Index i, Index j) {
    const float* k_i = D.row(c, i);
    const bool moved = move_pair(D.problem(c), {i, k_i}, {j, D.row(c, j)}, D.workers());
    D.weigh(c, i);
    D.weigh(c, j);
    return moved;
}

// alpha_k += step; snaps to a bound that is reached up to rounding. Returns the change.
inline double shift(Problem& P, Index k, double step) {
    if (step == 0.0) return 0.0;
    const double before = P.alpha[k], to = before + step, lo = P.lo[k], hi = P.hi[k];
    const double side = step > 0 ? hi : lo;
    const double left = step > 0 ? hi - to : to - lo;
    P.alpha[k] = left <= slip(before, side, hi - lo, step) ? side : to;
    P.refresh(k);
    return P.alpha[k] - before;
}

// Moves alpha_k alone to the maximum of the dual or a side of its box [usunier2010, eq. 3]; returns
// the change. The caller updates g.
inline double move_alone(Problem& P, Index k) {
    return shift(P, k, P.g[k] / std::max(P.diagonal[k], simd::kLeastCurvature));
}

// Moves alpha_i and alpha_j to the maximum of the dual over both, within their boxes; returns their
// changes. The caller updates g.
inline std::pair<double, double> move_both(Problem& P, Mover i, Index j) {
    const double k_ii = P.diagonal[i.k], k_jj = P.diagonal[j];
    const double k_ij = static_cast<double>(i.row[j]);
    const double down_i = P.lo[i.k] - P.alpha[i.k], up_i = P.hi[i.k] - P.alpha[i.k];
    const double down_j = P.lo[j] - P.alpha[j], up_j = P.hi[j] - P.alpha[j];

    // The unconstrained maximum, or the best point on the four edges of the boxes
    double x = 0, y = 0, most = 0;
    const auto consider = [&](double to_i, double to_j) {
        const double u = std::clamp(to_i, down_i, up_i), v = std::clamp(to_j, down_j, up_j);
        const double gain =
            P.g[i.k] * u + P.g[j] * v - (k_ii * u * u + 2 * k_ij * u * v + k_jj * v * v) / 2;
        if (gain > most) x = u, y = v, most = gain;
    };
    const double determinant = k_ii * k_jj - k_ij * k_ij;
    const double best_i = (P.g[i.k] * k_jj - P.g[j] * k_ij) / determinant;
    const double best_j = (P.g[j] * k_ii - P.g[i.k] * k_ij) / determinant;
    const bool inside = determinant > 1e-9 * k_ii * k_jj && down_i <= best_i && best_i <= up_i &&
                        down_j <= best_j && best_j <= up_j;
    if (inside) {
        x = best_i, y = best_j;
    } else {
        for (const double u : {down_i, up_i}) consider(u, (P.g[j] - k_ij * u) / k_jj);
        for (const double v : {down_j, up_j}) consider((P.g[i.k] - k_ij * v) / k_ii, v);
    }
    return {shift(P, i.k, x), shift(P, j, y)};
}

// move_alone(), followed by g -= step K(k, .) for all places.
template <class T>
double ascend(Dual<T>& D, Index c, Index k) {
    Problem& P = D.problem(c);
    const double step = move_alone(P, k);
    if (step == 0.0) return 0.0;
    table().add(P.g.data(), D.row(c, k), -step, padded(P.size));
    D.weigh(c, k);
    return step;
}

// The partner of i by second-order selection: the largest gain of an unclipped step [fan2005].
inline Index second_order_partner(const Problem& P, Mover i) {
    return second_order(P, i.k, i.row, ThreadPool::alone());
}
template <class T>
Index second_order_partner(Dual<T>& D, Index c, Index i) {
    return second_order(D.problem(c), i, D.row(c, i), D.workers());
}

}  // namespace marginwise
