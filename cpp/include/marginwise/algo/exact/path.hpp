// Following a line from event to event: algorithm 1 of [laskov2006], with its line numbers.
//
//   paper              here                              paper         here
//   S                  B.S, by slot                      R = Q^-1      S.factor (eq. 15)
//   c, Delta alpha_c   Drive; the position on the line   mu            S.bias
//   beta (eq. 7)       W.direction.beta, beta_b_         g_i           -y h, kept as W.h
//   gamma (eq. 9)      W.gamma, the rate of h            eq. 10 - 14   next_event()
//
// Examples that were not watched and violate their conditions at the end of a line are learned as
// if they had just arrived: relearn().
#pragma once

#include "marginwise/algo/exact/membership.hpp"

namespace marginwise::exact {

class Path {
  public:
    Path(BinaryProblem& problem, Gradient& gradient, Line& line, Membership& membership)
        : B(problem),
          P(problem.P),
          S(problem.S),
          W(line.W),
          gradient_(gradient),
          line_(line),
          membership_(membership) {}

    // Follows a line to its end; returns whether that was possible. If S becomes empty and no
    // watched example can join it, learns the violators first and then continues with all examples
    // watched.
    bool follow(Drive drive);

    // Call when place k, which came from `from`, has reached the end of its line: k joins S unless
    // it is at a side of its box. Returns whether that was possible.
    bool arrive(Index k, Set from);

    // Learns the examples that violate their conditions, the worst one first; returns whether that
    // was possible.
    bool relearn();

  private:
    enum class End { done, no_candidate, stuck };
    enum class Shift { failed, joined, reached };

    // The event that ends a step: a slot leaves S, a column joins S, or the line ends.
    struct Event {
        double step = 0.0;
        Index slot = kNone, column = kNone;
        bool upwards = false;  // the slot leaves at hi

        bool is_end() const { return slot == kNone && column == kNone; }
    };
    // The earliest event found so far. Ties go to the oldest example: this least-index rule
    // prevents cycles [chang1980].
    struct First {
        Event event;
        Index place = std::numeric_limits<Index>::max();

        void consider(double room, double speed, Index k, const Event& other) {
            const double step = std::max(room, 0.0) / speed;
            if (step > event.step || (step == event.step && k >= place)) return;
            event = other;
            event.step = step;
            place = k;
        }
    };

    End walk(Drive& drive);
    Shift shift_bias(const Drive& drive);
    void find_rates();
    void find_gamma();
    Event next_event(const Drive& drive) const;
    void consider_slots(const Drive& drive, First& first) const;
    void consider_columns(const Drive& drive, First& first) const;
    void advance(Drive& drive, double step);
    bool migrate(const Event& event);
    bool join(Index k) { return membership_.join(k, B.set(k)); }

    BinaryProblem& B;
    Problem& P;
    FreeSet& S;
    Columns& W;
    Gradient& gradient_;
    Line& line_;
    Membership& membership_;

