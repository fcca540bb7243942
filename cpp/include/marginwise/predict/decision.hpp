// Decision values: blocks of rows against the members, all problems at once.
#pragma once

#include <numeric>

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/dual/dual.hpp"
#include "marginwise/predict/class_weights.hpp"

namespace marginwise {

// Number of rows multiplied together with each tile of members.
inline constexpr Index kRowsAtOnce = 256;

// Some rows of a matrix, by number; all of them if `order` is null.
struct Sample {
    const Matrix& X;
    const std::int64_t* order = nullptr;
    Index n = 0;

    Sample(const Matrix& X_) : X(X_), n(rows_of(X_)) {}
    Sample(const Matrix& X_, const std::int64_t* order_, Index n_) : X(X_), order(order_), n(n_) {}

    // The numbers of rows [first, first + count) of the sample.
    Vector<std::int64_t> numbers(Index first, Index count) const {
        Vector<std::int64_t> found(count);
        std::iota(found.begin(), found.end(), first);
        if (order) std::copy_n(order + first, count, found.begin());
        return found;
    }
};

inline double dot(const double* a, const float* k, Index n) { return table().dot(a, k, n); }
inline double dot(const double* a, const double* k, Index n) { return table().dot_full(a, k, n); }

// The coefficients of some members in several problems. Kernel values are rounded to V.
template <class V, class T>
class Expansion {
  public:
    // The weights are padded to whole tiles.
    Expansion(const KernelBlocks<T>& kernel, const Members<T>& members,
              const Vector<const double*>& weight)
        : kernel_(kernel),
          members_(members),
          weight_(weight),
          problems_(weight.size()),
          by_member_(problems_ > 1 && sizeof(V) == sizeof(float)),
          class_weights_(weight, by_member_ ? members.size() : 0) {}
    // The same for several problems, in single precision, without a weight for each member.
    Expansion(const KernelBlocks<T>& kernel, const Members<T>& members, Index problems,
              ClassWeights class_weights)
        : kernel_(kernel),
          members_(members),
          problems_(problems),
          by_member_(true),
          class_weights_(std::move(class_weights)) {}

    const Members<T>& members() const { return members_; }
    const KernelBlocks<T>& kernel() const { return kernel_; }
    Index problems() const { return problems_; }

    // out[r * problems + c] += sum_s weight[c][s] K(x_r, member s), for the rows of a block.
    void add(const Rows<T>& block, Scratch<T>& scratch, double* out) const {
        const Index rows = block.n;
        Array<V> k(rows * kLanes);
        const bool packs = members_.sparse() && rows >= 4;  // fewer are faster without packing
        if (packs) kernel_.pack_rows(block, rows, scratch);
        Vector<ClassWeights::Sums> sums(by_member_ ? (rows + kLanes - 1) / kLanes : 0,
                                        ClassWeights::Sums(class_weights_));
        for (Index t = 0; t < tiles_for(members_.size()); ++t) {
            if (packs)
                kernel_.values_packed(rows, members_.tile(t), scratch, k.data());
            else
                kernel_.values(block, 0, rows, members_.tile(t), scratch, k.data(), kLanes,
                               members_.tile_after(t));
            add_tile(t, k, rows, sums, out);
        }
        for (Index part = 0; part < sums.size(); ++part)
            sums[part].add_to(out + part * kLanes * problems_,
                              std::min(kLanes, rows - part * kLanes));
        if (packs) kernel_.clear_packed_rows(block, scratch);
    }

  private:
    void add_tile(Index t, const Array<V>& k, Index rows, Vector<ClassWeights::Sums>& sums,
                  double* out) const {
        if constexpr (sizeof(V) == sizeof(float))
            for (Index part = 0; part < sums.size(); ++part)
                sums[part].add(t, k.data() + part * kLanes * kLanes, kLanes,
                               std::min(kLanes, rows - part * kLanes));
        if (by_member_) return;
        for (Index r = 0; r < rows; ++r)
            for (Index c = 0; c < problems_; ++c)
                out[r * problems_ + c] +=
                    dot(weight_[c] + t * kLanes, k.data() + r * kLanes, kLanes);
    }

