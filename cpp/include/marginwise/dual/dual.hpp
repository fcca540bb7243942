// The dual state: members, and for each binary problem the coefficients, gradient and box of those
// it holds.
//
// All problems of several classes share the members and their features. Each problem restricts its
// arrays and kernel rows, which are read at every step, to the members that it holds. So a member
// has a position s among the members and, in each problem that holds it, a place k. Where there is
// only one problem, places are positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/dual/known_values.hpp"
#include "marginwise/dual/members.hpp"
#include "marginwise/dual/own_features.hpp"
#include "marginwise/dual/stats.hpp"
#include "marginwise/dual/subproblem.hpp"
#include "marginwise/kernel/kernel_blocks.hpp"

namespace marginwise {

struct Example {
    std::int64_t id;
    std::int32_t label;  // its class
    double cost;         // C times its weight
    double weight = 0;   // in foresight; 0 if the example was seen before
};

template <class T>
class Dual {
  public:
    Dual(Members<T> members_, KernelBlocks<T> kernel_, Index problems, Index cache_bytes,
         bool biased = true)
        : members(std::move(members_)), kernel(std::move(kernel_)) {
        for (Index c = 0; c < problems; ++c) {
            subproblems.emplace_back((kWorkingBytes + cache_bytes) / problems,
                                     kWorkingBytes + cache_bytes);
            subproblems.back().P.biased = biased;
        }
        own_ = Vector<OwnFeatures<T>>(problems);
        work_ = Vector<Workspace>(problems);
    }

    // Memory for kernel rows in addition to the cache, however small that is.
    static constexpr Index kWorkingBytes = 52 << 20;
    static constexpr Index kLeastBytes = 4 << 20;  // ... of each problem

    Members<T> members;
    KernelBlocks<T> kernel;
    Vector<Subproblem> subproblems;
    Vector<std::int32_t> label;  // class of each member
    Vector<double> cost;         // its C times its weight
    Vector<double> diagonal;     // K(s, s)
    Vector<Index> holders;       // how many problems hold it
    Index dead = 0;              // members that no problem holds
    Index most_together = 16;    // rows computed when one is missing
    bool full = false;           // kernel values are wanted in the precision of T
    bool sleeps = true;          // members may sleep: all boxes are usual ones
    // Where this is one problem taken out of another dual, the kernel values of that one's members,
    // if they are known.
    std::shared_ptr<const KnownValues> known;
    Stats stats;  // apart from those of the problems

    // Lets the threads of a pool help with kernel rows while it exists. Only one problem may be
    // worked on meanwhile, and the pool must have nothing else to do.
    class Help {
      public:
        Help(Dual& D, ThreadPool& workers) : D_(D) { D.helpers_.pool = &workers; }
        ~Help() { D_.helpers_.pool = &ThreadPool::alone(); }
        Help(const Help&) = delete;
        Help& operator=(const Help&) = delete;

      private:
        Dual& D_;
    };
    ThreadPool& workers() const { return *helpers_.pool; }

    // What has been done so far, by all problems.
    Stats total_stats() const {
        Stats total = stats;
        for (const Subproblem& sub : subproblems) total.add(sub.stats);
        return total;
    }

    // Divides the memory for kernel rows among the problems by what they need: none gets more than
    // all its rows would take, and what is left goes to the others in equal parts.
    void divide_cache();

    // The same for problems that are solved one after the other, on each of some threads: where
    // memory is short, those that need little have rows of their own, and the others borrow the
    // rest in turn. With `empty_too`, so do those that hold no rows. Returns the bytes of a loan.
    Index lend_cache(Index threads, bool empty_too);

    // Lets problem c, if it borrows, use `memory` while it is solved; that is given back with
    // return_rows(), and problem c then holds no rows.
    void borrow_rows(Index c, RowCache& memory, Index bytes);
    void return_rows(Index c, RowCache& memory);

