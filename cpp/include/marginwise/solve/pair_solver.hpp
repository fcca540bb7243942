// The loop that solves a problem pair by pair: it moves the most violating member and the partner
// with the largest gain [fan2005].
#pragma once

#include "marginwise/base/clock.hpp"
#include "marginwise/solve/direction.hpp"
#include "marginwise/solve/step_limit.hpp"

namespace marginwise {

class PairSolver {
  public:
    static constexpr Index kShrink = 1024;  // steps between two attempts to shrink

    // Calls move(i), which moves i and a partner and returns whether alpha changed, until delta <=
    // tau, the limit is reached, alpha does not change, ready() returns false, or the deadline has
    // passed. Returns false at the deadline. Call again to continue.
    template <class Ready, class Move>
    bool solve(const Problem& P, double tau, const Deadline& deadline, StepLimit& limit,
               Ready ready, Move move) {
        while (P.extremes.both() && P.extremes.delta() > tau && ready()) {
            const bool moved = move(P.extremes.i);
            if (!moved || limit.reached(P, P.extremes.delta())) {
                gave_up_ = true;
                return true;
            }
            if (++steps_ % kStepsPerLook == 0 && deadline.passed()) return false;
        }
        return true;
    }

    Index steps() const { return steps_; }

    // Whether the loop ended without reaching tau: at the limit, or because alpha did not change.
    bool gave_up() const { return gave_up_; }

  private:
    Index steps_ = 0;
    bool gave_up_ = false;
};

}  // namespace marginwise
