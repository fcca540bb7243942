// The binding: what crosses between NumPy and the core, and nothing else.
#include <nanobind/nanobind.h>

void bind_functions(nanobind::module_& m);
void bind_batch(nanobind::module_& m);
void bind_learners(nanobind::module_& m);
void bind_exact(nanobind::module_& m);

NB_MODULE(_core, m) {
    m.doc() = "The native core of marginwise: kernel blocks, the dual state and its learners.";
    nanobind::set_leak_warnings(false);  // a model may well live as long as the interpreter
    bind_functions(m);
    bind_batch(m);
    bind_learners(m);
    bind_exact(m);
}
