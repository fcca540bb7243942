// The effect of many changes of alpha on the gradient of a problem.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
void Dual<T>::spread(Index c, const Vector<std::pair<Index, double>>& changes) {
    constexpr Index kBlock = 128;
    Subproblem& sub = subproblems[c];
    const Index width = padded(sub.P.size);
    Array<float> computed;
    for (Index first = 0; first < changes.size(); first += kBlock) {
        const Index end = std::min(first + kBlock, changes.size());
        Vector<Index> absent;
        for (Index n = first; n < end; ++n)
            if (!has_row(c, changes[n].first)) absent.push_back(changes[n].first);
        computed.resize(absent.size() * width, 0.0f);
        Vector<float*> rows;
        for (Index r = 0; r < absent.size(); ++r) rows.push_back(&computed[r * width]);
        multiply(sub, absent, rows);
        const float* next = computed.data();
        Index used = 0;
        for (Index n = first; n < end; ++n) {
            const auto& [k, change] = changes[n];
            const bool here = used < absent.size() && absent[used] == k;
            table().add(sub.P.g.data(), here ? next : row(c, k), -change, width);
            if (here) next += width, ++used;
        }
    }
}

}  // namespace marginwise
