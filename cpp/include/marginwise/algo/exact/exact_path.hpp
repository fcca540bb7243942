// Following a line from event to event: algorithm 1 of [laskov2006], with its line numbers.
#pragma once

#include "marginwise/algo/exact/exact.hpp"

namespace marginwise {

// Follows a line to its end; tells whether that was possible. Where nobody is left on the margin,
// those who went astray unwatched come first, and then all are watched.
inline bool Exact::run(Index c, Drive drive) {
    FreeSet& M = free_set(c);
    bool all = !own_.screens || M.empty() || drive.growth != 0.0;
    while (true) {
        const double left = drive.left;
        scale_ = 1.0;
        growth_ = drive.growth;
        watch(c, drive, all);
        const End end = follow(c, drive);
        commit(c, drive.total * (left - drive.left));
        scale_ = 1.0;
        growth_ = 0.0;
        if (end != End::again || all) return end == End::done;
        const Vector<Index> before = aside_;
        aside_.insert(aside_.end(), drive.place.begin(), drive.place.end());
        const bool good = recall(c);
        aside_ = before;
        if (!good) return false;
        all = true;
    }
}

// Chooses who is watched, and finds what the drive does to them and to S.
inline void Exact::watch(Index c, const Drive& drive, bool all) {
    constexpr Index kFew = 256;  // so many are always watched
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    W_.place.clear();
    W_.member.clear();
    W_.mode.clear();
    for (Array<double>* array : {&W_.rate, &W_.h, &W_.q, &W_.gamma}) array->clear();
    W_.column.assign(P.size, kNone);
    const double reach = all || P.members() <= kFew ? 1e300 : M.reach;
    for (Index i = 0; i < drive.place.size(); ++i) {
        const Index k = drive.place[i];
        const double rate = (drive.end[i] - P.alpha[k]) / drive.left;
        add_column(c, k, Mode::driven, P.g[k] - M.bias, rate);
        touch(c, k);
    }
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k] || M.has(k) || W_.column[k] != kNone || is_aside(k)) continue;
        const double h = P.g[k] - M.bias;
        const bool low = P.alpha[k] <= bound(P, k, false);
        const double wrong = low ? h : -h;
        const bool astray = wrong > 0.0 && wrong > 1000 * still(c, k);  // to be learned later
        const double rate = growth_ * (low ? P.lo[k] : P.hi[k]);
        if ((std::abs(h) > reach || astray) && rate == 0.0) continue;
        add_column(c, k, low ? Mode::low : Mode::high, h, rate);
        if (rate != 0.0) touch(c, k);
    }
    W_.stride = padded(W_.size() + kLanes);
    watch_slots(c);
    slot_q_.assign(M.factor.slots(), 0.0);
    for (Index slot = 0; slot < M.factor.slots(); ++slot)
        if (const Index k = M.place[slot]; k != kNone) {
            touch(c, k);
            if (own_.sphere) slot_q_[slot] = drive.total * P.diagonal[k] / 2;
        }
    sum_ = drive.total;
    for (Index w = 0; w < W_.size(); ++w) {
        const double diagonal = P.diagonal[W_.place[w]];
        W_.q[w] = own_.sphere ? drive.total * diagonal / 2 : 0.0;
    }
    for (Index w = 0; w < W_.size(); ++w)
        if (W_.rate[w] != 0.0) drive_with(c, W_.place[w], W_.rate[w]);
}

// The kernel values of all slots with the columns.
inline void Exact::watch_slots(Index c) {
    const FreeSet& M = free_set(c);
    W_.K.assign(M.factor.slots() * W_.stride, 0.0);
    Vector<Index> slots, members;  // whose rows are not kept
    for (Index slot = 0; slot < M.factor.slots(); ++slot) {
        const Index k = M.place[slot];
        if (k == kNone) continue;
        if (rows_.keeps(member(c, k))) {
            set_row(slot, row(c, k));
        } else {
            slots.push_back(slot);
            members.push_back(member(c, k));
        }
    }
    for (Index i = 0; i < slots.size();) {
        const Index end = rows_.gather(D, *workers_, members, i, pointers_);
        for (const double* values : pointers_) set_row(slots[i++], values);
        i = end;
    }
}

