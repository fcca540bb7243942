// The free examples of a problem, the set S of [laskov2006], with the factor of their kernel
// matrix and the other state that an exact solution keeps per problem.
#pragma once

#include "marginwise/algo/exact/factor.hpp"
#include "marginwise/dual/problem.hpp"

namespace marginwise {

// The set that an example belongs to [laskov2006, section 2.3]: O, S or E; gone if forgotten.
enum class Set : std::int32_t { idle, free, bounded, gone };

struct FreeSet {
    // INVARIANT  place[slot[k]] == k for the places k in S; kNone for other places, and for holes
    //            factor is that of K(k, l) + shift over the places in S, by slot
    // The coefficients of a direction have a given sum, so the shift changes no direction. It makes
    // the matrix positive definite if S is independent apart from the bias. It is close to the
    // smallest K(k, k) of S: rows of different size do not harm a factor, but with a shift far
    // above K(k, k), K(k, l) would be lost to rounding.
    Factor factor;
    Vector<Index> place;  // by slot
    Vector<Index> slot;   // by place
    double shift = 0.0;
    double reach = 1.0;       // examples with |h| up to this are watched along a line
    double total = 0.0;       // the sum of all coefficients
    Index resolved = 0;       // how often the problem was solved by pairs instead of along a line
    bool indefinite = false;  // the kernel is not positive semi-definite: no lines are followed
    double peak = 0.0;        // the largest weight since g was computed from scratch; see Rounding
    double bias = 0.0;        // b during a change; otherwise, see Problem::bias()

    bool has(Index k) const { return k < slot.size() && slot[k] != kNone; }
    bool empty() const { return factor.rank() == 0; }

    // Adds place k, whose column was the last argument of factor.pivot(), with `q` as its
    // right-hand side.
    void add(Index k, double pivot, double q) {
        factor.append(pivot, q);
        if (k >= slot.size()) slot.resize(k + 1 + k / 4, kNone);
        slot[k] = place.size();
        place.push_back(k);
    }

    void remove(Index k) {
        factor.remove(slot[k]);
        place[slot[k]] = kNone;
        slot[k] = kNone;
    }

    void clear() {
        factor.clear();
        place.clear();
        slot.clear();
    }

    // Removes the holes among the slots.
    void compact() {
        factor.compact().apply(place);
        renumber();
    }

    // Call after the places of S were renumbered.
    void renumber() {
        slot.clear();
        for (Index s = 0; s < place.size(); ++s) {
            const Index k = place[s];
            if (k == kNone) continue;
            if (k >= slot.size()) slot.resize(k + 1, kNone);
            slot[k] = s;
        }
    }
};

inline Set set_of(const Problem& P, const FreeSet& S, Index k) {
    if (S.has(k)) return Set::free;
    return P.alpha[k] == 0.0 ? Set::idle : Set::bounded;
}

}  // namespace marginwise
