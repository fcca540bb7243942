// Direction searches: who to move, how far, and the move itself.
#pragma once

#include "marginwise/dual.hpp"

namespace marginwise {

// A place of a problem and its kernel row.
struct Mover {
    Index k;
    const float* row;
};

// Moves along e_i - e_j to the maximum of the dual or the first side of the box
// [bordes2005, eq. 8]; updates alpha, g and the extremes.
inline void move_pair(Problem& P, Mover i, Mover j) {
    constexpr double kLeastCurvature = 1e-12;
    const std::size_t a = usize(i.k), b = usize(j.k);

    // Determine curvature
    const double k_ij = static_cast<double>(i.row[j.k]);
    const double curvature = std::max(P.diagonal[a] + P.diagonal[b] - 2.0 * k_ij, kLeastCurvature);

    // Determine maximal step
    const double room_i = P.hi[a] - P.alpha[a], room_j = P.alpha[b] - P.lo[b];
    const double lambda = std::min({(P.g[a] - P.g[b]) / curvature, room_i, room_j});

    // Perform update; a side of the box that is reached but for rounding is reached exactly
    const double tiny = 1e-12 * (P.hi[a] - P.lo[a] + P.hi[b] - P.lo[b]);
    P.alpha[a] = lambda >= room_i - tiny ? P.hi[a] : P.alpha[a] + lambda;
    P.alpha[b] = lambda >= room_j - tiny ? P.lo[b] : P.alpha[b] - lambda;
    P.refresh(i.k);
    P.refresh(j.k);
    P.extremes =
        table().step(P.g.data(), i.row, j.row, lambda, P.up.data(), P.down.data(), padded(P.size));
}

template <class T>
void move_pair(Dual<T>& D, Index c, Index i, Index j) {
    const float* k_i = D.row(c, i);
    move_pair(D.problem(c), {i, k_i}, {j, D.row(c, j)});
    D.weigh(c, i);
    D.weigh(c, j);
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
