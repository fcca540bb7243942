// A least-recently-used cache for rows of the kernel matrix, bounded in bytes. A row may be
// truncated: it is valid for the first `length` columns, and the caller fills the rest.
//
// All rows have the same width and are contiguous in one arena. When wider rows are requested, the
// cached rows are spread in place, so that memory already touched is reused. The arena is as large
// as all rows of that width could need, within the limit.
#pragma once

#include <algorithm>
#include <cstring>

#include "marginwise/base/arena.hpp"
#include "marginwise/base/compaction.hpp"
#include "marginwise/base/thread_pool.hpp"

namespace marginwise {

template <class V>
class BasicRowCache {
  public:
    struct Row {
        V* values = nullptr;
        Index length = 0;  // valid for columns 0 .. length-1
        Index owner = kNone;
        Index newer = kNone, older = kNone;  // neighbours in order of use
    };

    // INVARIANT  slot_of_[k] == kNone or rows_[slot_of_[k]].owner == k
    //            rows_[slot].values == arena_ + slot * width_
    //            bytes() <= limit, or kLeast rows are held
    // The limit may be set to anything up to `most_bytes`, by default the limit itself.
    explicit BasicRowCache(Index limit_bytes, Index most_bytes = 0)
        : limit_(limit_bytes / Index(sizeof(V))),
          most_(std::max(limit_bytes, most_bytes) / Index(sizeof(V))) {}
    BasicRowCache(BasicRowCache&&) = default;
    BasicRowCache& operator=(BasicRowCache&&) = default;
    // A copy has the same limits and holds no rows.
    BasicRowCache(const BasicRowCache& other) : limit_(other.limit_), most_(other.most_) {}
    BasicRowCache& operator=(const BasicRowCache&) = delete;

    Index bytes() const { return rows_.size() * width_ * Index(sizeof(V)); }
    Index held() const { return held_; }
    Index room() const { return width_ > 0 ? room(width_) : kLeast; }         // rows that fit
    Index room_for(Index columns) const { return room(width_for(columns)); }  // if so wide
    Index width() const { return width_; }

    // Row k with room for `columns` values (and their padding), marked as just used. `length` is
    // the number of valid values, 0 if the row is new. The values do not move until kLeast - 1
    // other rows, or a wider one, have been requested.
    Row& take(Index k, Index columns) {
        make_room(columns, ThreadPool::alone());
        if (k >= slot_of_.size()) slot_of_.resize(std::max(k + 1, 2 * slot_of_.size()), kNone);
        Index slot = slot_of_[k];
        if (slot == kNone) {
            slot = free_slot();
            rows_[slot].owner = k;
            rows_[slot].length = 0;
            slot_of_[k] = slot;
            ++held_;
        } else if (slot == newest_) {
            return rows_[slot];
        } else {
            unlink(slot);
        }
        link_newest(slot);
        return rows_[slot];
    }

    // Makes room for `columns` values in every row in advance.
    void make_room(Index columns, ThreadPool& workers) {
        if (columns > width_) widen(columns, workers);
    }

    // The cached row k, or null. Does not count as a use.
    Row* peek(Index k) {
        const bool holds = k < slot_of_.size() && slot_of_[k] != kNone;
        return holds ? &rows_[slot_of_[k]] : nullptr;
    }

    void drop(Index k) {
        if (!peek(k)) return;
        const Index slot = slot_of_[k];
        unlink(slot);
        slot_of_[k] = kNone;
        rows_[slot].owner = kNone;
        rows_[slot].length = 0;
        free_.push_back(slot);
        --held_;
    }

    // The owner of the next row to be evicted, or kNone.
    Index oldest() const { return oldest_ == kNone ? kNone : rows_[oldest_].owner; }

    // Drops all rows and releases their memory.
    void clear() { *this = BasicRowCache(limit_ * Index(sizeof(V)), most_ * Index(sizeof(V))); }

    // Drops all rows and exchanges memory with `other`, which holds no rows.
    void exchange_memory(BasicRowCache& other) {
        BasicRowCache empty(limit(), most());
        std::swap(empty.arena_, other.arena_);
        std::swap(empty.backed_, other.backed_);
        std::swap(arena_, other.arena_);
        std::swap(backed_, other.backed_);
        *this = std::move(empty);
    }

    Index limit() const { return limit_ * Index(sizeof(V)); }
    Index most() const { return most_ * Index(sizeof(V)); }

    // Sets the limit, at most most(). Rows beyond it are dropped, the least recently used first.
    void set_limit(Index bytes) {
        limit_ = std::min(bytes / Index(sizeof(V)), most_);
        if (width_ == 0) return;
        if (rows_.size() <= room(width_)) return reserve(width_);
        while (held_ > room(width_)) drop(rows_[oldest_].owner);
        close_ranks(width_);
        backed_ = rows_.size() * width_;
        arena_.release(backed_);
    }

