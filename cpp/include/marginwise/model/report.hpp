// What a model tells of itself, by problem or by member. Whoever calls holds the model's guard.
#pragma once

#include <tuple>

#include "marginwise/dual/verify.hpp"
#include "marginwise/model/state.hpp"
#include "marginwise/solve/step_limit.hpp"

namespace marginwise::report {

// value(c) for each problem c.
template <class V, class T, class F>
Array<V> by_problem(const Model<T>& model, F value) {
    Array<V> out(model.D.problems());
    for (Index c = 0; c < out.size(); ++c) out[c] = static_cast<V>(value(c));
    return out;
}

template <class T>
Array<double> bias(const Model<T>& model) {
    return by_problem<double>(model, [&](Index c) { return model.D.subproblems[c].P.bias(); });
}
template <class T>
Array<double> delta(const Model<T>& model) {
    return by_problem<double>(model, [&](Index c) { return model.slack(c); });
}
template <class T>
Array<std::uint8_t> judges(const Model<T>& model) {
    return by_problem<std::uint8_t>(model, [&](Index c) { return model.judges(c); });
}
template <class T>
Array<double> objective(const Model<T>& model) {
    return by_problem<double>(model, [&](Index c) { return model.objective(c); });
}
template <class T>
Array<double> penalty(const Model<T>& model) {
    return by_problem<double>(model, [&](Index c) { return model.D.penalty(c); });
}
template <class T>
Array<double> duality_gap(const Model<T>& model) {
    return by_problem<double>(model, [&](Index c) { return model.D.duality_gap(c); });
}

template <class T>
Array<std::int64_t> counters(const Model<T>& model) {
    return counters_of(model.D.stats);
}
template <class T>
Array<double> seconds(const Model<T>& model) {
    return seconds_of(model.D.stats);
}
template <class T>
std::int64_t next_id(const Model<T>& model) {
    return model.next_id;
}
template <class T>
std::int64_t since_finish(const Model<T>& model) {
    return model.since_finish;
}
template <class T>
Index size(const Model<T>& model) {
    return model.D.size();
}
template <class T>
Index bytes(const Model<T>& model) {
    return model.D.members.bytes();
}

// The coefficients that decide, of all members, a row for each problem.
template <class T>
OwnedMatrix<double> weights(const Model<T>& model) {
    OwnedMatrix<double> out(model.D.problems(), model.D.size());
    for (Index c = 0; c < out.rows; ++c) {
        const Array<double> weight = model.output(c);
        std::copy_n(weight.begin(), out.cols, out.row(c));
    }
    return out;
}

// Ids, classes and, problem by problem, coefficients of the support vectors.
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

// Gap, members and kernel evaluations, a row for each example and a column for each problem.
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

// The largest violation at which a loop gave up since the last call, by problem, and which
// violations are rounding there.
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
    verify_gradient(model.D, most, tolerance,
                    [&](Index c, Index k) { return model.D.problem(c).y(k); });
}
template <class T>
void regrade(Model<T>& model) {
    model.D.regrade();
}

template <class T>
void reserve_ids(Model<T>& model, std::int64_t next) {
    model.next_id = std::max(model.next_id, next);
}
template <class T>
void count_since_finish(Model<T>& model, std::int64_t count) {
    model.since_finish = count;
}

}  // namespace marginwise::report
