// Releasing the interpreter lock during a native call, and taking it again.
//
// Daemon threads may still be in a native call when the interpreter finalizes. Before Python 3.14,
// a thread that then waits for the interpreter lock is terminated by the C library, and unwinding
// it through C++ aborts the process. Threads that come too late therefore sleep until the process
// exits, and finalization waits for threads that run Python code within a native call.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

namespace nb = nanobind;

// The entrance to the interpreter.
//
// INVARIANT: once closed, no thread except the closer passes.
// INVARIANT: `exposed` counts the threads that run Python code within a native call.
class Entrance {
  public:
    // Calls take(), which takes the interpreter lock unless this thread already holds it. Returns
    // false without calling it if the interpreter is finalizing.
    template <class F>
    static bool pass(F take) {
        State& entrance = state();
        if (!outside() && PyGILState_GetThisThreadState() != nullptr) return take(), true;
        const std::shared_lock<std::shared_timed_mutex> passing(entrance.mutex);
        if (entrance.closed && entrance.closer != std::this_thread::get_id()) return false;
        take();
        return true;
    }

    // Closes the entrance, and waits until exposed threads are done or sleep in their next native
    // call. The waits are bounded, because Python code may run for any time, and because the child
    // of a fork may have inherited a lock held by a thread that does not exist in it.
    static void close() {
        const auto until = std::chrono::steady_clock::now() + kPatience;
        do {
            const nb::gil_scoped_release released;
            const std::unique_lock<std::shared_timed_mutex> alone(state().mutex, until);
            state().closer = std::this_thread::get_id();
            state().closed = true;
            std::this_thread::sleep_for(kPause);
        } while (state().exposed != 0 && std::chrono::steady_clock::now() < until);
    }

    // Whether this thread has released the interpreter lock.
    static bool& outside() {
        thread_local bool outside = false;
        return outside;
    }

    // Sets whether this thread is exposed, and returns whether it was.
    static bool expose(bool now) {
        thread_local bool exposed = false;
        const bool before = exposed;
        state().exposed += int(now) - int(before);
        exposed = now;
        return before;
    }

    [[noreturn]] static void sleep_forever() {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }

  private:
    static constexpr std::chrono::seconds kPatience{2};
    static constexpr std::chrono::microseconds kPause{100};

    struct State {
        std::shared_timed_mutex mutex;
        std::atomic<bool> closed{false};
        std::thread::id closer;
        std::atomic<int> exposed{0};
    };
    static State& state() {
        static State* const state = new State;  // never destroyed: threads may outlive `main`
        return *state;
    }
};

// Releases the interpreter lock for its lifetime.
class Released {
  public:
    Released() : exposed_(Entrance::expose(false)), state_(PyEval_SaveThread()) {
        Entrance::outside() = true;
    }
    ~Released() {
        const auto take = [this] {
            Entrance::expose(exposed_);
            PyEval_RestoreThread(state_);
            Entrance::outside() = false;
        };
        if (!Entrance::pass(take)) Entrance::sleep_forever();
    }
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;

  private:
    bool exposed_;
    PyThreadState* state_;
};

// Holds the interpreter lock for its lifetime. Converts to false if the interpreter has ended and
// the lock is not held.
class Entered {
  public:
    Entered() : inside_(Entrance::pass([this] { state_ = PyGILState_Ensure(); })) {
        if (inside_) outside_ = std::exchange(Entrance::outside(), false);
    }
    ~Entered() {
        if (!inside_) return;
        Entrance::outside() = outside_;
        PyGILState_Release(state_);
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    explicit operator bool() const { return inside_; }

  private:
    PyGILState_STATE state_{};
    bool inside_, outside_ = false;
};

// The same for code that cannot continue without the interpreter: sleeps forever if it has ended.
struct Held : Entered {
    Held() {
        if (!*this) Entrance::sleep_forever();
    }
};

// Marks the thread as exposed for its lifetime: it runs Python code within a native call. Requires
// the interpreter lock.
class Exposed {
  public:
    Exposed() : before_(Entrance::expose(true)) {}
    ~Exposed() { Entrance::expose(before_); }
    Exposed(const Exposed&) = delete;
    Exposed& operator=(const Exposed&) = delete;

  private:
    bool before_;
};
