// Exact models.
#include <nanobind/stl/unique_ptr.h>

#include "marginwise/algo/exact/exact_report.hpp"
#include "model.hpp"

static std::unique_ptr<Exact> make_exact(const Dict& settings, const Kernel& kernel,
                                         nb::object callable, Index problems, Index features,
                                         bool sparse, Index cache_bytes, Vector<double> center,
                                         double scale, Index threads, bool record) {
    constexpr double kNoLimit = 1e300;
    auto own = settings_from<ExactSettings>(settings);
    own.record = record;
    Dual<double> dual(Members<double>(features, sparse),
                      KernelBlocks<double>(kernel, block_kernel(std::move(callable))), problems, 0);
    const ModelSettings common{{std::move(center), scale}, kNoLimit, threads, record};
    return std::make_unique<Exact>(std::move(dual), common, own, cache_bytes);
}

void bind_exact(nb::module_& m) {
    nb::class_<Exact, Model<double>>(m, "ExactLearner")
        .def(nb::new_(&make_exact), "settings"_a, "kernel"_a, "callable"_a.none(), "problems"_a,
             "features"_a, "sparse"_a, "cache_bytes"_a, "center"_a, "scale"_a, "threads"_a,
             "record"_a)
        .def("forget", interruptible(&exact_report::forget), "ids"_a)
        .def("leave_one_out", interruptible(&exact_report::leave_one_out))
        .def("scale_costs", interruptible(&Exact::scale_costs), "factor"_a)
        .def("holds", reading(&exact_report::holds), "ids"_a)
        .def("path", reading(&exact_report::path))
        .def("set_path", writing(&exact_report::set_path), "path"_a.noconvert())
        .def("violation", reading(&exact_report::violation))
        .def("solve", interruptible(&Exact::solve))
        .def("shortfall", reading(&exact_report::shortfall))
        .def("resolved", reading(&exact_report::resolved))
        .def("indefinite", reading(&exact_report::indefinite))
        .def("total", reading(&exact_report::total))
        .def("verify_exact", writing(&exact_report::verify), "most"_a, "tolerance"_a, "sphere"_a)
        .def("state", [](const Exact& model) { return dict_of(model, &exact_report::save_state); })
        .def("restore", &restore<double, Exact, &exact_report::restore_state>, "batch"_a,
             "state"_a);
}
