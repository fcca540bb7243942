// Dot products of rows with tiles, and sums of kernel values weighted by coefficients.
//
// The order of summation is fixed: every dot product is a single chain of multiply-adds over
// ascending features, in one lane of one accumulator. A zero feature adds exactly 0, so the dense
// and the zero-skipping product are bit-identical.
#pragma once

#include "vectors.hpp"

namespace marginwise::simd {
namespace {

// One register block: R rows times V vectors of lanes, starting at `tile`.
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

// Prefetches the r-th of `rows` parts of a chunk. For a few rows this does not pay off.
inline void prefetch_part(const char* chunk, Index bytes, Index r, Index rows) {
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
            prefetch_part(next, floats * static_cast<Index>(sizeof(T)), r, rows);
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

template <class T>
T dot_gather(const std::uint32_t* index, const T* value, Index n, const T* dense) {
    T sum = 0;
    for (Index p = 0; p < n; ++p) sum = multiply_add(value[p], dense[index[p]], sum);
    return sum;
}

// R rows times 16 columns of weights.
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

// Transposes a square of kWidth<float> rows in registers. Each of the log2(kWidth<float>) rounds
// interleaves the two halves of the rows, like a card shuffle.
inline void transpose(Vec<float>* rows) {
    constexpr Index W = kWidth<float>;
    Integers low, high;
    for (Index v = 0; v < W; ++v) {
        low[v] = static_cast<std::int32_t>(v / 2 + v % 2 * W);
        high[v] = low[v] + static_cast<std::int32_t>(W / 2);
    }
    Vec<float> dealt[W];
    for (Index round = 1; round < W; round *= 2) {
        for (Index r = 0; r < W / 2; ++r) {
            dealt[2 * r] = shuffle(rows[r], rows[r + W / 2], low);
            dealt[2 * r + 1] = shuffle(rows[r], rows[r + W / 2], high);
        }
        for (Index r = 0; r < W; ++r) rows[r] = dealt[r];
    }
}

// Transposes a square block of kWidth<float> rows: row r of `from` becomes column r of `to`.
inline void transpose_block(const float* from, Index stride, float* to, Index to_stride) {
    Vec<float> rows[kWidth<float>];
    for (Index r = 0; r < kWidth<float>; ++r) rows[r] = load(from + r * stride);
    transpose(rows);
    for (Index r = 0; r < kWidth<float>; ++r) store(to + r * to_stride, rows[r]);
}

void mirror(float* const* rows, Index k, Index l) {
    constexpr Index W = kWidth<float>;
    for (Index u = k; u < k + kLanes; u += W)
        for (Index v = l; v < l + kLanes; v += W) {
            Vec<float> block[W];
            for (Index r = 0; r < W; ++r) block[r] = load(rows[u + r] + v);
            transpose(block);
            for (Index r = 0; r < W; ++r) store(rows[v + r] + u, block[r]);
        }
}

// Sums the rows in parallel lanes, or one by one if they are few. Both give bit-identical sums.
void weigh_lists(const float* k, Index stride, Index rows, const Weights& weights, double* sums) {
    constexpr Index W = kWidth<float>, kFew = 4;
    if (rows < kFew) {
        for (Index lane = 0; lane < kLanes; ++lane)
            for (std::uint32_t p = weights.begin[lane]; p < weights.begin[lane + 1]; ++p)
                for (Index r = 0; r < rows; ++r) {
                    double& sum = sums[weights.problem[p] * kLanes + r];
                    sum = multiply_add(weights.value[p], static_cast<double>(k[r * stride + lane]),
                                       sum);
                }
        return;
    }
    alignas(64) float sides[kLanes * kLanes], last[W * kLanes];
    const Index whole = rows / W * W, end = (rows + W - 1) / W * W;
    for (Index r = 0; r < end; r += W) {
        const float* from = k + r * stride;
        Index from_stride = stride;
        if (r == whole) {
            for (Index at = 0; at < W; ++at)
                for (Index lane = 0; lane < kLanes; ++lane)
                    last[at * kLanes + lane] = r + at < rows ? from[at * stride + lane] : 0.0f;
            from = last;
            from_stride = kLanes;
        }
        for (Index lane = 0; lane < kLanes; lane += W)
            transpose_block(from + lane, from_stride, sides + lane * kLanes + r, kLanes);
    }
    for (Index lane = 0; lane < kLanes; ++lane)
        for (std::uint32_t p = weights.begin[lane]; p < weights.begin[lane + 1]; ++p) {
            double* sum = sums + weights.problem[p] * kLanes;
            const float* side = sides + lane * kLanes;
            const double weight = weights.value[p];
            for (Index r = 0; r < end; r += kWide)
                store(sum + r, load(sum + r) + weight * widen(side + r));
        }
}

// Writes every number, but advances only past those of nonzero features.
template <class T>
Index nonzeros(const T* x, const double* zeros, Index n, std::uint32_t first, std::uint32_t* out) {
    Index k = 0, found = 0;
#if defined(__AVX512F__) && defined(__AVX512VL__)
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (; k + kWide <= n; k += kWide) {
        const __mmask8 differs =
            _mm512_cmp_pd_mask(as_doubles(x + k), _mm512_loadu_pd(zeros + k), _CMP_NEQ_UQ);
        const __m256i numbers =
            _mm256_add_epi32(lanes, _mm256_set1_epi32(static_cast<int>(first + k)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + found),
                            _mm256_maskz_compress_epi32(differs, numbers));
        found += __builtin_popcount(differs);
    }
#endif
    for (; k < n; ++k) {
        out[found] = first + static_cast<std::uint32_t>(k);
        found += static_cast<double>(x[k]) != zeros[k];
    }
    return found;
}

}  // namespace
}  // namespace marginwise::simd
