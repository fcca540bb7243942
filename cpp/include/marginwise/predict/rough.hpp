// Decision values in single precision, for screening rows: most rows are far from every boundary,
// so a few digits are enough.
#pragma once

#include "marginwise/predict/decision.hpp"

namespace marginwise {

// The coefficients of all problems, contiguous for each member, so that a kernel value is
// multiplied by all of them at once.
struct RoughWeights {
    // INVARIANT  values[s * width + c] is the coefficient of member s in problem c; zeros beyond
    Array<float> values;
    Array<float> bias;  // padded to `width`
    Index problems, width;

    RoughWeights(const Vector<Array<double>>& weight, const Vector<double>& bias_, Index members)
        : problems(weight.size()), width((problems + kGroup - 1) / kGroup * kGroup) {
        values.assign(padded(members) * width, 0.0f);
        bias.assign(width, 0.0f);
        for (Index c = 0; c < problems; ++c) {
            bias[c] = static_cast<float>(bias_[c]);
            for (Index s = 0; s < members; ++s)
                values[s * width + c] = static_cast<float>(weight[c][s]);
        }
    }

  private:
    static constexpr Index kGroup = 16;
};

// Some rows of a sample, multiplied together with each tile of members.
template <class T>
class RowsAtOnce {
  public:
    RowsAtOnce(const Sample& sample, Index first, Index most, const FeatureScaling& scaling) {
        const Index n = std::min(most, sample.n - first);
        rows_.read(sample.X, sample.numbers(first, n).data(), n, scaling);
    }

    Index size() const { return rows_.n; }

    // Calls use(t, k) with k[r * kLanes + lane] = K(row r, lane of tile t), for all tiles.
    template <class F>
    void against(const KernelBlocks<T>& kernel, const Members<T>& members, F use) const {
        Scratch<T> scratch;
        Array<float> k(size() * kLanes);
        for (Index t = 0; t < tiles_for(members.size()); ++t) {
            kernel.values(rows_, 0, size(), members.tile(t), scratch, k.data(), kLanes,
                          members.tile_after(t));
            use(t, k.data());
        }
    }

  private:
    Rows<T> rows_;
};

// out[r * problems + c] = bias_c + sum_s weight_c(s) K(x_r, member s), for the rows of a sample.
// The values of a row do not depend on the other rows.
template <class T>
void expand_roughly(const KernelBlocks<T>& kernel, const Members<T>& members,
                    const RoughWeights& weights, const FeatureScaling& scaling, Index threads,
                    const Sample& sample, float* out) {
    const Index n = sample.n, width = weights.width;
    ThreadPool workers(threads);
    workers.run((n + kRowsAtOnce - 1) / kRowsAtOnce, [&](Index task, Index) {
        const RowsAtOnce<T> block(sample, task * kRowsAtOnce, kRowsAtOnce, scaling);
        Array<float> sums;
        for (Index r = 0; r < block.size(); ++r)
            sums.insert(sums.end(), weights.bias.begin(), weights.bias.end());
        block.against(kernel, members, [&](Index t, const float* k) {
            table().weigh(k, block.size(), weights.values.data() + t * kLanes * width, width,
                          sums.data());
        });
        for (Index r = 0; r < block.size(); ++r)
            std::copy_n(sums.data() + r * width, weights.problems,
                        out + (task * kRowsAtOnce + r) * weights.problems);
    });
}

// out[r * problems + c] = sum_s weight_c(s) K(x_r, member s), without the biases, for weights that
// are mostly nonzero: sums in single precision within a tile and in double across tiles.
template <class T>
void expand_densely(const KernelBlocks<T>& kernel, const Members<T>& members,
                    const RoughWeights& weights, const FeatureScaling& scaling, Index threads,
                    const Sample& sample, double* out) {
    const Index n = sample.n, width = weights.width;
    ThreadPool workers(threads);
    workers.run((n + kRowsAtOnce - 1) / kRowsAtOnce, [&](Index task, Index) {
        const RowsAtOnce<T> block(sample, task * kRowsAtOnce, kRowsAtOnce, scaling);
        Array<float> of_tile(block.size() * width);
        Array<double> sums(block.size() * width, 0.0);
        block.against(kernel, members, [&](Index t, const float* k) {
            std::fill(of_tile.begin(), of_tile.end(), 0.0f);
            table().weigh(k, block.size(), weights.values.data() + t * kLanes * width, width,
                          of_tile.data());
            for (Index i = 0; i < sums.size(); ++i) sums[i] += double(of_tile[i]);
        });
        for (Index r = 0; r < block.size(); ++r)
            std::copy_n(sums.data() + r * width, weights.problems,
                        out + (task * kRowsAtOnce + r) * weights.problems);
    });
}

// out[r * centres.size() + m] = K(x_r, centre m), for the rows of a sample.
template <class T>
void cross(const KernelBlocks<T>& kernel, const Members<T>& centres, const FeatureScaling& scaling,
           Index threads, const Sample& sample, float* out) {
    const Index n = sample.n;
    ThreadPool workers(threads);
    workers.run((n + kRowsAtOnce - 1) / kRowsAtOnce, [&](Index task, Index) {
        const RowsAtOnce<T> block(sample, task * kRowsAtOnce, kRowsAtOnce, scaling);
        block.against(kernel, centres, [&](Index t, const float* k) {
            const Index lanes = std::min(kLanes, centres.size() - t * kLanes);
            for (Index r = 0; r < block.size(); ++r)
                std::copy_n(k + r * kLanes, lanes,
                            out + (task * kRowsAtOnce + r) * centres.size() + t * kLanes);
        });
    });
}

}  // namespace marginwise
