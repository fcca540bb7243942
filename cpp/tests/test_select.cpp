// Selection on toy streams: pools that end where they should, the best of each learned and nothing
// else, and one model however the pass is cut.

#include "check.hpp"
#include "toy_stream.hpp"

using namespace marginwise;
using toy::Essence;
using toy::Options;
using toy::Pupil;

namespace {

constexpr Choice kGradient{Selection::gradient, 7}, kActive{Selection::active, 7},
    kAutoactive{Selection::autoactive, 50};

// A learner in a pass over its stream.
template <class T>
struct Chooser : Pupil<T> {
    Index n;
    Vector<std::uint8_t> seen;

    Chooser(Index n_, const Options& options, const Choice& choice)
        : Pupil<T>(n_, options), n(n_), seen(n_ * this->D().problems(), 0) {
        begin(choice);
    }

    void begin(const Choice& choice) { this->lasvm->begin_pass(choice, seen.data(), n); }

    // Looks at rows [first, end) in one call.
    Index look(Index first, Index end, double seconds = 1e9) {
        const Vector<std::int64_t> order = toy::ascending(end);
        return this->lasvm->select(this->stream.batch(this->options.csr), order.data() + first,
                                   end - first, seconds);
    }

    bool has_seen(Index c, Index id) const { return seen[c * n + id] != 0; }

    Index seen_by(Index c) const {
        return std::count(seen.begin() + c * n, seen.begin() + (c + 1) * n, 1);
    }

    Matrix X() const {
        return this->options.csr ? this->stream.data.csr() : this->stream.data.view();
    }

    // Decision values of all rows, problem by problem in each.
    Vector<double> decisions() const {
        Vector<double> f(seen.size());
        const Matrix rows = X();
        this->lasvm->decision(Sample(rows), f.data());
        return f;
    }
};

// Two and three classes, lists of nonzeros, and each way to take steps.
Vector<Options> many_options() {
    Vector<Options> all(6);
    all[1].classes = 3;
    all[2].classes = 3;
    all[2].sparse = all[2].csr = true;
    all[3].classes = 3;
    all[3].cache_bytes = 0;
    all[3].settings.reprocess = kByGap;
    all[4].settings.reprocess_each = true;
    all[4].settings.delta_max = 0.2;
    all[5].kernel.kind = KernelKind::linear;
    all[5].classes = 4;
    all[5].C = 0.05;
    return all;
}

// What a pool should do, worked out from decision values.
struct Expected {
    Index sampled = 0, inside = 0, best = kNone;
    double score = 0;