inline Index Exact::add_column(Index c, Index k, Mode mode, double h, double rate) {
    W_.column[k] = W_.size();
    W_.place.push_back(k);
    W_.member.push_back(static_cast<std::int32_t>(member(c, k)));
    W_.mode.push_back(mode);
    W_.rate.push_back(rate);
    W_.h.push_back(h);
    W_.q.push_back(0.0);
    W_.gamma.push_back(0.0);
    return W_.size() - 1;
}

// The kernel values of a slot with the columns, of its row of all.
inline void Exact::set_row(Index slot, const double* values) {
    double* to = W_.K.data() + slot * W_.stride;
    for (Index w = 0; w < W_.size(); ++w) to[w] = values[W_.member[w]];
}

// alpha of place k moves at a rate of its own from now on.
inline void Exact::drive_with(Index c, Index k, double rate) {
    const double* values = row(c, k);
    const FreeSet& M = free_set(c);
    for (Index w = 0; w < W_.size(); ++w) W_.q[w] -= rate * values[W_.member[w]];
    for (Index slot = 0; slot < M.factor.slots(); ++slot)
        if (const Index l = M.place[slot]; l != kNone) slot_q_[slot] -= rate * values[member(c, l)];
    sum_ -= rate;
}

inline Exact::End Exact::follow(Index c, Drive& drive) {
    FreeSet& M = free_set(c);
    M.factor.set_load(slot_q_.data());
    const Index most_idle = 200 + 2 * (M.factor.rank() + W_.size());
    double size = std::abs(drive.total);
    for (const double rate : W_.rate) size += std::abs(rate);
    while (drive.left > 0.0) {  // 2
        if (++steps_ > most_steps(c) || idle_steps_ > most_idle || stopped()) return End::stuck;
        if (M.empty() && std::abs(sum_) * drive.left <= 1e-12 * size) sum_ = 0.0;  // but rounding
        if (M.empty() && sum_ != 0.0) {
            bool reached = false;
            if (!shift_bias(c, drive, reached)) return End::again;
            if (reached) return End::done;
            continue;
        }
        double beta_b = 0.0;
        if (M.empty()) {
            direction_.beta.assign(M.place.size(), 0.0);
        } else {
            M.factor.solve(sum_, direction_);  // 3
            beta_b = direction_.beta_b + M.shift * sum_;
        }
        sensitivities(c, beta_b);
        const Event event = next_event(c, drive);  // 4, 5
        advance(c, drive, event, beta_b);          // 6 to 8
        if (event.slot != kNone) {                 // 9 to 17
            leave(c, event.slot, event.upwards);
        } else if (event.column != kNone) {
            const Index k = W_.place[event.column];
            if (!become_free(c, k, set_of(c, k))) return End::stuck;
        } else {
            return End::done;
        }
        ++D.stats.reprocess;
        idle_steps_ = event.step > 0.0 ? 0 : idle_steps_ + 1;
    }
    return End::done;
}

// Equation 9 for the columns, in gaxpy form; and what rounding may do to it.
inline void Exact::sensitivities(Index c, double beta_b) {
    const Index slots = free_set(c).factor.slots(), n = W_.size();
    speed_ = 0.0;
    beta_b_ = beta_b;
    for (Index slot = 0; slot < slots; ++slot)
        if (const Index k = free_set(c).place[slot]; k != kNone)
            speed_ += std::abs(direction_.beta[slot]) * length(c, k);
    W_.gamma = W_.q;
    for (double& gamma : W_.gamma) gamma -= beta_b;
    pointers_.resize(slots);
    for (Index slot = 0; slot < slots; ++slot) {
        pointers_[slot] = W_.K.data() + slot * W_.stride;
        direction_.beta[slot] = -direction_.beta[slot];
    }
    table().gaxpy(W_.gamma.data(), pointers_.data(), direction_.beta.data(), slots, n);
    for (double& beta : direction_.beta) beta = -beta;
}

