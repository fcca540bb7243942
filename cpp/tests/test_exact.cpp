// The exact solution: a factor whose rows come and go, and the conditions of the solution after
// every arrival and every removal, however degenerate the data.

#include "check.hpp"
#include "marginwise/algo/exact/exact.hpp"
#include "toy_stream.hpp"

using namespace marginwise;
using toy::Essence;
using toy::Options;
using toy::Stream;

namespace {

std::unique_ptr<Exact> fresh(const Options& options, ExactSettings settings = {}) {
    return std::make_unique<Exact>(
        Dual<double>(Members<double>(3, options.sparse), KernelBlocks<double>(options.kernel),
                     options.classes == 2 ? 1 : options.classes, 0),
        ModelSettings{{}, 1e300, options.threads, false}, settings, options.cache_bytes);
}

void learn(Exact& model, const Stream& stream, const Options& options, Index begin, Index end) {
    const Vector<std::int64_t> order = toy::ascending(end);
    const Index n = model.learn(stream.batch(options.csr), order.data() + begin, end - begin, 1e9);
    CHECK(n == end - begin);
}

Vector<Options> many_options() {
    Vector<Options> all(6);
    all[1].kernel = {KernelKind::linear, 1.0, 0.0, 1};
    all[2].kernel = {KernelKind::poly, 1.0, 1.0, 2};
    all[2].C = 1e3;
    all[3].classes = 3;
    all[4].csr = all[4].sparse = true;
    all[4].C = 1e-2;
    all[5].cache_bytes = 0;
    all[5].threads = 2;
    return all;
}

double tolerance(const Options& options) { return 1e-9 * (1 + options.C); }

// Features of a few values: many examples are equal, and most lie on common lines.
Stream coarse(Index n, const Options& options) {
    Stream stream(n, options);
    for (double& x : stream.data.dense) x = std::round(2 * x) / 2;
    return stream;
}

}  // namespace

TEST(a_factor_follows_its_matrix) {
    toy::Random random(3);
    Vector<Vector<double>> points;  // by slot; empty for a hole
    Factor factor;
    const auto entry = [&](std::size_t i, std::size_t j) {
        double sum = i == j ? 0.1 : 0.0;
        for (Index k = 0; k < points[i].size() && k < points[j].size(); ++k)
            sum += points[i][k] * points[j][k];
        return sum;
    };
    double worst = 0;
    for (int step = 0; step < 300; ++step) {
        if (factor.rank() > 3 && random.uniform() < 0.45) {
            Index slot = random.below(factor.slots());
            while (factor.is_hole(slot)) slot = (slot + 1) % factor.slots();
            factor.remove(slot);
            points[slot].clear();
        } else {
            points.push_back({random.around_zero(), random.around_zero(), random.around_zero()});
            Vector<double> column;
            for (Index i = 0; i + 1 < points.size(); ++i)
                column.push_back(points[i].empty() ? 0.0 : entry(i, points.size() - 1));
            const double diagonal = entry(points.size() - 1, points.size() - 1);
            factor.append(factor.pivot(column.data(), diagonal), 0.0);
        }
        if (factor.wants_compaction()) factor.compact().apply(points);

        // A beta + beta_b = q and sum beta = 2, over the slots that are not holes
        Vector<double> q;
        for (const auto& point : points) q.push_back(point.empty() ? 0.0 : random.around_zero());
        factor.set_load(q.data());
        Factor::Direction out;
        factor.solve(2.0, out);
        double sum = 0;
        for (Index i = 0; i < points.size(); ++i) {
            sum += out.beta[i];
            if (points[i].empty()) {
                CHECK(out.beta[i] == 0.0);
                continue;
            }
            double left = out.beta_b - q[i];
            for (Index j = 0; j < points.size(); ++j)
                if (!points[j].empty()) left += entry(i, j) * out.beta[j];
            worst = std::max(worst, std::abs(left));
        }
        worst = std::max(worst, std::abs(sum - 2.0));
    }
    CHECK(worst < 1e-10);
}

TEST(a_factor_is_the_same_after_it_was_packed) {
    Factor factor, again;
    const Vector<double> columns[] = {{}, {0.5}, {0.25, 0.75}, {0.125, 0.0, 0.5}};
    for (const auto& column : columns) factor.append(factor.pivot(column.data(), 2.0), 1.0);
    factor.remove(1);
    const Vector<double> packed = factor.packed();
    CHECK(packed.size() == Factor::packed_size(factor.slots()));
    again.unpack(packed.data(), factor.slots());
    CHECK(again.packed() == packed && again.holes() == 1);
}

