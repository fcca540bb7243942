// Kernel values in blocks: a block of examples against a tile of members.
#pragma once

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/kernel/rows.hpp"
#include "marginwise/kernel/tile.hpp"

namespace marginwise {

inline KernelKind kernel_named(const std::string& name) {
    static const std::map<std::string, KernelKind> kinds{
        {"linear", KernelKind::linear},     {"rbf", KernelKind::rbf},
        {"poly", KernelKind::poly},         {"sigmoid", KernelKind::sigmoid},
        {"cosine", KernelKind::cosine},     {"tanimoto", KernelKind::tanimoto},
        {"callable", KernelKind::callable},
    };
    const auto found = kinds.find(name);
    require(found != kinds.end(), "unknown kernel");
    return found->second;
}

// The working memory of one thread for computing blocks; reused from call to call.
template <class T>
struct Scratch {
    Array<T> dots;
    Array<T> packed;              // a sparse tile expanded over the features that occur in it
    Vector<std::uint32_t> slot;   // feature -> row of `packed`; row 0 is all zeros
    Vector<std::uint32_t> slots;  // slot of each entry of a block
    Vector<std::uint32_t> cuts;   // ends of the lists of a tile
    Array<T> packed_norms;
    Array<float> transposed;  // values of a tile's lanes with the packed rows
    Array<double> transposed_full;
    Array<T> scattered;  // one example over all features
    Array<float> values;
    Array<double> called;          // result of a kernel function
    Array<double> block_features;  // its first argument
    Array<double> tile_features;   // its second argument

    Array<float>& transposed_as(const float*) { return transposed; }
    Array<double>& transposed_as(const double*) { return transposed_full; }
};

template <class T>
class KernelBlocks {
  public:
    explicit KernelBlocks(const Kernel& kernel, BlockKernel callable = nullptr)
        : kernel_(kernel), callable_(std::move(callable)) {}

    const Kernel& kernel() const { return kernel_; }
    bool is_callable() const { return kernel_.kind == KernelKind::callable; }
    const BlockKernel& callable() const { return callable_; }
    void forget_callable() { callable_ = nullptr; }

    // out[r * stride + lane] = K(row first + r, lane of tile) for `rows` rows. Each value depends
    // only on its two examples and is rounded to V, which is float or T. `ahead` is the next tile,
    // for prefetching, or null. Cost: rows * kLanes kernel values.
    template <class V>
    void values(const Rows<T>& block, Index first, Index rows, const Tile<T>& tile,
                Scratch<T>& scratch, V* out, Index stride, const Tile<T>* ahead = nullptr) const {
        if (is_callable()) return call(block, first, rows, {&tile}, scratch, out, stride);
        scratch.dots.resize(rows * kLanes);
        if (tile.sparse())
            dots_sparse(block, first, rows, tile, scratch);
        else if (block.lists)
            products<T>().dots_lists(lists_of(block, first, block.index.data()), rows,
                                     tile.dense.data(), ahead ? ahead->dense.data() : nullptr,
                                     scratch.dots.data());
        else
            products<T>().dots_dense(block.dense.data() + first * block.d, rows, block.d,
                                     tile.dense.data(), scratch.dots.data());
        transform(scratch.dots.data(), block.norms.data() + first, rows, tile.norms.data(), out,
                  stride);
    }

    // The values of all rows of a block with tiles [first, end) of members: calls use(t, k, stride)
    // with those of tile t at k[r * stride + lane]. A callable kernel is called for several tiles
    // at a time, because one call costs as much as thousands of values. For native kernels, several
    // threads share the tiles; each thread has its own scratch.
    template <class Tiles, class F>
    void values_over(const Rows<T>& block, const Tiles& members, Index first, Index end,
                     Vector<Scratch<T>>& scratches, ThreadPool& workers, F use) const {
        constexpr Index kLeastValues = 1 << 11;  // least number of values worth a thread
        if (is_callable()) return values_over(block, members, first, end, scratches[0], use);
        const Index least = kLeastValues / (kLanes * std::max<Index>(block.n, 1)) + 1;
        workers.run_parts(end - first, least, [&](Index from, Index to, Index worker) {
            values_over(block, members, first + from, first + to, scratches[worker], use);
        });
    }
    template <class Tiles, class F>
    void values_over(const Rows<T>& block, const Tiles& members, Index first, Index end,
                     Scratch<T>& scratch, F use) const {
        constexpr Index kValues = 1 << 18;
        const Index rows = std::max<Index>(block.n, 1);
        const Index together = is_callable() ? std::max<Index>(kValues / (rows * kLanes), 1) : 1;
        for (Index t = first; t < end; t += together) {
            const Index count = std::min(together, end - t), stride = count * kLanes;
            scratch.values.resize(block.n * stride);
            float* k = scratch.values.data();
            if (is_callable()) {
                Vector<const Tile<T>*> tiles;
                for (Index n = 0; n < count; ++n) tiles.push_back(&members.tile(t + n));
                call(block, 0, block.n, tiles, scratch, k, stride);
            } else {
                values(block, 0, block.n, members.tile(t), scratch, k, stride,
                       members.tile_after(t));
            }
            for (Index n = 0; n < count; ++n) use(t + n, k + n * kLanes, stride);
        }
    }

