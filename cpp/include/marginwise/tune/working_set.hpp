// Solving one binary problem over all examples of a kernel matrix.
//
// A step over all examples reads two whole rows. A few thousand of them are enough where a solution
// is near. Where it is not, working sets are faster: the examples that violate, or nearly do, are
// solved among themselves, on a matrix of their own, and the gradient of all others is then brought
// up to date once.
#pragma once

#include "marginwise/solve/direction.hpp"
#include "marginwise/solve/step_limit.hpp"
#include "marginwise/tune/kernel_matrix.hpp"

namespace marginwise {

template <class T>
class WorkingSets {
  public:
    // All places of P are examples of K, in their order, and P.extremes are known.
    WorkingSets(Problem& P, KernelMatrix<T>& K) : P_(P), K_(K) {}

    // Moves pairs until delta <= tau, until no pair moves, or until stop(). Returns the violation
    // that is left.
    template <class Stop>
    double solve(double tau, Stop stop) {
        if (P_.size <= kFewRows && P_.size <= K_.room()) K_.fetch_all();
        Index most = kFirstSteps;
        for (Index sets = 0; sets < kMostSets && !stop(); ++sets) {
            if (!solve_all(tau, most, stop) || P_.extremes.delta() <= tau) break;
            if (!solve_some(tau, stop) && most == kMoreSteps) break;
            most = kMoreSteps;
        }
        return P_.extremes.delta();
    }

  private:
    static constexpr Index kFirstSteps = 4096, kMoreSteps = 1024;  // over all examples
    static constexpr Index kFewRows = 2048;   // that are computed together, needed or not
    static constexpr Index kMost = 8192;      // examples of a working set
    static constexpr double kNear = 0.2;      // from violating, of examples that are included
    static constexpr double kInner = 0.1;     // of the violation, that is left in a working set
    static constexpr Index kStepsEach = 100;  // of an example of a working set
    static constexpr Index kMostSets = 10'000;
    static constexpr Index kAhead = 32;  // rows that are computed when one is missing

    // Moves pairs of all examples. Returns false if no pair moves.
    template <class Stop>
    bool solve_all(double tau, Index most, Stop stop) {
        if (P_.size <= kFirstSteps) most = kStepsEach * P_.size;
        for (Index steps = 1; steps <= most && P_.extremes.delta() > tau; ++steps) {
            const Mover i{P_.extremes.i, row(P_.extremes.i)};
            const Index j = second_order_partner(P_, i);
            if (!move_pair(P_, i, {j, row(j)})) return false;
            if (steps % kStepsPerLook == 0 && stop()) break;
        }
        return true;
    }

    const float* row(Index k) {
        if (!K_.has_row(k))
            K_.fetch(wanted_soon(P_, k, std::min(kAhead, K_.room() / 2),
                                 [&](Index l) { return !K_.has_row(l); }));
        return K_.row(k);
    }

    // Moves pairs of the examples that violate most. Returns whether alpha changed.
    template <class Stop>
    bool solve_some(double tau, Stop stop) {
        choose();
        K_.fetch(chosen_);
        const Index n = chosen_.size();
        at_.assign(chosen_.begin(), chosen_.end());
        small_ = Problem();
        small_.reserve(n);
        matrix_.resize(n * padded(n));
        for (Index k = 0; k < n; ++k) {
            const Index s = chosen_[k];
            small_.add(P_.alpha[s], P_.g[s], P_.side[s], P_.diagonal[s], P_.box[s]);
            float* row = matrix_.data() + k * padded(n);
            table().collect(row, K_.row(s), at_.data(), n);
            std::fill(row + n, row + padded(n), 0.0f);
        }
        small_.find_extremes();
        solve_small(std::max(tau / 2, kInner * P_.extremes.delta()), stop);
        return apply();
    }

    template <class Stop>
    void solve_small(double tau, Stop stop) {
        const Index stride = padded(small_.size), most = kStepsEach * small_.size;
        const auto mover = [&](Index k) { return Mover{k, matrix_.data() + k * stride}; };
        for (Index steps = 1; small_.extremes.delta() > tau && steps < most; ++steps) {
            const Mover i = mover(small_.extremes.i);
            if (!move_pair(small_, i, mover(second_order_partner(small_, i)))) return;
            if (steps % kStepsPerLook == 0 && stop()) return;
        }
    }

    // Takes over what the working set has become. Returns whether anything changed.
    bool apply() {
        bool changed = false;
        for (Index k = 0; k < small_.size; ++k) {
            const Index s = chosen_[k];
            const double change = small_.alpha[k] - P_.alpha[s];
            if (change == 0.0) continue;
            changed = true;
            P_.alpha[s] = small_.alpha[k];
            P_.refresh(s);
            table().add(P_.g.data(), K_.row(s), -change, padded(P_.size));
        }
        P_.find_extremes();
        return changed;
    }

    // The examples that violate, and those nearest to violating.
    void choose() {
        const Index most = std::min({kMost, K_.room() / 2, P_.size});
        const double b = P_.bias();
        near_.clear();
        for (Index k = 0; k < P_.size; ++k) {
            const bool rises = P_.up[k] == 0, falls = P_.down[k] == 0;
            const double g = P_.g[k] - b;
            const double distance = rises && falls ? -std::abs(g) : rises ? -g : g;
            if ((rises || falls) && distance < kNear) near_.emplace_back(distance, k);
        }
        if (most < near_.size()) {
            std::nth_element(near_.begin(), near_.begin() + most, near_.end());
            near_.resize(most);
        }
        chosen_.clear();
        for (const auto& [distance, k] : near_) chosen_.push_back(k);
        std::sort(chosen_.begin(), chosen_.end());
    }

    Problem& P_;
    KernelMatrix<T>& K_;
    Problem small_;  // the working set
    Array<float> matrix_;
    Vector<std::int32_t> at_;
    Vector<Index> chosen_;
    Vector<std::pair<double, Index>> near_;
};

}  // namespace marginwise
