// Rows of the kernel matrix among the members, bounded in bytes; the least recently used row makes
// room. A row may be truncated: it is valid for the first `length` members, and whoever asks for it
// fills the rest.
#pragma once

#include <algorithm>

#include "marginwise/types.hpp"

namespace marginwise {

class RowCache {
public:
    struct Row {
        Array<float> values;
        Index length = 0;  // valid for members 0 .. length-1
        Index owner = kNone;
        Index newer = kNone, older = kNone;  // neighbours in order of use
    };

    // INVARIANT  slot_of_[s] == kNone or rows_[slot_of_[s]].owner == s
    //            bytes() <= limit, or no more than kLeast rows are held
    explicit RowCache(Index limit_bytes) : limit_(limit_bytes) {}

    static constexpr Index kLeast = 4;  // a step needs two rows at a time

    Index bytes() const { return bytes_; }
    Index held() const { return held_; }

    // The row of member s with room for `columns` values, marked as just used; `length` tells how
    // many are valid, 0 if the row is new. The pointer is good until s is dropped; the last
    // kLeast - 1 rows asked for are never the ones to go.
    Row& take(Index s, Index columns) {
        if (s >= count(slot_of_)) slot_of_.resize(usize(std::max(s + 1, 2 * count(slot_of_))), kNone);
        Index slot = slot_of_[usize(s)];
        if (slot == kNone) {
            slot = free_slot(columns);
            rows_[usize(slot)].owner = s;
            rows_[usize(slot)].length = 0;
            slot_of_[usize(s)] = slot;
            ++held_;
        } else {
            unlink(slot);
        }
        link_newest(slot);
        reserve(slot, columns);
        return rows_[usize(slot)];
    }

    // The row of s as it stands, or null; does not count as use.
    const Row* peek(Index s) const { return holds(s) ? &rows_[usize(slot_of_[usize(s)])] : nullptr; }
    Row* peek(Index s) { return holds(s) ? &rows_[usize(slot_of_[usize(s)])] : nullptr; }

    bool holds(Index s) const { return s < count(slot_of_) && slot_of_[usize(s)] != kNone; }

    void drop(Index s) {
        if (!holds(s)) return;
        const Index slot = slot_of_[usize(s)];
        unlink(slot);
        slot_of_[usize(s)] = kNone;
        rows_[usize(slot)].owner = kNone;
        free_.push_back(slot);
        --held_;
    }

    void clear() {
        for (Index s = 0; s < count(slot_of_); ++s) drop(s);
    }

    // Members keep[0] < keep[1] < ... move to positions 0, 1, ...; the others must be dropped
    // already.
    void compact(const std::vector<Index>& keep) {
        std::vector<Index> slot_of(usize(count(keep)), kNone);
        for (Index k = 0; k < count(keep); ++k)
            if (holds(keep[usize(k)])) {
                const Index slot = slot_of_[usize(keep[usize(k)])];
                slot_of[usize(k)] = slot;
                rows_[usize(slot)].owner = k;
                rows_[usize(slot)].length = gather(rows_[usize(slot)].values.data(),
                                                   rows_[usize(slot)].length, keep);
            }
        slot_of_ = std::move(slot_of);
    }

    // values[k] = values[keep[k]] for all keep[k] < length; returns how many there are.
    static Index gather(float* values, Index length, const std::vector<Index>& keep) {
        const Index kept = std::lower_bound(keep.begin(), keep.end(), length) - keep.begin();
        for (Index k = 0; k < kept; ++k) values[k] = values[keep[usize(k)]];
        std::fill(values + kept, values + length, 0.0f);
        return kept;
    }

private:
    Index free_slot(Index columns) {
        const Index wanted = std::max(width_, padded(columns)) * Index(sizeof(float));
        if (free_.empty() && held_ >= kLeast && bytes_ + wanted > limit_)
            drop(rows_[usize(oldest_)].owner);
        if (free_.empty()) {
            rows_.emplace_back();
            free_.push_back(count(rows_) - 1);
        }
        const Index slot = free_.back();
        free_.pop_back();
        return slot;
    }

    // Makes row `slot` wide enough, then drops and frees older rows until the bound holds again.
    void reserve(Index slot, Index columns) {
        Array<float>& values = rows_[usize(slot)].values;
        if (count(values) >= padded(columns)) return;
        while (width_ < columns) width_ += padded(width_ / 2);
        bytes_ += (width_ - count(values)) * Index(sizeof(float));
        values.resize(usize(width_));
        while (bytes_ > limit_ && (!free_.empty() || held_ > kLeast)) {
            if (free_.empty()) drop(rows_[usize(oldest_)].owner);
            Array<float>& spare = rows_[usize(free_.back())].values;
            bytes_ -= count(spare) * Index(sizeof(float));
            Array<float>().swap(spare);
            spent_.push_back(free_.back());
            free_.pop_back();
        }
        free_.insert(free_.end(), spent_.begin(), spent_.end());
        spent_.clear();
    }

    void unlink(Index slot) {
        Row& row = rows_[usize(slot)];
        (row.newer == kNone ? newest_ : rows_[usize(row.newer)].older) = row.older;
        (row.older == kNone ? oldest_ : rows_[usize(row.older)].newer) = row.newer;
        row.newer = row.older = kNone;
    }
    void link_newest(Index slot) {
        Row& row = rows_[usize(slot)];
        row.older = newest_;
        row.newer = kNone;
        (newest_ == kNone ? oldest_ : rows_[usize(newest_)].newer) = slot;
        newest_ = slot;
    }

    Index limit_;
    Index width_ = 4 * kLanes;  // of new rows: one width at a time, so that memory is reused
    Index bytes_ = 0;
    Index held_ = 0;
    Index newest_ = kNone, oldest_ = kNone;
    std::vector<Row> rows_;
    std::vector<Index> slot_of_;  // member -> slot
    std::vector<Index> free_;     // slots without an owner; their memory is kept for the next
    std::vector<Index> spent_;
};

}  // namespace marginwise
