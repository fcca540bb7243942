// Choosing the examples worth learning: the best of a random pool of unseen ones [bordes2005,
// section 4; loosli2007, section 2.4].
//
// Examples arrive in random order. Those of one pool are scored by the same model, which changes
// only when the pool is complete and its best is learned.
//
// DEPARTS: each example is looked at once in a pass; the paper puts those not chosen back, and so
//          learns all of them in the end.
// DEPARTS: the first examples of each class get no special treatment, which would require labels;
//          while a problem has no pair to judge by, it learns examples as they come.
#pragma once

#include <string>

#include "marginwise/model/block.hpp"

namespace marginwise {

// random      every example, as it comes
// gradient    the most misclassified of the pool: least y f(x)
// active      the nearest to the boundary: least |f(x)|; its label plays no part
// autoactive  the same of a pool that ends when enough lie within the margin
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

    // An autoactive pool is complete with this many examples within the margin, or in all.
    static constexpr Index kEnoughInside = 5, kMostSampled = 100;

    // Examples in the smallest pool that is complete.
    Index least() const { return rule == Selection::autoactive ? kEnoughInside : pool_size; }

    // The smaller, the better; `y` matters to `gradient` alone.
    double score(double y, double f) const {
        return rule == Selection::gradient ? y * f : std::abs(f);
    }
};

// A pool of one problem, of which only the best example is kept.
template <class T>
class Pool {
  public:
    bool empty() const { return sampled_ == 0; }

    bool complete(const Choice& choice) const {
        if (choice.rule != Selection::autoactive) return sampled_ >= choice.pool_size;
        return inside_ >= Choice::kEnoughInside || sampled_ >= Choice::kMostSampled;
    }

    // Counts an example of that score, and returns whether it is the best so far.
    bool sample(double score, bool inside) {
        const bool better = empty() || score < score_;
        if (better) score_ = score;
        inside_ += inside;
        ++sampled_;
        return better;
    }

    // Keeps row r of the block with the kernel values it has.
    void keep(const Batch& batch, const Block<T>& from, Index r, const FeatureScaling& scaling) {
        const std::int64_t row = from.source[r];
        example = batch.example(row);
        best.read(batch, &row, 1, scaling, from.valid[r]);
        best.valid[0] = from.valid[r];
        std::copy(from.row(r), from.row(r) + best.valid[0], best.row(0));
    }

    // Starts the next pool; `best` and `example` stay to be learned.
    void clear() { sampled_ = inside_ = 0; }

    Block<T> best;  // one row
    Example example{};

  private:
    double score_ = 0;
    Index sampled_ = 0, inside_ = 0;
};

}  // namespace marginwise