    // Rows and columns compaction[0] < compaction[1] < ... become 0, 1, ... The other rows must
    // have been dropped.
    void compact(const Compaction& compaction, ThreadPool& workers = ThreadPool::alone()) {
        Vector<Index> slot_of(compaction.size(), kNone);
        Vector<Row*> held;
        for (Index k = 0; k < compaction.size(); ++k)
            if (Row* row = peek(compaction[k])) {
                slot_of[k] = slot_of_[compaction[k]];
                row->owner = k;
                held.push_back(row);
            }
        slot_of_ = std::move(slot_of);
        workers.run_parts(held.size(), kLeast, [&](Index begin, Index end, Index) {
            for (Index h = begin; h < end; ++h)
                held[h]->length = compaction.apply(held[h]->values, held[h]->length);
        });
    }

    static constexpr Index kLeast = 16;  // a step needs two rows, a fetch a few more

  private:
    // The width of rows with room for `columns` values.
    Index width_for(Index columns) const {
        return columns <= width_ ? width_ : padded(std::max(columns, width_ + width_ / 4));
    }

    // How many rows of a width fit.
    Index room(Index width) const { return std::max(limit_ / width, kLeast); }

    Index free_slot() {
        if (free_.empty() && rows_.size() < std::min(room(width_), arena_.size() / width_)) {
            rows_.emplace_back();
            rows_.back().values = arena_.data() + (rows_.size() - 1) * width_;
            back_rows();
            return rows_.size() - 1;
        }
        if (free_.empty()) drop(rows_[oldest_].owner);
        const Index slot = free_.back();
        free_.pop_back();
        return slot;
    }

    // Backs the last row with memory, and some more rows in advance.
    void back_rows() {
        constexpr Index kAhead = (1 << 20) / Index(sizeof(V));
        const Index used = rows_.size() * width_;
        if (used <= backed_) return;
        const Index ahead = std::min(used + kAhead, std::min(room(width_) * width_, arena_.size()));
        arena_.back(backed_, ahead);
        backed_ = std::max(used, ahead);
    }

    void widen(Index columns, ThreadPool& workers) {
        const Index before = width_, width = width_for(columns);
        if (kLeast * width > limit_) clear();  // too wide for the limit: start from scratch
        reserve(width);
        width_ = width;
        while (held_ > room(width_)) drop(rows_[oldest_].owner);
        if (rows_.size() > room(width_)) close_ranks(before);
        for (Index end = rows_.size(); end > 0;) {
            // Rows whose new place is beyond all old ones cannot overwrite a row.
            const Index first = std::min((end * before + width_ - 1) / width_, end - 1);
            workers.run_parts(end - first, kLeast, [&](Index begin, Index stop, Index) {
                for (Index slot = first + begin; slot < first + stop; ++slot) spread(slot);
            });
            end = first;
        }
    }
    void spread(Index slot) {
        Row& row = rows_[slot];
        V* to = arena_.data() + slot * width_;
        std::memmove(to, row.values, row.length * sizeof(V));
        row.values = to;
    }

    // Makes the arena large enough for all possible rows of a width: as many as there are columns,
    // within the limit. Throws and changes nothing if memory is exhausted.
    void reserve(Index width) {
        arena_.grow(std::min(room(width), std::max(width, kLeast)) * width);
        for (Index slot = 0; slot < rows_.size(); ++slot)
            rows_[slot].values = arena_.data() + slot * width_;
    }

    // Moves the cached rows to the first slots and removes the other slots.
    void close_ranks(Index width) {
        Index to = 0;
        for (Index slot = 0; slot < rows_.size(); ++slot) {
            if (rows_[slot].owner == kNone) continue;
            if (slot != to) move_row(slot, to, width);
            ++to;
        }
        rows_.resize(to);
        free_.clear();
    }

    void move_row(Index from, Index to, Index width) {
        Row& row = rows_[to];
        row = rows_[from];
        row.values = arena_.data() + to * width;
        std::memcpy(row.values, rows_[from].values, row.length * sizeof(V));
        slot_of_[row.owner] = to;
        (row.newer == kNone ? newest_ : rows_[row.newer].older) = to;
        (row.older == kNone ? oldest_ : rows_[row.older].newer) = to;
    }

    void unlink(Index slot) {
        Row& row = rows_[slot];
        (row.newer == kNone ? newest_ : rows_[row.newer].older) = row.older;
        (row.older == kNone ? oldest_ : rows_[row.older].newer) = row.newer;
        row.newer = row.older = kNone;
    }
    void link_newest(Index slot) {
        Row& row = rows_[slot];
        row.older = newest_;
        row.newer = kNone;
        (newest_ == kNone ? oldest_ : rows_[newest_].newer) = slot;
        newest_ = slot;
    }

    Index limit_;  // in values
    Index most_;   // upper bound of limit_, in values
    Index width_ = 0;
    Index held_ = 0;
    Index backed_ = 0;  // values of the arena that are backed by memory
    Index newest_ = kNone, oldest_ = kNone;
    Arena<V> arena_;
    Vector<Row> rows_;       // by slot
    Vector<Index> slot_of_;  // row -> slot
    Vector<Index> free_;     // slots without an owner
};

// Single precision is enough for most algorithms.
using RowCache = BasicRowCache<float>;

}  // namespace marginwise
