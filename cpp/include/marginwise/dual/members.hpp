// The features of the members, in tiles of kLanes.
//
// Tiles never move, and full tiles do not change before compact(), so another thread may read full
// tiles while members are appended. A copy shares the tiles (copy on write).
#pragma once

#include <limits>
#include <memory>
#include <unordered_map>

#include "marginwise/base/compaction.hpp"
#include "marginwise/base/thread_pool.hpp"
#include "marginwise/kernel/rows.hpp"
#include "marginwise/kernel/tile.hpp"

namespace marginwise {

template <class T>
class Members {
  public:
    // INVARIANT  ids[s] is the example at position s, and find(ids[s]) == s unless forgotten
    //            lanes beyond size() are zero
    Members(Index d, bool sparse) : d_(d), sparse_(sparse) {}
    Members(Members&&) = default;
    Members& operator=(Members&&) = default;
    Members& operator=(const Members&) = delete;
    // Shares the tiles. find() finds no example of the copy before remember().
    Members(const Members& other)
        : ids(other.ids), d_(other.d_), sparse_(other.sparse_), tiles_(other.tiles_) {}

    Index size() const { return ids.size(); }
    Index features() const { return d_; }
    bool sparse() const { return sparse_; }
    const Tile<T>& tile(Index t) const { return *tiles_[t]; }
    const Tile<T>* tile_after(Index t) const {
        return t + 1 < tiles_.size() ? tiles_[t + 1].get() : nullptr;
    }
    T norm(Index s) const { return tile(s / kLanes).norms[s % kLanes]; }

    // Position of example `id`, or kNone.
    Index find(std::int64_t id) const {
        const auto found = position_.find(id);
        return found == position_.end() ? kNone : found->second;
    }

    // Makes find() forget member s, so that example ids[s] may be appended again. The next
    // compaction removes the member.
    void forget(Index s) {
        if (find(ids[s]) == s) position_.erase(ids[s]);
    }
    void remember(Index s) { position_[ids[s]] = s; }

    // Erases the features of the forgotten member at s, but keeps its position. They are
    // overwritten with those of the member at `other`, which any kernel accepts, or with 0 if that
    // is kNone.
    void wipe(Index s, Index other) {
        Tile<T>& tile = own(s / kLanes);
        const Index lane = s % kLanes;
        ids[s] = kWiped;
        tile.norms[lane] = other == kNone ? T(0) : norm(other);
        if (sparse_) return wipe_list(tile, lane, other);
        for (Index k = 0; k < d_ * kLanes; k += kLanes)
            tile.dense[k + lane] =
                other == kNone ? T(0) : tiles_[other / kLanes]->dense[k + other % kLanes];
    }
    static constexpr std::int64_t kWiped = std::numeric_limits<std::int64_t>::min();

    // Reserves memory for n more members, except for the nonzeros of sparse ones.
    void reserve(Index n) {
        enlarge(ids, size() + n);
        enlarge(tiles_, tiles_for(size() + n));
        while (tiles_.size() < tiles_for(size() + n))
            tiles_.push_back(std::make_shared<Tile<T>>(d_, sparse_));
        if (size() % kLanes != 0) own(size() / kLanes);
    }

    // Appends row r as example `id`; returns its position.
    Index append(const Rows<T>& rows, Index r, std::int64_t id) {
        const Index s = append_nameless(rows, r, id);
        position_.emplace(id, s);
        return s;
    }
    // The same, but find() will not find the member.
    Index append_nameless(const Rows<T>& rows, Index r, std::int64_t id) {
        const Index s = size(), lane = s % kLanes;
        if (tiles_.size() == s / kLanes) tiles_.push_back(std::make_shared<Tile<T>>(d_, sparse_));
        Tile<T>& tile = own(s / kLanes);
        tile.norms[lane] = rows.norms[r];
        if (rows.lists) {
            for (Index p = rows.begin_of(r); p < rows.end_of(r); ++p)
                put(tile, lane, rows.index[p], rows.value[p]);
        } else {
            for (Index k = 0; k < d_; ++k)
                put(tile, lane, static_cast<std::uint32_t>(k), rows.dense[r * d_ + k]);
        }
        if (sparse_) tile.begin.push_back(tile.value.size());
        tile.used = lane + 1;
        ids.push_back(id);
        return s;
    }

    // Members s[0..n) as a block of lists.
    void extract(const Index* s, Index n, Rows<T>& rows) const {
        rows.start(d_);
        for (Index r = 0; r < n; ++r) {
            const Tile<T>& from = tile(s[r] / kLanes);
            const Index lane = s[r] % kLanes;
            if (sparse_)
                for (Index p = from.begin[lane]; p < from.begin[lane + 1]; ++p)
                    rows.add(from.index[p], from.value[p]);
            else
                for (Index k = 0; k < d_; ++k)
                    rows.add(static_cast<std::uint32_t>(k), from.dense[k * kLanes + lane]);
            rows.end_row();
        }
        rows.finish();
    }
    void extract(Index s, Rows<T>& row) const { extract(&s, 1, row); }

