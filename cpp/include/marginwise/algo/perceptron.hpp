// Kernel perceptrons: plain, with a margin, averaged, on a budget, and passive-aggressive
// [bordes2005, section 2.2; crammer2006].
//
//   paper    here                        paper    here
//   S        open places of a problem    N        budget
//   beta     margin
//
// DEPARTS: a mistake on an example that is already a member adds to its alpha.
// DEPARTS: the averaged perceptron uses the mean of all coefficients, not a vote.
#pragma once

#include "marginwise/model/learner.hpp"
#include "marginwise/solve/direction.hpp"

namespace marginwise {

struct PerceptronSettings {
    double margin = 0.0;
    Index budget = 0;  // maximal number of members; 0: no limit
    bool average = false;
    bool aggressive = false;  // passive-aggressive

    template <class F>
    void visit(F use) {
        use("margin", margin);
        use("budget", budget);
        use("average", average);
        use("aggressive", aggressive);
    }
};

template <class T>
class Perceptron : public Learner<T> {
  public:
    using Settings = PerceptronSettings;
    Perceptron(Dual<T> dual, ModelSettings common, PerceptronSettings settings)
        : Learner<T>(std::move(dual), std::move(common)),
          settings_(settings),
          presented_(D.problems(), 0) {}

    using Learner<T>::D;

    std::unique_ptr<Model<T>> clone() const override { return std::make_unique<Perceptron>(*this); }

    Array<double> output(Index c) const override {
        const Subproblem& sub = D.subproblems[c];
        Array<double> weight = sub.weight;
        if (!settings_.average) return weight;
        const double examples = static_cast<double>(presented_[c]);
        for (Index k = 0; k < sub.P.size; ++k)
            if (sub.P.open[k]) weight[sub.member[k]] -= sub.P.average_offset[k] / examples;
        return weight;
    }

    Vector<double> extra_state(Index c) const override {
        return {static_cast<double>(presented_[c])};
    }
    void set_extra_state(Index c, const double* values) override {
        presented_[c] = static_cast<Index>(values[0]);
    }

    void check(double tolerance) override { D.check(tolerance, false); }

  protected:
    void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) override;
    double expansion(Index c, const float* row) const override;
    double gap(Index) const override { return 0.0; }

  private:
    double step(double z, double cost, double k_tt) const;
    void move(Index c, Index k, double change);
    void remove_one(Index c);

    PerceptronSettings settings_;
    Vector<Index> presented_;
};

template <class T>
void Perceptron<T>::learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    const Index before = presented_[c]++;
    const double y = D.sign(c, example.label);
    const double f = this->raw_expansion(c, block.row(r));                            // 3
    const double size = step(y * f, example.cost, D.kernel.diagonal(block.rows, r));  // 4
    if (size == 0.0) return;
    ++D.stats.process;
    if (!this->holds(c, s)) this->insert(c, example, block, r, s, y - f, Box::endless);  // 4a
    const Index k = D.subproblems[c].place[s];
    move(c, k, y * size);
    if (settings_.average) D.problem(c).average_offset[k] += y * size * static_cast<double>(before);
    if (settings_.budget > 0 && D.problem(c).members() > settings_.budget) remove_one(c);  // 4b
}

// The increase of |alpha| of an example with margin y f = z; 0 if it is not updated.
template <class T>
double Perceptron<T>::step(double z, double cost, double k_tt) const {
    if (!settings_.aggressive) return z <= settings_.margin ? cost : 0.0;
    const double loss = std::max(0.0, settings_.margin - z);
    return std::min(cost, loss / std::max(k_tt, simd::kLeastCurvature));
}

template <class T>
void Perceptron<T>::move(Index c, Index k, double change) {
    Problem& P = D.problem(c);
    table().add(P.g.data(), D.row(c, k), -change, padded(P.size));
    P.alpha[k] += change;
    P.refresh(k);
    D.weigh(c, k);
}

// Drops the member that has the largest margin y f after its own removal.
template <class T>
void Perceptron<T>::remove_one(Index c) {
    const Problem& P = D.problem(c);
    Index best = kNone;
    double highest = 0;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        const double without = P.y(k) * (P.y(k) - P.g[k] - P.alpha[k] * P.diagonal[k]);
        if (best == kNone || without > highest) best = k, highest = without;
    }
    move(c, best, -P.alpha[best]);
    D.close(c, best);
}

template <class T>
double Perceptron<T>::expansion(Index c, const float* row) const {
    const double f = this->raw_expansion(c, row);
    if (!settings_.average || presented_[c] == 0) return f;
    const Subproblem& sub = D.subproblems[c];
    double offset = 0;
    for (Index k = 0; k < sub.P.size; ++k)
        if (sub.P.open[k])
            offset += sub.P.average_offset[k] * static_cast<double>(row[sub.member[k]]);
    return f - offset / static_cast<double>(presented_[c]);
}

}  // namespace marginwise