    // Takes in a row; returns whether the pool is complete with it.
    bool sample(const Choice& choice, Index row, double y, double f, double delta) {
        const double value = choice.rule == Selection::gradient ? y * f : std::abs(f);
        if (best == kNone || value < score) best = row, score = value;
        ++sampled;
        inside += std::abs(f) < 1 + std::abs(delta) / 2;
        if (choice.rule == Selection::autoactive) return inside == 5 || sampled == 100;
        return sampled == choice.pool_size;
    }
};

// Looks at one row after the other and compares what each problem has learned with what it should.
// Returns how many autoactive pools were complete by five inside, and by a hundred.
std::pair<Index, Index> follow(const Options& options, const Choice& choice, Index n,
                               bool separable = false) {
    Chooser<double> chooser(n, options, choice);
    for (Index r = 0; separable && r < n; ++r)
        chooser.stream.label[r] = chooser.stream.data.row(r)[0] > 0;
    const Index problems = chooser.D().problems();
    Vector<Expected> pools(problems);
    Vector<std::uint8_t> seen = chooser.seen;
    std::pair<Index, Index> complete{0, 0};
    for (Index r = 0; r < n; ++r) {
        const Vector<double> f = chooser.decisions();
        for (Index c = 0; c < problems; ++c) {
            Expected& pool = pools[c];
            const simd::Extremes& e = chooser.P(c).extremes;
            const double y = chooser.D().sign(c, chooser.stream.label[r]);
            Index learned = kNone;
            if (!e.both()) {
                learned = r;  // as they come, while the problem has no pair
            } else if (pool.sample(choice, r, y, f[r * problems + c], e.delta())) {
                learned = pool.best;
                ++(pool.inside == 5 ? complete.first : complete.second);
                pool = Expected();
            }
            if (learned != kNone) seen[c * n + learned] = 1;
        }
        CHECK(chooser.look(r, r + 1) == 1);
        CHECK_SAY(chooser.seen == seen, toy::at("other rows were chosen at row", r));
        chooser.D().check(1e-5);
        if (chooser.seen != seen) return complete;
    }
    CHECK(chooser.D().stats.sampled == n);
    for (Index c = 0; c < problems; ++c)
        if (const Index best = pools[c].best; best != kNone) seen[c * n + best] = 1;
    chooser.lasvm->end_pass();
    CHECK(chooser.seen == seen);
    CHECK(chooser.D().stats.chosen == std::count(seen.begin(), seen.end(), 1));
    chooser.D().check(1e-5);
    return complete;
}

TEST(the_best_of_each_pool_is_learned_and_nothing_else) {
    for (const Options& options : many_options())
        for (const Choice& choice : {kGradient, kActive, kAutoactive, Choice{Selection::active, 1},
                                     Choice{Selection::gradient, 1000}})
            follow(options, choice, 90);
}

TEST(autoactive_pools_end_at_five_within_the_margin_or_at_a_hundred) {
    Options narrow;  // most rows lie far from the boundary
    narrow.kernel.kind = KernelKind::linear;
    narrow.size = 40.0;
    narrow.settings.delta_max = 0.01;
    const auto [by_five, by_hundred] = follow(narrow, kAutoactive, 700, true);
    CHECK(by_five > 0 && by_hundred > 0);
    const auto [five, hundred] = follow(Options(), kAutoactive, 150);
    CHECK(five > 10 && hundred == 0);
}

TEST(what_is_not_learned_leaves_no_trace) {
    for (const Options& options : many_options()) {
        Chooser<float> chooser(300, options, {Selection::active, 100000});
        constexpr Index first = 150;
        chooser.look(0, first);
        for (Index c = 0; c < chooser.D().problems(); ++c) CHECK(chooser.P(c).extremes.both());
        const Essence<float> before(chooser.D());
        const Vector<std::uint8_t> seen = chooser.seen;
        chooser.look(first, 300);
        CHECK(Essence<float>(chooser.D()) == before);
        CHECK(chooser.seen == seen);
        chooser.lasvm->end_pass();
        for (Index c = 0; c < chooser.D().problems(); ++c) CHECK(chooser.seen_by(c) <= first + 1);
        chooser.D().check(1e-5);
    }
}

TEST(what_was_seen_is_not_looked_at_again) {
    for (const Options& options : many_options()) {
        Chooser<float> chooser(200, options, kActive);
        chooser.look(0, 200);
        chooser.lasvm->end_pass();
        const Essence<float> before(chooser.D());
        const std::int64_t chosen = chooser.D().stats.chosen;
        const Vector<std::uint8_t> seen = chooser.seen;
        std::fill(chooser.seen.begin(), chooser.seen.end(), std::uint8_t{1});
        chooser.begin(kActive);
        CHECK(chooser.look(0, 200) == 200);
        chooser.lasvm->end_pass();
        CHECK_SAY(Essence<float>(chooser.D()) == before, "a row was learned twice");
        CHECK(chooser.D().stats.chosen == chosen);

        // With flags as they were: pass after pass, each row is learned once by each problem.
        chooser.seen = seen;
        const Index all = 200 * chooser.D().problems();
        for (Index pass = 0; chooser.D().stats.chosen < all && pass < 300; ++pass) {
            chooser.begin(kActive);
            chooser.look(0, 200);
            chooser.lasvm->end_pass();
        }
        CHECK(chooser.D().stats.chosen == all);
        CHECK(chooser.seen == Vector<std::uint8_t>(all, 1));
        chooser.D().check(1e-5);
    }
}

TEST(flags_of_one_problem_do_not_count_in_another) {
    Chooser<float> chooser(300, many_options()[1], kActive);
    for (Index id = 0; id < 300; ++id) chooser.seen[300 + id] = 1;  // problem 1 knows all
    chooser.look(0, 300);
    chooser.lasvm->end_pass();
    CHECK(chooser.P(1).size == 0);
    CHECK(chooser.P(0).size > 5 && chooser.P(2).size > 5);
    CHECK(chooser.seen_by(0) < 300 && chooser.seen_by(2) < 300);
    chooser.D().check(1e-5);
}

// Two passes, each cut into pieces.
Essence<float> cut_at(const Options& options, const Choice& choice, Index n, Index piece) {
    Chooser<float> chooser(n, options, choice);
    for (Index pass = 0; pass < 2; ++pass) {
        chooser.begin(choice);
        for (Index r = 0; r < n; r += piece) chooser.look(r, std::min(n, r + piece));
        chooser.lasvm->end_pass();
    }
    return Essence<float>(chooser.D());
}

TEST(how_a_pass_is_cut_does_not_matter) {
    for (Options options : many_options())
        for (const Choice& choice : {kGradient, kAutoactive, Choice{Selection::active, 1},
                                     Choice{Selection::active, 90}}) {
            constexpr Index n = 500;  // blocks of 256
            options.threads = 1;
            const Essence<float> whole = cut_at(options, choice, n, n);
            CHECK(whole == cut_at(options, choice, n, 1));
            CHECK(whole == cut_at(options, choice, n, 37));
            options.threads = 3;
            CHECK(whole == cut_at(options, choice, n, n));
            options.cache_bytes = options.cache_bytes == 0 ? 1 << 20 : 0;
            CHECK(whole == cut_at(options, choice, n, 300));
        }
}

TEST(a_deadline_cuts_a_pass_and_nothing_else) {
    constexpr Index n = 1000;
    const Options options = many_options()[1];
    Chooser<float> cut(n, options, kActive), whole(n, options, kActive);
    whole.look(0, n);
    Index looked = 0, calls = 0;
    while (looked < n && calls < n) looked += cut.look(looked, n, 0.0), ++calls;
    CHECK(looked == n && calls > 1);
    CHECK(cut.seen == whole.seen);
    CHECK(Essence<float>(cut.D()) == Essence<float>(whole.D()));
    for (Chooser<float>* chooser : {&cut, &whole}) chooser->lasvm->end_pass();
    CHECK(Essence<float>(cut.D()) == Essence<float>(whole.D()));
}

TEST(pools_of_one_are_plain_learning) {
    Options options;
    options.settings.reprocess = 2;
    Pupil<float> plain(700, options);
    plain.learn(0, 700);
    for (const Selection rule : {Selection::gradient, Selection::active}) {
        Chooser<float> chooser(700, options, {rule, 1});
        chooser.look(0, 700);
        chooser.lasvm->end_pass();
        CHECK(Essence<float>(chooser.D()) == Essence<float>(plain.D()));
    }
}

// Hard to tell apart, and steps enough that members come and go.
Options coming_and_going(Index classes) {
    Options options;
    options.classes = classes;
    options.C = 50.0;
    options.kernel.gamma = 0.3;
    options.settings.delta_max = 0.05;
    return options;
}

TEST(candidates_survive_compaction_by_other_problems) {
    for (const Choice& choice : {Choice{Selection::gradient, 2}, Choice{Selection::active, 3},
                                 Choice{Selection::autoactive, 50}})
        for (const bool sparse : {false, true}) {
            Options options = coming_and_going(4);
            options.sparse = options.csr = sparse;
            constexpr Index n = 1500;
            Chooser<float> chooser(n, options, choice);
            Index shrunk = 0;
            for (Index r = 0; r < n; r += 50) {
                const Index before = chooser.D().size();
                chooser.look(r, r + 50);
                shrunk += chooser.D().size() < before;
                chooser.D().check(1e-3);
            }
            chooser.lasvm->end_pass();
            chooser.D().check(1e-3);
            CHECK_SAY(shrunk > 0, "members were never compacted: the test shows nothing");
            CHECK(chooser.D().total_stats().removed > 64);
            CHECK(Essence<float>(chooser.D()).ids.size() > 20);
        }
}

TEST(candidates_survive_compaction_by_learning_and_finishing) {
    for (const Index classes : {2, 4})
        for (const bool by_finishing : {false, true}) {
            constexpr Index n = 1200;
            Chooser<float> chooser(n, coming_and_going(classes), {Selection::active, 64});
            Index shrunk = 0;
            for (Index r = 0; r < n; r += 60) {  // no pool ends where a piece does
                chooser.look(r, r + 30);
                Index largest = chooser.D().size();
                for (Index k = r + 30; k < r + 60; k += 10) {
                    chooser.learn(k, k + 10);
                    largest = std::max(largest, chooser.D().size());
                }
                if (by_finishing) CHECK(chooser.lasvm->finish(1e-3, 1e9));
                shrunk += chooser.D().size() < largest;
                chooser.D().check(1e-3);
            }
            chooser.lasvm->end_pass();
            chooser.D().check(1e-3);
            CHECK_SAY(shrunk > 0, "members were never compacted: the test shows nothing");
        }
}

TEST(many_insertions_have_room) {
    // Without steps no one leaves. In pools of one each problem takes in each row; the best of a
    // large pool waits while as many are learned.
    for (const Index classes : {2, 3, 9})
        for (const Index pool_size : {1, 1000}) {
            Options options;
            options.classes = classes;
            options.C = 1e-3;
            options.settings.reprocess = 0;
            constexpr Index n = 900;
            Chooser<float> chooser(n, options, {Selection::gradient, pool_size});
            for (Index r = 0; r < n; ++r)
                chooser.stream.label[r] = static_cast<std::int32_t>(r % classes);
            chooser.look(0, pool_size == 1 ? n : 50);
            if (pool_size > 1) chooser.learn(50, n);
            chooser.lasvm->end_pass();
            CHECK(chooser.D().size() > 500);
            chooser.D().check(1e-4);
        }
}

TEST(a_row_beyond_the_limit_stops_a_pass_before_it) {
    Options options;
    options.norm_limit = 4.0;
    Chooser<float> chooser(300, options, kActive);
    chooser.stream.data.dense[3 * 270] = 50.0;
    CHECK(chooser.look(0, 300) == 270);
    CHECK(chooser.lasvm->beyond());
    CHECK(chooser.look(271, 300) == 29);
    CHECK(!chooser.lasvm->beyond());
    chooser.lasvm->end_pass();
    CHECK(!chooser.has_seen(0, 270));
    chooser.D().check(1e-5);
}

TEST(an_empty_pass_changes_nothing) {
    Chooser<float> chooser(10, {}, kActive);
    CHECK(chooser.look(0, 0) == 0);
    chooser.lasvm->end_pass();
    CHECK(chooser.D().size() == 0 && chooser.D().stats.chosen == 0);
    CHECK(chooser.seen == Vector<std::uint8_t>(10, 0));
}

TEST(an_expansion_is_the_difference_of_decisions) {
    for (Options options : many_options()) {
        options.threads = 2;
        Chooser<float> chooser(400, options, kActive);
        const Index problems = chooser.D().problems();
        const Matrix X = chooser.X();
        chooser.look(0, 150);
        const auto alpha = [&] {  // by problem and example
            Vector<double> all(400 * problems, 0.0);
            for (Index c = 0; c < problems; ++c)
                for (Index s = 0; s < chooser.D().size(); ++s)
                    all[c * 400 + chooser.D().members.ids[s]] +=
                        chooser.D().subproblems[c].weight[s];
            return all;
        };
        const auto sums = [&] {  // decision values less the bias
            Vector<double> f = chooser.decisions();
            for (Index r = 0; r < 400; ++r)
                for (Index c = 0; c < problems; ++c) f[r * problems + c] -= chooser.P(c).bias();
            return f;
        };
        Vector<double> change = alpha();
        Vector<double> expanded = sums();
        chooser.look(150, 400);
        const Vector<double> after = sums(), now = alpha();
        for (Index k = 0; k < change.size(); ++k) change[k] = now[k] - change[k];
        const Members<float> packed = chooser.lasvm->pack(X);
        chooser.lasvm->add_expansion(X, change.data(), packed, expanded.data());
        double worst = 0;
        for (Index k = 0; k < after.size(); ++k)
            worst = std::max(worst, std::abs(after[k] - expanded[k]));
        CHECK_SAY(worst < 1e-10, "an expansion is off by " + std::to_string(worst));
        CHECK(now != Vector<double>(now.size(), 0.0));
        const toy::Data<double> wide(2, 5, 1.0, 1);
        CHECK_THROWS("wide", chooser.lasvm->pack(wide.view()));
        CHECK_THROWS(
            "wide", chooser.lasvm->add_expansion(wide.view(), now.data(), packed, expanded.data()));
    }
}

}  // namespace
