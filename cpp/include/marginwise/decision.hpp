// Decision values: blocks of rows against the members, all problems at once.
#pragma once

#include <numeric>

#include "marginwise/dual.hpp"
#include "marginwise/threads.hpp"

namespace marginwise {

// out[r * problems + c] = f_c(x_r), for all rows of X. A row's values do not depend on the others.
template <class T>
void decide(const Dual<T>& D, const Origin& origin, Index threads, const Matrix& X, double* out) {
    constexpr Index kRows = 256;
    const Index n = rows_of(X), problems = D.problems();
    Crew crew(threads);
    crew.run((n + kRows - 1) / kRows, [&](Index task, Index) {
        const Index first = task * kRows, rows = std::min(kRows, n - first);
        std::vector<std::int64_t> order(usize(rows));
        std::iota(order.begin(), order.end(), first);
        Rows<T> block;
        Scratch<T> scratch;
        Array<float> k(usize(rows * kLanes));
        block.read(X, order.data(), rows, origin);
        for (Index r = 0; r < rows; ++r)
            for (Index c = 0; c < problems; ++c)
                out[(first + r) * problems + c] = D.shares[usize(c)].P.bias();
        for (Index t = 0; t < tiles_for(D.size()); ++t) {
            D.kernel.values(block, 0, rows, D.members.tile(t), scratch, k.data(), kLanes,
                            D.members.tile_after(t));
            for (Index r = 0; r < rows; ++r)
                for (Index c = 0; c < problems; ++c)
                    out[(first + r) * problems + c] +=
                        table().dot(D.shares[usize(c)].weight.data() + t * kLanes,
                                    k.data() + r * kLanes, kLanes);
        }
    });
}

}  // namespace marginwise
