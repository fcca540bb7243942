// Makes Python methods of functions of the core. Each method locks the model, shared or
// exclusively, and releases the interpreter lock meanwhile: a thread that waits for a model must
// not block the thread that holds it, whose kernel may be a Python function.
#pragma once

#include <functional>
#include <shared_mutex>

#include "interpreter.hpp"
#include "marginwise/model/model.hpp"

template <class Lock>
struct Holding {
    template <class M, class F>
    static auto run(M& model, F work) {
        const Released released;
        const Lock hold(model.guard);
        return work();
    }
};
using Reading = Holding<std::shared_lock<marginwise::Guard>>;
using Writing = Holding<std::unique_lock<marginwise::Guard>>;

// Locks the model exclusively. Long loops check for signals such as Ctrl-C. An exception raised by
// a signal handler is thrown after the model is unlocked.
struct Interruptible {
    template <class M, class F>
    static auto run(M& model, F work) {
        std::exception_ptr raised;
        const auto check_signals = [&raised] {
            const Entered entered;
            if (!entered) return true;  // the model is unlocked before the thread sleeps
            if (PyErr_CheckSignals() == 0) return false;
            raised = std::make_exception_ptr(nb::python_error());
            return true;
        };
        auto result = Writing::run(model, [&] {
            const marginwise::Answering until_done(model, check_signals);
            if constexpr (std::is_void_v<decltype(work())>)
                return work(), nullptr;
            else
                return work();
        });
        if (raised) std::rethrow_exception(raised);
        return result;
    }
};

// Deduces the signature of a Python method from a function of a model, a method of it, or a lambda.
template <class F>
struct Method : Method<decltype(+std::declval<F>())> {};
template <class R, class M, class... Args>
struct Method<R (*)(M&, Args...)> {
    template <class Use, class F>
    static auto held(F f) {
        return [f](M& self, Args... args) {
            return Use::run(
                self, [&]() -> R { return std::invoke(f, self, std::forward<Args>(args)...); });
        };
    }
};
template <class R, class M, class... Args>
struct Method<R (M::*)(Args...)> : Method<R (*)(M&, Args...)> {};
template <class R, class M, class... Args>
struct Method<R (M::*)(Args...) const> : Method<R (*)(const M&, Args...)> {};

template <class Use>
constexpr auto method = [](auto f) { return Method<decltype(f)>::template held<Use>(f); };
constexpr auto reading = method<Reading>;
constexpr auto writing = method<Writing>;
constexpr auto interruptible = method<Interruptible>;
