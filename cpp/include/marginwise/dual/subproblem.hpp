// One problem of the dual: the members that have a place in it, and the kernel rows of the places.
#pragma once

#include "marginwise/dual/foresight.hpp"
#include "marginwise/dual/problem.hpp"
#include "marginwise/dual/row_cache.hpp"
#include "marginwise/dual/stats.hpp"
#include "marginwise/dual/suspects.hpp"

namespace marginwise {

// Members of a problem that were put to sleep together: they are at a side of their box and belong
// to no violating pair. They have no place, so steps skip them.
struct Sleepers {
    // INVARIANT  g[n] == y - sum_s counted[s] K(member[n], s), counted[s] == 0 beyond its end
    Vector<std::int32_t> member;
    Array<double> g;
    Array<double> counted;  // the weight of each member when g was last brought up to date
};

struct Subproblem {
    // INVARIANT  place k is open: member[k] is its member and place[member[k]] == k
    //            weight[s] == alpha of member s here, 0 if the problem does not hold it; padded
    //            rows.take(k).values[l] == K(k, l) for open l < length
    //            a member held here has a place, or is asleep, or is owed: its weight is 0, but the
    //            gradient of sleepers still counts its former weight
    //            no suspect is held
    Problem P;
    Vector<Sleepers> asleep;
    Vector<std::int32_t> owed;
    Vector<std::int32_t> left;  // members whose places were closed, but that are not yet released
    Suspects suspects;
    Foresight foresight;
    Stats stats;
    bool in_order = true;  // places have the order of members; false once a member has slept
    RowCache rows;
    Vector<std::int32_t> member;  // by place; arbitrary for closed places
    Vector<std::int32_t> place;   // by member; kNone if it has none
    Array<double> weight;
    Index tended = 0;            // number of places at the last tend_rows()
    bool keeps_bounded = false;  // whether to cache rows of bounded members while there is room
    bool borrows = false;        // has memory for rows only while it is being solved

    // `most_bytes`: upper bound of the limit that set_limit() may give the kernel rows.
    Subproblem(Index cache_bytes, Index most_bytes) : rows(cache_bytes, most_bytes) {}

    void set_place(Index s, Index k) { place[s] = static_cast<std::int32_t>(k); }

    bool wants_compaction() const { return P.closed >= kLanes && 4 * P.closed >= P.size; }

    // Removes the closed places; returns the new numbering of the others.
    Compaction compact(ThreadPool& workers = ThreadPool::alone()) {
        Compaction compaction;
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[k]) {
                rows.drop(k);
                continue;
            }
            set_place(member[k], compaction.size());
            compaction.add(k);
        }
        compaction.apply(member);
        tended = compaction.below(tended);
        rows.compact(compaction, workers);
        P.compact(compaction);
        return compaction;
    }

    // Whether the cache is too small for the rows of all free members. Rows fetched ahead would
    // then evict rows in use.
    bool crowded() const { return rows.room() < P.free; }

    // Whether the row of k is cached, complete or nearly so.
    bool has_row(Index k) {
        const RowCache::Row* row = rows.peek(k);
        return row && row->length >= P.size - kFewColumns;
    }

    // Marks a row as valid for n places, and pads it.
    static void complete(RowCache::Row& held, Index n) {
        std::fill(held.values + n, held.values + padded(n), 0.0f);
        held.length = n;
    }

    // Completes row k by symmetry, K(k, l) = K(l, k), from the cached rows of the places that it
    // lacks; returns whether that was possible.
    bool mirror(RowCache::Row& held, Index k) {
        if (held.length < P.size - kFewColumns) return false;
        for (; held.length < P.size; ++held.length) {
            const Index l = held.length;
            const RowCache::Row* other = rows.peek(l);
            const bool known = other && other->length > k;
            if (!known && P.open[l]) return false;
            held.values[l] = known ? other->values[k] : 0.0f;
        }
        complete(held, P.size);
        return true;
    }

    // Number of members held, except those owed.
    Index held() const {
        Index count = P.members();
        for (const Sleepers& sleepers : asleep) count += sleepers.member.size();
        return count;
    }
    bool holds(Index s) const { return place[s] != kNone || weight[s] != 0.0; }

    // Calls use(s, w) for every member s with weight w != 0.
    template <class Use>
    void each_weight(Use use) const {
        for (Index k = 0; k < P.size; ++k)
            if (P.open[k] && P.alpha[k] != 0.0) use(Index{member[k]}, weight[member[k]]);
        for (const Sleepers& sleepers : asleep)
            for (const std::int32_t s : sleepers.member)
                if (weight[s] != 0.0) use(Index{s}, weight[s]);
    }

    // Whether the gradient of some sleepers counts a weight of member s.
    bool is_counted(Index s) const {
        for (const Sleepers& sleepers : asleep)
            if (s < sleepers.counted.size() && sleepers.counted[s] != 0.0) return true;
        return false;
    }

    // Completes rows that have the values of all open places: sets closed places to 0, and pads.
    void finish_rows(const Vector<Index>& places) {
        Vector<Index> closed;
        for (Index l = 0; P.closed > 0 && l < P.size; ++l)
            if (!P.open[l]) closed.push_back(l);
        for (const Index k : places) {
            RowCache::Row& row = *rows.peek(k);
            for (const Index l : closed) row.values[l] = 0.0f;
            complete(row, P.size);
        }
    }

    // Call between blocks. Rows that were complete at the last call get the columns of the places
    // added since, from the rows of those places. Then drops the rows of bounded members, which
    // pair solvers seldom need again, unless keeps_bounded.
    void tend_rows(ThreadPool& workers = ThreadPool::alone()) {
        constexpr Index kGroup = 16;  // one cache line of each new row
        const Index n = P.size;
        Vector<const float*> fresh;
        bool available = rows.width() >= n;
        for (Index l = tended; l < n; ++l) {
            const RowCache::Row* row = rows.peek(l);
            fresh.push_back(row ? row->values : nullptr);
            available = available && (row || !P.open[l]);
        }
        const Index groups = available ? (tended + kGroup - 1) / kGroup : 0;
        workers.run_parts(groups, 1, [&](Index begin, Index end, Index) {
            for (Index group = begin; group < end; ++group)
                tend_group(group * kGroup, std::min((group + 1) * kGroup, tended), fresh);
        });
        for (Index k = tended; available && k < n; ++k)
            if (fresh[k - tended]) mirror(*rows.peek(k), k);
        for (Index k = 0; k < n && !keeps_bounded; ++k)
            if (P.bounded(k)) rows.drop(k);
        tended = n;
    }

  private:
    static constexpr Index kFewColumns = 512;  // computing more is faster than collecting them

    // Completes the rows of places [begin, end) that lack only the columns of the fresh rows.
    void tend_group(Index begin, Index end, const Vector<const float*>& fresh) {
        RowCache::Row* held[16];
        float* to[16];
        Index lacking = 0, at[16];
        for (Index k = begin; k < end; ++k) {
            RowCache::Row* row = rows.peek(k);
            if (!row || row->length < tended || P.bounded(k)) continue;
            to[lacking] = row->values + tended;
            at[lacking] = k;
            held[lacking++] = row;
        }
        for (Index f = 0; f < fresh.size(); ++f) {
            const float* from = fresh[f];
            for (Index r = 0; r < lacking; ++r) to[r][f] = from ? from[at[r]] : 0.0f;
        }
        for (Index r = 0; r < lacking; ++r) complete(*held[r], P.size);
    }
};

}  // namespace marginwise
