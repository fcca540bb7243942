// Leave-one-out by unlearning [cauwenberghs2001]: unlearns each support vector, takes the decision
// value of its example, and restores the solution.
#pragma once

#include "marginwise/algo/exact/binary_solver.hpp"

namespace marginwise::exact {

// The bias when the conditions of place k are ignored.
inline double bias_without(Problem& P, Index k) {
    P.up[k] = -simd::Extremes::kInfinite;
    P.down[k] = simd::Extremes::kInfinite;
    P.find_extremes();
    const double b = P.bias();
    P.refresh(k);
    P.find_extremes();
    return b;
}

// out[s * problems + c]: the decision value of problem c for member s, trained without s. Removing
// an example with alpha = 0 changes nothing except possibly the bias, which it may bound.
inline void leave_one_out(const Resources& resources, Index c, FreeSet& S, Workspace& memory,
                          double* out) {
    Dual<double>& D = resources.D;
    Problem& P = D.problem(c);
    const auto decision_without = [&](Index k) { return P.y(k) - P.g[k] + bias_without(P, k); };
    const Problem before = P;
    const FreeSet free_set_before = S;
    for (Index k = 0; k < before.size; ++k) {
        if (!before.open[k]) continue;
        if (resources.stopped()) return;
        double& f = out[D.subproblems[c].member[k] * D.problems() + c];
        if (P.alpha[k] == 0.0) {
            f = decision_without(k);
            continue;
        }
        BinarySolver solver(resources, c, S, Recorder(nullptr, kNone), memory);
        solver.leave_out(k);
        f = decision_without(k);
        solver.restore(before, free_set_before);
    }
}

}  // namespace marginwise::exact
