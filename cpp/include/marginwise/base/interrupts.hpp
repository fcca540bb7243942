// Long calls that may be asked to stop.
#pragma once

#include <atomic>
#include <functional>

#include "marginwise/base/clock.hpp"

namespace marginwise {

// The base of objects whose methods may take long.
class Interrupts {
  public:
    // Lets long loops ask from time to time whether to stop, until another function, or none, is
    // set.
    void answer_to(std::function<bool()> stop_asked) {
        stop_asked_ = std::move(stop_asked);
        interrupted_ = false;
        next_look_ = Clock::now() + kPause;
    }

    // Asks for a stop from another thread; the object is not used again.
    void cancel() { cancelled_ = true; }

  protected:
    Interrupts() = default;
    // A copy is asked by nobody.
    Interrupts(const Interrupts&) {}
    Interrupts& operator=(const Interrupts&) = delete;
    ~Interrupts() = default;

    // Whether to stop; checks the clock first, and stop_asked_ ten times a second.
    bool interrupted() {
        if (cancelled_) return true;
        if (interrupted_ || !stop_asked_) return interrupted_;
        const Clock::time_point now = Clock::now();
        if (now < next_look_) return false;
        next_look_ = now + kPause;
        return interrupted_ = stop_asked_();
    }

    // The same for threads other than the caller's, which alone may ask.
    bool interrupted_elsewhere() const { return interrupted_; }

  private:
    static constexpr std::chrono::milliseconds kPause{100};

    std::function<bool()> stop_asked_;
    std::atomic<bool> interrupted_{false}, cancelled_{false};
    Clock::time_point next_look_;
};

// Lets an object ask whether to stop, during its own lifetime.
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
