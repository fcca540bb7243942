// Kernel rows under a bound: who stays, who goes, what is moved, what it costs.

#include <algorithm>

#ifdef __linux__
#include <unistd.h>
#endif

#include "allocations.hpp"
#include "check.hpp"
#include "marginwise/dual/row_cache.hpp"
#include "toy.hpp"

using namespace marginwise;

namespace {

constexpr Index kFloat = static_cast<Index>(sizeof(float));

// What row k should hold in column l.
float value(Index k, Index l) { return static_cast<float>(1000 * k + l); }

void fill(RowCache& cache, Index k, Index columns) {
    RowCache::Row& row = cache.take(k, columns);
    for (Index l = row.length; l < columns; ++l) row.values[l] = value(k, l);
    std::fill(row.values + columns, row.values + padded(columns), 0.0f);
    row.length = columns;
}

bool intact(RowCache& cache, Index k) {
    const RowCache::Row* row = cache.peek(k);
    if (!row) return false;
    for (Index l = 0; l < row->length; ++l)
        if (row->values[l] != value(k, l)) return false;
    return true;
}

TEST(a_new_row_is_empty_and_a_held_one_is_kept) {
    RowCache cache(1 << 20);
    CHECK(cache.take(3, 100).length == 0);
    fill(cache, 3, 100);
    CHECK(cache.take(3, 100).length == 100);
    CHECK(cache.take(3, 130).length == 100);  // truncated: whoever asks fills the rest
    CHECK(intact(cache, 3));
    CHECK(cache.peek(2) == nullptr && cache.peek(4) == nullptr && cache.peek(100000) == nullptr);
    CHECK(cache.held() == 1);
}

TEST(the_bound_holds) {
    for (const Index limit : {Index(64) << 10, Index(1) << 20}) {
        RowCache cache(limit);
        toy::Random random(1);
        Index columns = 1;
        for (Index n = 0; n < 3000; ++n) {
            columns = std::max(columns, n / 3);
            fill(cache, random.below(columns), columns);
            CHECK(cache.bytes() <= std::max(limit, 16 * cache.width() * kFloat));
            CHECK(cache.held() <= cache.room());
        }
        Index held = 0;
        for (Index k = 0; k < columns; ++k) {
            held += cache.peek(k) != nullptr;
            CHECK(!cache.peek(k) || intact(cache, k));
        }
        CHECK(held == cache.held());
    }
}

TEST(a_bound_of_nothing_still_holds_a_few_rows) {
    RowCache cache(0);
    for (Index k = 0; k < 40; ++k) fill(cache, k, 70);
    CHECK(cache.held() >= 4);
    for (Index k = 37; k < 40; ++k) CHECK(intact(cache, k));  // a step needs two at a time
}

TEST(the_least_recently_used_row_goes_first) {
    constexpr Index width = 640;
    RowCache cache(20 * width * kFloat);
    cache.take(0, width);
    const Index room = cache.room();
    for (Index k = 0; k < room; ++k) fill(cache, k, width);
    fill(cache, 0, width);            // used again
    CHECK(cache.peek(1) != nullptr);  // looking does not count as use
    fill(cache, room, width);
    CHECK(cache.peek(1) == nullptr);
    CHECK(intact(cache, 0) && intact(cache, 2) && intact(cache, room));
    for (Index k = room + 1; k < 2 * room - 1; ++k) fill(cache, k, width);
    CHECK(intact(cache, 0));
    fill(cache, 2 * room - 1, width);
    CHECK(cache.peek(0) == nullptr);
}

TEST(dropped_rows_are_gone_and_their_memory_is_used_again) {
    RowCache cache(1 << 20);
    for (Index k = 0; k < 10; ++k) fill(cache, k, 200);
    const Index bytes = cache.bytes();
    for (const Index k : {0, 9, 4}) cache.drop(k);
    cache.drop(4);
    cache.drop(77);
    CHECK(cache.held() == 7);
    CHECK(cache.peek(4) == nullptr);
    for (const Index k : {20, 21, 22}) fill(cache, k, 200);
    CHECK(cache.bytes() == bytes);
    for (const Index k : {1, 2, 3, 5, 6, 7, 8, 20, 21, 22}) CHECK(intact(cache, k));
    CHECK(cache.take(4, 200).length == 0);
}

TEST(wider_rows_keep_what_is_held) {
    RowCache cache(4 << 20);
    for (Index k = 0; k < 30; ++k) fill(cache, k, 60);
    for (const Index k : {3, 7, 8, 29}) cache.drop(k);
    for (Index columns = 61; columns < 3000; columns = columns * 3 / 2) {
        fill(cache, 0, columns);
        for (Index k = 0; k < 30; ++k) CHECK(!cache.peek(k) || intact(cache, k));
        CHECK(cache.peek(0)->length == columns);
        CHECK(cache.peek(1) == nullptr || cache.peek(1)->length == 60);
    }
    CHECK(cache.held() > 4);
}

TEST(several_threads_make_room_and_close_up) {
    ThreadPool workers(3);
    RowCache cache(1 << 22);
    for (Index k = 0; k < 300; ++k) fill(cache, k, 300);
    for (const Index columns : {400, 401, 1500}) {
        cache.make_room(columns, workers);
        CHECK(cache.width() >= columns);
        for (Index k = 0; k < 300; ++k) CHECK(intact(cache, k) && cache.peek(k)->length == 300);
    }
    Compaction compaction;
    for (Index k = 0; k < 300; ++k) k % 5 == 2 ? cache.drop(k) : compaction.add(k);
    cache.compact(compaction, workers);
    for (Index n = 0; n < compaction.size(); ++n) {
        const RowCache::Row& row = *cache.peek(n);
        CHECK(row.length == compaction.size());
        for (Index l = 0; l < row.length; ++l)
            CHECK(row.values[l] == value(compaction[n], compaction[l]));
    }
}

TEST(widening_under_a_tight_bound_keeps_the_newest) {
    RowCache cache(32 * 128 * kFloat);
    for (Index k = 0; k < 32; ++k) fill(cache, k, 100);
    for (const Index k : {2, 30}) cache.drop(k);
    fill(cache, 31, 220);
    CHECK(intact(cache, 31));
    Index held = 0;
    for (Index k = 0; k < 32; ++k) {
        held += cache.peek(k) != nullptr;
        CHECK(!cache.peek(k) || intact(cache, k));
    }
    CHECK(held == cache.held() && held <= cache.room());
    for (Index k = 40; k < 80; ++k) fill(cache, k, 220);
    for (Index k = 70; k < 80; ++k) CHECK(intact(cache, k));
}

TEST(compaction_moves_rows_and_columns) {
    RowCache cache(1 << 20);
    for (Index k = 0; k < 100; ++k)
        if (k % 3 != 0) fill(cache, k, k < 50 ? 100 : 40);
    Compaction compaction;
    Vector<Index> kept;
    for (Index k = 0; k < 100; ++k) {
        if (k % 7 == 1 || k == 99) {
            cache.drop(k);
            continue;
        }
        compaction.add(k);
        kept.push_back(k);
    }
    const Index held = cache.held();
    cache.compact(compaction);
    CHECK(cache.held() == held);
    for (Index n = 0; n < kept.size(); ++n) {
        const Index k = kept[n];
        const RowCache::Row* row = cache.peek(n);
        CHECK((row != nullptr) == (k % 3 != 0));
        if (!row) continue;
        CHECK(row->owner == n);
        const Index length = k < 50 ? 100 : 40;
        CHECK(row->length == compaction.below(length));
        bool moved = true;
        for (Index l = 0; l < row->length; ++l)
            moved = moved && row->values[l] == value(k, kept[l]);
        CHECK_SAY(moved, toy::at("columns did not close up in row", k));
        for (Index l = row->length; l < length; ++l) CHECK(row->values[l] == 0.0f);
    }
}

TEST(a_cleared_cache_is_as_new) {
    RowCache cache(1 << 20);
    for (Index k = 0; k < 10; ++k) fill(cache, k, 100);
    cache.clear();
    CHECK(cache.held() == 0 && cache.bytes() == 0 && cache.peek(3) == nullptr);
    fill(cache, 3, 50);
    CHECK(intact(cache, 3));
}

TEST(a_lower_limit_drops_the_least_recently_used) {
    constexpr Index width = 640;
    RowCache cache(40 * width * kFloat);
    for (Index k = 0; k < 40; ++k) fill(cache, k, width);
    for (const Index k : {3, 0, 7}) fill(cache, k, width);  // used again
    cache.drop(20);
    CHECK(cache.held() == 39 && cache.limit() == 40 * width * kFloat);
    cache.set_limit(18 * width * kFloat);
    CHECK(cache.limit() == 18 * width * kFloat && cache.most() == 40 * width * kFloat);
    CHECK(cache.held() == 18 && cache.room() == 18 && cache.bytes() == 18 * width * kFloat);
    for (Index k = 0; k < 40; ++k) {
        const bool kept = k >= 25 || k == 3 || k == 0 || k == 7;
        CHECK((cache.peek(k) != nullptr) == kept);
        CHECK_SAY(!kept || (intact(cache, k) && cache.peek(k)->length == width),
                  toy::at("a row was lost or damaged:", k));
    }
    CHECK(cache.oldest() == 25);
    fill(cache, 50, width);  // makes room as ever
    CHECK(cache.peek(25) == nullptr && intact(cache, 26) && intact(cache, 50));
}

TEST(a_limit_may_go_down_and_up_again) {
    constexpr Index width = 512;
    RowCache cache(20 * width * kFloat, 60 * width * kFloat);
    toy::Random random(2);
    for (Index round = 0; round < 300; ++round) {
        const Index rows = 16 + random.below(60);
        cache.set_limit(rows * width * kFloat);
        CHECK(cache.limit() == std::min<Index>(rows, 60) * width * kFloat);
        CHECK(cache.held() <= cache.room() && cache.bytes() <= cache.limit());
        for (Index k = 0; k < 25; ++k) {
            fill(cache, random.below(90), width - random.below(100));
            CHECK(cache.bytes() <= cache.limit());
        }
        Index held = 0;
        for (Index k = 0; k < 90; ++k) {
            held += cache.peek(k) != nullptr;
            CHECK(!cache.peek(k) || intact(cache, k));
        }
        CHECK(held == cache.held());
    }
    cache.set_limit(60 * width * kFloat);
    for (Index k = 0; k < 60; ++k) fill(cache, k, width);
    CHECK(cache.held() == 60);
    for (Index k = 0; k < 60; ++k) CHECK(intact(cache, k));
}

TEST(a_limit_keeps_to_the_most_there_may_be) {
    RowCache alone(1 << 20);
    CHECK(alone.limit() == 1 << 20 && alone.most() == 1 << 20);
    alone.set_limit(1 << 22);
    CHECK(alone.limit() == 1 << 20);
    RowCache cache(1 << 18, 1 << 20);
    CHECK(cache.limit() == 1 << 18 && cache.most() == 1 << 20);
    cache.set_limit(1 << 22);  // before there is a row
    CHECK(cache.limit() == 1 << 20);
    for (Index k = 0; k < 3000; ++k) fill(cache, k, 400);
    CHECK(cache.bytes() <= 1 << 20 && cache.bytes() > 1 << 19);
    cache.clear();
    CHECK(cache.limit() == 1 << 20 && cache.most() == 1 << 20 && cache.held() == 0);
    cache.set_limit(1 << 18);
    fill(cache, 3, 400);
    CHECK(intact(cache, 3) && cache.limit() == 1 << 18);
}

TEST(a_few_rows_stay_under_any_limit) {
    RowCache cache(1 << 20);
    for (Index k = 0; k < 100; ++k) fill(cache, k, 1000);
    cache.set_limit(0);
    CHECK(cache.held() == 16 && cache.room() == 16);
    for (Index k = 84; k < 100; ++k) CHECK(intact(cache, k));
    fill(cache, 200, 2000);  // wider, with no memory to speak of
    CHECK(intact(cache, 200) && cache.held() >= 1);
    cache.set_limit(1 << 20);
    for (Index k = 0; k < 60; ++k) fill(cache, k, 2000);
    CHECK(cache.held() == 61);
    for (Index k = 20; k < 60; ++k) CHECK(intact(cache, k));
}

TEST(rows_that_widen_after_the_limit_was_lowered_are_kept) {
    RowCache cache(64 * 256 * kFloat);
    for (Index k = 0; k < 64; ++k) fill(cache, k, 200);
    cache.set_limit(40 * 256 * kFloat);
    fill(cache, 63, 300);  // 32 rows of 320 fit
    CHECK(cache.bytes() <= cache.limit());
    for (Index k = 0; k < 64; ++k) CHECK(!cache.peek(k) || intact(cache, k));
    for (Index k = 50; k < 64; ++k) CHECK(intact(cache, k));
}

TEST(memory_that_was_given_back_may_be_written_again) {
    constexpr Index page = 4096 / kFloat;
    Arena<float> arena(10 * page);
    std::fill(arena.data(), arena.data() + 10 * page, 1.0f);
    arena.release(3 * page + 5);  // the rest of the page begun stays
    for (Index k = 0; k < 3 * page + 5; ++k) CHECK(arena.data()[k] == 1.0f);
#ifdef __linux__
    if (sysconf(_SC_PAGESIZE) == 4096)  // what is not held reads as zero
        for (Index k = 4 * page; k < 10 * page; ++k) CHECK(arena.data()[k] == 0.0f);
#endif
    std::fill(arena.data(), arena.data() + 10 * page, 2.0f);
    arena.release(10 * page);
    arena.release(20 * page);  // beyond the end: nothing to give
    for (Index k = 0; k < 10 * page; ++k) CHECK(arena.data()[k] == 2.0f);
    Arena<float>().release(0);
}

// Doubling has to happen: growing to n members must not allocate n times.
TEST(growing_allocates_seldom) {
    RowCache cache(8 << 20);
    const long before = allocations;
    for (Index n = 1; n <= 20000; ++n) fill(cache, n - 1, n);
    CHECK_SAY(allocations - before < 400,
              std::to_string(allocations - before) + " allocations for 20000 rows");
    CHECK(intact(cache, 19999));
}

TEST(what_stays_closes_up) {
    Compaction compaction;
    for (const Index k : {0, 1, 2, 5, 6, 9}) compaction.add(k);
    CHECK(compaction.size() == 6 && compaction[3] == 5);
    CHECK(compaction.below(0) == 0 && compaction.below(3) == 3 && compaction.below(5) == 3 &&
          compaction.below(100) == 6);
    Vector<double> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    compaction.apply(values);
    CHECK((values == Vector<double>{0, 1, 2, 5, 6, 9}));
    Vector<float> floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    CHECK(compaction.apply(floats.data(), 7) == 5);
    CHECK((floats == Vector<float>{0, 1, 2, 5, 6, 0, 0, 7, 8, 9}));
    Compaction none;
    CHECK(none.apply(floats.data(), 5) == 0 && floats[0] == 0.0f);
}

}  // namespace