    // For a few rows against many sparse tiles: pack_rows() packs the rows once, as values() packs
    // a tile, and values_packed() multiplies the lists of a tile with them. `rows` is at most
    // kLanes. The results are bit-identical to those of values().
    void pack_rows(const Rows<T>& block, Index rows, Scratch<T>& scratch) const {
        Tile<T> packed(block.d, true);
        for (Index r = 0; r < rows; ++r) {
            const Index begin = block.begin_of(r), end = block.end_of(r);
            packed.index.insert(packed.index.end(), block.index.begin() + begin,
                                block.index.begin() + end);
            packed.value.insert(packed.value.end(), block.value.begin() + begin,
                                block.value.begin() + end);
            packed.begin.push_back(packed.value.size());
            packed.norms[r] = block.norms[r];
        }
        packed.used = rows;
        pack_tile(block.d, packed, scratch);
        std::swap(scratch.packed_norms, packed.norms);
    }
    template <class V>
    void values_packed(Index rows, const Tile<T>& tile, Scratch<T>& scratch, V* out) const {
        scratch.slots.resize(tile.index.size());
        for (Index p = 0; p < tile.index.size(); ++p)
            scratch.slots[p] = scratch.slot[tile.index[p]];
        scratch.cuts.clear();
        for (Index lane = 0; lane < tile.used; ++lane)
            for (const Index end : {tile.begin[lane], tile.begin[lane + 1]})
                scratch.cuts.push_back(static_cast<std::uint32_t>(end));
        scratch.dots.resize(kLanes * kLanes);
        Array<V>& transposed = scratch.transposed_as(out);
        transposed.assign(kLanes * kLanes, V(0));
        const Index d = std::max<Index>(scratch.slot.size(), 1);
        products<T>().dots_lists(
            {scratch.slots.data(), tile.value.data(), scratch.cuts.data(), 2, 1, d}, tile.used,
            scratch.packed.data(), nullptr, scratch.dots.data());
        transform(scratch.dots.data(), tile.norms.data(), tile.used, scratch.packed_norms.data(),
                  transposed.data(), kLanes);
        for (Index r = 0; r < rows; ++r)
            for (Index lane = 0; lane < kLanes; ++lane)
                out[r * kLanes + lane] = transposed[lane * kLanes + r];
    }
    void clear_packed_rows(const Rows<T>& block, Scratch<T>& scratch) const {
        for (const std::uint32_t feature : block.index) scratch.slot[feature] = 0;
    }

    // K(x, x) for row r, rounded to V.
    template <class V = float>
    double diagonal(const Rows<T>& block, Index r) const {
        if (is_callable()) {
            const Array<double> x = dense_rows(block, r, 1);
            double value = 0;
            callable_(x.data(), 1, x.data(), 1, block.d, &value);
            return static_cast<double>(static_cast<V>(value));
        }
        Array<T> dots(kLanes, block.norms[r]);
        Array<V> out(kLanes);
        transform(dots.data(), block.norms.data() + r, 1, dots.data(), out.data(), kLanes);
        return static_cast<double>(out[0]);
    }

    // The same for all rows. A callable kernel is called for blocks of rows with themselves, which
    // costs less than one call per row.
    template <class V = float>
    Vector<double> diagonals(const Rows<T>& block) const {
        constexpr Index kTogether = 64;
        Vector<double> found;
        if (!is_callable()) {
            for (Index r = 0; r < block.n; ++r) found.push_back(diagonal<V>(block, r));
            return found;
        }
        for (Index first = 0; first < block.n; first += kTogether) {
            const Index n = std::min(kTogether, block.n - first);
            const Array<double> x = dense_rows(block, first, n);
            Array<double> k(n * n);
            callable_(x.data(), n, x.data(), n, block.d, k.data());
            for (Index r = 0; r < n; ++r)
                found.push_back(static_cast<double>(static_cast<V>(k[r * n + r])));
        }
        return found;
    }

  private:
    template <class V>
    void transform(const T* dots, const T* row_norms, Index rows, const T* lane_norms, V* out,
                   Index stride) const {
        if constexpr (sizeof(V) == sizeof(float))
            products<T>().transform(kernel_, dots, row_norms, rows, lane_norms, out, stride);
        else
            products<T>().transform_full(kernel_, dots, row_norms, rows, lane_norms, out, stride);
    }

