// Shrinking: the members that may still move, drawn together so that finishing walks short arrays.
//
// A member at a side of its box whose gradient holds it there cannot be part of a violating pair.
// The others are gathered, the problem is solved over them, and the result is carried back to all
// places. Nothing moves in the dual itself; if carrying back uncovers new violating pairs, the
// caller gathers again.
#pragma once

#include "marginwise/clock.hpp"
#include "marginwise/direction.hpp"
#include "marginwise/effort.hpp"

namespace marginwise {

// Steps between two looks at the clock, and between two shrinkings.
constexpr Index kLook = 256, kShrink = 1024;

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

    // Moves pairs by second-order choice until delta <= tau, until that takes too long, or until
    // the deadline: tells whether it was not the deadline. May be called again to go on.
    bool solve(double tau, const Deadline& deadline, Effort& effort) {
        while (P_.extremes.both() && P_.extremes.delta() > tau) {
            if (steps_ % kShrink == kShrink - 1) shrink();
            const Mover i{P_.extremes.i, row(P_.extremes.i)};
            const Index j = second_order_partner(P_, i);
            const bool moved = move_pair(P_, i, {j, row(j)});
            ++D_.stats.reprocess;
            if (!moved || effort.spent(P_, P_.extremes.delta())) {
                gave_up_ = true;
                return true;
            }
            if (++steps_ % kLook == 0 && deadline.passed()) return false;
        }
        return true;
    }

    bool gave_up() const { return gave_up_; }

    // Carries the new alpha and its effect on g to all places.
    void apply() {
        for (Index a = 0; a < P_.size; ++a) settle(a);
        Vector<std::pair<Index, double>> changes;
        for (const auto& [k, alpha] : settled_) {
            changes.emplace_back(k, alpha - whole_.alpha[k]);
            whole_.alpha[k] = alpha;
            whole_.refresh(k);
            D_.weigh(c_, k);
        }
        D_.spread(c_, changes);
        whole_.find_extremes();
    }

    // Places that are free, or whose gradient may draw them off the side they are at.
    static Keep movable(const Problem& P) {
        Keep found;
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
        const Keep keep = movable(P_);
        if (4 * keep.size() > 3 * P_.size) return;
        Vector<std::uint8_t> stays(P_.size, 0);
        for (const Index a : keep) stays[a] = 1;
        for (Index a = 0; a < P_.size; ++a)
            if (!stays[a]) {
                settle(a);
                rows_.drop(a);
            }
        rows_.compact(keep);
        P_.compact(keep);
        keep.close_up(at_);
    }

    void settle(Index a) {
        const Index k = at_[a];
        if (P_.alpha[a] != whole_.alpha[k]) settled_.emplace_back(k, P_.alpha[a]);
    }

    // Row of the a-th active place over the active places. Where the dual does not have it, others
    // that finishing will ask for are fetched with it.
    const float* row(Index a) {
        if (const RowCache::Row* held = rows_.peek(a)) return rows_.take(a, held->length).values;
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
    Index steps_ = 0;
    bool gave_up_ = false;
    Vector<std::pair<Index, double>> settled_;  // new alphas of places no longer active
};

// The finishing of one problem, which may be left and taken up again: where it is cut does not
// change the result. Several problems may be worked on at the same time; they share nothing that is
// written.
template <class T>
class Finishing {
  public:
    Finishing(Dual<T>& D, Index c) : D_(D), c_(c), effort_(Effort::finishing(D.problem(c))) {}

    // Goes on until delta <= tau or more steps than that is worth, when it is done, or the
    // deadline. Ends with settle().
    void solve(double tau, const Deadline& deadline) {
        if (D_.problems() > 1 && !alone_ && !solved(tau))
            alone_ = std::make_unique<Dual<T>>(D_.single(c_));
        Dual<T>& D = alone_ ? *alone_ : D_;
        const Index c = alone_ ? 0 : c_;
        const simd::Extremes& e = D.problem(c).extremes;
        while (active_ || (!gave_up_ && e.both() && e.delta() > tau)) {
            if (!active_ && !solve_whole(D, c, tau, deadline)) return;
            if (!active_ && !gave_up_ && e.delta() > tau)
                active_ = std::make_unique<ActiveSet<T>>(D, c);
            if (active_ && !active_->solve(tau, deadline, effort_)) return;
            settle_active();
        }
        D.problem(c).unsolved = e.both() && e.delta() > tau ? e.delta() : 0.0;
        done_ = true;
    }
    bool done() const { return done_; }

    // Brings what has been done so far into the dual; not while other problems are worked on.
    void settle() {
        settle_active();
        if (alone_) D_.take_back(c_, std::move(*alone_));
        alone_.reset();
    }

  private:
    bool solved(double tau) const {
        const simd::Extremes& e = D_.problem(c_).extremes;
        return !e.both() || e.delta() <= tau;
    }

    // Moves pairs over all places while most of them may move, for then drawing them together would
    // gain nothing, or until the deadline; tells which.
    bool solve_whole(Dual<T>& D, Index c, double tau, const Deadline& deadline) {
        Problem& P = D.problem(c);
        while (P.extremes.both() && P.extremes.delta() > tau) {
            if (steps_ % kShrink == 0 && 4 * ActiveSet<T>::movable(P).size() < 3 * P.size) break;
            const Index i = P.extremes.i;
            const bool moved = move_pair(D, c, i, second_order_partner(P, {i, D.row(c, i)}));
            ++D.stats.reprocess;
            if (!moved || effort_.spent(P, P.extremes.delta())) {
                gave_up_ = true;
                return true;
            }
            if (++steps_ % kLook == 0 && deadline.passed()) return false;
        }
        return true;
    }

    void settle_active() {
        if (active_) {
            active_->apply();
            gave_up_ = gave_up_ || active_->gave_up();
        }
        active_.reset();
    }

    Dual<T>& D_;
    Index c_;
    Index steps_ = 0;
    Effort effort_;
    bool done_ = false, gave_up_ = false;
    std::unique_ptr<Dual<T>> alone_;  // the problem by itself, where there are several
    std::unique_ptr<ActiveSet<T>> active_;
};

}  // namespace marginwise
