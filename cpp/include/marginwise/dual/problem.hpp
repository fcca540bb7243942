// One binary problem: coefficients, gradient and box of its places, and the most violating pair.
//
// alpha is signed, so labels do not occur in the solvers: lo = min(0, C y) <= alpha <= hi =
// max(0, C y). Some algorithms give some places another box.
#pragma once

#include <algorithm>

#include "marginwise/base/compaction.hpp"
#include "marginwise/simd/dispatch.hpp"

namespace marginwise {

// The box of a place, relative to its side C y.
enum class Box : std::uint8_t {
    usual,    // from 0 to the side
    shifted,  // the usual box, moved by -C y: the box of an outlier under the ramp loss
    shut,     // only 0
    endless,  // no bounds
};

struct Problem {
    // INVARIANT  open[k]:  lo[k], hi[k] are those of box[k] with side[k], moved by inherited[k]
    //                      lo[k] <= alpha[k] <= hi[k], up[k] == 0 iff alpha[k] < hi[k],
    //                      down[k] == 0 iff alpha[k] > lo[k],
    //                      rise[k] == hi[k] - alpha[k], fall[k] == alpha[k] - lo[k],
    //                      g[k] == y[k] - sum_l alpha[l] K(k, l)
    //            !open[k]: alpha[k] == lo[k] == hi[k] == side[k] == 0, up[k] and down[k] infinite
    //            extremes are those of g, where the algorithm needs them
    //            every open place with alpha == 0 is listed in idle
    //            free counts the places with lo < alpha < hi
    // Arrays are padded to whole tiles with closed places.
    Array<double> alpha, g, lo, hi, up, down, rise, fall, diagonal, side;
    Array<double> average_offset;  // alpha minus its average; 0 unless the algorithm averages
    Array<double> inherited;       // share of alpha inherited from members that the budget removed
    Vector<Box> box;
    Vector<std::uint8_t> open, listed;  // listed: k is in `idle`
    Vector<Index> idle;
    simd::Extremes extremes;
    Index size = 0;     // places in use, open or closed
    Index closed = 0;   // number of closed places
    Index free = 0;     // number of places that may move both ways
    Index changes = 0;  // number of changes of alpha and boxes so far
    bool biased = true;
    double unsolved = 0;  // violation at which a loop gave up, or 0; not part of the saved state

    double y(Index k) const { return side[k] > 0 ? 1 : -1; }
    double margin(Index k) const { return 1 - y(k) * g[k]; }  // y f
    Index members() const { return size - closed; }

    double bias() const {
        if (!biased) return 0.0;
        if (extremes.both()) return (extremes.g_max + extremes.g_min) / 2;
        return extremes.i != kNone ? extremes.g_max : extremes.j != kNone ? extremes.g_min : 0.0;
    }

    // Adds an open place.
    Index add(double alpha_, double g_, double side_, double diagonal_, Box box_ = Box::usual) {
        if (size == listed.size()) grow(1);
        const Index k = size;
        alpha[k] = alpha_;
        g[k] = g_;
        side[k] = side_;
        diagonal[k] = diagonal_;
        average_offset[k] = inherited[k] = 0.0;
        open[k] = 1;
        set_box(size, box_);
        return size++;
    }

    Index add(const Problem& other, Index k) {
        const Index here =
            add(other.alpha[k], other.g[k], other.side[k], other.diagonal[k], other.box[k]);
        average_offset[here] = other.average_offset[k];
        if (other.inherited[k] != 0.0) move_box(here, other.inherited[k]);
        return here;
    }

    // Adds `more` to alpha of place k as inherited weight, and moves its box by the same amount.
    void inherit(Index k, double more) {
        alpha[k] += more;
        move_box(k, inherited[k] + more);
        alpha[k] = std::clamp(alpha[k], lo[k], hi[k]);  // only corrects rounding
        refresh(k);
    }
    void move_box(Index k, double by) {
        inherited[k] = by;
        set_box(k, box[k]);
    }

    void set_box(Index k, Box box_) {
        const double end = box_ == Box::shut ? 0.0 : side[k];
        const double shift = box_ == Box::shifted ? side[k] : 0.0;
        const double bound = box_ == Box::endless ? simd::Extremes::kInfinite : 0.0;
        box[k] = box_;
        lo[k] = std::min(0.0, end) - shift - bound + inherited[k];
        hi[k] = std::max(0.0, end) - shift + bound + inherited[k];
        refresh(k);
    }

