// The svmlight readers.
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "marginwise/text/svmlight.hpp"
#include "marginwise/text/svmlight_scan.hpp"

using namespace marginwise;
using namespace marginwise::text;
using nb::literals::operator""_a;
using Outside = nb::call_guard<Released>;

static std::tuple<Index, Index> crossing(const Progress& progress) {
    return {progress.position, progress.rows};
}

// The members that the parser and the first pass have in common.
template <class Reader>
static void bind_rows(nb::class_<Reader>& reader) {
    reader.def_prop_rw("line", &Reader::line, &Reader::set_line);
    reader.def_prop_ro("rows", &Reader::rows);
    reader.def_prop_ro("least", &Reader::least);
    reader.def_prop_ro("greatest", &Reader::greatest);
    reader.def_prop_ro("line_of_greatest", &Reader::line_of_greatest);
}

static void bind_parser(nb::module_& m) {
    using Parser = SvmlightParser;
    using Rows = std::tuple<Array<double>, Array<std::int64_t>, Array<std::int32_t>, Array<float>>;
    nb::class_<Parser> parser(m, "SvmlightParser");
    parser.def(nb::init<Index, Index>(), "base"_a, "n_features"_a);
    bind_rows(parser);
    parser.def(
        "parse",
        [](Parser& self, Bytes text, Index from, Index most) {
            return crossing(self.parse(text, from, most));
        },
        "text"_array, "start"_a, "most"_a, Outside());
    parser.def(
        "skip",
        [](Parser& self, Bytes text, Index from, Index most) {
            return crossing(self.skip(text, from, most));
        },
        "text"_array, "start"_a, "most"_a, Outside());
    parser.def("expect", &Parser::expect, "bytes"_a);
    parser.def("take", [](Parser& self) -> Rows {
        LabelledRows rows = self.take();
        return {std::move(rows.labels), std::move(rows.indptr), std::move(rows.indices),
                std::move(rows.values)};
    });
}

static void bind_scan(nb::module_& m) {
    nb::class_<SvmlightScan> scan(m, "SvmlightScan");
    scan.def(nb::init<Index, Index, Index>(), "base"_a, "n_features"_a, "block"_a);
    bind_rows(scan);
    scan.def("scan", &SvmlightScan::scan, "text"_array, Outside());
    scan.def_prop_ro("integers_only", &SvmlightScan::has_integers_only);
    scan.def_prop_ro("many_labels", &SvmlightScan::has_many_labels);
    scan.def("labels", &SvmlightScan::labels);
    scan.def("offsets", &SvmlightScan::offsets);
    scan.def("lines", &SvmlightScan::lines);
}

void bind_text(nb::module_& m) {
    bind_parser(m);
    bind_scan(m);
}
