// Shrinking: the members that may still move, drawn together so that finishing walks short arrays.
//
// A member at a side of its box whose gradient holds it there cannot be part of a violating pair.
// The others are gathered, the problem is solved over them, and the result is carried back to all
// members. Nothing moves in the dual itself; if carrying back uncovers new violating pairs, the
// caller gathers again.
#pragma once

#include "marginwise/clock.hpp"
#include "marginwise/direction.hpp"

namespace marginwise {

template <class T>
class ActiveSet {
public:
    // Gathers the members of problem c that are free or violate.
    ActiveSet(Dual<T>& D, Index c) : D_(D), whole_(D.problems[usize(c)]), rows_(kBytes) {
        at_ = movable(whole_);
        P_.resize(padded(count(at_)));
        diagonal_.resize(usize(padded(count(at_))), 0.0);
        for (Index k = 0; k < count(at_); ++k) {
            P_.copy(k, whole_, at_[usize(k)]);
            diagonal_[usize(k)] = D.diagonal[usize(at_[usize(k)])];
        }
        P_.find_extremes();
    }

    // Moves pairs by second-order choice until delta <= tau, or the deadline; tells which.
    bool solve(double tau, const Deadline& deadline) {
        constexpr Index kLook = 256, kShrink = 1024;  // steps between looks at the clock, and between shrinkings
        for (Index n = 1; P_.extremes.both() && P_.extremes.delta() > tau; ++n) {
            if (n % kLook == 0 && deadline.passed()) return false;
            if (n % kShrink == 0) shrink();
            const Index i = P_.extremes.i;
            const float* k_i = row(i);
            const Index j = second_order_partner(P_, i, k_i, diagonal_);
            move_pair(P_, {i, k_i}, {j, row(j)}, diagonal_);
            ++D_.stats.reprocess;
        }
        return true;
    }

    // Carries the new alpha and its effect on g to all members.
    void apply() {
        for (Index k = 0; k < count(at_); ++k) settle(k);
        for (const auto& [s, alpha] : settled_) {
            const double change = alpha - whole_.alpha[usize(s)];
            table().add(whole_.g.data(), D_.row(s), -change, padded(D_.size()));
            whole_.alpha[usize(s)] = alpha;
            whole_.refresh(s);
        }
        whole_.find_extremes();
    }

private:
    static constexpr Index kBytes = 64 << 20;

    // Members that are free, or whose gradient may draw them off the side they are at.
    static std::vector<Index> movable(const Problem& P) {
        std::vector<Index> found;
        for (Index s = 0; s < count(P.g); ++s) {
            const bool up = P.up[usize(s)] == 0, down = P.down[usize(s)] == 0;
            const double g = P.g[usize(s)];
            if ((up && down) || (up && g >= P.extremes.g_min) || (down && g <= P.extremes.g_max))
                found.push_back(s);
        }
        return found;
    }

    // Drops the members that cannot move any more, if there are enough of them.
    void shrink() {
        const std::vector<Index> keep = movable(P_);
        if (10 * count(keep) > 9 * count(at_)) return;
        std::vector<std::uint8_t> kept(at_.size(), 0);
        for (const Index k : keep) kept[usize(k)] = 1;
        for (Index k = 0; k < count(at_); ++k)
            if (!kept[usize(k)]) {
                settle(k);
                rows_.drop(k);
            }
        rows_.compact(keep);
        P_.compact(keep);
        for (Index k = 0; k < count(keep); ++k) {
            at_[usize(k)] = at_[usize(keep[usize(k)])];
            diagonal_[usize(k)] = diagonal_[usize(keep[usize(k)])];
        }
        at_.resize(keep.size());
        diagonal_.resize(usize(padded(count(keep))));
    }

    void settle(Index k) {
        const Index s = at_[usize(k)];
        if (P_.alpha[usize(k)] != whole_.alpha[usize(s)])
            settled_.emplace_back(s, P_.alpha[usize(k)]);
    }

    // Row of the k-th active member over the active members.
    const float* row(Index k) {
        RowCache::Row& held = rows_.take(k, count(at_));
        if (held.length == 0) {
            const float* from = D_.row(at_[usize(k)]);
            for (Index t = 0; t < count(at_); ++t) held.values[usize(t)] = from[at_[usize(t)]];
            std::fill(held.values.begin() + count(at_), held.values.begin() + padded(count(at_)),
                      0.0f);
            held.length = count(at_);
        }
        return held.values.data();
    }

    Dual<T>& D_;
    Problem& whole_;
    std::vector<Index> at_;  // positions of the active members
    Problem P_;
    Array<double> diagonal_;
    RowCache rows_;
    std::vector<std::pair<Index, double>> settled_;  // new alphas of members no longer active
};

}  // namespace marginwise
