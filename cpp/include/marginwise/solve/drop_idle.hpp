// Eviction: which members with alpha = 0 a learner drops.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

// Closes all idle places of problem c except the `most` with the smallest distance(k); ties go to
// the older place. Returns whether any were closed. The caller updates the extremes.
template <class T, class F>
bool drop_idle(Dual<T>& D, Index c, Index most, F distance) {
    Vector<Index> idle = D.problem(c).idle_places();
    if (idle.size() <= most) return false;
    Vector<std::pair<double, Index>> farthest;
    for (const Index k : idle) farthest.emplace_back(distance(k), k);
    std::nth_element(farthest.begin(), farthest.begin() + most, farthest.end());
    for (auto at = farthest.begin() + most; at != farthest.end(); ++at) D.close(c, at->second);
    return true;
}

}  // namespace marginwise
