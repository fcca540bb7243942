// A block of examples in the form used for products: dense rows, or lists of nonzeros if enough
// features are zero for skipping them to pay off.
#pragma once

#include "marginwise/base/types.hpp"
#include "marginwise/simd/dispatch.hpp"

namespace marginwise {

template <class T>
const simd::ProductTable<T>& products() {
    if constexpr (sizeof(T) == sizeof(float))
        return table().f32;
    else
        return table().f64;
}

// How a block stores its rows; `best` chooses by density.
enum class Form { best, dense, lists };

template <class T>
struct Rows {
    // INVARIANT  lists: row r has entries [cut[r * stride], cut[(r + 1) * stride - 1]), features
    //                   ascending, and dense is empty unless the input was dense
    //            else:  dense[r * d + k] is feature k of row r
    //            norms[r] == x_r . x_r, summed in the order of the features
    Index n = 0;
    Index d = 0;
    bool lists = false;
    Array<T> dense;
    Array<std::uint32_t> index;  // feature of each entry
    Array<T> value;
    Vector<std::uint32_t> cut;
    Index stride = 1;
    Array<T> norms;

    // Features per chunk. The part of a tile with these features should fit the first-level cache.
    static constexpr Index kChunk = Index{56} * 1024 / (kLanes * static_cast<Index>(sizeof(T)));
    // Rows wider than this many chunks are too sparse to gain by chunks.
    static constexpr Index kMostChunks = 16;
    // Below this density, the zero-skipping product is faster.
    static constexpr double kSkipBelow = 0.35;

    Index chunks() const { return stride - 1; }
    Index chunk_size() const { return chunks() == 1 ? std::max<Index>(d, 1) : kChunk; }
    Index begin_of(Index r) const { return cut[r * stride]; }
    Index end_of(Index r) const { return cut[r * stride + stride - 1]; }
    double density() const {
        return n * d == 0 ? 1.0 : static_cast<double>(value.size()) / static_cast<double>(n * d);
    }

    // Reads rows order[0..count_) of X, centred and scaled (sparse input has no center).
    void read(const Matrix& X, const std::int64_t* order, Index count_,
              const FeatureScaling& scaling, Form form = Form::best) {
        reset(count_, cols_of(X));
        std::visit([&](const auto& view) { read_view(view, order, scaling, form); }, X);
        measure();
    }

    // Builds a block row by row: start(d); then, for each row, add() its entries in the order of
    // features and end_row(); then finish().
    void start(Index d_) {
        reset(0, d_);
        lists = true;
        cut.push_back(0);
    }
    void add(std::uint32_t feature, T x) { push(feature, x); }
    void end_row() {
        close_row();
        cut.push_back(static_cast<std::uint32_t>(value.size()));
        ++n;
    }
    void finish() {
        cut.pop_back();
        measure();
    }
    // Builds a block from whole rows of other blocks of lists, whose norms are known: start(d),
    // then add_row() for each row.
    void add_row(const Rows& from, Index r) {
        const Index begin = from.begin_of(r), end = from.end_of(r);
        const auto shift = static_cast<std::uint32_t>(value.size() - begin);
        cut.resize(n * stride);
        for (Index k = 0; k < stride; ++k) cut.push_back(from.cut[r * stride + k] + shift);
        index.insert(index.end(), from.index.begin() + begin, from.index.begin() + end);
        value.insert(value.end(), from.value.begin() + begin, from.value.begin() + end);
        norms.resize(n++);
        norms.push_back(from.norms[r]);
    }

    // Converts lists to dense rows if that makes the product with dense tiles faster.
    void choose_form() {
        if (!lists || density() <= kSkipBelow) return;
        dense.assign(n * d, T(0));
        for (Index r = 0; r < n; ++r)
            for (Index p = begin_of(r); p < end_of(r); ++p) dense[r * d + index[p]] = value[p];
        lists = false;
    }

  private:
    void reset(Index n_, Index d_) {
        n = n_;
        d = d_;
        lists = false;
        const bool one_chunk = 2 * d <= 3 * kChunk || d > kMostChunks * kChunk;
        stride = one_chunk ? 2 : 1 + (d + kChunk - 1) / kChunk;
        dense.clear();
        index.clear();
        value.clear();
        cut.clear();
    }