// Equations 10 to 14. Of several events at once, that of the oldest example comes first: by this
// least-index rule there is no cycle [chang1980].
inline Exact::Event Exact::next_event(Index c, const Drive& drive) const {
    constexpr double kNoise = 1e-13;  // what cannot be told from rounding by the end of the line
    const Problem& P = problem(c);
    const FreeSet& M = free_set(c);
    Event first{drive.left};
    Index of = std::numeric_limits<Index>::max();  // the place that the event is of
    const auto consider = [&](double room, double speed, Index k, const Event& event) {
        const double step = std::max(room, 0.0) / speed;
        if (step > first.step || (step == first.step && k >= of)) return;
        first = event;
        first.step = step;
        of = k;
    };
    for (Index slot = 0; slot < M.factor.slots(); ++slot) {
        const Index k = M.place[slot];
        if (k == kNone) continue;
        const double beta = direction_.beta[slot];
        const double room = grain(c, k, kNoise * (1 + std::abs(growth_)));
        const double least = room / drive.left + kNoise * std::abs(beta);
        const double rise = beta - growth_ * P.hi[k], fall = growth_ * P.lo[k] - beta;
        if (rise > least) consider(bound(P, k, true) - P.alpha[k], rise, k, {0, slot, kNone, true});
        if (fall > least) consider(P.alpha[k] - bound(P, k, false), fall, k, {0, slot});
    }
    // The longer nothing moves, the more is taken for rounding.
    const double patience = static_cast<double>(1 + idle_steps_);
    const double rounding = 64 * std::numeric_limits<double>::epsilon() * patience;
    for (Index w = 0; w < W_.size(); ++w) {
        const Mode mode = W_.mode[w];
        if (mode != Mode::low && mode != Mode::high) continue;
        const double sign = mode == Mode::low ? 1.0 : -1.0;
        const double room = -sign * W_.h[w], speed = sign * W_.gamma[w];
        if (speed <= 0.0 || room > first.step * speed) continue;  // before what costs a root
        const Index k = W_.place[w];
        const double terms = speed_ * length(c, k) + std::abs(beta_b_) + std::abs(W_.q[w]);
        if (speed <= std::max(still(c, k) / drive.left, rounding * terms)) continue;
        consider(room, speed, k, {0, kNone, w});
    }
    if (drive.until != kNone) {
        const Index w = W_.column[drive.until];
        const double h = W_.h[w], gamma = W_.gamma[w];
        if (h * gamma < 0.0) consider(std::abs(h), std::abs(gamma), kNone, {});
    }
    return first;
}

inline void Exact::advance(Index c, Drive& drive, const Event& event, double beta_b) {
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    const double step = event.step;
    const bool ends = step >= drive.left;
    for (Index slot = 0; slot < M.factor.slots(); ++slot)
        if (const Index k = M.place[slot]; k != kNone) P.alpha[k] += step * direction_.beta[slot];
    for (Index w = 0; w < W_.size(); ++w) {
        W_.h[w] += step * W_.gamma[w];
        if (W_.rate[w] != 0.0) P.alpha[W_.place[w]] += step * W_.rate[w];
    }
    M.bias += step * beta_b;
    drive.left = ends ? 0.0 : drive.left - step;
    scale_ += growth_ * step;
    if (ends)
        for (Index i = 0; i < drive.place.size(); ++i) P.alpha[drive.place[i]] = drive.end[i];
}

// Section 4.1: nobody is free, so the bias moves until somebody is who can take up what is driven.
// Tells whether somebody was found, or the end of the line.
inline bool Exact::shift_bias(Index c, const Drive& drive, bool& reached) {
    const bool falls = sum_ > 0.0;  // then h rises
    double least = 1e300;
    Index found = kNone;
    for (Index w = 0; w < W_.size(); ++w) {
        if (W_.mode[w] != (falls ? Mode::low : Mode::high)) continue;
        const double way = std::max(falls ? -W_.h[w] : W_.h[w], 0.0);
        if (way < least) least = way, found = w;
    }
    if (drive.until != kNone) {
        const double h = W_.h[W_.column[drive.until]];
        const double way = falls ? -h : h;
        if (way >= 0.0 && way <= least) least = way, reached = true;
    }
    if (found == kNone && !reached) return false;
    const double shift = falls ? -least : least;
    free_set(c).bias += shift;
    for (double& h : W_.h) h -= shift;
    return reached || become_free(c, W_.place[found], set_of(c, W_.place[found]));
}

