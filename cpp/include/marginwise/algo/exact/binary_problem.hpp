// One binary problem during a change, such as an arrival or a removal: the state shared by the
// path, the repair and leave-one-out.
#pragma once

#include <functional>

#include "marginwise/algo/exact/conditions.hpp"
#include "marginwise/algo/exact/full_rows.hpp"
#include "marginwise/algo/exact/migrations.hpp"
#include "marginwise/algo/exact/rounding.hpp"

namespace marginwise::exact {

// Resources shared by all problems of a model during a call.
struct Resources {
    Dual<double>& D;
    FullRows& rows;
    ThreadPool& workers;
    const ExactSettings& settings;
    std::function<bool()> stopped;  // whether to give up; the model is then discarded
};

struct BinaryProblem {
    // INVARIANT, at the beginning and at the end of a change:
    //   g[k] == target(k) - sum_l alpha[l] K(k, l) for open places k
    //   S has the open places k with lo[k] < alpha[k] < hi[k], unless S.indefinite
    //   h(k) == 0 on S; up[k] != 0 or h(k) <= 0, and down[k] != 0 or h(k) >= 0, elsewhere
    //   alpha adds up to S.total, which is conditions.required_total()
    // and always:
    //   weight of a member is alpha of its place, except for coefficients that Gradient tracks
    //   rows counts each place of S as wanted
    BinaryProblem(const Resources& resources, Index problem, FreeSet& free_set, Recorder recorder_)
        : D(resources.D),
          c(problem),
          sub(resources.D.subproblems[problem]),
          P(sub.P),
          S(free_set),
          rows(resources.rows),
          workers(resources.workers),
          settings(resources.settings),
          stopped(resources.stopped),
          conditions(P, S, settings),
          rounding(P, S, settings.sphere),
          recorder(std::move(recorder_)) {}

    Dual<double>& D;
    const Index c;
    Subproblem& sub;
    Problem& P;
    FreeSet& S;
    FullRows& rows;
    ThreadPool& workers;
    const ExactSettings& settings;
    const std::function<bool()>& stopped;

    Conditions conditions;
    Rounding rounding;
    Recorder recorder;
    Vector<Index> excluded;  // places that do not move and whose conditions do not count for now

    // Work so far. It is bounded, so that every loop ends.
    Index steps = 0;       // along lines
    Index idle_steps = 0;  // the latest consecutive steps without progress
    Index relearned = 0;   // examples

    void restart_count() { steps = idle_steps = relearned = 0; }
    Index most_steps() const { return 1000 + 4 * P.members(); }

    Index member(Index k) const { return sub.member[k]; }
    // K(k, .) by member.
    const double* row(Index k) { return rows.row(D, workers, member(k)); }
    double h(Index k) const { return P.g[k] - S.bias; }
    double target(Index k) const { return conditions.target(k); }
    Set set(Index k) const { return set_of(P, S, k); }
    bool at_bound(Index k) const { return P.alpha[k] <= P.lo[k] || P.alpha[k] >= P.hi[k]; }
    bool is_excluded(Index k) const {
        return std::find(excluded.begin(), excluded.end(), k) != excluded.end();
    }

    // Call after alpha of place k changed.
    void refresh(Index k) {
        P.refresh(k);
        D.weigh(c, k);
    }

    // The place outside S that violates its condition most, or kNone if none violates it by more
    // than rounding.
    Index worst_violator() const {
        double most = 0.0;
        Index found = kNone;
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[k] || S.has(k) || is_excluded(k)) continue;
            const double wrong = conditions.violation(k, h(k));
            if (wrong > most && wrong > 10 * rounding.h_error(k)) most = wrong, found = k;
        }
        return found;
    }
};

}  // namespace marginwise::exact