    // Has the features of all members as rows while it exists, where problems borrow and half of
    // the memory for kernel rows would hold them. Members must stay as they are meanwhile.
    class FeatureRows {
      public:
        FeatureRows(Dual& D, ThreadPool& workers) : D_(D) { D.keep_member_rows(workers); }
        ~FeatureRows() { D_.member_rows_.reset(); }
        FeatureRows(const FeatureRows&) = delete;
        FeatureRows& operator=(const FeatureRows&) = delete;

      private:
        Dual& D_;
    };

    // Reserves memory for n more members in all problems, so that adding them cannot fail.
    void reserve(Index n) {
        members.reserve(n);
        enlarge(label, size() + n);
        enlarge(cost, size() + n);
        enlarge(diagonal, size() + n);
        enlarge(holders, size() + n);
        for (Subproblem& sub : subproblems) {
            enlarge(sub.place, size() + n);
            enlarge(sub.weight, padded(size() + n));
            enlarge(sub.member, sub.P.size + n);
            sub.P.reserve(n);
            sub.suspects.reserve(sub.P.size + n);
            sub.foresight.reserve(n);
        }
    }

    // Lets a copy find its members by their ids.
    void reindex() {
        for (Index s = 0; s < size(); ++s)
            if (holders[s] > 0) members.remember(s);
    }

    Index size() const { return members.size(); }
    Index problems() const { return subproblems.size(); }
    Problem& problem(Index c) { return subproblems[c].P; }

    // +1 or -1: the label of an example of class `label` in problem c; 0 if it has no part in it.
    double sign(Index c, std::int32_t class_index) const {
        if (pairs_.empty())
            return class_index == (problems() == 1 ? 1 : static_cast<std::int32_t>(c)) ? 1 : -1;
        return class_index == pairs_[c].second ? 1 : class_index == pairs_[c].first ? -1 : 0;
    }

    // Makes the problems those of one class against another, in the order (0, 1), (0, 2), ... The
    // second class of a pair is the positive one.
    void pair_classes() {
        pairs_.clear();
        for (std::int32_t second, first = 0; pairs_.size() < problems(); ++first)
            for (second = first + 1; second < classes_in_pairs(problems()); ++second)
                pairs_.push_back({first, second});
    }
    bool in_pairs() const { return !pairs_.empty(); }
    static std::int32_t classes_in_pairs(Index problems) {
        std::int32_t classes = 2;
        while (Index{classes} * (classes - 1) / 2 < problems) ++classes;
        require(Index{classes} * (classes - 1) / 2 == problems,
                "problems must be pairs of classes");
        return classes;
    }

    // Appends a new member that no problem holds yet; row[s] gets its kernel value with itself.
    template <class V>
    Index append(const Rows<T>& rows, Index r, const Example& example, V* row) {
        const Index s = append(rows, r, example, diagonal_of(rows, r));
        row[s] = static_cast<V>(diagonal[s]);
        return s;
    }
    // The same, with K(x, x) of the row.
    Index append(const Rows<T>& rows, Index r, const Example& example, double k_xx) {
        const Index s = append_alone(rows, r, example, k_xx);
        extend_problems();
        return s;
    }

    // In two parts, of which the second may follow several of the first.
    Index append_alone(const Rows<T>& rows, Index r, const Example& example, double k_xx) {
        const Index s = members.append(rows, r, example.id);
        diagonal.push_back(k_xx);
        label.push_back(example.label);
        cost.push_back(example.cost);
        holders.push_back(0);
        ++dead;
        return s;
    }
    void extend_problems() {
        for (Subproblem& sub : subproblems) {
            sub.place.resize(size(), kNone);
            sub.weight.resize(padded(size()), 0.0);
        }
    }

    // K(x, x) for row r.
    double diagonal_of(const Rows<T>& rows, Index r) const {
        return full ? kernel.template diagonal<T>(rows, r) : kernel.diagonal(rows, r);
    }
    Vector<double> diagonals_of(const Rows<T>& rows) const {
        return full ? kernel.template diagonals<T>(rows) : kernel.diagonals(rows);
    }

