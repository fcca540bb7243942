// LASVM: online support vector machines [bordes2005, section 3].
//
//   paper        here                         paper        here
//   S            open places of a problem     A, B         lo, hi
//   alpha, g     Problem::alpha, Problem::g   delta, b     extremes.delta(), bias()
//   tau          Settings::tau                k            example r of a block
//
// DEPARTS: PROCESS tests an example before inserting it, so an example that makes no violating pair
//          never enters S. The paper inserts it and lets REPROCESS evict it.
// DEPARTS: while no member can form a pair with an example (a stream that starts with one class),
//          the example is inserted and waits. At most kMostWaiting wait per problem.
// DEPARTS: while few members are free, the bias is only known to lie in an interval. An example
//          that violates the margin for some bias in the interval is inserted even though it makes
//          no violating pair yet, and waits for a partner; nothing is evicted. Otherwise neither of
//          two examples that violate only as a pair would be admitted, and learning would stall.
// DEPARTS: REPROCESS never evicts the two extremes.
// DEPARTS: learn_ahead() judges examples by the model at the start of a window and inserts all
//          violators at once. REPROCESS then moves the most violating places first, with
//          second-order partners, until delta <= kRough. A rough look admits only examples that
//          violate the margin by more than half of kRough, because others would wait among the
//          members without being moved. A window of one example is the paper's PROCESS, which
//          learn() follows.
// DEPARTS: every loop has a step limit, see step_limit.hpp.
// DEPARTS: finishing chooses pairs by second order [fan2005], the online steps by first order.
// DEPARTS: finishing concentrates the weight of exact duplicates on as few of them as possible.
#pragma once

#include "marginwise/model/learner.hpp"
#include "marginwise/solve/duplicates.hpp"
#include "marginwise/solve/finishing.hpp"

namespace marginwise {

constexpr Index kByGap = -1;

// The interval that contains the bias: from the largest g of the bounded members whose alpha can
// rise to the smallest g of those whose alpha can fall. Free members narrow it down to a point. If
// they are few, and hardly more numerous than the bounded members, the next examples may move them
// to their bounds, so the bias counts as loose.
class Leeway {
  public:
    static constexpr Index kFew = 8;

    double least() const { return least_; }
    double most() const { return most_; }

    // Computes the interval for the current state of P; returns whether the bias is loose in it.
    bool find(const Problem& P) {
        if (P.free > kFew) return false;
        if (std::exchange(changes_, P.changes) == P.changes) return loose_;
        least_ = -simd::Extremes::kInfinite;
        most_ = simd::Extremes::kInfinite;
        Index bounded = 0;
        for (Index k = 0; k < P.size; ++k) {
            if (!P.bounded(k)) continue;
            ++bounded;
            if (P.up[k] == 0) least_ = std::max(least_, P.g[k]);
            if (P.down[k] == 0) most_ = std::min(most_, P.g[k]);
        }
        return loose_ = P.free == 0 || (bounded > 0 && P.free <= bounded + 1);
    }

  private:
    Index changes_ = -1;  // Problem::changes when the interval was computed
    double least_ = 0, most_ = 0;
    bool loose_ = false;
};

struct LasvmSettings {
    double tau = 1e-3;
    Index reprocess = 1;          // REPROCESS steps per PROCESS; kByGap: as the gap requires
    bool reprocess_each = false;  // REPROCESS after every example, not only after inserted ones
    double delta_max = -1.0;      // repeat REPROCESS until delta <= delta_max; negative: no limit

    template <class F>
    void visit(F use) {
        use("tol", tau);
        use("reprocess", reprocess);
        use("reprocess_each", reprocess_each);
        use("delta_max", delta_max);
    }
};

template <class T>
class Lasvm : public Learner<T> {
  public:
    using Settings = LasvmSettings;
    static constexpr Index kMostWaiting = 1024;