    void start_row() { cut.push_back(static_cast<std::uint32_t>(value.size())); }
    void push(std::uint32_t feature, T x) {
        if (x == T(0)) return;
        while (static_cast<Index>(feature) >= chunk_size() * (1 + open_chunk()))
            cut.push_back(static_cast<std::uint32_t>(value.size()));
        index.push_back(feature);
        value.push_back(x);
    }
    void close_row() {
        do cut.push_back(static_cast<std::uint32_t>(value.size()));
        while (cut.size() % stride != 0);
    }
    // The chunk that the current row is being written to.
    Index open_chunk() const { return (cut.size() - 1) % stride; }

    template <class V>
    void read_view(const DenseView<V>& view, const std::int64_t* order,
                   const FeatureScaling& scaling, Form form) {
        const double most = form == Form::lists ? 1.0 : form == Form::dense ? -1.0 : kSkipBelow;
        zeros.assign(scaling.center.begin(), scaling.center.end());
        zeros.resize(d, 0.0);
        if (list_nonzeros(view, order, scaling.scale, most)) return;
        dense.resize(n * d);
        for (Index r = 0; r < n; ++r) {
            const V* from = view.data + order[r] * d;
            T* to = dense.data() + r * d;
            for (Index k = 0; k < d; ++k) to[k] = measured(from[k], k, scaling.scale);
        }
    }
    template <class V>
    T measured(V x, Index k, double scale) const {
        return static_cast<T>((static_cast<double>(x) - zeros[k]) * scale);
    }

    // Lists the nonzeros of dense rows; gives up if they exceed the fraction `most` of all
    // features.
    template <class V>
    bool list_nonzeros(const DenseView<V>& view, const std::int64_t* order, double scale,
                       double most) {
        const auto limit = static_cast<Index>(most * static_cast<double>(n * d));
        index.resize(n * d + kLanes);
        Index p = 0;
        for (Index r = 0; r < n && p <= limit; ++r) {
            const V* x = view.data + order[r] * d;
            if (r + 1 < n) prefetch(view.data + order[r + 1] * d, d * Index(sizeof(V)));
            for (Index k = 0; k < d;) {
                const Index size = std::min(d - k, chunk_size());
                cut.push_back(static_cast<std::uint32_t>(p));
                p += products<V>().nonzeros(x + k, &zeros[k], size, static_cast<std::uint32_t>(k),
                                            &index[p]);
                k += size;
            }
            cut.push_back(static_cast<std::uint32_t>(p));
            const Index before = value.size();
            value.resize(p);
            for (Index q = before; q < p; ++q) value[q] = measured(x[index[q]], index[q], scale);
        }
        index.resize(p);
        lists = p <= limit;
        if (!lists) {
            index.clear();
            value.clear();
            cut.clear();
        }
        return lists;
    }

    template <class V>
    void read_view(const CsrView<V>& view, const std::int64_t* order, const FeatureScaling& scaling,
                   Form) {
        lists = true;
        for (Index r = 0; r < n; ++r) {
            start_row();
            for (std::int64_t p = view.indptr[order[r]]; p < view.indptr[order[r] + 1]; ++p)
                push(static_cast<std::uint32_t>(view.indices[p]),
                     static_cast<T>(static_cast<double>(view.data[p]) * scaling.scale));
            close_row();
        }
    }

    // Prefetches the next row, because rows are read in random order.
    static void prefetch(const void* begin, Index bytes) {
        for (Index at = 0; at < bytes; at += 64)
            __builtin_prefetch(static_cast<const char*>(begin) + at);
    }

    void measure() {
        norms.resize(n);
        for (Index r = 0; r < n; ++r) {
            const T* x = lists ? value.data() + begin_of(r) : dense.data() + r * d;
            const Index entries = lists ? end_of(r) - begin_of(r) : d;
            for (Index k = ascending.size(); k < entries; ++k)
                ascending.push_back(static_cast<std::uint32_t>(k));
            norms[r] = products<T>().dot_gather(ascending.data(), x, entries, x);
        }
    }
    Vector<std::uint32_t> ascending;
    Vector<double> zeros;  // by feature: the center, which is subtracted
};

}  // namespace marginwise
