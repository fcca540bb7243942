// What goes into a model: kernels and labelled rows; and turns of threads.
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "marginwise/base/lock.hpp"
#include "marginwise/model/block.hpp"

using namespace marginwise;
using nb::literals::operator""_a;

template <class V>
static void bind_matrix(nb::class_<Batch>& batch) {
    batch.def(
        "__init__", [](Batch* self, DenseView<V> X) { new (self) Batch{X}; }, "X"_a.noconvert(),
        nb::keep_alive<1, 2>());
    batch.def(
        "__init__",
        [](Batch* self, View<V> data, View<std::int32_t> indices, View<std::int64_t> indptr,
           Index cols) { new (self) Batch{csr_view(data, indices, indptr, cols)}; },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "cols"_a,
        nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>());
}

// Calls a function in turn. All of this happens in one native call: an interrupt may come before
// the turn is taken, or within the function, but not between taking it and giving it back.
static nb::object run_in_turn(Turn& turn, nb::callable function, nb::args args, nb::kwargs kwargs) {
    const auto take = [&turn] {
        const nb::gil_scoped_release released;
        return TurnHolder(turn, [] {
            const nb::gil_scoped_acquire held;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        });
    };
    const TurnHolder holder = take();
    return function(*args, **kwargs);
}

void bind_batch(nb::module_& m) {
    nb::class_<Kernel>(m, "Kernel")
        .def(
            "__init__",
            [](Kernel* self, const std::string& kind, double gamma, double coef0, int degree) {
                new (self) Kernel{kernel_named(kind), gamma, coef0, degree};
            },
            "kind"_a, "gamma"_a, "coef0"_a, "degree"_a);
    nb::class_<Turn>(m, "Turn")
        .def(nb::init<>())
        .def("run", &run_in_turn, "function"_a, "args"_a, "kwargs"_a,
             nb::sig("def run(self, function: collections.abc.Callable[..., Any], /, *args: Any, "
                     "**kwargs: Any)"
                     " -> Any"))
        .def_prop_ro("mine", &Turn::mine);
    nb::class_<Batch> batch(m, "Batch");
    bind_matrix<float>(batch);
    bind_matrix<double>(batch);
    batch.def("label", &Batch::set_labels, "labels"_a.noconvert(), "costs"_a.noconvert(),
              "ids"_a.noconvert(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
              nb::keep_alive<1, 4>());
}
