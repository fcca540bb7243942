// A contiguous copy of the features of the places of one problem.
//
// A kernel row of a one-vs-rest problem is the product of one example with the members that the
// problem holds. These are scattered among the members of all problems, so the product would also
// visit the others. If the cache is small, rows are recomputed often. The problem then copies the
// features it needs: a row costs products with its own places only, and its values come in the
// order of the places.
#pragma once

#include <memory>
#include <new>

#include "marginwise/dual/member_rows.hpp"
#include "marginwise/kernel/kernel_blocks.hpp"

namespace marginwise {

template <class T>
class OwnFeatures {
  public:
    // INVARIANT  kept(): features_->size() == places of the problem, and the features of an open
    //            place are those of its member
    bool kept() const { return features_ != nullptr; }
    bool agrees(Index places) const { return !kept() || features_->size() == places; }
    void drop() { features_.reset(); }

    // A copy of a problem holds no features.
    OwnFeatures() = default;
    OwnFeatures(const OwnFeatures&) {}
    OwnFeatures(OwnFeatures&&) = default;
    OwnFeatures& operator=(OwnFeatures&&) = default;

    // Copies the features of all places if they take at most about `most_bytes`; from `rows` if
    // that is not null. Closed places get arbitrary features. If memory is exhausted, here and in
    // the functions below, the copy is dropped.
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

    // Call after a place has been opened for member s.
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

    // Calls use(t, k, stride) for each tile t of places, starting at that of place `from`:
    // k[r * stride + lane] is the kernel value of row r of the block with that lane of the tile.
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
