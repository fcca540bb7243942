// Small data for the tests: numbers that look random and are the same everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "marginwise/base/types.hpp"

namespace toy {

using marginwise::Index;
using marginwise::Vector;

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}

    // Uniform in [0, 1), a multiple of 2^-24.
    double uniform() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return static_cast<double>((state_ * 0x2545F4914F6CDD1DULL) >> 40) * 0x1p-24;
    }
    double around_zero() { return 2 * uniform() - 1; }
    Index below(Index n) { return static_cast<Index>(uniform() * static_cast<double>(n)); }

  private:
    std::uint64_t state_;
};

// A dense matrix and the same in CSR, with views of both.
template <class V>
struct Data {
    Index rows, cols;
    Vector<V> dense, values;
    Vector<std::int32_t> indices;
    Vector<std::int64_t> indptr{0};

    Data(Index n, Index d, double density, std::uint64_t seed) : rows(n), cols(d) {
        Random random(seed);
        for (Index r = 0; r < n; ++r) {
            for (Index k = 0; k < d; ++k) {
                const bool zero = random.uniform() >= density;
                const double x = random.around_zero();
                dense.push_back(zero ? V(0) : static_cast<V>(x == 0 ? 0.5 : x));
                if (zero) continue;
                values.push_back(dense.back());
                indices.push_back(static_cast<std::int32_t>(k));
            }
            indptr.push_back(static_cast<std::int64_t>(values.size()));
        }
    }

    marginwise::Matrix view() const { return marginwise::DenseView<V>{dense.data(), rows, cols}; }
    marginwise::Matrix csr() const {
        return marginwise::CsrView<V>{values.data(), indices.data(), indptr.data(), rows, cols};
    }
    const V* row(Index r) const { return dense.data() + r * cols; }
};

inline Vector<std::int64_t> ascending(Index n) {
    Vector<std::int64_t> order(n);
    for (Index k = 0; k < n; ++k) order[k] = k;
    return order;
}

inline std::string at(const char* what, Index k) {
    return std::string(what) + " " + std::to_string(k);
}

}  // namespace toy
