// Finishing: solving a problem over its members, with shrinking.
#pragma once

#include <memory>

#include "marginwise/solve/pair_solver.hpp"

namespace marginwise {

// The finish of one problem. It may be interrupted and continued; where it is interrupted does not
// change the result. Several problems may be solved at the same time, because they share no data
// that is written.
template <class T>
class Finishing {
  public:
    using Known = std::shared_ptr<const KnownValues>;

    // `lent`: bytes lent for the kernel rows while the problem is solved; 0: it has its own share.
    // `known`: the kernel values of all members, or null.
    Finishing(Dual<T>& D, Index c, Index lent, Known known)
        : D_(D),
          c_(c),
          lent_(lent),
          known_(std::move(known)),
          limit_(StepLimit::finishing(D.problem(c))) {}

    // Moves pairs until delta <= tau or the step limit is reached, and is then done(), or until the
    // deadline. Call end() when all problems are done or abandoned. `memory` is the row memory of a
    // previously solved problem, or empty; a problem that borrows reuses it. `helpers`: idle
    // threads.
    void solve(double tau, const Deadline& deadline, RowCache& memory, ThreadPool& helpers) {
        if (D_.problems() > 1 && !alone_ && !solved(tau)) take_out(memory);
        Dual<T>& D = alone_ ? *alone_ : D_;
        const Index c = alone_ ? 0 : c_;
        const typename Dual<T>::Help help(D, helpers);
        do
            if (!solve_awake(D, c, tau, deadline)) return;
        while (!solver_.gave_up() && D.stir(c));
        const simd::Extremes& e = D.problem(c).extremes;
        D.problem(c).unsolved = e.both() && e.delta() > tau ? e.delta() : 0.0;
        done_ = true;
        return_memory(memory);
        if (!alone_) return;
        alone_->rest();
        alone_->members.drop_features();  // frees memory for the next problem
    }
    bool done() const { return done_; }

    // Applies the progress so far to the dual. Do not call while other problems are being solved.
    void end() {
        RowCache nobodys(0);
        return_memory(nobodys);
        if (alone_) D_.take_back(c_, std::move(*alone_));
        alone_.reset();
    }

  private:
    // Takes the problem out of the dual, with the memory lent to it.
    void take_out(RowCache& memory) {
        alone_ = std::make_unique<Dual<T>>(D_.single(c_));
        alone_->known = known_;
        if (lent_ == 0) return;
        RowCache& rows = alone_->subproblems[0].rows;
        rows.exchange_memory(memory);
        rows.set_limit(lent_);
        // If most members are free, most rows will be needed.
        const Problem& P = alone_->problem(0);
        if (2 * P.free > P.size && !alone_->kernel.is_callable()) alone_->fetch_all(0);
    }
    void return_memory(RowCache& memory) {
        if (!alone_ || lent_ == 0) return;
        RowCache& rows = alone_->subproblems[0].rows;
        rows.exchange_memory(memory);
        rows.set_limit(0);
    }

    bool solved(double tau) const {
        const simd::Extremes& e = D_.problem(c_).extremes;
        const Subproblem& sub = D_.subproblems[c_];
        return sub.asleep.empty() && (!e.both() || e.delta() <= tau);
    }

    // Moves pairs of awake places and puts places to sleep until no pair violates by more than tau,
    // the step limit is reached, or the deadline has passed. Returns false at the deadline.
    bool solve_awake(Dual<T>& D, Index c, double tau, const Deadline& deadline) {
        Problem& P = D.problem(c);
        const auto shrink = [&] {
            if (solver_.steps() % PairSolver::kShrink == PairSolver::kShrink - 1) D.sleep(c, true);
            return true;
        };
        const auto move = [&](Index i) {
            ++D.subproblems[c].stats.reprocess;
            return move_pair(D, c, i, second_order_partner(D, c, i));
        };
        return solver_.solve(P, tau, deadline, limit_, shrink, move);
    }

    Dual<T>& D_;
    Index c_;
    Index lent_;  // bytes
    Known known_;
    StepLimit limit_;
    PairSolver solver_;
    bool done_ = false;
    std::unique_ptr<Dual<T>> alone_;  // the problem taken out of the dual, if there are several
};

}  // namespace marginwise
