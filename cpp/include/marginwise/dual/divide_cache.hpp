// Sharing the memory for kernel rows among the problems of a dual.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

// Pairs of the bytes that all rows of a problem would take and that problem, in ascending order.
inline Vector<std::pair<Index, Index>> needs_of(const Vector<Subproblem>& subproblems) {
    Vector<std::pair<Index, Index>> needs;
    for (Index c = 0; c < subproblems.size(); ++c) {
        const Index width = padded(subproblems[c].P.size);
        needs.emplace_back(width * (width + width / 2) * Index(sizeof(float)), c);
    }
    std::sort(needs.begin(), needs.end());
    return needs;
}

template <class T>
void Dual<T>::divide_cache() {
    Index left = subproblems[0].rows.most(), to_serve = problems();
    Vector<std::pair<Index, Index>> parts;
    for (const auto& [need, c] : needs_of(subproblems)) {
        const Index part = std::min(std::max(need, kLeastBytes), left / to_serve--);
        parts.emplace_back(part, c);
        left -= part;
    }
    parts.back().first += left;
    // Shrink caches before growing others. Small changes are not worth moving rows for.
    for (const bool giving : {true, false})
        for (const auto& [part, c] : parts) {
            RowCache& rows = subproblems[c].rows;
            const Index change = part - rows.limit();
            if ((change < 0) == giving && 8 * std::abs(change) > rows.limit()) rows.set_limit(part);
        }
    for (Subproblem& sub : subproblems) sub.borrows = false;
}

template <class T>
Index Dual<T>::lend_cache(Index threads, bool empty_too) {
    const Vector<std::pair<Index, Index>> needs = needs_of(subproblems);
    const Index all = subproblems[0].rows.most();
    Index left = all;
    for (const auto& [need, c] : needs) left -= need;
    const bool fits = left >= 0;
    if (fits && !empty_too) {
        divide_cache();
        return 0;
    }
    const Index loans = std::min(needs.back().first * threads, all / 4 * 3);
    left = fits ? all : all - loans;
    for (const auto& [need, c] : needs) {
        Subproblem& sub = subproblems[c];
        sub.borrows = need > left || (empty_too && sub.rows.held() == 0);
        if (!sub.borrows) left -= need;
        if (sub.borrows) sub.rows.clear();
        sub.rows.set_limit(sub.borrows ? 0 : need);
    }
    return (fits ? left : left + loans) / threads;
}

template <class T>
void Dual<T>::borrow_rows(Index c, RowCache& memory, Index bytes) {
    if (!subproblems[c].borrows) return;
    subproblems[c].rows.exchange_memory(memory);
    subproblems[c].rows.set_limit(bytes);
}

template <class T>
void Dual<T>::return_rows(Index c, RowCache& memory) {
    if (!subproblems[c].borrows) return;
    subproblems[c].rows.exchange_memory(memory);
    subproblems[c].rows.set_limit(0);
    own_[c].drop();
}

}  // namespace marginwise
