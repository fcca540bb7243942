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
#include "marginwise/learner.hpp"

namespace marginwise {

constexpr Index kByGap = -1;

struct LasvmSettings {
    double tau = 1e-3;
    Index reprocess = 1;          // REPROCESS steps after a PROCESS; kByGap: see by_gap()
    bool reprocess_each = false;  // after every example, not only after those that were inserted
    double delta_max = -1.0;      // repeat REPROCESS until delta <= delta_max; negative: do not
};

template <class T>
class Lasvm : public Learner<T> {
  public:
    static constexpr Index kMostWaiting = 1024;

    Lasvm(Dual<T> dual, ModelSettings common, LasvmSettings settings)
        : Learner<T>(std::move(dual), std::move(common)),
          settings_(settings),
          waiting_(usize(D.problems()), 0) {}

    // A copy is not finishing.
    Lasvm(const Lasvm& other)
        : Learner<T>(other), settings_(other.settings_), waiting_(other.waiting_) {}

    using Learner<T>::D;

    std::unique_ptr<Model<T>> clone() const override { return std::make_unique<Lasvm>(*this); }

    // Repeats REPROCESS until delta <= tau; then the members that no problem needs are removed.
    bool finish(double tau, double seconds) override;
    void settle() override;

    double slack(Index c) const override { return D.shares[usize(c)].P.extremes.delta(); }
    bool judges(Index c) const override { return D.shares[usize(c)].P.extremes.both(); }

    std::vector<double> notes(Index c) const override {
        return {static_cast<double>(waiting_[usize(c)])};
    }
    void set_notes(Index c, const double* notes) override {
        waiting_[usize(c)] = static_cast<Index>(notes[0]);
    }

  protected:
    void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) override;

  private:
    bool process(Index c, const Example& example, Block<T>& block, Index r, Index& s);
    bool reprocess(Index c);
    void evict(Index c);
    void by_gap(Index c, double target);

    LasvmSettings settings_;
    std::vector<Index> waiting_;           // members taken in before a violating pair could exist
    std::vector<Finishing<T>> finishing_;  // of each problem, while it is under way
};

// LASVM PROCESS(k) in problem c; the example is row r of the block. `s` is its position among the
// members, or kNone; set where it becomes a member. Tells whether alpha changed.
template <class T>
bool Lasvm<T>::process(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    if (this->holds(c, s)) return false;  // 1
    const double y = D.sign(c, example.label);
    const double g = y - this->raw_expansion(c, block.row(r));  // 2
    const simd::Extremes& e = D.problem(c).extremes;
    const Index partner = y > 0 ? e.j : e.i;  // 3
    const bool waits = partner == kNone;
    const double gap = y > 0 ? g - e.g_min : e.g_max - g;
    Index& waiting = waiting_[usize(c)];
    if (waits ? waiting >= kMostWaiting : gap <= settings_.tau) return false;  // 4
    ++D.stats.process;
    const Index k = this->insert(c, example, block, r, s, g);
    if (waits) {
        ++waiting;
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
        const bool may_pair = P.y(k) > 0 ? g > e.g_min : g < e.g_max;
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

// PROCESS and what follows it.
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
}

template <class T>
bool Lasvm<T>::finish(double tau, double seconds) {
    const Stopwatch whole(D.stats.finish_seconds);
    const Deadline deadline(seconds);
    for (Index c = count(finishing_); c < D.problems(); ++c) finishing_.emplace_back(D, c);
    std::vector<Finishing<T>*> left;
    for (Finishing<T>& finishing : finishing_)
        if (!finishing.done()) left.push_back(&finishing);
    std::atomic<bool> begun{false};  // however soon the deadline, something is done
    Crew crew(std::min(this->threads(), count(left)));
    crew.run(count(left), [&](Index k, Index) {
        if (!begun.exchange(true) || !deadline.passed()) left[usize(k)]->solve(tau, deadline);
    });
    for (const Finishing<T>* finishing : left)
        if (!finishing->done()) return false;
    settle();
    for (Index c = 0; c < D.problems(); ++c) {
        evict(c);
        if (D.problems() > 1) D.shares[usize(c)].compact();
    }
    if (D.dead > 0) this->compact();
    return true;
}

template <class T>
void Lasvm<T>::settle() {
    for (Finishing<T>& finishing : finishing_) finishing.settle();
    finishing_.clear();
}

}  // namespace marginwise
