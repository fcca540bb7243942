// Finishing: solving a problem over its members, with shrinking.
#pragma once

#include <memory>

#include "marginwise/solve/active_set.hpp"

namespace marginwise {

// The finish of one problem, which may be interrupted and continued: where it is cut does not
// change the result. Several problems may be solved at the same time; they share nothing that is
// written.
template <class T>
class Finishing {
  public:
    // `lent`: memory for the kernel rows of the problem while it is worked on, 0 for its own share.
    Finishing(Dual<T>& D, Index c, Index lent)
        : D_(D), c_(c), lent_(lent), limit_(StepLimit::finishing(D.problem(c))) {}

    // Moves pairs until delta <= tau or the limit of steps is reached, when it is done, or until
    // the deadline. Call end() when all problems are done or abandoned.
    void solve(double tau, const Deadline& deadline) {
        if (D_.problems() > 1 && !alone_ && !solved(tau)) take_out();
        Dual<T>& D = alone_ ? *alone_ : D_;
        const Index c = alone_ ? 0 : c_;
        const simd::Extremes& e = D.problem(c).extremes;
        while (active_ || (!gave_up() && e.both() && e.delta() > tau)) {
            if (!active_ && !solve_whole(D, c, tau, deadline)) return;
            if (!active_ && !gave_up() && e.delta() > tau)
                active_ = std::make_unique<ActiveSet<T>>(D, c);
            if (active_ && !active_->solve(tau, deadline, limit_)) return;
            apply_active();
        }
        D.problem(c).unsolved = e.both() && e.delta() > tau ? e.delta() : 0.0;
        done_ = true;
        return_memory();
    }
    bool done() const { return done_; }

    // Applies the progress so far to the dual; not while other problems are being solved.
    void end() {
        apply_active();
        return_memory();
        if (alone_) D_.take_back(c_, std::move(*alone_));
        alone_.reset();
    }

  private:
    // Takes the problem out of the dual, with the memory that it is lent.
    void take_out() {
        alone_ = std::make_unique<Dual<T>>(D_.single(c_));
        RowCache& rows = alone_->subproblems[0].rows;
        share_ = rows.limit();
        if (lent_ > share_) rows.set_limit(lent_);
    }
    void return_memory() {
        if (!alone_ || lent_ <= share_) return;
        RowCache& rows = alone_->subproblems[0].rows;
        rows.clear();
        rows.set_limit(share_);
    }

    bool solved(double tau) const {
        const simd::Extremes& e = D_.problem(c_).extremes;
        return !e.both() || e.delta() <= tau;
    }

    // Moves pairs over all places while most of them may move, because an active set would then
    // gain nothing, or until the deadline. Returns whether it was not the deadline.
    bool solve_whole(Dual<T>& D, Index c, double tau, const Deadline& deadline) {
        Problem& P = D.problem(c);
        const auto ready = [&] {
            return whole_.steps() % PairSolver::kShrink != 0 ||
                   4 * ActiveSet<T>::movable(P).size() >= 3 * P.size;
        };
        const auto move = [&](Index i) {
            ++D.stats.reprocess;
            return move_pair(D, c, i, second_order_partner(P, {i, D.row(c, i)}));
        };
        return whole_.solve(P, tau, deadline, limit_, ready, move);
    }

    bool gave_up() const { return whole_.gave_up() || active_gave_up_; }

    void apply_active() {
        if (active_) {
            active_->apply();
            active_gave_up_ = active_gave_up_ || active_->gave_up();
        }
        active_.reset();
    }

    Dual<T>& D_;
    Index c_;
    Index lent_, share_ = 0;  // bytes
    StepLimit limit_;
    PairSolver whole_;  // over all places
    bool done_ = false, active_gave_up_ = false;
    std::unique_ptr<Dual<T>> alone_;  // the problem by itself, where there are several
    std::unique_ptr<ActiveSet<T>> active_;
};

}  // namespace marginwise
