// Solutions of one binary problem for many values of C and gamma and on many training sets, all
// from one kernel matrix.
//
// The smallest C starts from the solution on another training set, if there is one. The values of C
// are solved in ascending order. Each solution, scaled, is the start for the next one, so that
// coefficients at their bound stay there. Examples left out of a training set keep a place with the
// box {0}, so their gradient, and thus their decision value, is available at no extra cost.
#pragma once

#include <memory>

#include "marginwise/base/interrupts.hpp"
#include "marginwise/base/lock.hpp"
#include "marginwise/model/spec.hpp"
#include "marginwise/predict/class_weights.hpp"
#include "marginwise/tune/fold_start.hpp"
#include "marginwise/tune/working_set.hpp"

namespace marginwise {

// The solutions for each C on one training set.
struct SolutionPath {
    OwnedMatrix<double> decision;  // f(x) of all examples: one row per C
    Array<double> violation, seconds, bias;
    // The nonzero coefficients: those of the n-th C are at [begin[n], begin[n + 1]), by example.
    Array<std::int64_t> begin;
    Array<std::int32_t> example;
    Array<double> alpha;

    // Calls use(name, array) for all arrays.
    template <class F>
    void visit(F use) {
        use("decision", decision);
        use("violation", violation);
        use("seconds", seconds);
        use("bias", bias);
        use("begin", begin);
        use("example", example);
        use("alpha", alpha);
    }
};

template <class T>
class Tuner : public Interrupts {
  public:
    Tuner(const ModelSpec& spec, const Matrix& X)
        : kernel_{kernel_named(spec.kernel), 1.0, spec.coef0, spec.degree},
          bytes_(Dual<T>::kWorkingBytes + spec.cache_bytes),
          all_(spec.features, spec.sparse) {
        constexpr Index kBlock = 256;
        require(cols_of(X) == spec.features, "rows are not as wide as the spec says");
        Rows<T> rows;
        for (Index first = 0; first < rows_of(X); first += kBlock) {
            const Index n = std::min(kBlock, rows_of(X) - first);
            rows.read(X, Sample(X).numbers(first, n).data(), n, spec.common.scaling);
            for (Index r = 0; r < n; ++r) all_.append(rows, r, first + r);
        }
    }

    mutable Guard guard;  // held by every caller

    // Starts the problem of these examples. `gammas` is the number of values of gamma to come.
    void begin(View<std::int64_t> examples, Index gammas) {
        for (const std::int64_t s : examples)
            require(s >= 0 && s < all_.size(), "an example is outside the batch");
        const bool all = examples.size == all_.size();
        Members<T> own =
            all ? Members<T>(all_) : all_.some(Vector<Index>(examples.begin(), examples.end()));
        starts_.clear();
        matrix_ = std::make_unique<KernelMatrix<T>>(std::move(own), kernel_, bytes_, gammas > 1);
    }

    // Sets the gamma of the kernel, relative to the one that the features are scaled by.
    void set_gamma(double gamma) {
        kernel_.gamma = gamma;
        starts_.clear();
        if (matrix_) matrix_->set_gamma(gamma);
    }

    // Solves the problem with labels y, +1 or -1, and penalties C weight[k] for each C. `Cs` must
    // be ascending. Examples of weight 0 are left out. Ends early if interrupted.
    SolutionPath follow(View<double> y, View<double> weight, View<double> Cs, double tau) {
        require(matrix_ && y.size == matrix_->size() && weight.size == matrix_->size(),
                "begin() with as many examples first");
        SolutionPath path;
        path.decision = OwnedMatrix<double>(Cs.size, y.size);
        path.begin.push_back(0);
        Problem P;
        double lowest = 0;  // the C that the current sequence of scaled solutions started from
        for (Index c = 0; c < Cs.size && !interrupted(); ++c) {
            double seconds = 0;
            {
                const Stopwatch watch(seconds);
                if (c > 0 && Cs.data[c] <= kMostRaised * lowest)
                    raise_costs(P, y, Cs.data[c] / Cs.data[c - 1]);
                else
                    P = without_weight(y, weight, lowest = Cs.data[c]);
                if (c == 0) starts_.apply(P, y, *matrix_);
                P.find_extremes();
                path.violation.push_back(WorkingSets<T>(P, *matrix_, set_).solve(tau, [this] {
                    return this->interrupted();
                }));
            }
            if (c == 0 && !interrupted()) starts_.keep(P, y);
            path.seconds.push_back(seconds);
            add_solution(P, y, c, path);
        }
        return path;
    }

    // Sparse columns of coefficients: column c has value[p] for example[p], p in [begin[c],
    // begin[c + 1]).
    struct Columns {
        View<std::int64_t> begin;
        View<std::int32_t> example;
        View<double> value;
        Index size() const { return begin.size - 1; }
    };

