// The dual state: members, and for each binary problem their coefficients, gradient and box.
//
// All problems of one-vs-rest share the members, their features and their kernel rows; a member
// that a problem does not hold has a closed box there. Signed alpha makes labels vanish from the
// solvers: lo = min(0, C y) <= alpha <= hi = max(0, C y).
#pragma once

#include <algorithm>
#include <cmath>

#include "marginwise/kernels.hpp"
#include "marginwise/row_cache.hpp"

namespace marginwise {

// What has been done so far; part of the state.
struct Stats {
    std::int64_t kernel_evaluations = 0, process = 0, reprocess = 0, inserted = 0, removed = 0,
                 cache_hits = 0, cache_misses = 0;
    double product_seconds = 0, learn_seconds = 0, finish_seconds = 0;
};

struct Example {
    std::int64_t id;
    std::int32_t label;  // its class
    double cost;         // C times its weight
};

struct Problem {
    // INVARIANT  open[s]:  lo[s] <= alpha[s] <= hi[s], up[s] == 0 iff alpha[s] < hi[s],
    //                      down[s] == 0 iff alpha[s] > lo[s],
    //                      g[s] == y[s] - sum_t alpha[t] K(s, t)
    //            !open[s]: alpha[s] == lo[s] == hi[s] == 0, up[s] and down[s] infinite
    //            extremes are those of g; every open member with alpha == 0 is listed in idle
    // Arrays are padded to whole tiles with closed positions.
    Array<double> alpha, g, lo, hi, up, down;
    std::vector<std::uint8_t> open, listed;  // listed: s stands in `idle`
    std::vector<Index> idle;
    simd::Extremes extremes;
    Index waiting = 0;  // members taken in before a violating pair could exist

    double bias() const {
        if (extremes.both()) return (extremes.g_max + extremes.g_min) / 2;
        return extremes.i != kNone ? extremes.g_max : extremes.j != kNone ? extremes.g_min : 0.0;
    }

    void resize(Index n) {
        for (Array<double>* array : {&alpha, &g, &lo, &hi}) array->resize(usize(n), 0.0);
        up.resize(usize(n), -simd::Extremes::kInfinite);
        down.resize(usize(n), simd::Extremes::kInfinite);
        open.resize(usize(n), 0);
        listed.resize(usize(n), 0);
    }

    // Call after alpha or the box of s changed.
    void refresh(Index s) {
        const std::size_t k = usize(s);
        const bool is_open = open[k] != 0;
        up[k] = is_open && alpha[k] < hi[k] ? 0.0 : -simd::Extremes::kInfinite;
        down[k] = is_open && alpha[k] > lo[k] ? 0.0 : simd::Extremes::kInfinite;
        if (is_open && alpha[k] == 0.0 && !listed[k]) {
            idle.push_back(s);
            listed[k] = 1;
        }
    }

    void find_extremes() {
        extremes = table().extremes(g.data(), up.data(), down.data(), count(g));
    }

    // Position k becomes a copy of position s of another problem.
    void copy(Index k, const Problem& other, Index s) {
        alpha[usize(k)] = other.alpha[usize(s)];
        g[usize(k)] = other.g[usize(s)];
        lo[usize(k)] = other.lo[usize(s)];
        hi[usize(k)] = other.hi[usize(s)];
        open[usize(k)] = other.open[usize(s)];
        refresh(k);
    }

    void compact(const std::vector<Index>& keep) {
        Problem kept;
        kept.resize(padded(count(keep)));
        for (Index k = 0; k < count(keep); ++k) kept.copy(k, *this, keep[usize(k)]);
        kept.waiting = waiting;
        kept.find_extremes();
        *this = std::move(kept);
    }
};

template <class T>
class Dual {
public:
    Dual(Members<T> members_, KernelBlocks<T> kernel_, Index problem_count, Index cache_bytes)
        : members(std::move(members_)), kernel(std::move(kernel_)), cache(cache_bytes),
          problems(usize(problem_count)) {}

