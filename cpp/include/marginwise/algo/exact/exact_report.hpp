// What an exact model is asked from outside, and its state. Whoever calls holds its guard.
#pragma once

#include "marginwise/algo/exact/exact.hpp"
#include "marginwise/model/report.hpp"

namespace marginwise::exact_report {

inline void forget(Exact& model, View<std::int64_t> ids) { model.forget(ids.data, ids.size); }

// What each problem would say of each member had it not learned it.
inline OwnedMatrix<double> leave_one_out(Exact& model) {
    OwnedMatrix<double> out(model.D.size(), model.D.problems(), 0.0);
    model.leave_one_out(out.values.data());
    return out;
}

inline Array<std::uint8_t> holds(const Exact& model, View<std::int64_t> ids) {
    Array<std::uint8_t> out(ids.size);
    for (Index i = 0; i < ids.size; ++i) out[i] = model.D.members.find(ids.data[i]) != kNone;
    return out;
}

// Cause, example, problem, and from where to where, of each migration.
inline OwnedMatrix<std::int64_t> path(const Exact& model) {
    OwnedMatrix<std::int64_t> out(model.path.size(), 5);
    for (Index i = 0; i < out.rows; ++i) {
        const Migration& m = model.path[i];
        const std::int64_t parts[] = {m.cause, m.id, m.problem, static_cast<std::int64_t>(m.from),
                                      static_cast<std::int64_t>(m.to)};
        std::copy_n(parts, 5, out.row(i));
    }
    return out;
}
inline void set_path(Exact& model, DenseView<std::int64_t> path) {
    require(path.cols == 5, "a migration has five parts");
    model.path.clear();
    for (Index i = 0; i < path.rows; ++i) {
        const std::int64_t* m = path.data + 5 * i;
        model.path.push_back({m[0], m[1], Index(m[2]), Set(m[3]), Set(m[4])});
    }
}

inline Array<double> violation(const Exact& model) {
    return report::by_problem<double>(model, [&](Index c) { return model.violation(c); });
}
inline Array<double> shortfall(const Exact& model) {
    return report::by_problem<double>(model, [&](Index c) { return model.shortfall(c); });
}
inline Array<std::int64_t> resolved(const Exact& model) {
    return report::by_problem<std::int64_t>(model,
                                            [&](Index c) { return model.free_set_of(c).resolved; });
}
inline Array<std::uint8_t> indefinite(const Exact& model) {
    return report::by_problem<std::uint8_t>(
        model, [&](Index c) { return model.free_set_of(c).indefinite; });
}
inline Array<double> total(const Exact& model) {
    return report::by_problem<double>(model, [&](Index c) { return model.free_set_of(c).total; });
}

inline void verify(Exact& model, Index most, double tolerance, bool sphere) {
    verify_gradient(model.D, most, tolerance, [&](Index c, Index k) {
        const Problem& P = model.D.problem(c);
        const double half = model.free_set_of(c).total / 2;
        return sphere ? half * P.diagonal[k] : P.y(k);
    });
}

inline State<double> save_state(const Exact& model) {
    State<double> state = marginwise::save_state<double>(model);
    state.exact = true;
    for (Index c = 0; c < model.D.problems(); ++c) {
        const FreeSet& M = model.free_set_of(c);
        state.slots.push_back(M.place.size());
        for (const Index k : M.place)
            state.free_members.push_back(k == kNone ? kNone : model.D.subproblems[c].member[k]);
        const Vector<double> packed = M.factor.packed();
        state.factors.insert(state.factors.end(), packed.begin(), packed.end());
    }
    return state;
}

inline void restore_state(Exact& model, const Batch& batch, const State<double>& state) {
    marginwise::restore_state<double>(model, batch, state);
    require(state.slots.size() == model.D.problems(), "one size a problem");
    Index member = 0, value = 0;
    for (Index c = 0; c < model.D.problems(); ++c) {
        const Index n = state.slots[c], entries = Factor::packed_size(n);
        require(n >= 0 && member + n <= state.free_members.size() &&
                    value + entries <= state.factors.size(),
                "margins and factors do not fit");
        const std::int64_t* from = state.free_members.data() + member;
        model.set_free_set(c, {from, from + n}, state.factors.data() + value);
        member += n;
        value += entries;
    }
}

}  // namespace marginwise::exact_report
