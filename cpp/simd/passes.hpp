// Passes over the places of a problem, whose kernel rows are in single precision.
#pragma once

#include "vectors.hpp"

namespace marginwise::simd {
namespace {

constexpr Index kChunk = 8 * kLanes;  // extremes are located within the chunk that contains them

// Kernel rows come from main memory, and the processor's own prefetching ends at a page boundary.
inline void fetch_ahead(const float* k) {
    constexpr Index kAhead = 512;
    __builtin_prefetch(k + kAhead);
}

double dot(const double* a, const float* k, Index n) {
    Doubles sum[4] = {};
    for (Index s = 0; s < n; s += 4 * kWide)
        for (int v = 0; v < 4; ++v) sum[v] += load(a + s + v * kWide) * widen(k + s + v * kWide);
    return total((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

void collect(float* out, const float* row, const std::int32_t* at, Index n) {
    for (Index k = 0; k < n; ++k) out[k] = row[at[k]];
}

void add(double* g, const float* k, double a, Index n) {
    for (Index s = 0; s < n; s += kWide) store(g + s, load(g + s) + a * widen(k + s));
}

// The values among which extremes are searched: g where alpha may move that way, and values beyond
// reach elsewhere.
template <class T>
struct Penalties {
    const T *up, *down;

    Vec<T> high(Index s, Vec<T> g) const { return g + load(up + s); }
    Vec<T> low(Index s, Vec<T> g) const { return g + load(down + s); }
};
struct RoomRule {
    const Rooms& rooms;

    Doubles high(Index s, Doubles g) const {
        return load(rooms.rise + s) > Doubles{} ? g : all(-Extremes::kInfinite);
    }
    Doubles low(Index s, Doubles g) const {
        return load(rooms.fall + s) > Doubles{} ? g : all(Extremes::kInfinite);
    }
};

// Calls updated(s), which returns the new g of members s, s+1, ..., over all members, and finds the
// extremes.
template <class T, class Rule, class F>
inline Extremes scan(const T* g, Rule rule, Index n, F updated) {
    constexpr Index kWide_ = kWidth<T>;
    constexpr T kFar = static_cast<T>(2 * Extremes::kInfinite);
    Extremes best;
    Index chunk_i = kNone, chunk_j = kNone;
    for (Index begin = 0; begin < n; begin += kChunk) {
        const Index end = std::min(begin + kChunk, n);
        Vec<T> high = all(-kFar), low = all(kFar);
        for (Index s = begin; s < end; s += kWide_) {
            const Vec<T> value = updated(s);
            const Vec<T> in_up = rule.high(s, value), in_down = rule.low(s, value);
            high = in_up > high ? in_up : high;
            low = in_down < low ? in_down : low;
        }
        const auto chunk_high = static_cast<double>(highest<T>(high));
        const auto chunk_low = static_cast<double>(lowest<T>(low));
        if (chunk_high > best.g_max) best.g_max = chunk_high, chunk_i = begin;
        if (chunk_low < best.g_min) best.g_min = chunk_low, chunk_j = begin;
    }
    // The first member of a chunk that has the extreme value.
    const auto locate = [&](Index s, double wanted, auto value_at) {
        for (;; s += kWide_)
            if (const Index lane = lane_of(static_cast<T>(wanted), value_at(s, load(g + s)));
                lane < kWide_)
                return s + lane;
    };
    constexpr double reachable = Extremes::kInfinite / 2;
    if (best.g_max > -reachable)
        best.i = locate(chunk_i, best.g_max, [&](Index s, Vec<T> v) { return rule.high(s, v); });
    if (best.g_min < reachable)
        best.j = locate(chunk_j, best.g_min, [&](Index s, Vec<T> v) { return rule.low(s, v); });
    return best;
}

template <class T>
Extremes step(T* g, const float* k_i, const float* k_j, T lambda, const T* up, const T* down,
              Index n) {
    return scan(g, Penalties<T>{up, down}, n, [=](Index s) {
        fetch_ahead(k_i + s);
        fetch_ahead(k_j + s);
        const Vec<T> value = load(g + s) - lambda * (load_as<T>(k_i + s) - load_as<T>(k_j + s));
        store(g + s, value);
        return value;
    });
}

template <class T>
Extremes extremes(const T* g, const T* up, const T* down, Index n) {
    return scan(g, Penalties<T>{up, down}, n, [=](Index s) { return load(g + s); });
}

template <class F>
inline Tally tally_of(const double* g, const Rooms& rooms, Index n, F updated) {
    Doubles gap{};
    const Extremes found = scan(g, RoomRule{rooms}, n, [&](Index s) {
        const Doubles value = updated(s);
        const Doubles up = load(rooms.rise + s) * value, down = -load(rooms.fall + s) * value;
        gap += up > down ? up : down;
        return value;
    });
    return {found, total(gap)};
}

Tally step_both(double* g, const float* k_i, double a, const float* k_j, double b,
                const Rooms& rooms, Index n) {
    return tally_of(g, rooms, n, [=](Index s) {
        const Doubles value = load(g + s) - (a * widen(k_i + s) + b * widen(k_j + s));
        store(g + s, value);
        return value;
    });
}

Tally tally(const double* g, const Rooms& rooms, Index n) {
    return tally_of(g, rooms, n, [=](Index s) { return load(g + s); });
}

Moments moments(const double* g, const double* side, Index n) {
    Doubles h{}, h_squared{};
    for (Index s = 0; s < n; s += kWide) {
        const Doubles term = load(side + s) * load(g + s);
        h += term;
        h_squared += term * term;
    }
    return {total(h), total(h_squared)};
}

// The place with the highest gain, where gain(s) returns the gains of members s, s+1, .... Ties go
// to the first place.
template <class F>
inline Best highest_gain(Index n, F gain) {
    Best best;
    Index chunk = kNone;
    for (Index begin = 0; begin < n; begin += kChunk) {
        Doubles high{};
        for (Index s = begin; s < std::min(begin + kChunk, n); s += kWide) {
            const Doubles value = gain(s);
            high = value > high ? value : high;
        }
        const double chunk_high = highest<double>(high);
        if (chunk_high > best.gain) best.gain = chunk_high, chunk = begin;
    }
    if (chunk == kNone) return best;
    best.gain = 0;  // computed again together with its place
    for (Index s = chunk; s < std::min(chunk + kChunk, n); s += kWide) {
        const Doubles value = gain(s);
        for (Index lane = 0; lane < kWide; ++lane)
            if (value[lane] > best.gain) best = {s + lane, value[lane]};
    }
    return best;
}

Best best_gain(const double* g, const Boxes& boxes, double tolerance, Index n) {
    return highest_gain(n, [=](Index s) {
        const Doubles slope = load(g + s), diagonal = load(boxes.diagonal + s);
        const Doubles alpha = load(boxes.alpha + s);
        const Doubles down = load(boxes.lo + s) - alpha, up = load(boxes.hi + s) - alpha;
        const Doubles safe = diagonal > all(kLeastCurvature) ? diagonal : all(kLeastCurvature);
        const Doubles best = slope / safe;
        const Doubles above = best < down ? down : best;
        const Doubles move = above > up ? up : above;
        const Doubles size = slope < Doubles{} ? -slope : slope;
        return size > all(tolerance) ? move * (slope - move * safe * 0.5) : Doubles{};
    });
}

// For each lane, the best place seen so far: its gain as a fraction, and the start of the vector
// that it is a lane of, counted from the first vector that this leader saw.
template <class T>
struct Leader {
    Vec<T> above{}, below = all(T(1)), at{};

    void look(Vec<T> squared, Vec<T> curvature, Vec<T> here) {
        const auto better = squared * below > above * curvature;
        above = better ? squared : above;
        below = better ? curvature : below;
        at = better ? here : at;
    }

    // The best of `best` and the lanes; ties go to the first place.
    Best against(Best best, Index first) const {
        const Vec<T> gain = above / below;
        for (Index lane = 0; lane < kWidth<T>; ++lane) {
            const auto value = static_cast<double>(gain[lane]);
            const Index s = static_cast<Index>(at[lane]) + first + lane;
            const bool sooner = value == best.gain && s < best.s;
            if (value > best.gain || (sooner && best.s != kNone)) best = {s, value};
        }
        return best;
    }
};

// Gains are compared as fractions, slope^2 / curvature, because a division per member would take
// longer than everything else. Several independent leaders run in parallel, so that none has to
// wait for the previous comparison.
template <class T>
Best second_order(const T* g, const float* k_i, const T* diagonal, const T* down, T g_i, T k_ii,
                  Index n) {
    constexpr Index W = kWidth<T>;
    constexpr T kLeast = static_cast<T>(kLeastCurvature);
    Vec<T> here{};
    const auto look = [&](Leader<T>& leader, Index s) {
        fetch_ahead(k_i + s);
        const Vec<T> slope = g_i - (load(g + s) + load(down + s));
        const Vec<T> curvature = (k_ii + load(diagonal + s)) - T(2) * load_as<T>(k_i + s);
        const Vec<T> safe = curvature > all(kLeast) ? curvature : all(kLeast);
        leader.look(slope > Vec<T>{} ? slope * slope : Vec<T>{}, safe, here);
    };
    Leader<T> first, second, third, fourth;
    for (Index s = 0; s < n; s += 4 * W) {
        look(first, s);
        look(second, s + W);
        look(third, s + 2 * W);
        look(fourth, s + 3 * W);
        here += T(4 * W);
    }
    Best best = first.against({}, 0);
    best = second.against(best, W);
    best = third.against(best, 2 * W);
    return fourth.against(best, 3 * W);
}

}  // namespace
}  // namespace marginwise::simd
