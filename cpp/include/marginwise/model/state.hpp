// The saved state of a model, as named arrays. A restored model continues bit for bit.
#pragma once

#include "marginwise/model/model.hpp"

namespace marginwise {

// Matrices of values by place have one row per problem and one column per member.
template <class T>
struct State {
    bool sparse = false;
    bool exact = false;
    bool ramped = false;

    OwnedMatrix<T> X;  // features of the members, or:
    Array<T> data;
    Array<std::int32_t> indices;
    Array<std::int64_t> indptr;
    Array<std::int64_t> ids;
    Array<std::int32_t> labels;
    Array<double> costs;

    OwnedMatrix<double> alpha, g;
    OwnedMatrix<std::int64_t> rank;  // place of the member in the problem, or -1
    OwnedMatrix<std::uint8_t> box;
    OwnedMatrix<double> average_offset, inherited;
    OwnedMatrix<double> extra;  // Model::extra_state of each problem
    Array<std::int64_t> counters;
    Array<double> seconds;

    // Exact models: the number of slots of the free set per problem; then, problem by problem, the
    // member in each slot, and the factors.
    Array<std::int64_t> slots, free_members;
    Array<double> factors;

    // Models with a ramp: the number of suspects per problem; then, problem by problem, the id, the
    // class and y f of each suspect.
    Array<std::int64_t> suspects, suspect_ids;
    Array<std::int32_t> suspect_labels;
    Array<double> suspect_values;

    // Calls use(name, array) for the arrays that describe the members.
    template <class F>
    void visit_members(F use) {
        if (sparse) {
            use("data", data);
            use("indices", indices);
            use("indptr", indptr);
        } else {
            use("X", X);
        }
        use("ids", ids);
        use("labels", labels);
        use("costs", costs);
    }

