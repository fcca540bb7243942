// A problem of the dual: which members have a place in it, and the kernel rows of those places.
#pragma once

#include "marginwise/dual/foresight.hpp"
#include "marginwise/dual/problem.hpp"
#include "marginwise/dual/row_cache.hpp"
#include "marginwise/dual/stats.hpp"
#include "marginwise/dual/suspects.hpp"

namespace marginwise {

// Members of a problem that went to sleep together: at a side of their box, and out of reach of any
// violating pair. They have no place, so that steps pass them over.
struct Sleepers {
    // INVARIANT  g[n] == y - sum_s counted[s] K(member[n], s), counted[s] == 0 beyond its end
    Vector<std::int32_t> member;
    Array<double> g;
    Array<double> counted;  // the weight of each member when g was last brought up to date
};

struct Subproblem {
    // INVARIANT  place k is open: member[k] is its member and place[member[k]] == k
    //            weight[s] == alpha of member s here, 0 where the problem does not hold it; padded
    //            rows.take(k).values[l] == K(k, l) for open l < length
    //            a member held here has a place, or is among the sleepers, or is owed: without
    //            weight, but still counted in the gradient of sleepers
    //            no suspect is held
    Problem P;
    Vector<Sleepers> asleep;
    Vector<std::int32_t> owed;
    Vector<std::int32_t> left;  // members whose places were closed, still to be released
    Suspects suspects;
    Foresight foresight;
    Array<double> held_out;  // weights in foresight of members that wait with their box shut
    Stats stats;
    bool in_order = true;  // places have the order of members; false once a member has slept
    RowCache rows;
    Vector<std::int32_t> member;  // of each place; any where it is closed
    Vector<std::int32_t> place;   // of each member, kNone where it has none
    Array<double> weight;
    Index tended = 0;            // places at the last tend_rows()
    bool keeps_bounded = false;  // rows of bounded members stay while there is room
    bool borrows = false;        // it has memory for rows only while it is being solved

    // `most_bytes`: the largest limit that kernel rows may be given.
    Subproblem(Index cache_bytes, Index most_bytes) : rows(cache_bytes, most_bytes) {}

    void set_place(Index s, Index k) { place[s] = static_cast<std::int32_t>(k); }

    bool wants_compaction() const { return P.closed >= kLanes && 4 * P.closed >= P.size; }

    // Removes the closed places; returns where the others go.
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

    // Whether the cache cannot hold the rows of all free members, so that rows fetched ahead would
    // evict rows in use.
    bool crowded() const { return rows.room() < P.free; }

    // Whether the row of k is cached, complete or nearly so.
    bool has_row(Index k) {
        const RowCache::Row* row = rows.peek(k);
        return row && row->length >= P.size - kFewColumns;
    }

    // Pads a row that is valid for n places.
    static void complete(RowCache::Row& held, Index n) {
        std::fill(held.values + n, held.values + padded(n), 0.0f);
        held.length = n;
    }

    // K(k, l) = K(l, k): completes a row from the rows of the places it lacks, if they are held.
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

    // Members that it holds, apart from those owed.
    Index held() const {
        Index count = P.members();
        for (const Sleepers& sleepers : asleep) count += sleepers.member.size();
        return count;
    }
    bool holds(Index s) const { return place[s] != kNone || weight[s] != 0.0; }

    // Calls use(s, w) for every member s of weight w != 0.
    template <class Use>
    void each_weight(Use use) const {
        for (Index k = 0; k < P.size; ++k)
            if (P.open[k] && P.alpha[k] != 0.0) use(Index{member[k]}, weight[member[k]]);
        for (const Sleepers& sleepers : asleep)
            for (const std::int32_t s : sleepers.member)
                if (weight[s] != 0.0) use(Index{s}, weight[s]);
    }

    // Whether the gradient of sleepers counts a weight of member s.
    bool is_counted(Index s) const {
        for (const Sleepers& sleepers : asleep)
            if (s < sleepers.counted.size() && sleepers.counted[s] != 0.0) return true;
        return false;
    }

    // Gives finite values to the closed places of rows that have those of the open ones.
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

    // Between blocks: rows that were complete after the block before are completed, a few at a time
    // from the rows of the places since; then rows of bounded members, which a learner of pairs
    // seldom needs again, are dropped.
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
    static constexpr Index kFewColumns = 512;  // more are quicker computed than collected

    // Completes the rows of places [begin, end) that lack the columns of the fresh rows only.
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
