// A model that does not learn: an expansion over given members whose coefficients were computed
// elsewhere.
//
// Coefficients have no bounds, and a member of any class may have a coefficient in any problem.
#pragma once

#include "marginwise/model/learner.hpp"

namespace marginwise {

struct FixedSettings {
    template <class F>
    void visit(F) {}
};

template <class T>
class Fixed : public Learner<T> {
  public:
    using Settings = FixedSettings;
    Fixed(Dual<T> dual, ModelSettings common, FixedSettings)
        : Learner<T>(std::move(dual), std::move(common)) {}

    using Learner<T>::D;

    std::unique_ptr<Model<T>> clone() const override { return std::make_unique<Fixed>(*this); }

    // Unlike in models that learn, problems may share most members. Their weights are then dense.
    void decision(const Sample& sample, double* out) const override {
        if (D.problems() == 1 || !dense()) return Learner<T>::decision(sample, out);
        this->require_width(sample.X);
        Vector<Array<double>> weight;
        for (const Subproblem& sub : D.subproblems) weight.push_back(sub.weight);
        const RoughWeights weights(weight, Vector<double>(D.problems(), 0.0), D.size());
        expand_densely(D.kernel, D.members, weights, this->settings_.scaling, this->threads(),
                       sample, out);
    }

    void check(double tolerance) override { D.check(tolerance, false); }

  protected:
    void learn_in(Index, const Example&, Block<T>&, Index, Index&) override {
        throw std::logic_error("this model does not learn");
    }
    double gap(Index) const override { return 0.0; }

  private:
    bool dense() const {
        Index count = 0;
        for (const Subproblem& sub : D.subproblems)
            for (Index s = 0; s < D.size(); ++s) count += sub.weight[s] != 0.0;
        return 2 * count > D.problems() * D.size();
    }
};

}  // namespace marginwise
