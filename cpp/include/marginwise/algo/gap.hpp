// LASVM-G, LASVM-NC, LASVM-I and FULL SVM: the duality gap sets the number of steps [ertekin2011].
//
//   paper       here                             paper       here
//   S           open places of a problem         A, B        lo, hi
//   alpha, g    Problem::alpha, Problem::g       beta        Box::shifted where it is C
//   G, G-hat    Standing::gap, target()          m, s        max_idle, ramp
//
// Each pass that updates the gradient also computes the gap. The moments of the target take one
// pass after an example that took steps. A new member adds its own terms to both.
//
// DEPARTS: REPROCESS moves both members of the most violating pair to the joint optimum in their
//          boxes. The paper moves only the worse of the two, which takes far more steps to reach
//          the same gap.
// DEPARTS: the first few examples of each class are learned with the hinge loss. A model that has
//          seen only one class would treat the other as outliers forever.
// DEPARTS: CLEAN keeps the members whose gradient is closest to letting them move. The paper's
//          |g|+ would keep outliers that cannot move.
// DEPARTS: an example that is already a member is not inserted again; REPROCESS still follows.
// DEPARTS: every loop has a step limit, see step_limit.hpp.
#pragma once

#include "marginwise/model/learner.hpp"
#include "marginwise/solve/direction.hpp"
#include "marginwise/solve/drop_idle.hpp"
#include "marginwise/solve/step_limit.hpp"

namespace marginwise {

enum class Loss { hinge, ramp, filter };

struct GapSettings {
    double tau = 1e-3;
    Loss loss = Loss::hinge;
    double ramp = -1.0;       // s: where the ramp ends
    Index clean_every = 300;  // examples; 0: never, which is FULL SVM
    Index max_idle = 100;

    template <class F>
    void visit(F use) {
        use("tol", tau);
        use("loss", loss);
        use("ramp", ramp);
        use("clean_every", clean_every);
        use("max_idle", max_idle);
    }
};

template <class T>
class Gap : public Learner<T> {
  public:
    using Settings = GapSettings;
    static constexpr Index kSeeds = 5;  // examples per class that always use the hinge loss

    Gap(Dual<T> dual, ModelSettings common, GapSettings settings)
        : Learner<T>(std::move(dual), std::move(common)),
          settings_(settings),
          standing_(D.problems()) {
        for (Subproblem& sub : D.subproblems) {
            sub.keeps_bounded = true;
            if (settings.loss != Loss::hinge) sub.suspects.ramp = settings.ramp;
        }
    }

    using Learner<T>::D;

    std::unique_ptr<Model<T>> clone() const override { return std::make_unique<Gap>(*this); }
    bool has_ramp() const override { return true; }

    // Repeats REPROCESS until no member violates by more than tau.
    bool finish(double tau, double seconds) override;
    void end_finish() override { finishing_.clear(); }

    Vector<double> extra_state(Index c) const override {
        const Standing& now = standing_[c];
        return {double(now.since_clean), double(now.met[0]),   double(now.met[1]), now.gap,
                now.moments.h,           now.moments.h_squared};
    }
    void set_extra_state(Index c, const double* values) override {
        standing_[c] = {Index(values[0]),
                        {Index(values[1]), Index(values[2])},
                        values[3],
                        {values[4], values[5]}};
    }

  protected:
    void learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) override;
    double gap(Index c) const override { return standing_[c].gap; }
    void find_extremes(Index c) override {
        const Problem& P = D.problem(c);
        take(c, table().tally(P.g.data(), P.rooms(), padded(P.size)));
        find_moments(c);
    }

  private:
    // The state of a problem between examples.
    struct Standing {
        Index since_clean = 0;  // examples since the last CLEAN
        Index met[2] = {0, 0};  // negative and positive examples seen, up to kSeeds
        double gap = 0;
        simd::Moments moments;
    };

    double target(Index c) const;
    bool process(Index c, const Example& example, Block<T>& block, Index r, Index& s, double f,
                 Box box);
    bool reprocess(Index c, double tau);
    bool repeat(Index c, double threshold);
    static double violation(const Problem& P) {
        return std::max(-P.extremes.g_min, P.extremes.g_max);
    }
    void clean(Index c);
    void take(Index c, const simd::Tally& tally) {
        D.problem(c).extremes = tally.extremes;
        standing_[c].gap = tally.gap;
    }
    void find_moments(Index c) {
        const Problem& P = D.problem(c);
        standing_[c].moments = table().moments(P.g.data(), P.side.data(), padded(P.size));
    }

    GapSettings settings_;
    Vector<Standing> standing_;
    Vector<StepLimit> finishing_;  // by problem, during a finish
};

