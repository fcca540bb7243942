// The coefficients of the members in several problems, grouped by member. Most members have
// coefficients in a few problems only, so sums over these lists skip all zeros.
#pragma once

#include <numeric>

#include "marginwise/base/arrays.hpp"
#include "marginwise/simd/dispatch.hpp"

namespace marginwise {

class ClassWeights {
  public:
    // each(c, use) must call use(s, w) for every member s with a coefficient w != 0 in problem c.
    template <class Each>
    ClassWeights(Index problems, Index members, Each each)
        : problems_(problems), begin_(padded(members) + 1, 0) {
        for (Index c = 0; c < problems; ++c) each(c, [&](Index s, double) { ++begin_[s + 1]; });
        std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
        problem_.resize(begin_.back());
        value_.resize(begin_.back());
        Vector<std::uint32_t> next = begin_;
        for (Index c = 0; c < problems; ++c)
            each(c, [&](Index s, double w) {
                problem_[next[s]] = static_cast<std::uint32_t>(c);
                value_[next[s]++] = w;
            });
    }

    // weight[c][s] is the coefficient of member s in problem c.
    ClassWeights(const Vector<const double*>& weight, Index members)
        : ClassWeights(weight.size(), members, [&](Index c, auto use) {
              for (Index s = 0; s < members; ++s)
                  if (weight[c][s] != 0.0) use(s, weight[c][s]);
          }) {}

    // Sums of up to kLanes rows: add() the kernel values of each tile, at k[r * stride + lane], in
    // the order of tiles, then add_to() out[r * problems + c] for all problems c.
    class Sums {
      public:
        explicit Sums(const ClassWeights& weights)
            : weights_(weights), sums_(weights.problems_ * kLanes, 0.0) {}

        void add(Index tile, const float* k, Index stride, Index rows) {
            const simd::Weights of_tile{weights_.begin_.data() + tile * kLanes,
                                        weights_.problem_.data(), weights_.value_.data()};
            table().weigh_lists(k, stride, rows, of_tile, sums_.data());
        }
        void add_to(double* out, Index rows) const {
            for (Index r = 0; r < rows; ++r)
                for (Index c = 0; c < weights_.problems_; ++c) *out++ += sums_[c * kLanes + r];
        }

      private:
        const ClassWeights& weights_;
        Array<double> sums_;
    };

  private:
    Index problems_;
    Vector<std::uint32_t> begin_, problem_;
    Vector<double> value_;
};

}  // namespace marginwise
