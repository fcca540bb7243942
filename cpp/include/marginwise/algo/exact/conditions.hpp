// The conditions (2) of [laskov2006] for one binary problem, and measures of their violation.
#pragma once

#include "marginwise/algo/exact/free_set.hpp"
#include "marginwise/algo/exact/settings.hpp"

namespace marginwise::exact {

class Conditions {
  public:
    Conditions(const Problem& problem, const FreeSet& free_set, const ExactSettings& settings)
        : P(problem), S(free_set), settings_(settings) {}

    // t_k: the label; for a sphere, half the total times K(k, k).
    double target(Index k) const { return settings_.sphere ? S.total * P.diagonal[k] / 2 : P.y(k); }

    // The sum that the coefficients of the open places must have.
    double required_total() const {
        if (!settings_.sphere) return 0.0;
        double most = 0;
        for (Index k = 0; k < P.size; ++k)
            if (P.open[k]) most += P.hi[k];
        return settings_.nu > 0 ? settings_.nu * most : std::min(1.0, most);
    }

    // Whether the coefficients add up to S.total, apart from rounding.
    bool balanced() const {
        constexpr double kBalance = 1e-9;
        double sum = 0, sizes = 0;
        for (Index k = 0; k < P.size; ++k) {
            sum += P.alpha[k];
            sizes += std::abs(P.alpha[k]);
        }
        return !(std::abs(sum - S.total) > kBalance * sizes);
    }

    // How much h violates the condition of place k; 0 if the condition holds.
    double violation(Index k, double h) const {
        return std::max(P.up[k] == 0 ? h : 0.0, P.down[k] == 0 ? -h : 0.0);
    }

    // The largest violation.
    double violation() const {
        const double b = P.bias();
        double most = 0;
        for (Index k = 0; k < P.size; ++k)
            if (P.open[k]) most = std::max(most, violation(k, P.g[k] - b));
        return most;
    }

    // 0 if the problem is solved: the conditions hold to 1e-6 of the targets, or the duality gap
    // is below 1e-7 of the objective. Otherwise the largest violation, relative to the targets.
    double shortfall() const {
        constexpr double kAccurate = 1e-6, kGap = 1e-7;
        if (!balanced()) return 1.0;
        const double b = P.bias();
        double most = 0, gap = 0, objective = 0;
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[k]) continue;
            const double h = P.g[k] - b, t = std::abs(target(k));
            const double wrong = violation(k, h);
            if (wrong > kAccurate * t) most = std::max(most, t > 0.0 ? wrong / t : wrong);
            gap += std::max(h, 0.0) * P.rise[k] + std::max(-h, 0.0) * P.fall[k];
            objective += std::abs(P.alpha[k]) * t;
            if (!std::isfinite(h)) return simd::Extremes::kInfinite;
        }
        return gap <= kGap * objective ? 0.0 : most;
    }

    // W(alpha).
    double objective() const {
        double sum = 0;
        for (Index k = 0; k < P.size; ++k)
            if (P.open[k]) sum += P.alpha[k] * (target(k) + P.g[k]);
        return sum / 2;
    }

  private:
    const Problem& P;
    const FreeSet& S;
    const ExactSettings& settings_;
};

}  // namespace marginwise::exact
