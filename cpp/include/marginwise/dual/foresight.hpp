// Foresight: decision values of examples that the problem had not learned when it computed them.
// Together with the labels, they show how reliable decision values of new examples are.
// Probabilities are estimated from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "marginwise/base/arrays.hpp"

namespace marginwise {

// The latest values of one problem. While a stream is learned, the model improves, and its early
// values no longer describe it. Only the later half of all values is kept, and at most the last
// `most` of them.
class Foresight {
  public:
    struct Value {
        double f;      // values may differ by little
        float weight;  // weight of the example, with the sign of its label
    };

    explicit Foresight(Index most = 0) : most_(most) {}

    bool wanted() const { return most_ > 0; }
    Index seen() const { return seen_; }
    Index size() const { return values_.size() - first_; }
    const Value* begin() const { return values_.data() + first_; }
    const Value* end() const { return values_.data() + values_.size(); }

    // Records f of the next example of a stream.
    void add(double f, double weight) {
        if (!wanted()) return;
        ++seen_;
        values_.push_back({bounded(f, 0), static_cast<float>(bounded(weight, kTiny))});
        const Index limit = std::min(most_, std::max(kLeast, seen_ / 2));
        first_ = std::max(first_, values_.size() - limit);
        if (first_ <= most_) return;
        values_.erase(values_.begin(), values_.begin() + first_);
        first_ = 0;
    }

    // Reserves memory for n more values.
    void reserve(Index n) {
        if (wanted()) enlarge(values_, values_.size() + n);
    }

    // Continues from saved values; `seen` is the saved result of seen().
    void restore(Vector<Value> values, Index seen) {
        values_ = std::move(values);
        first_ = 0;
        seen_ = seen;
    }

  private:
    static constexpr Index kLeast = 64;  // up to this many values, all are kept
    static constexpr double kTiny = std::numeric_limits<float>::min();
    static constexpr double kHuge = std::numeric_limits<float>::max();

    // The number nearest to x with a magnitude from `least` to kHuge.
    static double bounded(double x, double least) {
        return std::copysign(std::clamp(std::abs(x), least, kHuge), x);
    }

    Index most_, seen_ = 0;
    Index first_ = 0;  // index of the first value that counts
    Vector<Value> values_;
};

}  // namespace marginwise
