// A learner: what all algorithms share that learn a stream of examples one at a time.
//
// Examples come in blocks whose kernel values are computed ahead. An algorithm derives from Learner
// and says, in learn_in(), what one example does to one binary problem.
#pragma once

#include "marginwise/block.hpp"
#include "marginwise/clock.hpp"
#include "marginwise/decision.hpp"
#include "marginwise/gap.hpp"
#include "marginwise/select.hpp"

namespace marginwise {

struct LearnerSettings {
    Origin origin{};
    double norm_limit = 1e300;  // largest |x|^2 that the precision of T is good for
    Index threads = 1;
    bool record = false;  // keep a Record of every example and problem
};

// Where a problem stood after an example.
struct Record {
    double gap;
    Index members;
    std::int64_t kernel_evaluations;
};

template <class T>
class Learner {
  public:
    Learner(Dual<T> dual, LearnerSettings settings)
        : D(std::move(dual)), settings_(std::move(settings)) {}
    virtual ~Learner() = default;
    Learner(const Learner&) = delete;
    Learner& operator=(const Learner&) = delete;

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

    // Settles the members to within tau, where the algorithm has a finishing, or until `seconds`
    // have passed; tells whether it is done. Unless it is, the state is not to be looked at before
    // finish() is called again or settle().
    virtual bool finish(double, double) { return true; }

    // Ends a finishing that is not done.
    virtual void settle() {}

    // out[r * problems + c] = f_c(x_r), for the rows of a sample.
    void decision(const Sample& sample, double* out) const;

    // Rows in the form of members, for add_expansion().
    Members<T> lay_out(const Matrix& X) const;

    // out[r * problems + c] += sum_m coefficients[c * centres + m] K(centre m, x_r), for all rows
    // that were laid out: how decision values change with the coefficients of a few examples.
    void add_expansion(const Matrix& centres, const double* coefficients, const Members<T>& laid,
                       double* out) const;

    // out[r] = K(x_r, x_r).
    void diagonal(const Matrix& X, double* out) const;

    // The coefficients that decide, by member: those of problem c, or what they average to.
    virtual Array<double> output(Index c) const { return D.shares[usize(c)].weight; }

    // How far from exact problem c may be, which widens its margin.
    virtual double slack(Index) const { return 0.0; }

    // Whether problem c can tell good examples from bad.
    virtual bool judges(Index) const { return true; }

    // What else is to be remembered of problem c: counts first, `counts()` of them, then numbers.
    virtual std::vector<double> notes(Index) const { return {}; }
    virtual void set_notes(Index, const double*) {}

    // Throws if an invariant does not hold (for tests).
    virtual void check(double tolerance) { D.check(tolerance); }

    // Whether the last call stopped at a row beyond norm_limit.
    bool beyond() const { return beyond_; }

    // What was recorded since the last call, example by example, problem by problem.
    std::vector<Record> take_records() { return std::exchange(records_, {}); }

  protected:
    // Learns an example, which is row r of the block, in problem c. `s` is its position among the
    // members, or kNone; to be set where it becomes a member.
    virtual void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) = 0;

    // f_c of an example by its kernel values with the members, without the bias.
    virtual double expansion(Index c, const float* row) const { return raw_expansion(c, row); }
    double raw_expansion(Index c, const float* row) const {
        const Array<double>& weight = D.shares[usize(c)].weight;
        return table().dot(weight.data(), row, count(weight));
    }

    // The primal-dual gap of problem c over its members.
    virtual double gap(Index c) const { return gap_of(D.shares[usize(c)].P); }

    // Gives row r of the block a place in problem c, and makes it a member if it is none.
    Index insert(Index c, const Example& example, Block<T>& block, Index r, Index& s, double g,
                 Box box = Box::usual) {
        if (s == kNone) {
            s = D.append(block.rows, r, example, block.row(r));
            block.valid[usize(r)] = D.size();
        }
        return D.open(c, s, g, block.row(r), box);
    }
    bool holds(Index c, Index s) const {
        return s != kNone && D.shares[usize(c)].place[usize(s)] != kNone;
    }

    // Removes the members that no problem holds.
    Keep compact();

    Index threads() const { return D.kernel.is_callable() ? 1 : settings_.threads; }

  private:
    void require_width(const Matrix& X) const {
        if (cols_of(X) != D.members.features())
            throw std::invalid_argument("rows are not as wide as the members");
    }
    Index ready(const Example& example, Block<T>& block, Index r);
    void learn_example(const Example& example, Block<T>& block, Index r);
    void look_at(const Batch& batch, Block<T>& block, Index r);
    void learn_best(Index c);
    void mark_seen(Index c, std::int64_t id) { seen_[c * examples_ + id] = 1; }
    void record();
    Index room(Index rows) const;
    template <class Use>
    Index walk(const Batch& batch, const std::int64_t* order, Index n, double seconds, Use use);

    LearnerSettings settings_;
    Block<T> blocks_[2];
    bool beyond_ = false;
    std::vector<Record> records_;
    Choice choice_;
    std::vector<Pool<T>> pools_;  // one a problem, during a pass
    std::uint8_t* seen_ = nullptr;
    Index examples_ = 0;
};

// Brings the kernel values of row r up to the members taken in since they were computed. Returns
// the position of the example among the members, or kNone.
template <class T>
Index Learner<T>::ready(const Example& example, Block<T>& block, Index r) {
    if (block.valid[usize(r)] < D.size()) {
        D.fill(block.rows, r, block.valid[usize(r)], block.row(r));
        block.valid[usize(r)] = D.size();
    }
    const Index s = D.members.find(example.id);
    if (s != kNone) D.stand_for(s, block.rows, r, block.row(r));
    return s;
}

