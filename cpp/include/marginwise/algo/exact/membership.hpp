// Membership of S: examples join, leave, or are exchanged if a newcomer depends linearly on S.
#pragma once

#include "marginwise/algo/exact/pivots.hpp"

namespace marginwise::exact {

class Membership {
  public:
    Membership(BinaryProblem& problem, Gradient& gradient, Line& line)
        : B(problem), P(problem.P), S(problem.S), gradient_(gradient), line_(line) {}

    // Moves place k from `from` into S. If k depends linearly on S, it is exchanged with an example
    // of S or moves to a side of its box. Returns false if the kernel is not positive
    // semi-definite, or after too many exchanges.
    bool join(Index k, Set from);

    // Removes a slot that has reached a side of its box. Call Gradient::touch() before.
    void leave(Index slot, bool upwards);

    // Removes from S the examples that have reached a side of their box, up to rounding.
    void snap(double tolerance);

    // Empties S.
    void clear();

    // Fills an empty S with all places strictly between the sides of their box.
    void gather();

    void fit_shift() { pivots_.fit_shift(kNone); }

  private:
    // The first to reach a side of its box when place k moves and S compensates.
    struct Exchange {
        Factor::Direction along;
        double step = 0.0;
        Index leaver = kNone;  // a slot; kNone: place k itself
        bool upwards = false;
    };

    Pivot newcomer_pivot(Index k);
    Exchange find_exchange(Index k, double direction) const;
    bool exchange(Index k, double direction, Set from);

    BinaryProblem& B;
    Problem& P;
    FreeSet& S;
    Gradient& gradient_;
    Line& line_;
    Pivots pivots_{B, line_.W};
};

inline bool Membership::join(Index k, Set from) {
    constexpr double kIndefinite = 1e-6;
    gradient_.touch(k);
    pivots_.fit_shift(k);
    line_.detach(k);
    const Pivot pivot = newcomer_pivot(k);
    const double* values = B.row(k);
    const double diagonal = P.diagonal[k] + S.shift;
    if (pivot.value < -10 * pivot.error - kIndefinite * diagonal || !(diagonal > 0.0)) {
        S.indefinite = true;
        return false;
    }
    if (pivot.value <= pivot.error) {
        const bool low = P.alpha[k] <= line_.bound(k, false);
        return exchange(k, low ? 1.0 : -1.0, from);
    }
    B.recorder.record(k, from, Set::free);
    S.add(k, pivot.value, line_.q_of(k));
    B.rows.want(B.member(k), 1);
    line_.add_slot(k, values);
    return true;
}

// A negative pivot may result from errors of the factor, so the factor is computed from scratch.
inline Pivot Membership::newcomer_pivot(Index k) {
    const Pivot pivot = pivots_.pivot(k, B.row(k));
    if (!(pivot.value < -pivot.error)) return pivot;
    pivots_.rebuild();
    return pivots_.pivot(k, B.row(k));
}

inline void Membership::leave(Index slot, bool upwards) {
    const Index k = S.place[slot];
    P.alpha[k] = line_.bound(k, upwards);
    const double q = line_.drop_slot(slot);
    S.remove(k);
    B.rows.want(B.member(k), -1);
    B.recorder.record(k, Set::free, B.set(k));
    if (line_.active()) line_.watch_at(k, q, upwards);
}

inline Membership::Exchange Membership::find_exchange(Index k, double direction) const {
    Exchange found;
    S.factor.solve_reduced(-1.0, found.along);
    const Array<double>& beta = found.along.beta;
    const auto size_of = [&](Index slot) {
        return std::abs(beta[slot]) * B.rounding.norm(S.place[slot]);
    };
    double largest = 0;
    for (Index slot = 0; slot < S.factor.slots(); ++slot)
        if (S.place[slot] != kNone) largest = std::max(largest, size_of(slot));
    found.step = line_.room(k, direction > 0);
    for (Index slot = 0; slot < S.factor.slots(); ++slot) {
        const Index l = S.place[slot];
        if (l == kNone || size_of(slot) <= 1e-7 * largest) continue;
        const double speed = direction * beta[slot];
        const double step = std::max(line_.room(l, speed > 0), 0.0) / std::abs(speed);
        if (step < found.step) found.step = step, found.leaver = slot, found.upwards = speed > 0;
    }
    return found;
}

// factor.pivot() has just shown that place k is a linear combination of S. Moves k while S
// compensates, which changes no decision value, until k reaches the other side of its box or an
// example of S reaches a side and makes room for k.
inline bool Membership::exchange(Index k, double direction, Set from) {
    const Exchange found = find_exchange(k, direction);
    ++B.idle_steps;
    P.alpha[k] += direction * found.step;
    for (Index slot = 0; slot < S.factor.slots(); ++slot)
        if (const Index l = S.place[slot]; l != kNone) {
            gradient_.touch(l);
            P.alpha[l] += direction * found.step * found.along.beta[slot];
        }
    if (found.leaver != kNone) {
        leave(found.leaver, found.upwards);
        return ++B.steps < B.most_steps() && join(k, from);
    }
    P.alpha[k] = line_.bound(k, direction > 0);
    B.recorder.record(k, from, B.set(k));
    if (const Index w = line_.column_of(k); w != kNone) line_.put_at(w, direction > 0);
    return true;
}

inline void Membership::snap(double tolerance) {
    for (Index slot = 0; slot < S.factor.slots(); ++slot) {
        const Index k = S.place[slot];
        if (k == kNone) continue;
        const double near = B.rounding.alpha_error(k, tolerance);
        const bool up = P.alpha[k] >= P.hi[k] - near;
        if (!up && P.alpha[k] > P.lo[k] + near) continue;
        gradient_.touch(k);
        leave(slot, up);
    }
    gradient_.commit();
}

inline void Membership::clear() {
    for (const Index k : S.place)
        if (k != kNone) B.rows.want(B.member(k), -1);
    S.clear();
    line_.W.slot_q.clear();
}

inline void Membership::gather() {
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k] || B.is_excluded(k) || B.at_bound(k)) continue;
        if (B.stopped() || !join(k, Set::free)) return;
    }
    gradient_.commit();
}

}  // namespace marginwise::exact
