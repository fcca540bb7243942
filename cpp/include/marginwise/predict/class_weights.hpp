// The coefficients of the members in several problems, by member. Most members have one in a few
// problems only: summed this way, the others cost nothing.
#pragma once

#include "marginwise/base/arrays.hpp"
#include "marginwise/simd/dispatch.hpp"

namespace marginwise {

class ClassWeights {
  public:
    // weight[c][s] is the coefficient of member s in problem c, padded to whole tiles.
    ClassWeights(const Vector<const double*>& weight, Index members) : problems_(weight.size()) {
        begin_.push_back(0);
        for (Index s = 0; s < padded(members); ++s) {
            for (Index c = 0; c < problems_; ++c)
                if (weight[c][s] != 0.0) {
                    problem_.push_back(static_cast<std::uint32_t>(c));
                    value_.push_back(weight[c][s]);
                }
            begin_.push_back(static_cast<std::uint32_t>(value_.size()));
        }
    }

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
