// The kernel matrix of all members, for a callable kernel when the problems of several classes are
// solved in full.
//
// One call of the function costs as much as computing thousands of values. The function is called
// for large blocks, each pair of members is evaluated once, and all problems share the matrix.
#pragma once

#include <numeric>

#include "marginwise/base/arena.hpp"
#include "marginwise/dual/members.hpp"
#include "marginwise/kernel/kernel_blocks.hpp"

namespace marginwise {

class KnownValues {
  public:
    template <class T>
    KnownValues(const KernelBlocks<T>& kernel, const Members<T>& members)
        : stride_(padded(members.size())), values_(stride_ * stride_) {
        values_.back(0, stride_ * stride_);
        Scratch<T> scratch;
        Rows<T> rows;
        for (Index first = 0; first < members.size(); first += kRows) {
            Vector<Index> at(std::min(kRows, members.size() - first));
            std::iota(at.begin(), at.end(), first);
            members.extract(at.data(), at.size(), rows);
            kernel.values_over(rows, members, first / kLanes, tiles_for(members.size()), scratch,
                               [&](Index t, const float* k, Index stride) {
                                   put(first, rows.n, t * kLanes, k, stride);
                               });
        }
    }

    // K(s, t) for all members t.
    const float* row(Index s) const { return values_.data() + s * stride_; }

    // Memory for the matrix of n members.
    static Index bytes(Index n) { return padded(n) * padded(n) * Index(sizeof(float)); }

  private:
    static constexpr Index kRows = 2 * kLanes;  // rows per block

    // Stores the values of members [first, first + n) with the tile that starts at member `other`.
    void put(Index first, Index n, Index other, const float* k, Index stride) {
        for (Index r = 0; r < n; ++r)
            std::copy_n(k + r * stride, kLanes, values_.data() + (first + r) * stride_ + other);
        for (Index lane = 0; lane < kLanes && other > first; ++lane) {
            float* to = values_.data() + (other + lane) * stride_ + first;
            for (Index r = 0; r < n; ++r) to[r] = k[r * stride + lane];
        }
    }

    Index stride_;
    Arena<float> values_;
};

}  // namespace marginwise
