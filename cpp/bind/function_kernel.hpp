// A kernel that is a Python function.
#pragma once

#include "arrays.hpp"
#include "interpreter.hpp"
#include "marginwise/model/model.hpp"

// Each model holds its own reference. The garbage collector must see it, because a function may
// refer to the model that uses it. The core copies kernels without holding the interpreter lock.
class FunctionKernel {
  public:
    explicit FunctionKernel(nb::object callable) : callable_(std::move(callable)) {}
    FunctionKernel(const FunctionKernel& other) {
        const Held held;
        callable_ = other.callable_;
    }
    FunctionKernel& operator=(const FunctionKernel&) = delete;
    ~FunctionKernel() {
        const Entered entered;
        entered ? callable_.reset() : void(callable_.release());
    }

    void operator()(const double* a, mw::Index m, const double* b, mw::Index n, mw::Index d,
                    double* out) const {
        const Held held;
        const Exposed exposed;
        const auto copy = [d](const double* x, mw::Index rows) {
            mw::OwnedMatrix<double> matrix(rows, d);
            std::copy_n(x, rows * d, matrix.values.data());
            return nb::cast(std::move(matrix));
        };
        const nb::object result = callable_(copy(a, m), copy(b, n));
        const auto values = nb::cast<NumPy<const double, 2>>(result);
        mw::require(mw::Index(values.shape(0)) == m && mw::Index(values.shape(1)) == n,
                    "kernel block shape");
        std::copy_n(values.data(), m * n, out);
    }

    PyObject* callable() const { return callable_.ptr(); }

  private:
    nb::object callable_;
};

inline mw::BlockKernel block_kernel(nb::object callable) {
    if (callable.is_none()) return nullptr;
    return FunctionKernel(std::move(callable));
}

// Shows the kernel function of a model to the garbage collector.
template <class T>
int visit_model(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const auto& function = nb::inst_ptr<mw::Model<T>>(self)->D.kernel.callable();
    if (const auto* kernel = function.template target<FunctionKernel>())
        Py_VISIT(kernel->callable());
    return 0;
}
template <class T>
int clear_model(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<mw::Model<T>>(self)->D.kernel.forget_callable();
    return 0;
}
