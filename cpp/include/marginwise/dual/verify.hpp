// Checks that a restored state is one that learning could have produced.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

// Throws std::invalid_argument unless g[k] is target(c, k) - sum_l alpha[l] K(k, l), to within
// `tolerance` relative to the magnitude of the terms. Checks the places of up to `most` members,
// spread evenly over all members, in all problems. Cost: most * size() kernel values.
template <class T, class F>
void verify_gradient(Dual<T>& D, Index most, double tolerance, F target) {
    const Stats before = D.stats;  // restored: the check does not count as work
    const Index n = D.size(), looks = std::min(most, n);
    Rows<T> row;
    Array<float> values(padded(n));
    for (Index look = 0; look < looks; ++look) {
        const Index s = looks == n ? look : (look * n + n / 2) / looks;
        if (D.holders[s] == 0) continue;
        D.members.extract(s, row);
        D.fill(row, 0, 0, values.data());
        double reach = 0;  // bound on the terms that could have been added, and rounded, so far
        for (Index l = 0; l < n; ++l) reach += D.cost[l] * std::abs(double(values[l]));
        for (Index c = 0; c < D.problems(); ++c) {
            const Subproblem& sub = D.subproblems[c];
            const Index k = sub.place[s];
            if (k == kNone) continue;
            double f = 0, size = 1;
            for (Index l = 0; l < n; ++l) {
                const double term = sub.weight[l] * double(values[l]);
                f += term;
                size += std::abs(term);
            }
            const double wanted = target(c, k);
            const double error = std::abs(sub.P.g[k] - (wanted - f));
            if (!(error <= tolerance * (size + std::abs(wanted) + tolerance * reach)))
                throw std::invalid_argument("g must be the gradient of alpha");
        }
    }
    D.stats = before;
}

}  // namespace marginwise