    Lasvm(Dual<T> dual, ModelSettings common, LasvmSettings settings)
        : Learner<T>(std::move(dual), std::move(common)),
          settings_(settings),
          waiting_(D.problems(), 0),
          leeway_(D.problems()) {}

    // A copy does not continue a finish in progress.
    Lasvm(const Lasvm& other)
        : Learner<T>(other),
          settings_(other.settings_),
          waiting_(other.waiting_),
          leeway_(other.leeway_) {}

    using Learner<T>::D;

    std::unique_ptr<Model<T>> clone() const override { return std::make_unique<Lasvm>(*this); }

    // Repeats REPROCESS until delta <= tau, then removes the members that no problem needs.
    bool finish(double tau, double seconds) override;
    void end_finish() override;

    double slack(Index c) const override { return D.subproblems[c].P.extremes.delta(); }
    bool judges(Index c) const override { return D.subproblems[c].P.extremes.both(); }

    Vector<double> extra_state(Index c) const override {
        return {static_cast<double>(waiting_[c])};
    }
    void set_extra_state(Index c, const double* values) override {
        waiting_[c] = static_cast<Index>(values[0]);
    }

  protected:
    // Settings that prescribe steps after each example rule out choosing examples ahead of them.
    bool looks_ahead() const override {
        return settings_.reprocess == 1 && !settings_.reprocess_each && settings_.delta_max < 0 &&
               !this->budget_.limited();
    }
    void judge(const Batch& batch, Block<T>& block, const Look& look, ThreadPool& workers) override;
    void learn_window(const Batch& batch, ThreadPool& workers) override;
    void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) override;

  private:
    static constexpr double kRough = 0.1;       // violation tolerated at the end of a window
    static constexpr Index kMostSteps = 20;     // steps per violator of a window
    static constexpr Index kLeastWindow = 256;  // violators that fill a window
    static constexpr float kHeld = 1e30f;       // distance of an example held by all problems

    void begin_finish();
    void solve_window(Index c, Index worker);
    void fetch_borrowed(Index c);
    void drop_idle_and_sleep(Index c);
    bool admits(Index c, double y, double g, double gap, bool roughly = false);
    bool process(Index c, const Example& example, Block<T>& block, Index r, Index& s);
    bool awaits_partner(Index c, double y, double g);
    bool reprocess(Index c);
    void evict(Index c);
    template <class Wanted>
    void repeat(Index c, Wanted wanted);

    LasvmSettings settings_;
    Vector<Index> waiting_;  // by problem: members inserted before any violating pair could exist
    Vector<Leeway> leeway_;
    Vector<Finishing<T>> finishing_;  // by problem, during a finish
};

// LASVM PROCESS(k) in problem c. The example is row r of the block. `s` is its position among the
// members, or kNone; it is set if the example becomes a member. Returns whether alpha changed.
template <class T>
bool Lasvm<T>::process(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    if (this->holds(c, s)) return false;  // 1
    const double y = D.sign(c, example.label);
    const double g = y - this->raw_expansion(c, block.row(r));  // 2
    const simd::Extremes& e = D.problem(c).extremes;
    const Index partner = y > 0 ? e.j : e.i;  // 3
    const double gap = y > 0 ? g - e.g_min : e.g_max - g;
    const bool violates = partner != kNone && gap > settings_.tau;
    if (!admits(c, y, g, gap)) return false;  // 4
    ++D.stats.process;
    const Index k = this->insert(c, example, block, r, s, g);
    if (!violates) return false;
    y > 0 ? move_pair(D, c, k, partner) : move_pair(D, c, partner, k);  // 5
    return true;
}

