// Readers and writers of a model, and copies that share its features.

#include <shared_mutex>

#include "check.hpp"
#include "marginwise/base/lock.hpp"
#include "toy_stream.hpp"

using namespace marginwise;

namespace {

TEST(readers_share_and_writers_do_not) {
    Guard guard;
    std::atomic<int> readers{0}, writers{0};
    std::atomic<bool> mixed{false};
    Vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            for (int round = 0; round < 500; ++round) {
                if (t % 3 == 0) {
                    const std::unique_lock<Guard> hold(guard);
                    if (++writers != 1 || readers != 0) mixed = true;
                    --writers;
                } else {
                    const std::shared_lock<Guard> hold(guard);
                    ++readers;
                    if (writers != 0) mixed = true;
                    --readers;
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(!mixed);
    CHECK(guard.changes() == 1000);
}

TEST(a_reader_gets_through_between_two_writers) {
    Guard guard;
    std::atomic<bool> done{false};
    std::thread writer([&] {
        while (!done) {
            const std::unique_lock<Guard> hold(guard);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    while (guard.changes() == 0) std::this_thread::yield();
    for (int round = 0; round < 20; ++round) {  // would not end if writers came first
        const std::shared_lock<Guard> hold(guard);
        const Index before = guard.changes();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        CHECK(guard.changes() == before);  // no writer beside a reader
    }
    done = true;
    writer.join();
}

TEST(a_writer_gets_through_between_readers) {
    Guard guard;
    std::atomic<bool> done{false};
    Vector<std::thread> readers;
    for (int t = 0; t < 3; ++t)
        readers.emplace_back([&] {
            while (!done) const std::shared_lock<Guard> hold(guard);
        });
    for (int round = 0; round < 20; ++round) {
        const std::unique_lock<Guard> hold(guard);
    }
    done = true;
    for (std::thread& reader : readers) reader.join();
    CHECK(guard.changes() == 20);
}

TEST(a_thread_that_uses_the_model_already_is_refused) {
    Guard guard;
    {
        const std::shared_lock<Guard> hold(guard);
        CHECK_THROWS("kernel function", guard.lock_shared());
        CHECK_THROWS("kernel function", guard.lock());
    }
    {
        const std::unique_lock<Guard> hold(guard);
        CHECK_THROWS("kernel function", guard.lock_shared());
    }
    const std::unique_lock<Guard> hold(guard);
    CHECK(guard.changes() == 1);
}

// A copy is the model of that moment: neither changes with the other, and both continue alike.
TEST(a_copy_continues_as_the_model_does) {
    for (const Index classes : {2, 3})
        for (const bool sparse : {false, true}) {
            toy::Options options;
            options.classes = classes;
            options.sparse = options.csr = sparse;
            toy::Pupil<float> pupil(600, options);
            pupil.learn(0, 300);
            const toy::Essence<float> then(pupil.D());
            const std::unique_ptr<Model<float>> copy = pupil.lasvm->clone();
            pupil.learn(300, 600);
            CHECK(toy::Essence<float>(copy->D) == then);
            copy->check(1e-4);
            const Vector<std::int64_t> order = toy::ascending(600);
            copy->learn(pupil.stream.batch(options.csr), order.data() + 300, 300, 1e9);
            CHECK(toy::Essence<float>(copy->D) == toy::Essence<float>(pupil.D()));
            CHECK(copy->next_id == 600 && copy->since_finish == 600);
            copy->check(1e-4);
        }
}

// A model that is asked to stop does so after an example, and continues as if it had not been.
TEST(learning_stops_when_asked) {
    toy::Options options;
    toy::Pupil<float> whole(2000, options), stopped(2000, options);
    whole.learn(0, 2000);
    int asked = 0;
    Index done = 0;
    while (done < 2000) {
        stopped.lasvm->answer_to([&] { return ++asked < 3; });
        done += stopped.learn(done, 2000);
    }
    CHECK(toy::Essence<float>(stopped.D()) == toy::Essence<float>(whole.D()));
}

}  // namespace
