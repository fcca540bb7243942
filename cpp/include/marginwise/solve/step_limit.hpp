// Limits for loops that might not end otherwise: a number of steps, or a remaining violation that
// is only rounding.
#pragma once

#include <cmath>
#include <limits>

#include "marginwise/dual/problem.hpp"

namespace marginwise {

// Steps between two checks of the clock or for an interrupt.
inline constexpr Index kStepsPerLook = 256;

// Violations below this cannot be distinguished from rounding: g is a sum of alpha K in double
// precision.
inline double resolution(const Problem& P) {
    constexpr double kUlps = 64 * std::numeric_limits<double>::epsilon();
    double largest = 1.0;
    for (Index k = 0; k < P.size; ++k)
        largest = std::max(largest, std::abs(P.alpha[k]) * P.diagonal[k]);
    return kUlps * largest;
}

// The steps that a loop may take.
class StepLimit {
  public:
    explicit StepLimit(Index most) : left_(most) {}

    // The limit after one example.
    static StepLimit online(const Problem& P) { return StepLimit(20000 + 20 * P.members()); }
    // The limit for solving a problem: that of LIBSVM, or more if steps are cheap; a sixteenth of
    // it if the problem could not be solved the last time.
    static StepLimit finishing(const Problem& P) {
        constexpr Index kSteps = 10'000'000, kUpdates = 1'000'000'000;  // of one value each
        const Index most = std::max({kSteps, 100 * P.members(), kUpdates / padded(P.size + 1)});
        return StepLimit(P.unsolved > 0 ? most / 16 : most);
    }

    // Counts a step that ended at `violation`; returns whether the loop must end. Checks from time
    // to time whether the violation is only rounding.
    bool reached(const Problem& P, double violation) {
        constexpr Index kLook = 4096;
        if (--left_ <= 0) return true;
        return left_ % kLook == 0 && violation <= resolution(P);
    }

    // Whether to check for an interrupt after this step.
    bool looks() const { return left_ % kStepsPerLook == 0; }

  private:
    Index left_;
};

// Records that a loop over P ended at a violation above its tolerance.
inline void give_up(Problem& P, double violation) { P.unsolved = std::max(P.unsolved, violation); }

}  // namespace marginwise
