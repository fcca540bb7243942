// The dual state: members, and for each binary problem the coefficients, gradient and box of those
// it holds.
//
// All problems of one-vs-rest share the members and their features. Each problem keeps what it
// walks over at every step, its arrays and kernel rows, to the members it holds. So a member has a
// position s among the members and, in each problem that holds it, a place k. Where there is but
// one problem, places are positions.
//
// Signed alpha makes labels vanish from the solvers: lo = min(0, C y) <= alpha <= hi = max(0, C y).
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "marginwise/kernels.hpp"
#include "marginwise/row_cache.hpp"

namespace marginwise {

// What has been done so far; part of the state.
struct Stats {
    std::int64_t kernel_evaluations = 0, process = 0, reprocess = 0, inserted = 0, removed = 0,
                 cache_hits = 0, cache_misses = 0;
    double product_seconds = 0, learn_seconds = 0, finish_seconds = 0;

    void add(const Stats& other) {
        kernel_evaluations += other.kernel_evaluations;
        reprocess += other.reprocess;
        cache_hits += other.cache_hits;
        cache_misses += other.cache_misses;
    }
};

struct Example {
    std::int64_t id;
    std::int32_t label;  // its class
    double cost;         // C times its weight
};

struct Problem {
    // INVARIANT  open[k]:  lo[k] <= alpha[k] <= hi[k], up[k] == 0 iff alpha[k] < hi[k],
    //                      down[k] == 0 iff alpha[k] > lo[k],
    //                      g[k] == y[k] - sum_l alpha[l] K(k, l)
    //            !open[k]: alpha[k] == lo[k] == hi[k] == 0, up[k] and down[k] infinite
    //            extremes are those of g; every open place with alpha == 0 is listed in idle
    // Arrays are padded to whole tiles with closed places.
    Array<double> alpha, g, lo, hi, up, down, diagonal;
    std::vector<std::uint8_t> open, listed;  // listed: k stands in `idle`
    std::vector<Index> idle;
    simd::Extremes extremes;
    Index size = 0;    // places in use, open or closed
    Index closed = 0;  // how many of them are closed

    double bias() const {
        if (extremes.both()) return (extremes.g_max + extremes.g_min) / 2;
        return extremes.i != kNone ? extremes.g_max : extremes.j != kNone ? extremes.g_min : 0.0;
    }

    // Adds an open place.
    Index add(double alpha_, double g_, double lo_, double hi_, double diagonal_) {
        if (size == count(g)) grow();
        const std::size_t k = usize(size);
        alpha[k] = alpha_;
        g[k] = g_;
        lo[k] = lo_;
        hi[k] = hi_;
        diagonal[k] = diagonal_;
        open[k] = 1;
        refresh(size);
        return size++;
    }

    Index add(const Problem& other, Index k) {
        const std::size_t o = usize(k);
        return add(other.alpha[o], other.g[o], other.lo[o], other.hi[o], other.diagonal[o]);
    }

    // Closes place k, which has alpha = 0 and is neither extreme.
    void close(Index k) {
        open[usize(k)] = 0;
        lo[usize(k)] = hi[usize(k)] = 0.0;
        refresh(k);
        ++closed;
    }

    // Call after alpha or the box of k changed.
    void refresh(Index k_) {
        const std::size_t k = usize(k_);
        const bool is_open = open[k] != 0;
        up[k] = is_open && alpha[k] < hi[k] ? 0.0 : -simd::Extremes::kInfinite;
        down[k] = is_open && alpha[k] > lo[k] ? 0.0 : simd::Extremes::kInfinite;
        if (is_open && alpha[k] == 0.0 && !listed[k]) {
            idle.push_back(k_);
            listed[k] = 1;
        }
    }

    // At a side of its box other than 0.
    bool bounded(Index k) const {
        return (up[usize(k)] != 0) != (down[usize(k)] != 0) && alpha[usize(k)] != 0.0;
    }

    void find_extremes() {
        extremes = table().extremes(g.data(), up.data(), down.data(), padded(size));
    }

    // Keeps the open places keep[0] < keep[1] < ..., in that order.
    void compact(const Keep& keep) {
        Problem kept;
        for (const Index k : keep) kept.add(*this, k);
        kept.find_extremes();
        *this = std::move(kept);
    }