    // Gives member s, with kernel values row[0..size()), a place in problem c: alpha = 0 and
    // gradient g. Returns the place.
    Index open(Index c, Index s, double g, const float* row, Box box = Box::usual) {
        const Index k = open(c, s, 0.0, g, box);
        Subproblem& sub = subproblems[c];
        simd::Extremes& e = sub.P.extremes;
        if (sub.P.hi[k] > 0 && g > e.g_max) e.i = k, e.g_max = g;
        if (sub.P.lo[k] < 0 && g < e.g_min) e.j = k, e.g_min = g;
        RowCache::Row& held = sub.rows.take(k, sub.P.size);
        if (aligned())
            std::copy(row, row + k + 1, held.values);
        else
            table().collect(held.values, row, sub.member.data(), k + 1);
        Subproblem::complete(held, k + 1);
        ++sub.stats.cache_misses;
        return k;
    }

    // The same with any alpha, for a state under construction: extremes and kernel row are not set.
    Index open(Index c, Index s, double alpha, double g, Box box) {
        Subproblem& sub = subproblems[c];
        const double side = sign(c, label[s]) * cost[s];
        const Index k = sub.P.add(alpha, g, side, diagonal[s], box);
        sub.member.push_back(static_cast<std::int32_t>(s));
        sub.set_place(s, k);
        sub.weight[s] = alpha;
        own_[c].open(members, s);
        sub.suspects.forget(members.ids[s]);
        if (holders[s]++ == 0) {
            --dead;
            members.remember(s);
        }
        ++stats.inserted;
        return k;
    }

    void close(Index c, Index k) {
        close_place(c, k);
        release_closed(c);
    }

    // In two parts, of which the first may be done for several problems at the same time: closes
    // place k, and then releases the members whose places were closed.
    void close_place(Index c, Index k) {
        Subproblem& sub = subproblems[c];
        const Index s = sub.member[k];
        sub.suspects.judge(members.ids[s], label[s], sub.P.margin(k));
        sub.P.close(k);
        sub.member[k] = 0;
        sub.rows.drop(k);
        sub.place[s] = kNone;
        Vector<std::int32_t>& list = sub.is_counted(s) ? sub.owed : sub.left;
        list.push_back(static_cast<std::int32_t>(s));
        ++sub.stats.removed;
    }
    void release_closed(Index c) { release(subproblems[c].left); }

    // Sleep: members at a side of their box that no violating pair can reach give up their places,
    // so that steps pass them over. See sleep.hpp.
    //
    // Puts places of problem c to sleep, unless those that could are few. Places with alpha = 0,
    // which holds() does not find asleep, only if nothing is learned before they wake.
    void sleep(Index c, bool idle_too);
    // Brings the gradient of the sleepers of problem c up to date, and wakes those that violate.
    // Returns whether there were any.
    bool stir(Index c);
    // Wakes all sleepers of all problems.
    void rest();

    // Erases member s, which no problem holds, except for its position. The first member that is
    // held takes the place of all erased ones; if that was s, the next one does from now on.
    void wipe(Index s) {
        for (OwnFeatures<T>& own : own_) own.drop();
        Index other = 0;
        while (other < size() && holders[other] == 0) ++other;
        const Index first = s < other ? 0 : s, last = s < other ? size() - 1 : s;
        if (other == size()) other = kNone;
        for (Index t = first; t <= last; ++t) {
            if (holders[t] > 0) continue;
            members.wipe(t, other);
            label[t] = 1;
            cost[t] = 1.0;
            diagonal[t] = other == kNone ? 0.0 : diagonal[other];
        }
    }

    // Call after alpha of place k changed.
    void weigh(Index c, Index k) {
        Subproblem& sub = subproblems[c];
        sub.weight[sub.member[k]] = sub.P.alpha[k];
    }

