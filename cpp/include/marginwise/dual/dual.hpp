// The dual state: the members, and for each binary problem the coefficients, gradient and box of
// the members that it holds.
//
// With several classes, all problems share the members and their features. Each problem restricts
// its arrays and kernel rows, which every step reads, to the members that it holds. A member thus
// has a position s among the members and a place k in each problem that holds it. If there is only
// one problem, places are positions.
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
    double weight = 0;   // weight in foresight; 0 if the example was seen before
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

    // Memory for kernel rows in addition to the requested cache, however small that is.
    static constexpr Index kWorkingBytes = 52 << 20;
    static constexpr Index kLeastBytes = 4 << 20;  // least share of a problem

    Members<T> members;
    KernelBlocks<T> kernel;
    Vector<Subproblem> subproblems;
    Vector<std::int32_t> label;  // class of each member
    Vector<double> cost;         // C times the weight of each member
    Vector<double> diagonal;     // K(s, s)
    Vector<Index> holders;       // number of problems that hold each member
    Index dead = 0;              // number of members that no problem holds
    Index most_together = 16;    // maximal number of rows computed when one is missing
    bool full = false;           // whether kernel values are computed in the precision of T
    bool sleeps = true;          // whether members may sleep; requires that all boxes are usual
    // The kernel values of the members of the dual that this one was taken out of, see single();
    // null if they are not known.
    std::shared_ptr<const KnownValues> known;
    Stats stats;  // without those of the problems

    // While it exists, the threads of a pool help to compute kernel rows. Meanwhile, only one
    // problem may be worked on, and the pool must not be used for anything else.
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

    // Statistics including those of all problems.
    Stats total_stats() const {
        Stats total = stats;
        for (const Subproblem& sub : subproblems) total.add(sub.stats);
        return total;
    }

    // Divides the memory for kernel rows among the problems according to need: a problem that needs
    // less than an equal share gets what all its rows would take, and the others divide the rest
    // equally.
    void divide_cache();

    // The same for `threads` threads that each solve one problem at a time. If memory is short, the
    // problems that need little keep their own rows, and the others borrow the remaining memory in
    // turn. With `empty_too`, problems without cached rows borrow as well. Returns the bytes of a
    // loan.
    Index lend_cache(Index threads, bool empty_too);

    // Lends `memory` to problem c, if it borrows, while it is being solved. return_rows() takes it
    // back and leaves problem c without rows.
    void borrow_rows(Index c, RowCache& memory, Index bytes);
    void return_rows(Index c, RowCache& memory);

    // Holds the features of all members as rows while it exists, provided that some problem borrows
    // and the rows fit in half of the memory for kernel rows. Members must not change meanwhile.
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

    // Enables a copy to find its members by their ids.
    void reindex() {
        for (Index s = 0; s < size(); ++s)
            if (holders[s] > 0) members.remember(s);
    }

    Index size() const { return members.size(); }
    Index problems() const { return subproblems.size(); }
    Problem& problem(Index c) { return subproblems[c].P; }

    // The label of an example of class `class_index` in problem c: +1, -1, or 0 if the problem does
    // not involve that class.
    double sign(Index c, std::int32_t class_index) const {
        if (pairs_.empty())
            return class_index == (problems() == 1 ? 1 : static_cast<std::int32_t>(c)) ? 1 : -1;
        return class_index == pairs_[c].second ? 1 : class_index == pairs_[c].first ? -1 : 0;
    }

    // Makes the problems one-vs-one, in the order (0, 1), (0, 2), ... The second class of a pair is
    // the positive one.
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

    // Appends a new member s that no problem holds yet, and sets row[s] to K(s, s). Returns s.
    template <class V>
    Index append(const Rows<T>& rows, Index r, const Example& example, V* row) {
        const Index s = append(rows, r, example, diagonal_of(rows, r));
        row[s] = static_cast<V>(diagonal[s]);
        return s;
    }
    // The same, given K(x, x).
    Index append(const Rows<T>& rows, Index r, const Example& example, double k_xx) {
        const Index s = append_alone(rows, r, example, k_xx);
        extend_problems();
        return s;
    }

    // append() in two parts: the second may be called once after several calls of the first.
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

    // Opens a place in problem c for member s, whose kernel row is row[0..size()), with alpha = 0
    // and gradient g. Returns the place.
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

    // The same with any alpha, for a state under construction: does not set extremes or kernel row.
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

    // close() in two parts: close_place() closes place k and may run for several problems at the
    // same time; release_closed() then releases the members whose places were closed.
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

    // Sleep: members at a side of their box that belong to no violating pair give up their places,
    // so that steps skip them. See sleep.hpp.
    //
    // Puts such places of problem c to sleep, unless they are few. `idle_too` includes places with
    // alpha = 0. Set it only if nothing is learned before they wake, because holds() does not
    // recognise them while they sleep.
    void sleep(Index c, bool idle_too);
    // Updates the gradient of the sleepers of problem c and wakes those that violate. Returns
    // whether there were any.
    bool stir(Index c);
    // Wakes all sleepers of all problems.
    void rest();

    // Erases the data of member s, which no problem holds, but keeps its position. Members that no
    // problem holds get a copy of the features of the first held member; if s was that one, all of
    // them get those of the next.
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

    // K(k, l) for all open places l of problem c, and finite values elsewhere; padded. Valid until
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

    // How many rows to fetch at a time: several if there is room for them and the cost is dominated
    // by reading the members or calling a function; otherwise one.
    Index rows_at_once(Index c) const {
        constexpr Index kNearBytes = 4 << 20;  // members that stay in a cache of the processor
        constexpr Index kFew = 4;              // enough to amortise reading a problem's features
        const RowCache& rows = subproblems[c].rows;
        if (subproblems[c].crowded() || known) return 1;
        const Index spare = rows.room() - rows.held() - 1;
        const bool alone = members.bytes() < kNearBytes && !kernel.is_callable();
        const Index most = own_[c].kept() ? std::min(kFew, most_together) : most_together;
        return alone ? 1 : std::clamp<Index>(spare, 1, most);
    }

    // Computes the rows of some places in a single product, which reads the tiles of members from
    // main memory only once.
    void fetch(Index c, const Vector<Index>& places);

    // Computes the rows of all places of problem c, each value once, provided that the features of
    // its places are contiguous and all rows fit in its memory. Returns whether they were computed.
    bool fetch_all(Index c);

    // Whether problem c may hold n rows in advance, many of which are never requested: they may
    // take half of the cache, and less if rows are cheap to compute.
    bool keeps_ahead(Index c, Index n) const {
        constexpr Index kLeast = 16 << 20, kMost = 128 << 20;  // bytes
        constexpr Index kWorth = 1 << 16;  // bytes per byte of a member's features
        const Subproblem& sub = subproblems[c];
        const Index bytes = n * (sub.P.size + n) * Index(sizeof(float));
        const Index features = members.bytes() / std::max<Index>(size(), 1);
        if (bytes > std::clamp(kWorth * features, kLeast, kMost)) return false;
        return 2 * bytes <= sub.rows.limit();
    }

    // Computes the rows of the places from `first` on, as far as keeps_ahead() allows.
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

    // row[t] = K(row r of rows, t) for all members t >= `from`, rounded down to a tile.
    template <class V>
    void fill(const Rows<T>& rows, Index r, Index from, V* row) {
        for (Index t = from / kLanes; t < tiles_for(size()); ++t)
            kernel.values(rows, r, 1, members.tile(t), scratches(0)[0], row + t * kLanes, kLanes);
        stats.kernel_evaluations += size() - from;
    }

    // An id identifies one example. If row r has the id of member s but other features, replaces
    // its kernel values by those of s.
    void stand_for(Index s, const Rows<T>& rows, Index r, float* row) {
        const bool same =
            rows.norms[r] == members.norm(s) && static_cast<double>(row[s]) == diagonal[s];
        if (same) return;
        members.extract(s, work_[0].extracted);
        fill(work_[0].extracted, 0, 0, row);
    }

    // Takes problem c out as a dual of its own, with the features of its members, its arrays and
    // its rows. Kernel rows then cost products with its own members only. take_back() puts it back.
    Dual single(Index c);
    void take_back(Index c, Dual alone);

    bool wants_compaction() const { return dead >= kLanes && 8 * dead >= size(); }

    // Removes the closed places of problem c if there are many.
    void tidy(Index c) {
        if (problems() > 1 && subproblems[c].wants_compaction()) compact_places(c);
    }
    void compact_places(Index c) {
        if (problem(c).closed > 0) own_[c].compact(subproblems[c].compact(workers()));
    }

    // Removes the dead members. Position compaction[k] becomes k, for the returned compaction.
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

    // The places of a saved state. The entries for member s in problem c are at [c * n + s].
    struct Saved {
        const std::int64_t* rank;  // order of the member's place; -1 if it has none
        const double *alpha, *g;
        const std::uint8_t* box;       // null: all usual
        const double* average_offset;  // null: all 0
        const double* inherited;       // null: all 0
    };

    // Fills an empty dual from a saved state. The caller sets the statistics.
    void restore(const Matrix& X, const Example* examples, const Saved& saved);

    // Computes the gradient from scratch, from kernel values and coefficients.
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

    // Throws std::logic_error with the name of the broken INVARIANT if one does not hold.
    // `tolerance` bounds the error of g; `extremes`: whether the algorithm maintains the extremes.
    // Cost: size()^2 kernel values.
    void check(double tolerance, bool extremes = true);

  private:
    struct Workspace {
        Vector<Scratch<T>> scratches;  // by thread
        Rows<T> extracted;
        Workspace() = default;
        Workspace(const Workspace&) {}  // a copy starts empty
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

    // Records that a problem no longer holds these members, and empties the list.
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

    // Computes the columns that a row lacks. Requires that places are positions.
    const float* complete_row(Subproblem& sub, RowCache::Row& held, Index k) {
        const Index first = held.length / kLanes;
        multiply(0, {k}, {held.values}, first);
        sub.finish_rows({k});
        return held.values;
    }

    // Whether problem c has a copy of the features of its places. Makes that copy if the problem
    // has places for less than half of the members and memory allows.
    bool has_own_features(Index c) {
        const Subproblem& sub = subproblems[c];
        if (!own_[c].kept() && 2 * sub.P.size < size() && !known)
            own_[c].copy(members, member_rows_.get(), sub.member, sub.rows.limit());
        return own_[c].kept();
    }
    void keep_member_rows(ThreadPool& workers);

    // The features of some places of problem c as a block, from its own copy.
    const Rows<T>& own_block(Index c, const Vector<Index>& places);

    // rows[r][l] = K(places[r], l) for all places l >= `from`, from the problem's own features.
    void multiply_own(Index c, const Vector<Index>& places, const Vector<float*>& rows, Index from);

    // Computes the columns that a row lacks, from the problem's own features.
    const float* complete_own(Index c, RowCache::Row& held, Index k) {
        multiply_own(c, {k}, {held.values}, held.length);
        subproblems[c].finish_rows({k});
        return held.values;
    }

    // rows[r][l] = K(places[r], l) for all r and all open places l of members in tiles >= first.
    void multiply(Index c, const Vector<Index>& places, const Vector<float*>& rows,
                  Index first = 0);
    void place_tile(const Subproblem& sub, Index t, const float* values, float* row) const;

    // out[n] = K(s, at[n]), from the known values.
    void recall(Index s, const Vector<std::int32_t>& at, float* out) const;

    // The threads that help; a copy has none.
    struct Helpers {
        ThreadPool* pool = &ThreadPool::alone();
        Helpers() = default;
        Helpers(const Helpers&) {}
        Helpers(Helpers&&) = default;
        Helpers& operator=(Helpers&&) = default;
    };

    Helpers helpers_;
    Vector<OwnFeatures<T>> own_;  // by problem
    Vector<Workspace> work_;      // by problem, so that several may be solved at the same time
    std::shared_ptr<const MemberRows<T>> member_rows_;     // see FeatureRows
    Vector<std::pair<std::int32_t, std::int32_t>> pairs_;  // classes by problem, if one-vs-one
};

}  // namespace marginwise

#include "marginwise/dual/check.hpp"
#include "marginwise/dual/divide_cache.hpp"
#include "marginwise/dual/restore.hpp"
#include "marginwise/dual/row_products.hpp"
#include "marginwise/dual/single.hpp"
#include "marginwise/dual/sleep.hpp"
