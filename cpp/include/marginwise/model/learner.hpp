// The base class of algorithms that learn a stream one example at a time.
//
// Examples are processed in blocks whose kernel values are computed ahead. An algorithm derives
// from Learner and defines learn_in(), the update of one binary problem for one example.
#pragma once

#include "marginwise/model/budget.hpp"
#include "marginwise/model/model.hpp"
#include "marginwise/model/window.hpp"
#include "marginwise/predict/class_weights.hpp"

namespace marginwise {

template <class T>
class Learner : public Model<T> {
  public:
    using Model<T>::D;
    // For calls with at most this many rows, memory is reserved before any row is learned.
    static constexpr Index kFewRows = 32;

    Learner(Dual<T> dual, ModelSettings settings)
        : Model<T>(std::move(dual), std::move(settings)), budget_(settings_.budget) {
        D.sleeps = !budget_.limited();
    }
    // A copy does not continue a pass in progress.
    Learner(const Learner& other) : Model<T>(other), budget_(other.budget_) {}

    Index learn(const Batch& batch, const std::int64_t* order, Index n, double seconds) override {
        return learn_wanted(batch, order, nullptr, n, seconds);
    }
    Index learn_wanted(const Batch& batch, const std::int64_t* order, const std::uint8_t* wanted,
                       Index n, double seconds) override;
    Index learn_ahead(const Batch& batch, const std::int64_t* order, Index n, const Look& look,
                      double seconds) override;
    bool adopt(const Batch& batch, const std::int64_t* order, Index n) override;
    void begin_pass(const Choice& choice, std::uint8_t* seen, Index examples) override;
    Index select(const Batch& batch, const std::int64_t* order, Index n, double seconds) override;
    void end_pass() override;

  protected:
    using Model<T>::beyond_;
    using Model<T>::judges;
    using Model<T>::require_width;
    using Model<T>::settings_;
    using Model<T>::slack;
    using Model<T>::threads;

    // Learns an example, which is row r of the block, in problem c. `s` is its position among the
    // members, or kNone; the algorithm must set it if the example becomes a member.
    virtual void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) = 0;

    // Whether the algorithm learns windows of examples. If so, judge() adds the violators among the
    // rows of a block to the window. For the other rows it writes their distance from violating,
    // the least over all problems. learn_window() learns the window.
    virtual bool looks_ahead() const { return false; }
    virtual void judge(const Batch&, Block<T>&, const Look&, ThreadPool&) {}
    virtual void learn_window(const Batch&, ThreadPool&) {}

    // f_c of an example without the bias, given its kernel values with the members.
    virtual double expansion(Index c, const float* row) const { return raw_expansion(c, row); }
    double raw_expansion(Index c, const float* row) const {
        const Array<double>& weight = D.subproblems[c].weight;
        return table().dot(weight.data(), row, weight.size());
    }

    // f_c of all rows of a block, without the bias, at [r * problems + c].
    Array<double> expansions(const Block<T>& block, ThreadPool& workers) const;

    // The primal-dual gap of problem c over its members.
    virtual double gap(Index c) const { return gap_of(D.subproblems[c].P); }

    // Records f_c, bias included, of an example that is new to the model.
    void note_foreseen(Index c, const Example& example, double f) {
        D.subproblems[c].foresight.add(f, D.sign(c, example.label) * example.weight);
    }

    // Opens a place in problem c for row r of the block, and makes it a member if it is not one.
    // Returns the place.
    Index insert(Index c, const Example& example, Block<T>& block, Index r, Index& s, double g,
                 Box box = Box::usual) {
        if (s == kNone) {
            const double k_xx = D.diagonal_of(block.rows, r);
            const double cost = budget_.cost(D, example.cost, k_xx);
            s = D.append(block.rows, r, {example.id, example.label, cost}, k_xx);
            block.row(r)[s] = static_cast<float>(k_xx);
            block.valid[r] = D.size();
        }
        return D.open(c, s, g, block.row(r), box);
    }
    bool holds(Index c, Index s) const { return s != kNone && D.subproblems[c].holds(s); }
    Index ready(const Example& example, Block<T>& block, Index r);

    // Removes the members that no problem holds.
    Compaction compact();
    bool wants_compaction() const {
        return D.wants_compaction() || (D.dead > 0 && settings_.budget > 0);
    }

    // Recomputes the extremes, and whatever else the algorithm derives from gradients and boxes,
    // after all of them in problem c have changed.
    virtual void find_extremes(Index c) { D.problem(c).find_extremes(); }