  private:
    void grow() {
        const std::size_t n = usize(padded(size + size / 4 + kLanes));
        for (Array<double>* array : {&alpha, &g, &lo, &hi, &diagonal}) array->resize(n, 0.0);
        up.resize(n, -simd::Extremes::kInfinite);
        down.resize(n, simd::Extremes::kInfinite);
        open.resize(n, 0);
        listed.resize(n, 0);
    }
};

// Place k and up to n - 1 more whose rows are likely to be asked for soon: of the places that lack
// theirs, the most violating that are not at their bound.
template <class Lacks>
std::vector<Index> wanted_soon(const Problem& P, Index k, Index n, Lacks lacks) {
    std::vector<std::pair<double, Index>> others;
    const double b = P.bias();
    for (Index l = 0; l < P.size; ++l) {
        const bool up = P.up[usize(l)] == 0, down = P.down[usize(l)] == 0;
        if (l == k || !(up || down) || P.bounded(l) || !lacks(l)) continue;
        const double g = P.g[usize(l)] - b;
        others.emplace_back(std::min(up ? -g : 0.0, down ? g : 0.0), l);
    }
    const Index most = std::min(n - 1, count(others));
    std::partial_sort(others.begin(), others.begin() + most, others.end());
    std::vector<Index> found{k};
    for (Index o = 0; o < most; ++o) found.push_back(others[usize(o)].second);
    return found;
}

// A problem of the dual: places of members, and their kernel rows.
struct Share {
    // INVARIANT  place k is open: member[k] is its member and place[member[k]] == k
    //            weight[s] == alpha of member s here, 0 where it has no open place; padded
    //            rows.take(k).values[l] == K(k, l) for open l < length
    Problem P;
    RowCache rows;
    std::vector<std::int32_t> member;  // of each place; any where it is closed
    std::vector<Index> place;          // of each member, kNone where it has none
    Array<double> weight;
    Index waiting = 0;  // members taken in before a violating pair could exist
    Index tended = 0;   // places at the last tend_rows()

    explicit Share(Index cache_bytes) : rows(cache_bytes) {}

    bool wants_compaction() const { return P.closed >= kLanes && 4 * P.closed >= P.size; }

    void compact() {
        Keep keep;
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[usize(k)]) {
                rows.drop(k);
                continue;
            }
            place[usize(Index(member[usize(k)]))] = keep.size();
            keep.add(k);
        }
        keep.close_up(member);
        tended = keep.below(tended);
        rows.compact(keep);
        P.compact(keep);
    }
};

template <class T>
class Dual {
  public:
    Dual(Members<T> members_, KernelBlocks<T> kernel_, Index problems, Index cache_bytes)
        : members(std::move(members_)), kernel(std::move(kernel_)) {
        for (Index c = 0; c < problems; ++c)
            shares.emplace_back((kWorkingBytes + cache_bytes) / problems);
    }

    // Rows that are kept however small the cache is meant to be.
    static constexpr Index kWorkingBytes = 32 << 20;

    Members<T> members;
    KernelBlocks<T> kernel;
    std::vector<Share> shares;
    std::vector<std::int32_t> label;  // class of each member
    std::vector<double> cost;         // its C times its weight
    std::vector<double> diagonal;     // K(s, s)
    std::vector<Index> holders;       // how many problems hold it
    Index dead = 0;                   // members that no problem holds
    Stats stats;

    Index size() const { return members.size(); }
    Index problems() const { return count(shares); }
    Problem& problem(Index c) { return shares[usize(c)].P; }

    // +1 or -1: the label of an example of class `label` in problem c.
    double sign(Index c, std::int32_t class_index) const {
        return class_index == (problems() == 1 ? 1 : static_cast<std::int32_t>(c)) ? 1 : -1;
    }

    // Takes in a new member that no problem holds yet; row[s] gets its kernel value with itself.
    Index append(const Rows<T>& rows, Index r, const Example& example, float* row) {
        const Index s = members.append(rows, r, example.id);
        diagonal.push_back(kernel.diagonal(rows, r));
        row[s] = static_cast<float>(diagonal.back());
        label.push_back(example.label);
        cost.push_back(example.cost);
        holders.push_back(0);
        ++dead;
        for (Share& share : shares) {
            share.place.push_back(kNone);
            share.weight.resize(usize(padded(s + 1)), 0.0);
        }
        return s;
    }

