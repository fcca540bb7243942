// LASVM: online support vector machines [bordes2005, section 3].
//
//   paper        here                         paper        here
//   S            open places of a problem     A, B         lo, hi
//   alpha, g     Problem::alpha, Problem::g   delta, b     extremes.delta(), bias()
//   tau          Settings::tau                k            example r of a block
//
// DEPARTS: PROCESS judges an example before it is inserted, so that one which makes no violating
//          pair never enters; the paper inserts it and lets REPROCESS evict it.
// DEPARTS: while the extreme that an example would pair with does not exist (a stream that starts
//          with one class), the example is inserted and waits, up to kMostWaiting a problem.
// DEPARTS: REPROCESS never evicts the two members that are the extremes.
// DEPARTS: finishing chooses pairs by second order [fan2005]; the online steps by first order.
#pragma once

#include "marginwise/active_set.hpp"
#include "marginwise/block.hpp"
#include "marginwise/decision.hpp"
#include "marginwise/gap.hpp"
#include "marginwise/select.hpp"

namespace marginwise {

constexpr Index kByGap = -1;

struct LasvmSettings {
    double tau = 1e-3;
    Index reprocess = 1;          // REPROCESS steps after a PROCESS; kByGap: see by_gap()
    bool reprocess_each = false;  // after every example, not only after those that were inserted
    double delta_max = -1.0;      // repeat REPROCESS until delta <= delta_max; negative: do not
    double norm_limit = 1e300;    // largest |x|^2 that the precision of T is good for
    Index threads = 1;
};

template <class T>
class Lasvm {
  public:
    static constexpr Index kMostWaiting = 1024;

    Lasvm(Dual<T> dual, LasvmSettings settings, Origin origin)
        : D(std::move(dual)), settings_(settings), origin_(std::move(origin)) {}
    Lasvm(const Lasvm&) = delete;
    Lasvm& operator=(const Lasvm&) = delete;

    Dual<T> D;

    // Learns rows order[0..n) of the batch, one at a time and in that order, until `seconds` have
    // passed or a row is beyond norm_limit; returns how many were learned. The model depends on the
    // sequence of examples alone, not on how it is cut into calls.
    Index learn(const Batch& batch, const std::int64_t* order, Index n, double seconds);

    // Starts a pass in which the best of each pool is learned and the others are left alone.
    // seen[c * examples + id], where 1, tells that problem c has learned example `id` before; it is
    // set for those learned now, and must outlive the pass.
    void begin_pass(const Choice& choice, std::uint8_t* seen, Index examples);

    // Looks at rows order[0..n) of the batch as learn() does, learning those chosen.
    Index select(const Batch& batch, const std::int64_t* order, Index n, double seconds);

    // Learns the best of pools that are not complete.
    void end_pass();

    // Repeats REPROCESS until delta <= tau, or until `seconds` have passed; tells whether it is
    // done. Then the members that no problem needs are removed. Unless it is done, the state is not
    // to be looked at before finish() is called again or settle().
    bool finish(double tau, double seconds);

    // Ends a finishing that is not done.
    void settle();

    // out[r * problems + c] = f_c(x_r), for the rows of a sample.
    void decision(const Sample& sample, double* out) const {
        require_width(sample.X);
        decide(D, origin_, threads(), sample, out);
    }

    // Rows in the form of members, for add_expansion().
    Members<T> lay_out(const Matrix& X) const;

    // out[r * problems + c] += sum_m coefficients[c * centres + m] K(centre m, x_r), for all rows
    // that were laid out: how decision values change with the coefficients of a few examples.
    void add_expansion(const Matrix& centres, const double* coefficients, const Members<T>& laid,
                       double* out) const;

    // Whether the last call stopped at a row beyond norm_limit.
    bool beyond() const { return beyond_; }