    // Calls use(name, array) for all other arrays.
    template <class F>
    void visit_values(F use) {
        use("alpha", alpha);
        use("g", g);
        use("rank", rank);
        use("box", box);
        use("trail", average_offset);
        use("inherited", inherited);
        use("notes", extra);
        use("counters", counters);
        use("seconds", seconds);
        if (ramped) {
            use("suspects", suspects);
            use("suspect_ids", suspect_ids);
            use("suspect_labels", suspect_labels);
            use("suspect_values", suspect_values);
        }
        if (!exact) return;
        use("slots", slots);
        use("margin", free_members);
        use("factor", factors);
    }
};

template <class T>
void save_features(const Members<T>& members, State<T>& state) {
    const Index n = members.size(), d = members.features();
    state.sparse = members.sparse();
    Rows<T> row;
    if (state.sparse)
        state.indptr.push_back(0);
    else
        state.X = OwnedMatrix<T>(n, d, T(0));
    for (Index s = 0; s < n; ++s) {
        members.extract(s, row);
        if (state.sparse) {
            state.data.insert(state.data.end(), row.value.begin(), row.value.end());
            state.indices.insert(state.indices.end(), row.index.begin(), row.index.end());
            state.indptr.push_back(state.data.size());
        } else {
            for (Index p = 0; p < row.value.size(); ++p)
                state.X.row(s)[row.index[p]] = row.value[p];
        }
    }
}

// value(P, k) for each problem and member, or `absent` if the member has no place.
template <class V, class T, class F>
OwnedMatrix<V> by_place(const Dual<T>& D, V absent, F value) {
    OwnedMatrix<V> out(D.problems(), D.size(), absent);
    for (Index c = 0; c < D.problems(); ++c)
        for (Index s = 0; s < D.size(); ++s)
            if (const Index k = D.subproblems[c].place[s]; k != kNone)
                out.row(c)[s] = static_cast<V>(value(D.subproblems[c].P, k));
    return out;
}

inline Array<std::int64_t> counters_of(const Stats& stats) {
    Array<std::int64_t> out;
    Stats::visit_counters(stats, [&](std::int64_t counter) { out.push_back(counter); });
    return out;
}
inline Array<double> seconds_of(const Stats& stats) {
    Array<double> out;
    Stats::visit_seconds(stats, [&](double time) { out.push_back(time); });
    return out;
}

template <class T>
void save_suspects(const Dual<T>& D, State<T>& state) {
    for (const Subproblem& sub : D.subproblems) {
        const Vector<Suspects::Note> notes = sub.suspects.sorted();
        state.suspects.push_back(notes.size());
        for (const Suspects::Note& note : notes) {
            state.suspect_ids.push_back(note.id);
            state.suspect_labels.push_back(note.label);
            state.suspect_values.push_back(note.value);
        }
    }
}
template <class T>
void restore_suspects(const State<T>& state, Dual<T>& D) {
    const Index notes = state.suspect_ids.size();
    require(state.suspects.size() == D.problems() && state.suspect_labels.size() == notes &&
                state.suspect_values.size() == notes &&
                std::accumulate(state.suspects.begin(), state.suspects.end(), Index(0)) == notes,
            "suspects do not fit");
    Index i = 0;
    for (Index c = 0; c < D.problems(); ++c)
        for (const Index end = i + state.suspects[c]; i < end; ++i)
            D.subproblems[c].suspects.judge(state.suspect_ids[i], state.suspect_labels[i],
                                            state.suspect_values[i]);
}

template <class T>
State<T> save_state(const Model<T>& model) {
    const Dual<T>& D = model.D;
    State<T> state;
    save_features(D.members, state);
    state.ids.assign(D.members.ids.begin(), D.members.ids.end());
    state.labels.assign(D.label.begin(), D.label.end());
    state.costs.assign(D.cost.begin(), D.cost.end());
    state.alpha = by_place(D, 0.0, [](const Problem& P, Index k) { return P.alpha[k]; });
    state.g = by_place(D, 0.0, [](const Problem& P, Index k) { return P.g[k]; });
    state.rank = by_place(D, std::int64_t(kNone), [](const Problem&, Index k) { return k; });
    state.box = by_place(D, std::uint8_t(0), [](const Problem& P, Index k) { return P.box[k]; });
    state.average_offset =
        by_place(D, 0.0, [](const Problem& P, Index k) { return P.average_offset[k]; });
    state.inherited = by_place(D, 0.0, [](const Problem& P, Index k) { return P.inherited[k]; });
    state.extra = OwnedMatrix<double>(D.problems(), model.extra_state(0).size());
    for (Index c = 0; c < D.problems(); ++c) {
        const Vector<double> values = model.extra_state(c);
        std::copy(values.begin(), values.end(), state.extra.row(c));
    }
    state.counters = counters_of(D.total_stats());
    state.seconds = seconds_of(D.stats);
    state.exact = model.has_factors();
    model.save_factors(state);
    state.ramped = model.has_ramp();
    if (state.ramped) save_suspects(D, state);
    return state;
}

// Restores a saved state into a new model. `batch` holds the members, with features as the model
// stores them.
template <class T>
void restore_state(Model<T>& model, const Batch& batch, const State<T>& state) {
    Dual<T>& D = model.D;
    const Index n = rows_of(batch.X), problems = D.problems();
    const auto fits = [&](const auto& array) { return array.has_shape(problems, n); };
    require(fits(state.rank) && fits(state.alpha) && fits(state.g) && fits(state.average_offset) &&
                fits(state.inherited) && fits(state.box),
            "what is kept by place must be problems x members");
    require(state.extra.has_shape(problems, model.extra_state(0).size()) &&
                state.counters.size() == counters_of(D.stats).size() &&
                state.seconds.size() == seconds_of(D.stats).size(),
            "notes and counters do not fit");
    Vector<Example> examples;
    for (Index s = 0; s < n; ++s) examples.push_back(batch.example(s));
    D.restore(batch.X, examples.data(),
              {state.rank.values.data(), state.alpha.values.data(), state.g.values.data(),
               state.box.values.data(), state.average_offset.values.data(),
               state.inherited.values.data()});
    for (Index c = 0; c < problems; ++c) model.set_extra_state(c, state.extra.row(c));
    const std::int64_t* counter = state.counters.data();
    const double* time = state.seconds.data();
    for (Subproblem& sub : D.subproblems) sub.stats = Stats();
    Stats::visit_counters(D.stats, [&](std::int64_t& value) { value = *counter++; });
    Stats::visit_seconds(D.stats, [&](double& value) { value = *time++; });
    model.restore_factors(state);
    if (state.ramped) restore_suspects(state, D);
}

}  // namespace marginwise