    // Gives member s, with kernel values row[0..size()), a place in problem c: alpha = 0 and
    // gradient g. Returns the place.
    Index open(Index c, Index s, double g, const float* row) {
        const Index k = open(c, s, 0.0, g);
        Share& share = shares[usize(c)];
        simd::Extremes& e = share.P.extremes;
        if (share.P.hi[usize(k)] > 0 && g > e.g_max) e.i = k, e.g_max = g;
        if (share.P.lo[usize(k)] < 0 && g < e.g_min) e.j = k, e.g_min = g;
        RowCache::Row& held = share.rows.take(k, share.P.size);
        if (problems() == 1)
            std::copy(row, row + k + 1, held.values);  // places are positions
        else
            table().collect(held.values, row, share.member.data(), k + 1);
        complete(held, k + 1);
        ++stats.cache_misses;
        return k;
    }

    // The same with any alpha, for a state that is being put together: extremes and kernel row are
    // left to be found.
    Index open(Index c, Index s, double alpha, double g) {
        Share& share = shares[usize(c)];
        const double y = sign(c, label[usize(s)]), side = y * cost[usize(s)];
        const Index k =
            share.P.add(alpha, g, std::min(0.0, side), std::max(0.0, side), diagonal[usize(s)]);
        share.member.push_back(static_cast<std::int32_t>(s));
        share.place[usize(s)] = k;
        share.weight[usize(s)] = alpha;
        if (holders[usize(s)]++ == 0) {
            --dead;
            members.remember(s);
        }
        ++stats.inserted;
        return k;
    }

    void close(Index c, Index k) {
        Share& share = shares[usize(c)];
        const Index s = Index(share.member[usize(k)]);
        share.P.close(k);
        share.member[usize(k)] = 0;
        share.rows.drop(k);
        share.place[usize(s)] = kNone;
        if (--holders[usize(s)] == 0) {
            ++dead;
            members.forget(s);
        }
        ++stats.removed;
    }

    // Call after alpha of place k changed.
    void weigh(Index c, Index k) {
        Share& share = shares[usize(c)];
        share.weight[usize(Index(share.member[usize(k)]))] = share.P.alpha[usize(k)];
    }

    // K(k, l) for all open places l of problem c, and finite values elsewhere, padded. Good until
    // two more rows of the problem have been asked for.
    const float* row(Index c, Index k) {
        Share& share = shares[usize(c)];
        RowCache::Row& held = share.rows.take(k, share.P.size);
        held.length == 0 ? ++stats.cache_misses : ++stats.cache_hits;
        if (held.length == share.P.size || mirror(share, held, k)) return held.values;
        fetch(c, wanted_soon(share.P, k, rows_at_once(c), [&](Index l) { return !has_row(c, l); }));
        return share.rows.peek(k)->values;
    }

    // Whether row(c, k) would cost little.
    bool has_row(Index c, Index k) {
        const RowCache::Row* row = shares[usize(c)].rows.peek(k);
        return row && row->length >= shares[usize(c)].P.size - kFewColumns;
    }

    // How many rows may be fetched at a time: several while there is room for them and reading the
    // members is what takes the time; else one.
    Index rows_at_once(Index c) const {
        constexpr Index kNearBytes = 4 << 20;  // members that stay in a cache of the processor
        const RowCache& rows = shares[usize(c)].rows;
        const Index spare = rows.room() - rows.held() - 1;
        return members.bytes() < kNearBytes ? 1 : std::clamp<Index>(spare, 1, kTogether);
    }

    // Computes the rows of some places, all in one product: the tiles of members, which come from
    // main memory, are read once for all of them.
    void fetch(Index c, const std::vector<Index>& places) {
        Share& share = shares[usize(c)];
        std::vector<RowCache::Row*> rows;
        for (const Index k : places) share.rows.take(k, share.P.size);
        for (const Index k : places) rows.push_back(share.rows.peek(k));
        multiply(share, places,
                 [&](Index l, Index r, float value) { rows[usize(r)]->values[l] = value; });
        for (RowCache::Row* row : rows) finish_row(share, *row);
    }

    // g -= sum of change K(k, .) over the changes (k, change of alpha), in their order.
    void spread(Index c, const std::vector<std::pair<Index, double>>& changes) {
        constexpr Index kBlock = 128;
        Share& share = shares[usize(c)];
        const Index width = padded(share.P.size);
        Array<float> computed;
        for (Index first = 0; first < count(changes); first += kBlock) {
            const Index end = std::min(first + kBlock, count(changes));
            std::vector<Index> absent;
            for (Index n = first; n < end; ++n)
                if (!has_row(c, changes[usize(n)].first)) absent.push_back(changes[usize(n)].first);
            computed.resize(usize(count(absent) * width), 0.0f);
            multiply(share, absent, [&](Index l, Index r, float value) {
                computed[usize(r * width + l)] = value;
            });
            const float* next = computed.data();
            std::size_t used = 0;
            for (Index n = first; n < end; ++n) {
                const auto& [k, change] = changes[usize(n)];
                const bool here = used < absent.size() && absent[used] == k;
                table().add(share.P.g.data(), here ? next : row(c, k), -change, width);
                if (here) next += width, ++used;
            }
        }
    }

