// How the problems of a dual share the memory for kernel rows.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
void Dual<T>::divide_cache() {
    Vector<std::pair<Index, Index>> needs;
    for (Index c = 0; c < problems(); ++c) {
        const Index width = padded(subproblems[c].P.size);
        needs.emplace_back(width * (width + width / 2) * Index(sizeof(float)), c);
    }
    std::sort(needs.begin(), needs.end());
    Index left = subproblems[0].rows.most(), to_serve = problems();
    Vector<std::pair<Index, Index>> parts;
    for (const auto& [need, c] : needs) {
        const Index part = std::min(std::max(need, kLeastBytes), left / to_serve--);
        parts.emplace_back(part, c);
        left -= part;
    }
    parts.back().first += left;
    // Those that give come before those that take; small changes are not worth the moving.
    for (const bool giving : {true, false})
        for (const auto& [part, c] : parts) {
            RowCache& rows = subproblems[c].rows;
            const Index change = part - rows.limit();
            if ((change < 0) == giving && 8 * std::abs(change) > rows.limit()) rows.set_limit(part);
        }
}

template <class T>
Index Dual<T>::release_crowded() {
    Index left = subproblems[0].rows.most();
    for (Subproblem& sub : subproblems)
        if (sub.crowded())
            sub.rows.clear();
        else
            left -= sub.rows.bytes();
    return left;
}

}  // namespace marginwise