    // K(k, l) for all open places l of problem c, and finite values elsewhere, padded. Valid until
    // two more rows of the problem have been requested.
    const float* row(Index c, Index k) {
        Subproblem& sub = subproblems[c];
        RowCache::Row& held = sub.rows.take(k, sub.P.size);
        held.length == 0 ? ++sub.stats.cache_misses : ++sub.stats.cache_hits;
        if (held.length == sub.P.size || sub.mirror(held, k)) return held.values;
        if (2 * held.length >= sub.P.size) {
            if (aligned()) return complete_row(sub, held, k);
            if (has_own_features(c)) return complete_own(c, held, k);
        }
        fetch(c, wanted_soon(sub.P, k, rows_at_once(c), [&](Index l) { return !has_row(c, l); }));
        return sub.rows.peek(k)->values;
    }

    // Whether places are positions.
    bool aligned() const { return problems() == 1 && subproblems[0].in_order; }

    // Whether row(c, k) would cost little.
    bool has_row(Index c, Index k) { return subproblems[c].has_row(k); }

    // How many rows may be fetched at a time: several while there is room for them and reading the
    // members, or calling a function, is what takes the time; else one.
    Index rows_at_once(Index c) const {
        constexpr Index kNearBytes = 4 << 20;  // members that stay in a cache of the processor
        constexpr Index kFew = 4;              // rows are worth the reading of a problem's features
        const RowCache& rows = subproblems[c].rows;
        if (subproblems[c].crowded() || known) return 1;
        const Index spare = rows.room() - rows.held() - 1;
        const bool alone = members.bytes() < kNearBytes && !kernel.is_callable();
        const Index most = own_[c].kept() ? std::min(kFew, most_together) : most_together;
        return alone ? 1 : std::clamp<Index>(spare, 1, most);
    }

    // Computes the rows of some places, all in one product: the tiles of members, which come from
    // main memory, are read once for all of them.
    void fetch(Index c, const Vector<Index>& places);

    // Computes the rows of all places of problem c, each value once, if the features of its places
    // stand side by side and its memory holds that many rows. Returns whether it was done.
    bool fetch_all(Index c);

    // Whether problem c may hold n rows before they are asked for, many of which never are: half of
    // the cache is for others, and rows that cost little to compute are not worth much memory.
    bool keeps_ahead(Index c, Index n) const {
        constexpr Index kLeast = 16 << 20, kMost = 128 << 20;  // bytes
        constexpr Index kWorth = 1 << 16;  // ... for each byte of a member's features
        const Subproblem& sub = subproblems[c];
        const Index bytes = n * (sub.P.size + n) * Index(sizeof(float));
        const Index features = members.bytes() / std::max<Index>(size(), 1);
        if (bytes > std::clamp(kWorth * features, kLeast, kMost)) return false;
        return 2 * bytes <= sub.rows.limit();
    }

    // Computes the rows of the places from `first` on, as far as rows are kept ahead.
    void fetch_from(Index c, Index first) {
        constexpr Index kBlock = 128;
        for (Index kept = 0; first < subproblems[c].P.size; first += kBlock) {
            Vector<Index> places(std::min(kBlock, subproblems[c].P.size - first));
            kept += places.size();
            if (!keeps_ahead(c, kept)) return;
            std::iota(places.begin(), places.end(), first);
            fetch(c, places);
        }
    }

    // row[t] = K(row r of rows, t) for members t from `from` (rounded down to a tile) on.
    template <class V>
    void fill(const Rows<T>& rows, Index r, Index from, V* row) {
        for (Index t = from / kLanes; t < tiles_for(size()); ++t)
            kernel.values(rows, r, 1, members.tile(t), scratches(0)[0], row + t * kLanes, kLanes);
        stats.kernel_evaluations += size() - from;
    }