inline void Exact::touch(Index c, Index k) {
    Problem& P = problem(c);
    if (is_touched_.size() < P.size) is_touched_.resize(P.size + P.size / 4 + 1, 0);
    if (is_touched_[k]) return;
    is_touched_[k] = 1;
    touched_.emplace_back(k, P.alpha[k]);
}

inline void Exact::let_go() {
    for (const auto& [k, before] : touched_) is_touched_[k] = 0;
    touched_.clear();
}

inline void Exact::note(Index c, Index k, Set from, Set to) {
    if (!own_.record || from == to) return;
    path.push_back({cause_, D.members.ids[member(c, k)], c, from, to});
}

// A slot of S has reached a side of its box.
inline void Exact::leave(Index c, Index slot, bool upwards) {
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    const Index k = M.place[slot];
    P.alpha[k] = bound(P, k, upwards);
    const double q = slot < slot_q_.size() ? std::exchange(slot_q_[slot], 0.0) : 0.0;
    M.remove(k);
    rows_.want(member(c, k), -1);
    note(c, k, Set::free, set_of(c, k));
    if (W_.column.size() <= k) return;  // nothing is watched
    Index w = W_.column[k];
    if (w == kNone) {
        if (W_.size() == W_.stride) {  // wider rows
            const Index stride = W_.stride + 4 * kLanes;
            Array<double> K(W_.K.size() / W_.stride * stride, 0.0);
            for (Index l = 0; l < W_.K.size() / W_.stride; ++l)
                std::copy_n(W_.K.data() + l * W_.stride, W_.stride, K.data() + l * stride);
            W_.K = std::move(K);
            W_.stride = stride;
        }
        w = add_column(c, k, Mode::free, 0.0, 0.0);
        const double* values = row(c, k);
        for (Index l = 0; l < M.factor.slots(); ++l)
            if (const Index o = M.place[l]; o != kNone)
                W_.K[l * W_.stride + w] = values[member(c, o)];
    }
    W_.h[w] = 0.0;
    W_.q[w] = q;
    stand_at(c, w, upwards);
}

// A column is at a side of its box from now on, and goes along where that moves.
inline void Exact::stand_at(Index c, Index w, bool upper) {
    const Problem& P = problem(c);
    const Index k = W_.place[w];
    W_.mode[w] = upper ? Mode::high : Mode::low;
    const double rate = growth_ * (upper ? P.hi[k] : P.lo[k]);
    if (rate == 0.0) return;
    W_.rate[w] = rate;
    drive_with(c, k, rate);
    free_set(c).factor.set_load(slot_q_.data());
}

// What is left of K(k, k) + shift when S has explained what it can. `values` is the row of k.
inline double Exact::pivot_of(Index c, Index k, const double* values) {
    constexpr double kClose = 1e-6, kSingular = 1e-12;
    FreeSet& M = free_set(c);
    column_.assign(M.factor.slots(), 0.0);
    for (Index slot = 0; slot < M.factor.slots(); ++slot)
        if (const Index l = M.place[slot]; l != kNone)
            column_[slot] = values[member(c, l)] + M.shift;
    const double diagonal = problem(c).diagonal[k] + M.shift;
    const double pivot = M.factor.pivot(column_.data(), diagonal);
    doubt_ = kSingular * diagonal;
    return pivot < kClose * diagonal ? careful_pivot(c, diagonal) : pivot;
}

