// A line: what is driven, which examples are watched, and how they respond.
//
// Along a line, alpha of driven places moves at given rates. Watched examples are columns, and the
// examples of S are slots. The kernel values of slots with columns are gathered once, at the
// beginning.
//
//   q      rate of h, apart from the response of S and b [laskov2006, eq. 7]
//   sum    the rate at which the sum of the coefficients of S has to change
//   scale  factor of the box, which changes with C
#pragma once

#include "marginwise/algo/exact/gradient.hpp"

namespace marginwise::exact {

// What is driven: alpha of some places to given ends, the sum of all alpha, and the box.
struct Drive {
    Vector<Index> place;
    Vector<double> end;   // alpha of each place at the end of the line
    double total = 0.0;   // change of the sum of alpha
    double growth = 0.0;  // relative change of hi and lo
    Index until = kNone;  // the line also ends when h of this place is 0
    double left = 1.0;    // fraction of the line that remains
};

enum class Mode : std::uint8_t { low, high, free, driven };

// The columns, and the data that a line needs by slot. Memory is reused from one line to the next.
struct Columns {
    // INVARIANT  column[place[w]] == w, kNone for places that are not watched
    //            K[slot * stride + w] == K(S.place[slot], place[w]) for slots that are not holes
    Vector<Index> place;
    Vector<std::int32_t> member;
    Vector<Mode> mode;
    Array<double> rate;         // of alpha
    Array<double> h, q, gamma;  // gamma: the rate of h
    Array<double> K;
    Index stride = 0;
    Vector<Index> column;  // by place; empty between lines

    Array<double> slot_q;             // the right-hand side of the factor
    Factor::Direction direction;      // beta
    Array<double> slot_column;        // column of the matrix of S for an example that may join
    Vector<const double*> slot_rows;  // of K

    Index size() const { return place.size(); }

    void clear(Index places) {
        place.clear();
        member.clear();
        mode.clear();
        for (Array<double>* array : {&rate, &h, &q, &gamma}) array->clear();
        column.assign(places, kNone);
    }
};

class Line {
  public:
    Line(BinaryProblem& problem, Gradient& gradient, Columns& columns)
        : W(columns), B(problem), gradient_(gradient) {
        end();
    }

    Columns& W;
    double sum = 0.0;
    double growth = 0.0;

    // Chooses the columns (all examples, or those near the margin) and sets all rates.
    void begin(const Drive& drive, bool all);
    void end() {
        W.column.clear();
        W.stride = 0;
        scale_ = 1.0;
        growth = 0.0;
    }
    bool active() const { return !W.column.empty(); }

    // A side of the box of place k at the current position on the line.
    double bound(Index k, bool upper) const { return scale_ * (upper ? B.P.hi[k] : B.P.lo[k]); }
    // The distance from alpha to that side.
    double room(Index k, bool upper) const {
        return upper ? bound(k, true) - B.P.alpha[k] : B.P.alpha[k] - bound(k, false);
    }
    void grow_box(double step) { scale_ += growth * step; }

    // The column of place k, or kNone.
    Index column_of(Index k) const { return W.column.size() > k ? W.column[k] : kNone; }
    // q of place k, or 0 if k is not watched.
    double q_of(Index k) const {
        const Index w = column_of(k);
        return w != kNone ? W.q[w] : 0.0;
    }

    // Call after place k has joined S as its newest slot. `values` is its kernel row.
    void add_slot(Index k, const double* values);
    // Call before a slot leaves S; returns its q.
    double drop_slot(Index slot) {
        return slot < W.slot_q.size() ? std::exchange(W.slot_q[slot], 0.0) : 0.0;
    }
    // Watches place k, which has left S with this q, at a side of its box.
    void watch_at(Index k, double q, bool upper);
    // Attaches column w to a side of its box: its alpha moves with that side from now on.
    void put_at(Index w, bool upper);
    // Detaches the column of place k from the side of its box.
    void detach(Index k);

  private:
    Index add_column(Index k, Mode mode, double h, double rate);
    void watch_driven(const Drive& drive);
    void watch_near(bool all);
    void gather_values();
    void set_rates(const Drive& drive);
    void set_row(Index slot, const double* values);
    void drive_with(Index k, double rate);
    void widen();

    BinaryProblem& B;
    Gradient& gradient_;
    double scale_ = 1.0;
};

inline void Line::begin(const Drive& drive, bool all) {
    scale_ = 1.0;
    growth = drive.growth;
    W.clear(B.P.size);
    watch_driven(drive);
    watch_near(all);
    W.stride = padded(W.size() + kLanes);
    gather_values();
    set_rates(drive);
}

inline void Line::watch_driven(const Drive& drive) {
    for (Index i = 0; i < drive.place.size(); ++i) {
        const Index k = drive.place[i];
        add_column(k, Mode::driven, B.h(k), (drive.end[i] - B.P.alpha[k]) / drive.left);
        gradient_.touch(k);
    }
}

inline void Line::watch_near(bool all) {
    constexpr Index kFew = 256;  // up to this many examples, all are watched
    const Problem& P = B.P;
    const double reach = all || P.members() <= kFew ? 1e300 : B.S.reach;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k] || B.S.has(k) || W.column[k] != kNone || B.is_excluded(k)) continue;
        const double h = B.h(k);
        const bool low = P.alpha[k] <= bound(k, false);
        const double wrong = low ? h : -h;
        const bool violates = wrong > 0.0 && wrong > 1000 * B.rounding.h_error(k);  // learned later
        const double rate = growth * (low ? P.lo[k] : P.hi[k]);
        if ((std::abs(h) > reach || violates) && rate == 0.0) continue;
        add_column(k, low ? Mode::low : Mode::high, h, rate);
        if (rate != 0.0) gradient_.touch(k);
    }
}

