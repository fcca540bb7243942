// The public calls of a model: they check their arguments and return results that own their arrays.
// The caller holds the model's guard.
#pragma once

#include <string>

#include "marginwise/model/model.hpp"

namespace marginwise::calls {

inline Sample sample_of(const Batch& batch, View<std::int64_t> rows) {
    for (const std::int64_t row : rows)
        require(row >= 0 && row < rows_of(batch.X), "a row is outside the batch");
    return Sample(batch.X, rows.data, rows.size);
}

// --- learning -----------------------------------------------------------------------------------

template <class T>
Index learn(Model<T>& model, const Batch& batch, View<std::int64_t> order, double seconds) {
    return model.learn(batch, order.data, order.size, seconds);
}

template <class T>
Index learn_ahead(Model<T>& model, const Batch& batch, View<std::int64_t> order, bool roughly,
                  MutableView<float> distance, double seconds) {
    require(distance.rows == 1 && distance.cols == rows_of(batch.X), "one distance per row");
    return model.learn_ahead(batch, order.data, order.size, {roughly, distance.data}, seconds);
}

template <class T>
bool adopt(Model<T>& model, const Batch& batch, View<std::int64_t> order) {
    return model.adopt(batch, order.data, order.size);
}

template <class T>
Index learn_wanted(Model<T>& model, const Batch& batch, View<std::int64_t> order,
                   DenseView<std::uint8_t> wanted, double seconds) {
    require(wanted.rows == order.size && wanted.cols == model.D.problems(),
            "wanted must be rows x problems");
    return model.learn_wanted(batch, order.data, wanted.data, order.size, seconds);
}

template <class T>
void begin_pass(Model<T>& model, const std::string& rule, Index pool_size,
                MutableView<std::uint8_t> seen) {
    require(seen.rows == model.D.problems(), "one row of flags per problem");
    model.begin_pass({selection_named(rule), pool_size}, seen.data, seen.cols);
}

template <class T>
Index select(Model<T>& model, const Batch& batch, View<std::int64_t> order, double seconds) {
    return model.select(batch, order.data, order.size, seconds);
}

template <class T>
void foresee(Model<T>& model, const Batch& batch, View<std::int64_t> rows) {
    require(batch.label && batch.weight, "rows must have labels and weights");
    sample_of(batch, rows);
    model.foresee(batch, rows);
}

// --- decisions ----------------------------------------------------------------------------------

template <class T>
OwnedMatrix<double> decision(const Model<T>& model, const Batch& batch) {
    OwnedMatrix<double> out(rows_of(batch.X), model.D.problems());
    model.decision(batch.X, out.values.data());
    return out;
}

template <class T>
OwnedMatrix<double> own_decision(const Model<T>& model, const Batch& batch) {
    require(batch.label != nullptr, "rows must have labels");
    OwnedMatrix<double> out(rows_of(batch.X), model.D.problems());
    model.own_decision(batch, out.values.data());
    return out;
}

template <class T>
OwnedMatrix<double> decision_of(const Model<T>& model, const Batch& batch,
                                View<std::int64_t> rows) {
    OwnedMatrix<double> out(rows.size, model.D.problems());
    model.decision(sample_of(batch, rows), out.values.data());
    return out;
}

// The hinge loss of some rows in the problems that involve their class but do not hold them: the
// loss that no coefficient answers for. 0 in the other problems.
template <class T>
OwnedMatrix<double> missed_loss(const Model<T>& model, const Batch& batch,
                                View<std::int64_t> rows) {
    require(batch.label && batch.ids, "rows must have labels and ids");
    OwnedMatrix<double> loss = decision_of(model, batch, rows);
    for (Index r = 0; r < rows.size; ++r) {
        const Example example = batch.example(rows.data[r]);
        const Index s = model.D.members.find(example.id);
        for (Index c = 0; c < loss.cols; ++c) {
            const double y = model.D.sign(c, example.label);
            const bool held = s != kNone && model.D.subproblems[c].holds(s);
            loss.row(r)[c] = held || y == 0 ? 0.0 : std::max(0.0, 1 - y * loss.row(r)[c]);
        }
    }
    return loss;
}

template <class T>
OwnedMatrix<double> leave_out(const Model<T>& model, View<std::int64_t> ids, Index steps) {
    OwnedMatrix<double> out(ids.size, model.D.problems());
    model.leave_out(ids, steps, out.values.data());
    return out;
}

// The output of compute(sample, out) for some rows: `columns` values per row.
template <class T, class F>
OwnedMatrix<float> roughly(const Model<T>& model, const Batch& batch, View<std::int64_t> rows,
                           Index columns, F compute) {
    require(!model.D.kernel.is_callable(), "kernel functions have no rough values");
    OwnedMatrix<float> out(rows.size, columns);
    compute(sample_of(batch, rows), out.values.data());
    return out;
}

template <class T>
OwnedMatrix<float> rough_decision(const Model<T>& model, const Batch& batch,
                                  View<std::int64_t> rows) {
    return roughly(model, batch, rows, model.D.problems(),
                   [&](const Sample& sample, float* out) { model.rough_decision(sample, out); });
}

template <class T>
void rough_decision_where(const Model<T>& model, const Batch& batch, DenseView<std::uint8_t> asked,
                          MutableView<float> out) {
    require(asked.rows == rows_of(batch.X) && asked.cols == model.D.problems() &&
                out.rows == asked.rows && out.cols == asked.cols,
            "asked and out must be rows x problems");
    model.rough_decision_where(batch.X, asked.data, out.data);
}

template <class T>
OwnedMatrix<float> rough_expansion(const Model<T>& model, const Members<T>& centres,
                                   DenseView<double> coefficients, View<double> bias,
                                   const Batch& batch, View<std::int64_t> rows) {
    const Index problems = coefficients.rows, n = centres.size();
    require(coefficients.cols == n && bias.size == problems,
            "coefficients must be problems x centres, with one bias per problem");
    Vector<Array<double>> weight;
    for (Index c = 0; c < problems; ++c)
        weight.emplace_back(coefficients.data + c * n, coefficients.data + (c + 1) * n);
    const RoughWeights weights(weight, {bias.begin(), bias.end()}, n);
    return roughly(model, batch, rows, problems, [&](const Sample& sample, float* out) {
        model.rough_expansion(centres, weights, sample, out);
    });
}

template <class T>
OwnedMatrix<float> cross_values(const Model<T>& model, const Members<T>& centres,
                                const Batch& batch, View<std::int64_t> rows) {
    return roughly(model, batch, rows, centres.size(), [&](const Sample& sample, float* out) {
        model.cross_values(centres, sample, out);
    });
}

template <class T>
OwnedMatrix<double> expansion(const Model<T>& model, const Batch& centres,
                              DenseView<double> coefficients, const Members<T>& rows) {
    require(coefficients.rows == model.D.problems() && coefficients.cols == rows_of(centres.X),
            "coefficients must be problems x centres");
    OwnedMatrix<double> out(rows.size(), model.D.problems(), 0.0);
    model.add_expansion(centres.X, coefficients.data, rows, out.values.data());
    return out;
}

template <class T>
Array<double> diagonal(const Model<T>& model, const Batch& batch) {
    Array<double> out(rows_of(batch.X));
    model.diagonal(batch.X, out.data());
    return out;
}

}  // namespace marginwise::calls