// The same by lemma 1, as a quadratic form in kernel values: where S is nearly dependent itself,
// errors of the factor enter it by their squares only. Cost: as many kernel values as S has pairs.
inline double Exact::careful_pivot(Index c, double diagonal) {
    const FreeSet& M = free_set(c);
    Array<double> v;
    M.factor.explain(v);
    double pivot = diagonal, size = std::sqrt(diagonal);
    for (Index slot = 0; slot < M.factor.slots(); ++slot) {
        const Index k = M.place[slot];
        if (k == kNone) continue;
        size += std::abs(v[slot]) * std::sqrt(problem(c).diagonal[k] + M.shift);
        const double* values = row(c, k);
        double explained = 0;
        for (Index other = 0; other < M.factor.slots(); ++other)
            if (const Index l = M.place[other]; l != kNone)
                explained += v[other] * (values[member(c, l)] + M.shift);
        pivot -= v[slot] * (2 * column_[slot] - explained);
    }
    doubt_ = std::max(doubt_, 16 * std::numeric_limits<double>::epsilon() * size * size);
    return pivot;
}

// Computes the factor anew from kernel values, slot by slot.
inline void Exact::rebuild(Index c) {
    constexpr double kLeast = 1e-14;
    const Problem& P = problem(c);
    FreeSet& M = free_set(c);
    slot_q_.resize(M.place.size(), 0.0);
    M.factor.clear();
    for (Index slot = 0; slot < M.place.size(); ++slot) {
        const Index k = M.place[slot];
        if (k == kNone) {
            M.factor.append_hole();
            continue;
        }
        const double least = kLeast * (P.diagonal[k] + M.shift);
        const double pivot = std::max(pivot_of(c, k, row(c, k)), least);
        M.factor.append(pivot, slot_q_[slot]);
    }
}

// Chooses the shift anew where it is far from the smallest K(l, l) of S and k; with S empty and k
// kNone, of all places.
inline void Exact::fit_shift(Index c, Index k) {
    constexpr double kFar = 100;
    const Problem& P = problem(c);
    FreeSet& M = free_set(c);
    double least = 1e300;
    const auto look = [&](Index l) {
        const double diagonal = P.diagonal[l];
        if (diagonal > 0.0) least = std::min(least, diagonal);
    };
    for (const Index l : M.place)
        if (l != kNone) look(l);
    if (k != kNone) look(k);
    for (Index l = 0; k == kNone && l < P.size; ++l)
        if (P.open[l]) look(l);
    if (least == 1e300) least = M.shift > 0.0 ? M.shift : 1.0;
    if (M.shift <= kFar * least && least <= kFar * M.shift) return;
    M.shift = least;
    if (!M.empty()) rebuild(c);
}

// Place k joins S. Where S says all about it already, another has to go.
inline bool Exact::become_free(Index c, Index k, Set from) {
    constexpr double kIndefinite = 1e-6;
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    touch(c, k);
    fit_shift(c, k);
    const bool watched = W_.column.size() > k && W_.column[k] != kNone;
    const Index w = watched ? W_.column[k] : kNone;
    if (watched && W_.rate[w] != 0.0 && W_.mode[w] != Mode::driven) {
        drive_with(c, k, -W_.rate[w]);
        W_.rate[w] = 0.0;
        M.factor.set_load(slot_q_.data());
    }
    const double* values = row(c, k);
    const double diagonal = P.diagonal[k] + M.shift;
    double pivot = pivot_of(c, k, values);
    if (pivot < -doubt_) {  // the factor may have gone astray
        rebuild(c);
        pivot = pivot_of(c, k, row(c, k));
    }
    values = row(c, k);
    if (pivot < -10 * doubt_ - kIndefinite * diagonal || !(diagonal > 0.0)) {
        M.indefinite = true;
        return false;
    }
    if (pivot <= doubt_) {
        const bool low = P.alpha[k] <= bound(P, k, false);
        return exchange(c, k, low ? 1.0 : -1.0, from);
    }
    note(c, k, from, Set::free);
    M.add(k, pivot, watched ? W_.q[w] : 0.0);
    rows_.want(member(c, k), 1);
    slot_q_.resize(M.factor.slots(), 0.0);
    slot_q_.back() = watched ? W_.q[w] : 0.0;
    if (W_.stride > 0) {
        W_.K.resize(M.factor.slots() * W_.stride, 0.0);
        set_row(M.factor.slots() - 1, values);
    }
    if (watched) W_.mode[w] = Mode::free;
    return true;
}

