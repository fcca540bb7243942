// Solving one binary problem over all examples of a kernel matrix.
//
// A step over all examples reads two whole rows. If a solution is near, a few thousand steps are
// enough. Otherwise, working sets are faster: they solve the problem for the examples that violate,
// or nearly do, on a matrix of their own, and then update the gradient of all examples once.
#pragma once

#include "marginwise/solve/direction.hpp"
#include "marginwise/solve/step_limit.hpp"
#include "marginwise/tune/kernel_matrix.hpp"

namespace marginwise {

// A few examples and their kernel matrix. The gradient is in single precision: its rounding error
// is small compared to the remaining violation and is discarded with the set. Memory is reused for
// the next set.
class WorkingSet {
  public:
    Array<double> alpha;

    Index size() const { return places_.size(); }
    Index place(Index k) const { return places_[k]; }

    // Removes all examples and makes room for `room` others.
    void clear(Index room) {
        places_.clear();
        stride_ = padded(room);
        if (matrix_.size() < room * stride_) matrix_.resize(room * stride_);
    }

    // Whether more examples fit.
    bool fits(Index more) const { return padded(size() + more) <= stride_; }

    // Adds places, whose rows K holds.
    template <class T>
    void add(const Vector<Index>& places, KernelMatrix<T>& K) {
        const Index before = size();
        for (const Index s : places) places_.push_back(static_cast<std::int32_t>(s));
        for (Index k = before; k < size(); ++k)
            table().collect(row(k), K.row(places_[k]), places_.data(), size());
        for (Index k = 0; k < size(); ++k) {
            if (k < before)
                for (Index l = before; l < size(); ++l) row(k)[l] = row(l)[k];
            std::fill(row(k) + size(), row(k) + padded(size()), 0.0f);
        }
    }

    // Starts from the current state of P.
    void read(const Problem& P) {
        const Index n = padded(size());
        alpha.assign(n, 0.0);
        lo_.assign(n, 0.0);
        hi_.assign(n, 0.0);
        g_.assign(n, 0.0f);
        diagonal_.assign(n, 1.0f);
        up_.assign(n, -kInfinite);
        down_.assign(n, kInfinite);
        for (Index k = 0; k < size(); ++k) {
            const Index s = places_[k];
            alpha[k] = P.alpha[s];
            lo_[k] = P.lo[s];
            hi_[k] = P.hi[s];
            g_[k] = static_cast<float>(P.g[s]);
            diagonal_[k] = static_cast<float>(P.diagonal[s]);
            refresh(k);
        }
    }

    // Moves pairs until delta <= tau, no pair moves, stop() returns true, or `most` steps have been
    // taken. Returns the number of steps.
    template <class Stop>
    Index solve(double tau, Index most, Stop stop) {
        const Index n = padded(size());
        extremes_ = table().extremes_single(g_.data(), up_.data(), down_.data(), n);
        Index steps = 0;
        for (; extremes_.delta() > tau && steps < most; ++steps) {
            const Index i = extremes_.i;
            const Index j = table()
                                .second_order_single(g_.data(), row(i), diagonal_.data(),
                                                     down_.data(), g_[i], diagonal_[i], n)
                                .s;
            if (j == kNone || !move(i, j)) break;
            if (steps % kStepsPerLook == kStepsPerLook - 1 && stop()) break;
        }
        return steps;
    }

  private:
    static constexpr auto kInfinite = static_cast<float>(simd::Extremes::kInfinite);

    float* row(Index k) { return matrix_.data() + k * stride_; }

    void refresh(Index k) {
        up_[k] = alpha[k] < hi_[k] ? 0.0f : -kInfinite;
        down_[k] = alpha[k] > lo_[k] ? 0.0f : kInfinite;
    }

    // Like move_pair(), but without its handling of coefficients of very different sizes.
    bool move(Index i, Index j) {
        const double curvature =
            std::max(static_cast<double>(diagonal_[i] + diagonal_[j] - 2 * row(i)[j]),
                     simd::kLeastCurvature);
        const double room_i = hi_[i] - alpha[i], room_j = alpha[j] - lo_[j];
        const double best = static_cast<double>(g_[i] - g_[j]) / curvature;
        const double lambda = std::min({best, room_i, room_j});
        if (!(lambda > 0)) return false;
        const double width = hi_[i] - lo_[i] + hi_[j] - lo_[j];
        const bool fills_i = lambda >= room_i - slip(alpha[i], hi_[i], width, lambda);
        const bool fills_j = lambda >= room_j - slip(alpha[j], lo_[j], width, lambda);
        alpha[i] = fills_i ? hi_[i] : alpha[i] + lambda;
        alpha[j] = fills_j ? lo_[j] : alpha[j] - lambda;
        refresh(i);
        refresh(j);
        extremes_ = table().step_single(g_.data(), row(i), row(j), static_cast<float>(lambda),
                                        up_.data(), down_.data(), padded(size()));
        return true;
    }