// Gathers the kernel values of all slots with the columns. Rows that are not cached are computed
// together.
inline void Line::gather_values() {
    const FreeSet& S = B.S;
    W.K.assign(S.factor.slots() * W.stride, 0.0);
    Vector<Index> slots, members;  // those whose rows are not cached
    for (Index slot = 0; slot < S.factor.slots(); ++slot) {
        const Index k = S.place[slot];
        if (k == kNone) continue;
        if (B.rows.keeps(B.member(k))) {
            set_row(slot, B.row(k));
        } else {
            slots.push_back(slot);
            members.push_back(B.member(k));
        }
    }
    Vector<const double*> rows;
    for (Index i = 0; i < slots.size();) {
        const Index end = B.rows.gather(B.D, B.workers, members, i, rows);
        for (const double* values : rows) set_row(slots[i++], values);
        i = end;
    }
}

inline void Line::set_rates(const Drive& drive) {
    const FreeSet& S = B.S;
    const auto own_rate = [&](Index k) {  // the rate of its target
        return B.settings.sphere ? drive.total * B.P.diagonal[k] / 2 : 0.0;
    };
    W.slot_q.assign(S.factor.slots(), 0.0);
    for (Index slot = 0; slot < S.factor.slots(); ++slot)
        if (const Index k = S.place[slot]; k != kNone) {
            gradient_.touch(k);
            W.slot_q[slot] = own_rate(k);
        }
    sum = drive.total;
    for (Index w = 0; w < W.size(); ++w) W.q[w] = own_rate(W.place[w]);
    for (Index w = 0; w < W.size(); ++w)
        if (W.rate[w] != 0.0) drive_with(W.place[w], W.rate[w]);
}

inline Index Line::add_column(Index k, Mode mode, double h, double rate) {
    W.column[k] = W.size();
    W.place.push_back(k);
    W.member.push_back(static_cast<std::int32_t>(B.member(k)));
    W.mode.push_back(mode);
    W.rate.push_back(rate);
    W.h.push_back(h);
    W.q.push_back(0.0);
    W.gamma.push_back(0.0);
    return W.size() - 1;
}

// Picks the kernel values of a slot with the columns from its kernel row.
inline void Line::set_row(Index slot, const double* values) {
    double* to = W.K.data() + slot * W.stride;
    for (Index w = 0; w < W.size(); ++w) to[w] = values[W.member[w]];
}

// Adds alpha of place k, moving at this rate, to what is driven.
inline void Line::drive_with(Index k, double rate) {
    const double* values = B.row(k);
    const FreeSet& S = B.S;
    for (Index w = 0; w < W.size(); ++w) W.q[w] -= rate * values[W.member[w]];
    for (Index slot = 0; slot < S.factor.slots(); ++slot)
        if (const Index l = S.place[slot]; l != kNone) W.slot_q[slot] -= rate * values[B.member(l)];
    sum -= rate;
}

inline void Line::add_slot(Index k, const double* values) {
    const Index slots = B.S.factor.slots();
    W.slot_q.resize(slots, 0.0);
    W.slot_q.back() = q_of(k);
    if (W.stride > 0) {
        W.K.resize(slots * W.stride, 0.0);
        set_row(slots - 1, values);
    }
    if (const Index w = column_of(k); w != kNone) W.mode[w] = Mode::free;
}

inline void Line::watch_at(Index k, double q, bool upper) {
    const FreeSet& S = B.S;
    Index w = W.column[k];
    if (w == kNone) {
        if (W.size() == W.stride) widen();
        w = add_column(k, Mode::free, 0.0, 0.0);
        const double* values = B.row(k);
        for (Index slot = 0; slot < S.factor.slots(); ++slot)
            if (const Index l = S.place[slot]; l != kNone)
                W.K[slot * W.stride + w] = values[B.member(l)];
    }
    W.h[w] = 0.0;
    W.q[w] = q;
    put_at(w, upper);
}

// Makes room for more columns.
inline void Line::widen() {
    const Index stride = W.stride + 4 * kLanes, slots = W.K.size() / W.stride;
    Array<double> K(slots * stride, 0.0);
    for (Index slot = 0; slot < slots; ++slot)
        std::copy_n(W.K.data() + slot * W.stride, W.stride, K.data() + slot * stride);
    W.K = std::move(K);
    W.stride = stride;
}

inline void Line::put_at(Index w, bool upper) {
    const Index k = W.place[w];
    W.mode[w] = upper ? Mode::high : Mode::low;
    const double rate = growth * (upper ? B.P.hi[k] : B.P.lo[k]);
    if (rate == 0.0) return;
    W.rate[w] = rate;
    drive_with(k, rate);
    B.S.factor.set_load(W.slot_q.data());
}

inline void Line::detach(Index k) {
    const Index w = column_of(k);
    if (w == kNone || W.rate[w] == 0.0 || W.mode[w] == Mode::driven) return;
    drive_with(k, -W.rate[w]);
    W.rate[w] = 0.0;
    B.S.factor.set_load(W.slot_q.data());
}

}  // namespace marginwise::exact