    // Between blocks: rows that were complete after the block before are completed, a few at a time
    // from the rows of the places since; then rows of bounded members, which are seldom asked for
    // again, give up their memory.
    void tend_rows(Index c) {
        constexpr Index kGroup = 16;  // one cache line of each new row
        Share& share = shares[usize(c)];
        const Index n = share.P.size;
        std::vector<const float*> fresh;
        bool at_hand = share.rows.width() >= n;
        for (Index l = share.tended; l < n; ++l) {
            const RowCache::Row* row = share.rows.peek(l);
            fresh.push_back(row ? row->values : nullptr);
            at_hand = at_hand && (row || !share.P.open[usize(l)]);
        }
        for (Index k = 0; at_hand && k < share.tended; k += kGroup)
            tend_group(share, k, std::min(k + kGroup, share.tended), fresh);
        for (Index k = share.tended; at_hand && k < n; ++k)
            if (fresh[usize(k - share.tended)]) mirror(share, *share.rows.peek(k), k);
        for (Index k = 0; k < n; ++k)
            if (share.P.bounded(k)) share.rows.drop(k);
        share.tended = n;
    }

    // row[t] = K(row r of rows, t) for members t from `from` (rounded down to a tile) on.
    void fill(const Rows<T>& rows, Index r, Index from, float* row) {
        for (Index t = from / kLanes; t < tiles_for(size()); ++t)
            kernel.values(rows, r, 1, members.tile(t), scratch_, row + t * kLanes, kLanes);
        stats.kernel_evaluations += size() - from;
    }

    // Problem c by itself, with its members' features, arrays and rows, for long work on it: kernel
    // rows then cost no more than its own members. Ends with take_back().
    Dual single(Index c) {
        Share& share = shares[usize(c)];
        share.compact();
        Dual alone(Members<T>(members.features(), members.sparse()), kernel, 1, 0);
        Rows<T> row;
        std::vector<float> unused(usize(share.P.size));
        for (Index k = 0; k < share.P.size; ++k) {
            const std::size_t s = usize(Index(share.member[usize(k)]));
            members.extract(Index(s), row);
            const std::int32_t positive = share.P.hi[usize(k)] > 0 ? 1 : 0;
            alone.append(row, 0, {members.ids[s], positive, cost[s]}, unused.data());
            alone.shares[0].member.push_back(static_cast<std::int32_t>(k));
            alone.shares[0].place[usize(k)] = k;
            alone.shares[0].weight[usize(k)] = share.P.alpha[usize(k)];
            alone.holders[usize(k)] = 1;
        }
        alone.dead = 0;
        std::swap(alone.shares[0].P, share.P);
        std::swap(alone.shares[0].rows, share.rows);
        return alone;
    }
    void take_back(Index c, Dual alone) {
        Share& share = shares[usize(c)];
        std::swap(alone.shares[0].P, share.P);
        std::swap(alone.shares[0].rows, share.rows);
        for (Index k = 0; k < share.P.size; ++k) weigh(c, k);
        stats.add(alone.stats);
    }

    bool wants_compaction() const { return dead >= kLanes && 8 * dead >= size(); }

    // Closed places of problem c are removed when there are many.
    void tidy(Index c) {
        if (problems() > 1 && shares[usize(c)].wants_compaction()) shares[usize(c)].compact();
    }

    // Removes the dead. Positions change: position keep[k] becomes k for the keep returned.
    Keep compact() {
        if (problems() == 1) shares[0].compact();
        Keep keep;
        std::vector<std::int32_t> position(usize(size()), 0);
        for (Index s = 0; s < size(); ++s)
            if (holders[usize(s)] > 0) {
                position[usize(s)] = static_cast<std::int32_t>(keep.size());
                keep.add(s);
            }
        keep.close_up(label);
        keep.close_up(cost);
        keep.close_up(diagonal);
        keep.close_up(holders);
        for (Share& share : shares) {
            keep.close_up(share.place);
            keep.close_up(share.weight);
            share.weight.resize(usize(padded(keep.size())), 0.0);
            for (std::size_t k = 0; k < usize(share.P.size); ++k)
                if (share.P.open[k]) share.member[k] = position[usize(Index(share.member[k]))];
        }
        members.compact(keep);
        dead = 0;
        return keep;
    }

