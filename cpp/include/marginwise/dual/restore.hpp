// A dual from a saved state.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
void Dual<T>::restore(const Matrix& X, const Example* examples, const Saved& saved) {
    const Index n = rows_of(X);
    Rows<T> row;
    for (std::int64_t s = 0; s < n; ++s) {
        row.read(X, &s, 1, {});
        append(row, 0, examples[s], diagonal_of(row, 0));
    }
    for (Index c = 0; c < problems(); ++c) {
        Vector<Index> ranked(n);
        std::iota(ranked.begin(), ranked.end(), Index(0));
        if (problems() > 1)
            std::sort(ranked.begin(), ranked.end(), [&](Index s, Index t) {
                return saved.rank[c * n + s] < saved.rank[c * n + t];
            });
        for (const Index s : ranked) {
            const Index at = c * n + s;
            if (saved.rank[at] >= 0) {
                const Box box = saved.box ? Box{saved.box[at]} : Box::usual;
                const Index k = open(c, s, saved.alpha[at], saved.g[at], box);
                if (saved.average_offset) problem(c).average_offset[k] = saved.average_offset[at];
                if (saved.inherited) problem(c).move_box(k, saved.inherited[at]);
            } else if (problems() == 1) {
                close(c, open(c, s, 0.0, 0.0, Box::usual));  // keeps its place
            }
        }
        problem(c).find_extremes();
    }
    for (Index s = 0; s < n; ++s)
        if (holders[s] == 0) members.forget(s);
}

template <class T>
void Dual<T>::regrade() {
    for (Index c = 0; c < problems(); ++c) {
        Problem& P = problem(c);
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[k]) continue;
            P.g[k] = P.y(k) - table().dot(P.alpha.data(), row(c, k), padded(P.size));
        }
        P.find_extremes();
    }
}

}  // namespace marginwise
