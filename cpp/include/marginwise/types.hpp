// The vocabulary of the core: signed indices, aligned arrays, and views of the caller's data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>
#include <variant>
#include <vector>

namespace marginwise {

// Two index spaces, by law: `id` names an example, `s` is a position among the members.
using Index = std::ptrdiff_t;
inline constexpr Index kNone = -1;

// Members are stored in tiles of this many, and every per-member array is padded to whole tiles,
// so that no vector loop has a tail.
inline constexpr Index kLanes = 64;

inline constexpr Index tiles_for(Index n) { return (n + kLanes - 1) / kLanes; }
inline constexpr Index padded(Index n) { return tiles_for(n) * kLanes; }

template <class T>
struct AlignedAllocator {
    using value_type = T;
    static constexpr std::size_t kAlign = 64;

    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}

    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{kAlign}));
    }
    // Growing an array does not touch the new elements: whoever asks for them writes them.
    template <class U>
    void construct(U* p) {
        ::new (static_cast<void*>(p)) U;
    }
    template <class U, class... Args>
    void construct(U* p, Args&&... args) {
        ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
    }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{kAlign}); }

    template <class U>
    bool operator==(const AlignedAllocator<U>&) const {
        return true;
    }
    template <class U>
    bool operator!=(const AlignedAllocator<U>&) const {
        return false;
    }
};

template <class T>
using Array = std::vector<T, AlignedAllocator<T>>;

// Containers count with size_t, we count with Index.
inline constexpr std::size_t usize(Index n) { return static_cast<std::size_t>(n); }
template <class Container>
Index count(const Container& c) {
    return static_cast<Index>(c.size());
}

// Memory for n elements, at least twice what there are where more is needed.
template <class Container>
void enlarge(Container& c, Index n) {
    if (usize(n) > c.capacity()) c.reserve(std::max(usize(n), 2 * c.size()));
}

// A dense C-contiguous matrix that somebody else owns.
template <class V>
struct DenseView {
    const V* data = nullptr;
    Index rows = 0;
    Index cols = 0;
};

// A CSR matrix that somebody else owns; columns ascend within a row and do not repeat.
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

// Where features are measured from and in what unit: the core computes with (x - center) * scale,
// rounded once. An empty center is 0 (and keeps zeros zero).
struct Origin {
    std::vector<double> center;
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
