// The tuner: solutions of binary problems for many values of C and gamma.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "marginwise/algo/algorithms.hpp"
#include "marginwise/tune/tuner.hpp"
#include "methods.hpp"
#include "settings.hpp"

using namespace marginwise;
using nb::literals::operator""_a;

template <class T>
static Dict follow(Tuner<T>& tuner, View<double> y, View<double> weight, View<double> Cs,
                   double tol) {
    SolutionPath path = Interruptible::run(tuner, [&] { return tuner.follow(y, weight, Cs, tol); });
    Dict out;
    path.visit([&](const char* name, auto& array) { out[name] = nb::cast(std::move(array)); });
    return out;
}

template <class T>
static OwnedMatrix<double> expand(Tuner<T>& tuner, View<std::int64_t> rows,
                                  View<std::int64_t> begin, View<std::int32_t> example,
                                  View<double> value) {
    return Interruptible::run(tuner, [&] { return tuner.expand(rows, {begin, example, value}); });
}

template <class T>
static void bind_tuner(nb::module_& m, const char* name) {
    using M = Tuner<T>;
    nb::class_<M>(m, name)
        .def(
            "__init__",
            [](M* self, const Dict& spec, const Batch& batch) {
                const auto read = settings_by<ModelSpec>(reader(spec));
                const Released released;
                new (self) M(read, batch.X);
            },
            "spec"_a, "batch"_a)
        .def("cancel", [](M& tuner) { tuner.cancel(); })
        .def("begin", writing(&M::begin), "examples"_array, "gammas"_a)
        .def("set_gamma", writing(&M::set_gamma), "gamma"_a)
        .def("follow", &follow<T>, "y"_array, "weight"_array, "Cs"_array, "tol"_a)
        .def("expand", &expand<T>, "rows"_array, "begin"_array, "example"_array, "value"_array);
}

void bind_tuning(nb::module_& m) {
    bind_tuner<float>(m, "Tuner32");
    bind_tuner<double>(m, "Tuner64");
}