template <class T>
void Learner<T>::learn_example(const Example& example, Block<T>& block, Index r) {
    Index s = ready(example, block, r);
    for (Index c = 0; c < D.problems(); ++c) {
        learn_in(c, example, block, r, s);
        D.tidy(c);
    }
}

// An example is offered to the pool of each problem that has not learned it. A problem that cannot
// judge examples yet learns them as they come.
template <class T>
void Learner<T>::look_at(const Batch& batch, Block<T>& block, Index r) {
    const Example example = batch.example(block.source[usize(r)]);
    ready(example, block, r);
    ++D.stats.sampled;
    for (Index c = 0; c < D.problems(); ++c) {
        if (seen_[c * examples_ + example.id]) continue;
        if (!judges(c)) {
            Index s = ready(example, block, r);
            learn_in(c, example, block, r, s);
            D.tidy(c);
            mark_seen(c, example.id);
            ++D.stats.chosen;
            continue;
        }
        const double f = expansion(c, block.row(r)) + D.problem(c).bias();
        const bool inside = std::abs(f) < 1 + slack(c) / 2;
        Pool<T>& pool = pools_[usize(c)];
        if (pool.sample(choice_.score(D.sign(c, example.label), f), inside))
            pool.keep(batch, block, r, settings_.origin);
        if (pool.complete(choice_)) learn_best(c);
    }
}

template <class T>
void Learner<T>::learn_best(Index c) {
    Pool<T>& pool = pools_[usize(c)];
    pool.clear();
    pool.best.set_room(D.size());
    Index s = ready(pool.example, pool.best, 0);
    learn_in(c, pool.example, pool.best, 0, s);
    D.tidy(c);
    mark_seen(c, pool.example.id);
    ++D.stats.chosen;
}

template <class T>
void Learner<T>::record() {
    if (!settings_.record) return;
    for (Index c = 0; c < D.problems(); ++c)
        records_.push_back({gap(c), D.problem(c).members(), D.stats.kernel_evaluations});
}

template <class T>
void Learner<T>::begin_pass(const Choice& choice, std::uint8_t* seen, Index examples) {
    choice_ = choice;
    seen_ = seen;
    examples_ = examples;
    pools_ = std::vector<Pool<T>>(usize(D.problems()));
}

template <class T>
void Learner<T>::end_pass() {
    for (Index c = 0; c < count(pools_); ++c)
        if (!pools_[usize(c)].empty()) learn_best(c);
    pools_.clear();
    seen_ = nullptr;
}

template <class T>
Index Learner<T>::learn(const Batch& batch, const std::int64_t* order, Index n, double seconds) {
    return walk(batch, order, n, seconds, [&](Block<T>& block, Index r) {
        learn_example(batch.example(block.source[usize(r)]), block, r);
    });
}

template <class T>
Index Learner<T>::select(const Batch& batch, const std::int64_t* order, Index n, double seconds) {
    return walk(batch, order, n, seconds,
                [&](Block<T>& block, Index r) { look_at(batch, block, r); });
}

template <class T>
Keep Learner<T>::compact() {
    const Keep keep = D.compact();
    for (Pool<T>& pool : pools_) pool.best.compact(keep, 0);
    return keep;
}

// How many members there may be after `rows` more examples. A problem takes in one for each pool it
// completes, and the first of these may have begun before.
template <class T>
Index Learner<T>::room(Index rows) const {
    const Index picks = pools_.empty() ? 0 : D.problems() * (1 + rows / choice_.least());
    return D.size() + rows + picks;
}

// Calls use(block, r) for rows order[0..n) of the batch, their kernel values computed ahead.
template <class T>
template <class Use>
Index Learner<T>::walk(const Batch& batch, const std::int64_t* order, Index n, double seconds,
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
        block.read(batch, order + read, rows, settings_.origin, most);
        const Index within = block.rows_within(settings_.norm_limit);
        if (within < rows) {
            beyond_ = true;
            n = read + within;
            block.read(batch, order + read, within, settings_.origin, most);
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
            record();
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
void Learner<T>::decision(const Sample& sample, double* out) const {
    require_width(sample.X);
    std::vector<Array<double>> weight;
    for (Index c = 0; c < D.problems(); ++c) weight.push_back(output(c));
    decide(D, weight, settings_.origin, threads(), sample, out);
}

template <class T>
Members<T> Learner<T>::lay_out(const Matrix& X) const {
    require_width(X);
    Members<T> laid(D.members.features(), D.members.sparse());
    Rows<T> row;
    for (std::int64_t r = 0; r < rows_of(X); ++r) {
        row.read(X, &r, 1, settings_.origin);
        laid.append(row, 0, r);
    }
    return laid;
}

template <class T>
void Learner<T>::add_expansion(const Matrix& centres, const double* coefficients,
                               const Members<T>& laid, double* out) const {
    require_width(centres);
    expand_over(D.kernel, centres, {coefficients, D.problems()}, settings_.origin, threads(), laid,
                out);
}

template <class T>
void Learner<T>::diagonal(const Matrix& X, double* out) const {
    require_width(X);
    Rows<T> row;
    for (std::int64_t r = 0; r < rows_of(X); ++r) {
        row.read(X, &r, 1, settings_.origin);
        out[r] = D.kernel.diagonal(row, 0);
    }
}

}  // namespace marginwise
