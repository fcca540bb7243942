// The learners of streams, in single and in double precision.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <map>

#include "marginwise/algo/exact_ramp.hpp"
#include "marginwise/algo/gap.hpp"
#include "marginwise/algo/lasvm.hpp"
#include "marginwise/algo/perceptron.hpp"
#include "marginwise/algo/tracking.hpp"
#include "marginwise/model/calls.hpp"
#include "model.hpp"

template <class T, class Algorithm, class Settings>
static std::unique_ptr<Model<T>> make(Dual<T> dual, ModelSettings common, const Dict& settings) {
    return std::make_unique<Algorithm>(std::move(dual), std::move(common),
                                       settings_from<Settings>(settings));
}

template <class T>
static auto algorithm_named(const std::string& name) {
    static const std::map<std::string, decltype(&make<T, Lasvm<T>, LasvmSettings>)> algorithms{
        {"lasvm", &make<T, Lasvm<T>, LasvmSettings>},
        {"gap", &make<T, Gap<T>, GapSettings>},
        {"tracking", &make<T, Tracking<T>, TrackingSettings>},
        {"exact_ramp", &make<T, ExactRamp<T>, ExactRampSettings>},
        {"perceptron", &make<T, Perceptron<T>, PerceptronSettings>},
    };
    require(algorithms.count(name) > 0, "unknown algorithm");
    return algorithms.at(name);
}

template <class T>
static std::unique_ptr<Model<T>> make_learner(const std::string& algorithm, const Dict& settings,
                                              const Kernel& kernel, nb::object callable,
                                              Index problems, Index features, bool sparse,
                                              bool biased, Index cache_bytes, Vector<double> center,
                                              double scale, double norm_limit, Index threads,
                                              bool record) {
    Dual<T> dual(Members<T>(features, sparse),
                 KernelBlocks<T>(kernel, block_kernel(std::move(callable))), problems, cache_bytes,
                 biased);
    return algorithm_named<T>(algorithm)(
        std::move(dual), {{std::move(center), scale}, norm_limit, threads, record}, settings);
}

template <class T>
static void bind_learning(nb::class_<Model<T>>& c) {
    using M = Model<T>;
    c.def(nb::new_(&make_learner<T>), "algorithm"_a, "settings"_a, "kernel"_a, "callable"_a.none(),
          "problems"_a, "features"_a, "sparse"_a, "biased"_a, "cache_bytes"_a, "center"_a,
          "scale"_a, "norm_limit"_a, "threads"_a, "record"_a);
    c.def("learn", interruptible(&calls::learn<T>), "batch"_a, "order"_a, "seconds"_a);
    c.def("learn_wanted", interruptible(&calls::learn_wanted<T>), "batch"_a, "order"_a,
          "wanted"_a.noconvert(), "seconds"_a);
    c.def("begin_pass", writing(&calls::begin_pass<T>), "rule"_a, "pool_size"_a,
          "seen"_a.noconvert(), nb::keep_alive<1, 4>());
    c.def("select", interruptible(&calls::select<T>), "batch"_a, "order"_a, "seconds"_a);
    c.def("end_pass", writing(&M::end_pass));
    c.def("finish", interruptible(&M::finish), "tol"_a, "seconds"_a);
    c.def("end_finish", writing(&M::end_finish));
    c.def("clone", reading(&M::clone));
}

template <class T>
static void bind_decisions(nb::class_<Model<T>>& c) {
    c.def("decision", reading(&calls::decision<T>), "batch"_a);
    c.def("decision_of", reading(&calls::decision_of<T>), "batch"_a, "rows"_a.noconvert());
    c.def("rough_decision", reading(&calls::rough_decision<T>), "batch"_a, "rows"_a.noconvert());
    c.def("rough_decision_where", reading(&calls::rough_decision_where<T>), "batch"_a,
          "asked"_a.noconvert(), "out"_a.noconvert());
    c.def("rough_expansion", reading(&calls::rough_expansion<T>), "centres"_a,
          "coefficients"_a.noconvert(), "bias"_a.noconvert(), "batch"_a, "rows"_a.noconvert());
    c.def("cross_values", reading(&calls::cross_values<T>), "centres"_a, "batch"_a,
          "rows"_a.noconvert());
    c.def("pack_rows", reading(&calls::pack<T>), "batch"_a);
    c.def("expansion", reading(&calls::expansion<T>), "centres"_a, "coefficients"_a.noconvert(),
          "rows"_a);
}

template <class T>
static void bind_state(nb::class_<Model<T>>& c) {
    using M = Model<T>;
    c.def("coefficients", reading(&report::coefficients<T>));
    c.def("weights", reading(&report::weights<T>));
    c.def("check", writing(&M::check), "tolerance"_a);
    c.def("verify", writing(&report::verify<T>), "most"_a, "tolerance"_a);
    c.def("regrade", writing(&report::regrade<T>));
    c.def("state", [](const M& model) { return dict_of(model, &save_state<T>); });
    c.def("restore", &restore<T, M, &restore_state<T>>, "batch"_a, "state"_a);
    c.def("records", reading(&report::records<T>));
    c.def("set_records", writing(&report::set_records<T>), "gap"_a.noconvert(),
          "members"_a.noconvert(), "evaluations"_a.noconvert());
    c.def("within_limit", reading(&calls::within_limit<T>), "batch"_a);
    c.def("take_unsolved", writing(&report::take_unsolved<T>));
    c.def_prop_ro("unsolved", reading(&report::unsolved<T>));
    c.def("diagonal", reading(&calls::diagonal<T>), "batch"_a);
}

template <class T>
static void bind_numbers(nb::class_<Model<T>>& c) {
    using M = Model<T>;
    c.def("bias", reading(&report::bias<T>));
    c.def("delta", reading(&report::delta<T>));
    c.def("judges", reading(&report::judges<T>));
    c.def("objective", reading(&report::objective<T>));
    c.def("penalty", reading(&report::penalty<T>));
    c.def("duality_gap", reading(&report::duality_gap<T>));
    c.def("counters", reading(&report::counters<T>));
    c.def("seconds", reading(&report::seconds<T>));
    c.def("reserve_ids", writing(&report::reserve_ids<T>), "next"_a);
    c.def("count_since_finish", writing(&report::count_since_finish<T>), "count"_a);
    c.def_prop_ro("changes", [](const M& model) { return model.guard.changes(); });
    c.def_prop_ro("next_id", reading(&report::next_id<T>));
    c.def_prop_ro("since_finish", reading(&report::since_finish<T>));
    c.def_prop_ro("beyond", reading(&M::beyond));
    c.def_prop_ro("size", reading(&report::size<T>));
    c.def_prop_ro("bytes", reading(&report::bytes<T>));
}

template <class T>
static void bind_learner(nb::module_& m, const char* name, const char* packed_rows) {
    nb::class_<Members<T>>(m, packed_rows);
    static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&visit_model<T>)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&clear_model<T>)},
                                  {0, nullptr}};
    nb::class_<Model<T>> learner(m, name, nb::type_slots(slots));
    bind_learning(learner);
    bind_decisions(learner);
    bind_state(learner);
    bind_numbers(learner);
}

void bind_learners(nb::module_& m) {
    bind_learner<float>(m, "Learner32", "PackedRows32");
    bind_learner<double>(m, "Learner64", "PackedRows64");
}
