// Keeping the solution true: what rounding and the screen left over is found and mended, and where
// a path cannot be followed the problem is solved on the spot.
#pragma once

#include "marginwise/algo/exact/exact.hpp"

namespace marginwise {

// Finds what rounding depends on; commit() keeps it up to date. As |K(k, l)| <= sqrt(K(k, k) K(l,
// l)) for a positive semi-definite kernel, the rounding of g(k) is at most about eps sqrt(K(k, k))
// sum_l |alpha_l| sqrt(K(l, l)): rows of very different size have their own. Other kernels have
// the largest K(k, k) in place of all.
inline void Exact::measure(Index c) {
    const Problem& P = problem(c);
    FreeSet& M = free_set(c);
    weight_ = 0.0;
    least_ = M.indefinite ? largest(c) : 0.0;
    for (Index k = 0; k < P.size; ++k)
        if (const double alpha = P.alpha[k]; alpha != 0.0)
            weight_ += std::abs(alpha) * std::sqrt(std::max(std::abs(P.diagonal[k]), least_));
    M.peak = std::max(M.peak, weight_);
}

inline double Exact::largest(Index c) const {
    const Problem& P = problem(c);
    double most = 0.0;
    for (Index k = 0; k < P.size; ++k)
        if (P.open[k]) most = std::max(most, std::abs(P.diagonal[k]));
    return most;
}

// An h of place k that is taken for 0.
inline double Exact::still(Index c, Index k) const {
    constexpr double kFloor = 1e-12, kSphere = 1e-13;
    const double size = length(c, k);
    if (own_.sphere) return kSphere * size * (weight_ + free_set(c).total * size / 2);
    return kFloor + 4 * std::numeric_limits<double>::epsilon() * size * weight_;
}

// How near to a side of its box alpha of place k has reached it: a share of the box, and never so
// much that h would notice, for with a large C K(k, k) the box is no measure of alpha.
inline double Exact::grain(Index c, Index k, double relative) const {
    const Problem& P = problem(c);
    const double size = length(c, k);
    const double box = relative * (P.hi[k] - P.lo[k]);
    return size > 0.0 ? std::min(box, still(c, k) / (size * size)) : box;
}

// Whether coefficients were once so much larger that g still has rounding from then.
inline bool Exact::drifted(Index c) const {
    const FreeSet& M = free_set(c);
    if (M.peak <= 16 * weight_) return false;
    const double rounding = 4 * std::numeric_limits<double>::epsilon() * M.peak;
    return rounding * std::sqrt(largest(c)) > 1e-12;
}

// The place that violates the conditions (2) most, and by more than rounding, or kNone.
inline Index Exact::worst(Index c) const {
    const Problem& P = problem(c);
    const FreeSet& M = free_set(c);
    double most = 0.0;
    Index found = kNone;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k] || M.has(k) || is_aside(k)) continue;
        const double h = P.g[k] - M.bias;
        const double wrong = std::max(P.up[k] == 0 ? h : 0.0, P.down[k] == 0 ? -h : 0.0);
        if (wrong > most && wrong > 10 * still(c, k)) most = wrong, found = k;
    }
    return found;
}

inline double Exact::violation(Index c) const {
    const Problem& P = problem(c);
    double most = 0;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        const double h = P.g[k] - P.bias();
        if (P.up[k] == 0) most = std::max(most, h);
        if (P.down[k] == 0) most = std::max(most, -h);
    }
    return most;
}

// Whether the coefficients do not add up to what they have to.
inline bool Exact::unbalanced(Index c) const {
    constexpr double kBalance = 1e-9;
    const Problem& P = problem(c);
    double sum = 0, sizes = 0;
    for (Index k = 0; k < P.size; ++k) {
        sum += P.alpha[k];
        sizes += std::abs(P.alpha[k]);
    }
    return std::abs(sum - free_set(c).total) > kBalance * sizes;
}

inline double Exact::shortfall(Index c) const {
    constexpr double kAccurate = 1e-6, kGap = 1e-7;
    const Problem& P = problem(c);
    const double bias = P.bias();
    double most = unbalanced(c) ? 1.0 : 0.0, gap = 0, objective = 0;
    if (most > 0.0) return most;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        const double h = P.g[k] - bias, t = std::abs(target(c, k));
        const double wrong = std::max(P.up[k] == 0 ? h : 0.0, P.down[k] == 0 ? -h : 0.0);
        if (wrong > kAccurate * t) most = std::max(most, t > 0.0 ? wrong / t : wrong);
        gap += std::max(h, 0.0) * P.rise[k] + std::max(-h, 0.0) * P.fall[k];
        objective += std::abs(P.alpha[k]) * t;
        if (!std::isfinite(h)) return simd::Extremes::kInfinite;
    }
    return gap <= kGap * objective ? 0.0 : most;
}

