// A thread pool whose threads live as long as one call into the core. No threads run between calls,
// so a process may fork then.
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

    // Has `threads` threads including the caller's, at most kMostThreads, and fewer if the system
    // refuses to start more. Results do not depend on their number.
    explicit ThreadPool(Index threads) {
        threads = std::min(threads, kMostThreads);
        helpers_.reserve(std::max<Index>(threads - 1, 0));
        try {
            for (Index worker = 1; worker < threads; ++worker)
                helpers_.emplace_back([this, worker] { serve(worker); });
        } catch (const std::system_error&) {  // the system refuses: continue with fewer threads
        }
    }
    ~ThreadPool() {
        abandon();
        closing_ = true;
        wake_if_asleep(wake_);
        for (std::thread& helper : helpers_) helper.join();
    }
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    Index threads() const { return 1 + helpers_.size(); }

    // A pool of only the caller's thread. Only run() may be called; several threads, and tasks, may
    // call it at the same time.
    static ThreadPool& alone() {
        static ThreadPool pool(1);
        return pool;
    }

    // Starts tasks 0..tasks-1: each is called once as task(k, worker) on some thread. The helpers
    // start at once. The caller continues and joins in with finish(), which rethrows the first
    // exception of a task.
    void start(Index tasks, std::function<void(Index, Index)> task) {
        task_ = std::move(task);
        tasks_ = tasks;
        next_ = 0;
        left_ = 0;
        running_ = true;
        round_ = (round_ / kRound + 1) * kRound + kOpen;
        wake_if_asleep(wake_);
    }

    // Runs the remaining tasks and returns when all are done. Does not wait for helpers that have
    // not joined in by then, because the machine is busy.
    void finish() {
        if (!running_) return;
        work(0);
        end_round();
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

    // Starts no more tasks and returns when those in progress are done; their exceptions are lost.
    // Call it when an exception unwinds the caller, because the data of tasks must outlive them.
    void abandon() {
        next_ = tasks_.load();
        end_round();
    }

    // start() followed by finish(). If there is only one task, it may use the pool itself.
    template <class Task>
    void run(Index tasks, Task&& task) {
        if (threads() > 1 && tasks > 1) {
            start(tasks, std::ref(task));
            finish();
            return;
        }
        for (Index k = 0; k < tasks; ++k) task(k, Index{0});
    }

    // Calls use(begin, end, worker) for consecutive parts of [0, n) of at least `least` elements.
    template <class Use>
    void run_parts(Index n, Index least, Use&& use) {
        constexpr Index kPartsPerThread = 4;  // limits the time spent waiting for the last part
        const Index part = std::max(least, n / (kPartsPerThread * threads()) + 1);
        run((n + part - 1) / part,
            [&](Index k, Index worker) { use(k * part, std::min((k + 1) * part, n), worker); });
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
            wait_until(wake_, [&] { return closing_ || round_ / kRound != seen; });
            if (closing_) return;
            Index round = round_;
            seen = round / kRound;
            while (round % 2 == kOpen && round / kRound == seen)
                if (round_.compare_exchange_weak(round, round + kJoined)) {
                    work(worker);
                    ++left_;
                    wake_if_asleep(done_);
                    break;
                }
        }
    }

    // Lets no more helpers join in, and returns when those that have joined are done.
    void end_round() {
        const Index joined = (round_.fetch_and(~kOpen) % kRound) / kJoined;
        wait_until(done_, [&] { return left_ == joined; });
        running_ = false;
    }

    // Polls for a few milliseconds, the time between two blocks, before sleeping: a woken thread
    // may be scheduled on the processor of the thread that woke it, and stall that thread. At first
    // it does not even yield, because steps follow each other within microseconds.
    template <class Condition>
    void wait_until(std::condition_variable& signal, Condition condition) {
        constexpr int kGlances = 400, kLooks = 4000;
        for (int look = 0; look < kGlances + kLooks; ++look) {
            if (condition()) return;
            look < kGlances ? pause() : std::this_thread::yield();
        }
        std::unique_lock<std::mutex> hold(mutex_);
        ++sleeping_;
        signal.wait(hold, condition);
        --sleeping_;
    }

    // Hints to the processor that this thread is polling.
    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }

    // Call after a change that other threads may wait for. No wake-up is lost, because a thread
    // checks its condition once more after it has incremented sleeping_.
    void wake_if_asleep(std::condition_variable& signal) {
        if (sleeping_ == 0) return;
        {
            const std::lock_guard<std::mutex> hold(mutex_);
        }
        signal.notify_all();
    }

    // round_ packs the number of the round, how many helpers have joined in, and whether more may.
    static constexpr Index kOpen = 1, kJoined = 2, kRound = 2 * kJoined * kMostThreads;

    Vector<std::thread> helpers_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::function<void(Index, Index)> task_;
    std::atomic<Index> round_{0}, next_{0}, tasks_{0};
    std::atomic<Index> left_{0};  // helpers that have joined in and are done
    std::atomic<Index> sleeping_{0};
    std::atomic<bool> closing_{false};
    std::exception_ptr error_;
    bool running_ = false;
};

}  // namespace marginwise
