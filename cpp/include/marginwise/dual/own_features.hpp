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

#include "marginwise/dual/member_rows.hpp"
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

    // Copies the features of all places, if they take about `most_bytes` at most, from `rows` where
    // it is not null. Closed places have any features. Here and below, nothing is kept where memory
    // is short.
    void copy(const Members<T>& members, const MemberRows<T>* rows,
              const Vector<std::int32_t>& member, Index most_bytes) {
        const Index each = members.bytes() / std::max<Index>(members.size(), 1);
        if (member.size() * each > most_bytes) return;
        try {
            features_ = std::make_unique<Members<T>>(members.features(), members.sparse());
            if (rows)
                for (const Index s : member)
                    features_->append_nameless(rows->block_of(s), s % kLanes, features_->size());
            else
                *features_ = members.some(Vector<Index>(member.begin(), member.end()));
        } catch (const std::bad_alloc&) {
            drop();
        }
    }

    // A place has been opened for member s.
    void open(const Members<T>& members, Index s) {
        change([&] {
            members.extract(s, row_);
            features_->append_nameless(row_, 0, features_->size());
        });
    }

    void compact(const Compaction& compaction) {
        change([&] { features_->compact(compaction); });
    }

    // The features of some places as a block.
    void extract(const Vector<Index>& places, Rows<T>& block) const {
        features_->extract(places.data(), places.size(), block);
    }

    // Calls use(t, k, stride) with the values of the rows of a block with the places of tile t, at
    // k[r * stride + lane], for all tiles from that of place `from` on.
    template <class F>
    void multiply(const KernelBlocks<T>& kernel, const Rows<T>& block, Index from,
                  Vector<Scratch<T>>& scratches, ThreadPool& workers, F use) const {
        kernel.values_over(block, *features_, from / kLanes, tiles_for(features_->size()),
                           scratches, workers, use);
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