// Whether to insert an example with label y and gradient g, where `gap` is the violation of its
// pair. With `roughly`, the example must violate the margin by more than the tolerance of a rough
// solution. With a budget, it must violate by enough to be worth the place of another member.
template <class T>
bool Lasvm<T>::admits(Index c, double y, double g, double gap, bool roughly) {
    const simd::Extremes& e = D.problem(c).extremes;
    const bool waits = (y > 0 ? e.j : e.i) == kNone;
    if (waits) return waiting_[c]++ < kMostWaiting;
    if (this->budget_.limited() && !leeway_[c].find(D.problem(c)))
        return gap > e.delta() / 2 + this->budget_.kWorth;
    if (roughly && !leeway_[c].find(D.problem(c))) return gap > (e.delta() + kRough) / 2;
    return gap > settings_.tau || awaits_partner(c, y, g);
}

// Whether an example with label y and gradient g, which makes no violating pair with the members,
// may make one with a later example. For convergence, it is enough to insert an example that
// violates more than all members on its side. Others are inserted while fewer than kMostWaiting
// members are idle, so that one pass over the examples suffices.
template <class T>
bool Lasvm<T>::awaits_partner(Index c, double y, double g) {
    Problem& P = D.problem(c);
    Leeway& leeway = leeway_[c];
    const double tau = settings_.tau;
    if (!leeway.find(P)) return false;
    if (y > 0 ? g <= leeway.least() + tau : g >= leeway.most() - tau) return false;
    const simd::Extremes& e = P.extremes;
    if (y > 0 ? g > e.g_max + tau : g < e.g_min - tau) return true;
    return P.idle_places().size() < kMostWaiting;
}

// LASVM REPROCESS in problem c. Returns whether alpha changed.
template <class T>
bool Lasvm<T>::reprocess(Index c) {
    const simd::Extremes e = D.problem(c).extremes;             // 1
    if (!e.both() || e.delta() <= settings_.tau) return false;  // 2
    ++D.subproblems[c].stats.reprocess;
    if (!move_pair(D, c, e.i, e.j)) {  // 3
        give_up(D.problem(c), e.delta());
        return false;
    }
    if (!leeway_[c].find(D.problem(c))) evict(c);  // 4
    D.release_closed(c);
    return true;  // 5: bias()
}

// REPROCESS, step 4: evicts blatant non-support vectors from the problem.
template <class T>
void Lasvm<T>::evict(Index c) {
    Problem& P = D.problem(c);
    const simd::Extremes e = P.extremes;
    if (!e.both()) return;
    const auto stays = [&](Index k) {
        if (!P.open[k] || P.alpha[k] != 0.0) return false;  // no longer idle
        const double g = P.g[k];
        const bool may_pair = P.y(k) > 0 ? g > e.g_min : g < e.g_max;
        if (k == e.i || k == e.j || may_pair) return true;
        D.close_place(c, k);
        return false;
    };
    Index kept = 0;
    for (const Index k : P.idle) {
        if (stays(k))
            P.idle[kept++] = k;
        else
            P.listed[k] = 0;
    }
    P.idle.resize(kept);
}

// Repeats REPROCESS while there is a violating pair and wanted(n), where n counts the steps taken.
template <class T>
template <class Wanted>
void Lasvm<T>::repeat(Index c, Wanted wanted) {
    const Problem& P = D.problem(c);
    StepLimit limit = StepLimit::online(P);
    for (Index n = 0; wanted(n) && reprocess(c); ++n)
        if (limit.reached(P, P.extremes.delta()) || (limit.looks() && this->interrupted())) {
            give_up(D.problem(c), P.extremes.delta());
            return;
        }
}

// PROCESS and the REPROCESS steps after it. With kByGap, the gap sets their number, as in LASVM-G
// [ertekin2011].
template <class T>
void Lasvm<T>::learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    const bool gaps = settings_.reprocess == kByGap;
    double target = gaps ? gap_target(D.problem(c)) : 0.0;
    const bool processed = process(c, example, block, r, s);
    if (!processed && !settings_.reprocess_each) return;
    target = std::max(example.cost, target);
    if (gaps) repeat(c, [&](Index) { return gap_of(D.problem(c)) > target; });
    repeat(c, [&](Index n) { return n < settings_.reprocess; });
    if (settings_.delta_max >= 0)
        repeat(c, [&](Index) { return D.problem(c).extremes.delta() > settings_.delta_max; });
    if (this->budget_.limited() && processed)
        repeat(c,
               [&](Index n) { return n < kMostSteps && D.problem(c).extremes.delta() > kRough; });
}

