// Leave-one-out by unlearning [cauwenberghs2001]: each support vector is unlearned, the decision
// value of its example taken, and the solution put back.
#pragma once

#include "marginwise/algo/exact/binary_solver.hpp"

namespace marginwise::exact {

// The bias if the conditions of place k do not count.
inline double bias_without(Problem& P, Index k) {
    P.up[k] = -simd::Extremes::kInfinite;
    P.down[k] = simd::Extremes::kInfinite;
    P.find_extremes();
    const double b = P.bias();
    P.refresh(k);
    P.find_extremes();
    return b;
}

// out[s * problems + c]: the decision value of problem c for member s if it had not been learned.
// An example without weight changes nothing by leaving, except a bias that it bounds.
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
