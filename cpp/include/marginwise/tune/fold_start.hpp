// Warm starts across folds: the first solution on a training set starts from the solution on
// another training set that shares most of its examples.
//
// Shared examples keep their coefficients. New examples start at their bound if they are within the
// margin of the other model, and at 0 otherwise. With a small C, most support vectors are bounded,
// so few steps remain. With a large C they are not; scaling the solution for the previous C is then
// a better start.
#pragma once

#include <numeric>

#include "marginwise/tune/kernel_matrix.hpp"

namespace marginwise {

class FoldStarts {
  public:
    void clear() { known_.clear(); }

    // Keeps the solution P of the problem with labels y, unless one is already kept.
    void keep(const Problem& P, View<double> y) {
        if (find(y)) return;
        Known known{Array<double>(y.begin(), y.end()), Array<double>(P.size), Array<double>(P.size),
                    Vector<State>(P.size, State::open), P.bias()};
        for (Index k = 0; k < P.size; ++k) {
            known.alpha[k] = P.alpha[k];
            known.g[k] = P.g[k];
            if (P.box[k] == Box::shut) known.state[k] = State::left_out;
            if (P.bounded(k)) known.state[k] = State::bounded;
        }
        known_.push_back(std::move(known));
    }

    // Starts P, whose coefficients are 0, from the solution kept for labels y, if there is one.
    template <class T>
    void apply(Problem& P, View<double> y, KernelMatrix<T>& K) const {
        const Known* known = find(y);
        if (!known) return;
        Array<double> alpha(P.size, 0.0);
        for (Index k = 0; k < P.size; ++k) alpha[k] = known->guess(P, k);
        known->balance(alpha);
        known->move(P, alpha, K);
    }

  private:
    enum class State : std::uint8_t { open, bounded, left_out };

    struct Known {
        Array<double> y, alpha, g;
        Vector<State> state;
        double bias;

        // 1 - y f(x)
        double within_margin(Index k) const { return y[k] * (g[k] - bias); }

        double guess(const Problem& P, Index k) const {
            const bool is_new = state[k] == State::left_out;
            const bool fills = is_new ? within_margin(k) > 0 : state[k] == State::bounded;
            if (P.box[k] == Box::shut) return 0.0;
            return fills ? P.side[k] : std::clamp(alpha[k], P.lo[k], P.hi[k]);
        }

        // Reduces coefficients of the class with the larger sum until the sum of all is 0, starting
        // with the examples least within the margin.
        void balance(Array<double>& to) const {
            double sum = std::accumulate(to.begin(), to.end(), 0.0);
            Vector<std::pair<double, Index>> order;
            for (Index k = 0; k < to.size(); ++k)
                if (to[k] * sum > 0) order.emplace_back(within_margin(k), k);
            std::sort(order.begin(), order.end());
            for (const auto& [within, k] : order) {
                const double less = std::abs(to[k]) <= std::abs(sum) ? to[k] : sum;
                to[k] -= less;
                sum -= less;
            }
        }

        template <class T>
        void move(Problem& P, const Array<double>& to, KernelMatrix<T>& K) const {
            constexpr Index kTogether = 256;
            Vector<Index> changed;
            for (Index k = 0; k < P.size; ++k)
                if (to[k] != alpha[k]) changed.push_back(k);
            std::copy(g.begin(), g.end(), P.g.begin());
            const Index together = std::min(kTogether, K.room());
            for (Index first = 0; first < changed.size(); first += together) {
                const Index last = std::min(first + together, changed.size());
                K.fetch(Vector<Index>(changed.begin() + first, changed.begin() + last));
                for (Index c = first; c < last; ++c)
                    table().add(P.g.data(), K.row(changed[c]), alpha[changed[c]] - to[changed[c]],
                                padded(P.size));
            }
            for (Index k = 0; k < P.size; ++k) {
                P.alpha[k] = to[k];
                P.refresh(k);
            }
        }
    };

    const Known* find(View<double> y) const {
        for (const Known& known : known_)
            if (std::equal(y.begin(), y.end(), known.y.begin(), known.y.end())) return &known;
        return nullptr;
    }

    Vector<Known> known_;
};

}  // namespace marginwise