    // Fills an empty dual with the members that a saved state describes: their features and, for
    // problem c and member s, alpha and g at [c * n + s] and its rank among the places at
    // rank[c * n + s], or -1 where it has none. Statistics are the caller's to set.
    void restore(const Matrix& X, const Example* examples, const double* alpha, const double* g,
                 const std::int64_t* rank) {
        const Index n = rows_of(X);
        Rows<T> row;
        std::vector<float> unused(usize(n + 1));
        for (std::int64_t s = 0; s < n; ++s) {
            row.read(X, &s, 1, {});
            append(row, 0, examples[s], unused.data());
        }
        for (Index c = 0; c < problems(); ++c) {
            std::vector<Index> ranked(usize(n));
            std::iota(ranked.begin(), ranked.end(), Index(0));
            if (problems() > 1)
                std::sort(ranked.begin(), ranked.end(),
                          [&](Index s, Index t) { return rank[c * n + s] < rank[c * n + t]; });
            for (const Index s : ranked) {
                const bool held = rank[c * n + s] >= 0;
                if (held)
                    open(c, s, alpha[c * n + s], g[c * n + s]);
                else if (problems() == 1)
                    close(c, open(c, s, 0.0, 0.0));  // keeps its place
            }
            problem(c).find_extremes();
        }
        for (Index s = 0; s < n; ++s)
            if (holders[usize(s)] == 0) members.forget(s);
    }

    // Computes the gradient anew from kernel values and coefficients.
    void regrade() {
        for (Index c = 0; c < problems(); ++c) {
            Problem& P = problem(c);
            for (Index k = 0; k < P.size; ++k) {
                if (!P.open[usize(k)]) continue;
                const double y = P.hi[usize(k)] > 0 ? 1 : -1;
                P.g[usize(k)] = y - table().dot(P.alpha.data(), row(c, k), padded(P.size));
            }
            P.find_extremes();
        }
    }

    double objective(Index c) const {
        const Problem& P = shares[usize(c)].P;
        double sum = 0;
        for (std::size_t k = 0; k < usize(P.size); ++k)
            sum += P.alpha[k] * ((P.hi[k] > 0 ? 1 : -1) + P.g[k]);
        return sum / 2;
    }

    // Throws std::logic_error, naming it, if an INVARIANT does not hold; `tolerance` bounds the
    // error of g. Cost: size()^2 kernel values.
    void check(double tolerance);

  private:
    static constexpr Index kFewColumns = 512;  // more are quicker computed than collected
    static constexpr Index kTogether = 64;     // rows computed when one is missing

    // Pads a row that is valid for n places.
    static void complete(RowCache::Row& held, Index n) {
        std::fill(held.values + n, held.values + padded(n), 0.0f);
        held.length = n;
    }

    // K(k, l) = K(l, k): completes a row from the rows of the places it lacks, if they are held.
    static bool mirror(Share& share, RowCache::Row& held, Index k) {
        if (held.length < share.P.size - kFewColumns) return false;
        for (; held.length < share.P.size; ++held.length) {
            const Index l = held.length;
            const RowCache::Row* other = share.rows.peek(l);
            const bool known = other && other->length > k;
            if (!known && share.P.open[usize(l)]) return false;
            held.values[l] = known ? other->values[k] : 0.0f;
        }
        complete(held, share.P.size);
        return true;
    }

    // Completes the rows of places [begin, end) that lack the columns of the fresh rows only.
    static void tend_group(Share& share, Index begin, Index end,
                           const std::vector<const float*>& fresh) {
        RowCache::Row* rows[16];
        Index lacking = 0, at[16];
        for (Index k = begin; k < end; ++k) {
            RowCache::Row* row = share.rows.peek(k);
            if (!row || row->length < share.tended || share.P.bounded(k)) continue;
            at[lacking] = k;
            rows[lacking++] = row;
        }
        for (Index f = 0; f < count(fresh); ++f)
            for (Index r = 0; r < lacking; ++r)
                rows[r]->values[share.tended + f] = fresh[usize(f)] ? fresh[usize(f)][at[r]] : 0.0f;
        for (Index r = 0; r < lacking; ++r) complete(*rows[r], share.P.size);
    }

