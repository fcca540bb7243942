// The thread pool: every task once, many rounds, exceptions, and nothing left behind.

#include <numeric>

#include "check.hpp"
#include "marginwise/base/thread_pool.hpp"
#include "toy.hpp"

using namespace marginwise;

namespace {

TEST(every_task_runs_once) {
    for (const Index threads : {1, 2, 5}) {
        ThreadPool workers(threads);
        CHECK(workers.threads() == threads);
        for (const Index tasks : {0, 1, 3, 1000}) {
            Vector<std::atomic<int>> runs(tasks);
            std::atomic<bool> known_worker{true};
            workers.run(tasks, [&](Index k, Index worker) {
                ++runs[k];
                if (worker < 0 || worker >= threads) known_worker = false;
            });
            for (const auto& n : runs) CHECK(n == 1);
            CHECK(known_worker);
        }
    }
}

TEST(many_rounds_use_the_same_crew) {
    ThreadPool workers(3);
    long total = 0;
    for (Index round = 0; round < 2000; ++round) {
        std::atomic<long> sum{0};
        workers.run(7, [&](Index k, Index) { sum += k; });
        total += sum;
    }
    CHECK(total == 2000 * 21);
}

TEST(parts_cover_everything_once) {
    for (const Index threads : {1, 3})
        for (const Index n : {0, 1, 15, 16, 17, 1000})
            for (const Index least : {1, 16}) {
                ThreadPool workers(threads);
                Vector<std::atomic<int>> met(n);
                std::atomic<bool> large{true};
                workers.run_parts(n, least, [&](Index begin, Index end, Index) {
                    if (end < n && end - begin < least) large = false;
                    for (Index k = begin; k < end; ++k) ++met[k];
                });
                CHECK_SAY(large, "a part is too small");
                for (const auto& times : met) CHECK(times == 1);
            }
}

TEST(a_single_task_may_use_the_pool) {
    ThreadPool three(3);
    for (ThreadPool* workers : {&three, &ThreadPool::alone()}) {
        std::atomic<int> runs{0};
        workers->run(1, [&](Index, Index) { workers->run(20, [&](Index, Index) { ++runs; }); });
        CHECK(runs == 20);
    }
}

TEST(the_caller_goes_on_between_start_and_finish) {
    ThreadPool workers(2);
    for (Index round = 0; round < 200; ++round) {
        Vector<long> squares(100, 0);
        workers.start(100, [&](Index k, Index) { squares[k] = k * k; });
        long own = 0;
        for (long k = 0; k < 100; ++k) own += k;
        workers.finish();
        CHECK(own == 4950);
        CHECK(std::accumulate(squares.begin(), squares.end(), 0L) == 328350);
    }
    workers.finish();  // nothing was started: nothing to do
}

TEST(abandoned_tasks_use_nothing_afterwards) {
    ThreadPool workers(3);
    for (Index round = 0; round < 200; ++round) {
        {
            Vector<long> squares(1000, 0);
            workers.start(1000, [&](Index k, Index) { squares[k] = k * k; });
            workers.abandon();
        }
        std::atomic<int> runs{0};
        workers.run(5, [&](Index, Index) { ++runs; });
        CHECK(runs == 5);
    }
}

TEST(what_a_task_throws_comes_out_of_finish) {
    for (const Index threads : {1, 2, 4}) {
        ThreadPool workers(threads);
        for (Index round = 0; round < 50; ++round) {
            CHECK_THROWS("task 3", workers.run(20, [](Index k, Index) {
                if (k == 3) throw std::runtime_error("task 3");
            }));
            std::atomic<int> runs{0};
            workers.run(20, [&](Index, Index) { ++runs; });  // and the pool still works
            CHECK(runs == 20);
        }
    }
}

TEST(all_tasks_may_throw) {
    ThreadPool workers(4);
    for (Index round = 0; round < 100; ++round)
        CHECK_THROWS("each", workers.run(50, [](Index, Index) -> void {
            throw std::runtime_error("each");
        }));
}

TEST(a_crew_may_go_while_tasks_are_under_way) {
    for (Index round = 0; round < 100; ++round) {
        std::atomic<int> started{0}, ended{0};
        {
            ThreadPool workers(3);
            workers.start(30, [&](Index, Index) {
                ++started;
                ++ended;
            });
        }
        CHECK(started == ended);  // none was cut short, none runs on
    }
}

TEST(an_exception_of_the_caller_leaves_no_task_behind) {
    for (Index round = 0; round < 100; ++round) {
        Vector<int> results(64, 0);
        try {
            ThreadPool workers(2);
            workers.start(64, [&](Index k, Index) { results[k] = 1; });
            throw std::runtime_error("the caller's own");
        } catch (const std::runtime_error&) {
        }
        results.assign(64, 2);  // would be a race if a task were still under way
        CHECK(results[63] == 2);
    }
}

}  // namespace
