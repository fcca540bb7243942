// Portable vectors for the instruction set that this translation unit is compiled for. Everything
// in this folder has internal linkage: copies for different instruction sets must not be merged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "marginwise/simd/table.hpp"

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
// Loads single-precision values as values of T.
template <class T>
inline Vec<T> load_as(const float* p);
// A single instruction; some compilers generate five for the portable form.
inline Doubles widen(const float* p) {
#if defined(__AVX512F__)
    return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p));  // without a mask, GCC 12 warns
#elif defined(__AVX2__)
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    return __builtin_convertvector(*reinterpret_cast<const HalfFloats*>(p), Doubles);
#endif
}

inline Doubles as_doubles(const float* p) { return widen(p); }
inline Doubles as_doubles(const double* p) { return load(p); }

template <>
inline Vec<double> load_as<double>(const float* p) {
    return widen(p);
}
template <>
inline Vec<float> load_as<float>(const float* p) {
    return load(p);
}

// Lane v of the result is lane at[v] of the concatenation of a and b.
typedef std::int32_t Integers __attribute__((vector_size(kBytes)));
inline Vec<float> shuffle(Vec<float> a, Vec<float> b, Integers at) {
#if defined(__clang__)
    Vec<float> out{};
    constexpr std::int32_t W = static_cast<std::int32_t>(kWidth<float>);
    for (Index v = 0; v < kWidth<float>; ++v) out[v] = at[v] < W ? a[at[v]] : b[at[v] - W];
    return out;
#else
    return __builtin_shuffle(a, b, at);
#endif
}

constexpr Index kWide = kWidth<double>;

template <class T>
inline T highest(Vec<T> v) {
    T best = v[0];
    for (Index k = 1; k < kWidth<T>; ++k) best = std::max(best, v[k]);
    return best;
}
template <class T>
inline T lowest(Vec<T> v) {
    T best = v[0];
    for (Index k = 1; k < kWidth<T>; ++k) best = std::min(best, v[k]);
    return best;
}

// The first lane with value `wanted`, or the number of lanes. All lanes are compared at once, which
// leaves a word to test that is nearly always 0.
template <class T>
inline Index lane_of(T wanted, Vec<T> v) {
    constexpr std::size_t W = kWidth<T>, kWord = std::min<std::size_t>(W, sizeof(std::uint64_t));
    typedef std::int8_t Bytes __attribute__((vector_size(W)));
    const Bytes equal = __builtin_convertvector(v == all(wanted), Bytes);
    for (std::size_t first = 0; first < W; first += kWord) {
        std::uint64_t word = 0;
        std::memcpy(&word, reinterpret_cast<const char*>(&equal) + first, kWord);
        if (word != 0) return static_cast<Index>(first) + __builtin_ctzll(word) / 8;
    }
    return kWidth<T>;
}

inline double total(Doubles v) {
    double sum = 0;
    for (Index lane = 0; lane < kWide; ++lane) sum += v[lane];
    return sum;
}

// One multiply-add, fused if the instruction set has fused ones, as in the lanes of a vector.
// (Otherwise the compiler would multiply in vectors and add one by one.)
template <class T>
inline T multiply_add(T a, T b, T c) {
#if defined(__FMA__) || defined(__aarch64__)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

}  // namespace
}  // namespace marginwise::simd
