// The hot loops, behind one table of functions per instruction set.
//
// cpp/simd/kernels.cpp is compiled once per set; dispatch.hpp chooses the table at the first use.
// With every set, a value depends only on the input numbers, never on the shape of the block: each
// dot product is one chain of multiply-adds in the order of the features. Skipping a zero,
// splitting a stream or adding a thread therefore changes no bit.
#pragma once

#include "marginwise/base/types.hpp"

namespace marginwise::simd {

// The lower bound applied to curvatures, as in LIBSVM.
inline constexpr double kLeastCurvature = 1e-12;

// The most violating pair: i = argmax g over alpha < hi, j = argmin g over alpha > lo. Ties go to
// the first index; kNone if no member qualifies.
struct Extremes {
    Index i = kNone;
    Index j = kNone;
    double g_max = -kInfinite;
    double g_min = kInfinite;

    static constexpr double kInfinite = 1e30;
    bool both() const { return i != kNone && j != kNone; }
    double delta() const { return both() ? g_max - g_min : 0.0; }
};

// The coordinate with the largest gain, and that gain (for pairs: twice the gain in the dual).
struct Best {
    Index s = kNone;
    double gain = 0.0;
};

// How far each alpha may rise and fall.
struct Rooms {
    const double *rise, *fall;
};

// Extremes of g, and the sum of max(rise g, -fall g), which is the gap [ertekin2011, eq. 9].
struct Tally {
    Extremes extremes;
    double gap = 0.0;
};

// Sums of h = C y g and of h^2 over the members [ertekin2011, eq. 8].
struct Moments {
    double h = 0.0, h_squared = 0.0;
};

// Where each alpha is in its box, and K(s, s).
struct Boxes {
    const double *alpha, *lo, *hi, *diagonal;
};

// The deformation of an image along its tangents: its strengths, and the range that values are
// clipped to. Values closer to `low` than `faint` become `low`.
struct Bending {
    float along_x, along_y, thicken;
    float low, high, faint;
};

// Nonzeros of a block of examples, row by row, features ascending. Entry p multiplies the kLanes
// values that start at tile + index[p] * kLanes. Row r's entries in chunk c are
// [cut[r * stride + c], cut[r * stride + c + 1]).
template <class T>
struct Lists {
    const std::uint32_t* index;
    const T* value;
    const std::uint32_t* cut;
    Index stride;
    Index chunks;
    Index width;  // features in a chunk
};

// The nonzero coefficients of the lanes of a tile in several problems: lane l has coefficient
// value[p] in problem[p] for p in [begin[l], begin[l + 1]).
struct Weights {
    const std::uint32_t* begin;
    const std::uint32_t* problem;
    const double* value;
};

template <class T>
struct ProductTable {
    // dots[r * kLanes + lane] = x_r . tile_lane for `rows` dense rows of length d. The tile is
    // feature-major: feature k of lane l at tile[k * kLanes + l].
    void (*dots_dense)(const T* x, Index rows, Index d, const T* tile, T* dots);
    // The same from lists of nonzeros. Prefetches each next chunk of the tile, and `ahead`, the
    // tile that is needed next, if that is not null.
    void (*dots_lists)(const Lists<T>& lists, Index rows, const T* tile, const T* ahead, T* dots);
    // out[r * stride + lane] = K(x_r, tile_lane) from dots and squared norms.
    void (*transform)(const Kernel& kernel, const T* dots, const T* row_norms, Index rows,
                      const T* lane_norms, float* out, Index stride);
    // The same, not rounded to float.
    void (*transform_full)(const Kernel& kernel, const T* dots, const T* row_norms, Index rows,
                           const T* lane_norms, T* out, Index stride);
    // x . y of two lists that share `dense`, a scatter of one of them: sum of value[p] *
    // dense[index[p]] in ascending order of p. Bit-equal to the lanes of the functions above.
    T (*dot_gather)(const std::uint32_t* index, const T* value, Index n, const T* dense);
    // Lists k + first for all k < n with x[k] != zeros[k]; returns their number. `out` must have
    // room for n + kLanes numbers.
    Index (*nonzeros)(const T* x, const double* zeros, Index n, std::uint32_t first,
                      std::uint32_t* out);
};

// Per-member arrays below are padded: n is a multiple of kLanes. `up` is 0 where alpha < hi and
// -kInfinite elsewhere; `down` is 0 where alpha > lo and +kInfinite elsewhere.
struct Table {
    ProductTable<float> f32;
    ProductTable<double> f64;
    // sum_s a[s] k[s]
    double (*dot)(const double* a, const float* k, Index n);
    // out[k] = row[at[k]]
    void (*collect)(float* out, const float* row, const std::int32_t* at, Index n);
    // g += a k
    void (*add)(double* g, const float* k, double a, Index n);
    // g -= lambda (k_i - k_j), and the extremes of the new g, in one pass.
    Extremes (*step)(double* g, const float* k_i, const float* k_j, double lambda, const double* up,
                     const double* down, Index n);
    Extremes (*extremes)(const double* g, const double* up, const double* down, Index n);
    // argmax over alpha_s > lo_s, g_s < g_i of (g_i - g_s)^2 / (K_ii + K_ss - 2 K_is) [fan2005].
    Best (*second_order)(const double* g, const float* k_i, const double* diagonal,
                         const double* down, double g_i, double k_ii, Index n);
    // The same three for a working set, in single precision; n is at most 2^24.
    Extremes (*step_single)(float* g, const float* k_i, const float* k_j, float lambda,
                            const float* up, const float* down, Index n);
    Extremes (*extremes_single)(const float* g, const float* up, const float* down, Index n);
    Best (*second_order_single)(const float* g, const float* k_i, const float* diagonal,
                                const float* down, float g_i, float k_ii, Index n);
    // g -= a k_i + b k_j, with extremes and gap of the new g, in one pass.
    Tally (*step_both)(double* g, const float* k_i, double a, const float* k_j, double b,
                       const Rooms& rooms, Index n);
    Tally (*tally)(const double* g, const Rooms& rooms, Index n);
    Moments (*moments)(const double* g, const double* side, Index n);
    // argmax over |g_s| > tolerance of the gain in the dual of moving alpha_s alone, in its box.
    Best (*best_gain)(const double* g, const Boxes& boxes, double tolerance, Index n);
    // For any n, in double throughout: sum_k a[k] b[k]
    double (*dot_full)(const double* a, const double* b, Index n);
    // y += a x
    void (*add_full)(double* y, const double* x, double a, Index n);
    // out += sum_r coefficient[r] rows[r], in the order of r for each element: the gaxpy form of a
    // product with a matrix that is stored by rows [laskov2006, algorithm 3]. The sums do not
    // depend on how the rows or the elements are split into calls.
    void (*gaxpy)(double* out, const double* const* rows, const double* coefficient, Index m,
                  Index n);
    // (r, x) <- (cosine r + sine x, cosine x - sine r)
    void (*rotate)(double* r, double* x, double cosine, double sine, Index n);
    // sums[r * width + c] += sum_lane k[r * kLanes + lane] w[lane * width + c], lane by lane; width
    // is a multiple of 16.
    void (*weigh)(const float* k, Index rows, const float* w, Index width, float* sums);
    // sums[c * kLanes + r] += sum_lane weight(c, lane) k[r * stride + lane], lane by lane, for up
    // to kLanes rows. The sums of a row do not depend on the other rows. Also writes the sums of
    // further rows up to the next multiple of 16.
    void (*weigh_lists)(const float* k, Index stride, Index rows, const Weights& weights,
                        double* sums);
    // rows[l + v][k + u] = rows[k + u][l + v] for u, v < kLanes: mirrors a block of a symmetric
    // matrix.
    void (*mirror)(float* const* rows, Index k, Index l);
    // out = image + along_x f_x t_x + along_y f_y t_y + thicken sqrt(t_x^2 + t_y^2), clipped to the
    // range, element by element and for any n.
    void (*bend)(const float* image, const float* t_x, const float* t_y, const float* f_x,
                 const float* f_y, const Bending& bending, float* out, Index n);
    const char* name;
};

Table baseline_table();
#ifdef MARGINWISE_HAS_AVX2
Table avx2_table();
#endif
#ifdef MARGINWISE_HAS_AVX512
Table avx512_table();
#endif

}  // namespace marginwise::simd
