// The public calls of exact models. The caller holds the model's guard.
#pragma once

#include "marginwise/algo/exact/exact.hpp"
#include "marginwise/model/report.hpp"

namespace marginwise::exact_report {

inline void forget(Exact& model, View<std::int64_t> ids) { model.forget(ids.data, ids.size); }

// The leave-one-out decision values: one row per member, one column per problem.
inline OwnedMatrix<double> leave_one_out(Exact& model) {
    OwnedMatrix<double> out(model.D.size(), model.D.problems(), 0.0);
    model.leave_one_out(out.values.data());
    return out;
}

// The recorded migrations, one per row: cause, example, problem, source set, target set.
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

}  // namespace marginwise::exact_report
