// A crew of threads that live as long as one call into the core: nothing is left running between
// calls, so a process may fork at any time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "marginwise/types.hpp"

namespace marginwise {

class Crew {
  public:
    // `threads` in all, the caller's among them.
    explicit Crew(Index threads) {
        for (Index worker = 1; worker < threads; ++worker)
            helpers_.emplace_back([this, worker] { serve(worker); });
    }
    ~Crew() {
        work_is_over();
        {
            std::lock_guard<std::mutex> hold(mutex_);
            closing_ = true;
        }
        wake_.notify_all();
        for (std::thread& helper : helpers_) helper.join();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    Index threads() const { return 1 + count(helpers_); }

    // Begins task(0..tasks), each called once as task(k, worker) on some thread. The helpers start
    // at once; the caller goes on and joins in with finish(), which throws what a task threw.
    void start(Index tasks, std::function<void(Index, Index)> task) {
        {
            std::lock_guard<std::mutex> hold(mutex_);
            task_ = std::move(task);
            tasks_ = tasks;
            next_ = 0;
            busy_ = count(helpers_);
            ++round_;
        }
        running_ = true;
        wake_.notify_all();
    }

    // Does what is left of the tasks started, and returns when all are done.
    void finish() {
        if (!running_) return;
        work(0);
        std::unique_lock<std::mutex> hold(mutex_);
        done_.wait(hold, [this] { return busy_ == 0; });
        running_ = false;
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

    void run(Index tasks, std::function<void(Index, Index)> task) {
        start(tasks, std::move(task));
        finish();
    }

  private:
    // Leaves no task under way when an exception unwinds the caller.
    void work_is_over() {
        if (!running_) return;
        next_ = tasks_;
        std::unique_lock<std::mutex> hold(mutex_);
        done_.wait(hold, [this] { return busy_ == 0; });
    }

    void work(Index worker) {
        try {
            for (Index k; (k = next_.fetch_add(1)) < tasks_;) task_(k, worker);
        } catch (...) {
            std::lock_guard<std::mutex> hold(mutex_);
            if (!error_) error_ = std::current_exception();
            next_ = tasks_;
        }
    }

    void serve(Index worker) {
        Index seen = 0;
        std::unique_lock<std::mutex> hold(mutex_);
        for (;;) {
            wake_.wait(hold, [&] { return closing_ || round_ != seen; });
            if (closing_) return;
            seen = round_;
            hold.unlock();
            work(worker);
            hold.lock();
            if (--busy_ == 0) done_.notify_all();
        }
    }

    std::vector<std::thread> helpers_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::function<void(Index, Index)> task_;
    std::atomic<Index> next_{0};
    Index tasks_ = 0;
    Index busy_ = 0;
    Index round_ = 0;
    std::exception_ptr error_;
    bool running_ = false;
    bool closing_ = false;
};

}  // namespace marginwise
