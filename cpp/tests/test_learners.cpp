// The algorithms that move one coordinate at a time, on toy streams: whole after every example, one
// model however the stream is cut, and the same after it was saved.

#include "check.hpp"
#include "marginwise/algo/exact_ramp.hpp"
#include "marginwise/algo/gap.hpp"
#include "marginwise/algo/perceptron.hpp"
#include "marginwise/algo/tracking.hpp"
#include "marginwise/model/report.hpp"
#include "toy_stream.hpp"

using namespace marginwise;
using toy::Essence;
using toy::Options;
using toy::Stream;

namespace {

using Make = std::function<std::unique_ptr<Learner<float>>(Dual<float>, ModelSettings)>;

struct Variant {
    const char* name;
    Make make;
};

template <class Algorithm, class Settings>
Variant variant(const char* name, Settings settings) {
    return {name, [settings](Dual<float> dual, ModelSettings common) {
                return std::make_unique<Algorithm>(std::move(dual), std::move(common), settings);
            }};
}

Vector<Variant> variants() {
    GapSettings hinge;
    hinge.clean_every = 17;
    hinge.max_idle = 5;
    GapSettings ramp = hinge, filter = hinge, full = hinge;
    ramp.loss = Loss::ramp;
    ramp.ramp = 0.0;  // many outliers
    filter.loss = Loss::filter;
    full.clean_every = 0;
    TrackingSettings algorithm_2, algorithm_1, support;
    algorithm_1.process = false;
    support.support_only = true;
    return {variant<Gap<float>>("gap, hinge", hinge),
            variant<Gap<float>>("gap, ramp", ramp),
            variant<Gap<float>>("gap, filter", filter),
            variant<Gap<float>>("gap, full", full),
            variant<Tracking<float>>("tracking, algorithm 1", algorithm_1),
            variant<Tracking<float>>("tracking, algorithm 2", algorithm_2),
            variant<Tracking<float>>("tracking, support", support),
            variant<ExactRamp<float>>("exact ramp", ExactRampSettings{}),
            variant<ExactRamp<float>>("exact ramp, few idle", ExactRampSettings{1e-3, 7}),
            variant<Perceptron<float>>("perceptron", PerceptronSettings{}),
            variant<Perceptron<float>>("averaged", PerceptronSettings{0.0, 0, true, false}),
            variant<Perceptron<float>>("budget", PerceptronSettings{0.1, 9, false, false}),
            variant<Perceptron<float>>("aggressive", PerceptronSettings{1.0, 0, false, true})};
}

Vector<Options> many_options() {
    Vector<Options> all(4);
    all[1].classes = 3;
    all[2].sparse = all[2].csr = true;
    all[2].classes = 3;
    all[3].kernel.kind = KernelKind::linear;
    all[3].C = 0.05;
    return all;
}

struct Class {
    Options options;
    Stream stream;
    std::unique_ptr<Learner<float>> learner;

    Class(Index n, const Options& options_, const Variant& variant)
        : options(options_), stream(n, options_), learner(fresh(variant, 1)) {}

