// The kernel matrix of a fixed set of examples, row by row, for a sequence of values of gamma.
//
// Rows are computed on request, several in one product, and cached while there is room. Dot
// products do not depend on gamma. If they dominate the cost of a row, they are cached too, and a
// row for another gamma is a transform of them.
#pragma once

#include <numeric>

#include "marginwise/dual/members.hpp"
#include "marginwise/dual/row_cache.hpp"
#include "marginwise/kernel/kernel_blocks.hpp"

namespace marginwise {

template <class T>
class KernelMatrix {
  public:
    // `bytes`: memory for rows. `many_gammas`: whether set_gamma() will be called again.
    KernelMatrix(Members<T> examples, const Kernel& kernel, Index bytes, bool many_gammas)
        : examples_(std::move(examples)),
          kernel_(kernel),
          dot_product_(Kernel{KernelKind::linear}),
          keeps_dots_(many_gammas && entries_per_row() > kCheapEntries),
          rows_(keeps_dots_ ? std::min(bytes / 4 * 3, row_bytes() * size()) : bytes),
          dots_(keeps_dots_ ? bytes - rows_.limit() : 0) {
        find_diagonal();
    }

    void set_gamma(double gamma) {
        if (gamma == kernel_.kernel().gamma) return;
        Kernel kernel = kernel_.kernel();
        kernel.gamma = gamma;
        kernel_ = KernelBlocks<T>(kernel);
        for (Index k = 0; k < size(); ++k) rows_.drop(k);
        find_diagonal();
    }

    Index size() const { return examples_.size(); }
    const Array<double>& diagonal() const { return diagonal_; }

    // The number of rows that may be in use at the same time.
    Index room() const { return room_of(rows_); }

    bool has_row(Index k) { return rows_.peek(k) != nullptr; }

    // Computes the missing ones of these rows, room() at most.
    void fetch(const Vector<Index>& wanted) {
        Vector<Index> missing;
        for (const Index k : wanted) {
            const bool held = rows_.peek(k) != nullptr;
            rows_.take(k, size());
            if (!held) missing.push_back(k);
        }
        const Index together = keeps_dots_ ? std::min(kTogether, room_of(dots_)) : kTogether;
        for (Index first = 0; first < missing.size(); first += together) {
            const Index n = std::min(together, missing.size() - first);
            keeps_dots_ ? transform(missing.data() + first, n)
                        : multiply(missing.data() + first, n);
        }
    }

    void fetch_all() {
        if (rows_.held() == size()) return;
        Vector<Index> all(size());
        std::iota(all.begin(), all.end(), Index(0));
        fetch(all);
    }

    // K(k, l) for all examples l, padded. Valid until room() - 1 other rows have been requested.
    const float* row(Index k) {
        if (!rows_.peek(k)) fetch({k});
        return rows_.take(k, size()).values;
    }

    std::int64_t evaluations = 0;  // kernel values computed so far

  private:
    static constexpr Index kTogether = 256;     // rows per product
    static constexpr Index kCheapEntries = 24;  // nonzeros per row up to which exp costs more

    // The number of rows that a cache is sure to hold, however small its limit is.
    template <class V>
    Index room_of(const BasicRowCache<V>& cache) const {
        const Index fit = cache.limit() / (padded(size()) * Index(sizeof(V)));
        return std::max(fit, BasicRowCache<V>::kLeast);
    }

    Index row_bytes() const { return padded(size()) * Index(sizeof(float)); }

    double entries_per_row() {
        constexpr Index kSample = 64;
        Vector<Index> some;
        for (Index k = 0; k < size(); k += std::max<Index>(size() / kSample, 1)) some.push_back(k);
        examples_.extract(some.data(), some.size(), block_);
        return static_cast<double>(block_.value.size()) /
               static_cast<double>(std::max<Index>(some.size(), 1));
    }

    void find_diagonal() {
        diagonal_.assign(padded(size()), 1.0);
        if (kernel_.kernel().kind == KernelKind::rbf) return;
        for (Index first = 0; first < size(); first += kTogether) {
            Vector<Index> some;
            for (Index k = first; k < std::min(first + kTogether, size()); ++k) some.push_back(k);
            examples_.extract(some.data(), some.size(), block_);
            for (Index r = 0; r < some.size(); ++r)
                diagonal_[some[r]] = kernel_.diagonal(block_, r);
        }
    }

    // Calls use(t, values, stride) with products of some examples with each tile.
    template <class V, class F>
    void each_tile(const KernelBlocks<T>& blocks, const Index* some, Index n, F use) {
        examples_.extract(some, n, block_);
        if (!examples_.sparse()) block_.choose_form();
        Array<V> values(n * kLanes);
        for (Index t = 0; t < tiles_for(size()); ++t) {
            blocks.values(block_, 0, n, examples_.tile(t), scratch_, values.data(), kLanes,
                          examples_.tile_after(t));
            use(t, values.data());
        }
    }

    void multiply(const Index* missing, Index n) {
        each_tile<float>(kernel_, missing, n, [&](Index t, const float* values) {
            for (Index r = 0; r < n; ++r)
                std::copy_n(values + r * kLanes, kLanes,
                            rows_.peek(missing[r])->values + t * kLanes);
        });
        close_rows(missing, n);
    }

    // The same from dot products, which are computed first if they are not cached.
    void transform(const Index* missing, Index n) {
        Vector<Index> fresh;
        for (Index r = 0; r < n; ++r) {
            if (!dots_.peek(missing[r])) fresh.push_back(missing[r]);
            dots_.take(missing[r], size());
        }
        each_tile<T>(dot_product_, fresh.data(), fresh.size(), [&](Index t, const T* values) {
            for (Index r = 0; r < fresh.size(); ++r)
                std::copy_n(values + r * kLanes, kLanes, dots_.peek(fresh[r])->values + t * kLanes);
        });
        for (Index r = 0; r < n; ++r) {
            const T* dots = dots_.peek(missing[r])->values;
            float* values = rows_.peek(missing[r])->values;
            const T norm = examples_.norm(missing[r]);
            for (Index t = 0; t < tiles_for(size()); ++t)
                products<T>().transform(kernel_.kernel(), dots + t * kLanes, &norm, 1,
                                        examples_.tile(t).norms.data(), values + t * kLanes,
                                        kLanes);
        }
        close_rows(missing, n);
    }

    void close_rows(const Index* missing, Index n) {
        for (Index r = 0; r < n; ++r) {
            float* values = rows_.peek(missing[r])->values;
            std::fill(values + size(), values + padded(size()), 0.0f);
        }
        evaluations += n * size();
    }

    Members<T> examples_;
    KernelBlocks<T> kernel_, dot_product_;
    Rows<T> block_;
    Scratch<T> scratch_;
    bool keeps_dots_;
    BasicRowCache<float> rows_;
    BasicRowCache<T> dots_;
    Array<double> diagonal_;
};

}  // namespace marginwise