    static simd::Lists<T> lists_of(const Rows<T>& block, Index first, const std::uint32_t* index) {
        return {index,        block.value.data(), block.cut.data() + first * block.stride,
                block.stride, block.chunks(),     block.chunk_size()};
    }

    void dots_sparse(const Rows<T>& block, Index first, Index rows, const Tile<T>& tile,
                     Scratch<T>& scratch) const {
        if (rows < 4) return dots_scattered(block, first, rows, tile, scratch);
        pack_tile(block.d, tile, scratch);
        scratch.slots.resize(block.index.size());
        for (Index p = block.begin_of(first); p < block.end_of(first + rows - 1); ++p)
            scratch.slots[p] = scratch.slot[block.index[p]];
        products<T>().dots_lists(lists_of(block, first, scratch.slots.data()), rows,
                                 scratch.packed.data(), nullptr, scratch.dots.data());
        for (const std::uint32_t feature : tile.index) scratch.slot[feature] = 0;
    }

    // Gives each feature of the tile a row of kLanes values, as in a dense tile.
    static void pack_tile(Index d, const Tile<T>& tile, Scratch<T>& scratch) {
        scratch.slot.resize(d, 0u);
        std::uint32_t used = 1;
        for (const std::uint32_t feature : tile.index)
            if (scratch.slot[feature] == 0) scratch.slot[feature] = used++;
        scratch.packed.assign(Index(used) * kLanes, T(0));
        for (Index lane = 0; lane < tile.used; ++lane)
            for (Index p = tile.begin[lane]; p < tile.begin[lane + 1]; ++p)
                scratch.packed[Index(scratch.slot[tile.index[p]]) * kLanes + lane] = tile.value[p];
    }

    // For fewer than four rows: packing would cost more than it saves.
    static void dots_scattered(const Rows<T>& block, Index first, Index rows, const Tile<T>& tile,
                               Scratch<T>& scratch) {
        scratch.scattered.resize(block.d, T(0));
        for (Index r = 0; r < rows; ++r) {
            const Index begin = block.begin_of(first + r), end = block.end_of(first + r);
            for (Index p = begin; p < end; ++p) scratch.scattered[block.index[p]] = block.value[p];
            T* dots = scratch.dots.data() + r * kLanes;
            std::fill(dots, dots + kLanes, T(0));
            for (Index lane = 0; lane < tile.used; ++lane) {
                const Index from = tile.begin[lane];
                dots[lane] =
                    products<T>().dot_gather(tile.index.data() + from, tile.value.data() + from,
                                             tile.begin[lane + 1] - from, scratch.scattered.data());
            }
            for (Index p = begin; p < end; ++p) scratch.scattered[block.index[p]] = T(0);
        }
    }

    // Rows [first, first + n) of a block as a dense row-major matrix.
    static Array<double> dense_rows(const Rows<T>& block, Index first, Index n) {
        Array<double> x;
        read_dense_rows(block, first, n, x);
        return x;
    }
    static void read_dense_rows(const Rows<T>& block, Index first, Index n, Array<double>& x) {
        const Index d = block.d;
        x.assign(n * d, 0.0);
        for (Index r = 0; r < n; ++r)
            if (block.lists)
                for (Index p = block.begin_of(first + r); p < block.end_of(first + r); ++p)
                    x[r * d + block.index[p]] = static_cast<double>(block.value[p]);
            else
                for (Index k = 0; k < d; ++k)
                    x[r * d + k] = static_cast<double>(block.dense[(first + r) * d + k]);
    }

    // Calls the kernel function. The values of tile n are at out[r * stride + n * kLanes + lane].
    template <class V>
    void call(const Rows<T>& block, Index first, Index rows, const Vector<const Tile<T>*>& tiles,
              Scratch<T>& scratch, V* out, Index stride) const {
        const Index d = block.d;
        Index lanes = 0;
        for (const Tile<T>* tile : tiles) lanes += tile->used;
        Array<double>&a = scratch.block_features, &b = scratch.tile_features, &k = scratch.called;
        read_dense_rows(block, first, rows, a);
        b.resize(lanes * d);
        k.resize(rows * lanes);
        double* to = b.data();
        for (const Tile<T>* tile : tiles)
            for (Index lane = 0; lane < tile->used; ++lane)
                for (Index feature = 0; feature < d; ++feature)
                    *to++ = static_cast<double>(tile->dense[feature * kLanes + lane]);
        callable_(a.data(), rows, b.data(), lanes, d, k.data());
        const double* value = k.data();
        for (Index r = 0; r < rows; ++r)
            for (Index n = 0; n < tiles.size(); ++n)
                for (Index lane = 0; lane < kLanes; ++lane)
                    out[r * stride + n * kLanes + lane] =
                        lane < tiles[n]->used ? static_cast<V>(*value++) : V(0);
    }

    Kernel kernel_;
    BlockKernel callable_;
};

}  // namespace marginwise