    Members<T> members;
    KernelBlocks<T> kernel;
    RowCache cache;
    std::vector<Problem> problems;
    Array<double> diagonal;            // K(s, s), padded
    std::vector<std::int32_t> label;   // class of each member
    std::vector<double> cost;          // its C times its weight
    std::vector<Index> holders;        // how many problems hold it
    Index dead = 0;                    // members that no problem holds
    Stats stats;

    Index size() const { return members.size(); }

    // +1 or -1: the label of an example of class `label` in problem c.
    double sign(Index c, std::int32_t class_index) const {
        return class_index == (count(problems) == 1 ? 1 : static_cast<std::int32_t>(c)) ? 1 : -1;
    }

    // Takes in a new member that no problem holds yet. row[0..size()) are its kernel values with
    // the others; row must have room for its own.
    Index append(const Rows<T>& rows, Index r, const Example& example, float* row) {
        const Index s = members.append(rows, r, example.id);
        if (padded(s + 1) > count(diagonal)) {
            diagonal.resize(usize(padded(s + 1)), 0.0);
            for (Problem& P : problems) P.resize(padded(s + 1));
        }
        diagonal[usize(s)] = kernel.diagonal(rows, r);
        row[s] = static_cast<float>(diagonal[usize(s)]);
        label.push_back(example.label);
        cost.push_back(example.cost);
        holders.push_back(0);
        ++dead;
        return s;
    }

    // Opens the box of s in problem c, with alpha = 0 and gradient g.
    void open(Index c, Index s, double g) {
        Problem& P = problems[usize(c)];
        const double y = sign(c, label[usize(s)]);
        P.alpha[usize(s)] = 0.0;
        P.g[usize(s)] = g;
        P.lo[usize(s)] = std::min(0.0, y * cost[usize(s)]);
        P.hi[usize(s)] = std::max(0.0, y * cost[usize(s)]);
        P.open[usize(s)] = 1;
        P.refresh(s);
        if (y > 0 && g > P.extremes.g_max) P.extremes.i = s, P.extremes.g_max = g;
        if (y < 0 && g < P.extremes.g_min) P.extremes.j = s, P.extremes.g_min = g;
        if (holders[usize(s)]++ == 0) --dead;
        ++stats.inserted;
    }

    // Closes the box of s, which has alpha = 0 and is neither extreme, in problem c.
    void close(Index c, Index s) {
        Problem& P = problems[usize(c)];
        P.open[usize(s)] = 0;
        P.lo[usize(s)] = P.hi[usize(s)] = 0.0;
        P.refresh(s);
        if (--holders[usize(s)] == 0) {
            ++dead;
            cache.drop(s);
            members.forget(s);
        }
        ++stats.removed;
    }

    // K(s, t) for all members t that are not dead, and finite values elsewhere, padded. Good until
    // two more rows have been asked for.
    const float* row(Index s) {
        const Index n = size();
        RowCache::Row& held = cache.take(s, n);
        held.length == 0 ? ++stats.cache_misses : ++stats.cache_hits;
        if (held.length < n) {
            if (held.length < n - kFewColumns || !mirror(held, s, n)) {
                members.extract(s, extracted_);
                fill(extracted_, 0, held.length, held.values.data());
                held.length = n;
            }
        }
        return held.values.data();
    }

    // Keeps `row`, computed elsewhere, as the row of s.
    void keep_row(Index s, const float* row) {
        const Index n = size();
        RowCache::Row& held = cache.take(s, n);
        if (held.length == 0) ++stats.cache_misses;
        std::copy(row + held.length, row + n, held.values.data() + held.length);
        std::fill(held.values.data() + n, held.values.data() + padded(n), 0.0f);
        held.length = n;
    }

