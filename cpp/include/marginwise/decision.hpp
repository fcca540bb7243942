// Decision values: blocks of rows against the members, all problems at once.
#pragma once

#include <numeric>

#include "marginwise/dual.hpp"
#include "marginwise/threads.hpp"

namespace marginwise {

// out[r * problems + c] += sum_s weight[c][s] K(x_r, member s), for all rows of X; the weights are
// padded to whole tiles. A row's values do not depend on the others.
template <class T>
void expand(const KernelBlocks<T>& kernel, const Members<T>& members,
            const std::vector<const double*>& weight, const Origin& origin, Index threads,
            const Matrix& X, double* out) {
    constexpr Index kRows = 256;
    const Index n = rows_of(X), problems = count(weight);
    Crew crew(threads);
    crew.run((n + kRows - 1) / kRows, [&](Index task, Index) {
        const Index first = task * kRows, rows = std::min(kRows, n - first);
        std::vector<std::int64_t> order(usize(rows));
        std::iota(order.begin(), order.end(), first);
        Rows<T> block;
        Scratch<T> scratch;
        Array<float> k(usize(rows * kLanes));
        block.read(X, order.data(), rows, origin);
        for (Index t = 0; t < tiles_for(members.size()); ++t) {
            kernel.values(block, 0, rows, members.tile(t), scratch, k.data(), kLanes,
                          members.tile_after(t));
            for (Index r = 0; r < rows; ++r)
                for (Index c = 0; c < problems; ++c)
                    out[(first + r) * problems + c] +=
                        table().dot(weight[usize(c)] + t * kLanes, k.data() + r * kLanes, kLanes);
        }
    });
}

// out[r * problems + c] = f_c(x_r), for all rows of X.
template <class T>
void decide(const Dual<T>& D, const Origin& origin, Index threads, const Matrix& X, double* out) {
    std::vector<const double*> weight;
    for (const Share& share : D.shares) weight.push_back(share.weight.data());
    for (Index r = 0; r < rows_of(X); ++r)
        for (Index c = 0; c < D.problems(); ++c)
            out[r * D.problems() + c] = D.shares[usize(c)].P.bias();
    expand(D.kernel, D.members, weight, origin, threads, X, out);
}

}  // namespace marginwise
