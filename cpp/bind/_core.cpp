// The binding: converts between NumPy and the core, and does nothing else.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "marginwise/base/lock.hpp"
#include "marginwise/bench/product_time.hpp"
#include "marginwise/images/deform.hpp"
#include "marginwise/model/learner.hpp"

using namespace marginwise;
using nb::literals::operator""_a;
using Outside = nb::call_guard<Released>;

void bind_models(nb::module_& m);
void bind_text(nb::module_& m);
void bind_tuning(nb::module_& m);

template <class V>
static void bind_matrix(nb::class_<Batch>& batch) {
    batch.def(
        "__init__", [](Batch* self, DenseView<V> X) { new (self) Batch{X}; }, "X"_array,
        nb::keep_alive<1, 2>());
    batch.def(
        "__init__",
        [](Batch* self, View<V> data, View<std::int32_t> indices, View<std::int64_t> indptr,
           Index cols) { new (self) Batch{csr_view(data, indices, indptr, cols)}; },
        "data"_array, "indices"_array, "indptr"_array, "cols"_a, nb::keep_alive<1, 2>(),
        nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>());
}

// Calls a function while holding the turn. This is a single native call, so an interrupt may arrive
// before the turn is taken or within the function, but can never leave the turn taken.
static nb::object run_in_turn(Turn& turn, const nb::callable& function, const nb::args& args,
                              const nb::kwargs& kwargs) {
    const auto take = [&turn] {
        const Released released;
        return TurnHolder(turn, [] {
            const Held held;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        });
    };
    const TurnHolder holder = take();
    const Exposed exposed;
    return function(*args, **kwargs);
}

static void bind_inputs(nb::module_& m) {
    nb::class_<Turn>(m, "Turn")
        .def(nb::init<>())
        .def("run", &run_in_turn, "function"_a, "args"_a, "kwargs"_a,
             nb::sig("def run(self, function: collections.abc.Callable[..., Any], /, *args: Any, "
                     "**kwargs: Any) -> Any"))
        .def_prop_ro("mine", &Turn::mine);
    nb::class_<Batch> batch(m, "Batch");
    bind_matrix<float>(batch);
    bind_matrix<double>(batch);
    batch.def("label", &Batch::set_labels, "labels"_array, "costs"_array, "ids"_array,
              nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>());
    batch.def("weigh", &Batch::set_weights, "weights"_array, nb::keep_alive<1, 2>());
    batch.def("drop_weights", &Batch::drop_weights);
    batch.def_prop_ro("weighed", [](const Batch& b) { return b.weight != nullptr; });
}

static void deform(DenseView<float> images, CubeView<float> tangents, DenseView<float> ranges,
                   DenseView<float> fields, Vector<Index> shape, double elastic, double thickening,
                   Index shift, std::uint64_t seed, View<std::int64_t> examples,
                   View<std::int64_t> variants, Index threads, MutableView<float> out) {
    const Strengths strengths{elastic, thickening, shift};
    deform_images({images, tangents, ranges, fields, std::move(shape), strengths, seed, examples,
                   variants, out},
                  threads);
}

NB_MODULE(_core, m) {
    m.doc() = "The native core of marginwise: kernel blocks, the dual state and its learners.";
    nb::set_leak_warnings(false);  // a model may live as long as the interpreter
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Entrance::close));
    m.attr("MOST_THREADS") = ThreadPool::kMostThreads;
    m.attr("FEW_ROWS") = Learner<float>::kFewRows;
    m.attr("SKIP_BELOW") = Rows<float>::kSkipBelow;
    m.attr("ENOUGH_INSIDE") = Choice::kEnoughInside;
    m.attr("MOST_SAMPLED") = Choice::kMostSampled;
    m.def(
        "cpu", [] { return std::string(table().name); },
        "Instruction set in use (MARGINWISE_CPU chooses another).");
    m.def("cpu_choices", &cpu_choices, "Instruction sets that this processor offers.");
    m.def("product_seconds", &product_seconds, "X"_array, "members"_array, "gamma"_a, "lists"_a,
          Outside(), "Time the RBF kernel of all rows of X with all members, in blocks.");
    m.def("sensitivity_seconds", &sensitivity_seconds, "rows"_array, "free"_array, "rounds"_a,
          "gather"_a, Outside(),
          "Time the sensitivities of all examples to the free ones, in two forms.");
    m.def("deform", &deform, "images"_array, "tangents"_array, "ranges"_array, "fields"_array,
          "shape"_a, "elastic"_a, "thickening"_a, "shift"_a, "seed"_a, "examples"_array,
          "variants"_array, "threads"_a, "out"_array, Outside(),
          "Write variants of some images to out; variant 0 is the image itself.");
    bind_inputs(m);
    bind_models(m);
    bind_text(m);
    bind_tuning(m);
}
