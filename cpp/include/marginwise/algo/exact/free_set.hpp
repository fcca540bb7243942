// The free examples of a problem, the set S of [laskov2006], and the factor of their kernel matrix.
#pragma once

#include "marginwise/algo/exact/factor.hpp"
#include "marginwise/dual/problem.hpp"

namespace marginwise {

struct FreeSet {
    // INVARIANT  place[slot[k]] == k for the places k in S; kNone for other places, and for holes
    //            factor is that of K(k, l) + shift over the places in S, by slot
    // As the coefficients of a direction have a given sum, the shift changes no direction. With it
    // the matrix is positive definite where S is independent except for the bias. It is near the
    // smallest K(k, k) of S: a factor does not mind rows of different size, but a shift far above
    // K(k, k) rounds K(k, l) away.
    Factor factor;
    Vector<Index> place;  // by slot
    Vector<Index> slot;   // by place
    double shift = 0.0;
    double reach = 1.0;       // examples within it of their margin are watched
    double total = 0.0;       // what all coefficients add up to
    Index resolved = 0;       // how often a path was given up
    bool indefinite = false;  // the kernel is not positive semi-definite: there is no path
    double peak = 0.0;        // largest weight, as measured, since g was last computed from alpha
    double bias = 0.0;        // while it is at work

    bool has(Index k) const { return k < slot.size() && slot[k] != kNone; }
    bool empty() const { return factor.rank() == 0; }

    // Adds place k, of which factor.pivot() was just asked.
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

    // Call after the places of S were given other numbers.
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

}  // namespace marginwise