    const KernelBlocks<T>& kernel_;
    const Members<T>& members_;
    Vector<const double*> weight_;
    Index problems_;
    bool by_member_;
    ClassWeights class_weights_;
};

// out[r * problems + c] += sum_s weight[c][s] K(x_r, member s), for the rows of a sample. The
// values of a row do not depend on the other rows. Kernel values are rounded to V.
template <class V, class T>
void expand(const Expansion<V, T>& expansion, const FeatureScaling& scaling, Index threads,
            const Sample& sample, double* out) {
    // Rows are packed for sparse tiles, as many as there are lanes.
    const Index at_once = expansion.members().sparse() ? kLanes : kRowsAtOnce;
    const Index n = sample.n, problems = expansion.problems();
    ThreadPool workers(threads);
    workers.run((n + at_once - 1) / at_once, [&](Index task, Index worker) {
        // Reuse memory from call to call: for a few rows, allocation would cost more than the
        // product. Exceptions are helper threads, which end with the call, and callable kernels,
        // which may call another model.
        static thread_local Rows<T> kept_block;
        static thread_local Scratch<T> kept_scratch;
        const bool keeps = worker == 0 && !expansion.kernel().is_callable();
        Rows<T> own_block;
        Scratch<T> own_scratch;
        Rows<T>& block = keeps ? kept_block : own_block;
        const Index first = task * at_once, rows = std::min(at_once, n - first);
        block.read(sample.X, sample.numbers(first, rows).data(), rows, scaling);
        expansion.add(block, keeps ? kept_scratch : own_scratch, out + first * problems);
    });
}

// The same for weights that are padded to whole tiles.
template <class V, class T>
void expand(const KernelBlocks<T>& kernel, const Members<T>& members,
            const Vector<const double*>& weight, const FeatureScaling& scaling, Index threads,
            const Sample& sample, double* out) {
    expand(Expansion<V, T>(kernel, members, weight), scaling, threads, sample, out);
}

// Coefficients of some examples: values[c * examples + m] is that of example m in problem c.
struct Coefficients {
    const double* values;
    Index problems;
};

// out[r * problems + c] += sum_m coefficient(c, m) K(centre m, x_r), for rows packed by
// Model::pack(). The rows are the tiles here, so a few centres cost little more than reading the
// rows.
template <class T>
void expand_over(const KernelBlocks<T>& kernel, const Matrix& centres, const Coefficients& weight,
                 const FeatureScaling& scaling, Index threads, const Members<T>& rows,
                 double* out) {
    const Index m = rows_of(centres), problems = weight.problems;
    ThreadPool workers(threads);
    Vector<std::int64_t> order(m);
    std::iota(order.begin(), order.end(), std::int64_t(0));
    for (Index first = 0; first < m; first += kLanes) {
        const Index n = std::min(kLanes, m - first);
        Rows<T> block;
        block.read(centres, order.data() + first, n, scaling);
        Vector<Scratch<T>> scratches(workers.threads());
        if (rows.sparse())
            for (Scratch<T>& scratch : scratches) kernel.pack_rows(block, n, scratch);
        workers.run(tiles_for(rows.size()), [&](Index t, Index worker) {
            Scratch<T>& scratch = scratches[worker];
            Array<float> k(kLanes * kLanes);
            if (rows.sparse())
                kernel.values_packed(n, rows.tile(t), scratch, k.data());
            else
                kernel.values(block, 0, n, rows.tile(t), scratch, k.data(), kLanes,
                              rows.tile_after(t));
            Array<double> sums(kLanes);
            for (Index c = 0; c < problems; ++c) {
                sums.assign(kLanes, 0.0);
                for (Index r = 0; r < n; ++r)
                    if (const double a = weight.values[c * m + first + r]; a != 0.0)
                        table().add(sums.data(), &k[r * kLanes], a, kLanes);
                for (Index lane = 0; lane < rows.tile(t).used; ++lane)
                    out[(t * kLanes + lane) * problems + c] += sums[lane];
            }
        });
    }
}

// out[r * problems + c] = f_c(x_r), for the rows of a sample. Each pair of classes holds a small
// part of the members, so its weights are listed; otherwise, output(c) returns those of all
// members.
template <class T, class Output>
void decide(const Dual<T>& D, Output output, const FeatureScaling& scaling, Index threads,
            const Sample& sample, double* out) {
    const Index problems = D.problems();
    for (Index r = 0; r < sample.n; ++r)
        for (Index c = 0; c < problems; ++c) out[r * problems + c] = D.subproblems[c].P.bias();
    if (D.in_pairs()) {
        const auto each = [&](Index c, auto use) { D.subproblems[c].each_weight(use); };
        const Expansion<float, T> listed(D.kernel, D.members, problems,
                                         ClassWeights(problems, D.size(), each));
        return expand(listed, scaling, threads, sample, out);
    }
    Vector<Array<double>> weights;
    Vector<const double*> weight;
    for (Index c = 0; c < problems; ++c) weights.push_back(output(c));
    for (const Array<double>& w : weights) weight.push_back(w.data());
    expand<float>(D.kernel, D.members, weight, scaling, threads, sample, out);
}

}  // namespace marginwise
