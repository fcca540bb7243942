// Checks of the invariants of an exact solution.
#pragma once

#include "marginwise/algo/exact/binary_problem.hpp"

namespace marginwise::exact {

inline void check_place(BinaryProblem& B, Index k, double tolerance) {
    const Problem& P = B.P;
    const FreeSet& S = B.S;
    if (!P.open[k]) {
        require_invariant(!S.has(k), "S has open places only");
        return;
    }
    const double* values = B.row(k);
    double f = 0;
    for (Index l = 0; l < P.size; ++l)
        if (P.open[l]) f += P.alpha[l] * values[B.member(l)];
    require_invariant(std::abs(P.g[k] - (B.target(k) - f)) <= tolerance, "g == t - sum alpha K");
    require_invariant(P.lo[k] <= P.alpha[k] && P.alpha[k] <= P.hi[k], "lo <= alpha <= hi");
    require_invariant(B.sub.weight[B.member(k)] == P.alpha[k], "weight is alpha");
    require_invariant(S.indefinite || S.has(k) || B.at_bound(k), "places outside S are at a bound");
    require_invariant(!S.has(k) || S.place[S.slot[k]] == k, "place[slot[k]] == k");
}

inline void check_factor(BinaryProblem& B, double tolerance) {
    const FreeSet& S = B.S;
    for (Index i = 0; i < S.factor.slots(); ++i)
        for (Index j = i; j < S.factor.slots(); ++j) {
            double product = 0;
            for (Index l = 0; l <= i; ++l) product += S.factor.entry(l, i) * S.factor.entry(l, j);
            const Index k = S.place[i], l = S.place[j];
            double expected = i == j ? 1.0 : 0.0;
            if (k != kNone && l != kNone) expected = B.row(k)[B.member(l)] + S.shift;
            require_invariant(std::abs(product - expected) <= tolerance * (1 + std::abs(expected)),
                              "R'R is the kernel matrix of S");
        }
}

// Throws std::logic_error with the name of the broken INVARIANT if one does not hold to within
// `tolerance`. Call between two changes of the binary problem. Cost: all kernel values.
inline void check_solution(BinaryProblem& B, double tolerance) {
    double sum = 0;
    for (Index k = 0; k < B.P.size; ++k) {
        check_place(B, k, tolerance);
        if (B.P.open[k]) sum += B.P.alpha[k];
    }
    require_invariant(std::abs(sum - B.S.total) <= tolerance, "alpha adds up to the total");
    require_invariant(B.S.indefinite || B.conditions.violation() <= tolerance,
                      "the conditions (2) hold");
    check_factor(B, tolerance);
}

}  // namespace marginwise::exact