    // For each column, the sum of value K(example, x_r), for some examples x_r. Kernel values are
    // computed once for all columns.
    OwnedMatrix<double> expand(View<std::int64_t> rows, const Columns& columns) {
        require(columns.begin.size >= 1 && columns.example.size == columns.value.size &&
                    columns.begin.data[columns.size()] == columns.value.size,
                "inconsistent columns");
        Vector<Index> held, at(all_.size(), kNone);
        for (const std::int32_t s : columns.example)
            if (at[s] == kNone) at[s] = 0;
        for (Index s = 0; s < all_.size(); ++s)
            if (at[s] != kNone) at[s] = held.size(), held.push_back(s);
        const Members<T> members = all_.some(held);
        Vector<ClassWeights> groups;
        for (Index first = 0; first < columns.size(); first += kColumns)
            groups.emplace_back(std::min(kColumns, columns.size() - first), held.size(),
                                [&](Index c, auto use) {
                                    for (std::int64_t p = columns.begin.data[first + c];
                                         p < columns.begin.data[first + c + 1]; ++p)
                                        use(at[columns.example.data[p]], columns.value.data[p]);
                                });
        OwnedMatrix<double> out(rows.size, columns.size(), 0.0);
        for (Index first = 0; first < rows.size && !interrupted(); first += kLanes)
            expand_block({rows.data + first, std::min(kLanes, rows.size - first)}, members, groups,
                         out.row(first), columns.size());
        return out;
    }

  private:
    // Bound on repeated scaling, which also scales the rounding errors of the gradient.
    static constexpr double kMostRaised = 1e6;
    static constexpr Index kColumns = 256;  // their sums stay in a cache of the processor

    void expand_block(View<std::int64_t> rows, const Members<T>& members,
                      const Vector<ClassWeights>& groups, double* out, Index width) {
        const KernelBlocks<T> kernel(kernel_);
        const Index tiles = tiles_for(members.size()), stride = tiles * kLanes;
        Rows<T> block;
        Scratch<T> scratch;
        Array<float> values(rows.size * stride);
        all_.extract(Vector<Index>(rows.begin(), rows.end()).data(), rows.size, block);
        if (!all_.sparse()) block.choose_form();
        for (Index t = 0; t < tiles; ++t)
            kernel.values(block, 0, rows.size, members.tile(t), scratch, values.data() + t * kLanes,
                          stride, members.tile_after(t));
        for (Index g = 0; g < groups.size(); ++g) {
            ClassWeights::Sums sums(groups[g]);
            for (Index t = 0; t < tiles; ++t)
                sums.add(t, values.data() + t * kLanes, stride, rows.size);
            Array<double> own(rows.size * kColumns, 0.0);
            const Index columns = std::min(kColumns, width - g * kColumns);
            sums.add_to(own.data(), rows.size);
            for (Index r = 0; r < rows.size; ++r)
                std::copy_n(own.data() + r * columns, columns, out + r * width + g * kColumns);
        }
    }

    Problem without_weight(View<double> y, View<double> weight, double C) const {
        Problem P;
        P.reserve(y.size);
        for (Index k = 0; k < y.size; ++k)
            P.add(0.0, y.data[k], y.data[k] * weight.data[k] * C, matrix_->diagonal()[k],
                  weight.data[k] > 0 ? Box::usual : Box::shut);
        return P;
    }

    // Scales the bounds by `factor`, and all coefficients by the number from 1 to `factor` that
    // maximises the dual. If that is closer to `factor` than to 1, uses `factor` itself, so that
    // coefficients at their bound stay there.
    static void raise_costs(Problem& P, View<double> y, double factor) {
        double linear = 0, square = 0;
        for (Index k = 0; k < P.size; ++k) {
            linear += P.alpha[k] * y.data[k];
            square += P.alpha[k] * (y.data[k] - P.g[k]);
        }
        double step = std::clamp(linear / std::max(square, 1e-300), 1.0, factor);
        if (step > (1 + factor) / 2) step = factor;
        for (Index k = 0; k < P.size; ++k) {
            const bool full = P.bounded(k) && step == factor;
            P.side[k] *= factor;
            P.alpha[k] = full ? P.side[k] : step * P.alpha[k];  // exactly at the bound
            P.g[k] = y.data[k] - step * (y.data[k] - P.g[k]);
            P.set_box(k, P.box[k]);
        }
    }

    // The mean gradient of the free examples. At the optimum it is b; with a remaining violation,
    // it is closer to that b than the midpoint of the extremes.
    static double mean_bias(const Problem& P) {
        if (P.free == 0 || !P.biased) return P.bias();
        double sum = 0;
        for (Index k = 0; k < P.size; ++k)
            if (P.free_at(k)) sum += P.g[k];
        return sum / static_cast<double>(P.free);
    }

    static void add_solution(const Problem& P, View<double> y, Index c, SolutionPath& path) {
        const double b = mean_bias(P);
        path.bias.push_back(b);
        double* f = path.decision.row(c);
        for (Index k = 0; k < P.size; ++k) {
            f[k] = y.data[k] - P.g[k] + b;
            if (P.alpha[k] == 0.0) continue;
            path.example.push_back(static_cast<std::int32_t>(k));
            path.alpha.push_back(P.alpha[k]);
        }
        path.begin.push_back(path.alpha.size());
    }

    Kernel kernel_;
    Index bytes_;
    Members<T> all_;
    std::unique_ptr<KernelMatrix<T>> matrix_;
    FoldStarts starts_;
    WorkingSet set_;
};

}  // namespace marginwise
