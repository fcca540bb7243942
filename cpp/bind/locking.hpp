// Python methods from functions of the core. Each holds the model, for reading or alone, while the
// interpreter is free for other threads: a thread that waits for a model must not keep the
// interpreter from the one that has it, whose kernel may be a Python function.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <shared_mutex>

#include "marginwise/model/model.hpp"

namespace nb = nanobind;

template <class Lock>
struct Holding {
    template <class M, class F>
    static auto run(M& model, F work) {
        const nb::gil_scoped_release released;
        const Lock hold(model.guard);
        return work();
    }
};
using Reading = Holding<std::shared_lock<marginwise::Guard>>;
using Writing = Holding<std::unique_lock<marginwise::Guard>>;

// Holds the model alone; loops that take long look for signals to answer, such as Ctrl-C. What a
// handler raised is thrown when the model is free again.
struct Interruptible {
    template <class M, class F>
    static auto run(M& model, F work) {
        std::exception_ptr raised;
        const auto check_signals = [&raised] {
            const nb::gil_scoped_acquire held;
            if (PyErr_CheckSignals() == 0) return false;
            raised = std::make_exception_ptr(nb::python_error());
            return true;
        };
        const auto call = [&] {
            const marginwise::Answering until_done(model, check_signals);
            return work();
        };
        if constexpr (std::is_void_v<decltype(work())>) {
            Writing::run(model, call);
            if (raised) std::rethrow_exception(raised);
        } else {
            auto result = Writing::run(model, call);
            if (raised) std::rethrow_exception(raised);
            return result;
        }
    }
};

// A function of a model, or a method of it: what Python calls.
template <class F>
struct Method;
template <class R, class M, class... Args>
struct Method<R (*)(M&, Args...)> {
    template <class Use, class F>
    static auto held(F f) {
        return [f](M& self, Args... args) {
            return Use::run(
                self, [&]() -> R { return std::invoke(f, self, static_cast<Args>(args)...); });
        };
    }
};
template <class R, class M, class... Args>
struct Method<R (M::*)(Args...)> : Method<R (*)(M&, Args...)> {};
template <class R, class M, class... Args>
struct Method<R (M::*)(Args...) const> : Method<R (*)(const M&, Args...)> {};

template <class F>
auto reading(F f) {
    return Method<F>::template held<Reading>(f);
}
template <class F>
auto writing(F f) {
    return Method<F>::template held<Writing>(f);
}
template <class F>
auto interruptible(F f) {
    return Method<F>::template held<Interruptible>(f);
}
