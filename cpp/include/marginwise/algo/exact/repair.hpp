// The repair: checks the conditions (2) at the end of a change and restores them where rounding or
// the screening of examples broke them. If a line could not be followed, solves the problem by
// pairs.
#pragma once

#include "marginwise/algo/exact/pair_descent.hpp"
#include "marginwise/algo/exact/path.hpp"

namespace marginwise::exact {

class Repair {
  public:
    Repair(BinaryProblem& problem, Gradient& gradient, Line& line, Membership& membership,
           Path& path)
        : B(problem),
          P(problem.P),
          S(problem.S),
          gradient_(gradient),
          line_(line),
          membership_(membership),
          path_(path) {}

    // Makes the solution satisfy the conditions (2); returns whether that was possible. Examples
    // that violate them, because they were not watched, are learned as if they had just arrived.
    bool converge();

    // Ends a change. `good` means that the lines were followed and the solution has converged;
    // otherwise the problem is solved by pairs.
    void finish(bool good);

  private:
    struct Residual {
        double h = 0.0;        // largest |h| on S, relative to its rounding error
        double lacking = 0.0;  // S.total minus the sum of alpha
        double sizes = 0.0;    // sum of |alpha|
    };

    bool refine();
    Residual residual();
    void newton_step(double lacking);
    bool refactor();
    void solve_by_pairs();
    void make_feasible();

    BinaryProblem& B;
    Problem& P;
    FreeSet& S;
    Gradient& gradient_;
    Line& line_;
    Membership& membership_;
    Path& path_;
};

inline bool Repair::converge() {
    constexpr double kWider = 1.5, kNarrower = 0.99, kLeastReach = 0.01, kMostReach = 1e3;
    constexpr int kRounds = 100;
    bool missed = false;
    for (int round = 0;; ++round) {
        membership_.snap(1e-12);
        if (round == kRounds || B.stopped() || !refine()) return false;
        if (B.worst_violator() == kNone) break;
        missed = true;
        if (!path_.relearn()) return false;
    }
    S.reach = std::clamp(S.reach * (missed ? kWider : kNarrower), kLeastReach, kMostReach);
    return true;
}

// Takes a few Newton steps if h on S or the sum of alpha is off by more than rounding. If they do
// not suffice, computes the factor from scratch. Returns false if h is not finite or the kernel
// turns out not to be positive semi-definite.
inline bool Repair::refine() {
    constexpr int kRounds = 4;
    constexpr double kBalance = 1e-13;
    for (int round = 0; round <= 2 * kRounds; ++round) {
        const Residual r = residual();
        if (S.empty() || (r.h <= 1.0 && std::abs(r.lacking) <= kBalance * r.sizes)) return true;
        if (!std::isfinite(r.h)) return false;
        if (round == kRounds) {
            if (!refactor()) return false;
            continue;
        }
        newton_step(r.lacking);
    }
    return true;  // no better is possible; converge() checks for violators
}

// Also stores h by slot in slot_q.
inline Repair::Residual Repair::residual() {
    Residual r;
    double sum = 0;
    line_.W.slot_q.assign(S.factor.slots(), 0.0);
    for (Index k = 0; k < P.size; ++k) {
        sum += P.alpha[k];
        r.sizes += std::abs(P.alpha[k]);
    }
    for (Index slot = 0; slot < S.factor.slots(); ++slot)
        if (const Index k = S.place[slot]; k != kNone) {
            line_.W.slot_q[slot] = B.h(k);
            r.h = std::max(r.h, std::abs(B.h(k)) / B.rounding.h_error(k));
        }
    r.lacking = S.total - sum;
    return r;
}

// One Newton step towards h = 0 on S and towards the required sum of alpha. slot_q holds h by slot.
// Coefficients that would leave their box are put at its side and leave S.
inline void Repair::newton_step(double lacking) {
    Factor::Direction& direction = line_.W.direction;
    S.factor.set_load(line_.W.slot_q.data());
    S.factor.solve(lacking, direction);
    S.bias += direction.beta_b + S.shift * lacking;
    Vector<std::pair<Index, bool>> leavers;
    for (Index slot = 0; slot < S.factor.slots(); ++slot) {
        const Index k = S.place[slot];
        if (k == kNone) continue;
        gradient_.touch(k);
        double& alpha = P.alpha[k];
        alpha += direction.beta[slot];
        if (alpha < P.lo[k]) leavers.emplace_back(slot, false);
        if (alpha > P.hi[k]) leavers.emplace_back(slot, true);
    }
    for (const auto& [slot, upwards] : leavers) membership_.leave(slot, upwards);
    gradient_.commit();
}

// Computes S and its factor from scratch; examples that have become dependent are exchanged.
inline bool Repair::refactor() {
    membership_.clear();
    membership_.gather();
    return !S.indefinite;
}

inline void Repair::finish(bool good) {
    good = good && B.conditions.balanced();
    if (good && B.rounding.drifted()) {
        gradient_.recompute();
        good = converge();
    }
    if (!good) {
        solve_by_pairs();
        B.recorder.rewrite();
    }
    membership_.snap(1e-14);
    gradient_.discard();
    P.find_extremes();
}

// Solves by pairs. Then, if the kernel is positive semi-definite, finds S and the exact solution.
inline void Repair::solve_by_pairs() {
    constexpr double kRough = 1e-6;
    ++S.resolved;
    gradient_.discard();
    line_.end();
    S.total = B.conditions.required_total();
    for (const double tolerance : {kRough, 0.0, 0.0}) {
        if (B.stopped()) return;
        membership_.clear();
        make_feasible();
        gradient_.recompute();
        membership_.fit_shift();
        PairDescent(B).solve(tolerance);
        gradient_.recompute();
        P.find_extremes();
        S.bias = P.bias();
        if (S.indefinite) continue;
        B.restart_count();
        membership_.gather();
        if (!S.indefinite && converge()) return;
    }
}

// Clips the coefficients to their boxes and makes them add up to S.total.
inline void Repair::make_feasible() {
    double lacking = S.total;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        double& alpha = P.alpha[k];
        alpha = B.is_excluded(k) ? 0.0 : std::clamp(alpha, P.lo[k], P.hi[k]);
        if (!std::isfinite(alpha)) alpha = 0.0;
        lacking -= alpha;
    }
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        double& alpha = P.alpha[k];
        const double change =
            B.is_excluded(k) ? 0.0 : std::clamp(lacking, P.lo[k] - alpha, P.hi[k] - alpha);
        alpha += change;
        lacking -= change;
        B.refresh(k);
    }
}

}  // namespace marginwise::exact