// Brings the solution to the conditions (2); tells whether that was possible. An example that went
// astray while nobody watched it is learned as if it had just come.
inline bool Exact::settle(Index c) {
    constexpr double kWider = 1.5, kNarrower = 0.99, kLeastReach = 0.01;
    constexpr int kRounds = 100;
    FreeSet& M = free_set(c);
    bool missed = false;
    for (int round = 0;; ++round) {
        snap(c, 1e-12);
        if (round == kRounds || stopped() || !refine(c)) return false;
        if (worst(c) == kNone) break;
        missed = true;
        if (!recall(c)) return false;
    }
    M.reach = std::clamp(M.reach * (missed ? kWider : kNarrower), kLeastReach, 1e3);
    return true;
}

// Learns the examples that went astray, the worst first.
inline bool Exact::recall(Index c) {
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    for (Index k; (k = worst(c)) != kNone;) {
        if (++recalls_ > most_steps(c)) return false;
        const bool rises = P.g[k] > M.bias;
        const Set from = set_of(c, k);
        if (!run(c, {{k}, {rises ? P.hi[k] : P.lo[k]}, 0.0, 0.0, k})) return false;
        if (!arrive(c, k, from)) return false;
    }
    return true;
}

// One Newton step or two where h on S, or the sum of alpha, is off by more than rounding.
inline bool Exact::refine(Index c) {
    constexpr int kRounds = 4;
    constexpr double kBalance = 1e-13;
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    for (int round = 0; round <= 2 * kRounds; ++round) {
        double off = 0, sum = 0, sizes = 0;  // off: relative to what is taken for 0
        slot_q_.assign(M.factor.slots(), 0.0);
        for (Index k = 0; k < P.size; ++k) {
            sum += P.alpha[k];
            sizes += std::abs(P.alpha[k]);
        }
        for (Index slot = 0; slot < M.factor.slots(); ++slot)
            if (const Index k = M.place[slot]; k != kNone) {
                slot_q_[slot] = P.g[k] - M.bias;
                off = std::max(off, std::abs(slot_q_[slot]) / still(c, k));
            }
        const double lacking = M.total - sum;
        if (M.empty() || (off <= 1.0 && std::abs(lacking) <= kBalance * sizes)) return true;
        if (!std::isfinite(off)) return false;
        if (round == kRounds && !refactor(c)) return false;
        if (round == kRounds) continue;
        M.factor.set_load(slot_q_.data());
        M.factor.solve(lacking, direction_);
        M.bias += direction_.beta_b + M.shift * lacking;
        Vector<std::pair<Index, bool>> leavers;
        for (Index slot = 0; slot < M.factor.slots(); ++slot) {
            const Index k = M.place[slot];
            if (k == kNone) continue;
            touch(c, k);
            double& alpha = P.alpha[k];
            alpha += direction_.beta[slot];
            if (alpha < P.lo[k]) leavers.emplace_back(slot, false);
            if (alpha > P.hi[k]) leavers.emplace_back(slot, true);
        }
        for (const auto& [slot, upwards] : leavers) leave(c, slot, upwards);
        commit(c, 0.0);
    }
    return true;  // as good as it gets; worst() has the last word
}

// Computes the factor anew; an example that has become dependent makes place for the others.
inline bool Exact::refactor(Index c) {
    clear_margin(c);
    gather_margin(c);
    return !free_set(c).indefinite;
}

inline void Exact::clear_margin(Index c) {
    FreeSet& M = free_set(c);
    for (const Index k : M.place)
        if (k != kNone) rows_.want(member(c, k), -1);
    M.clear();
    slot_q_.clear();
}

// All places between the sides of their box become S.
inline void Exact::gather_margin(Index c) {
    const Problem& P = problem(c);
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k] || is_aside(k) || at_bound(P, k)) continue;
        if (stopped() || !become_free(c, k, Set::free)) return;
    }
    commit(c, 0.0);
}