    // Closes place k, which has alpha = 0. If k is an extreme, call find_extremes() afterwards.
    void close(Index k) {
        open[k] = 0;
        lo[k] = hi[k] = side[k] = average_offset[k] = inherited[k] = 0.0;
        refresh(k);
        ++closed;
    }

    // Call after alpha or the box of k changed.
    void refresh(Index k) {
        const bool is_open = open[k] != 0;
        ++changes;
        free -= free_at(k);
        rise[k] = hi[k] - alpha[k];
        fall[k] = alpha[k] - lo[k];
        up[k] = is_open && alpha[k] < hi[k] ? 0.0 : -simd::Extremes::kInfinite;
        down[k] = is_open && alpha[k] > lo[k] ? 0.0 : simd::Extremes::kInfinite;
        free += free_at(k);
        if (is_open && alpha[k] == 0.0 && !listed[k]) {
            idle.push_back(k);
            listed[k] = 1;
        }
    }

    bool free_at(Index k) const { return up[k] == 0 && down[k] == 0; }

    // Whether alpha is at a bound other than 0.
    bool bounded(Index k) const { return (up[k] != 0) != (down[k] != 0) && alpha[k] != 0.0; }

    simd::Rooms rooms() const { return {rise.data(), fall.data()}; }
    simd::Boxes boxes() const { return {alpha.data(), lo.data(), hi.data(), diagonal.data()}; }

    // The n-th open place, or kNone.
    Index nth_open(Index n) const {
        if (n >= members()) return kNone;
        if (closed == 0) return n;
        Index k = 0;
        while (n >= 0) n -= open[k++];
        return k - 1;
    }

    // Places with alpha = 0.
    Vector<Index> idle_places() {
        Index kept = 0;
        for (const Index k : idle) {
            const bool is_idle = open[k] && alpha[k] == 0.0;
            if (is_idle) idle[kept++] = k;
            listed[k] = is_idle;
        }
        idle.resize(kept);
        return idle;
    }

    void find_extremes() {
        extremes = table().extremes(g.data(), up.data(), down.data(), padded(size));
    }

    // Keeps the open places compaction[0] < compaction[1] < ..., in that order.
    void compact(const Compaction& compaction) {
        Problem kept;
        kept.biased = biased;
        kept.changes = changes;
        kept.unsolved = unsolved;
        for (const Index k : compaction) kept.add(*this, k);
        kept.find_extremes();
        *this = std::move(kept);
    }

    // Reserves memory for n more places.
    void reserve(Index n) {
        if (size + n > listed.size()) grow(n);
    }

  private:
    void grow(Index more) {
        const Index n = padded(size + std::max(more, size / 4 + kLanes));
        for (Array<double>* array :
             {&alpha, &g, &lo, &hi, &rise, &fall, &diagonal, &side, &average_offset, &inherited})
            array->resize(n, 0.0);
        box.resize(n, Box::usual);
        up.resize(n, -simd::Extremes::kInfinite);
        down.resize(n, simd::Extremes::kInfinite);
        open.resize(n, 0);
        listed.resize(n, 0);
    }
};

// Place k and up to n - 1 others whose rows are likely to be needed soon: the most violating places
// among those that lack their row and are not bounded.
template <class Lacks>
Vector<Index> wanted_soon(const Problem& P, Index k, Index n, Lacks lacks) {
    if (n == 1) return {k};
    Vector<std::pair<double, Index>> others;
    const double b = P.bias();
    for (Index l = 0; l < P.size; ++l) {
        const bool up = P.up[l] == 0, down = P.down[l] == 0;
        if (l == k || !(up || down) || P.bounded(l) || !lacks(l)) continue;
        const double g = P.g[l] - b;
        others.emplace_back(std::min(up ? -g : 0.0, down ? g : 0.0), l);
    }
    const Index most = std::min(n - 1, others.size());
    std::partial_sort(others.begin(), others.begin() + most, others.end());
    Vector<Index> found{k};
    for (Index o = 0; o < most; ++o) found.push_back(others[o].second);
    return found;
}

}  // namespace marginwise
