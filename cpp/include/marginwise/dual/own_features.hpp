// The features of the places of one problem, side by side.
//
// A kernel row of a problem of one-vs-rest is the product of one example with the members that the
// problem holds. Among the members of all problems they stand far apart, and the product would
// meet the others too. Where rows are computed again and again, because the memory for them is
// short, a problem keeps a copy of the features it needs: rows then cost its own places only, and
// their values come in the order of places.
#pragma once

#include <memory>
#include <new>

#include "marginwise/dual/members.hpp"
#include "marginwise/kernel/kernel_blocks.hpp"

namespace marginwise {

template <class T>
class OwnFeatures {
  public:
    // INVARIANT  kept(): features_.size() == places of the problem, and those of an open place are
    //            its member's
    bool kept() const { return features_ != nullptr; }
    bool agrees(Index places) const { return !kept() || features_->size() == places; }
    void drop() { features_.reset(); }

    // A copy of a problem holds none.
    OwnFeatures() = default;
    OwnFeatures(const OwnFeatures&) {}
    OwnFeatures(OwnFeatures&&) = default;
    OwnFeatures& operator=(OwnFeatures&&) = default;

    // Copies the features of all places, if they take about `most_bytes` at most. Closed places
    // have any features. Here and below, nothing is kept where memory is short.
    void copy(const Members<T>& members, const Vector<std::int32_t>& member, Index most_bytes) {
        const Index each = members.bytes() / std::max<Index>(members.size(), 1);
        if (member.size() * each > most_bytes) return;
        try {
            features_ = std::make_unique<Members<T>>(
                members.some(Vector<Index>(member.begin(), member.end())));
        } catch (const std::bad_alloc&) {
            drop();
        }
    }

    // A place has been opened for member s.
    void open(const Members<T>& members, Index s) {
        change([&] {
            members.extract(s, row_);
            features_->append(row_, 0, features_->size());
        });
    }

    void compact(const Compaction& compaction) {
        change([&] { features_->compact(compaction); });
    }

    // rows[r][l] = K(places[r], l) for all places l from `from` (rounded down to a tile) on,
    // padded.
    void fill(const KernelBlocks<T>& kernel, const Vector<Index>& places, Index from,
              Vector<Scratch<T>>& scratches, const Vector<float*>& rows, ThreadPool& workers) {
        const Index n = places.size();
        features_->extract(places.data(), n, row_);
        if (!features_->sparse()) row_.choose_form();
        kernel.values_over(row_, *features_, from / kLanes, tiles_for(features_->size()), scratches,
                           workers, [&](Index t, const float* k, Index stride) {
                               for (Index r = 0; r < n; ++r)
                                   std::copy_n(k + r * stride, kLanes, rows[r] + t * kLanes);
                           });
    }

  private:
    template <class F>
    void change(F how) {
        if (!kept()) return;
        try {
            how();
        } catch (const std::bad_alloc&) {
            drop();
        }
    }

    std::unique_ptr<Members<T>> features_;
    Rows<T> row_;
};

}  // namespace marginwise