    const FeatureScaling& scaling() const { return settings_.scaling; }

    Window window_;
    Budget<T> budget_;
    bool adopted_ = false;  // all members were adopted, and no problem has been worked on yet

  private:
    static constexpr double kBlockSeconds = 0.25;  // time that a block may exceed the limit by

    // Rows order[0..n) of a batch. The first `read` have been read into blocks.
    struct Queue {
        const Batch& batch;
        const std::int64_t* order;
        Index n;
        Index read = 0;
        Index learned = 0;
    };

    void learn_example(const Example& example, Block<T>& block, Index r,
                       const std::uint8_t* wanted);
    void look_at(const Batch& batch, Block<T>& block, Index r);
    void keep_budget();
    void learn_best(Index c);
    void mark_seen(Index c, std::int64_t id) { seen_[c * examples_ + id] = 1; }
    void record();
    Index room(Index rows) const;
    void read_block(Queue& queue, Block<T>& block, Index most_rows);
    void compact_blocks(Block<T>& now, Index first, Block<T>* next);
    template <class Use>
    bool use_rows(Queue& queue, Block<T>& now, Block<T>* next, BlockProduct<T>& product,
                  const Deadline& late, Use& use);
    template <class Use>
    Index walk(const Batch& batch, const std::int64_t* order, Index n, double seconds, Use use);

    Block<T> blocks_[2];
    Choice choice_;
    Vector<Pool<T>> pools_;  // one per problem, during a pass
    std::uint8_t* seen_ = nullptr;
    Index examples_ = 0;
};

// Completes the kernel values of row r for the members added since they were computed. Returns the
// position of the example among the members, or kNone.
template <class T>
Index Learner<T>::ready(const Example& example, Block<T>& block, Index r) {
    if (block.valid[r] < D.size()) {
        D.fill(block.rows, r, block.valid[r], block.row(r));
        block.valid[r] = D.size();
    }
    const Index s = D.members.find(example.id);
    if (s != kNone) D.stand_for(s, block.rows, r, block.row(r));
    return s;
}

template <class T>
Array<double> Learner<T>::expansions(const Block<T>& block, ThreadPool& workers) const {
    const Index rows = block.size(), problems = D.problems();
    Array<double> f(rows * problems, 0.0);
    if (problems == 1) {
        workers.run(rows, [&](Index r, Index) { f[r] = raw_expansion(0, block.row(r)); });
        return f;
    }
    const ClassWeights class_weights(problems, D.size(),
                                     [&](Index c, auto use) { D.subproblems[c].each_weight(use); });
    workers.run((rows + kLanes - 1) / kLanes, [&](Index task, Index) {
        const Index first = task * kLanes, count = std::min(kLanes, rows - first);
        ClassWeights::Sums sums(class_weights);
        for (Index t = 0; t < tiles_for(D.size()); ++t)
            sums.add(t, block.row(first) + t * kLanes, block.stride, count);
        sums.add_to(&f[first * problems], count);
    });
    return f;
}

// Learns row r in all problems that involve its class; if `wanted` is not null, only in those that
// it flags.
template <class T>
void Learner<T>::learn_example(const Example& example, Block<T>& block, Index r,
                               const std::uint8_t* wanted) {
    Index s = ready(example, block, r);
    for (Index c = 0; c < D.problems(); ++c) {
        if ((wanted && !wanted[c]) || D.sign(c, example.label) == 0) continue;
        if (example.weight > 0 && judges(c) && !holds(c, s))
            note_foreseen(c, example, expansion(c, block.row(r)) + D.problem(c).bias());
        learn_in(c, example, block, r, s);
        D.tidy(c);
    }
    keep_budget();
}

// Makes room for the next example if the budget is reached.
template <class T>
void Learner<T>::keep_budget() {
    if (!budget_.reached(D)) return;
    budget_.make_room(D);
    for (Index c = 0; c < D.problems(); ++c) {
        find_extremes(c);
        D.tidy(c);
    }
}

