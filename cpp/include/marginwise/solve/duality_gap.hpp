// The duality gap over the places of a problem [ertekin2011].
#pragma once

#include <cmath>

#include "marginwise/dual/problem.hpp"

namespace marginwise {

// The gap between primal and dual over the members, and its target before PROCESS
// [ertekin2011, eq. 8 and 9], with the bias subtracted from g.
inline double gap_of(const Problem& P) {
    const double b = P.bias();
    double gap = 0;
    for (Index s = 0; s < P.g.size(); ++s) {
        const double g = P.g[s] - b;
        gap += std::max(P.lo[s] * g, P.hi[s] * g) - P.alpha[s] * g;
    }
    return gap;
}
inline double gap_target(const Problem& P) {
    const double b = P.bias();
    double sum = 0, squares = 0, members = 0;
    for (Index s = 0; s < P.g.size(); ++s) {
        const double h = (P.lo[s] + P.hi[s]) * (P.g[s] - b);  // one side of the box is 0
        sum += h;
        squares += h * h;
        members += P.open[s];
    }
    return members > 0 ? std::sqrt(std::max(0.0, squares - sum * sum / members)) : 0.0;
}

}  // namespace marginwise