    // Between blocks: rows of members at their cost bound, which are seldom asked for again, give
    // up their memory; of the others, those complete for the first `from` members are brought up
    // to date from the rows of the members since.
    void tend_rows(Index from) {
        const Index n = size();
        for (Index s = 0; s < n; ++s) {
            RowCache::Row* held = cache.peek(s);
            if (!held) continue;
            if (is_bounded(s)) cache.drop(s);
            else if (held->length >= from && count(held->values) >= padded(n)) mirror(*held, s, n);
        }
    }

    // row[t] = K(row r of rows, t) for members t from `from` (rounded down to a tile) on.
    void fill(const Rows<T>& rows, Index r, Index from, float* row) {
        for (Index t = from / kLanes; t < tiles_for(size()); ++t)
            kernel.values(rows, r, 1, members.tile(t), scratch_, row + t * kLanes, kLanes);
        stats.kernel_evaluations += size() - from;
    }

    bool wants_compaction() const { return dead >= kLanes && 8 * dead >= size(); }

    // Removes the dead. Positions change: position keep[k] becomes k for the keep returned.
    std::vector<Index> compact() {
        std::vector<Index> keep;
        for (Index s = 0; s < size(); ++s)
            if (holders[usize(s)] > 0) keep.push_back(s);
        for (Index s = 0; s < size(); ++s)
            if (holders[usize(s)] == 0 || is_bounded(s)) cache.drop(s);
        cache.compact(keep);
        members.compact(keep);
        for (Problem& P : problems) P.compact(keep);
        Array<double> diagonal_kept(usize(padded(count(keep))), 0.0);
        for (Index k = 0; k < count(keep); ++k) {
            const std::size_t s = usize(keep[usize(k)]);
            diagonal_kept[usize(k)] = diagonal[s];
            label[usize(k)] = label[s];
            cost[usize(k)] = cost[s];
            holders[usize(k)] = holders[s];
        }
        diagonal = std::move(diagonal_kept);
        label.resize(keep.size());
        cost.resize(keep.size());
        holders.resize(keep.size());
        dead = 0;
        return keep;
    }

    // Fills an empty dual with the members that a saved state describes: their features and, for
    // problem c and member s, alpha, g and whether it is open at [c * n + s]. Statistics are the
    // caller's to set.
    void restore(const Matrix& X, const Example* examples, const double* alpha, const double* g,
                 const std::uint8_t* open_in) {
        const Index n = rows_of(X);
        Rows<T> row;
        std::vector<float> unused(usize(n + 1));
        for (std::int64_t s = 0; s < n; ++s) {
            row.read(X, &s, 1, {});
            append(row, 0, examples[s], unused.data());
        }
        for (Index c = 0; c < count(problems); ++c) {
            for (Index s = 0; s < n; ++s)
                if (open_in[c * n + s]) open(c, s, g[c * n + s]);
            Problem& P = problems[usize(c)];
            for (Index s = 0; s < n; ++s) {
                P.alpha[usize(s)] = alpha[c * n + s];
                P.refresh(s);
            }
            P.find_extremes();
        }
        for (Index s = 0; s < n; ++s)
            if (holders[usize(s)] == 0) members.forget(s);
    }

    // Computes the gradient anew from kernel values and coefficients.
    void regrade() {
        for (Index s = 0; s < size(); ++s) {
            if (holders[usize(s)] == 0) continue;
            const float* k = row(s);
            for (Index c = 0; c < count(problems); ++c) {
                Problem& P = problems[usize(c)];
                P.g[usize(s)] = sign(c, label[usize(s)]) - table().dot(P.alpha.data(), k, count(P.g));
            }
        }
        for (Problem& P : problems) P.find_extremes();
    }

    double objective(Index c) const {
        const Problem& P = problems[usize(c)];
        double sum = 0;
        for (Index s = 0; s < size(); ++s)
            if (P.alpha[usize(s)] != 0)
                sum += P.alpha[usize(s)] * (sign(c, label[usize(s)]) + P.g[usize(s)]);
        return sum / 2;
    }

    // Throws std::logic_error, naming it, if an INVARIANT does not hold; `tolerance` bounds the
    // error of g. Cost: size()^2 kernel values.
    void check(double tolerance);

private:
    static constexpr Index kFewColumns = 512;  // more are quicker computed than collected

