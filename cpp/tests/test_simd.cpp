// Every function of every table that this processor can run, against plain loops.

#include <algorithm>
#include <cstring>

#include "check.hpp"
#include "marginwise/kernel/rows.hpp"
#include "marginwise/simd/dispatch.hpp"
#include "toy.hpp"

using namespace marginwise;
using simd::Best;
using simd::Extremes;
using simd::Table;

namespace {

Vector<Table> tables() {
    Vector<Table> found;
    for (const std::string& name : cpu_choices()) found.push_back(table_named(name));
    return found;
}

template <class T>
const simd::ProductTable<T>& products_of(const Table& table) {
    if constexpr (sizeof(T) == sizeof(float))
        return table.f32;
    else
        return table.f64;
}

template <class T>
constexpr double kEpsilon = sizeof(T) == sizeof(float) ? 0x1p-23 : 0x1p-52;

bool same_bits(const void* a, const void* b, std::size_t bytes) {
    return std::memcmp(a, b, bytes) == 0;
}

// A feature-major tile of kLanes members from as many rows.
template <class T>
Array<T> tile_of(const toy::Data<T>& members) {
    Array<T> tile(members.cols * kLanes, T(0));
    for (Index lane = 0; lane < members.rows; ++lane)
        for (Index k = 0; k < members.cols; ++k) tile[k * kLanes + lane] = members.row(lane)[k];
    return tile;
}

double exact_dot(const double* a, const double* b, Index n) {
    double sum = 0;
    for (Index k = 0; k < n; ++k) sum += a[k] * b[k];
    return sum;
}
double exact_dot(const float* a, const float* b, Index n) {
    double sum = 0;
    for (Index k = 0; k < n; ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
    return sum;
}

// --- dot products -------------------------------------------------------------------------------

template <class T>
void dots(const Table& table, Index rows, Index d, double density) {
    const std::string where = std::string(table.name) + ", rows " + std::to_string(rows) +
                              ", features " + std::to_string(d);
    const auto& products = products_of<T>(table);
    const toy::Data<T> x(rows, d, density, 1), members(kLanes, d, density, 2);
    const Array<T> tile = tile_of(members);
    Array<T> dense(rows * kLanes), lists(rows * kLanes), alone(kLanes);
    products.dots_dense(x.dense.data(), rows, d, tile.data(), dense.data());

    double worst = 0;
    for (Index r = 0; r < rows; ++r)
        for (Index lane = 0; lane < kLanes; ++lane)
            worst = std::max(worst, std::abs(static_cast<double>(dense[r * kLanes + lane]) -
                                             exact_dot(x.row(r), members.row(lane), d)));
    CHECK_SAY(worst <= kEpsilon<T> * static_cast<double>(d), "dots_dense is off: " + where);

    // Whatever the shape: one row at a time gives the same bits.
    for (Index r = 0; r < rows; ++r) {
        products.dots_dense(x.row(r), 1, d, tile.data(), alone.data());
        CHECK_SAY(same_bits(alone.data(), dense.data() + r * kLanes, kLanes * sizeof(T)),
                  "a row alone gives other bits: " + where);
    }

    // The zero-skipping product, with features in one chunk and in several.
    for (const Index chunk : {d, Index(5), Index(1)}) {
        Vector<std::uint32_t> index, cut;
        Vector<T> value;
        const Index chunks = std::max<Index>(1, (d + chunk - 1) / std::max<Index>(chunk, 1));
        for (Index r = 0; r < rows; ++r) {
            for (Index c = 0; c < chunks; ++c) {
                cut.push_back(static_cast<std::uint32_t>(value.size()));
                for (Index k = c * chunk; k < std::min(d, (c + 1) * chunk); ++k) {
                    if (x.row(r)[k] == T(0)) continue;
                    index.push_back(static_cast<std::uint32_t>(k));
                    value.push_back(x.row(r)[k]);
                }
            }
            cut.push_back(static_cast<std::uint32_t>(value.size()));
        }
        const simd::Lists<T> all{index.data(), value.data(), cut.data(), chunks + 1, chunks, chunk};
        std::fill(lists.begin(), lists.end(), T(77));
        products.dots_lists(all, rows, tile.data(), tile.data(), lists.data());
        CHECK_SAY(same_bits(lists.data(), dense.data(), dense.size() * sizeof(T)),
                  "dots_lists and dots_dense differ: " + where);
    }

    // A list against a scattered row.
    Vector<T> scattered(d);
    for (Index r = 0; r < rows; ++r) {
        std::copy(x.row(r), x.row(r) + d, scattered.begin());
        for (Index lane = 0; lane < kLanes; ++lane) {
            Vector<std::uint32_t> index;
            Vector<T> value;
            for (Index k = 0; k < d; ++k)
                if (members.row(lane)[k] != T(0)) {
                    index.push_back(static_cast<std::uint32_t>(k));
                    value.push_back(members.row(lane)[k]);
                }
            const T found =
                products.dot_gather(index.data(), value.data(), value.size(), scattered.data());
            CHECK_SAY(same_bits(&found, &dense[r * kLanes + lane], sizeof(T)),
                      "dot_gather differs: " + where);
        }
    }
}

TEST(dot_products_agree_in_every_form) {
    for (const Table& table : tables())
        for (const Index rows : {1, 2, 3, 4, 7, 64})
            for (const Index d : {0, 1, 3, 8, 31, 200}) {
                dots<float>(table, rows, d, d % 2 == 0 ? 0.2 : 0.9);
                dots<double>(table, rows, d, d % 2 == 0 ? 0.9 : 0.2);
            }
}

// --- kernels -------------------------------------------------------------------------------------

double kernel_of(const Kernel& kernel, double xy, double xx, double yy) {
    switch (kernel.kind) {
        case KernelKind::rbf:
            return std::exp(-kernel.gamma * std::max(0.0, xx + yy - 2 * xy));
        case KernelKind::poly:
            return std::pow(kernel.gamma * xy + kernel.coef0, kernel.degree);
        case KernelKind::sigmoid:
            return std::tanh(kernel.gamma * xy + kernel.coef0);
        case KernelKind::cosine:
            return xx * yy > 0 ? xy / std::sqrt(xx * yy) : 0.0;
        case KernelKind::tanimoto:
            return xx + yy - xy > 0 ? xy / (xx + yy - xy) : 1.0;
        default:
            return xy;
    }
}

const Vector<Kernel> kKernels{
    {KernelKind::linear, 1.0, 0.0, 3},   {KernelKind::rbf, 0.7, 0.0, 3},
    {KernelKind::rbf, 300.0, 0.0, 3},    {KernelKind::poly, 0.5, 1.0, 4},
    {KernelKind::poly, 0.5, 0.0, 1},     {KernelKind::sigmoid, 0.4, -0.2, 3},
    {KernelKind::sigmoid, 50.0, 0.0, 3}, {KernelKind::cosine, 1.0, 0.0, 3},
    {KernelKind::tanimoto, 1.0, 0.0, 3},
};

template <class T>
void transforms(const Table& table, const Kernel& kernel) {
    constexpr Index rows = 5, stride = 2 * kLanes;
    const auto& products = products_of<T>(table);
    toy::Random random(3);
    Array<T> dots(rows * kLanes), row_norms(rows), lane_norms(kLanes);
    for (T& norm : row_norms) norm = static_cast<T>(random.uniform() * 2);
    for (T& norm : lane_norms) norm = static_cast<T>(random.uniform() * 2);
    row_norms[1] = lane_norms[3] = T(0);  // rows of zeros
    for (Index r = 0; r < rows; ++r)
        for (Index lane = 0; lane < kLanes; ++lane) {
            const double most = std::sqrt(static_cast<double>(row_norms[r]) *
                                          static_cast<double>(lane_norms[lane]));
            dots[r * kLanes + lane] = static_cast<T>(most * random.around_zero());
        }
    Array<float> out(rows * stride, 7.0f), alone(kLanes);
    products.transform(kernel, dots.data(), row_norms.data(), rows, lane_norms.data(), out.data(),
                       stride);
    double worst = 0;
    for (Index r = 0; r < rows; ++r) {
        for (Index lane = 0; lane < kLanes; ++lane) {
            const double expected =
                kernel_of(kernel, static_cast<double>(dots[r * kLanes + lane]),
                          static_cast<double>(row_norms[r]), static_cast<double>(lane_norms[lane]));
            worst =
                std::max(worst, std::abs(static_cast<double>(out[r * stride + lane]) - expected) /
                                    (1 + std::abs(expected)));
            CHECK(out[r * stride + kLanes + lane] == 7.0f);  // nothing between the rows
        }
        products.transform(kernel, dots.data() + r * kLanes, row_norms.data() + r, 1,
                           lane_norms.data(), alone.data(), kLanes);
        CHECK_SAY(same_bits(alone.data(), out.data() + r * stride, kLanes * sizeof(float)),
                  std::string("a row alone is transformed to other bits: ") + table.name);
    }
    // A large gamma multiplies the rounding of the squared distance.
    const double amplified = std::max(1.0, kernel.gamma * 2);
    const double limit = sizeof(T) == sizeof(float) ? 1e-6 * amplified : 1e-7;
    CHECK_SAY(worst <= limit, std::string("kernel values are off by ") + std::to_string(worst) +
                                  " on " + table.name + ", kernel " +
                                  std::to_string(static_cast<int>(kernel.kind)));
}

TEST(kernels_agree_with_their_definition) {
    for (const Table& table : tables())
        for (const Kernel& kernel : kKernels) {
            transforms<float>(table, kernel);
            transforms<double>(table, kernel);
        }
}

template <class T>
void rbf_ends(const Table& table) {
    const auto& products = products_of<T>(table);
    Array<T> dots(kLanes, T(0)), lane_norms(kLanes, T(0));
    Array<float> out(kLanes);
    const T row_norm = T(0);
    for (Index lane = 0; lane < kLanes; ++lane)
        lane_norms[lane] = static_cast<T>(lane < 32 ? lane : 80 * (lane - 31));
    dots[1] = T(3);  // |x - y|^2 < 0 by rounding
    products.transform({KernelKind::rbf, 1.0, 0.0, 3}, dots.data(), &row_norm, 1, lane_norms.data(),
                       out.data(), kLanes);
    CHECK(out[0] == 1.0f);
    CHECK(out[1] == 1.0f);
    for (Index lane = 2; lane < kLanes; ++lane) {
        const double exact = std::exp(-static_cast<double>(lane_norms[lane]));
        const double found = static_cast<double>(out[lane]);
        CHECK_SAY(
            exact > 1e-36 ? std::abs(found - exact) <= 2e-6 * exact : found >= 0 && found <= 1e-36,
            toy::at("exp is off in lane", lane) + " on " + table.name);
    }
}

TEST(rbf_is_one_at_distance_zero_and_zero_far_away) {
    for (const Table& table : tables()) {
        rbf_ends<float>(table);
        rbf_ends<double>(table);
    }
}

// --- passes over the members ---------------------------------------------------------------------

struct Members {
    Array<double> g, up, down, diagonal;
    Array<float> k_i, k_j;

    // Some may go up, some down, some both, some neither; the last of `n` padded are closed.
    Members(Index n, std::uint64_t seed, bool ties) {
        toy::Random random(seed);
        const double infinite = Extremes::kInfinite;
        const double may_move = n == 0 ? 0 : 0.6;
        for (Index s = 0; s < padded(n); ++s) {
            const bool closed = s >= n;
            g.push_back(ties ? static_cast<double>(random.below(3)) : random.around_zero());
            up.push_back(!closed && random.uniform() < may_move ? 0.0 : -infinite);
            down.push_back(!closed && random.uniform() < may_move ? 0.0 : infinite);
            diagonal.push_back(closed ? 0.0 : 1.0 + (ties ? 0.0 : random.uniform()));
            k_i.push_back(closed ? 0.0f : static_cast<float>(ties ? 0.5 : random.around_zero()));
            k_j.push_back(closed ? 0.0f : static_cast<float>(ties ? 0.5 : random.around_zero()));
        }
    }
};

Extremes extremes_by_hand(const Members& m) {
    Extremes e;
    for (Index s = 0; s < m.g.size(); ++s) {
        if (m.up[s] == 0 && (e.i == kNone || m.g[s] > e.g_max)) e.i = s, e.g_max = m.g[s];
        if (m.down[s] == 0 && (e.j == kNone || m.g[s] < e.g_min)) e.j = s, e.g_min = m.g[s];
    }
    return e;
}

bool same(const Extremes& a, const Extremes& b) {
    return a.i == b.i && a.j == b.j && (a.i == kNone || a.g_max == b.g_max) &&
           (a.j == kNone || a.g_min == b.g_min) && a.both() == b.both() && a.delta() == b.delta();
}

const Vector<Index> kSizes{1, 2, 63, 64, 65, 511, 512, 513, 1300};

TEST(extremes_are_found_and_the_first_of_equals_wins) {
    for (const Table& table : tables())
        for (const Index n : kSizes)
            for (const bool ties : {false, true}) {
                const Members m(n, static_cast<std::uint64_t>(n), ties);
                const Extremes found =
                    table.extremes(m.g.data(), m.up.data(), m.down.data(), m.g.size());
                CHECK_SAY(same(found, extremes_by_hand(m)), toy::at(table.name, n));
            }
}

TEST(no_extremes_where_nothing_may_move) {
    for (const Table& table : tables()) {
        Members m(100, 1, false);
        std::fill(m.up.begin(), m.up.end(), -Extremes::kInfinite);
        Extremes e = table.extremes(m.g.data(), m.up.data(), m.down.data(), m.g.size());
        CHECK(e.i == kNone && e.j != kNone && !e.both() && e.delta() == 0.0);
        std::fill(m.down.begin(), m.down.end(), Extremes::kInfinite);
        e = table.extremes(m.g.data(), m.up.data(), m.down.data(), m.g.size());
        CHECK(e.i == kNone && e.j == kNone && e.delta() == 0.0);
        e = table.extremes(m.g.data(), m.up.data(), m.down.data(), 0);
        CHECK(e.i == kNone && e.j == kNone);
    }
}

TEST(a_step_is_an_update_and_a_search) {
    for (const Table& table : tables())
        for (const Index n : kSizes)
            for (const double lambda : {0.0, 0.37, -2.0}) {
                Members m(n, static_cast<std::uint64_t>(n) + 7, false);
                const Array<double> before = m.g;
                const Extremes found = table.step(m.g.data(), m.k_i.data(), m.k_j.data(), lambda,
                                                  m.up.data(), m.down.data(), m.g.size());
                double worst = 0;
                for (Index s = 0; s < m.g.size(); ++s) {
                    const double difference =
                        static_cast<double>(m.k_i[s]) - static_cast<double>(m.k_j[s]);
                    worst = std::max(worst, std::abs(m.g[s] - (before[s] - lambda * difference)));
                }
                CHECK_SAY(worst <= 1e-15 * 8, toy::at("the update is off:", n) + table.name);
                CHECK_SAY(same(found, extremes_by_hand(m)), toy::at("extremes after a step:", n));
            }
}

TEST(a_step_of_both_is_an_update_a_search_and_the_gap) {
    for (const Table& table : tables())
        for (const Index n : kSizes) {
            Members m(n, static_cast<std::uint64_t>(n) + 5, false);
            toy::Random random(static_cast<std::uint64_t>(n));
            Array<double> rise(m.g.size(), 0.0), fall(m.g.size(), 0.0);
            for (Index s = 0; s < m.g.size(); ++s) {
                if (m.up[s] == 0) rise[s] = 0.1 + random.uniform();
                if (m.down[s] == 0) fall[s] = 0.1 + random.uniform();
            }
            const Array<double> before = m.g;
            const simd::Tally found = table.step_both(m.g.data(), m.k_i.data(), 0.4, m.k_j.data(),
                                                      -0.7, {rise.data(), fall.data()}, m.g.size());
            double worst = 0, gap = 0;
            for (Index s = 0; s < m.g.size(); ++s) {
                const double expected = before[s] - 0.4 * static_cast<double>(m.k_i[s]) +
                                        0.7 * static_cast<double>(m.k_j[s]);
                worst = std::max(worst, std::abs(m.g[s] - expected));
                gap += std::max(rise[s] * m.g[s], -fall[s] * m.g[s]);
            }
            CHECK_SAY(worst <= 1e-15 * 8, toy::at("the update is off:", n) + table.name);
            CHECK_SAY(same(found.extremes, extremes_by_hand(m)), toy::at(table.name, n));
            CHECK(std::abs(found.gap - gap) <= 1e-12 * (1 + gap));
            const simd::Tally again =
                table.tally(m.g.data(), {rise.data(), fall.data()}, m.g.size());
            CHECK(same(again.extremes, found.extremes) && again.gap == found.gap);
        }
}

TEST(moments_are_sums_of_products_and_their_squares) {
    for (const Table& table : tables())
        for (const Index n : kSizes) {
            const Members m(n, 13, false);
            double h = 0, h_squared = 0;
            for (Index s = 0; s < m.g.size(); ++s) {
                h += m.diagonal[s] * m.g[s];
                h_squared += m.diagonal[s] * m.g[s] * m.diagonal[s] * m.g[s];
            }
            const simd::Moments found = table.moments(m.g.data(), m.diagonal.data(), m.g.size());
            CHECK(std::abs(found.h - h) <= 1e-12 * (1 + h_squared));
            CHECK(std::abs(found.h_squared - h_squared) <= 1e-12 * (1 + h_squared));
        }
}

TEST(the_best_single_move_gains_most_within_its_box) {
    for (const Table& table : tables())
        for (const Index n : kSizes) {
            const Members m(n, static_cast<std::uint64_t>(n) + 9, false);
            Array<double> alpha(m.g.size(), 0.0), lo = alpha, hi = alpha;
            for (Index s = 0; s < m.g.size(); ++s) {
                if (m.up[s] == 0) hi[s] = 0.3;
                if (m.down[s] == 0) lo[s] = -0.2;
            }
            Best best;
            for (Index s = 0; s < m.g.size(); ++s) {
                if (std::abs(m.g[s]) <= 0.05) continue;
                const double k = std::max(m.diagonal[s], 1e-12);
                const double move = std::clamp(m.g[s] / k, lo[s], hi[s]);
                const double gain = move * (m.g[s] - move * k / 2);
                if (gain > best.gain) best = {static_cast<Index>(s), gain};
            }
            const Best found =
                table.best_gain(m.g.data(), {alpha.data(), lo.data(), hi.data(), m.diagonal.data()},
                                0.05, m.g.size());
            CHECK_SAY(found.s == best.s, toy::at(table.name, n));
            CHECK(std::abs(found.gain - best.gain) <= 1e-12);
        }
}

TEST(second_order_choice_takes_the_largest_gain) {
    for (const Table& table : tables())
        for (const Index n : kSizes)
            for (const bool ties : {false, true}) {
                const Members m(n, static_cast<std::uint64_t>(n) + 3, ties);
                for (const double g_i : {-3.0, 0.4, 3.0}) {
                    Best best;
                    for (Index s = 0; s < m.g.size(); ++s) {
                        const double slope = g_i - m.g[s];
                        if (m.down[s] != 0 || slope <= 0) continue;
                        const double curvature = std::max(
                            1.5 + m.diagonal[s] - 2 * static_cast<double>(m.k_i[s]), 1e-12);
                        if (slope * slope / curvature > best.gain)
                            best = {static_cast<Index>(s), slope * slope / curvature};
                    }
                    const Best found =
                        table.second_order(m.g.data(), m.k_i.data(), m.diagonal.data(),
                                           m.down.data(), g_i, 1.5, m.g.size());
                    CHECK_SAY(found.s == best.s, toy::at(table.name, n));
                    CHECK(std::abs(found.gain - best.gain) <= 1e-12 * best.gain);
                }
            }
}

TEST(single_precision_does_the_same_up_to_rounding) {
    const auto single = [](const Array<double>& a) {
        Array<float> b;
        for (const double x : a) b.push_back(static_cast<float>(x));
        return b;
    };
    for (const Table& table : tables())
        for (const Index n : kSizes) {
            Members m(n, static_cast<std::uint64_t>(n) + 11, false);
            Array<float> g = single(m.g), up = single(m.up), down = single(m.down);
            const Array<float> diagonal = single(m.diagonal);
            for (Index s = 0; s < g.size(); ++s) m.g[s] = static_cast<double>(g[s]);
            const Extremes e = table.extremes_single(g.data(), up.data(), down.data(), g.size());
            CHECK_SAY(same(e, extremes_by_hand(m)), toy::at(table.name, n));
            const Best best = table.second_order_single(g.data(), m.k_i.data(), diagonal.data(),
                                                        down.data(), 0.5f, 1.5f, g.size());
            const Best full = table.second_order(m.g.data(), m.k_i.data(), m.diagonal.data(),
                                                 m.down.data(), 0.5, 1.5, m.g.size());
            CHECK_SAY(std::abs(best.gain - full.gain) <= 1e-5 * full.gain, toy::at("gain", n));
            CHECK((best.s == kNone) == (full.s == kNone));
            const Extremes after = table.step_single(g.data(), m.k_i.data(), m.k_j.data(), 0.37f,
                                                     up.data(), down.data(), g.size());
            table.step(m.g.data(), m.k_i.data(), m.k_j.data(), 0.37, m.up.data(), m.down.data(),
                       m.g.size());
            for (Index s = 0; s < g.size(); ++s) {
                CHECK(std::abs(static_cast<double>(g[s]) - m.g[s]) <=
                      1e-6 * (1 + std::abs(m.g[s])));
                m.g[s] = static_cast<double>(g[s]);
            }
            CHECK_SAY(same(after, extremes_by_hand(m)), toy::at("extremes after a step:", n));
        }
}

TEST(second_order_choice_survives_flat_and_negative_curvature) {
    for (const Table& table : tables()) {
        Members m(70, 5, true);
        std::fill(m.down.begin(), m.down.begin() + 70, 0.0);
        std::fill(m.diagonal.begin(), m.diagonal.end(), 1.0);
        m.k_i[40] = 1.0f;  // curvature 0 with K_ii = 1
        m.k_i[41] = 9.0f;  // below 0
        m.g[40] = m.g[41] = 0.0;
        const Best best = table.second_order(m.g.data(), m.k_i.data(), m.diagonal.data(),
                                             m.down.data(), 5.0, 1.0, m.g.size());
        CHECK(best.s == 40);
        CHECK(std::isfinite(best.gain) && best.gain > 0);
    }
}

TEST(sums_and_updates) {
    for (const Table& table : tables())
        for (const Index n : kSizes) {
            Members m(n, 11, false);
            double expected = 0, size = 0;
            for (Index s = 0; s < m.g.size(); ++s) {
                expected += m.g[s] * static_cast<double>(m.k_i[s]);
                size += std::abs(m.g[s] * static_cast<double>(m.k_i[s]));
            }
            CHECK(std::abs(table.dot(m.g.data(), m.k_i.data(), m.g.size()) - expected) <=
                  1e-14 * (1 + size));
            const Array<double> before = m.g;
            table.add(m.g.data(), m.k_i.data(), -0.75, m.g.size());
            double worst = 0;
            for (Index s = 0; s < m.g.size(); ++s)
                worst = std::max(
                    worst, std::abs(m.g[s] - (before[s] - 0.75 * static_cast<double>(m.k_i[s]))));
            CHECK(worst <= 1e-15);
            Vector<std::int32_t> at;
            for (Index k = 0; k < n; k += 2) at.push_back(static_cast<std::int32_t>(n - 1 - k));
            Vector<float> collected(at.size());
            table.collect(collected.data(), m.k_j.data(), at.data(), at.size());
            for (Index k = 0; k < at.size(); ++k) CHECK(collected[k] == m.k_j[Index(at[k])]);
        }
}

// --- images and rough values ---------------------------------------------------------------------

TEST(images_are_bent_along_their_tangents) {
    for (const Table& table : tables())
        for (const Index n : {0, 1, 7, 8, 63, 64, 65, 784, 1001})
            for (const float thicken : {0.0f, 0.6f, -0.6f}) {
                toy::Random random(static_cast<std::uint64_t>(n) + 1);
                Vector<Vector<float>> a(5, Vector<float>(n));
                for (auto& values : a)
                    for (float& x : values) x = static_cast<float>(2 * random.around_zero());
                const simd::Bending how{1.5f, -0.75f, thicken, -1.0f, 1.25f, 0.125f};
                Vector<float> out(n + 1, 77.0f);
                table.bend(a[0].data(), a[1].data(), a[2].data(), a[3].data(), a[4].data(), how,
                           out.data(), n);
                Index low = 0, high = 0;
                for (Index k = 0; k < n; ++k) {
                    const double x = static_cast<double>(a[1][k]);
                    const double y = static_cast<double>(a[2][k]);
                    const double value = static_cast<double>(a[0][k]) +
                                         1.5 * static_cast<double>(a[3][k]) * x -
                                         0.75 * static_cast<double>(a[4][k]) * y +
                                         static_cast<double>(thicken) * std::sqrt(x * x + y * y);
                    const double kept = std::min(value, 1.25);
                    const double expected = kept < -0.875 ? -1.0 : kept;
                    CHECK_SAY(std::abs(static_cast<double>(out[k]) - expected) <= 4e-6,
                              toy::at("bend is off at", Index(k)) + " on " + table.name);
                    low += out[k] == -1.0f;
                    high += out[k] == 1.25f;
                }
                CHECK(out[n] == 77.0f);
                CHECK(n < 784 || (low > 20 && high > 20));
            }
}

// The first elements are not rounded otherwise than those that fill no vector.
TEST(bending_does_not_depend_on_the_place) {
    for (const Table& table : tables())
        for (const float thicken : {0.0f, 0.3f}) {
            constexpr Index n = 67;
            const float x[5] = {0.3f, 0.7f, -1.1f, 0.9f, 0.45f};
            Vector<Vector<float>> a;
            for (const float value : x) a.emplace_back(n, value);
            Vector<float> out(n, 77.0f);
            table.bend(a[0].data(), a[1].data(), a[2].data(), a[3].data(), a[4].data(),
                       {1.3f, 0.7f, thicken, -9.0f, 9.0f, 0.0f}, out.data(), n);
            for (const float value : out) CHECK(same_bits(&value, &out[0], sizeof value));
        }
}

TEST(a_faint_value_becomes_the_lowest) {
    for (const Table& table : tables()) {
        const Vector<float> image{0.0f, 0.124f, 0.125f, 0.5f, 1.0f, 1.5f, -1.0f};
        const Vector<float> nothing(image.size(), 0.0f);
        Vector<float> out(image.size());
        table.bend(image.data(), nothing.data(), nothing.data(), nothing.data(), nothing.data(),
                   {1.0f, 1.0f, 0.0f, 0.0f, 1.0f, 0.125f}, out.data(), image.size());
        CHECK((out == Vector<float>{0.0f, 0.0f, 0.125f, 0.5f, 1.0f, 1.0f, 0.0f}));
    }
}

TEST(kernel_values_are_weighed_for_all_problems_at_once) {
    for (const Table& table : tables())
        for (const Index rows : {0, 1, 2, 3, 4, 5, 7, 64})
            for (const Index width : {16, 32, 48}) {
                toy::Random random(static_cast<std::uint64_t>(rows + width));
                Array<float> k(rows * kLanes), w(kLanes * width), sums(rows * width);
                for (float& x : k) x = static_cast<float>(random.uniform());
                for (float& x : w) x = static_cast<float>(random.around_zero());
                for (float& x : sums) x = static_cast<float>(random.around_zero());
                const Array<float> before = sums;
                table.weigh(k.data(), rows, w.data(), width, sums.data());
                for (Index r = 0; r < rows; ++r) {
                    double worst = 0;
                    for (Index c = 0; c < width; ++c) {
                        double expected = static_cast<double>(before[r * width + c]);
                        for (Index lane = 0; lane < kLanes; ++lane)
                            expected += static_cast<double>(k[r * kLanes + lane]) *
                                        static_cast<double>(w[lane * width + c]);
                        worst = std::max(
                            worst, std::abs(static_cast<double>(sums[r * width + c]) - expected));
                    }
                    CHECK_SAY(worst <= 64 * 64 * 0x1p-24,
                              toy::at("weigh is off in row", r) + " on " + table.name);
                    // Whatever the shape: a row alone gives the same bits.
                    Array<float> alone(before.begin() + r * width,
                                       before.begin() + (r + 1) * width);
                    table.weigh(k.data() + r * kLanes, 1, w.data(), width, alone.data());
                    CHECK_SAY(
                        same_bits(alone.data(), sums.data() + r * width, width * sizeof(float)),
                        toy::at("other bits alone, row", r) + " on " + table.name);
                }
            }
}

TEST(kernel_values_are_weighed_by_the_problems_that_have_a_member) {
    constexpr Index kProblems = 5, kStride = kLanes + 16;
    for (const Table& table : tables())
        for (const Index rows : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64}) {
            toy::Random random(static_cast<std::uint64_t>(rows));
            Array<float> k(rows * kStride);
            for (float& x : k) x = static_cast<float>(random.uniform());
            Vector<std::uint32_t> begin{0}, problem;
            Vector<double> value;
            for (Index lane = 0; lane < kLanes; ++lane) {
                for (std::uint32_t c = 0; c < kProblems; ++c)
                    if (random.uniform() < 0.4) {
                        problem.push_back(c);
                        value.push_back(random.around_zero());
                    }
                begin.push_back(static_cast<std::uint32_t>(value.size()));
            }
            const simd::Weights weights{begin.data(), problem.data(), value.data()};
            Array<double> sums(kProblems * kLanes, 0.25);
            table.weigh_lists(k.data(), kStride, rows, weights, sums.data());
            for (Index r = 0; r < rows; ++r) {
                Array<double> expected(kProblems, 0.25), alone(kProblems * kLanes, 0.25);
                for (Index lane = 0; lane < kLanes; ++lane)
                    for (std::uint32_t p = begin[lane]; p < begin[lane + 1]; ++p)
                        expected[problem[p]] +=
                            value[p] * static_cast<double>(k[r * kStride + lane]);
                table.weigh_lists(k.data() + r * kStride, kStride, 1, weights, alone.data());
                for (Index c = 0; c < kProblems; ++c) {
                    CHECK_SAY(std::abs(sums[c * kLanes + r] - expected[c]) < 1e-13,
                              toy::at("weigh_lists is off in row", r) + " on " + table.name);
                    CHECK_SAY(sums[c * kLanes + r] == alone[c * kLanes],
                              toy::at("other bits alone, row", r) + " on " + table.name);
                }
            }
        }
}

TEST(a_block_of_a_symmetric_matrix_is_mirrored) {
    constexpr Index n = 3 * kLanes, k = 0, l = 2 * kLanes;
    for (const Table& table : tables()) {
        Array<float> values(n * n, -1.0f);
        Vector<float*> rows;
        for (Index r = 0; r < n; ++r) rows.push_back(values.data() + r * n);
        for (Index u = k; u < k + kLanes; ++u)
            for (Index v = l; v < l + kLanes; ++v) rows[u][v] = static_cast<float>(u * n + v);
        table.mirror(rows.data(), k, l);
        for (Index v = 0; v < n; ++v)
            for (Index u = 0; u < n; ++u) {
                const bool inside = v >= l && u < k + kLanes, source = u >= l && v < k + kLanes;
                const float expected = static_cast<float>(inside ? u * n + v : v * n + u);
                CHECK_SAY(rows[v][u] == (inside || source ? expected : -1.0f),
                          toy::at("mirror is off in row", v) + " on " + table.name);
            }
    }
}

// --- choice of the table -------------------------------------------------------------------------

TEST(tables_are_chosen_by_name) {
    CHECK(cpu_choices().front() == "baseline");
    for (const std::string& name : cpu_choices()) CHECK(table_named(name).name == name);
    CHECK_THROWS("MARGINWISE_CPU is 'z80'", table_named("z80"));
    CHECK_THROWS("baseline", table_named(""));
    bool known = false;
    for (const std::string& name : cpu_choices()) known = known || name == table().name;
    CHECK(known);
}

// --- blocks of examples --------------------------------------------------------------------------

template <class T>
void list_nonzeros(const Table& table, Index n) {
    Vector<T> x(n);
    Vector<double> zeros(n);
    Vector<std::uint32_t> expected;
    for (Index k = 0; k < n; ++k) {
        zeros[k] = k % 2 == 0 ? 0.0 : 0.1;  // which a float is not
        x[k] = k % 3 == 0 ? static_cast<T>(zeros[k]) : static_cast<T>(k % 5 - 2);
        if (static_cast<double>(x[k]) != zeros[k])
            expected.push_back(static_cast<std::uint32_t>(k + 1000));
    }
    Vector<std::uint32_t> found(n + kLanes);
    const Index count =
        products_of<T>(table).nonzeros(x.data(), zeros.data(), n, 1000, found.data());
    found.resize(count);
    CHECK_SAY(found == expected, std::string(table.name) + toy::at(", nonzeros of", n));
}

TEST(nonzeros_are_listed_in_order) {
    for (const Table& table : tables())
        for (const Index n : {0, 1, 7, 8, 9, 64, 100}) {
            list_nonzeros<float>(table, n);
            list_nonzeros<double>(table, n);
        }
}

template <class T, class V>
void blocks(Index n, Index d, double density) {
    const toy::Data<V> data(n, d, density, 9);
    Vector<std::int64_t> order;
    for (Index r = n - 1; r >= 0; r -= 2) order.push_back(r);
    Rows<T> dense, csr;
    dense.read(data.view(), order.data(), order.size(), {});
    csr.read(data.csr(), order.data(), order.size(), {});
    CHECK(dense.n == order.size() && csr.n == order.size() && dense.d == d && csr.d == d);
    CHECK(csr.lists);
    CHECK(same_bits(dense.norms.data(), csr.norms.data(), order.size() * sizeof(T)));
    for (Index r = 0; r < order.size(); ++r) {
        const V* x = data.row(order[r]);
        Vector<T> from_csr(d, T(0)), from_dense(d, T(0));
        for (Index p = csr.begin_of(r); p < csr.end_of(r); ++p)
            from_csr[csr.index[p]] = csr.value[p];
        for (Index p = dense.lists ? dense.begin_of(r) : 0; dense.lists && p < dense.end_of(r); ++p)
            from_dense[dense.index[p]] = dense.value[p];
        if (!dense.lists)
            std::copy(dense.dense.begin() + r * d, dense.dense.begin() + (r + 1) * d,
                      from_dense.begin());
        bool equal = true;
        for (Index k = 0; k < d; ++k)
            equal = equal && from_csr[k] == static_cast<T>(x[k]) &&
                    from_dense[k] == static_cast<T>(x[k]);
        CHECK_SAY(equal, toy::at("row is not what was given:", r));
        // Each row's entries are cut into chunks of ascending features.
        for (Index p = csr.begin_of(r) + 1; p < csr.end_of(r); ++p)
            CHECK(csr.index[p - 1] < csr.index[p]);
        for (Index c = 0; c < csr.chunks(); ++c)
            CHECK(csr.cut[r * csr.stride + c] <= csr.cut[r * csr.stride + c + 1]);
    }
}

TEST(blocks_hold_the_rows_that_were_given) {
    for (const double density : {0.0, 0.05, 0.5, 1.0})
        for (const Index d : {1, 7, 150, 400, 3000}) {
            blocks<float, float>(9, d, density);
            blocks<float, double>(9, d, density);
            blocks<double, float>(9, d, density);
            blocks<double, double>(9, d, density);
        }
}

TEST(features_are_measured_from_the_origin) {
    const toy::Data<double> data(6, 4, 1.0, 4);
    const auto order = toy::ascending(6);
    Rows<float> rows;
    rows.read(data.view(), order.data(), 6, {{0.5, -1.0, 0.0, 1e6}, 2.0});
    for (Index r = 0; r < 6; ++r) {
        CHECK(rows.dense[r * 4] == static_cast<float>((data.row(r)[0] - 0.5) * 2));
        CHECK(rows.dense[r * 4 + 1] == static_cast<float>((data.row(r)[1] + 1) * 2));
        CHECK(rows.dense[r * 4 + 3] == static_cast<float>((data.row(r)[3] - 1e6) * 2));
    }
}

}  // namespace