// Place k is a combination of S, factor.pivot() has just told: it moves, and S against it, which
// changes no decision, until it has crossed its box or one of S has reached a side and gives way.
inline bool Exact::exchange(Index c, Index k, double direction, Set from) {
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    Factor::Direction along;
    M.factor.solve_reduced(-1.0, along);
    double largest = 0;
    const auto size_of = [&](Index slot) {
        return std::abs(along.beta[slot]) * length(c, M.place[slot]);
    };
    for (Index slot = 0; slot < M.factor.slots(); ++slot)
        if (M.place[slot] != kNone) largest = std::max(largest, size_of(slot));
    double most = direction > 0 ? bound(P, k, true) - P.alpha[k] : P.alpha[k] - bound(P, k, false);
    Index leaver = kNone;
    bool upwards = false;
    for (Index slot = 0; slot < M.factor.slots(); ++slot) {
        const Index l = M.place[slot];
        if (l == kNone || size_of(slot) <= 1e-7 * largest) continue;
        const double speed = direction * along.beta[slot];
        const double room =
            speed > 0 ? bound(P, l, true) - P.alpha[l] : P.alpha[l] - bound(P, l, false);
        const double step = std::max(room, 0.0) / std::abs(speed);
        if (step < most) most = step, leaver = slot, upwards = speed > 0;
    }
    ++idle_steps_;
    P.alpha[k] += direction * most;
    for (Index slot = 0; slot < M.factor.slots(); ++slot)
        if (const Index l = M.place[slot]; l != kNone) {
            touch(c, l);
            P.alpha[l] += direction * most * along.beta[slot];
        }
    if (leaver != kNone) {
        leave(c, leaver, upwards);
        return ++steps_ < most_steps(c) && become_free(c, k, from);
    }
    P.alpha[k] = bound(P, k, direction > 0);
    note(c, k, from, set_of(c, k));
    if (W_.column.size() > k && W_.column[k] != kNone) stand_at(c, W_.column[k], direction > 0);
    return true;
}

// Brings the gradient of all places up to date with the coefficients that moved: one pass over the
// rows of S, in gaxpy form [laskov2006, algorithm 3].
inline void Exact::commit(Index c, double total) {
    constexpr Index kColumns = 1024;  // that a thread takes at a time
    Problem& P = problem(c);
    const Subproblem& sub = D.subproblems[c];
    std::sort(touched_.begin(), touched_.end());
    Vector<Index> moved;
    Vector<double> deltas;
    for (const auto& [k, before] : touched_) {
        is_touched_[k] = 0;
        const double delta = P.alpha[k] - before;
        if (delta == 0.0) continue;
        weight_ += (std::abs(P.alpha[k]) - std::abs(before)) *
                   std::sqrt(std::max(std::abs(P.diagonal[k]), least_));
        P.refresh(k);
        D.weigh(c, k);
        moved.push_back(member(c, k));
        deltas.push_back(delta);
    }
    free_set(c).peak = std::max(free_set(c).peak, weight_);
    touched_.clear();
    W_.column.clear();
    W_.stride = 0;
    if (free_set(c).factor.wants_compaction()) free_set(c).compact();
    if (moved.empty() && total == 0.0) return;
    change_.assign(padded(D.size()), 0.0);
    const Index tasks = (D.size() + kColumns - 1) / kColumns;
    for (Index i = 0; i < moved.size();) {
        const Index end = rows_.gather(D, *workers_, moved, i, pointers_);
        const auto work = [&](Index task, Index) {
            const Index first = task * kColumns, n = std::min(kColumns, D.size() - first);
            Vector<const double*> from(pointers_);
            for (const double*& p : from) p += first;
            table().gaxpy(change_.data() + first, from.data(), deltas.data() + i, from.size(), n);
        };
        if (tasks * pointers_.size() < 128)
            for (Index task = 0; task < tasks; ++task) work(task, 0);
        else
            workers_->run(tasks, work);
        i = end;
    }
    for (Index k = 0; k < P.size; ++k)
        if (P.open[k]) {
            P.g[k] -= change_[sub.member[k]];
            P.g[k] += total * P.diagonal[k] / 2;
        }
}

}  // namespace marginwise
