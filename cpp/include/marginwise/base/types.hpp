// The vocabulary of the core: tiles, views of the caller's data, and the kernels' parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>

#include "marginwise/base/arrays.hpp"

namespace marginwise {

// Members are stored in tiles of this many, and every per-member array is padded to whole tiles,
// so that no vector loop has a tail.
inline constexpr Index kLanes = 64;

inline constexpr Index tiles_for(Index n) { return (n + kLanes - 1) / kLanes; }
inline constexpr Index padded(Index n) { return tiles_for(n) * kLanes; }

// A dense C-contiguous matrix that the caller owns.
template <class V>
struct DenseView {
    const V* data = nullptr;
    Index rows = 0;
    Index cols = 0;
};

// A CSR matrix that the caller owns; columns ascend within a row and do not repeat.
template <class V>
struct CsrView {
    const V* data = nullptr;
    const std::int32_t* indices = nullptr;
    const std::int64_t* indptr = nullptr;
    Index rows = 0;
    Index cols = 0;
};

using Matrix = std::variant<DenseView<float>, DenseView<double>, CsrView<float>, CsrView<double>>;

inline Index rows_of(const Matrix& X) {
    return std::visit([](const auto& view) { return view.rows; }, X);
}
inline Index cols_of(const Matrix& X) {
    return std::visit([](const auto& view) { return view.cols; }, X);
}
inline bool is_sparse(const Matrix& X) { return X.index() >= 2; }

// How features are centred and scaled: the core computes with (x - center) * scale, rounded once.
// An empty center is 0 (and keeps zeros zero).
struct FeatureScaling {
    Vector<double> center;
    double scale = 1.0;
};

enum class KernelKind { linear, rbf, poly, sigmoid, cosine, tanimoto, callable };

// Every native kernel is a function of x.y, |x|^2 and |y|^2.
struct Kernel {
    KernelKind kind = KernelKind::rbf;
    double gamma = 1.0;
    double coef0 = 0.0;
    int degree = 3;
};

// A kernel of the caller's: fills out[m x n], row-major, with K(a_i, b_j) for row-major a[m x d]
// and b[n x d]. Called with blocks, never with pairs; may throw.
using BlockKernel =
    std::function<void(const double* a, Index m, const double* b, Index n, Index d, double* out)>;

}  // namespace marginwise
