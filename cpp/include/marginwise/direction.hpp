// Direction searches: who to move, how far, and the move itself.
#pragma once

#include "marginwise/dual.hpp"

namespace marginwise {

// A member of a problem and its kernel row over that problem's members.
struct Mover {
    Index s;
    const float* row;
};

constexpr double kLeastCurvature = 1e-12;

// Moves along e_i - e_j to the maximum of the dual or the first side of the box
// [bordes2005, eq. 8]; updates alpha, g and the extremes.
inline void move_pair(Problem& P, Mover i, Mover j, const Array<double>& diagonal) {
    const std::size_t a = usize(i.s), b = usize(j.s);

    // Determine curvature
    const double curvature = diagonal[a] + diagonal[b] - 2.0 * static_cast<double>(i.row[j.s]);

    // Determine maximal step
    const double room_i = P.hi[a] - P.alpha[a], room_j = P.alpha[b] - P.lo[b];
    const double newton = (P.g[a] - P.g[b]) / std::max(curvature, kLeastCurvature);
    const double lambda = std::min({newton, room_i, room_j});

    // Perform update; a side of the box is reached exactly
    P.alpha[a] = lambda == room_i ? P.hi[a] : P.alpha[a] + lambda;
    P.alpha[b] = lambda == room_j ? P.lo[b] : P.alpha[b] - lambda;
    P.refresh(i.s);
    P.refresh(j.s);
    P.extremes = table().step(P.g.data(), i.row, j.row, lambda, P.up.data(), P.down.data(),
                              count(P.g));
}

template <class T>
void move_pair(Dual<T>& D, Index c, Index i, Index j) {
    const float* k_i = D.row(i);
    move_pair(D.problems[usize(c)], {i, k_i}, {j, D.row(j)}, D.diagonal);
}

// The partner of i by second-order choice: the largest guaranteed gain in the dual [fan2005].
inline Index second_order_partner(const Problem& P, Index i, const float* k_i,
                                  const Array<double>& diagonal) {
    return table()
        .second_order(P.g.data(), k_i, diagonal.data(), P.down.data(), P.g[usize(i)],
                      diagonal[usize(i)], count(P.g))
        .s;
}

}  // namespace marginwise