    // An id identifies one example: if row r has the id of member s but other features, its kernel
    // values are replaced by those of s.
    void stand_for(Index s, const Rows<T>& rows, Index r, float* row) {
        const bool same =
            rows.norms[r] == members.norm(s) && static_cast<double>(row[s]) == diagonal[s];
        if (same) return;
        members.extract(s, work_[0].extracted);
        fill(work_[0].extracted, 0, 0, row);
    }

    // Problem c by itself, with its members' features, arrays and rows, to solve it: kernel rows
    // then cost no more than its own members. Undone by take_back().
    Dual single(Index c);
    void take_back(Index c, Dual alone);

    bool wants_compaction() const { return dead >= kLanes && 8 * dead >= size(); }

    // Closed places of problem c are removed when there are many.
    void tidy(Index c) {
        if (problems() > 1 && subproblems[c].wants_compaction()) compact_places(c);
    }
    void compact_places(Index c) {
        if (problem(c).closed > 0) own_[c].compact(subproblems[c].compact(workers()));
    }

    // Removes the dead. Positions change: position compaction[k] becomes k for the compaction
    // returned.
    Compaction compact() {
        if (problems() == 1) compact_places(0);
        Compaction compaction;
        Vector<std::int32_t> position(size(), 0);
        for (Index s = 0; s < size(); ++s)
            if (holders[s] > 0) {
                position[s] = static_cast<std::int32_t>(compaction.size());
                compaction.add(s);
            }
        compaction.apply(label);
        compaction.apply(cost);
        compaction.apply(diagonal);
        compaction.apply(holders);
        for (Subproblem& sub : subproblems) {
            compaction.apply(sub.place);
            compaction.apply(sub.weight);
            sub.weight.resize(padded(compaction.size()), 0.0);
            for (Sleepers& sleepers : sub.asleep) {
                sleepers.counted.resize(size(), 0.0);
                compaction.apply(sleepers.counted);
                for (std::int32_t& s : sleepers.member) s = position[s];
            }
            for (std::int32_t& s : sub.owed) s = position[s];
            for (Index k = 0; k < sub.P.size; ++k)
                if (sub.P.open[k]) sub.member[k] = position[sub.member[k]];
        }
        members.compact(compaction);
        dead = 0;
        return compaction;
    }

    // The members of all problems in a saved state, at [c * n + s] for problem c and member s: its
    // rank among the places, or -1 where it has none, and what is stored there.
    struct Saved {
        const std::int64_t* rank;
        const double *alpha, *g;
        const std::uint8_t* box;       // null: all usual
        const double* average_offset;  // null: all 0
        const double* inherited;       // likewise
    };

    // Fills an empty dual with members. Statistics are the caller's to set.
    void restore(const Matrix& X, const Example* examples, const Saved& saved);

    // Computes the gradient again from kernel values and coefficients.
    void regrade();

    double objective(Index c) const {
        const Problem& P = subproblems[c].P;
        double sum = 0;
        for (Index k = 0; k < P.size; ++k) sum += P.alpha[k] * (P.y(k) + P.g[k]);
        return sum / 2;
    }

    // The sum of C over the examples held, which is the primal objective at w = 0.
    double penalty(Index c) const {
        const Problem& P = subproblems[c].P;
        double sum = 0;
        for (Index k = 0; k < P.size; ++k) sum += std::abs(P.side[k]);
        return sum;
    }

    // Primal minus dual objective over the examples held, for an algorithm without a bias.
    double duality_gap(Index c) const {
        const Problem& P = subproblems[c].P;
        double sum = 0;
        for (Index k = 0; k < P.size; ++k)
            sum += std::max(0.0, P.side[k] * P.g[k]) - P.alpha[k] * P.g[k];
        return sum;
    }

    // Throws std::logic_error, naming it, if an INVARIANT does not hold; `tolerance` bounds the
    // error of g, and `extremes` is whether they are maintained. Cost: size()^2 kernel values.
    void check(double tolerance, bool extremes = true);

