// Kernel values of upcoming examples with the members, computed ahead in a single product.
#pragma once

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/dual/dual.hpp"

namespace marginwise {

// Labelled examples owned by the caller. cost[r] is C times the weight of row r. weight[r] is the
// weight without C; it is set only if the rows are new to the model and foresight is wanted.
struct Batch {
    Matrix X;
    const std::int32_t* label = nullptr;
    const double* cost = nullptr;
    const std::int64_t* ids = nullptr;
    const double* weight = nullptr;

    void set_labels(View<std::int32_t> labels, View<double> costs, View<std::int64_t> ids_) {
        const Index n = rows_of(X);
        require(labels.size == n && costs.size == n && ids_.size == n,
                "labels, costs and ids must have one value per row");
        label = labels.data;
        cost = costs.data;
        ids = ids_.data;
    }
    void set_weights(View<double> weights) {
        require(weights.size == rows_of(X), "weights must have one value per row");
        weight = weights.data;
    }
    void drop_weights() { weight = nullptr; }

    Example example(std::int64_t row) const {
        return {ids[row], label[row], cost[row], weight ? weight[row] : 0.0};
    }
};

template <class T, class V = float>
struct Block {
    // INVARIANT  values[r * stride + s] == K(row r, member s) for s < valid[r]
    Rows<T> rows;
    Vector<std::int64_t> source;  // row of the batch
    Array<V> values;
    Index stride = 0;
    Vector<Index> valid;

    Index size() const { return rows.n; }
    V* row(Index r) { return values.data() + r * stride; }
    const V* row(Index r) const { return values.data() + r * stride; }

    // How many rows a block has: enough to reuse the tiles, few enough to keep the values small.
    // The model does not depend on it.
    static Index rows_for(Index members) {
        constexpr Index kBytes = 16 << 20;
        return std::clamp<Index>(kBytes / (4 * std::max<Index>(members, 1)), 64, 256);
    }

    // Reads rows order[0..n) of the batch. `room` is the number of members to make room for,
    // including those inserted while the block is in use.
    void read(const Batch& batch, const std::int64_t* order, Index n, const FeatureScaling& scaling,
              Index room) {
        source.assign(order, order + n);
        rows.read(batch.X, order, n, scaling);
        valid.assign(n, 0);
        set_room(room);
    }

    // Makes room for that many members. The values of all rows except the first are lost.
    void set_room(Index room) {
        // The extra 16 values keep rows from sharing cache sets.
        stride = padded(room + kLanes) + 16;
        if (values.size() < size() * stride) values.resize(size() * stride, V(0));
    }

    // The number of rows before the first one with |x|^2 > limit.
    Index rows_within(double limit) const {
        Index r = 0;
        while (r < size() && static_cast<double>(rows.norms[r]) <= limit) ++r;
        return r;
    }

    // Renumbers the members in the values of the rows from `first` on.
    void compact(const Compaction& compaction, Index first) {
        for (Index r = first; r < size(); ++r) valid[r] = compaction.apply(row(r), valid[r]);
    }
};

// Computes blocks with a thread pool. One block may be in progress while members are appended.
template <class T, class V = float>
class BlockProduct {
  public:
    BlockProduct(Dual<T>& D, ThreadPool& workers)
        : D_(D), workers_(workers), scratch_(workers.threads()) {}
    ~BlockProduct() {
        if (under_way_) workers_.abandon();  // an exception unwinds the caller
    }
    BlockProduct(const BlockProduct&) = delete;
    BlockProduct& operator=(const BlockProduct&) = delete;

    // Starts the product of `block` with the full tiles of members, which must not be compacted
    // before wait() or finish().
    void start(Block<T, V>& block) { begin(block, D_.size() / kLanes); }

    // Completes the product that start() began, then the product with all members added since.
    void finish(Block<T, V>& block) {
        wait();
        begin(block, tiles_for(D_.size()));
        wait();
        block.valid.assign(block.valid.size(), D_.size());
    }

    // Completes the product that start() began.
    void wait() {
        if (!under_way_) return;
        workers_.finish();
        under_way_->valid.assign(under_way_->valid.size(), promised_);
        under_way_ = nullptr;
    }

  private:
    void begin(Block<T, V>& block, Index tiles) {
        const Index first = block.size() == 0 ? tiles : block.valid[0] / kLanes;
        if (first >= tiles) return;
        members_.clear();
        for (Index t = first; t < tiles; ++t) members_.push_back(&D_.members.tile(t));
        promised_ = std::min(tiles * kLanes, D_.size());
        D_.stats.kernel_evaluations += block.size() * (promised_ - block.valid[0]);
        under_way_ = &block;
        workers_.start(members_.size(), [this, &block, first](Index k, Index worker) {
            const Tile<T>* ahead = k + 1 < members_.size() ? members_[k + 1] : nullptr;
            D_.kernel.values(block.rows, 0, block.size(), *members_[k], scratch_[worker],
                             block.row(0) + (first + k) * kLanes, block.stride, ahead);
        });
    }

    Dual<T>& D_;
    ThreadPool& workers_;
    Vector<Scratch<T>> scratch_;
    Vector<const Tile<T>*> members_;
    Block<T, V>* under_way_ = nullptr;
    Index promised_ = 0;
};

}  // namespace marginwise
