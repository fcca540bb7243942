// OnlineSVM^R: the ramp-loss SVM over all examples seen, solved after each example [wang2009].
//
//   paper    here                              paper    here
//   I        open places of a problem          g        y g
//   V        places with the usual box         m        max_idle
//
// The solution is a fixed point of the concave-convex procedure: V holds the examples with
// y f >= -1; alpha is optimal over V and zero elsewhere.
//
// DEPARTS: an example that needs no step is added to V or left out at once, because the rest of the
//          iteration would change nothing.
// DEPARTS: while V does not converge, the tolerances of violation and gain are lowered every
//          kManyRounds rounds, so that each round lowers the objective as the procedure guarantees.
//          If V has not converged after kMostRounds (the kernel is not positive semi-definite), no
//          more examples join V.
// DEPARTS: an example takes a limited number of steps, see step_limit.hpp. At the limit V remains
//          unchanged, because decision values of a half-solved model would remove examples that
//          belong to V. The next example that takes a step continues. Until the problem is solved,
//          the limit is lower: a problem that cannot be solved must not take the full time for
//          each example.
#pragma once

#include "marginwise/model/learner.hpp"
#include "marginwise/solve/direction.hpp"
#include "marginwise/solve/drop_idle.hpp"
#include "marginwise/solve/step_limit.hpp"

namespace marginwise {

struct ExactRampSettings {
    double tau = 1e-3;    // tolerated violation
    Index max_idle = -1;  // number of examples with alpha = 0 to keep; negative: all

    template <class F>
    void visit(F use) {
        use("tol", tau);
        use("max_idle", max_idle);
    }
};

template <class T>
class ExactRamp : public Learner<T> {
  public:
    using Settings = ExactRampSettings;
    static constexpr double kRampEnds = 2.0;  // y g = 1 - y f at the end of the ramp
    // Least gain of a step in the dual; it is smaller where K(x, x) > kLarge.
    static constexpr double kLeastGain = 1e-5, kLarge = 64.0;
    static constexpr Index kManyRounds = 16, kMostRounds = 96;

    ExactRamp(Dual<T> dual, ModelSettings common, ExactRampSettings settings)
        : Learner<T>(std::move(dual), std::move(common)), settings_(settings) {
        for (Subproblem& sub : D.subproblems) sub.suspects.ramp = 1 - kRampEnds;
    }

    using Learner<T>::D;

    std::unique_ptr<Model<T>> clone() const override { return std::make_unique<ExactRamp>(*this); }
    bool has_ramp() const override { return true; }

    void check(double tolerance) override { D.check(tolerance, false); }

  protected:
    void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) override;

  private:
    simd::Best best_step(Index c, double tau, double least_gain) const;
    StepLimit step_limit(Index c, bool behind) const;
    void solve_problem(Index c, bool behind);
    bool solve(Index c, double tau, double least_gain, StepLimit& limit);
    bool update_active(Index c, bool may_join);
    void unlearn(Index c, Index k);

    ExactRampSettings settings_;
};

// Algorithm 1, steps 2 to 28, and the removal step of algorithm 2.
template <class T>
void ExactRamp<T>::learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    if (this->holds(c, s)) return;  // already part of the solution
    const double y = D.sign(c, example.label);
    const double g = y - this->raw_expansion(c, block.row(r));
    const bool active = y * g <= kRampEnds;
    // Whether the problem is unsolved because an earlier example reached its limit.
    const bool behind = active && best_step(c, settings_.tau, kLeastGain).s != kNone;
    ++D.stats.process;
    const Index k = this->insert(c, example, block, r, s, g, active ? Box::usual : Box::shut);
    if (active && ascend(D, c, k) != 0.0) solve_problem(c, behind);  // 4 to 8
    const Problem& P = D.problem(c);
    if (settings_.max_idle >= 0)
        drop_idle(D, c, settings_.max_idle, [&](Index l) { return std::abs(P.y(l) - P.g[l]); });
}

// The step of largest gain; its place is kNone if V is solved.
template <class T>
simd::Best ExactRamp<T>::best_step(Index c, double tau, double least_gain) const {
    const Problem& P = D.subproblems[c].P;
    simd::Best best = table().best_gain(P.g.data(), P.boxes(), tau, padded(P.size));
    if (best.s == kNone) return best;
    if (best.gain <= least_gain * std::min(1.0, kLarge / P.diagonal[best.s])) best.s = kNone;
    return best;
}

template <class T>
StepLimit ExactRamp<T>::step_limit(Index c, bool behind) const {
    const Problem& P = D.subproblems[c].P;
    const Index most = this->Model<T>::settings_.most_steps;
    if (most > 0) return StepLimit(most);
    return behind ? StepLimit::online(P) : StepLimit::finishing(P);
}

// Steps 9 to 27: solves over V and updates V until V no longer changes.
template <class T>
void ExactRamp<T>::solve_problem(Index c, bool behind) {
    double tau = settings_.tau, least_gain = kLeastGain;
    D.problem(c).unsolved = 0.0;
    StepLimit limit = step_limit(c, behind);
    for (Index round = 1;; ++round) {
        if (!solve(c, tau, least_gain, limit)) return;
        if (!update_active(c, round < kMostRounds)) return;
        if (round % kManyRounds == 0 && round < kMostRounds) tau /= 10, least_gain /= 10;
    }
}

// Steps 10 to 15: moves the violator of largest gain until none is left. Returns false if it gave
// up before: at the step limit, on an interrupt, or because no step was possible.
template <class T>
bool ExactRamp<T>::solve(Index c, double tau, double least_gain, StepLimit& limit) {
    Problem& P = D.problem(c);
    while (true) {
        const simd::Best best = best_step(c, tau, least_gain);
        if (best.s == kNone) return true;
        const double violation = std::abs(P.g[best.s]);
        if (ascend(D, c, best.s) == 0.0 || limit.reached(P, violation) ||
            (limit.looks() && this->interrupted())) {
            give_up(P, violation);
            return false;
        }
        ++D.stats.reprocess;
    }
}

// Steps 16 to 26. Returns whether V changed.
template <class T>
bool ExactRamp<T>::update_active(Index c, bool may_join) {
    Problem& P = D.problem(c);
    Vector<Index> leaving;
    bool changed = false;
    for (Index k = 0; k < P.size; ++k) {
        const bool active = P.box[k] == Box::usual;
        if (!P.open[k] || active == (P.y(k) * P.g[k] <= kRampEnds)) continue;
        if (!active && !may_join) continue;
        changed = true;
        if (active)
            leaving.push_back(k);
        else
            P.set_box(k, Box::usual);
    }
    for (const Index k : leaving) unlearn(c, k);
    return changed;
}

template <class T>
void ExactRamp<T>::unlearn(Index c, Index k) {
    Problem& P = D.problem(c);
    const double alpha = std::exchange(P.alpha[k], 0.0);
    P.set_box(k, Box::shut);
    if (alpha == 0.0) return;
    table().add(P.g.data(), D.row(c, k), alpha, padded(P.size));
    D.weigh(c, k);
}

}  // namespace marginwise
