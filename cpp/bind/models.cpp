// The models: learners in single and in double precision, and exact models.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "marginwise/algo/algorithms.hpp"
#include "marginwise/algo/exact/exact_report.hpp"
#include "marginwise/model/calls.hpp"
#include "methods.hpp"
#include "settings.hpp"

using namespace marginwise;
using nb::literals::operator""_a;

template <class T>
static std::unique_ptr<Model<T>> new_learner(const Dict& spec, const Dict& settings) {
    return make_learner<T>(settings_by<ModelSpec>(reader(spec)), reader(settings));
}
static std::unique_ptr<Exact> new_exact(const Dict& spec, const Dict& settings) {
    return make_exact(settings_by<ModelSpec>(reader(spec)), reader(settings));
}

template <class T>
static Dict state_of(const Model<T>& model) {
    State<T> state = Reading::run(model, [&] { return save_state(model); });
    Dict out;
    const auto add = [&](const char* name, auto& array) { out[name] = nb::cast(std::move(array)); };
    state.visit_members(add);
    state.visit_values(add);
    return out;
}

template <class T>
static void restore(Model<T>& model, const Batch& batch, const Dict& arrays) {
    State<T> state;
    state.exact = model.has_factors();
    state.ramped = model.has_ramp();
    state.visit_values([&](const char* name, auto& array) { read_array(arrays[name], array); });
    Writing::run(model, [&] { restore_state(model, batch, state); });
}

// A method that returns an array of value(model, c) for all problems c.
template <class M, class F>
static auto by_problem(F value) {
    return [value](const M& model) {
        return Reading::run(model, [&] { return report::by_problem(model, value); });
    };
}

template <class T>
static void bind_learning(nb::class_<Model<T>>& c) {
    using M = Model<T>;
    c.def(nb::new_(&new_learner<T>), "spec"_a, "settings"_a);
    c.def("learn", interruptible(&calls::learn<T>), "batch"_a, "order"_a, "seconds"_a);
    c.def("learn_ahead", interruptible(&calls::learn_ahead<T>), "batch"_a, "order"_a, "roughly"_a,
          "distance"_array, "seconds"_a);
    c.def("rest", writing(&M::rest));
    c.def("adopt", writing(&calls::adopt<T>), "batch"_a, "order"_a);
    c.def("learn_wanted", interruptible(&calls::learn_wanted<T>), "batch"_a, "order"_a,
          "wanted"_array, "seconds"_a);
    c.def("begin_pass", writing(&calls::begin_pass<T>), "rule"_a, "pool_size"_a, "seen"_array,
          nb::keep_alive<1, 4>());
    c.def("select", interruptible(&calls::select<T>), "batch"_a, "order"_a, "seconds"_a);
    c.def("end_pass", writing(&M::end_pass));
    c.def("foresee", writing(&calls::foresee<T>), "batch"_a, "rows"_array);
    c.def("finish", interruptible(&M::finish), "tol"_a, "seconds"_a);
    c.def("end_finish", writing(&M::end_finish));
    c.def("clone", reading(&M::clone));
    c.def("decision", reading(&calls::decision<T>), "batch"_a);
    c.def("own_decision", reading(&calls::own_decision<T>), "batch"_a);
    c.def("decision_of", reading(&calls::decision_of<T>), "batch"_a, "rows"_array);
    c.def("leave_out", reading(&calls::leave_out<T>), "ids"_array, "steps"_a);
    c.def("missed_loss", reading(&calls::missed_loss<T>), "batch"_a, "rows"_array);
    c.def("rough_decision", reading(&calls::rough_decision<T>), "batch"_a, "rows"_array);
    c.def("rough_decision_where", reading(&calls::rough_decision_where<T>), "batch"_a,
          "asked"_array, "out"_array);
    c.def("rough_expansion", reading(&calls::rough_expansion<T>), "centres"_a, "coefficients"_array,
          "bias"_array, "batch"_a, "rows"_array);
    c.def("cross_values", reading(&calls::cross_values<T>), "centres"_a, "batch"_a, "rows"_array);
    c.def("pack_rows", reading([](const M& m, const Batch& b) { return m.pack(b.X); }), "batch"_a);
    c.def("expansion", reading(&calls::expansion<T>), "centres"_a, "coefficients"_array, "rows"_a);
    c.def("diagonal", reading(&calls::diagonal<T>), "batch"_a);
    c.def("within_limit", reading([](const M& m, const Batch& b) { return m.within_limit(b.X); }),
          "batch"_a);
}