// The online iteration of LASVM-G, LASVM-NC and LASVM-I.
template <class T>
void Gap<T>::learn_in(Index c, const Example& example, Block<T>& block, Index r, Index& s) {
    Standing& now = standing_[c];
    const double y = D.sign(c, example.label), f = this->raw_expansion(c, block.row(r));
    const double z = y * f;
    Index& met = now.met[y > 0];
    const Loss loss = met < kSeeds ? Loss::hinge : settings_.loss;
    met = std::min(met + 1, kSeeds);
    const bool worth_a_place = !this->budget_.limited() || z < 1 - this->budget_.kWorth;
    const bool ignored = (loss == Loss::filter && (z > 1 || z < settings_.ramp)) || !worth_a_place;
    const bool outlier = loss == Loss::ramp && z < settings_.ramp;
    if (!ignored) {
        const double threshold = std::max(example.cost, target(c));
        const Box box = outlier ? Box::shifted : Box::usual;
        bool moved = !this->holds(c, s) && process(c, example, block, r, s, f, box);
        moved = repeat(c, threshold) || moved;
        if (moved) find_moments(c);
    } else if (!this->holds(c, s)) {
        D.subproblems[c].suspects.judge(example.id, example.label, z);
    }
    ++now.since_clean;
    if (settings_.clean_every > 0 && now.since_clean >= settings_.clean_every) clean(c);
}

// The gap target, the standard deviation of the primal [eq. 8].
template <class T>
double Gap<T>::target(Index c) const {
    const simd::Moments& sums = standing_[c].moments;
    const double l = static_cast<double>(D.subproblems[c].P.members());
    return l > 0 ? std::sqrt(std::max(0.0, sums.h_squared - sums.h * sums.h / l)) : 0.0;
}

// LASVM-G PROCESS(i). Returns whether alpha changed.
template <class T>
bool Gap<T>::process(Index c, const Example& example, Block<T>& block, Index r, Index& s, double f,
                     Box box) {
    const double g = D.sign(c, example.label) - f;  // 1
    ++D.stats.process;
    const Index k = this->insert(c, example, block, r, s, g, box);
    Problem& P = D.problem(c);
    const double h = P.side[k] * g;
    Standing& now = standing_[c];
    now.gap += std::max(P.lo[k] * g, P.hi[k] * g);
    now.moments.h += h;
    now.moments.h_squared += h * h;
    const double step = move_alone(P, k);  // 2
    if (step == 0.0) return false;
    const float* row = D.row(c, k);
    take(c, table().step_both(P.g.data(), row, step, row, 0.0, P.rooms(), padded(P.size)));  // 3
    D.weigh(c, k);
    return true;
}

// LASVM-G REPROCESS(). Returns whether alpha changed.
template <class T>
bool Gap<T>::reprocess(Index c, double tau) {
    Problem& P = D.problem(c);
    const simd::Extremes e = P.extremes;    // 1
    if (violation(P) <= tau) return false;  // 2
    ++D.stats.reprocess;
    const Index i = e.i == kNone ? e.j : e.i, j = e.j == kNone ? e.i : e.j;  // 3
    const float* k_i = D.row(c, i);
    const float* k_j = D.row(c, j);
    const auto [a, b] = i == j ? std::pair{move_alone(P, i), 0.0} : move_both(P, {i, k_i}, j);  // 4
    if (a == 0.0 && b == 0.0) {
        give_up(P, violation(P));
        return false;
    }
    take(c, table().step_both(P.g.data(), k_i, a, k_j, b, P.rooms(), padded(P.size)));  // 5
    D.weigh(c, i);
    D.weigh(c, j);
    return true;
}

// Repeats REPROCESS until the gap is within the threshold. Returns whether alpha changed.
template <class T>
bool Gap<T>::repeat(Index c, double threshold) {
    Problem& P = D.problem(c);
    StepLimit limit = StepLimit::online(P);
    bool moved = false;
    while (standing_[c].gap > threshold && reprocess(c, settings_.tau)) {
        moved = true;
        if (limit.reached(P, violation(P)) || (limit.looks() && this->interrupted())) {
            give_up(P, violation(P));
            break;
        }
    }
    return moved;
}

template <class T>
bool Gap<T>::finish(double tau, double seconds) {
    const Stopwatch whole(D.stats.finish_seconds);
    const Deadline deadline(seconds);
    for (Index c = finishing_.size(); c < D.problems(); ++c)
        finishing_.push_back(StepLimit::finishing(D.problem(c)));
    for (Index c = 0; c < D.problems(); ++c) {
        Problem& P = D.problem(c);
        StepLimit& limit = finishing_[c];
        bool late = false, ended = false;
        for (Index step = 1; !late && !ended && reprocess(c, tau); ++step) {
            ended = limit.reached(P, violation(P));
            late = step % kStepsPerLook == 0 && deadline.passed();
        }
        find_moments(c);
        if (late && !ended) return false;
        P.unsolved = violation(P) > tau ? violation(P) : 0.0;
    }
    finishing_.clear();
    return true;
}

// CLEAN: drops the members with alpha = 0 that are farthest from moving.
template <class T>
void Gap<T>::clean(Index c) {
    Problem& P = D.problem(c);
    standing_[c].since_clean = 0;
    const auto distance = [&](Index k) { return P.hi[k] > 0 ? -P.g[k] : P.g[k]; };
    if (!drop_idle(D, c, settings_.max_idle, distance)) return;
    if (D.problems() > 1) D.compact_places(c);  // closed places would change how sums round
    find_extremes(c);
}

}  // namespace marginwise