// PROCESS, steps 1 to 4, for all examples of a block: violators join the window. The window is full
// when some problem has a quarter as many violators as members, and at least kLeastWindow.
template <class T>
void Lasvm<T>::judge(const Batch& batch, Block<T>& block, const Look& look, ThreadPool& workers) {
    Window& window = this->window_;
    const Index first = window.add(block.source, D.problems()), rows = block.size();
    Vector<Index> at(rows);
    for (Index r = 0; r < rows; ++r) at[r] = this->ready(batch.example(block.source[r]), block, r);
    const Array<double> f = this->expansions(block, workers);
    Array<float> beyond(D.problems() * rows);
    workers.run(D.problems(), [&](Index c, Index) {
        const simd::Extremes& e = D.problem(c).extremes;
        Vector<Window::Violator>& noted = window.violators[c];
        const Index before = noted.size();
        for (Index r = 0; r < rows; ++r) {
            const double y = D.sign(c, batch.label[block.source[r]]);
            const double g = y - f[r * D.problems() + c];
            const double gap = y > 0 ? g - e.g_min : e.g_max - g;
            const bool settled = y == 0 || this->holds(c, at[r]);
            if (batch.weight && !settled && judges(c))
                this->note_foreseen(c, batch.example(block.source[r]), y - g + D.problem(c).bias());
            beyond[c * rows + r] = settled ? kHeld : static_cast<float>(-gap);
            if (settled || !admits(c, y, g, gap, look.roughly)) continue;
            noted.push_back({first + r, g});
            if (D.problems() > 1) beyond[c * rows + r] = kHeld;  // the other problems decide
        }
        keep_rows(D, window, c, before, block, first);
    });
    for (Index c = 0; c < D.problems(); ++c) {
        for (Index r = 0; r < rows; ++r) {
            float& far = look.distance[block.source[r]];
            far = std::min(c == 0 ? kHeld : far, beyond[c * rows + r]);
        }
        const Index enough = std::max(kLeastWindow, D.subproblems[c].held() / 4);
        window.full = window.full || window.violators[c].size() >= enough;
    }
}

// Admits the violators of the window, then solves each problem roughly.
template <class T>
void Lasvm<T>::learn_window(const Batch& batch, ThreadPool& workers) {
    Admission<T> admission(D, batch, this->scaling(), this->window_);
    admission.complete_rows(workers);
    if (D.problems() == 1) {
        solve_window(0, 0);
    } else {
        const Index lent = D.lend_cache(workers.threads(), false);
        const typename Dual<T>::FeatureRows features(D, workers);
        Vector<RowCache> memory(workers.threads(), RowCache(0));
        workers.run(D.problems(), [&](Index c, Index worker) {
            D.borrow_rows(c, memory[worker], lent);
            solve_window(c, worker);
            D.return_rows(c, memory[worker]);
        });
    }
    for (Index c = 0; c < D.problems(); ++c) D.release_closed(c);
}