template <class T>
static void bind_state(nb::class_<Model<T>>& c) {
    using M = Model<T>;
    c.def("holds", reading(&report::holds<T>), "ids"_a);
    c.def("coefficients", reading(&report::coefficients<T>));
    c.def("suspects", reading(&report::suspects<T>));
    c.def("weights", reading(&report::weights<T>));
    c.def("check", writing(&M::check), "tolerance"_a);
    c.def("verify", writing(&report::verify<T>), "most"_a, "tolerance"_a);
    c.def("regrade", writing([](M& model) { model.D.regrade(); }));
    c.def("state", &state_of<T>);
    c.def("restore", &restore<T>, "batch"_a, "state"_a);
    c.def("records", reading(&report::records<T>));
    c.def("set_records", writing(&report::set_records<T>), "gap"_array, "members"_array,
          "evaluations"_array);
    c.def("foresight", reading(&report::foresight<T>));
    c.def("set_foresight", writing(&report::set_foresight<T>), "seen"_array, "kept"_array,
          "f"_array, "weight"_array);
    c.def("take_unsolved", writing(&report::take_unsolved<T>));
    c.def("reserve_ids", writing(&M::reserve_ids), "next"_a);
    c.def("count_since_finish", writing(&M::count_since_finish), "count"_a);
    c.def("bias", by_problem<M>(&M::bias));
    c.def("delta", by_problem<M>(&M::slack));
    c.def("judges", by_problem<M>(&M::judges));
    c.def("objective", by_problem<M>(&M::objective));
    c.def("penalty", by_problem<M>([](const M& m, Index p) { return m.D.penalty(p); }));
    c.def("duality_gap", by_problem<M>([](const M& m, Index p) { return m.D.duality_gap(p); }));
    c.def("counters", reading([](const M& m) { return counters_of(m.D.total_stats()); }));
    c.def("seconds", reading([](const M& m) { return seconds_of(m.D.stats); }));
    c.def_prop_ro("changes", [](const M& m) { return m.guard.changes(); });
    c.def_prop_ro("next_id", reading([](const M& m) { return m.next_id; }));
    c.def_prop_ro("since_finish", reading([](const M& m) { return m.since_finish; }));
    c.def_prop_ro("beyond", reading(&M::beyond));
    c.def_prop_ro("unsolved", reading(&report::unsolved<T>));
    c.def_prop_ro("size", reading([](const M& m) { return m.D.size(); }));
    c.def_prop_ro("bytes", reading([](const M& m) { return m.D.members.bytes(); }));
}

template <class T>
static void bind_learner(nb::module_& m, const char* name, const char* packed_rows) {
    const nb::class_<Members<T>> packed(m, packed_rows);
    static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&visit_model<T>)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&clear_model<T>)},
                                  {0, nullptr}};
    nb::class_<Model<T>> learner(m, name, nb::type_slots(slots));
    bind_learning(learner);
    bind_state(learner);
}

void bind_models(nb::module_& m) {
    bind_learner<float>(m, "Learner32", "PackedRows32");
    bind_learner<double>(m, "Learner64", "PackedRows64");
    const auto by_set = [](auto member) {
        return by_problem<Exact>(
            [member](const Exact& model, Index c) { return model.free_set_of(c).*member; });
    };
    nb::class_<Exact, Model<double>>(m, "ExactLearner")
        .def(nb::new_(&new_exact), "spec"_a, "settings"_a)
        .def("forget", interruptible(&exact_report::forget), "ids"_a)
        .def("leave_one_out", interruptible(&exact_report::leave_one_out))
        .def("scale_costs", interruptible(&Exact::scale_costs), "factor"_a)
        .def("solve", interruptible(&Exact::solve))
        .def("path", reading(&exact_report::path))
        .def("set_path", writing(&exact_report::set_path), "path"_array)
        .def("violation", by_problem<Exact>(&Exact::violation))
        .def("shortfall", by_problem<Exact>(&Exact::shortfall))
        .def("resolved", by_set(&FreeSet::resolved))
        .def("indefinite", by_set(&FreeSet::indefinite))
        .def("total", by_set(&FreeSet::total));
}
