// Functions that need no model.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "marginwise/bench/product_time.hpp"
#include "marginwise/images/deform.hpp"
#include "marginwise/simd/dispatch.hpp"

using namespace marginwise;
using nb::literals::operator""_a;

using Released = nb::call_guard<nb::gil_scoped_release>;

static void deform(DenseView<float> images, CubeView<float> tangents, DenseView<float> ranges,
                   DenseView<float> fields, Vector<Index> shape, double elastic, double thickening,
                   Index shift, std::uint64_t seed, View<std::int64_t> examples,
                   View<std::int64_t> variants, Index threads, MutableView<float> out) {
    deform_images({images,
                   tangents,
                   ranges,
                   fields,
                   std::move(shape),
                   {elastic, thickening, shift},
                   seed,
                   examples,
                   variants,
                   out},
                  threads);
}

static double time_product(DenseView<float> X, DenseView<float> members, double gamma, bool lists) {
    return product_seconds(X, members, gamma, lists);
}

void bind_functions(nb::module_& m) {
    m.def(
        "cpu", [] { return std::string(table().name); },
        "Instruction set in use (MARGINWISE_CPU chooses another).");
    m.def("cpu_choices", &cpu_choices, "Instruction sets that this processor offers.");
    m.def("product_seconds", &time_product, "X"_a.noconvert(), "members"_a.noconvert(), "gamma"_a,
          "lists"_a, Released(),
          "Time the RBF kernel of all rows of X with all members, in blocks.");
    m.def("sensitivity_seconds", &sensitivity_seconds, "rows"_a.noconvert(), "free"_a.noconvert(),
          "rounds"_a, "gather"_a, Released(),
          "Time the sensitivities of all examples to the free ones, in two forms.");
    m.def("deform", &deform, "images"_a.noconvert(), "tangents"_a.noconvert(),
          "ranges"_a.noconvert(), "fields"_a.noconvert(), "shape"_a, "elastic"_a, "thickening"_a,
          "shift"_a, "seed"_a, "examples"_a.noconvert(), "variants"_a.noconvert(), "threads"_a,
          "out"_a.noconvert(), Released(),
          "Write variants of some images to out; variant 0 is the image itself.");
}
