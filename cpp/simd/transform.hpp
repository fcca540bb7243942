// Kernel values as functions of dot products and squared norms.
#pragma once

#include "vectors.hpp"

namespace marginwise::simd {
namespace {

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

template <class T>
inline Vec<T> root_of(Vec<T> x) {
    for (Index k = 0; k < kWidth<T>; ++k) x[k] = std::sqrt(x[k]);
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
                // NaN if the squared distance overflows; K is 0 in that case.
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
                const Vec<T> norms = root_of<T>(xx) * root_of<T>(yy);
                return norms > Vec<T>{} ? xy / norms : Vec<T>{};
            });
        case KernelKind::tanimoto:
            return apply([=](Vec<T> xy, Vec<T> xx, Vec<T> yy) {
                const Vec<T> either = (xx + yy) - xy;
                return either > Vec<T>{} ? xy / either : all<T>(1);
            });
        default:  // linear; callables are never passed in
            return apply([](Vec<T> xy, Vec<T>, Vec<T>) { return xy; });
    }
}

}  // namespace
}  // namespace marginwise::simd