    std::unique_ptr<Learner<float>> fresh(const Variant& variant, Index threads) const {
        return variant.make(
            Dual<float>(Members<float>(3, options.sparse), KernelBlocks<float>(options.kernel),
                        options.classes == 2 ? 1 : options.classes, options.cache_bytes, false),
            ModelSettings{{}, 1e300, threads, true});
    }
    void learn(Learner<float>& who, Index begin, Index end) const {
        const Vector<std::int64_t> order = toy::ascending(end);
        CHECK(who.learn(stream.batch(options.csr), order.data() + begin, end - begin, 1e9) ==
              end - begin);
    }
};

template <class Body>
void for_all(Index n, Body body) {
    for (const Variant& variant : variants())
        for (const Options& options : many_options()) {
            Class c(n, options, variant);
            body(c, variant);
        }
}

bool same_output(const Learner<float>& a, const Learner<float>& b) {
    for (Index c = 0; c < a.D.problems(); ++c)
        if (a.output(c) != b.output(c) || a.extra_state(c) != b.extra_state(c)) return false;
    if (report::suspects<float>(a) != report::suspects<float>(b)) return false;
    return Essence<float>(a.D) == Essence<float>(b.D);
}

TEST(whole_after_every_example) {
    for_all(90, [](Class& c, const Variant&) {
        for (Index r = 0; r < 90; ++r) {
            c.learn(*c.learner, r, r + 1);
            c.learner->check(1e-5);
            for (const Subproblem& sub : c.learner->D.subproblems) CHECK(sub.P.bias() == 0.0);
        }
    });
}

TEST(one_model_however_the_stream_is_cut_and_for_any_threads) {
    constexpr Index n = 300;
    for_all(n, [&](Class& c, const Variant& variant) {
        c.learn(*c.learner, 0, n);
        const auto other = c.fresh(variant, 2);
        for (Index begin = 0, step = 1; begin < n; begin += step, step = 2 * step + 1)
            c.learn(*other, begin, std::min(begin + step, n));
        CHECK_SAY(same_output(*c.learner, *other), variant.name);
    });
}

TEST(a_learner_continues_from_its_state) {
    constexpr Index n = 260, stop = 131;
    for_all(n, [&](Class& c, const Variant& variant) {
        Learner<float>& first = *c.learner;
        c.learn(first, 0, stop);
        const State<float> state = save_state<float>(first);
        const auto second = c.fresh(variant, 1);
        restore_state<float>(*second, toy::members_of(state, 3), state);
        CHECK(counters_of(second->D.stats) == state.counters);
        CHECK_SAY(same_output(first, *second), variant.name);
        second->check(1e-5);
        c.learn(first, stop, n);
        c.learn(*second, stop, n);
        CHECK_SAY(same_output(first, *second), variant.name);
    });
}

TEST(a_clone_has_its_own_suspects) {
    for_all(260, [](Class& c, const Variant& variant) {
        c.learn(*c.learner, 0, 130);
        const auto before = report::suspects<float>(*c.learner);
        const std::unique_ptr<Model<float>> clone = c.learner->clone();
        c.learn(*c.learner, 130, 260);
        CHECK_SAY(report::suspects<float>(*clone) == before, variant.name);
        const bool ramped = std::isfinite(c.learner->D.subproblems[0].suspects.ramp);
        CHECK_SAY(std::get<0>(before).empty() != ramped, variant.name);
    });
}

TEST(every_example_is_recorded) {
    for_all(50, [](Class& c, const Variant&) {
        c.learn(*c.learner, 0, 50);
        const Vector<Record> records = std::exchange(c.learner->records, {});
        CHECK(records.size() == 50 * c.learner->D.problems());
        CHECK(records.back().members == c.learner->D.subproblems.back().P.members());
        CHECK(records.back().kernel_evaluations == c.learner->D.total_stats().kernel_evaluations);
        CHECK(c.learner->records.empty());
    });
}

TEST(the_gap_that_is_kept_is_the_gap) {
    for (const Variant& variant : variants()) {
        if (std::string(variant.name).rfind("gap", 0) != 0) continue;
        Class c(200, Options{}, variant);
        for (Index r = 0; r < 200; ++r) {
            c.learn(*c.learner, r, r + 1);
            const double kept = c.learner->records.back().gap;
            const double now = gap_of(c.learner->D.problem(0));
            CHECK_SAY(std::abs(kept - now) <= 1e-9 * (1 + now), toy::at(variant.name, r));
        }
    }
}

TEST(two_coordinates_move_to_the_best_point_of_their_boxes) {
    toy::Random random(3);
    for (Index trial = 0; trial < 2000; ++trial) {
        Problem P;
        for (Index k = 0; k < 2; ++k) {
            const double side = random.around_zero();
            const double alpha =
                side * (trial % 3 == 0 ? double(random.below(2)) : random.uniform());
            P.add(alpha, 2 * random.around_zero(), side == 0 ? 0.5 : side, 1.0 + random.uniform());
        }
        const float k_01 = static_cast<float>(0.99 * random.around_zero());
        const float row[2] = {static_cast<float>(P.diagonal[0]), k_01};
        const double g[2] = {P.g[0], P.g[1]}, start[2] = {P.alpha[0], P.alpha[1]};
        const auto gain = [&](double u, double v) {
            return g[0] * u + g[1] * v -
                   (P.diagonal[0] * u * u + 2 * double(k_01) * u * v + P.diagonal[1] * v * v) / 2;
        };
        const auto [a, b] = move_both(P, {0, row}, 1);
        CHECK(P.lo[0] <= P.alpha[0] && P.alpha[0] <= P.hi[0]);
        CHECK(P.lo[1] <= P.alpha[1] && P.alpha[1] <= P.hi[1]);
        double best = 0;
        for (int i = 0; i <= 40; ++i)
            for (int j = 0; j <= 40; ++j)
                best = std::max(best, gain(P.lo[0] + (P.hi[0] - P.lo[0]) * i / 40 - start[0],
                                           P.lo[1] + (P.hi[1] - P.lo[1]) * j / 40 - start[1]));
        CHECK_SAY(gain(a, b) >= best - 1e-12, toy::at("a better point exists, trial", trial));
    }
}

// Two members of either label in boxes of the given width, with K = 1 on the diagonal and 0.5 off.
Problem pair_in_boxes(double width) {
    Problem P;
    P.add(0.0, 1.0, width, 1.0);
    P.add(0.0, -1.0, -width, 1.0);
    P.find_extremes();
    return P;
}

TEST(no_step_is_lost_in_a_wide_box) {
    Array<float> first(kLanes, 0.0f), second(kLanes, 0.0f);
    first[0] = second[1] = 1.0f;
    first[1] = second[0] = 0.5f;
    for (const double width : {1.0, 1e6, 1e12, 1e20}) {
        Problem pair = pair_in_boxes(width), alone = pair_in_boxes(width);
        CHECK(move_pair(pair, {0, first.data()}, {1, second.data()}));
        const double moved = std::min(width, 2.0);
        CHECK(pair.alpha[0] == moved && pair.alpha[1] == -moved);
        CHECK(std::abs(pair.g[0] - (1 - moved / 2)) < 1e-12);
        CHECK(pair.free == (width > 2 ? 2 : 0));
        CHECK(move_alone(alone, 0) == 1.0 && alone.alpha[0] == 1.0);
    }
}

TEST(passes_in_parts_find_what_one_pass_does) {
    for (const Index n : {100, 4095, 4096, 10000, 40000}) {
        Problem P;
        Array<float> k_i(padded(n), 0.0f), k_j(padded(n), 0.0f);
        for (Index k = 0; k < n; ++k) {
            const std::uint64_t random = splitmix64(static_cast<std::uint64_t>(k));
            const double side = k % 2 == 0 ? -0.5 : 0.5;
            P.add(k % 3 == 0 ? side : 0.0, double(random % 1000) / 100 - 5, side, 1.0);
            k_i[k] = float(random % 101) / 101;
            k_j[k] = float(random % 103) / 103;
        }
        Problem whole = P;
        const simd::Extremes e = table().step(whole.g.data(), k_i.data(), k_j.data(), 0.3,
                                              whole.up.data(), whole.down.data(), padded(n));
        const Index partner = second_order(P, 1, k_i.data(), ThreadPool::alone());
        for (const Index threads : {1, 3}) {
            ThreadPool workers(threads);
            Problem moved = P;
            CHECK(second_order(P, 1, k_i.data(), workers) == partner);
            const simd::Extremes found = step(moved, k_i.data(), k_j.data(), 0.3, workers);
            CHECK(found.i == e.i && found.j == e.j);
            CHECK(found.g_max == e.g_max && found.g_min == e.g_min);
            CHECK(moved.g == whole.g);
        }
    }
}

TEST(g_moves_by_what_alpha_really_changed_by) {
    Array<float> first(kLanes, 0.0f), second(kLanes, 0.0f);
    first[0] = second[1] = 1.0f;
    const double large = 1e13 + 1;  // rounds its neighbours to multiples of 2^-9
    Problem P;
    P.add(large, 0.3, 1e20, 1.0);
    P.add(-0.1, -0.3, -1e20, 1.0);
    P.find_extremes();
    const double before = P.alpha[0] + P.alpha[1];
    CHECK(move_pair(P, {0, first.data()}, {1, second.data()}));
    CHECK(P.g[0] == 0.3 - (P.alpha[0] - large));
    CHECK(std::abs(P.g[1] - (-0.3 - (P.alpha[1] + 0.1))) < 1e-12);
    CHECK(std::abs(P.alpha[0] + P.alpha[1] - before) < 2e-3);
    P.g[0] = 1e-5, P.g[1] = -1e-5;  // too little for alpha to move
    CHECK(!move_pair(P, {0, first.data()}, {1, second.data()}));
}

TEST(loops_give_up) {
    Problem P = pair_in_boxes(1.0);
    StepLimit limit(3);
    CHECK(!limit.reached(P, 1.0) && !limit.reached(P, 1.0) && limit.reached(P, 1.0));
    StepLimit precise(1 << 20);
    Index steps = 0;
    while (!precise.reached(P, resolution(P))) ++steps;
    CHECK(steps < 4096);
    give_up(P, 0.5);
    give_up(P, 0.25);
    CHECK(P.unsolved == 0.5);
}

TEST(exact_ramp_keeps_its_active_set_at_the_step_limit) {
    constexpr Index n = 300;
    Options options;
    options.C = 5;
    const Variant few_steps{"few steps", [](Dual<float> dual, ModelSettings common) {
                                common.most_steps = 3;
                                return std::make_unique<ExactRamp<float>>(
                                    std::move(dual), std::move(common), ExactRampSettings{});
                            }};
    Class c(n, options, few_steps);
    for (Index r = 0; r < n; r += 4) c.stream.label[r] = 1 - c.stream.label[r];
    Problem& P = c.learner->D.problem(0);
    Index limited = 0;
    for (Index r = 0; r < n; ++r) {
        const Vector<Box> before(P.box.begin(), P.box.begin() + P.size);
        P.unsolved = 0.0;
        c.learn(*c.learner, r, r + 1);
        c.learner->check(1e-5);
        if (P.unsolved == 0.0) continue;
        ++limited;
        CHECK_SAY(std::equal(before.begin(), before.end(), P.box.begin()), toy::at("example", r));
    }
    CHECK(limited > n / 10);
    CHECK(report::unsolved<float>(*c.learner) == (P.unsolved > 0));
}

TEST(picks_are_spread_evenly) {
    Vector<Index> hits(10, 0);
    for (std::uint64_t round = 0; round < 2000; ++round)
        for (std::uint64_t step = 0; step < 10; ++step) ++hits[pick_below(10, 42, round, step)];
    for (const Index h : hits) CHECK(h > 1800 && h < 2200);
}

}  // namespace