  private:
    Index threads() const { return D.kernel.is_callable() ? 1 : settings_.threads; }
    void require_width(const Matrix& X) const {
        if (cols_of(X) != D.members.features())
            throw std::invalid_argument("rows are not as wide as the members");
    }
    bool process(Index c, const Example& example, Block<T>& block, Index r, Index& s);
    bool reprocess(Index c);
    void evict(Index c);
    void by_gap(Index c, double target);
    Index ready(const Example& example, Block<T>& block, Index r);
    void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s);
    void learn_example(const Example& example, Block<T>& block, Index r);
    void look_at(const Batch& batch, Block<T>& block, Index r);
    void learn_best(Index c);
    void mark_seen(Index c, std::int64_t id) { seen_[c * examples_ + id] = 1; }
    Keep compact();
    Index room(Index rows) const;
    template <class Use>
    Index walk(const Batch& batch, const std::int64_t* order, Index n, double seconds, Use use);

    LasvmSettings settings_;
    Origin origin_;
    Block<T> blocks_[2];
    bool beyond_ = false;
    std::unique_ptr<Finishing<T>> finishing_;
    Choice choice_;
    std::vector<Pool<T>> pools_;  // one a problem, during a pass
    std::uint8_t* seen_ = nullptr;
    Index examples_ = 0;
};

// LASVM PROCESS(k) in problem c; the example is row r of the block. `s` is its position among the
// members, or kNone; set where it becomes a member. Tells whether alpha changed.
template <class T>
bool Lasvm<T>::process(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    Share& S = D.shares[usize(c)];
    if (s != kNone && S.place[usize(s)] != kNone) return false;  // 1
    const double y = D.sign(c, example.label);
    const double f = table().dot(S.weight.data(), block.row(r), count(S.weight));
    const double g = y - f;  // 2
    const simd::Extremes& e = S.P.extremes;
    const Index partner = y > 0 ? e.j : e.i;  // 3
    const bool waits = partner == kNone;
    const double gap = y > 0 ? g - e.g_min : e.g_max - g;
    if (waits ? S.waiting >= kMostWaiting : gap <= settings_.tau) return false;  // 4
    ++D.stats.process;
    if (s == kNone) {
        s = D.append(block.rows, r, example, block.row(r));
        block.valid[usize(r)] = D.size();
    }
    const Index k = D.open(c, s, g, block.row(r));
    if (waits) {
        ++S.waiting;
        return false;
    }
    y > 0 ? move_pair(D, c, k, partner) : move_pair(D, c, partner, k);  // 5
    return true;
}

// LASVM REPROCESS in problem c. Tells whether alpha changed.
template <class T>
bool Lasvm<T>::reprocess(Index c) {
    const simd::Extremes e = D.problem(c).extremes;             // 1
    if (!e.both() || e.delta() <= settings_.tau) return false;  // 2
    ++D.stats.reprocess;
    move_pair(D, c, e.i, e.j);  // 3
    evict(c);                   // 4
    return true;                // 5: bias()
}

// REPROCESS, step 4: blatant non support vectors leave the problem.
template <class T>
void Lasvm<T>::evict(Index c) {
    Problem& P = D.problem(c);
    const simd::Extremes e = P.extremes;
    if (!e.both()) return;
    const auto stays = [&](Index k) {
        if (!P.open[usize(k)] || P.alpha[usize(k)] != 0.0) return false;  // idle no more
        const double g = P.g[usize(k)];
        const bool may_pair = P.hi[usize(k)] > 0.0 ? g > e.g_min : g < e.g_max;
        if (k == e.i || k == e.j || may_pair) return true;
        D.close(c, k);
        return false;
    };
    Index kept = 0;
    for (const Index k : P.idle) {
        if (stays(k))
            P.idle[usize(kept++)] = k;
        else
            P.listed[usize(k)] = 0;
    }
    P.idle.resize(usize(kept));
}

// REPROCESS until the gap is within its target, as LASVM-G does [ertekin2011].
template <class T>
void Lasvm<T>::by_gap(Index c, double target) {
    while (gap_of(D.problem(c)) > target && reprocess(c)) {
    }
}

