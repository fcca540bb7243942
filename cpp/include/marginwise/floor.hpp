// The floor: how long the kernel values of a run take by themselves, in blocks, on one thread.
#pragma once

#include <numeric>

#include "marginwise/block.hpp"
#include "marginwise/clock.hpp"

namespace marginwise {

// Seconds for the RBF kernel of all rows of X with all rows of M, computed in blocks of `rows` from
// dense rows or, with `skip`, from lists of their nonzeros.
inline double product_seconds(const DenseView<float>& X, const DenseView<float>& M, double gamma,
                              bool skip, Index rows = 256) {
    Kernel rbf;
    rbf.gamma = gamma;
    const KernelBlocks<float> kernel(rbf);
    std::vector<std::int64_t> order(usize(std::max(X.rows, M.rows)));
    std::iota(order.begin(), order.end(), std::int64_t(0));
    Rows<float> block;
    Members<float> members(M.cols, false);
    for (Index r = 0; r < M.rows; ++r) {
        block.read(M, order.data() + r, 1, {});
        members.append(block, 0, r);
    }
    Scratch<float> scratch;
    const Index stride = padded(M.rows) + 16;
    Array<float> out(usize(rows * stride), 0.0f);
    double seconds = 0;
    for (Index first = 0; first < X.rows; first += rows) {
        const Index n = std::min(rows, X.rows - first);
        block.read(X, order.data() + first, n, {}, skip ? Form::lists : Form::dense);
        const Stopwatch watch(seconds);
        for (Index t = 0; t < tiles_for(members.size()); ++t)
            kernel.values(block, 0, n, members.tile(t), scratch, out.data() + t * kLanes, stride,
                          members.tile_after(t));
    }
    return seconds;
}

}  // namespace marginwise