    // Calls use(l, r, K(places[r], l)) for all r and all open places l.
    template <class F>
    void multiply(Share& share, const std::vector<Index>& places, F use) {
        const Index n = count(places);
        if (n == 0) return;
        std::vector<Index> at;
        for (const Index k : places) at.push_back(Index(share.member[usize(k)]));
        members.extract(at.data(), n, extracted_);
        collected_.resize(usize(n * kLanes));
        for (Index t = 0; t < tiles_for(size()); ++t) {
            kernel.values(extracted_, 0, n, members.tile(t), scratch_, collected_.data(), kLanes);
            for (Index lane = 0; lane < std::min(kLanes, size() - t * kLanes); ++lane) {
                const Index l = share.place[usize(t * kLanes + lane)];
                if (l == kNone) continue;
                for (Index r = 0; r < n; ++r) use(l, r, collected_[usize(r * kLanes + lane)]);
            }
        }
        stats.kernel_evaluations += n * size();
    }

    // Gives finite values to the closed places of a row that has those of the open ones.
    static void finish_row(Share& share, RowCache::Row& row) {
        for (Index l = 0; l < share.P.size; ++l)
            if (!share.P.open[usize(l)]) row.values[l] = 0.0f;
        complete(row, share.P.size);
    }

    Scratch<T> scratch_;
    Rows<T> extracted_;
    Array<float> collected_;
};

template <class T>
void Dual<T>::check(double tolerance) {
    const auto require = [](bool holds, const char* what) {
        if (!holds) throw std::logic_error(std::string("invariant broken: ") + what);
    };
    std::vector<Index> held_by(usize(size()), 0);
    for (Index c = 0; c < problems(); ++c) {
        Share& share = shares[usize(c)];
        Problem& P = share.P;
        double sum = 0;
        Index closed = 0;
        for (Index k = 0; k < P.size; ++k) {
            const std::size_t p = usize(k);
            const double a = P.alpha[p], lo = P.lo[p], hi = P.hi[p];
            if (!P.open[p]) {
                ++closed;
                require(a == 0 && lo == 0 && hi == 0, "closed places have alpha = lo = hi = 0");
                require(P.up[p] != 0 && P.down[p] != 0, "closed places do not move");
                continue;
            }
            const std::size_t s = usize(Index(share.member[p]));
            ++held_by[s];
            sum += a;
            require(share.place[s] == k, "place[member[k]] == k");
            require(problems() > 1 || Index(s) == k, "places of a single problem are positions");
            require(share.weight[s] == a, "weight[member[k]] == alpha[k]");
            require(lo <= a && a <= hi, "lo <= alpha <= hi");
            require((P.up[p] == 0) == (a < hi), "up == 0 iff alpha < hi");
            require((P.down[p] == 0) == (a > lo), "down == 0 iff alpha > lo");
            require(a != 0 || P.listed[p], "alpha == 0 is listed in idle");
            const float* held = row(c, k);
            Array<float> k_row(usize(padded(size())));
            members.extract(Index(s), extracted_);
            fill(extracted_, 0, 0, k_row.data());
            for (Index l = 0; l < P.size; ++l)
                require(!P.open[usize(l)] || held[l] == k_row[usize(Index(share.member[usize(l)]))],
                        "rows hold K(k, l)");
            const double f = table().dot(P.alpha.data(), held, padded(P.size));
            require(std::abs(P.g[p] - ((hi > 0 ? 1 : -1) - f)) <= tolerance,
                    "g[k] == y[k] - sum_l alpha[l] K(k, l)");
        }
        require(closed == P.closed, "closed counts the closed places");
        require(std::abs(sum) <= tolerance, "sum of alpha == 0");
        const simd::Extremes now =
            table().extremes(P.g.data(), P.up.data(), P.down.data(), padded(P.size));
        require(now.i == P.extremes.i && now.j == P.extremes.j, "extremes are those of g");
    }
    Index dead_now = 0;
    for (Index s = 0; s < size(); ++s) {
        require(held_by[usize(s)] == holders[usize(s)],
                "holders[s] counts the problems that hold s");
        const bool is_dead = holders[usize(s)] == 0;
        require(is_dead || members.find(members.ids[usize(s)]) == s, "find(ids[s]) == s");
        dead_now += is_dead;
    }
    require(dead_now == dead, "dead counts the members that no problem holds");
}

}  // namespace marginwise