// Offers an example to the pool of each problem that has not learned it. A problem that cannot
// judge examples yet learns them as they arrive.
template <class T>
void Learner<T>::look_at(const Batch& batch, Block<T>& block, Index r) {
    const Example example = batch.example(block.source[r]);
    ready(example, block, r);
    ++D.stats.sampled;
    for (Index c = 0; c < D.problems(); ++c) {
        if (seen_[c * examples_ + example.id]) continue;
        if (D.sign(c, example.label) == 0) {
            mark_seen(c, example.id);
            continue;
        }
        if (!judges(c)) {
            Index s = ready(example, block, r);
            learn_in(c, example, block, r, s);
            D.tidy(c);
            keep_budget();
            mark_seen(c, example.id);
            ++D.stats.chosen;
            continue;
        }
        const double f = expansion(c, block.row(r)) + D.problem(c).bias();
        if (example.weight > 0) note_foreseen(c, example, f);
        const bool inside = std::abs(f) < 1 + std::abs(slack(c)) / 2;
        Pool<T>& pool = pools_[c];
        if (pool.sample(choice_.score(D.sign(c, example.label), f), inside))
            pool.keep(batch, block, r, settings_.scaling);
        if (pool.complete(choice_)) learn_best(c);
    }
}

template <class T>
void Learner<T>::learn_best(Index c) {
    Pool<T>& pool = pools_[c];
    pool.clear();
    pool.best.set_room(D.size());
    Index s = ready(pool.example, pool.best, 0);
    learn_in(c, pool.example, pool.best, 0, s);
    D.tidy(c);
    keep_budget();
    mark_seen(c, pool.example.id);
    ++D.stats.chosen;
}

template <class T>
void Learner<T>::record() {
    if (!settings_.record) return;
    const std::int64_t evaluations = D.total_stats().kernel_evaluations;
    for (Index c = 0; c < D.problems(); ++c)
        this->records.push_back({gap(c), D.problem(c).members(), evaluations});
}

template <class T>
void Learner<T>::begin_pass(const Choice& choice, std::uint8_t* seen, Index examples) {
    choice_ = choice;
    seen_ = seen;
    examples_ = examples;
    pools_ = Vector<Pool<T>>(D.problems());
}

template <class T>
void Learner<T>::end_pass() {
    for (Index c = 0; c < pools_.size(); ++c)
        if (!pools_[c].empty()) learn_best(c);
    pools_.clear();
    seen_ = nullptr;
}

template <class T>
Index Learner<T>::learn_wanted(const Batch& batch, const std::int64_t* order,
                               const std::uint8_t* wanted, Index n, double seconds) {
    return walk(batch, order, n, seconds, [&](Block<T>& block, Index r) {
        learn_example(batch.example(block.source[r]), block, r, wanted);
        if (wanted) wanted += D.problems();
    });
}

template <class T>
Index Learner<T>::select(const Batch& batch, const std::int64_t* order, Index n, double seconds) {
    const auto has_flags = [&](std::int64_t row) { return batch.ids[row] < examples_; };
    require(std::all_of(order, order + n, has_flags), "one column of flags per id");
    return walk(batch, order, n, seconds,
                [&](Block<T>& block, Index r) { look_at(batch, block, r); });
}

template <class T>
Compaction Learner<T>::compact() {
    const Compaction compaction = D.compact();
    for (Pool<T>& pool : pools_) pool.best.compact(compaction, 0);
    return compaction;
}

// The maximal number of members after `rows` more examples. A problem learns one example for each
// pool that it completes, and the first pool may have been started before these rows.
template <class T>
Index Learner<T>::room(Index rows) const {
    const Index picks = pools_.empty() ? 0 : D.problems() * (1 + rows / choice_.least());
    return D.size() + rows + picks;
}

// Reads the next rows into a block. If a row is beyond norm_limit, the queue ends before it.
template <class T>
void Learner<T>::read_block(Queue& queue, Block<T>& block, Index most_rows) {
    const Index rows = std::min(queue.n - queue.read, most_rows);
    const Index most = room(2 * most_rows);  // the block in progress and this one
    const std::int64_t* order = queue.order + queue.read;
    block.read(queue.batch, order, rows, settings_.scaling, most);
    const Index within = block.rows_within(settings_.norm_limit);
    if (within < rows) {
        beyond_ = true;
        queue.n = queue.read + within;
        block.read(queue.batch, order, within, settings_.scaling, most);
    }
    queue.read += within;
}

// Removes the members that no problem holds from the dual, from rows `first` on of the block being
// learned, and from the next block if there is one.
template <class T>
void Learner<T>::compact_blocks(Block<T>& now, Index first, Block<T>* next) {
    const Compaction compaction = compact();
    now.compact(compaction, first);
    if (next) next->compact(compaction, 0);
}

