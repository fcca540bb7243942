// A lower bound on the time of a run: that of its kernel values, in blocks, on one thread.
#pragma once

#include <numeric>

#include "marginwise/base/clock.hpp"
#include "marginwise/predict/decision.hpp"

namespace marginwise {

// Seconds for the RBF kernel of all rows of X with all rows of M, computed in blocks from dense
// rows or, with `skip`, from lists of their nonzeros.
inline double product_seconds(const DenseView<float>& X, const DenseView<float>& M, double gamma,
                              bool skip) {
    constexpr Index rows = kRowsAtOnce;
    Kernel rbf;
    rbf.gamma = gamma;
    const KernelBlocks<float> kernel(rbf);
    Vector<std::int64_t> order(std::max(X.rows, M.rows));
    std::iota(order.begin(), order.end(), std::int64_t(0));
    Rows<float> block;
    Members<float> members(M.cols, false);
    for (Index r = 0; r < M.rows; ++r) {
        block.read(M, order.data() + r, 1, {});
        members.append(block, 0, r);
    }
    Scratch<float> scratch;
    const Index stride = padded(M.rows) + 16;
    Array<float> out(rows * stride, 0.0f);
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

// Seconds to compute the sensitivities of all examples to the free ones [laskov2006, section 5.3],
// averaged over `rounds`. `rows` are the kernel rows of the free examples `free` with all examples.
// In gaxpy form, the rows are added up directly. With `gather`, the columns of the other examples
// are first gathered into a matrix, which is then multiplied.
inline double sensitivity_seconds(const DenseView<double>& rows, View<std::int64_t> free,
                                  Index rounds, bool gather) {
    const Index s = rows.rows, n = rows.cols;
    require(s == free.size && rounds > 0, "one row per free example");
    Vector<std::uint8_t> is_free(n, 0);
    for (const std::int64_t k : free) {
        require(k >= 0 && k < n, "a free example has no column");
        is_free[k] = 1;
    }
    Vector<Index> others;
    for (Index k = 0; k < n; ++k)
        if (!is_free[k]) others.push_back(k);
    Vector<const double*> pointers;
    for (Index i = 0; i < s; ++i) pointers.push_back(rows.data + i * n);
    const Vector<double> beta(s, 0.5);
    Vector<double> gamma(n, 0.0), matrix;
    double seconds = 0;
    {
        const Stopwatch whole(seconds);
        for (Index round = 0; round < rounds; ++round) {
            if (!gather) {
                table().gaxpy(gamma.data(), pointers.data(), beta.data(), s, n);
                continue;
            }
            matrix.resize(s * others.size());
            for (Index r = 0; r < others.size(); ++r)
                for (Index i = 0; i < s; ++i) matrix[r * s + i] = pointers[i][others[r]];
            for (Index r = 0; r < others.size(); ++r)
                gamma[r] = table().dot_full(matrix.data() + r * s, beta.data(), s);
        }
    }
    return seconds / static_cast<double>(rounds) + 0 * gamma[0];
}

}  // namespace marginwise