// Examples of S that have reached a side of their box but for rounding have reached it.
inline void Exact::snap(Index c, double tolerance) {
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    for (Index slot = 0; slot < M.factor.slots(); ++slot) {
        const Index k = M.place[slot];
        if (k == kNone) continue;
        const double near = grain(c, k, tolerance);
        const bool up = P.alpha[k] >= P.hi[k] - near;
        if (!up && P.alpha[k] > P.lo[k] + near) continue;
        touch(c, k);
        leave(c, slot, up);
    }
    commit(c, 0.0);
}

// Ends an arrival or a removal.
inline void Exact::finish(Index c, bool good) {
    good = good && !unbalanced(c);
    if (good && drifted(c)) {
        regrade(c);
        good = settle(c);
    }
    if (!good) {
        resolve(c);
        rewrite_path(c);
    }
    snap(c, 1e-14);
    let_go();
    problem(c).find_extremes();
}

// What led nowhere is no part of the path: from the sets before it is one step to those now.
inline void Exact::rewrite_path(Index c) {
    if (!own_.record) return;
    Vector<Migration> gone;
    for (Index i = path_before_; i < path.size(); ++i)
        if (path[i].to == Set::gone) gone.push_back(path[i]);
    path.resize(path_before_);
    path.insert(path.end(), gone.begin(), gone.end());
    for (Index k = 0; k < sets_before_.size(); ++k)
        if (problem(c).open[k]) note(c, k, sets_before_[k], set_of(c, k));
}

// Solves the problem by pairs of coordinates [fan2005], then finds S and the exact solution from
// there, if the kernel allows.
inline void Exact::resolve(Index c) {
    constexpr double kRough = 1e-6;
    FreeSet& M = free_set(c);
    Problem& P = problem(c);
    ++M.resolved;
    let_go();
    scale_ = 1.0;
    growth_ = 0.0;
    W_.column.clear();
    W_.stride = 0;
    M.total = wanted_total(c);
    for (const double tolerance : {kRough, 0.0, 0.0}) {
        if (stopped()) return;
        clear_margin(c);
        rebalance(c);
        regrade(c);
        fit_shift(c, kNone);
        descend(c, tolerance);
        regrade(c);
        P.find_extremes();
        M.bias = P.bias();
        if (M.indefinite) continue;
        steps_ = idle_steps_ = recalls_ = 0;
        gather_margin(c);
        if (!M.indefinite && settle(c)) return;
    }
}

// Makes the coefficients lie in their boxes and add up to what they have to.
inline void Exact::rebalance(Index c) {
    Problem& P = problem(c);
    double lacking = free_set(c).total;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        double& alpha = P.alpha[k];
        alpha = is_aside(k) ? 0.0 : std::clamp(alpha, P.lo[k], P.hi[k]);
        if (!std::isfinite(alpha)) alpha = 0.0;
        lacking -= alpha;
    }
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        double& alpha = P.alpha[k];
        const double change =
            is_aside(k) ? 0.0 : std::clamp(lacking, P.lo[k] - alpha, P.hi[k] - alpha);
        alpha += change;
        lacking -= change;
        P.refresh(k);
        D.weigh(c, k);
    }
}

// Computes the gradient anew from coefficients and kernel values.
inline void Exact::regrade(Index c) {
    Problem& P = problem(c);
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        P.g[k] = target(c, k);
        const double alpha = std::exchange(P.alpha[k], 0.0);
        touch(c, k);
        P.alpha[k] = alpha;
    }
    commit(c, 0.0);
    free_set(c).peak = 0.0;
    measure(c);
}

// K(i, i) + K(j, j) - 2 K(i, j), or what rounding leaves of it.
inline double Exact::curvature(const Problem& P, Index i, Index j, double k_ij) const {
    const double both = P.diagonal[i] + P.diagonal[j];
    const double least = std::numeric_limits<double>::epsilon() * std::abs(both);
    return std::max({both - 2 * k_ij, least, 1e-300});
}

// The place to move against place i, by the gain of a step that no box cuts short.
inline Index Exact::partner(Index c, Index i, const double* k_i) const {
    const Problem& P = problem(c);
    Index j = kNone;
    double best = 0;
    for (Index l = 0; l < P.size; ++l) {
        const double gain = P.g[i] - P.g[l];
        if (!P.open[l] || P.down[l] != 0 || gain <= 0) continue;
        const double value = gain * (gain / curvature(P, i, l, k_i[member(c, l)]));
        if (value > best) best = value, j = l;
    }
    return j;
}