// Brings the kernel values of row r up to the members taken in since they were computed. Returns
// the position of the example among the members, or kNone.
template <class T>
Index Lasvm<T>::ready(const Example& example, Block<T>& block, Index r) {
    if (block.valid[usize(r)] < D.size()) {
        D.fill(block.rows, r, block.valid[usize(r)], block.row(r));
        block.valid[usize(r)] = D.size();
    }
    const Index s = D.members.find(example.id);
    if (s != kNone) D.stand_for(s, block.rows, r, block.row(r));
    return s;
}

// PROCESS and what follows it, in one problem. `s` as in process().
template <class T>
void Lasvm<T>::learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    const bool gaps = settings_.reprocess == kByGap;
    const double target = gaps ? gap_target(D.problem(c)) : 0.0;
    const bool processed = process(c, example, block, r, s);
    if (!processed && !settings_.reprocess_each) return;
    if (gaps) by_gap(c, std::max(example.cost, target));
    for (Index n = 0; n < settings_.reprocess && reprocess(c); ++n) {
    }
    if (settings_.delta_max >= 0)
        while (D.problem(c).extremes.delta() > settings_.delta_max && reprocess(c)) {
        }
    D.tidy(c);
}

template <class T>
void Lasvm<T>::learn_example(const Example& example, Block<T>& block, Index r) {
    Index s = ready(example, block, r);
    for (Index c = 0; c < D.problems(); ++c) learn_in(c, example, block, r, s);
}

// An example is offered to the pool of each problem that has not learned it. A problem that cannot
// judge examples yet, because no pair exists in it, learns them as they come.
template <class T>
void Lasvm<T>::look_at(const Batch& batch, Block<T>& block, Index r) {
    const Example example = batch.example(block.source[usize(r)]);
    ready(example, block, r);
    ++D.stats.sampled;
    for (Index c = 0; c < D.problems(); ++c) {
        if (seen_[c * examples_ + example.id]) continue;
        const Share& S = D.shares[usize(c)];
        if (!S.P.extremes.both()) {
            Index s = ready(example, block, r);
            learn_in(c, example, block, r, s);
            mark_seen(c, example.id);
            ++D.stats.chosen;
            continue;
        }
        const double f = table().dot(S.weight.data(), block.row(r), count(S.weight)) + S.P.bias();
        const bool inside = std::abs(f) < 1 + S.P.extremes.delta() / 2;
        Pool<T>& pool = pools_[usize(c)];
        if (pool.sample(choice_.score(D.sign(c, example.label), f), inside))
            pool.keep(batch, block, r, origin_);
        if (pool.complete(choice_)) learn_best(c);
    }
}

template <class T>
void Lasvm<T>::learn_best(Index c) {
    Pool<T>& pool = pools_[usize(c)];
    pool.clear();
    pool.best.set_room(D.size());
    Index s = ready(pool.example, pool.best, 0);
    learn_in(c, pool.example, pool.best, 0, s);
    mark_seen(c, pool.example.id);
    ++D.stats.chosen;
}

template <class T>
void Lasvm<T>::begin_pass(const Choice& choice, std::uint8_t* seen, Index examples) {
    choice_ = choice;
    seen_ = seen;
    examples_ = examples;
    pools_ = std::vector<Pool<T>>(usize(D.problems()));
}

template <class T>
void Lasvm<T>::end_pass() {
    for (Index c = 0; c < count(pools_); ++c)
        if (!pools_[usize(c)].empty()) learn_best(c);
    pools_.clear();
    seen_ = nullptr;
}

template <class T>
Index Lasvm<T>::learn(const Batch& batch, const std::int64_t* order, Index n, double seconds) {
    return walk(batch, order, n, seconds, [&](Block<T>& block, Index r) {
        learn_example(batch.example(block.source[usize(r)]), block, r);
    });
}

