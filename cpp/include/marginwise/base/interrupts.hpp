// Interrupting long calls.
#pragma once

#include <atomic>
#include <functional>

#include "marginwise/base/clock.hpp"

namespace marginwise {

// The base class of objects whose methods may take long.
class Interrupts {
  public:
    // Sets the function that long loops call from time to time to find out whether to stop. Pass
    // nullptr to remove it.
    void answer_to(std::function<bool()> stop_asked) {
        stop_asked_ = std::move(stop_asked);
        interrupted_ = false;
        next_look_ = Clock::now() + kPause;
    }

    // Requests a stop from another thread. The object must not be used again.
    void cancel() { cancelled_ = true; }

  protected:
    Interrupts() = default;
    // A copy does not inherit pending requests to stop.
    Interrupts(const Interrupts&) {}
    Interrupts& operator=(const Interrupts&) = delete;
    ~Interrupts() = default;

    // Whether to stop. Calls stop_asked_ at most ten times a second.
    bool interrupted() {
        if (cancelled_) return true;
        if (interrupted_ || !stop_asked_) return interrupted_;
        const Clock::time_point now = Clock::now();
        if (now < next_look_) return false;
        next_look_ = now + kPause;
        return interrupted_ = stop_asked_();
    }

    // The same for helper threads. Only the caller's thread may call stop_asked_.
    bool interrupted_elsewhere() const { return interrupted_ || cancelled_; }

  private:
    static constexpr std::chrono::milliseconds kPause{100};

    std::function<bool()> stop_asked_;
    std::atomic<bool> interrupted_{false}, cancelled_{false};
    Clock::time_point next_look_;
};

// Sets the stop function of an object for its own lifetime.
template <class M>
class Answering {
  public:
    Answering(M& model, std::function<bool()> stop_asked) : model_(model) {
        model_.answer_to(std::move(stop_asked));
    }
    ~Answering() { model_.answer_to(nullptr); }
    Answering(const Answering&) = delete;
    Answering& operator=(const Answering&) = delete;

  private:
    M& model_;
};

}  // namespace marginwise