    double beta_b_ = 0.0;
    double speed_ = 0.0;  // of S along the line: sum of |beta| sqrt(K(k, k))
};

inline bool Path::follow(Drive drive) {
    bool all = !B.settings.screens || S.empty() || drive.growth != 0.0;
    while (true) {
        const double left = drive.left;
        line_.begin(drive, all);
        const End end = walk(drive);
        gradient_.commit(drive.total * (left - drive.left));
        line_.end();
        if (end != End::no_candidate || all) return end == End::done;
        const Vector<Index> before = B.excluded;
        B.excluded.insert(B.excluded.end(), drive.place.begin(), drive.place.end());
        const bool good = relearn();
        B.excluded = before;
        if (!good) return false;
        all = true;
    }
}

inline Path::End Path::walk(Drive& drive) {
    S.factor.set_load(W.slot_q.data());
    const Index most_idle = 200 + 2 * (S.factor.rank() + W.size());
    double size = std::abs(drive.total);
    for (const double rate : W.rate) size += std::abs(rate);
    while (drive.left > 0.0) {  // 2
        if (++B.steps > B.most_steps() || B.idle_steps > most_idle || B.stopped())
            return End::stuck;
        const bool rounding = S.empty() && std::abs(line_.sum) * drive.left <= 1e-12 * size;
        if (rounding) line_.sum = 0.0;
        if (S.empty() && line_.sum != 0.0) {
            const Shift shift = shift_bias(drive);
            if (shift == Shift::failed) return End::no_candidate;
            if (shift == Shift::reached) return End::done;
            continue;
        }
        find_rates();                           // 3
        const Event event = next_event(drive);  // 4, 5
        advance(drive, event.step);             // 6 to 8
        if (event.is_end()) return End::done;
        if (!migrate(event)) return End::stuck;  // 9 to 17
        ++B.D.stats.reprocess;
        B.idle_steps = event.step > 0.0 ? 0 : B.idle_steps + 1;
    }
    return End::done;
}

// Section 4.1: S is empty, so the bias moves until an example joins S that can balance the driven
// coefficients, or until the line ends.
inline Path::Shift Path::shift_bias(const Drive& drive) {
    const bool falls = line_.sum > 0.0;  // the bias falls, so h rises
    double least = 1e300;
    Index found = kNone;
    bool reached = false;
    for (Index w = 0; w < W.size(); ++w) {
        if (W.mode[w] != (falls ? Mode::low : Mode::high)) continue;
        const double way = std::max(falls ? -W.h[w] : W.h[w], 0.0);
        if (way < least) least = way, found = w;
    }
    if (drive.until != kNone) {
        const double h = W.h[W.column[drive.until]];
        const double way = falls ? -h : h;
        if (way >= 0.0 && way <= least) least = way, reached = true;
    }
    if (found == kNone && !reached) return Shift::failed;
    const double shift = falls ? -least : least;
    S.bias += shift;
    for (double& h : W.h) h -= shift;
    if (reached) return Shift::reached;
    return join(W.place[found]) ? Shift::joined : Shift::failed;
}

// Equations 7 and 9.
inline void Path::find_rates() {
    beta_b_ = 0.0;
    if (S.empty()) {
        W.direction.beta.assign(S.place.size(), 0.0);
    } else {
        S.factor.solve(line_.sum, W.direction);
        beta_b_ = W.direction.beta_b + S.shift * line_.sum;
    }
    find_gamma();
}

// gamma = q - K beta - beta_b, in gaxpy form, and speed_, which scales the rounding error of gamma.
inline void Path::find_gamma() {
    const Index slots = S.factor.slots();
    Array<double>& beta = W.direction.beta;
    speed_ = 0.0;
    for (Index slot = 0; slot < slots; ++slot)
        if (const Index k = S.place[slot]; k != kNone)
            speed_ += std::abs(beta[slot]) * B.rounding.norm(k);
    W.gamma = W.q;
    for (double& gamma : W.gamma) gamma -= beta_b_;
    W.slot_rows.resize(slots);
    for (Index slot = 0; slot < slots; ++slot) {
        W.slot_rows[slot] = W.K.data() + slot * W.stride;
        beta[slot] = -beta[slot];
    }
    table().gaxpy(W.gamma.data(), W.slot_rows.data(), beta.data(), slots, W.size());
    for (double& b : beta) b = -b;
}

// Equations 10 to 14.
inline Path::Event Path::next_event(const Drive& drive) const {
    First first{{drive.left}};
    consider_slots(drive, first);
    consider_columns(drive, first);
    if (drive.until != kNone) {
        const Index w = W.column[drive.until];
        const double h = W.h[w], gamma = W.gamma[w];
        if (h * gamma < 0.0) first.consider(std::abs(h), std::abs(gamma), kNone, {});
    }
    return first.event;
}

// Coefficients of S that reach a side of their box. The box itself may move too.
inline void Path::consider_slots(const Drive& drive, First& first) const {
    constexpr double kNoise = 1e-13;  // relative change over the line that is only rounding
    const double growth = line_.growth;
    for (Index slot = 0; slot < S.factor.slots(); ++slot) {
        const Index k = S.place[slot];
        if (k == kNone) continue;
        const double beta = W.direction.beta[slot];
        const double room = B.rounding.alpha_error(k, kNoise * (1 + std::abs(growth)));
        const double least = room / drive.left + kNoise * std::abs(beta);
        const double rise = beta - growth * P.hi[k], fall = growth * P.lo[k] - beta;
        if (rise > least) first.consider(line_.room(k, true), rise, k, {0, slot, kNone, true});
        if (fall > least) first.consider(line_.room(k, false), fall, k, {0, slot});
    }
}

// Examples at a side of their box whose h reaches 0. The threshold for rounding grows with the
// number of steps without any movement.
inline void Path::consider_columns(const Drive& drive, First& first) const {
    const double patience = static_cast<double>(1 + B.idle_steps);
    const double rounding = 64 * Rounding::kEpsilon * patience;
    for (Index w = 0; w < W.size(); ++w) {
        const Mode mode = W.mode[w];
        if (mode != Mode::low && mode != Mode::high) continue;
        const double sign = mode == Mode::low ? 1.0 : -1.0;
        const double room = -sign * W.h[w], speed = sign * W.gamma[w];
        if (speed <= 0.0 || room > first.event.step * speed) continue;  // avoids a square root
        const Index k = W.place[w];
        const double terms = speed_ * B.rounding.norm(k) + std::abs(beta_b_) + std::abs(W.q[w]);
        if (speed <= std::max(B.rounding.h_error(k) / drive.left, rounding * terms)) continue;
        first.consider(room, speed, k, {0, kNone, w});
    }
}

inline void Path::advance(Drive& drive, double step) {
    const bool ends = step >= drive.left;
    for (Index slot = 0; slot < S.factor.slots(); ++slot)
        if (const Index k = S.place[slot]; k != kNone) P.alpha[k] += step * W.direction.beta[slot];
    for (Index w = 0; w < W.size(); ++w) {
        W.h[w] += step * W.gamma[w];
        if (W.rate[w] != 0.0) P.alpha[W.place[w]] += step * W.rate[w];
    }
    S.bias += step * beta_b_;
    drive.left = ends ? 0.0 : drive.left - step;
    line_.grow_box(step);
    if (ends)
        for (Index i = 0; i < drive.place.size(); ++i) P.alpha[drive.place[i]] = drive.end[i];
}

// The example of an event leaves S or joins it.
inline bool Path::migrate(const Event& event) {
    if (event.column != kNone) return join(W.place[event.column]);
    membership_.leave(event.slot, event.upwards);
    return true;
}

inline bool Path::arrive(Index k, Set from) {
    if (S.has(k)) return true;
    if (B.at_bound(k)) {
        B.recorder.record(k, from, B.set(k));
        return true;
    }
    const bool good = membership_.join(k, from);
    gradient_.commit();
    return good;
}

inline bool Path::relearn() {
    for (Index k; (k = B.worst_violator()) != kNone;) {
        if (++B.relearned > B.most_steps()) return false;
        const bool rises = P.g[k] > S.bias;
        const Set from = B.set(k);
        if (!follow({{k}, {rises ? P.hi[k] : P.lo[k]}, 0.0, 0.0, k})) return false;
        if (!arrive(k, from)) return false;
    }
    return true;
}

}  // namespace marginwise::exact
