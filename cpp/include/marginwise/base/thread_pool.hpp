// A pool of threads that live as long as one call into the core: nothing is left running between
// calls, so a process may fork at any time.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "marginwise/base/types.hpp"

namespace marginwise {

class ThreadPool {
  public:
    static constexpr Index kMostThreads = 256;

    // Has `threads` threads including the caller's, at most kMostThreads, and fewer where the
    // system refuses to start more. Results do not depend on their number.
    explicit ThreadPool(Index threads) {
        threads = std::min(threads, kMostThreads);
        helpers_.reserve(std::max<Index>(threads - 1, 0));
        try {
            for (Index worker = 1; worker < threads; ++worker)
                helpers_.emplace_back([this, worker] { serve(worker); });
        } catch (const std::system_error&) {  // the system refuses: fewer threads do
        }
    }
    ~ThreadPool() {
        abandon();
        {
            std::lock_guard<std::mutex> hold(mutex_);
            closing_ = true;
        }
        wake_.notify_all();
        for (std::thread& helper : helpers_) helper.join();
    }
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    Index threads() const { return 1 + helpers_.size(); }

    // Begins task(0..tasks), each called once as task(k, worker) on some thread. The helpers start
    // at once; the caller continues and joins in with finish(), which throws what a task threw.
    void start(Index tasks, std::function<void(Index, Index)> task) {
        task_ = std::move(task);
        tasks_ = tasks;
        next_ = 0;
        busy_ = helpers_.size();
        running_ = true;
        bool asleep;
        {
            std::lock_guard<std::mutex> hold(mutex_);
            ++round_;
            asleep = sleeping_ > 0;
        }
        if (asleep) wake_.notify_all();
    }

    // Runs the remaining tasks, and returns when all are done.
    void finish() {
        if (!running_) return;
        work(0);
        wait_until(done_, [this] { return busy_ == 0; });
        running_ = false;
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

    // Starts no more of the tasks, and returns when those under way are done; what they throw is
    // lost. For an exception that unwinds the caller: what tasks use must outlive them.
    void abandon() {
        next_ = tasks_.load();
        wait_until(done_, [this] { return busy_ == 0; });
        running_ = false;
    }

    void run(Index tasks, std::function<void(Index, Index)> task) {
        start(tasks, std::move(task));
        finish();
    }

  private:
    void work(Index worker) {
        try {
            for (Index k; (k = next_.fetch_add(1)) < tasks_;) task_(k, worker);
        } catch (...) {
            std::lock_guard<std::mutex> hold(mutex_);
            if (!error_) error_ = std::current_exception();
            next_ = tasks_.load();
        }
    }

    void serve(Index worker) {
        for (Index seen = 0;;) {
            wait_until(wake_, [&] { return closing_ || round_ != seen; });
            if (closing_) return;
            seen = round_;
            work(worker);
            if (--busy_ == 0) {
                std::lock_guard<std::mutex> hold(mutex_);
                done_.notify_all();
            }
        }
    }

    // Polls for a few milliseconds, the time between two blocks, before it sleeps: a woken thread
    // may be scheduled on the processor of the thread that woke it, and stall that thread.
    template <class Condition>
    void wait_until(std::condition_variable& signal, Condition condition) {
        constexpr int kLooks = 4000;
        for (int look = 0; look < kLooks; ++look) {
            if (condition()) return;
            std::this_thread::yield();
        }
        std::unique_lock<std::mutex> hold(mutex_);
        ++sleeping_;
        signal.wait(hold, condition);
        --sleeping_;
    }

    Vector<std::thread> helpers_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::function<void(Index, Index)> task_;
    std::atomic<Index> next_{0}, tasks_{0}, busy_{0}, round_{0};
    std::atomic<bool> closing_{false};
    Index sleeping_ = 0;  // guarded by mutex_
    std::exception_ptr error_;
    bool running_ = false;
};

}  // namespace marginwise