  private:
    struct Workspace {
        Vector<Scratch<T>> scratches;  // of each thread
        Rows<T> extracted;
        Workspace() = default;
        Workspace(const Workspace&) {}  // nothing that a copy needs
        Workspace(Workspace&&) = default;
        Workspace& operator=(Workspace&&) = default;
    };

    Vector<Scratch<T>>& scratches(Index c) {
        Vector<Scratch<T>>& all = work_[c].scratches;
        if (all.size() < workers().threads()) all.resize(workers().threads());
        return all;
    }

    void catch_up(Index c);
    void catch_up(Index c, Sleepers& sleepers);
    void catch_up_by_known_values(Index c, const Vector<Index>& changed, Sleepers& sleepers);
    void catch_up_by_products(Index c, const Vector<Index>& changed, Sleepers& sleepers);
    bool wake(Index c, bool all);
    void put_in_order();

    // A problem holds these members no longer.
    void release(Vector<std::int32_t>& list) {
        for (const std::int32_t s : list) {
            if (--holders[s] > 0) continue;
            ++dead;
            members.forget(s);
        }
        list.clear();
    }

    void check_problem(Index c, double tolerance, bool extremes, Vector<Index>& held_by);
    void check_place(Index c, Index k, double tolerance);

    // Computes the columns that a row lacks; places are positions.
    const float* complete_row(Subproblem& sub, RowCache::Row& held, Index k) {
        const Index first = held.length / kLanes;
        multiply(0, {k}, {held.values}, first);
        sub.finish_rows({k});
        return held.values;
    }

    // Whether problem c has a copy of the features of its places. It is made at the first cache
    // miss of a problem that has places for less than half of the members.
    bool has_own_features(Index c) {
        const Subproblem& sub = subproblems[c];
        if (!own_[c].kept() && 2 * sub.P.size < size() && !known)
            own_[c].copy(members, member_rows_.get(), sub.member, sub.rows.limit());
        return own_[c].kept();
    }
    void keep_member_rows(ThreadPool& workers);

    // The features of some places of problem c, which has its own, as a block.
    const Rows<T>& own_block(Index c, const Vector<Index>& places);

    // rows[r][l] = K(places[r], l) for all places l from `from` on, by the problem's own features.
    void multiply_own(Index c, const Vector<Index>& places, const Vector<float*>& rows, Index from);

    // Computes the columns that a row lacks, by the problem's own features.
    const float* complete_own(Index c, RowCache::Row& held, Index k) {
        multiply_own(c, {k}, {held.values}, held.length);
        subproblems[c].finish_rows({k});
        return held.values;
    }

    // rows[r][l] = K(places[r], l) for all r and all open places l of members from tile `first` on.
    void multiply(Index c, const Vector<Index>& places, const Vector<float*>& rows,
                  Index first = 0);
    void place_tile(const Subproblem& sub, Index t, const float* values, float* row) const;

    // out[n] = K(s, at[n]) for members that are known.
    void recall(Index s, const Vector<std::int32_t>& at, float* out) const;

    // Who helps; a copy is on its own.
    struct Helpers {
        ThreadPool* pool = &ThreadPool::alone();
        Helpers() = default;
        Helpers(const Helpers&) {}
        Helpers(Helpers&&) = default;
        Helpers& operator=(Helpers&&) = default;
    };

    Helpers helpers_;
    Vector<OwnFeatures<T>> own_;  // of each problem
    Vector<Workspace> work_;      // ... likewise, so that several may be solved at the same time
    std::shared_ptr<const MemberRows<T>> member_rows_;     // see FeatureRows
    Vector<std::pair<std::int32_t, std::int32_t>> pairs_;  // of classes, where they are paired
};

}  // namespace marginwise

#include "marginwise/dual/check.hpp"
#include "marginwise/dual/divide_cache.hpp"
#include "marginwise/dual/restore.hpp"
#include "marginwise/dual/row_products.hpp"
#include "marginwise/dual/single.hpp"
#include "marginwise/dual/sleep.hpp"
