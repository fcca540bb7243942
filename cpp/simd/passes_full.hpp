// Passes in double precision, over arrays of any length.
#pragma once

#include "vectors.hpp"

namespace marginwise::simd {
namespace {

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

// Adds R rows at a time, so that `out` is read and written once for all of them.
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

}  // namespace
}  // namespace marginwise::simd