// Calls use(now, r) for the rows of a block. Returns false if the call must end before the next
// row.
template <class T>
template <class Use>
bool Learner<T>::use_rows(Queue& queue, Block<T>& now, Block<T>* next, BlockProduct<T>& product,
                          const Deadline& late, Use& use) {
    for (Index r = 0; r < now.size(); ++r) {
        use(now, r);
        record();
        this->count_example(queue.batch.ids[now.source[r]]);
        ++queue.learned;
        const bool ends = late.passed() || this->interrupted();
        if (!ends && !wants_compaction()) continue;
        product.wait();
        if (wants_compaction()) compact_blocks(now, r + 1, next);
        if (!ends) continue;
        beyond_ = beyond_ && queue.learned == queue.n;
        return false;
    }
    return true;
}

// Calls use(block, r) for rows order[0..n) of the batch, with kernel values computed ahead. For a
// few rows, memory is reserved first: if that fails, nothing has changed.
template <class T>
template <class Use>
Index Learner<T>::walk(const Batch& batch, const std::int64_t* order, Index n, double seconds,
                       Use use) {
    require_width(batch.X);
    const Stopwatch whole(D.stats.learn_seconds);
    if (D.problems() > 1) D.divide_cache();
    const Deadline deadline(seconds), late(seconds + kBlockSeconds);
    ThreadPool workers(threads());
    BlockProduct<T> product(D, workers);
    if (n <= kFewRows) D.reserve(n);
    Queue queue{batch, order, n};
    beyond_ = false;
    Block<T>* now = &blocks_[0];
    Block<T>* next = &blocks_[1];
    read_block(queue, *now, Block<T>::rows_for(D.size()));
    while (true) {
        {
            const Stopwatch phase(D.stats.product_seconds);
            product.finish(*now);
        }
        const bool more = queue.read < queue.n && !deadline.passed();
        if (more) {
            read_block(queue, *next, Block<T>::rows_for(D.size()));
            product.start(*next);
        }
        const bool all = use_rows(queue, *now, more ? next : nullptr, product, late, use);
        if (!all || !more) return queue.learned;
        for (Subproblem& sub : D.subproblems) sub.tend_rows();
        std::swap(now, next);
    }
}

// A call that ends at its deadline may leave a window open, which the next call continues. The last
// row closes the window.
template <class T>
Index Learner<T>::learn_ahead(const Batch& batch, const std::int64_t* order, Index n,
                              const Look& look, double seconds) {
    if (!looks_ahead() || settings_.record) return learn(batch, order, n, seconds);
    require_width(batch.X);
    const Stopwatch whole(D.stats.learn_seconds);
    const Deadline deadline(seconds);
    ThreadPool workers(threads());
    const typename Dual<T>::Help help(D, D.problems() == 1 ? workers : ThreadPool::alone());
    BlockProduct<T> product(D, workers);
    Queue queue{batch, order, n};
    beyond_ = false;
    Block<T>& block = blocks_[0];
    do {
        read_block(queue, block, Block<T>::rows_for(D.size()));
        {
            const Stopwatch phase(D.stats.product_seconds);
            product.finish(block);
        }
        judge(batch, block, look, workers);
        for (const std::int64_t row : block.source) this->count_example(batch.ids[row]);
        queue.learned += block.size();
        if (window_.full || queue.learned == queue.n) {
            learn_window(batch, workers);
            window_.clear();
            if (D.wants_compaction()) compact();
        }
    } while (queue.learned < queue.n && !deadline.passed() && !this->interrupted());
    beyond_ = beyond_ && queue.learned == queue.n;
    if (beyond_) D.rest();
    return queue.learned;
}

// Adopted members have no kernel rows yet: finish() computes those that it needs.
template <class T>
bool Learner<T>::adopt(const Batch& batch, const std::int64_t* order, Index n) {
    if (!looks_ahead() || settings_.record || D.size() > 0) return false;
    require_width(batch.X);
    const Stopwatch whole(D.stats.learn_seconds);
    Block<T> block;
    block.read(batch, order, n, settings_.scaling, 0);
    beyond_ = block.rows_within(settings_.norm_limit) < n;
    if (beyond_) return false;
    Window all;
    all.add(block.source, D.problems());
    for (Index c = 0; c < D.problems(); ++c)
        for (Index r = 0; r < n; ++r)
            if (const double y = D.sign(c, batch.label[order[r]]); y != 0)
                all.violators[c].push_back({r, y});
    const Admission<T> admission(D, batch, scaling(), all);
    D.subproblems[0].in_order = D.problems() == 1;
    for (Index r = 0; r < n; ++r) this->count_example(batch.ids[order[r]]);
    adopted_ = true;
    return true;
}

}  // namespace marginwise