    // A copy of the members at these positions; find() finds none of them.
    Members some(const Vector<Index>& at, ThreadPool& workers = ThreadPool::alone()) const {
        Members copy(d_, sparse_);
        copy.tiles_.resize(tiles_for(at.size()));
        workers.run(copy.tiles_.size(), [&](Index t, Index) {
            const Index first = t * kLanes;
            copy.tiles_[t] = std::make_shared<Tile<T>>(d_, sparse_);
            copy.gather(*this, t, at.data() + first, std::min(kLanes, at.size() - first));
        });
        for (const Index s : at) copy.ids.push_back(ids[s]);
        return copy;
    }

    // Keeps the members at positions compaction[0] < compaction[1] < ..., in that order.
    void compact(const Compaction& compaction) {
        for (Index first = 0; first < compaction.size(); first += kLanes) {
            const Index n = std::min(kLanes, compaction.size() - first);
            const bool moved = compaction[first + n - 1] != first + n - 1;
            if (moved || n < kLanes) gather(*this, first / kLanes, compaction.data() + first, n);
        }
        tiles_.resize(tiles_for(compaction.size()));
        compaction.apply(ids);
        position_.clear();
        for (Index s = 0; s < size(); ++s) position_.emplace(ids[s], s);
    }

    // Drops the features of all members; only the ids may be used afterwards.
    void drop_features() { tiles_ = {}; }

    Index bytes() const {
        Index total = size() * Index(sizeof(std::int64_t) * 4);
        for (const auto& tile : tiles_) total += tile->bytes();
        return total;
    }

    Vector<std::int64_t> ids;

  private:
    // Tile t for writing; copies it first if it is shared.
    Tile<T>& own(Index t) {
        std::shared_ptr<Tile<T>>& tile = tiles_[t];
        const std::shared_ptr<Tile<T>> held = tile;  // synchronizes with former owners' releases
        if (tile.use_count() > 2) tile = std::make_shared<Tile<T>>(*held);
        return *tile;
    }

    // Fills tile t with the members of `source` at from[0..n). If `source` is this store, they must
    // be at or after their new positions.
    void gather(const Members& source_, Index t, const Index* from, Index n) {
        if (sparse_) return gather_lists(source_, t, from, n);
        Tile<T>& to = own(t);
        const T* at[kLanes];
        for (Index lane = 0; lane < n; ++lane) {
            const Tile<T>& source = source_.tile(from[lane] / kLanes);
            at[lane] = source.dense.data() + from[lane] % kLanes;
            to.norms[lane] = source.norms[from[lane] % kLanes];
        }
        for (Index k = 0; k < d_ * kLanes; k += kLanes) {
            for (Index lane = 0; lane < n; ++lane) to.dense[k + lane] = at[lane][k];
            for (Index lane = n; lane < kLanes; ++lane) to.dense[k + lane] = T(0);
        }
        std::fill(to.norms.begin() + n, to.norms.end(), T(0));
        to.used = n;
    }

    void wipe_list(Tile<T>& tile, Index lane, Index other) {
        Vector<std::uint32_t> index;
        Vector<T> value;
        if (other != kNone) {
            const Tile<T>& from = *tiles_[other / kLanes];
            const Index begin = from.begin[other % kLanes];
            const Index end = from.begin[other % kLanes + 1];
            index.assign(from.index.begin() + begin, from.index.begin() + end);
            value.assign(from.value.begin() + begin, from.value.begin() + end);
        }
        const Index begin = tile.begin[lane], end = tile.begin[lane + 1];
        const auto exchange = [&](auto& list, const auto& by) {
            list.erase(list.begin() + begin, list.begin() + end);
            list.insert(list.begin() + begin, by.begin(), by.end());
        };
        exchange(tile.index, index);
        exchange(tile.value, value);
        for (Index l = lane + 1; l <= tile.used; ++l) tile.begin[l] += value.size() - (end - begin);
    }

    void gather_lists(const Members& source_, Index t, const Index* from, Index n) {
        auto to = std::make_shared<Tile<T>>(d_, true);
        for (Index lane = 0; lane < n; ++lane) {
            const Tile<T>& source = source_.tile(from[lane] / kLanes);
            const Index l = from[lane] % kLanes;
            to->norms[lane] = source.norms[l];
            for (Index p = source.begin[l]; p < source.begin[l + 1]; ++p)
                put(*to, lane, source.index[p], source.value[p]);
            to->begin.push_back(to->value.size());
        }
        to->used = n;
        tiles_[t] = std::move(to);
    }

    void put(Tile<T>& tile, Index lane, std::uint32_t feature, T x) {
        if (sparse_) {
            if (x == T(0)) return;
            tile.index.push_back(feature);
            tile.value.push_back(x);
        } else {
            tile.dense[static_cast<Index>(feature) * kLanes + lane] = x;
        }
    }

    Index d_;
    bool sparse_;
    Vector<std::shared_ptr<Tile<T>>> tiles_;
    std::unordered_map<std::int64_t, Index> position_;
};

}  // namespace marginwise
