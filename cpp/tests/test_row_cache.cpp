// Kernel rows under a bound: who stays, who goes, what is moved, what it costs.

#include <algorithm>

#include "allocations.hpp"
#include "check.hpp"
#include "marginwise/row_cache.hpp"
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
    CHECK(cache.peek(1) != nullptr);  // looking is no use
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
    Keep keep;
    std::vector<Index> kept;
    for (Index k = 0; k < 100; ++k) {
        if (k % 7 == 1 || k == 99) {
            cache.drop(k);
            continue;
        }
        keep.add(k);
        kept.push_back(k);
    }
    const Index held = cache.held();
    cache.compact(keep);
    CHECK(cache.held() == held);
    for (Index n = 0; n < count(kept); ++n) {
        const Index k = kept[usize(n)];
        const RowCache::Row* row = cache.peek(n);
        CHECK((row != nullptr) == (k % 3 != 0));
        if (!row) continue;
        CHECK(row->owner == n);
        const Index length = k < 50 ? 100 : 40;
        CHECK(row->length == keep.below(length));
        bool moved = true;
        for (Index l = 0; l < row->length; ++l)
            moved = moved && row->values[l] == value(k, kept[usize(l)]);
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
    Keep keep;
    for (const Index k : {0, 1, 2, 5, 6, 9}) keep.add(k);
    CHECK(keep.size() == 6 && keep[3] == 5);
    CHECK(keep.below(0) == 0 && keep.below(3) == 3 && keep.below(5) == 3 && keep.below(100) == 6);
    std::vector<double> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    keep.close_up(values);
    CHECK((values == std::vector<double>{0, 1, 2, 5, 6, 9}));
    std::vector<float> floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    CHECK(keep.close_up(floats.data(), 7) == 5);
    CHECK((floats == std::vector<float>{0, 1, 2, 5, 6, 0, 0, 7, 8, 9}));
    Keep none;
    CHECK(none.close_up(floats.data(), 5) == 0 && floats[0] == 0.0f);
}

}  // namespace