    // K(s, t) = K(t, s): completes a row from the rows of the members it lacks, if they are held.
    bool mirror(RowCache::Row& held, Index s, Index n) {
        float* values = held.values.data();
        for (; held.length < n; ++held.length) {
            const RowCache::Row* other = cache.peek(held.length);
            const bool known = other && other->length > s;
            if (!known && holders[usize(held.length)] > 0) return false;
            values[held.length] = known ? other->values[usize(s)] : 0.0f;  // the dead do not count
        }
        std::fill(values + n, values + padded(n), 0.0f);
        return true;
    }

    // At C in every problem that holds it.
    bool is_bounded(Index s) const {
        return std::all_of(problems.begin(), problems.end(), [&](const Problem& P) {
            const bool at_side = P.up[usize(s)] != 0 || P.down[usize(s)] != 0;
            return !P.open[usize(s)] || (at_side && P.alpha[usize(s)] != 0.0);
        });
    }

    Scratch<T> scratch_;
    Rows<T> extracted_;
};

template <class T>
void Dual<T>::check(double tolerance) {
    const auto require = [](bool holds, const char* what) {
        if (!holds) throw std::logic_error(std::string("invariant broken: ") + what);
    };
    Index dead_now = 0;
    for (Index s = 0; s < size(); ++s) {
        const bool is_dead = holders[usize(s)] == 0;
        require(is_dead || members.find(members.ids[usize(s)]) == s, "find(ids[s]) == s");
        dead_now += is_dead;
    }
    require(dead_now == dead, "dead counts members that no problem holds");
    Array<float> k(usize(padded(size())));
    Rows<T> row;
    std::vector<double> sums(problems.size(), 0.0);
    for (Index s = 0; s < size(); ++s) {
        members.extract(s, row);
        for (Index t = 0; t < tiles_for(size()); ++t)
            kernel.values(row, 0, 1, members.tile(t), scratch_, k.data() + t * kLanes, kLanes);
        require(static_cast<double>(k[usize(s)]) == diagonal[usize(s)], "diagonal[s] == K(s, s)");
        Index held_by = 0;
        for (Index c = 0; c < count(problems); ++c) {
            const Problem& P = problems[usize(c)];
            const double a = P.alpha[usize(s)], lo = P.lo[usize(s)], hi = P.hi[usize(s)];
            sums[usize(c)] += a;
            held_by += P.open[usize(s)];
            if (!P.open[usize(s)]) {
                require(a == 0 && lo == 0 && hi == 0, "closed members have alpha = lo = hi = 0");
                require(P.up[usize(s)] != 0 && P.down[usize(s)] != 0, "closed members do not move");
                continue;
            }
            require(lo <= a && a <= hi, "lo <= alpha <= hi");
            require((P.up[usize(s)] == 0) == (a < hi), "up == 0 iff alpha < hi");
            require((P.down[usize(s)] == 0) == (a > lo), "down == 0 iff alpha > lo");
            require(a != 0 || P.listed[usize(s)], "alpha == 0 is listed in idle");
            const double f = table().dot(P.alpha.data(), k.data(), padded(size()));
            const double error = std::abs(P.g[usize(s)] - (sign(c, label[usize(s)]) - f));
            require(error <= tolerance, "g[s] == y[s] - sum_t alpha[t] K(s, t)");
        }
        require(held_by == holders[usize(s)], "holders[s] counts the problems that hold s");
    }
    for (Index c = 0; c < count(problems); ++c) {
        const Problem& P = problems[usize(c)];
        const simd::Extremes now =
            table().extremes(P.g.data(), P.up.data(), P.down.data(), count(P.g));
        require(now.i == P.extremes.i && now.j == P.extremes.j, "extremes are those of g");
        require(std::abs(sums[usize(c)]) <= tolerance, "sum of alpha == 0");
    }
}

}  // namespace marginwise
