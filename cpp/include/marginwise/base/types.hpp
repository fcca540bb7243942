// The basic types of the core: tile sizes, views of the caller's data, and kernel parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <variant>

#include "marginwise/base/arrays.hpp"

namespace marginwise {

// Throws std::invalid_argument unless the condition on an argument holds.
inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// Members are stored in tiles of this many, and every per-member array is padded to whole tiles,
// so that no vector loop has a tail.
inline constexpr Index kLanes = 64;

inline constexpr Index tiles_for(Index n) { return (n + kLanes - 1) / kLanes; }
inline constexpr Index padded(Index n) { return tiles_for(n) * kLanes; }

// An array that the caller owns.
template <class V>
struct View {
    const V* data = nullptr;
    Index size = 0;

    const V* begin() const { return data; }
    const V* end() const { return data + size; }
};

// A dense C-contiguous matrix that the caller owns.
template <class V>
struct DenseView {
    const V* data = nullptr;
    Index rows = 0;
    Index cols = 0;
};

// The same with three dimensions.
template <class V>
struct CubeView {
    const V* data = nullptr;
    Index depth = 0;
    Index rows = 0;
    Index cols = 0;
};

// A writable matrix that the caller owns.
template <class V>
struct MutableView {
    V* data = nullptr;
    Index rows = 0;
    Index cols = 0;
};

// A dense C-contiguous matrix that owns its values. They are uninitialized unless a value is given.
template <class V>
struct OwnedMatrix {
    Index rows = 0;
    Index cols = 0;
    Array<V> values;

    OwnedMatrix() = default;
    OwnedMatrix(Index rows_, Index cols_) : rows(rows_), cols(cols_), values(rows_ * cols_) {}
    OwnedMatrix(Index rows_, Index cols_, V value)
        : rows(rows_), cols(cols_), values(rows_ * cols_, value) {}

    bool has_shape(Index rows_, Index cols_) const { return rows == rows_ && cols == cols_; }
    V* row(Index r) { return values.data() + r * cols; }
    const V* row(Index r) const { return values.data() + r * cols; }
};

// A CSR matrix that the caller owns. Columns ascend within a row and do not repeat.
template <class V>
struct CsrView {
    const V* data = nullptr;
    const std::int32_t* indices = nullptr;
    const std::int64_t* indptr = nullptr;
    Index rows = 0;
    Index cols = 0;
};

template <class V>
CsrView<V> csr_view(View<V> data, View<std::int32_t> indices, View<std::int64_t> indptr,
                    Index cols) {
    require(indptr.size >= 1 && data.size == indices.size, "inconsistent CSR");
    return {data.data, indices.data, indptr.data, indptr.size - 1, cols};
}

using Matrix = std::variant<DenseView<float>, DenseView<double>, CsrView<float>, CsrView<double>>;

inline Index rows_of(const Matrix& X) {
    return std::visit([](const auto& view) { return view.rows; }, X);
}
inline Index cols_of(const Matrix& X) {
    return std::visit([](const auto& view) { return view.cols; }, X);
}
inline bool is_sparse(const Matrix& X) { return X.index() >= 2; }

// The scaling of features: the core computes with (x - center) * scale, rounded once. An empty
// center means 0 (and keeps zeros zero).
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

// A kernel supplied by the caller: fills out[m x n] with K(a_i, b_j) for a[m x d] and b[n x d], all
// row-major. It is called for blocks, not for single pairs, and may throw.
using BlockKernel =
    std::function<void(const double* a, Index m, const double* b, Index n, Index d, double* out)>;

}  // namespace marginwise
