// Approximate incremental SVMs that track the sequence of optima [usunier2010, algorithms 1 and 2].
//
//   paper         here                              paper     here
//   alpha, g      Problem::alpha, Problem::g        K         steps
//   alpha-bar     alpha - Problem::average_offset   t         Round::known
//   delta_T       Round::gained
//
// Random picks are hashes of seed, round and step, so they do not depend on how the stream is split
// into batches.
//
// DEPARTS: an example presented again is already known: t does not grow.
// DEPARTS: with gradients of support vectors only, an example whose average is not 0 is kept for
//          one round after its alpha becomes 0, but is not picked in that round.
#pragma once

#include "marginwise/base/random.hpp"
#include "marginwise/model/learner.hpp"
#include "marginwise/solve/direction.hpp"

namespace marginwise {

struct TrackingSettings {
    Index steps = 10;
    bool process = true;        // algorithm 2
    bool average = true;        // the output is alpha-bar
    bool support_only = false;  // gradients of support vectors only [section 5.2]
    std::uint64_t seed = 0;

    template <class F>
    void visit(F use) {
        use("steps", steps);
        use("process", process);
        use("average", average);
        use("support_only", support_only);
        use("seed", seed);
    }
};

// A pseudo-random number below n for a step of a round.
inline Index pick_below(Index n, std::uint64_t seed, std::uint64_t round, std::uint64_t step) {
    const std::uint64_t key = seed ^ ((round + 1) * kGolden) ^ ((step + 1) * kMultiplier);
    return scale_below(splitmix64(key), n);
}

template <class T>
class Tracking : public Learner<T> {
  public:
    using Settings = TrackingSettings;
    Tracking(Dual<T> dual, ModelSettings common, TrackingSettings settings)
        : Learner<T>(std::move(dual), std::move(common)),
          settings_(settings),
          rounds_(D.problems()) {
        D.most_together = 1;  // random picks cannot be predicted, so no rows are fetched ahead
    }

    using Learner<T>::D;

    std::unique_ptr<Model<T>> clone() const override { return std::make_unique<Tracking>(*this); }

    Array<double> output(Index c) const override {
        const Subproblem& sub = D.subproblems[c];
        Array<double> weight = sub.weight;
        for (Index k = 0; k < sub.P.size; ++k)
            if (sub.P.average_offset[k] != 0) weight[sub.member[k]] -= sub.P.average_offset[k];
        return weight;
    }

    Vector<double> extra_state(Index c) const override {
        const Round& round = rounds_[c];
        return {static_cast<double>(round.number), static_cast<double>(round.known), round.gained};
    }
    void set_extra_state(Index c, const double* values) override {
        rounds_[c] = {static_cast<Index>(values[0]), static_cast<Index>(values[1]), values[2]};
    }

    void check(double tolerance) override { D.check(tolerance, false); }

  protected:
    void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) override;
    double expansion(Index c, const float* row) const override;

  private:
    struct Round {
        Index number = 0;   // examples presented
        Index known = 0;    // distinct examples
        double gained = 0;  // gain of PROCESS in the dual
    };

    void process(Index c, Index k);
    void reprocess(Index c, Index step);
    void forget_idle(Index c);

    TrackingSettings settings_;
    Vector<Round> rounds_;
};

// One round of algorithm 1; with PROCESS, of algorithm 2.
template <class T>
void Tracking<T>::learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    Round& round = rounds_[c];
    Problem& P = D.problem(c);
    // alpha-bar averages over a single round
    std::fill(P.average_offset.begin(), P.average_offset.end(), 0.0);
    const bool known = this->holds(c, s);
    const double y = D.sign(c, example.label);
    const double g = known ? 0.0 : y - this->raw_expansion(c, block.row(r));
    const bool stays = !settings_.support_only || y * g > 0;  // alpha will not be 0
    if (!known && stays) this->insert(c, example, block, r, s, g);
    if (!known) ++round.known;
    if (settings_.process && (known || stays)) process(c, D.subproblems[c].place[s]);  // 4
    for (Index step = 0; step < settings_.steps; ++step) reprocess(c, step);           // 5
    if (settings_.support_only) forget_idle(c);
    ++round.number;  // 11
}

template <class T>
void Tracking<T>::process(Index c, Index k) {
    const double g = D.problem(c).g[k], curvature = D.problem(c).diagonal[k];
    ++D.stats.process;
    const double step = ascend(D, c, k);
    rounds_[c].gained += step * (g - step * curvature / 2);
}

// A dual coordinate ascent step on an example picked at random.
template <class T>
void Tracking<T>::reprocess(Index c, Index step) {
    const Round& round = rounds_[c];
    Problem& P = D.problem(c);
    const Index drawn =
        pick_below(round.known, settings_.seed, std::uint64_t(round.number), std::uint64_t(step));
    const Index i = P.nth_open(drawn);  // 6
    if (i == kNone) return;             // the example is no longer held
    if (settings_.support_only && P.alpha[i] == 0.0) return;
    const double change = ascend(D, c, i);  // 7
    if (change == 0.0) return;
    ++D.stats.reprocess;
    // 8: the first `step` of the `steps` averaged values lack this change
    if (settings_.average)
        P.average_offset[i] +=
            change * static_cast<double>(step) / static_cast<double>(settings_.steps);
}

template <class T>
void Tracking<T>::forget_idle(Index c) {
    Problem& P = D.problem(c);
    for (const Index k : P.idle_places())
        if (P.average_offset[k] == 0.0) D.close(c, k);
}

template <class T>
double Tracking<T>::expansion(Index c, const float* row) const {
    double f = this->raw_expansion(c, row);
    const Subproblem& sub = D.subproblems[c];
    for (Index k = 0; k < sub.P.size; ++k)
        if (sub.P.average_offset[k] != 0)
            f -= sub.P.average_offset[k] * static_cast<double>(row[sub.member[k]]);
    return f;
}

}  // namespace marginwise