// Moves alpha of i up and that of j down by as much; tells whether they moved at all. The gradient
// follows what the coefficients really did.
inline bool Exact::move_pair(Index c, Index i, Index j, const double* k_i) {
    Problem& P = problem(c);
    const double* k_j = row(c, j);
    const double before_i = P.alpha[i], before_j = P.alpha[j];
    const double room_i = P.hi[i] - before_i, room_j = before_j - P.lo[j];
    const double step = (P.g[i] - P.g[j]) / curvature(P, i, j, k_i[member(c, j)]);
    const double lambda = std::min({step, room_i, room_j});
    P.alpha[i] = lambda >= room_i ? P.hi[i] : before_i + lambda;
    P.alpha[j] = lambda >= room_j ? P.lo[j] : before_j - lambda;
    const double up = P.alpha[i] - before_i, down = P.alpha[j] - before_j;
    for (Index l = 0; l < P.size; ++l)
        if (P.open[l]) P.g[l] -= up * k_i[member(c, l)] + down * k_j[member(c, l)];
    for (const Index k : {i, j}) {
        P.refresh(k);
        D.weigh(c, k);
    }
    return up != 0.0 || down != 0.0;
}

// Removes violating pairs until the worst one violates by no more than `tolerance` times the
// targets, or rounding.
inline void Exact::descend(Index c, double tolerance) {
    Problem& P = problem(c);
    for (const Index k : aside_) {  // they do not move
        P.up[k] = -simd::Extremes::kInfinite;
        P.down[k] = simd::Extremes::kInfinite;
    }
    const Index most = 100000 + 100 * P.size;
    for (Index step = 0; step < most; ++step) {
        P.find_extremes();
        if (!P.extremes.both() || stopped()) return;
        const Index i = P.extremes.i, other = P.extremes.j;
        const double targets = std::max(std::abs(target(c, i)), std::abs(target(c, other)));
        const double rounding = 5 * (still(c, i) + still(c, other));
        if (P.extremes.delta() <= std::max(tolerance * targets, rounding)) return;
        const double* k_i = row(c, i);
        const Index j = partner(c, i, k_i);
        if (j == kNone || !move_pair(c, i, j, k_i)) return;
        if (step % 1024 == 1023) measure(c);
    }
}

inline void Exact::check(double tolerance) {
    const auto require = [](bool holds, const char* what) {
        if (!holds) throw std::logic_error(std::string("invariant broken: ") + what);
    };
    ThreadPool workers(1);
    workers_ = &workers;
    const Stats before = D.stats;
    for (Index c = 0; c < D.problems(); ++c) {
        const Problem& P = problem(c);
        const FreeSet& M = free_set(c);
        double sum = 0;
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[k]) {
                require(!M.has(k), "S has open places only");
                continue;
            }
            const Index s = member(c, k);
            const double* values = rows_.row(D, workers, s);
            double f = 0;
            for (Index l = 0; l < P.size; ++l)
                if (P.open[l]) f += P.alpha[l] * values[member(c, l)];
            require(std::abs(P.g[k] - (target(c, k) - f)) <= tolerance, "g == t - sum alpha K");
            require(P.lo[k] <= P.alpha[k] && P.alpha[k] <= P.hi[k], "lo <= alpha <= hi");
            require(D.subproblems[c].weight[s] == P.alpha[k], "weight is alpha");
            require(M.indefinite || M.has(k) || at_bound(P, k), "who is not in S is at a bound");
            require(!M.has(k) || M.place[M.slot[k]] == k, "place[slot[k]] == k");
            sum += P.alpha[k];
        }
        require(std::abs(sum - M.total) <= tolerance, "alpha adds up to the total");
        require(M.indefinite || violation(c) <= tolerance, "the conditions (2) hold");
        for (Index i = 0; i < M.factor.slots(); ++i)
            for (Index j = i; j < M.factor.slots(); ++j) {
                double product = 0;
                for (Index l = 0; l <= i; ++l)
                    product += M.factor.entry(l, i) * M.factor.entry(l, j);
                const Index k = M.place[i], l = M.place[j];
                double wanted = i == j ? 1.0 : 0.0;
                if (k != kNone && l != kNone)
                    wanted = rows_.row(D, workers, member(c, k))[member(c, l)] + M.shift;
                require(std::abs(product - wanted) <= tolerance * (1 + std::abs(wanted)),
                        "R'R is the kernel matrix of S");
            }
    }
    D.stats = before;
    workers_ = nullptr;
}

}  // namespace marginwise