    Index stride_ = 0;  // of the matrix
    Vector<std::int32_t> places_;
    Array<double> lo_, hi_;
    Array<float> g_, diagonal_, up_, down_, matrix_;
    simd::Extremes extremes_;
};

template <class T>
class WorkingSets {
  public:
    // The places of P must be the examples of K, in the same order, and P.extremes must be known.
    WorkingSets(Problem& P, KernelMatrix<T>& K, WorkingSet& set) : P_(P), K_(K), set_(set) {}

    // Moves pairs until delta <= tau, no pair moves, the step limit is reached, or stop() returns
    // true. Returns the remaining violation.
    template <class Stop>
    double solve(double tau, Stop stop) {
        if (P_.size <= kFewRows && P_.size <= K_.room()) K_.fetch_all();
        most_ = std::min({kMost, K_.room() / 2, P_.size});
        left_ = kLeastSteps + kStepsEach * P_.size;
        Index most = P_.size <= kFirstSteps ? left_ : kFirstSteps;
        while (solve_all(tau, most, stop) && P_.extremes.delta() > tau && left_ > 0 && !stop()) {
            if (!solve_some(tau, stop) && most == kMoreSteps) break;
            most = kMoreSteps;
        }
        return P_.extremes.delta();
    }

  private:
    static constexpr Index kFirstSteps = 4096, kMoreSteps = 1024;  // over all examples
    static constexpr Index kFewRows = 2048;  // up to so many rows are all computed at once
    static constexpr Index kMost = 8192;     // maximal size of a working set
    static constexpr Index kMore = 4;        // a set may grow by 1 / kMore of its size
    static constexpr double kNear = 0.1;     // it includes examples this close to violating
    static constexpr double kInner = 0.1;    // fraction of the violation left in a working set
    // Step limit: models that need more steps are ill-conditioned and not worth it in a search.
    static constexpr Index kLeastSteps = 100'000, kStepsEach = 200;
    static constexpr Index kAhead = 32;  // rows computed when one is missing

    // Moves pairs among all examples. Returns false if no pair moves.
    template <class Stop>
    bool solve_all(double tau, Index most, Stop stop) {
        for (Index steps = 1; steps <= most && P_.extremes.delta() > tau; ++steps, --left_) {
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

    // Moves pairs among the most violating examples. Returns whether alpha changed.
    template <class Stop>
    bool solve_some(double tau, Stop stop) {
        choose();
        if (known_.empty() || !set_.fits(new_of(chosen_).size())) {
            set_.clear(std::min(padded(chosen_.size() + chosen_.size() / kMore), padded(most_)));
            known_.assign(P_.size, 0);
        }
        const Vector<Index> added = new_of(chosen_);
        for (const Index s : added) known_[s] = 1;
        K_.fetch(added);
        set_.add(added, K_);
        set_.read(P_);
        left_ -= set_.solve(std::max(tau / 2, kInner * P_.extremes.delta()), left_, stop);
        return apply();
    }

    // Applies the solution of the working set to P. Returns whether anything changed.
    bool apply() {
        bool changed = false;
        for (Index k = 0; k < set_.size(); ++k) {
            const Index s = set_.place(k);
            const double change = set_.alpha[k] - P_.alpha[s];
            if (change == 0.0) continue;
            changed = true;
            P_.alpha[s] = set_.alpha[k];
            P_.refresh(s);
            table().add(P_.g.data(), K_.row(s), -change, padded(P_.size));
        }
        P_.find_extremes();
        return changed;
    }

    Vector<Index> new_of(const Vector<Index>& places) const {
        Vector<Index> found;
        for (const Index s : places)
            if (!known_[s]) found.push_back(s);
        return found;
    }

    // Chooses the examples that violate and those nearest to violating.
    void choose() {
        const double b = P_.bias();
        near_.clear();
        for (Index k = 0; k < P_.size; ++k) {
            const bool rises = P_.up[k] == 0, falls = P_.down[k] == 0;
            const double g = P_.g[k] - b;
            const double distance = rises && falls ? -std::abs(g) : rises ? -g : g;
            if ((rises || falls) && distance < kNear) near_.emplace_back(distance, k);
        }
        if (most_ < near_.size()) {
            std::nth_element(near_.begin(), near_.begin() + most_, near_.end());
            near_.resize(most_);
        }
        chosen_.clear();
        for (const auto& [distance, k] : near_) chosen_.push_back(k);
        std::sort(chosen_.begin(), chosen_.end());
    }

    Problem& P_;
    KernelMatrix<T>& K_;
    WorkingSet& set_;
    Vector<std::uint8_t> known_;  // by place: whether it is in the set; empty before the first set
    Index most_ = 0;              // maximal size of a set
    Index left_ = 0;              // remaining steps
    Vector<Index> chosen_;
    Vector<std::pair<double, Index>> near_;
};

}  // namespace marginwise