template <class T>
Index Lasvm<T>::select(const Batch& batch, const std::int64_t* order, Index n, double seconds) {
    return walk(batch, order, n, seconds,
                [&](Block<T>& block, Index r) { look_at(batch, block, r); });
}

template <class T>
Keep Lasvm<T>::compact() {
    const Keep keep = D.compact();
    for (Pool<T>& pool : pools_) pool.best.compact(keep, 0);
    return keep;
}

// How many members there may be after `rows` more examples. A problem takes in one for each pool it
// completes, and the first of these may have begun before.
template <class T>
Index Lasvm<T>::room(Index rows) const {
    const Index picks = pools_.empty() ? 0 : D.problems() * (1 + rows / choice_.least());
    return D.size() + rows + picks;
}

// Calls use(block, r) for rows order[0..n) of the batch, their kernel values computed ahead.
template <class T>
template <class Use>
Index Lasvm<T>::walk(const Batch& batch, const std::int64_t* order, Index n, double seconds,
                     Use use) {
    require_width(batch.X);
    const Stopwatch whole(D.stats.learn_seconds);
    const Deadline deadline(seconds);
    Crew crew(threads());
    BlockProduct<T> product(D, crew);
    Index read = 0, learned = 0;
    beyond_ = false;
    const auto read_next = [&](Block<T>& block) {
        const Index rows = std::min(n - read, Block<T>::rows_for(D.size()));
        const Index most = room(2 * Block<T>::rows_for(D.size()));  // the block under way, and this
        block.read(batch, order + read, rows, origin_, most);
        const Index within = block.rows_within(settings_.norm_limit);
        if (within < rows) {
            beyond_ = true;
            n = read + within;
            block.read(batch, order + read, within, origin_, most);
        }
        read += within;
    };
    Block<T>* now = &blocks_[0];
    Block<T>* next = &blocks_[1];
    read_next(*now);
    while (true) {
        {
            const Stopwatch phase(D.stats.product_seconds);
            product.finish(*now);
        }
        const bool more = read < n && !deadline.passed();
        if (more) {
            read_next(*next);
            product.start(*next);
        }
        for (Index r = 0; r < now->size(); ++r) {
            use(*now, r);
            ++learned;
            if (!D.wants_compaction()) continue;
            product.wait();
            const Keep keep = compact();
            now->compact(keep, r + 1);
            if (more) next->compact(keep, 0);
        }
        if (!more) return learned;
        for (Share& share : D.shares) share.tend_rows();
        std::swap(now, next);
    }
}

template <class T>
Members<T> Lasvm<T>::lay_out(const Matrix& X) const {
    require_width(X);
    Members<T> laid(D.members.features(), D.members.sparse());
    Rows<T> row;
    for (std::int64_t r = 0; r < rows_of(X); ++r) {
        row.read(X, &r, 1, origin_);
        laid.append(row, 0, r);
    }
    return laid;
}

template <class T>
void Lasvm<T>::add_expansion(const Matrix& centres, const double* coefficients,
                             const Members<T>& laid, double* out) const {
    require_width(centres);
    expand_over(D.kernel, centres, {coefficients, D.problems()}, origin_, threads(), laid, out);
}

template <class T>
bool Lasvm<T>::finish(double tau, double seconds) {
    const Stopwatch whole(D.stats.finish_seconds);
    const Deadline deadline(seconds);
    if (!finishing_) finishing_ = std::make_unique<Finishing<T>>(D);
    for (Index c; (c = finishing_->next(tau, deadline)) != D.problems();) {
        if (c == kNone) return false;
        evict(c);
        if (D.problems() > 1) D.shares[usize(c)].compact();
    }
    finishing_.reset();
    if (D.dead > 0) compact();
    return true;
}

template <class T>
void Lasvm<T>::settle() {
    if (finishing_) finishing_->settle();
    finishing_.reset();
}

}  // namespace marginwise
