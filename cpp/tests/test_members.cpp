// The store of members: what goes in comes out, dense or sparse, and compaction loses nothing.

#include <cstring>

#include "allocations.hpp"
#include "check.hpp"
#include "marginwise/dual/members.hpp"
#include "marginwise/kernel/kernel_blocks.hpp"
#include "toy.hpp"

using namespace marginwise;

namespace {

template <class T>
Vector<T> features(const Members<T>& members, Index s) {
    Rows<T> row;
    members.extract(s, row);
    Vector<T> x(members.features(), T(0));
    for (Index p = row.begin_of(0); p < row.end_of(0); ++p) x[row.index[p]] = row.value[p];
    return x;
}

template <class T>
bool holds(const Members<T>& members, Index s, const toy::Data<T>& data, Index r) {
    const Vector<T> x = features(members, s);
    return std::equal(x.begin(), x.end(), data.row(r));
}

template <class T>
Members<T> filled(const toy::Data<T>& data, bool sparse, bool from_csr) {
    Members<T> members(data.cols, sparse);
    Rows<T> rows;
    const auto order = toy::ascending(data.rows);
    rows.read(from_csr ? data.csr() : data.view(), order.data(), data.rows, {});
    for (Index r = 0; r < data.rows; ++r) members.append(rows, r, 1000 + r);
    return members;
}

// Lanes that hold no member must be zero: products run over whole tiles.
template <class T>
bool padding_is_zero(const Members<T>& members) {
    for (Index s = members.size(); s < padded(members.size()); ++s) {
        const Tile<T>& tile = members.tile(s / kLanes);
        if (tile.norms[s % kLanes] != T(0)) return false;
        for (Index k = 0; !tile.sparse() && k < members.features(); ++k)
            if (tile.dense[k * kLanes + s % kLanes] != T(0)) return false;
    }
    return true;
}

template <class T>
void append_and_extract(Index n, Index d, double density) {
    const toy::Data<T> data(n, d, density, 5);
    for (const bool sparse : {false, true})
        for (const bool from_csr : {false, true}) {
            const Members<T> members = filled(data, sparse, from_csr);
            CHECK(members.size() == n && members.features() == d && members.sparse() == sparse);
            CHECK(padding_is_zero(members));
            for (Index s = 0; s < n; ++s) {
                CHECK(members.ids[s] == 1000 + s && members.find(1000 + s) == s);
                CHECK_SAY(holds(members, s, data, s), toy::at("member is not what came in:", s));
                T norm = 0;
                for (const T x : features(members, s)) norm += x * x;
                CHECK(std::abs(members.norm(s) - norm) <= T(1e-5) * (norm + T(1)));
            }
            CHECK(members.find(1000 + n) == kNone && members.find(-1) == kNone);
        }
}

TEST(members_come_out_as_they_went_in) {
    for (const Index n : {1, 63, 64, 65, 130}) {
        append_and_extract<float>(n, 7, 0.6);
        append_and_extract<double>(n, 7, 0.6);
    }
    append_and_extract<float>(70, 300, 0.02);
    append_and_extract<double>(70, 1, 1.0);
}

TEST(several_members_come_out_as_one_block) {
    const toy::Data<float> data(150, 200, 0.3, 6);
    for (const bool sparse : {false, true}) {
        const Members<float> members = filled(data, sparse, true);
        const Vector<Index> wanted{149, 0, 64, 64, 3};
        Rows<float> rows;
        members.extract(wanted.data(), wanted.size(), rows);
        CHECK(rows.n == 5 && rows.lists);
        for (Index r = 0; r < 5; ++r) {
            Vector<float> x(200, 0.0f);
            for (Index p = rows.begin_of(r); p < rows.end_of(r); ++p)
                x[rows.index[p]] = rows.value[p];
            CHECK(std::equal(x.begin(), x.end(), data.row(wanted[r])));
            CHECK(rows.norms[r] == members.norm(wanted[r]));
        }
    }
}

template <class T>
void compaction(bool sparse) {
    const toy::Data<T> data(300, 9, 0.4, 8);
    Members<T> members = filled(data, sparse, false);
    Compaction compaction;
    Vector<Index> kept;
    for (Index s = 0; s < 300; ++s) {
        if (s >= 64 && (s % 5 == 2 || (s > 100 && s < 180))) {
            members.forget(s);
            continue;
        }
        compaction.add(s);
        kept.push_back(s);
    }
    const Index bytes = members.bytes();
    members.compact(compaction);
    CHECK(members.size() == kept.size());
    CHECK(members.bytes() < bytes);
    CHECK(padding_is_zero(members));
    for (Index s = 0; s < kept.size(); ++s) {
        CHECK(members.ids[s] == 1000 + kept[s]);
        CHECK(members.find(1000 + kept[s]) == s);
        CHECK(holds(members, s, data, kept[s]));
    }
    CHECK(members.find(1000 + 67) == kNone);
    Rows<T> rows;
    const auto order = toy::ascending(300);
    rows.read(data.view(), order.data(), 300, {});
    for (const Index r : {67, 150, 299}) {
        const Index s = members.append(rows, r, 5000 + r);
        CHECK(s == members.size() - 1 && holds(members, s, data, r));
    }
    members.compact(Compaction());
    CHECK(members.size() == 0 && members.find(1000) == kNone);
    CHECK(members.append(rows, 3, 1) == 0 && holds(members, 0, data, 3));
}

TEST(compaction_keeps_the_members_that_stay) {
    for (const bool sparse : {false, true}) {
        compaction<float>(sparse);
        compaction<double>(sparse);
    }
}

template <class T>
void copies_of_some(bool sparse) {
    const toy::Data<T> data(200, 9, 0.4, 8);
    const Members<T> members = filled(data, sparse, false);
    Vector<Index> every_third, all;
    for (Index s = 0; s < 200; ++s) {
        all.push_back(s);
        if (s % 3 == 1) every_third.push_back(s);
    }
    for (const Vector<Index>& at : {Vector<Index>{}, {5}, {0, 199}, every_third, all}) {
        const Members<T> some = members.some(at);
        CHECK(some.size() == at.size() && some.features() == 9 && some.sparse() == sparse);
        CHECK(padding_is_zero(some));
        for (Index s = 0; s < at.size(); ++s) {
            CHECK(some.ids[s] == 1000 + at[s] && some.find(1000 + at[s]) == kNone);
            CHECK_SAY(holds(some, s, data, at[s]), toy::at("another member's copy:", s));
            CHECK(some.norm(s) == members.norm(at[s]));
        }
    }
    for (Index s = 0; s < 200; ++s) CHECK(holds(members, s, data, s));  // which stay as they were
}

TEST(a_copy_of_some_members_holds_these_and_no_others) {
    for (const bool sparse : {false, true}) {
        copies_of_some<float>(sparse);
        copies_of_some<double>(sparse);
    }
}

// A member that waits to be compacted away may be copied too, and a copy may grow.
TEST(a_copy_is_a_store_of_its_own) {
    const toy::Data<float> data(70, 4, 1.0, 2);
    Members<float> members = filled(data, false, false);
    members.forget(3);
    Members<float> some = members.some({2, 3, 69});
    CHECK(holds(some, 1, data, 3) && some.ids[1] == 1003);
    Rows<float> rows;
    const auto order = toy::ascending(70);
    rows.read(data.view(), order.data(), 70, {});
    for (Index r = 0; r < 70; ++r) some.append(rows, r, 5000 + r);
    CHECK(some.size() == 73 && members.size() == 70);
    for (Index r = 0; r < 70; ++r) CHECK(holds(some, 3 + r, data, r));
    CHECK(holds(some, 0, data, 2) && holds(some, 2, data, 69));
    CHECK(members.find(5000) == kNone);
}

TEST(a_forgotten_example_may_come_again) {
    const toy::Data<float> data(3, 2, 1.0, 2);
    Members<float> members = filled(data, false, false);
    members.forget(1);
    CHECK(members.find(1001) == kNone);
    Rows<float> rows;
    const auto order = toy::ascending(3);
    rows.read(data.view(), order.data(), 3, {});
    CHECK(members.append(rows, 1, 1001) == 3);
    CHECK(members.find(1001) == 3);
}

TEST(ids_beyond_double_precision_are_told_apart) {
    const toy::Data<float> data(4, 2, 1.0, 2);
    Members<float> members(2, false);
    Rows<float> rows;
    const auto order = toy::ascending(4);
    rows.read(data.view(), order.data(), 4, {});
    const std::int64_t large = std::int64_t(1) << 60;
    for (Index r = 0; r < 4; ++r) members.append(rows, r, large + r);
    for (Index r = 0; r < 4; ++r) CHECK(members.find(large + r) == r);
}

// Another thread may read full tiles while members are appended.
TEST(full_tiles_never_move) {
    const toy::Data<float> data(300, 5, 0.8, 3);
    for (const bool sparse : {false, true}) {
        Members<float> members(5, sparse);
        Rows<float> rows;
        const auto order = toy::ascending(300);
        rows.read(data.view(), order.data(), 300, {});
        for (Index r = 0; r < 64; ++r) members.append(rows, r, r);
        const Tile<float>* first = &members.tile(0);
        const void* values = sparse ? static_cast<const void*>(first->value.data())
                                    : static_cast<const void*>(first->dense.data());
        for (Index r = 64; r < 300; ++r) members.append(rows, r, r);
        CHECK(&members.tile(0) == first);
        CHECK(values == (sparse ? static_cast<const void*>(first->value.data())
                                : static_cast<const void*>(first->dense.data())));
    }
}

TEST(growing_allocates_once_a_tile) {
    const toy::Data<float> data(64, 8, 1.0, 3);
    Rows<float> rows;
    const auto order = toy::ascending(64);
    rows.read(data.view(), order.data(), 64, {});
    Members<float> members(8, false);
    const long before = allocations;
    constexpr Index n = 6400;
    for (Index r = 0; r < n; ++r) members.append(rows, r % 64, r);
    // One node of the id map each, and a few arrays a tile.
    CHECK_SAY(allocations - before < n + 10 * n / kLanes,
              std::to_string(allocations - before) + " allocations for 6400 members");
}

// --- kernel values against members
// ----------------------------------------------------------------

template <class T>
void values(const Kernel& kernel, double density, bool sparse, BlockKernel callable = nullptr) {
    constexpr Index n = 100, d = 40, rows = 9;
    const toy::Data<T> data(n, d, density, 12), asked(rows, d, density, 13);
    const Members<T> members = filled(data, sparse, false);
    const KernelBlocks<T> blocks(kernel, callable);
    const auto order = toy::ascending(rows);
    Array<float> first;
    for (const bool from_csr : {sparse, true}) {  // sparse members are met by lists only
        Rows<T> block;
        block.read(from_csr ? asked.csr() : asked.view(), order.data(), rows, {});
        Scratch<T> scratch;
        Array<float> all(rows * padded(n), 5.0f), one(kLanes);
        for (Index t = 0; t < tiles_for(n); ++t) {
            blocks.values(block, 0, rows, members.tile(t), scratch, all.data() + t * kLanes,
                          padded(n));
            // The same bits from part of the block: packing is for four rows or more.
            for (const Index part : {1, 3}) {
                Array<float> few(part * kLanes);
                blocks.values(block, 2, part, members.tile(t), scratch, few.data(), kLanes);
                for (Index r = 0; r < part; ++r)
                    CHECK(std::memcmp(few.data() + r * kLanes,
                                      all.data() + (2 + r) * padded(n) + t * kLanes,
                                      std::min(kLanes, n - t * kLanes) * sizeof(float)) == 0);
            }
        }
        for (Index r = 0; r < rows; ++r)
            for (Index s = n; s < padded(n); ++s)
                CHECK_SAY(std::isfinite(all[r * padded(n) + s]) && all[r * padded(n) + s] != 5.0f,
                          "lanes that hold no member must get finite values");
        if (first.empty()) first = all;
        for (Index r = 0; r < rows; ++r)
            CHECK(std::memcmp(first.data() + r * padded(n), all.data() + r * padded(n),
                              n * sizeof(float)) == 0);
    }
    // K(x, x) as a member of its own.
    Rows<T> self;
    for (Index s = 0; s < n; s += 17) {
        members.extract(s, self);
        Scratch<T> scratch;
        Array<float> row(kLanes);
        blocks.values(self, 0, 1, members.tile(s / kLanes), scratch, row.data(), kLanes);
        CHECK(static_cast<double>(row[s % kLanes]) == blocks.diagonal(self, 0));
    }
}

TEST(kernel_values_do_not_depend_on_form_or_shape) {
    for (const KernelKind kind : {KernelKind::linear, KernelKind::rbf, KernelKind::poly,
                                  KernelKind::sigmoid, KernelKind::cosine, KernelKind::tanimoto})
        for (const double density : {0.05, 0.3, 1.0})
            for (const bool sparse : {false, true}) {
                values<float>({kind, 0.3, 0.5, 3}, density, sparse);
                values<double>({kind, 0.3, 0.5, 3}, density, sparse);
            }
}

TEST(a_callable_is_given_whole_blocks) {
    Index most = 0;
    const BlockKernel linear = [&](const double* a, Index m, const double* b, Index n, Index d,
                                   double* out) {
        most = std::max(most, m * n);
        for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) {
                out[i * n + j] = 0;
                for (Index k = 0; k < d; ++k) out[i * n + j] += a[i * d + k] * b[j * d + k];
            }
    };
    values<double>({KernelKind::callable, 1.0, 0.0, 3}, 0.5, false, linear);
    CHECK(most >= 9 * 64);
}

}  // namespace
