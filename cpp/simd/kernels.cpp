// The hot loops, written once with portable vector types and compiled once per instruction set
// (MARGINWISE_ISA names it). Contracts are in simd/table.hpp.
//
// Fixed order of summation: every dot product below is a single chain of multiply-adds over
// ascending features, kept in one lane of one accumulator. A feature that is zero adds exactly
// nothing, so the dense and the zero-skipping product agree to the bit.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "marginwise/simd/table.hpp"

#define MW_CAT2(a, b) a##b
#define MW_CAT(a, b) MW_CAT2(a, b)
#define MW_STRING2(a) #a
#define MW_STRING(a) MW_STRING2(a)

namespace marginwise::simd {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kBytes = 32;
#else
constexpr std::size_t kBytes = 16;
#endif

template <class T, std::size_t Bytes>
struct VectorOf {
    typedef T type __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vec = typename VectorOf<T, kBytes>::type;
using Doubles = Vec<double>;
using HalfFloats = typename VectorOf<float, kBytes / 2>::type;  // as many floats as Doubles

template <class T>
constexpr Index kWidth = static_cast<Index>(kBytes / sizeof(T));
template <class T>
constexpr Index kVecs = kLanes / kWidth<T>;  // vectors in one feature of a tile

template <class T>
inline const Vec<T>& load(const T* p) {
    return *reinterpret_cast<const Vec<T>*>(p);
}
template <class T>
inline void store(T* p, Vec<T> v) {
    *reinterpret_cast<Vec<T>*>(p) = v;
}
template <class T>
inline Vec<T> all(T x) {
    return Vec<T>{} + x;
}
inline Doubles widen(const float* p) {
    return __builtin_convertvector(*reinterpret_cast<const HalfFloats*>(p), Doubles);
}

// ---------------------------------------------------------------------------------------------
// Dot products

// One register block: R rows against V vectors of lanes, starting at `tile`.
template <class T, int R, int V>
inline void dense_block(const T* x, Index d, const T* tile, T* dots) {
    Vec<T> sum[R][V] = {};
    for (Index k = 0; k < d; ++k) {
        Vec<T> member[V];
        for (int v = 0; v < V; ++v) member[v] = load(tile + k * kLanes + v * kWidth<T>);
        for (int r = 0; r < R; ++r) {
            const Vec<T> xk = all(x[r * d + k]);
            for (int v = 0; v < V; ++v) sum[r][v] += xk * member[v];
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(dots + r * kLanes + v * kWidth<T>, sum[r][v]);
}

template <class T>
void dots_dense(const T* x, Index rows, Index d, const T* tile, T* dots) {
    constexpr int V = static_cast<int>(std::min<Index>(4, kVecs<T>));
    Index r = 0;
    for (; r + 3 <= rows; r += 3)
        for (Index lane = 0; lane < kLanes; lane += V * kWidth<T>)
            dense_block<T, 3, V>(x + r * d, d, tile + lane, dots + r * kLanes + lane);
    for (; r < rows; ++r)
        for (Index lane = 0; lane < kLanes; lane += V * kWidth<T>)
            dense_block<T, 1, V>(x + r * d, d, tile + lane, dots + r * kLanes + lane);
}

// The part of a chunk that row r of `rows` asks for ahead of its use. A few rows would not use
// enough of it.
inline void fetch_share(const char* chunk, Index bytes, Index r, Index rows) {
    constexpr Index kLine = 64, kFewRows = 32;
    if (!chunk || rows < kFewRows) return;
    const Index share = (bytes / rows / kLine + 1) * kLine;
    for (Index at = r * share; at < std::min((r + 1) * share, bytes); at += kLine)
        __builtin_prefetch(chunk + at);
}

// Chunks of features keep the part of the tile in use within the first-level cache.
template <class T>
void dots_lists(const Lists<T>& lists, Index rows, const T* tile, const T* ahead, T* dots) {
    constexpr int V = static_cast<int>(std::min<Index>(8, kVecs<T>));
    constexpr Index strip = V * kWidth<T>;
    const Index floats = lists.width * kLanes;
    for (Index chunk = 0; chunk < lists.chunks; ++chunk) {
        const bool last = chunk + 1 == lists.chunks;
        const auto* next =
            reinterpret_cast<const char*>(last ? ahead : tile + (chunk + 1) * floats);
        for (Index r = 0; r < rows; ++r) {
            fetch_share(next, floats * static_cast<Index>(sizeof(T)), r, rows);
            const std::uint32_t begin = lists.cut[r * lists.stride + chunk];
            const std::uint32_t end = lists.cut[r * lists.stride + chunk + 1];
            if (begin == end && chunk > 0) continue;
            for (Index lane = 0; lane < kLanes; lane += strip) {
                T* out = dots + r * kLanes + lane;
                Vec<T> sum[V] = {};
                if (chunk > 0)
                    for (int v = 0; v < V; ++v) sum[v] = load(out + v * kWidth<T>);
                for (std::uint32_t p = begin; p < end; ++p) {
                    const Vec<T> xk = all(lists.value[p]);
                    const T* member = tile + static_cast<Index>(lists.index[p]) * kLanes + lane;
                    for (int v = 0; v < V; ++v) sum[v] += xk * load(member + v * kWidth<T>);
                }
                for (int v = 0; v < V; ++v) store(out + v * kWidth<T>, sum[v]);
            }
        }
    }
}

// One multiply-add as the lanes above do it: fused where the instruction set fuses. (Left to
// itself the compiler would multiply in vectors and add one by one.)
template <class T>
inline T multiply_add(T a, T b, T c) {
#if defined(__FMA__) || defined(__aarch64__)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

template <class T>
T dot_gather(const std::uint32_t* index, const T* value, Index n, const T* dense) {
    T sum = 0;
    for (Index p = 0; p < n; ++p) sum = multiply_add(value[p], dense[index[p]], sum);
    return sum;
}

// ---------------------------------------------------------------------------------------------
// Kernels as functions of dot products and norms

template <class T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
    using Int = std::int32_t;
    static constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    static constexpr float ln2_hi = 0.693359375f, ln2_lo = -2.12194440e-4f;
    static constexpr float lowest = -87.0f;
    static constexpr int mantissa = 23, order = 7;
};
template <>
struct ExpConstants<double> {
    using Int = std::int64_t;
    static constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double ln2_hi = 6.93147180369123816490e-01;
    static constexpr double ln2_lo = 1.90821492927058770002e-10;
    static constexpr double lowest = -708.0;
    static constexpr int mantissa = 52, order = 13;
};

// exp(x) for x <= 88: 2^n exp(r), |r| <= ln(2)/2, by the Taylor polynomial; a few ulp, and exactly
// 1 at 0. Below `lowest` it is 0.
template <class T>
inline Vec<T> exp_of(Vec<T> x) {
    using K = ExpConstants<T>;
    typedef typename K::Int Ints __attribute__((vector_size(kBytes)));
    const Vec<T> clamped = x >= all(K::lowest) ? x : all(K::lowest);
    const Vec<T> shifted = clamped * static_cast<T>(1.44269504088896340736) + K::magic;
    const Vec<T> n = shifted - K::magic;
    const Vec<T> r = (clamped - n * K::ln2_hi) - n * K::ln2_lo;
    T factorial = 1;
    for (int k = 2; k <= K::order; ++k) factorial *= static_cast<T>(k);
    Vec<T> p = all(1 / factorial);
    for (int k = K::order; k >= 1; --k) {
        factorial /= static_cast<T>(k);
        p = p * r + 1 / factorial;
    }
    const Ints scaled =
        reinterpret_cast<Ints>(p) + (reinterpret_cast<Ints>(shifted) << K::mantissa);
    return x >= all(K::lowest) ? reinterpret_cast<Vec<T>>(scaled) : Vec<T>{};
}

template <class T>
inline Vec<T> tanh_of(Vec<T> x) {
    const Vec<T> bounded = x > all<T>(20) ? all<T>(20) : x;
    return T(1) - T(2) / (exp_of<T>(bounded + bounded) + T(1));
}

template <class T>
inline Vec<T> power_of(Vec<T> x, int degree) {
    Vec<T> p = all<T>(1);
    for (int k = 0; k < degree; ++k) p = p * x;
    return p;
}

inline Vec<float> root_of(Vec<float> x) {
    for (Index k = 0; k < kWidth<float>; ++k) x[k] = std::sqrt(x[k]);
    return x;
}
inline Vec<double> root_of(Vec<double> x) {
    for (Index k = 0; k < kWidth<double>; ++k) x[k] = std::sqrt(x[k]);
    return x;
}

inline void store_values(float* out, Vec<float> v) { store(out, v); }
inline void store_values(float* out, Vec<double> v) {
    *reinterpret_cast<HalfFloats*>(out) = __builtin_convertvector(v, HalfFloats);
}

inline void store_values(double* out, Vec<double> v) { store(out, v); }

template <class T, class V, class F>
inline void transform_with(const T* dots, const T* row_norms, Index rows, const T* lane_norms,
                           V* out, Index stride, F kernel) {
    for (Index r = 0; r < rows; ++r)
        for (Index lane = 0; lane < kLanes; lane += kWidth<T>)
            store_values(
                out + r * stride + lane,
                kernel(load(dots + r * kLanes + lane), all(row_norms[r]), load(lane_norms + lane)));
}

template <class T, class V>
void transform(const Kernel& kernel, const T* dots, const T* row_norms, Index rows,
               const T* lane_norms, V* out, Index stride) {
    const T gamma = static_cast<T>(kernel.gamma), coef0 = static_cast<T>(kernel.coef0);
    const int degree = kernel.degree;
    const auto apply = [&](auto f) {
        transform_with<T, V>(dots, row_norms, rows, lane_norms, out, stride, f);
    };
    switch (kernel.kind) {
        case KernelKind::rbf:
            return apply([=](Vec<T> xy, Vec<T> xx, Vec<T> yy) {
                // Not a number where x is too far away to be told how far; then K is 0.
                const Vec<T> square = (xx + yy) - (xy + xy);
                return exp_of<T>(-gamma * (square < Vec<T>{} ? Vec<T>{} : square));
            });
        case KernelKind::poly:
            return apply(
                [=](Vec<T> xy, Vec<T>, Vec<T>) { return power_of<T>(gamma * xy + coef0, degree); });
        case KernelKind::sigmoid:
            return apply([=](Vec<T> xy, Vec<T>, Vec<T>) { return tanh_of<T>(gamma * xy + coef0); });
        case KernelKind::cosine:
            return apply([=](Vec<T> xy, Vec<T> xx, Vec<T> yy) {
                const Vec<T> norms = root_of(xx) * root_of(yy);
                return norms > Vec<T>{} ? xy / norms : Vec<T>{};
            });
        case KernelKind::tanimoto:
            return apply([=](Vec<T> xy, Vec<T> xx, Vec<T> yy) {
                const Vec<T> either = (xx + yy) - xy;
                return either > Vec<T>{} ? xy / either : all<T>(1);
            });
        default:  // linear; callables never come here
            return apply([](Vec<T> xy, Vec<T>, Vec<T>) { return xy; });
    }
}

// ---------------------------------------------------------------------------------------------
// Passes over the members

constexpr Index kWide = kWidth<double>;
constexpr double kFlat = 1e-12;       // least curvature, as in LIBSVM
constexpr Index kChunk = 8 * kLanes;  // extremes are located within the chunk that holds them

inline double highest(Doubles v) {
    double best = v[0];
    for (Index k = 1; k < kWide; ++k) best = std::max(best, v[k]);
    return best;
}
inline double lowest(Doubles v) {
    double best = v[0];
    for (Index k = 1; k < kWide; ++k) best = std::min(best, v[k]);
    return best;
}

inline double total(Doubles v) {
    double sum = 0;
    for (Index lane = 0; lane < kWide; ++lane) sum += v[lane];
    return sum;
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

// What a member's g counts for among the extremes: g itself where alpha may move that way.
struct Penalties {
    const double *up, *down;

    Doubles high(Index s, Doubles g) const { return g + load(up + s); }
    Doubles low(Index s, Doubles g) const { return g + load(down + s); }
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

// Runs `updated(s)`, the new g of members s, s+1, ..., over all members and finds its extremes.
template <class Rule, class F>
inline Extremes scan(const double* g, Rule rule, Index n, F updated) {
    Extremes best;
    Index chunk_i = kNone, chunk_j = kNone;
    for (Index begin = 0; begin < n; begin += kChunk) {
        const Index end = std::min(begin + kChunk, n);
        Doubles high = all(-2 * Extremes::kInfinite), low = all(2 * Extremes::kInfinite);
        for (Index s = begin; s < end; s += kWide) {
            const Doubles value = updated(s);
            const Doubles in_up = rule.high(s, value), in_down = rule.low(s, value);
            high = in_up > high ? in_up : high;
            low = in_down < low ? in_down : low;
        }
        const double chunk_high = highest(high), chunk_low = lowest(low);
        if (chunk_high > best.g_max) best.g_max = chunk_high, chunk_i = begin;
        if (chunk_low < best.g_min) best.g_min = chunk_low, chunk_j = begin;
    }
    // The first member of a chunk that has the value found there.
    const auto locate = [&](Index s, double wanted, auto value_at) {
        for (;; s += kWide) {
            const Doubles values = value_at(s, load(g + s));
            for (Index lane = 0; lane < kWide; ++lane)
                if (values[lane] == wanted) return s + lane;
        }
    };
    constexpr double reachable = Extremes::kInfinite / 2;
    if (best.g_max > -reachable)
        best.i = locate(chunk_i, best.g_max, [&](Index s, Doubles v) { return rule.high(s, v); });
    if (best.g_min < reachable)
        best.j = locate(chunk_j, best.g_min, [&](Index s, Doubles v) { return rule.low(s, v); });
    return best;
}

Extremes step(double* g, const float* k_i, const float* k_j, double lambda, const double* up,
              const double* down, Index n) {
    return scan(g, Penalties{up, down}, n, [=](Index s) {
        const Doubles value = load(g + s) - lambda * (widen(k_i + s) - widen(k_j + s));
        store(g + s, value);
        return value;
    });
}

Extremes extremes(const double* g, const double* up, const double* down, Index n) {
    return scan(g, Penalties{up, down}, n, [=](Index s) { return load(g + s); });
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

// The place of the highest gain, the first where several tie, for gains of members s, s+1, ....
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
        const double chunk_high = highest(high);
        if (chunk_high > best.gain) best.gain = chunk_high, chunk = begin;
    }
    if (chunk == kNone) return best;
    best.gain = 0;  // found again with its place
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
        const Doubles safe = diagonal > all(kFlat) ? diagonal : all(kFlat);
        const Doubles best = slope / safe;
        const Doubles above = best < down ? down : best;
        const Doubles move = above > up ? up : above;
        const Doubles size = slope < Doubles{} ? -slope : slope;
        return size > all(tolerance) ? move * (slope - move * safe * 0.5) : Doubles{};
    });
}

Best second_order(const double* g, const float* k_i, const double* diagonal, const double* down,
                  double g_i, double k_ii, Index n) {
    return highest_gain(n, [=](Index s) {
        const Doubles slope = g_i - (load(g + s) + load(down + s));
        const Doubles curvature = (k_ii + load(diagonal + s)) - 2.0 * widen(k_i + s);
        const Doubles safe = curvature > all(kFlat) ? curvature : all(kFlat);
        return slope > Doubles{} ? slope * slope / safe : Doubles{};
    });
}

// ---------------------------------------------------------------------------------------------
// Passes in double, for arrays of any length

double dot_full(const double* a, const double* b, Index n) {
    constexpr Index kStride = 4 * kWide;
    Doubles sum[4] = {};
    Index k = 0;
    for (; k + kStride <= n; k += kStride)
        for (int v = 0; v < 4; ++v) sum[v] += load(a + k + v * kWide) * load(b + k + v * kWide);
    double rest = 0;
    for (; k < n; ++k) rest = multiply_add(a[k], b[k], rest);
    return total((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
}

void add_full(double* y, const double* x, double a, Index n) {
    Index k = 0;
    for (; k + kWide <= n; k += kWide) store(y + k, load(y + k) + a * load(x + k));
    for (; k < n; ++k) y[k] = multiply_add(a, x[k], y[k]);
}

// R rows at a time, so that `out` is read and written once for all of them.
template <int R>
inline void gaxpy_rows(double* out, const double* const* rows, const double* coefficient, Index n) {
    Index k = 0;
    for (; k + kWide <= n; k += kWide) {
        Doubles sum = load(out + k);
        for (int r = 0; r < R; ++r) sum += coefficient[r] * load(rows[r] + k);
        store(out + k, sum);
    }
    for (; k < n; ++k)
        for (int r = 0; r < R; ++r) out[k] = multiply_add(coefficient[r], rows[r][k], out[k]);
}

void gaxpy(double* out, const double* const* rows, const double* coefficient, Index m, Index n) {
    constexpr int kTogether = 8;
    Index r = 0;
    for (; r + kTogether <= m; r += kTogether)
        gaxpy_rows<kTogether>(out, rows + r, coefficient + r, n);
    for (; r < m; ++r) gaxpy_rows<1>(out, rows + r, coefficient + r, n);
}

void rotate(double* r, double* x, double cosine, double sine, Index n) {
    const auto turn = [=](auto& a, auto& b) {
        const auto before = a;
        a = cosine * before + sine * b;
        b = cosine * b - sine * before;
    };
    Index k = 0;
    for (; k + kWide <= n; k += kWide) {
        Doubles a = load(r + k), b = load(x + k);
        turn(a, b);
        store(r + k, a);
        store(x + k, b);
    }
    for (; k < n; ++k) turn(r[k], x[k]);
}

// R rows against 16 columns of weights.
template <int R>
inline void weigh_rows(const float* k, const float* w, Index width, float* sums) {
    constexpr int V = static_cast<int>(16 / kWidth<float>);
    Vec<float> sum[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) sum[r][v] = load(sums + r * width + v * kWidth<float>);
    for (Index lane = 0; lane < kLanes; ++lane)
        for (int v = 0; v < V; ++v) {
            const Vec<float> weight = load(w + lane * width + v * kWidth<float>);
            for (int r = 0; r < R; ++r) sum[r][v] += all(k[r * kLanes + lane]) * weight;
        }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(sums + r * width + v * kWidth<float>, sum[r][v]);
}

void weigh(const float* k, Index rows, const float* w, Index width, float* sums) {
    for (Index c = 0; c < width; c += 16) {
        Index r = 0;
        for (; r + 4 <= rows; r += 4)
            weigh_rows<4>(k + r * kLanes, w + c, width, sums + r * width + c);
        for (; r < rows; ++r) weigh_rows<1>(k + r * kLanes, w + c, width, sums + r * width + c);
    }
}

// Written without vectors' names: the compiler finds them, and sums of products are rounded in the
// same places for all elements.
void bend(const float* __restrict image, const float* __restrict t_x, const float* __restrict t_y,
          const float* __restrict f_x, const float* __restrict f_y, const Bending& how,
          float* __restrict out, Index n) {
    const Bending b = how;
    const float faint = b.low + b.faint;
    const auto keep = [&](float value) {
        const float kept = value > b.high ? b.high : value;
        return kept < faint ? b.low : kept;
    };
    if (b.thicken == 0)
        for (Index k = 0; k < n; ++k)
            out[k] = keep(image[k] + b.along_x * f_x[k] * t_x[k] + b.along_y * f_y[k] * t_y[k]);
    else
        for (Index k = 0; k < n; ++k)
            out[k] = keep(image[k] + b.along_x * f_x[k] * t_x[k] + b.along_y * f_y[k] * t_y[k] +
                          b.thicken * __builtin_sqrtf(t_x[k] * t_x[k] + t_y[k] * t_y[k]));
}

template <class T>
ProductTable<T> products() {
    return {dots_dense<T>, dots_lists<T>, transform<T, float>, transform<T, T>, dot_gather<T>};
}

}  // namespace

Table MW_CAT(MARGINWISE_ISA, _table)() {
    return {products<float>(),
            products<double>(),
            dot,
            collect,
            add,
            step,
            extremes,
            second_order,
            step_both,
            tally,
            moments,
            best_gain,
            dot_full,
            add_full,
            gaxpy,
            rotate,
            weigh,
            bend,
            MW_STRING(MARGINWISE_ISA)};
}

}  // namespace marginwise::simd
