// Reports about a model, by problem or by member. The caller holds the model's guard.
#pragma once

#include <tuple>

#include "marginwise/dual/verify.hpp"
#include "marginwise/model/state.hpp"
#include "marginwise/solve/step_limit.hpp"

namespace marginwise::report {

// value(model, c) for each problem c; flags as bytes.
template <class M, class F>
auto by_problem(const M& model, F value) {
    using V = std::decay_t<decltype(std::invoke(value, model, Index(0)))>;
    Array<std::conditional_t<std::is_same_v<V, bool>, std::uint8_t, V>> out;
    for (Index c = 0; c < model.D.problems(); ++c) out.push_back(std::invoke(value, model, c));
    return out;
}

// 1 for each id of an example that some problem holds, 0 for the others.
template <class T>
Array<std::uint8_t> holds(const Model<T>& model, View<std::int64_t> ids) {
    Array<std::uint8_t> found(ids.size);
    for (Index i = 0; i < ids.size; ++i) found[i] = model.D.members.find(ids.data[i]) != kNone;
    return found;
}

// The coefficients of all members that are used for decision values: one row per problem.
template <class T>
OwnedMatrix<double> weights(const Model<T>& model) {
    OwnedMatrix<double> out(model.D.problems(), model.D.size());
    for (Index c = 0; c < out.rows; ++c) {
        const Array<double> weight = model.output(c);
        std::copy_n(weight.begin(), out.cols, out.row(c));
    }
    return out;
}

// Ids, classes and coefficients of the support vectors; the coefficients have one row per problem.
template <class T>
std::tuple<Array<std::int64_t>, Array<std::int32_t>, OwnedMatrix<double>> coefficients(
    const Model<T>& model) {
    const Dual<T>& D = model.D;
    const OwnedMatrix<double> all = weights(model);
    Vector<Index> support;
    for (Index s = 0; s < D.size(); ++s) {
        bool weighs = false;
        for (Index c = 0; c < D.problems(); ++c) weighs = weighs || all.row(c)[s] != 0.0;
        if (weighs) support.push_back(s);
    }
    Array<std::int64_t> ids;
    Array<std::int32_t> labels;
    OwnedMatrix<double> alpha(D.problems(), support.size());
    for (Index v = 0; v < support.size(); ++v) {
        ids.push_back(D.members.ids[support[v]]);
        labels.push_back(D.label[support[v]]);
        for (Index c = 0; c < D.problems(); ++c) alpha.row(c)[v] = all.row(c)[support[v]];
    }
    return {std::move(ids), std::move(labels), std::move(alpha)};
}

// Ids, classes and y f of the examples below the ramp, problem by problem. For members of the
// problem, y f comes from the gradient; for the others, it was recorded when they were last judged.
template <class T>
std::tuple<Array<std::int64_t>, Array<std::int32_t>, Array<double>> suspects(
    const Model<T>& model) {
    Array<std::int64_t> ids;
    Array<std::int32_t> labels;
    Array<double> values;
    const auto add = [&](const Suspects::Note& note) {
        ids.push_back(note.id);
        labels.push_back(note.label);
        values.push_back(note.value);
    };
    for (const Subproblem& sub : model.D.subproblems) {
        for (Index k = 0; k < sub.P.size; ++k) {
            if (!sub.P.open[k] || !(sub.P.margin(k) < sub.suspects.ramp)) continue;
            const Index s = sub.member[k];
            add({model.D.members.ids[s], sub.P.margin(k), model.D.label[s]});
        }
        for (const Suspects::Note& note : sub.suspects.sorted()) add(note);
    }
    return {std::move(ids), std::move(labels), std::move(values)};
}

// Gap, members and kernel evaluations, each with one row per example and one column per problem.
template <class T>
std::tuple<OwnedMatrix<double>, OwnedMatrix<std::int64_t>, OwnedMatrix<std::int64_t>> records(
    const Model<T>& model) {
    const Index problems = model.D.problems(), n = model.records.size() / problems;
    OwnedMatrix<double> gap(n, problems);
    OwnedMatrix<std::int64_t> members(n, problems), evaluations(n, problems);
    for (Index i = 0; i < model.records.size(); ++i) {
        gap.values[i] = model.records[i].gap;
        members.values[i] = model.records[i].members;
        evaluations.values[i] = model.records[i].kernel_evaluations;
    }
    return {std::move(gap), std::move(members), std::move(evaluations)};
}

template <class T>
void set_records(Model<T>& model, DenseView<double> gap, DenseView<std::int64_t> members,
                 DenseView<std::int64_t> evaluations) {
    const auto fits = [&](const auto& array) {
        return array.rows == gap.rows && array.cols == model.D.problems();
    };
    require(fits(gap) && fits(members) && fits(evaluations), "records must be rows x problems");
    model.records.clear();
    for (Index i = 0; i < gap.rows * gap.cols; ++i)
        model.records.push_back({gap.data[i], Index(members.data[i]), evaluations.data[i]});
}

// Foresight: the number of values that each problem has seen, and the number that it keeps; then,
// problem by problem, the values and their weights, signed by the labels.
template <class T>
std::tuple<Array<std::int64_t>, Array<std::int64_t>, Array<double>, Array<float>> foresight(
    const Model<T>& model) {
    Array<std::int64_t> seen, kept;
    Array<double> f;
    Array<float> weight;
    for (const Subproblem& sub : model.D.subproblems) {
        seen.push_back(sub.foresight.seen());
        kept.push_back(sub.foresight.size());
        for (const Foresight::Value& value : sub.foresight) {
            f.push_back(value.f);
            weight.push_back(value.weight);
        }
    }
    return {std::move(seen), std::move(kept), std::move(f), std::move(weight)};
}

template <class T>
void set_foresight(Model<T>& model, View<std::int64_t> seen, View<std::int64_t> kept,
                   View<double> f, View<float> weight) {
    const Index problems = model.D.problems();
    require(seen.size == problems && kept.size == problems && f.size == weight.size &&
                std::all_of(kept.begin(), kept.end(), [](std::int64_t n) { return n >= 0; }) &&
                std::accumulate(kept.begin(), kept.end(), Index(0)) == f.size,
            "foresight must have one value and weight for each that a problem keeps");
    Index i = 0;
    for (Index c = 0; c < problems; ++c) {
        Vector<Foresight::Value> values;
        for (const Index end = i + kept.data[c]; i < end; ++i)
            values.push_back({f.data[i], weight.data[i]});
        model.D.subproblems[c].foresight.restore(std::move(values), seen.data[c]);
    }
}

// By problem: the largest violation at which a loop gave up since the last call, or 0, and the size
// up to which violations are only rounding. Resets the former.
template <class T>
std::tuple<Array<double>, Array<double>> take_unsolved(Model<T>& model) {
    Array<double> violations, resolutions;
    for (Subproblem& sub : model.D.subproblems) {
        violations.push_back(std::exchange(sub.P.unsolved, 0.0));
        resolutions.push_back(violations.back() > 0 ? resolution(sub.P) : 0.0);
    }
    return {std::move(violations), std::move(resolutions)};
}
template <class T>
bool unsolved(const Model<T>& model) {
    const auto gave_up = [](const Subproblem& sub) { return sub.P.unsolved > 0; };
    return std::any_of(model.D.subproblems.begin(), model.D.subproblems.end(), gave_up);
}

template <class T>
void verify(Model<T>& model, Index most, double tolerance) {
    verify_gradient(model.D, most, tolerance, [&](Index c, Index k) { return model.target(c, k); });
}

}  // namespace marginwise::report
