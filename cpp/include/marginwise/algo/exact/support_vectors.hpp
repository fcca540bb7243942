// The support vectors of all problems, packed together for prediction.
#pragma once

#include <memory>
#include <mutex>

#include "marginwise/dual/dual.hpp"

namespace marginwise::exact {

// An exact model holds many examples of weight 0. Packing the others spares predictions from
// visiting all members.
class SupportVectors {
  public:
    struct Packed {
        Members<double> members;
        Vector<Array<double>> weight;  // by problem, padded
    };

    SupportVectors() = default;
    SupportVectors(const SupportVectors&) {}  // a copy packs its own

    // The packed support vectors, cached until reset(). Safe to call from several threads.
    std::shared_ptr<const Packed> of(const Dual<double>& D) const {
        const std::lock_guard<std::mutex> hold(mutex_);
        if (!packed_) packed_ = pack(D);
        return packed_;
    }

    // Call when coefficients change.
    void reset() { packed_ = nullptr; }

  private:
    static std::shared_ptr<const Packed> pack(const Dual<double>& D) {
        const Members<double>& all = D.members;
        auto packed = std::make_shared<Packed>(Packed{{all.features(), all.sparse()}, {}});
        Vector<Index> at;
        for (Index s = 0; s < D.size(); ++s) {
            const auto weighs = [s](const Subproblem& sub) { return sub.weight[s] != 0.0; };
            if (std::any_of(D.subproblems.begin(), D.subproblems.end(), weighs)) at.push_back(s);
        }
        Rows<double> row;
        for (const Index s : at) {
            all.extract(s, row);
            packed->members.append(row, 0, all.ids[s]);
        }
        for (const Subproblem& sub : D.subproblems) {
            packed->weight.emplace_back(padded(at.size()), 0.0);
            for (Index v = 0; v < at.size(); ++v) packed->weight.back()[v] = sub.weight[at[v]];
        }
        return packed;
    }

    mutable std::mutex mutex_;
    mutable std::shared_ptr<const Packed> packed_;
};

}  // namespace marginwise::exact
