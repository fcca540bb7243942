// Leave-one-out: what the decision value of a member would be if its problem had not learned it.
//
// The weight of the member is removed, and the problem is solved again from there, with the same
// bias. A solved problem is close to its solution without one member, so a few steps are enough.
#pragma once

#include <limits>

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/dual/divide_cache.hpp"
#include "marginwise/dual/single.hpp"
#include "marginwise/solve/direction.hpp"

namespace marginwise {

template <class T>
class LeaveOut {
  public:
    // Takes at most `most_steps` steps per member. The problem must not have sleepers.
    LeaveOut(Dual<T>& D, Index c, Index most_steps)
        : D_(D), c_(c), P_(D.problem(c)), tau_(kPart * spread(P_)), most_steps_(most_steps) {}

    // f at the member of place k without this member. The problem remains as it was.
    double operator()(Index k) {
        const double b = P_.bias();
        if (P_.alpha[k] == 0.0) return P_.y(k) - P_.g[k] + b;  // it changes nothing
        before_ = P_.g;
        const simd::Extremes extremes = P_.extremes;
        const Box box = P_.box[k];
        for (Index l = 0; l < P_.size; ++l) P_.g[l] -= b;
        note(k);
        move(k, -P_.alpha[k]);
        P_.set_box(k, Box::shut);
        solve();
        const double f = P_.y(k) - P_.g[k];
        P_.box[k] = box;
        while (!touched_.empty()) {
            const auto [l, alpha] = touched_.back();
            touched_.pop_back();
            P_.alpha[l] = alpha;
            P_.set_box(l, P_.box[l]);
        }
        std::swap(P_.g, before_);
        P_.extremes = extremes;
        return f;
    }

  private:
    static constexpr double kPart = 0.02;  // violation to solve to, as a part of the spread of f

    // The standard deviation of f over the members.
    static double spread(const Problem& P) {
        double sum = 0, squares = 0, count = 0;
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[k]) continue;
            const double f = P.y(k) - P.g[k];
            sum += f;
            squares += f * f;
            ++count;
        }
        return count > 0 ? std::sqrt(std::max(0.0, squares / count - sum * sum / (count * count)))
                         : 0.0;
    }

    void note(Index k) { touched_.emplace_back(k, P_.alpha[k]); }

    // alpha_k += by, whatever its box.
    void move(Index k, double by) {
        P_.alpha[k] += by;
        P_.refresh(k);
        table().add(P_.g.data(), D_.row(c_, k), -by, padded(P_.size));
    }

    // Moves pairs by second-order selection, without the constraint on their sum: g does not
    // contain the bias, which one member hardly changes.
    void solve() {
        find_extremes();
        for (Index n = 0; n < most_steps_ && violation() > tau_; ++n) {
            const simd::Extremes& e = P_.extremes;
            const bool rises = e.i != kNone && e.g_max > 0;
            const Index i = rises ? e.i : e.j;
            const float* row_i = D_.row(c_, i);
            const Index j = rises ? second_order_partner(D_, c_, i) : kNone;
            const bool both = j != kNone && j != i;
            const float* row_j = both ? D_.row(c_, j) : row_i;
            note(i);
            if (both) note(j);
            const auto [a, b] =
                both ? move_both(P_, {i, row_i}, j) : std::pair{move_alone(P_, i), 0.0};
            if (a == 0.0 && b == 0.0) return;
            P_.extremes =
                table()
                    .step_both(P_.g.data(), row_i, a, row_j, b, P_.rooms(), padded(P_.size))
                    .extremes;
        }
    }
    void find_extremes() {
        P_.extremes = table().tally(P_.g.data(), P_.rooms(), padded(P_.size)).extremes;
    }
    double violation() const {
        const simd::Extremes& e = P_.extremes;
        return std::max(e.i != kNone ? e.g_max : 0.0, e.j != kNone ? -e.g_min : 0.0);
    }

    Dual<T>& D_;
    Index c_;
    Problem& P_;
    double tau_;
    Index most_steps_;
    Array<double> before_;
    Vector<std::pair<Index, double>> touched_;  // places and their earlier alpha
};

// out[r * problems + c]: f of member members[r] in problem c without this member; NaN if members[r]
// is kNone or the problem does not hold it. Takes at most about `steps` steps, and takes the
// problems apart: pass a copy of a model.
template <class T>
void leave_out(Dual<T>& D, const Vector<Index>& members, Index steps, Index threads, double* out) {
    constexpr Index kLeastSteps = 25, kMostSteps = 1000;  // per member and problem
    const Index problems = D.problems();
    std::fill_n(out, members.size() * problems, std::numeric_limits<double>::quiet_NaN());
    Vector<Index> row(D.size(), kNone);  // by member: its row of the output
    for (Index r = 0; r < members.size(); ++r)
        if (members[r] != kNone) row[members[r]] = r;
    D.rest();
    Index count = 0;
    for (const Subproblem& sub : D.subproblems)
        sub.each_weight([&](Index s, double) { count += row[s] != kNone; });
    const Index most_steps = std::clamp(steps / std::max(count, Index(1)), kLeastSteps, kMostSteps);
    const Index lent = problems > 1 ? D.lend_cache(threads, true) : 0;
    ThreadPool workers(threads);
    Vector<RowCache> memory(workers.threads(), RowCache(0));
    const auto visit = [&](Dual<T>& its, Index at, Index c, auto member_of) {
        LeaveOut<T> without(its, at, most_steps);
        const Problem& P = its.problem(at);
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[k]) continue;
            const Index r = row[member_of(k)];
            if (r != kNone) out[r * problems + c] = without(k);
        }
    };
    if (problems == 1)
        return visit(D, 0, 0, [&](Index k) { return Index{D.subproblems[0].member[k]}; });
    workers.run(problems, [&](Index c, Index worker) {
        const bool borrows = D.subproblems[c].borrows;
        Dual<T> alone = D.single(c);
        RowCache& rows = alone.subproblems[0].rows;
        if (borrows) {
            rows.exchange_memory(memory[worker]);
            rows.set_limit(lent);
        }
        // single() keeps positions in place of ids.
        visit(alone, 0, c, [&](Index k) { return Index(alone.members.ids[k]); });
        if (borrows) rows.exchange_memory(memory[worker]);
    });
}

}  // namespace marginwise