// K(x, z) = x z for x = 1 of class +1 and x = -1 of class -1, with C = 1: f(x) = x where
// alpha = 1/2 and -1/2, and then g = y - f = 0.
TEST(conditions_of_two_points) {
    const auto two_points = [](double first, double second) {
        Problem P;
        const double f = first - second;
        P.add(first, 1 - f, 1.0, 1.0);
        P.add(second, f - 1, -1.0, 1.0);
        P.find_extremes();
        return P;
    };
    const FreeSet S;
    const ExactSettings settings;

    const Problem solution = two_points(0.5, -0.5);
    const exact::Conditions good(solution, S, settings);
    CHECK(good.balanced() && good.violation() == 0.0 && good.shortfall() == 0.0);
    CHECK(good.objective() == 0.5);
    CHECK(good.target(0) == 1.0 && good.target(1) == -1.0 && good.required_total() == 0.0);

    const Problem start = two_points(0.0, 0.0);  // h = y, and both may move towards it
    const exact::Conditions bad(start, S, settings);
    CHECK(bad.balanced() && bad.violation() == 1.0 && bad.shortfall() == 1.0);

    const Problem uneven = two_points(0.5, 0.0);
    CHECK(!exact::Conditions(uneven, S, settings).balanced());
}

// K(x, x) = 1 and 9, and |alpha| = 1/2 each: the weight is 1/2 (1 + 3) = 2.
TEST(rounding_goes_by_the_size_of_rows) {
    Problem P;
    P.add(0.5, 0.0, 1.0, 1.0);
    P.add(-0.5, 0.0, -1.0, 9.0);
    FreeSet S;
    exact::Rounding rounding(P, S, false);
    rounding.measure();
    CHECK(S.peak == 2.0 && !rounding.drifted());
    CHECK(rounding.norm(0) == 1.0 && rounding.norm(1) == 3.0);
    CHECK(rounding.h_error(1) - 1e-12 > 2.9 * (rounding.h_error(0) - 1e-12));
    CHECK(rounding.alpha_error(0, 1e-20) == 1e-20);  // of a box of width 1
    CHECK(rounding.alpha_error(0, 1e-3) == rounding.h_error(0));

    P.alpha[1] = 0.0;
    rounding.add_move(1, -0.5);
    rounding.follow_peak();
    CHECK(S.peak == 2.0);
    S.peak = 1e6;  // once there was an outlier
    CHECK(rounding.drifted());
}

TEST(the_conditions_hold_after_every_arrival) {
    for (const Options& options : many_options()) {
        const Stream stream(60, options);
        const auto model = fresh(options);
        for (Index r = 0; r < 60; ++r) {
            learn(*model, stream, options, r, r + 1);
            model->check(tolerance(options));
        }
    }
}

TEST(they_hold_after_every_removal) {
    for (const Options& options : many_options()) {
        const Stream stream(60, options);
        const auto model = fresh(options);
        learn(*model, stream, options, 0, 60);
        toy::Random random(5);
        Vector<std::int64_t> ids = stream.ids;
        while (!ids.empty()) {
            const Index at = random.below(ids.size());
            const std::int64_t id = ids[at];
            ids.erase(ids.begin() + at);
            model->forget(&id, 1);
            model->check(tolerance(options));
        }
        CHECK(model->D.members.find(stream.ids[0]) == kNone);
    }
}

TEST(they_hold_on_degenerate_data) {
    for (const double C : {1e-2, 1.0, 1e4})
        for (const KernelKind kind : {KernelKind::linear, KernelKind::poly, KernelKind::rbf}) {
            Options options;
            options.kernel = {kind, 1.0, 1.0, 2};
            options.C = C;
            const Stream stream = coarse(200, options);
            const auto model = fresh(options);
            for (Index r = 0; r < 200; ++r) {
                learn(*model, stream, options, r, r + 1);
                if (r % 3 == 2) model->forget(&stream.ids[r - 2], 1);
                CHECK(model->violation(0) <= tolerance(options));
            }
            model->check(tolerance(options));
            CHECK(model->free_set_of(0).resolved == 0);
        }
}

TEST(forgetting_many_at_once_leads_to_the_same_solution) {
    for (const Options& options : many_options()) {
        const Stream stream(80, options);
        const auto all = fresh(options), some = fresh(options);
        learn(*all, stream, options, 0, 80);
        all->forget(stream.ids.data(), 50);
        learn(*some, stream, options, 50, 80);
        for (Index c = 0; c < all->D.problems(); ++c)
            CHECK(std::abs(all->objective(c) - some->objective(c)) <= tolerance(options));
        all->check(tolerance(options));
    }
}

