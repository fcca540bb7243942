// The free examples of a problem, the set S of [laskov2006], with the factor of their kernel
// matrix, and what else an exact solution remembers of a problem.
#pragma once

#include "marginwise/algo/exact/factor.hpp"
#include "marginwise/dual/problem.hpp"

namespace marginwise {

// Where an example is [laskov2006, section 2.3]: O, S or E.
enum class Set : std::int32_t { idle, free, bounded, gone };

struct FreeSet {
    // INVARIANT  place[slot[k]] == k for the places k in S; kNone for other places, and for holes
    //            factor is that of K(k, l) + shift over the places in S, by slot
    // As the coefficients of a direction have a given sum, the shift changes no direction. With it
    // the matrix is positive definite if S is independent apart from the bias. It is near the
    // smallest K(k, k) of S: rows of different size do not harm a factor, but a shift far above
    // K(k, k) rounds K(k, l) away.
    Factor factor;
    Vector<Index> place;  // by slot
    Vector<Index> slot;   // by place
    double shift = 0.0;
    double reach = 1.0;       // examples with |h| up to this are watched along a line
    double total = 0.0;       // what all coefficients add up to
    Index resolved = 0;       // how often a line was given up and the problem solved by pairs
    bool indefinite = false;  // the kernel is not positive semi-definite: there are no lines
    double peak = 0.0;        // the largest weight since g was computed from scratch; see Rounding
    double bias = 0.0;        // b during a change; otherwise it is Problem::bias()

    bool has(Index k) const { return k < slot.size() && slot[k] != kNone; }
    bool empty() const { return factor.rank() == 0; }

    // Adds place k, whose column factor.pivot() was last given, with `q` on the right-hand side.
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

    // Closes the holes among the slots.
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
