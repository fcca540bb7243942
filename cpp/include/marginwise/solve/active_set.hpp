// Shrinking: the members that may still move, collected so that finishing scans short arrays.
//
// A member at a side of its box whose gradient holds it there cannot be part of a violating pair.
// The others are gathered, the problem is solved over them, and the result is carried back to all
// places. Nothing moves in the dual itself; if carrying back uncovers new violating pairs, the
// caller gathers again.
//
// Where the dual has no room for the rows of its free members, the features of the active places
// are gathered too: a row that is missing is then computed over the active places alone.
#pragma once

#include "marginwise/dual/dual.hpp"
#include "marginwise/solve/pair_solver.hpp"

namespace marginwise {

template <class T>
class ActiveSet {
  public:
    // Gathers the places of problem c that are free or violate.
    ActiveSet(Dual<T>& D, Index c) : D_(D), c_(c), whole_(D.problem(c)), rows_(64 << 20) {
        for (const Index k : movable(whole_)) {
            at_.push_back(k);
            P_.add(whole_, k);
        }
        P_.find_extremes();
    }

    // Moves pairs until delta <= tau, until the limit is reached, or until the deadline. Returns
    // whether it was not the deadline. May be called again to continue.
    bool solve(double tau, const Deadline& deadline, StepLimit& limit) {
        const auto ready = [&] {
            if (solver_.steps() % PairSolver::kShrink == PairSolver::kShrink - 1) shrink();
            return true;
        };
        const auto move = [&](Index most_violating) {
            const Mover i{most_violating, row(most_violating)};
            const Index j = second_order_partner(P_, i);
            ++D_.stats.reprocess;
            return move_pair(P_, i, {j, row(j)});
        };
        return solver_.solve(P_, tau, deadline, limit, ready, move);
    }

    bool gave_up() const { return solver_.gave_up(); }

    // Carries the new alpha and its effect on g to all places.
    void apply() {
        for (Index a = 0; a < P_.size; ++a) note_change(a);
        Vector<std::pair<Index, double>> changes;
        for (const auto& [k, alpha] : changed_) {
            changes.emplace_back(k, alpha - whole_.alpha[k]);
            whole_.alpha[k] = alpha;
            whole_.refresh(k);
            D_.weigh(c_, k);
        }
        D_.spread(c_, changes);
        whole_.find_extremes();
    }

    // Places that are free, or whose gradient may move them off their bound.
    static Compaction movable(const Problem& P) {
        Compaction found;
        for (Index k = 0; k < P.size; ++k) {
            const bool up = P.up[k] == 0, down = P.down[k] == 0;
            const double g = P.g[k];
            if ((up && down) || (up && g >= P.extremes.g_min) || (down && g <= P.extremes.g_max))
                found.add(k);
        }
        return found;
    }

  private:
    // Drops the places that cannot move any more, if there are enough of them.
    void shrink() {
        const Compaction compaction = movable(P_);
        if (4 * compaction.size() > 3 * P_.size) return;
        Vector<std::uint8_t> stays(P_.size, 0);
        for (const Index a : compaction) stays[a] = 1;
        for (Index a = 0; a < P_.size; ++a)
            if (!stays[a]) {
                note_change(a);
                rows_.drop(a);
            }
        rows_.compact(compaction);
        own_.compact(compaction);
        P_.compact(compaction);
        compaction.apply(at_);
    }

    // Remembers the alpha of the a-th active place for apply().
    void note_change(Index a) {
        const Index k = at_[a];
        if (P_.alpha[a] != whole_.alpha[k]) changed_.emplace_back(k, P_.alpha[a]);
    }

    // Row of the a-th active place over the active places. If the dual does not have it, and is to
    // keep it, other rows that finishing will need are fetched with it.
    const float* row(Index a) {
        if (const RowCache::Row* held = rows_.peek(a)) return rows_.take(a, held->length).values;
        if (!D_.has_row(c_, at_[a]) && has_own_features()) return computed_row(a);
        Vector<Index> wanted{a};
        if (!D_.has_row(c_, at_[a])) {
            wanted = wanted_soon(P_, a, rows_at_once(), [&](Index b) {
                return !rows_.peek(b) && !D_.has_row(c_, at_[b]);
            });
            Vector<Index> places;
            for (const Index b : wanted) places.push_back(at_[b]);
            D_.fetch(c_, places);
        }
        for (auto b = wanted.rbegin(); b != wanted.rend(); ++b) gather(*b);
        return rows_.peek(a)->values;
    }

    // Whether there is a copy of the features of the active places. It is made at the first cache
    // miss if the dual cannot hold the rows of all free members.
    bool has_own_features() {
        const Subproblem& sub = D_.subproblems[c_];
        if (own_.kept() || !sub.crowded()) return own_.kept();
        Vector<std::int32_t> member;
        for (const Index k : at_) member.push_back(sub.member[k]);
        own_.copy(D_.members, member, std::max(rows_.limit(), sub.rows.limit()));
        return own_.kept();
    }

    const float* computed_row(Index a) {
        RowCache::Row& held = rows_.take(a, P_.size);
        own_.fill(D_.kernel, a, 0, scratch_, held.values);
        std::fill(held.values + P_.size, held.values + padded(P_.size), 0.0f);
        held.length = P_.size;
        D_.stats.kernel_evaluations += P_.size;
        return held.values;
    }

    // As many as the dual can fetch and there is room for here.
    Index rows_at_once() const {
        return std::clamp<Index>(rows_.room() - rows_.held(), 1, D_.rows_at_once(c_));
    }

    void gather(Index a) {
        const float* from = D_.row(c_, at_[a]);
        RowCache::Row& held = rows_.take(a, P_.size);
        for (Index b = 0; b < P_.size; ++b) held.values[b] = from[at_[b]];
        std::fill(held.values + P_.size, held.values + padded(P_.size), 0.0f);
        held.length = P_.size;
    }

    Dual<T>& D_;
    Index c_;
    Problem& whole_;
    Vector<Index> at_;  // the place in `whole_` of each active place
    Problem P_;
    RowCache rows_;
    OwnFeatures<T> own_;
    Scratch<T> scratch_;
    PairSolver solver_;
    Vector<std::pair<Index, double>> changed_;  // places and their new alphas
};

}  // namespace marginwise
