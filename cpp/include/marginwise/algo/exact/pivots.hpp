// Computes from kernel values: the pivot of an example that may join S, the shift, and the factor
// of S from scratch.
#pragma once

#include "marginwise/algo/exact/line.hpp"

namespace marginwise::exact {

// What remains of K(k, k) + shift after projection on S; values up to `error` count as 0.
struct Pivot {
    double value, error;
};

class Pivots {
  public:
    Pivots(BinaryProblem& problem, Columns& columns)
        : B(problem), slot_q_(columns.slot_q), column_(columns.slot_column) {}

    // The pivot of place k, whose kernel row is `values`.
    Pivot pivot(Index k, const double* values);

    // Computes the factor from kernel values, slot by slot.
    void rebuild();

    // Adjusts the shift if it is far from the smallest K(l, l) in S and k; if k is kNone, in all
    // open places.
    void fit_shift(Index k);

  private:
    Pivot careful_pivot(double diagonal, double error);
    double least_diagonal(Index k) const;

    BinaryProblem& B;
    Array<double>& slot_q_;
    Array<double>& column_;  // column of the matrix of S for the last argument of pivot()
};

inline Pivot Pivots::pivot(Index k, const double* values) {
    constexpr double kClose = 1e-6, kSingular = 1e-12;
    FreeSet& S = B.S;
    column_.assign(S.factor.slots(), 0.0);
    for (Index slot = 0; slot < S.factor.slots(); ++slot)
        if (const Index l = S.place[slot]; l != kNone)
            column_[slot] = values[B.member(l)] + S.shift;
    const double diagonal = B.P.diagonal[k] + S.shift;
    const double value = S.factor.pivot(column_.data(), diagonal);
    const double error = kSingular * diagonal;
    return value < kClose * diagonal ? careful_pivot(diagonal, error) : Pivot{value, error};
}

// The same by lemma 1, as a quadratic form in kernel values. Errors of the factor, which are large
// if S is nearly dependent, enter only by their squares. Cost: one kernel value per pair of S.
inline Pivot Pivots::careful_pivot(double diagonal, double error) {
    const FreeSet& S = B.S;
    Array<double> v;
    S.factor.explain(v);
    double pivot = diagonal, size = std::sqrt(diagonal);
    for (Index slot = 0; slot < S.factor.slots(); ++slot) {
        const Index k = S.place[slot];
        if (k == kNone) continue;
        size += std::abs(v[slot]) * std::sqrt(B.P.diagonal[k] + S.shift);
        const double* values = B.row(k);
        double explained = 0;
        for (Index other = 0; other < S.factor.slots(); ++other)
            if (const Index l = S.place[other]; l != kNone)
                explained += v[other] * (values[B.member(l)] + S.shift);
        pivot -= v[slot] * (2 * column_[slot] - explained);
    }
    return {pivot, std::max(error, 16 * Rounding::kEpsilon * size * size)};
}

inline void Pivots::rebuild() {
    constexpr double kLeast = 1e-14;
    FreeSet& S = B.S;
    slot_q_.resize(S.place.size(), 0.0);
    S.factor.clear();
    for (Index slot = 0; slot < S.place.size(); ++slot) {
        const Index k = S.place[slot];
        if (k == kNone) {
            S.factor.append_hole();
            continue;
        }
        const double least = kLeast * (B.P.diagonal[k] + S.shift);
        S.factor.append(std::max(pivot(k, B.row(k)).value, least), slot_q_[slot]);
    }
}

inline void Pivots::fit_shift(Index k) {
    constexpr double kFar = 100;
    FreeSet& S = B.S;
    const double least = least_diagonal(k);
    if (S.shift <= kFar * least && least <= kFar * S.shift) return;
    S.shift = least;
    if (!S.empty()) rebuild();
}

// The smallest positive K(l, l); if there is none, the current shift, or 1 if that is not positive.
inline double Pivots::least_diagonal(Index k) const {
    constexpr double kNothing = 1e300;
    const Problem& P = B.P;
    const FreeSet& S = B.S;
    double least = kNothing;
    const auto look = [&](Index l) {
        const double diagonal = P.diagonal[l];
        if (diagonal > 0.0) least = std::min(least, diagonal);
    };
    for (const Index l : S.place)
        if (l != kNone) look(l);
    if (k != kNone) look(k);
    for (Index l = 0; k == kNone && l < P.size; ++l)
        if (P.open[l]) look(l);
    if (least == kNothing) return S.shift > 0.0 ? S.shift : 1.0;
    return least;
}

}  // namespace marginwise::exact
