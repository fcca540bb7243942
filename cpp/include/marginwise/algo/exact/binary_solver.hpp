// The changes that lead a binary problem from one exact solution to the next: learning an example,
// forgetting examples, changing C. See exact.hpp for the idea, symbols and departures. Numbers in
// comments are the lines of algorithm 1 of [laskov2006].
#pragma once

#include "marginwise/algo/exact/repair.hpp"

namespace marginwise::exact {

// Memory that is reused from one change to the next.
struct Workspace {
    Gradient::Memory gradient;
    Columns columns;
};

// An instance serves one change.
class BinarySolver {
  public:
    BinarySolver(const Resources& resources, Index c, FreeSet& S_, Recorder recorder,
                 Workspace& memory);
    BinarySolver(const BinarySolver&) = delete;

    // Learns place k, which has just been opened with alpha = 0 and has its gradient. `values` is
    // its kernel row.
    void learn(Index k, const double* values);

    // Forgets places and closes them.
    void forget(const Vector<Index>& places);

    // Multiplies the costs of all places by `factor`.
    void scale_costs(double factor);

    // Solves the problem from any coefficients. Computes the gradient from scratch.
    void solve();

    // Solves the problem without place k, which stays open with alpha = 0.
    void leave_out(Index k);

    // Restores a saved problem and S.
    void restore(const Problem& problem, const FreeSet& free_set);

  private:
    bool unlearn(const Vector<Index>& places, double total);
    void close(Index k);

    BinaryProblem B;
    Problem& P;
    FreeSet& S;
    Gradient gradient_;
    Line line_;
    Membership membership_;
    Path path_;
    Repair repair_;
};

inline BinarySolver::BinarySolver(const Resources& resources, Index c, FreeSet& S_,
                                  Recorder recorder, Workspace& memory)
    : B(resources, c, S_, std::move(recorder)),
      P(B.P),
      S(B.S),
      gradient_(B, memory.gradient),
      line_(B, gradient_, memory.columns),
      membership_(B, gradient_, line_),
      path_(B, gradient_, line_, membership_),
      repair_(B, gradient_, line_, membership_, path_) {
    S.bias = P.bias();
    if (S.empty()) membership_.fit_shift();
    B.rounding.measure();
    B.recorder.begin(B.D, c, S);
}

// Algorithm 1.
inline void BinarySolver::learn(Index k, const double* values) {
    if (P.members() == 1) S.bias = P.g[k];  // any value is optimal
    const bool sphere = B.settings.sphere;
    bool good = !S.indefinite, moved = sphere;
    if (sphere && good) {  // the example raises the required total
        const double total = B.conditions.required_total() - S.total, hi = P.hi[k];
        good = path_.follow({{k}, {total > (1 - 1e-13) * hi ? hi : total}, total});
        S.total += total;
    }
    const double h = B.h(k);  // 1
    const double end = h > 0 ? P.hi[k] : P.lo[k];
    if (good && std::abs(h) > B.rounding.h_error(k) && P.alpha[k] != end) {
        ++B.D.stats.process;
        B.rows.keep(B.D, B.member(k), values);
        good = path_.follow({{k}, {end}, 0.0, 0.0, k});  // 2 to 17
        moved = true;
    }
    good = good && path_.arrive(k, Set::idle);
    repair_.finish(good && (!moved || repair_.converge()));
}

// Drives alpha of all these places to 0 along one line; returns whether that was possible.
inline bool BinarySolver::unlearn(const Vector<Index>& places, double total) {
    Drive drive;
    drive.total = total;
    bool moves = total != 0.0;
    for (const Index k : places) {
        if (S.has(k)) {
            B.rows.want(B.member(k), -1);
            S.remove(k);
        }
        moves = moves || P.alpha[k] != 0.0;
        drive.place.push_back(k);
        drive.end.push_back(0.0);
    }
    return !moves || (!S.indefinite && path_.follow(std::move(drive)));
}

inline void BinarySolver::forget(const Vector<Index>& places) {
    double total = 0.0;
    if (B.settings.sphere) {
        for (const Index k : places) P.open[k] = 0;  // excludes them from the total
        total = B.conditions.required_total() - S.total;
        for (const Index k : places) P.open[k] = 1;
    }
    const bool good = unlearn(places, total);
    S.total += total;
    if (!good) {
        membership_.clear();
        for (const Index k : places) {
            P.alpha[k] = 0.0;
            B.refresh(k);
        }
    }
    for (const Index k : places) {
        B.recorder.record_removal(k);
        close(k);
    }
    repair_.finish(good && repair_.converge());
}

// Wipes a member that no problem holds any more at once, without waiting for compaction.
inline void BinarySolver::close(Index k) {
    const Index s = B.member(k);
    B.D.close(B.c, k);
    if (B.D.holders[s] > 0) return;
    B.D.wipe(s);
    B.rows.drop(s);
}

// Scales the boxes; coefficients at their sides move along.
inline void BinarySolver::scale_costs(double factor) {
    Drive drive;
    drive.growth = factor - 1.0;
    const bool good = !S.indefinite && path_.follow(std::move(drive));
    const double rounding = 1e-12 * std::max(1.0, 1.0 / factor);
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        double& alpha = P.alpha[k];
        const bool bounded = good && alpha != 0.0 && !S.has(k);
        P.side[k] *= factor;
        P.set_box(k, Box::usual);
        alpha = bounded ? P.side[k] : std::clamp(alpha, P.lo[k], P.hi[k]);
        B.refresh(k);
    }
    if (!good) membership_.clear();
    B.rounding.measure();
    membership_.snap(rounding);
    repair_.finish(good && repair_.converge());
}

inline void BinarySolver::solve() {
    repair_.finish(false);
    --S.resolved;  // does not count: there was no path to follow
}

inline void BinarySolver::leave_out(Index k) {
    const bool good = unlearn({k}, 0.0);
    P.alpha[k] = 0.0;
    B.excluded = {k};
    repair_.finish(good && repair_.converge());
    B.excluded.clear();
}

inline void BinarySolver::restore(const Problem& problem, const FreeSet& free_set) {
    membership_.clear();
    P = problem;
    S = free_set;
    for (const Index k : S.place)
        if (k != kNone) B.rows.want(B.member(k), 1);
    for (Index k = 0; k < P.size; ++k)
        if (P.open[k]) B.D.weigh(B.c, k);
}

}  // namespace marginwise::exact