TEST(leaving_one_out_is_forgetting_it_and_changes_nothing) {
    for (const Options& options : many_options()) {
        const Stream stream(40, options);
        const auto model = fresh(options);
        learn(*model, stream, options, 0, 40);
        const Essence<double> before(model->D);
        const Index problems = model->D.problems();
        Vector<double> said(40 * problems);
        model->leave_one_out(said.data());
        CHECK(Essence<double>(model->D) == before);
        model->check(tolerance(options));
        for (Index r = 0; r < 40; r += 7) {
            const auto other = fresh(options);
            learn(*other, stream, options, 0, 40);
            other->forget(&stream.ids[r], 1);
            Vector<double> f(40 * problems);
            other->decision(stream.batch(options.csr).X, f.data());
            for (Index c = 0; c < problems; ++c) {
                const Index at = r * problems + c;
                CHECK(std::abs(said[at] - f[at]) <= 10 * tolerance(options));
            }
        }
    }
}

TEST(one_model_however_the_stream_is_cut_and_the_rows_are_kept) {
    for (const Options& options : many_options()) {
        const Stream stream(90, options);
        Options other = options;
        other.cache_bytes = options.cache_bytes == 0 ? 1 << 20 : 0;
        other.threads = 3 - options.threads;
        const auto whole = fresh(options), cut = fresh(other);
        learn(*whole, stream, options, 0, 90);
        for (Index r = 0; r < 90; r += 13)
            learn(*cut, stream, other, r, std::min<Index>(r + 13, 90));
        CHECK(Essence<double>(whole->D) == Essence<double>(cut->D));
    }
}

TEST(costs_can_be_scaled) {
    for (const Options& options : many_options()) {
        const Stream stream(60, options);
        const auto model = fresh(options);
        learn(*model, stream, options, 0, 60);
        double C = options.C;
        for (const double factor : {10.0, 0.01, 3.0}) {
            model->scale_costs(factor);
            C *= factor;
            Options scaled = options;
            scaled.C = C;
            const auto other = fresh(scaled);
            learn(*other, Stream(60, scaled), scaled, 0, 60);
            model->check(tolerance(scaled) + tolerance(options));
            for (Index c = 0; c < model->D.problems(); ++c)
                CHECK(std::abs(model->objective(c) - other->objective(c)) <=
                      10 * (tolerance(scaled) + tolerance(options)));
        }
    }
}

TEST(a_sphere_keeps_its_total) {
    for (const double nu : {0.1, 0.5, 1.0, 0.0}) {
        Options options;
        options.C = nu > 0 ? 1.0 : 0.1;
        Stream stream(60, options);
        std::fill(stream.label.begin(), stream.label.end(), 1);
        ExactSettings settings;
        settings.sphere = true;
        settings.nu = nu;
        const auto model = fresh(options, settings);
        for (Index r = 0; r < 60; ++r) {
            learn(*model, stream, options, r, r + 1);
            model->check(1e-10);
        }
        CHECK(std::abs(model->free_set_of(0).total - (nu > 0 ? nu * 60 : 1.0)) < 1e-12);
        model->forget(stream.ids.data(), 55);
        model->check(1e-10);
        CHECK(std::abs(model->free_set_of(0).total - (nu > 0 ? nu * 5 : 0.5)) < 1e-12);
    }
}

TEST(a_window_bounds_each_problem) {
    Options options;
    options.classes = 3;
    const Stream stream(60, options);
    ExactSettings settings;
    settings.window = 12;
    const auto model = fresh(options, settings);
    for (Index r = 0; r < 60; ++r) {
        learn(*model, stream, options, r, r + 1);
        for (Index c = 0; c < 3; ++c)
            CHECK(model->D.problem(c).members() == std::min<Index>(r + 1, 12));
        model->check(1e-9);
    }
}

TEST(an_indefinite_kernel_is_reported_and_solved_by_pairs) {
    Options options;
    options.kernel = {KernelKind::sigmoid, 2.0, -1.0, 1};
    options.C = 10.0;
    const Stream stream(60, options);
    const auto model = fresh(options);
    learn(*model, stream, options, 0, 60);
    CHECK(model->free_set_of(0).indefinite && model->free_set_of(0).resolved > 0);
    model->forget(stream.ids.data(), 20);
    Vector<double> f(60);
    model->decision(stream.batch(false).X, f.data());
    for (const double value : f) CHECK(std::isfinite(value));
}