// Repeats REPROCESS until delta <= kRough over the awake places, then once more with the sleepers
// that this woke. The number of steps is bounded, because the next window continues. `worker` is
// the index of the executing thread, 0 for the caller's.
template <class T>
void Lasvm<T>::solve_window(Index c, Index worker) {
    if (this->window_.violators[c].empty()) return;
    Problem& P = D.problem(c);
    Subproblem& sub = D.subproblems[c];
    sub.tend_rows(D.workers());
    if (sub.borrows) fetch_borrowed(c);
    const double tau = std::max(kRough, settings_.tau);
    Index left = kMostSteps * this->window_.violators[c].size();
    for (bool woken : {false, true}) {
        for (; left > 0 && P.extremes.both() && P.extremes.delta() > tau; --left) {
            ++sub.stats.reprocess;
            const Index i = P.extremes.i;
            if (!move_pair(D, c, i, second_order_partner(D, c, i))) break;
            if (left % PairSolver::kShrink == 0) drop_idle_and_sleep(c);
            if (left % kStepsPerLook == 0 &&
                (worker == 0 ? this->interrupted() : this->interrupted_elsewhere()))
                return;
        }
        drop_idle_and_sleep(c);
        const Index awake = P.size;
        if (woken || !D.stir(c)) return;
        D.fetch_from(c, awake);
        sub.tend_rows(D.workers());
    }
}

// Computes the kernel rows that solve_window() will need in a problem that borrows its cache and
// starts without any. The larger the share of new examples, the more of the other rows are needed;
// a third of the rows, computed one by one, costs as much as all of them together.
template <class T>
void Lasvm<T>::fetch_borrowed(Index c) {
    constexpr Index kMany = 64;
    const Index size = D.problem(c).size, fresh = this->window_.violators[c].size();
    if (kMany * fresh < size || !D.fetch_all(c)) D.fetch_from(c, size - fresh);
}

template <class T>
void Lasvm<T>::drop_idle_and_sleep(Index c) {
    if (!leeway_[c].find(D.problem(c))) evict(c);
    if (D.subproblems[c].wants_compaction()) D.compact_places(c);
    D.sleep(c, false);
}

template <class T>
bool Lasvm<T>::finish(double tau, double seconds) {
    const Stopwatch whole(D.stats.finish_seconds);
    const Deadline deadline(seconds);
    if (finishing_.empty()) begin_finish();
    Vector<Finishing<T>*> left;
    for (Finishing<T>& finishing : finishing_)
        if (!finishing.done()) left.push_back(&finishing);
    std::atomic<bool> begun{false};  // even after the deadline, one problem makes progress
    ThreadPool workers(this->threads());
    ThreadPool& helpers = left.size() == 1 ? workers : ThreadPool::alone();
    Vector<RowCache> memory(workers.threads(), RowCache(0));
    workers.run(left.size(), [&](Index k, Index worker) {
        if (!begun.exchange(true) || !deadline.passed())
            left[k]->solve(tau, deadline, memory[worker], helpers);
    });
    for (const Finishing<T>* finishing : left)
        if (!finishing->done()) return false;
    end_finish();
    D.rest();
    for (Index c = 0; c < D.problems(); ++c) {
        if (!this->budget_.limited()) pool_duplicates(D, c);  // requires boxes that contain 0
        evict(c);
        D.release_closed(c);
        if (D.problems() > 1) D.compact_places(c);
    }
    if (D.dead > 0) this->compact();
    return true;
}

template <class T>
void Lasvm<T>::begin_finish() {
    const Index lent = D.problems() > 1 ? D.lend_cache(this->threads(), true) : 0;
    std::shared_ptr<const KnownValues> known;
    const bool fits = KnownValues::bytes(D.size()) <= D.subproblems[0].rows.most();
    if (this->adopted_ && D.kernel.is_callable() && D.problems() > 1 && fits) {
        known = std::make_shared<KnownValues>(D.kernel, D.members);
        D.stats.kernel_evaluations += D.size() * (D.size() + 1) / 2;
    }
    for (Index c = 0; c < D.problems(); ++c)
        finishing_.emplace_back(D, c, D.subproblems[c].borrows ? lent : 0, known);
}

template <class T>
void Lasvm<T>::end_finish() {
    for (Finishing<T>& finishing : finishing_) finishing.end();
    finishing_.clear();
    this->adopted_ = false;
}

}  // namespace marginwise
