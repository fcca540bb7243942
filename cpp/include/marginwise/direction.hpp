// Direction searches: who to move, how far, and the move itself.
#pragma once

#include <limits>

#include "marginwise/dual.hpp"

namespace marginwise {

// A place of a problem and its kernel row.
struct Mover {
    Index k;
    const float* row;
};

// What rounding leaves of a coefficient's last step to a side of its box, and what is too little of
// the step to be worth another one: within it of the side, the side is reached. A step is never
// swallowed, however wide the box is.
inline double slip(double alpha, double side, double width, double step) {
    constexpr double kUlps = 4 * std::numeric_limits<double>::epsilon();
    return std::max(kUlps * std::max(std::abs(alpha), std::abs(side)),
                    std::min(1e-12 * width, 1e-6 * std::abs(step)));
}

// Rounding of alpha that g need not know of.
constexpr double kNegligible = 1e-12;

// The part of a step that the larger of two coefficients can take.
inline double representable(double step, double alpha, double beta) {
    const double larger = std::max(std::abs(alpha), std::abs(beta));
    if (larger * std::numeric_limits<double>::epsilon() <= kNegligible) return step;
    const double to = larger + step;
    return to - larger;
}

// Moves along e_i - e_j to the maximum of the dual or the first side of the box
// [bordes2005, eq. 8]; updates alpha, g and the extremes. Returns whether alpha changed.
inline bool move_pair(Problem& P, Mover i, Mover j) {
    constexpr double kLeastCurvature = 1e-12;
    const std::size_t a = usize(i.k), b = usize(j.k);
    const double from_a = P.alpha[a], from_b = P.alpha[b];

    // Determine curvature
    const double k_ij = static_cast<double>(i.row[j.k]);
    const double curvature = std::max(P.diagonal[a] + P.diagonal[b] - 2.0 * k_ij, kLeastCurvature);

    // Determine maximal step
    const double room_i = P.hi[a] - from_a, room_j = from_b - P.lo[b];
    const double best = representable((P.g[a] - P.g[b]) / curvature, from_a, from_b);
    const double lambda = std::min({best, room_i, room_j});

    // Perform update; a side of the box that is reached but for rounding is reached exactly
    const double width = P.hi[a] - P.lo[a] + P.hi[b] - P.lo[b];
    const double slip_i = slip(from_a, P.hi[a], width, lambda);
    const double slip_j = slip(from_b, P.lo[b], width, lambda);
    P.alpha[a] = lambda >= room_i - slip_i ? P.hi[a] : from_a + lambda;
    P.alpha[b] = lambda >= room_j - slip_j ? P.lo[b] : from_b - lambda;
    P.refresh(i.k);
    P.refresh(j.k);
    const double rise = P.alpha[a] - from_a, fall = from_b - P.alpha[b];
    if (rise == 0.0 && fall == 0.0) return false;
    P.extremes =
        table().step(P.g.data(), i.row, j.row, lambda, P.up.data(), P.down.data(), padded(P.size));
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
    const bool moved = move_pair(D.problem(c), {i, k_i}, {j, D.row(c, j)});
    D.weigh(c, i);
    D.weigh(c, j);
    return moved;
}

// alpha_k += step, and a side of the box that is reached but for rounding is reached exactly.
// Returns the change.
inline double shift(Problem& P, Index k, double step) {
    if (step == 0.0) return 0.0;
    const std::size_t a = usize(k);
    const double before = P.alpha[a], to = before + step, lo = P.lo[a], hi = P.hi[a];
    const double side = step > 0 ? hi : lo;
    const double left = step > 0 ? hi - to : to - lo;
    P.alpha[a] = left <= slip(before, side, hi - lo, step) ? side : to;
    P.refresh(k);
    return P.alpha[a] - before;
}

// Moves alpha_k alone to the maximum of the dual or a side of its box [usunier2010, eq. 3]; returns
// by how much. g is left to the caller.
inline double move_alone(Problem& P, Index k) {
    constexpr double kLeastCurvature = 1e-12;
    return shift(P, k, P.g[usize(k)] / std::max(P.diagonal[usize(k)], kLeastCurvature));
}

// Moves alpha_i and alpha_j to the maximum of the dual over both, within their boxes; returns by
// how much. g is left to the caller.
inline std::pair<double, double> move_both(Problem& P, Mover i, Index j) {
    const std::size_t a = usize(i.k), b = usize(j);
    const double k_ii = P.diagonal[a], k_jj = P.diagonal[b];
    const double k_ij = static_cast<double>(i.row[j]);
    const double down_i = P.lo[a] - P.alpha[a], up_i = P.hi[a] - P.alpha[a];
    const double down_j = P.lo[b] - P.alpha[b], up_j = P.hi[b] - P.alpha[b];

    // The maximum without boxes, or that of the four edges of the boxes
    double x = 0, y = 0, most = 0;
    const auto consider = [&](double to_i, double to_j) {
        const double u = std::clamp(to_i, down_i, up_i), v = std::clamp(to_j, down_j, up_j);
        const double gain =
            P.g[a] * u + P.g[b] * v - (k_ii * u * u + 2 * k_ij * u * v + k_jj * v * v) / 2;
        if (gain > most) x = u, y = v, most = gain;
    };
    const double determinant = k_ii * k_jj - k_ij * k_ij;
    const double best_i = (P.g[a] * k_jj - P.g[b] * k_ij) / determinant;
    const double best_j = (P.g[b] * k_ii - P.g[a] * k_ij) / determinant;
    const bool inside = determinant > 1e-9 * k_ii * k_jj && down_i <= best_i && best_i <= up_i &&
                        down_j <= best_j && best_j <= up_j;
    if (inside) {
        x = best_i, y = best_j;
    } else {
        for (const double u : {down_i, up_i}) consider(u, (P.g[b] - k_ij * u) / k_jj);
        for (const double v : {down_j, up_j}) consider((P.g[a] - k_ij * v) / k_ii, v);
    }
    return {shift(P, i.k, x), shift(P, j, y)};
}

// The same, and g -= step K(k, .) for all places.
template <class T>
double ascend(Dual<T>& D, Index c, Index k) {
    Problem& P = D.problem(c);
    const double step = move_alone(P, k);
    if (step == 0.0) return 0.0;
    table().add(P.g.data(), D.row(c, k), -step, padded(P.size));
    D.weigh(c, k);
    return step;
}

// The partner of i by second-order choice: the largest guaranteed gain in the dual [fan2005].
inline Index second_order_partner(const Problem& P, Mover i) {
    const std::size_t a = usize(i.k);
    return table()
        .second_order(P.g.data(), i.row, P.diagonal.data(), P.down.data(), P.g[a], P.diagonal[a],
                      padded(P.size))
        .s;
}

}  // namespace marginwise
