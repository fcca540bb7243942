// A fair reader-writer lock for models, and a mutex for calls that must not overlap.
//
// A waiting writer blocks readers that arrive after it, and readers that waited for a writer are
// admitted before the next writer, so neither kind starves.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "marginwise/base/types.hpp"

namespace marginwise {

class Guard {
  public:
    // Thrown if a thread that already uses the model would wait for itself.
    struct Reentered : std::logic_error {
        Reentered()
            : std::logic_error(
                  "a kernel function must not use the model that it is the kernel of; compute "
                  "kernel values from the two blocks alone") {}
    };

    void lock_shared() {
        std::unique_lock<std::mutex> hold(mutex_);
        refuse_reentry();
        if (writing_ || writers_waiting_ > 0) {
            ++readers_waiting_;
            const Index phase = phase_;
            changed_.wait(hold,
                          [&] { return phase != phase_ || (!writing_ && writers_waiting_ == 0); });
            phase != phase_ ? --admitted_ : --readers_waiting_;
        }
        readers_.push_back(std::this_thread::get_id());
    }

    void unlock_shared() {
        const std::lock_guard<std::mutex> hold(mutex_);
        readers_.erase(std::find(readers_.begin(), readers_.end(), std::this_thread::get_id()));
        if (readers_.empty()) changed_.notify_all();
    }

    void lock() {
        std::unique_lock<std::mutex> hold(mutex_);
        refuse_reentry();
        ++writers_waiting_;
        changed_.wait(hold, [&] { return !writing_ && readers_.empty() && admitted_ == 0; });
        --writers_waiting_;
        writing_ = true;
        writer_ = std::this_thread::get_id();
    }

    void unlock() {
        const std::lock_guard<std::mutex> hold(mutex_);
        writing_ = false;
        writer_ = {};
        ++phase_;
        admitted_ += std::exchange(readers_waiting_, 0);
        changed_.notify_all();
    }

    // The number of completed writes. If it is the same before and after a read, nothing changed in
    // between.
    Index changes() {
        const std::lock_guard<std::mutex> hold(mutex_);
        return phase_;
    }

  private:
    void refuse_reentry() const {
        const auto me = std::this_thread::get_id();
        const bool reads = std::find(readers_.begin(), readers_.end(), me) != readers_.end();
        if (reads || (writing_ && writer_ == me)) throw Reentered();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    Vector<std::thread::id> readers_;
    std::thread::id writer_;
    Index readers_waiting_ = 0;  // for the current writer, or for writers that arrived earlier
    Index admitted_ = 0;         // readers to be admitted before the next writer
    Index writers_waiting_ = 0;
    Index phase_ = 0;  // number of completed writes
    bool writing_ = false;
};

// A recursive mutex for calls that must not overlap: one thread runs, and the others wait.
class Turn {
  public:
    // Waits for the turn of this thread, and calls look(), which may throw, about twenty times a
    // second.
    template <class Look>
    void take(Look look) {
        std::unique_lock<std::mutex> hold(mutex_);
        const auto me = std::this_thread::get_id();
        while (depth_ > 0 && owner_ != me) {
            if (free_.wait_for(hold, std::chrono::milliseconds(50)) == std::cv_status::no_timeout)
                continue;
            hold.unlock();
            look();
            hold.lock();
        }
        owner_ = me;
        ++depth_;
    }
    void give_back() {
        const std::lock_guard<std::mutex> hold(mutex_);
        if (--depth_ == 0) free_.notify_one();
    }
    // Whether this thread has the turn.
    bool mine() {
        const std::lock_guard<std::mutex> hold(mutex_);
        return depth_ > 0 && owner_ == std::this_thread::get_id();
    }

  private:
    std::mutex mutex_;
    std::condition_variable free_;
    std::thread::id owner_;
    Index depth_ = 0;
};

// Holds the turn during its lifetime.
class TurnHolder {
  public:
    template <class Look>
    TurnHolder(Turn& turn, Look look) : turn_(turn) {
        turn_.take(look);
    }
    ~TurnHolder() { turn_.give_back(); }
    TurnHolder(const TurnHolder&) = delete;
    TurnHolder& operator=(const TurnHolder&) = delete;

  private:
    Turn& turn_;
};

}  // namespace marginwise
