// Example selection: learns the best of each random pool of unseen examples [bordes2005, section 4;
// loosli2007, section 2.4].
//
// Examples arrive in random order. All examples of a pool are scored by the same model, which
// changes only when the pool is complete and its best example is learned.
//
// DEPARTS: a pass scores each example once. The paper returns the examples not chosen, and so
//          learns all of them in the end.
// DEPARTS: the first examples of each class get no special treatment, which would require labels.
//          Instead, a problem learns examples as they arrive until it has both extremes.
#pragma once

#include <string>

#include "marginwise/model/block.hpp"

namespace marginwise {

// random      every example, in order of arrival
// gradient    the most misclassified example of the pool: least y f(x)
// active      the example nearest to the boundary: least |f(x)|; does not use labels
// autoactive  like active, with pools that are complete when enough examples are within the margin
enum class Selection { random, gradient, active, autoactive };

inline Selection selection_named(const std::string& name) {
    if (name == "random") return Selection::random;
    if (name == "gradient") return Selection::gradient;
    if (name == "active") return Selection::active;
    require(name == "autoactive", "unknown selection");
    return Selection::autoactive;
}

struct Choice {
    Selection rule = Selection::random;
    Index pool_size = 50;

    // An autoactive pool is complete with kEnoughInside examples within the margin, or kMostSampled
    // in total.
    static constexpr Index kEnoughInside = 5, kMostSampled = 100;

    // The smallest number of examples in a complete pool.
    Index least() const { return rule == Selection::autoactive ? kEnoughInside : pool_size; }

    // The score of an example; smaller is better. Only `gradient` uses `y`.
    double score(double y, double f) const {
        return rule == Selection::gradient ? y * f : std::abs(f);
    }
};

// The current pool of one problem. Only its best example is kept.
template <class T>
class Pool {
  public:
    bool empty() const { return sampled_ == 0; }

    bool complete(const Choice& choice) const {
        if (choice.rule != Selection::autoactive) return sampled_ >= choice.pool_size;
        return inside_ >= Choice::kEnoughInside || sampled_ >= Choice::kMostSampled;
    }

    // Counts an example with this score; returns whether it is the best so far.
    bool sample(double score, bool inside) {
        const bool better = empty() || score < score_;
        if (better) score_ = score;
        inside_ += inside;
        ++sampled_;
        return better;
    }

    // Keeps row r of the block, with its valid kernel values, as the best example.
    void keep(const Batch& batch, const Block<T>& from, Index r, const FeatureScaling& scaling) {
        const std::int64_t row = from.source[r];
        example = batch.example(row);
        best.read(batch, &row, 1, scaling, from.valid[r]);
        best.valid[0] = from.valid[r];
        std::copy(from.row(r), from.row(r) + best.valid[0], best.row(0));
    }

    // Starts the next pool. `best` and `example` remain, to be learned.
    void clear() { sampled_ = inside_ = 0; }

    Block<T> best;  // one row
    Example example{};

  private:
    double score_ = 0;
    Index sampled_ = 0, inside_ = 0;
};

}  // namespace marginwise
