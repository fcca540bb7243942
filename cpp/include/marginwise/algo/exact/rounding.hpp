// Bounds on the rounding errors of h and alpha in one binary problem.
//
// As |K(k, l)| <= sqrt(K(k, k) K(l, l)) for a positive semi-definite kernel, the rounding error of
// g(k) is at most about eps sqrt(K(k, k)) sum_l |alpha_l| sqrt(K(l, l)), so each row has a bound
// that suits its size. For other kernels, the largest K(k, k) replaces K(k, k) in all bounds.
#pragma once

#include <limits>

#include "marginwise/algo/exact/free_set.hpp"

namespace marginwise::exact {

class Rounding {
  public:
    // INVARIANT  weight == sum of |alpha| sqrt(K(k, k)), up to rounding
    //            S.peak is the largest weight since g was last computed from alpha
    static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

    Rounding(const Problem& problem, FreeSet& free_set, bool sphere)
        : P(problem), S(free_set), sphere_(sphere) {}

    // Computes the weight from the coefficients.
    void measure() {
        weight_ = 0.0;
        least_ = S.indefinite ? largest_diagonal() : 0.0;
        for (Index k = 0; k < P.size; ++k)
            if (const double alpha = P.alpha[k]; alpha != 0.0)
                weight_ += std::abs(alpha) * std::sqrt(std::max(std::abs(P.diagonal[k]), least_));
        follow_peak();
    }

    // Updates the weight after alpha of place k has moved. Call follow_peak() after the last move.
    void add_move(Index k, double alpha_before) {
        weight_ += (std::abs(P.alpha[k]) - std::abs(alpha_before)) *
                   std::sqrt(std::max(std::abs(P.diagonal[k]), least_));
    }
    void follow_peak() { S.peak = std::max(S.peak, weight_); }

    // sqrt(K(k, k)), but at least about that of the smallest row of S, whose rounding error the
    // bias inherits.
    double norm(Index k) const {
        const double least = std::max(S.shift, least_);
        return std::sqrt(std::max(std::abs(P.diagonal[k]), least));
    }

    // h of place k counts as 0 if |h| is at most this.
    double h_error(Index k) const {
        constexpr double kFloor = 1e-12, kSphere = 1e-13;
        const double size = norm(k);
        if (sphere_) return kSphere * size * (weight_ + S.total * size / 2);
        return kFloor + 4 * kEpsilon * size * weight_;
    }

    // alpha of place k counts as being at a side of its box if its distance is at most this: a
    // fraction of the box, but never so much that h would change noticeably. The second bound
    // matters if C K(k, k) is large, because alpha may then be much smaller than the box is wide.
    double alpha_error(Index k, double relative) const {
        const double size = norm(k);
        const double box = relative * (P.hi[k] - P.lo[k]);
        return size > 0.0 ? std::min(box, h_error(k) / (size * size)) : box;
    }

    // Whether coefficients were once so much larger that their rounding error still dominates g.
    bool drifted() const {
        if (S.peak <= 16 * weight_) return false;
        return 4 * kEpsilon * S.peak * std::sqrt(largest_diagonal()) > 1e-12;
    }

  private:
    double largest_diagonal() const {
        double most = 0.0;
        for (Index k = 0; k < P.size; ++k)
            if (P.open[k]) most = std::max(most, std::abs(P.diagonal[k]));
        return most;
    }

    const Problem& P;
    FreeSet& S;
    bool sphere_;
    double weight_ = 0.0;
    double least_ = 0.0;  // lower bound applied to K(k, k)
};

}  // namespace marginwise::exact
