// LASVM on toy streams: whole after every example, and one model however the stream is cut.

#include "check.hpp"
#include "toy_stream.hpp"

using namespace marginwise;
using toy::Essence;
using toy::Options;
using toy::Pupil;

namespace {

Vector<Options> many_options() {
    Vector<Options> all;
    for (const Index classes : {2, 3})
        for (const bool sparse : {false, true})
            for (const KernelKind kind :
                 {KernelKind::rbf, KernelKind::linear, KernelKind::cosine}) {
                Options options;
                options.classes = classes;
                options.sparse = options.csr = sparse;
                options.kernel.kind = kind;
                all.push_back(options);
            }
    Options gap;
    gap.settings.reprocess = kByGap;
    Options each;
    each.settings.reprocess_each = true;
    each.settings.delta_max = 0.2;
    Options none;
    none.settings.reprocess = 0;
    Options tight;
    tight.cache_bytes = 0;
    tight.classes = 3;
    Options bounded;
    bounded.C = 0.05;
    for (const Options& options : {gap, each, none, tight, bounded}) all.push_back(options);
    return all;
}

template <class T>
void whole_after_every_example() {
    Index which = 0;
    for (const Options& options : many_options()) {
        constexpr Index n = 80;
        Pupil<T> learner(n, options);
        Vector<double> before(learner.D().problems(), 0.0);
        for (Index r = 0; r < n; ++r) {
            CHECK(learner.learn(r, r + 1) == 1);
            learner.D().check(1e-5);
            for (Index c = 0; c < learner.D().problems(); ++c) {
                const double now = learner.D().objective(c);
                CHECK_SAY(now >= before[c] - 1e-9, toy::at("the dual fell, options", which));
                before[c] = now;
            }
        }
        CHECK(learner.lasvm->finish(1e-4, 1e9));
        learner.D().check(1e-5);
        for (Index c = 0; c < learner.D().problems(); ++c) {
            CHECK(learner.P(c).extremes.delta() <= 1e-4);
            CHECK(learner.D().objective(c) >= before[c] - 1e-9);
        }
        CHECK(learner.D().dead == 0);
        ++which;
    }
}

TEST(single_precision_is_whole_after_every_example) { whole_after_every_example<float>(); }
TEST(double_precision_is_whole_after_every_example) { whole_after_every_example<double>(); }

// Leaves no room for rows, so that they are computed from a problem's own features.
void crowd(Pupil<float>& learner) {
    for (Subproblem& sub : learner.D().subproblems) {
        sub.rows.clear();
        sub.rows.set_limit(1);
    }
}

// Learns and finishes with and without room for rows.
void learns_the_same_in_a_crowd(const Options& options) {
    constexpr Index n = 400;
    Pupil<float> learner(n, options), other(n, options);
    for (Pupil<float>* pupil : {&learner, &other}) pupil->learn(0, 200);
    crowd(learner);
    Dual<float>&D = learner.D(), &whole = other.D();
    for (Index c = 0; c < D.problems(); ++c) {
        CHECK(D.subproblems[c].crowded());
        for (Index k = 0; k < D.problem(c).size; ++k) {
            if (!D.problem(c).open[k]) continue;
            const float *row = D.row(c, k), *same = whole.row(c, k);
            for (Index l = 0; l < D.problem(c).size; ++l)
                CHECK(!D.problem(c).open[l] || row[l] == same[l]);
        }
    }
    for (Pupil<float>* pupil : {&learner, &other}) {
        pupil->learn(200, n);
        pupil->D().check(1e-5);
    }
    crowd(learner);
    for (Pupil<float>* pupil : {&learner, &other}) CHECK(pupil->lasvm->finish(1e-4, 1e9));
    CHECK(Essence<float>(learner.D()) == Essence<float>(other.D()));
}

// Leaves out every member; the problems remain as they were, and no margin rises without its
// example.
template <class T>
void leaves_out(Dual<T>& D) {
    const Essence<T> before(D);
    for (Index c = 0; c < D.problems(); ++c) {
        const Problem& P = D.problem(c);
        for (int round = 0; round < 2; ++round) {
            LeaveOut<T> without(D, c, 1000);
            Index lower = 0;
            for (Index k = 0; k < P.size; ++k) {
                if (!P.open[k]) continue;
                const double y = P.y(k), f = y - P.g[k] + P.bias(), alone = without(k);
                CHECK(alone == without(k));
                CHECK(y * alone <= y * f + 0.05);
                if (P.alpha[k] == 0.0) CHECK(alone == f);
                lower += y * alone < y * f - 1e-3;
            }
            CHECK(lower > P.size / 20);
        }
    }
    CHECK(Essence<T>(D) == before);
    D.check(1e-4);
}

TEST(leaving_out_a_member_lowers_its_margin) {
    for (const Index classes : {2, 3}) {
        Options options;
        options.classes = classes;
        Pupil<float> learner(300, options);
        learner.learn(0, 300);
        CHECK(learner.lasvm->finish(1e-4, 1e9));
        leaves_out(learner.D());
    }
}

TEST(rows_of_crowded_problems_are_those_of_all_members) {
    for (const Index classes : {2, 3})
        for (const bool sparse : {false, true}) {
            Options options;
            options.classes = classes;
            options.sparse = options.csr = sparse;
            learns_the_same_in_a_crowd(options);
        }
}

template <class T>
Essence<T> cut_at(const Options& options, Index n, Index piece) {
    Pupil<T> learner(n, options);
    for (Index r = 0; r < n; r += piece) learner.learn(r, std::min(n, r + piece));
    return Essence<T>(learner.D());
}

TEST(how_a_stream_is_cut_does_not_matter) {
    for (Options options : many_options()) {
        constexpr Index n = 500;  // blocks of 256
        const Essence<float> whole = cut_at<float>(options, n, n);
        CHECK(whole == cut_at<float>(options, n, 1));
        CHECK(whole == cut_at<float>(options, n, 37));
        options.threads = 3;
        CHECK(whole == cut_at<float>(options, n, n));
        options.cache_bytes = options.cache_bytes == 0 ? 1 << 20 : 0;
        CHECK(whole == cut_at<float>(options, n, 300));
    }
}

TEST(a_deadline_cuts_the_stream_and_nothing_else) {
    Options options;
    options.classes = 3;
    constexpr Index n = 1000;
    Pupil<float> learner(n, options);
    Index learned = 0, calls = 0;
    while (learned < n) {
        const Index step = learner.learn(learned, n, 0.0);
        CHECK(step > 0);
        if (step <= 0) return;
        learned += step;
        ++calls;
    }
    CHECK(learned == n && calls > 1);
    CHECK(Essence<float>(learner.D()) == cut_at<float>(options, n, n));
}

TEST(finishing_may_be_cut_by_a_deadline) {
    Options options;
    options.C = 1e4;
    options.settings.reprocess = 0;
    for (const Index classes : {2, 3}) {
        options.classes = classes;
        Pupil<float> cut(300, options), whole(300, options);
        for (Pupil<float>* learner : {&cut, &whole}) learner->learn(0, 300);
        CHECK(whole.lasvm->finish(1e-3, 1e9));
        Index calls = 1;
        while (!cut.lasvm->finish(1e-3, 0.0)) ++calls;
        CHECK(calls > 1);
        CHECK(Essence<float>(cut.D()) == Essence<float>(whole.D()));
        cut.D().check(0.05);
    }
}

TEST(a_finishing_that_is_given_up_leaves_a_whole_state) {
    Options options;
    options.C = 1e4;
    options.settings.reprocess = 0;
    for (const Index classes : {2, 3}) {
        options.classes = classes;
        Pupil<double> learner(300, options);
        learner.learn(0, 200);
        double before = 0;
        for (Index c = 0; c < learner.D().problems(); ++c) before += learner.D().objective(c);
        CHECK(!learner.lasvm->finish(1e-9, 0.0));
        learner.lasvm->end_finish();
        learner.D().check(1e-4);
        double after = 0;
        for (Index c = 0; c < learner.D().problems(); ++c) after += learner.D().objective(c);
        CHECK(after >= before);
        learner.learn(200, 300);
        learner.D().check(1e-4);
        learner.lasvm->end_finish();  // nothing to end
    }
}

TEST(a_restored_state_goes_on_as_if_never_stopped) {
    for (const Index classes : {2, 3})
        for (const bool sparse : {false, true}) {
            Options options;
            options.classes = classes;
            options.sparse = options.csr = sparse;
            constexpr Index n = 400, stop = 230;
            Pupil<float> learner(n, options);
            learner.learn(0, stop);
            Dual<float>& D = learner.D();
            const State<float> state = save_state<float>(*learner.lasvm);
            CHECK(state.sparse == sparse && state.ids.size() == D.size());
            Pupil<float> other(n, options);
            restore_state<float>(*other.lasvm, toy::members_of(state, 3), state);
            other.D().check(1e-5);
            CHECK(Essence<float>(other.D()) == Essence<float>(D));
            learner.learn(stop, n);
            other.learn(stop, n);
            CHECK(Essence<float>(other.D()) == Essence<float>(learner.D()));
            learner.lasvm->finish(1e-4, 1e9);
            other.lasvm->finish(1e-4, 1e9);
            CHECK(Essence<float>(other.D()) == Essence<float>(learner.D()));
        }
}

TEST(a_row_beyond_the_limit_stops_the_stream_before_it) {
    Options options;
    options.norm_limit = 4.0;
    Pupil<float> learner(300, options);
    learner.stream.data.dense[3 * 270] = 50.0;
    CHECK(learner.learn(0, 300) == 270);
    CHECK(learner.lasvm->beyond());
    CHECK(learner.learn(271, 300) == 29);
    CHECK(!learner.lasvm->beyond());
    learner.stream.data.dense[0] = 50.0;
    CHECK(learner.learn(0, 1) == 0);
    CHECK(learner.lasvm->beyond());
    learner.D().check(1e-5);
}

TEST(an_empty_stream_changes_nothing) {
    Pupil<float> learner(10, {});
    CHECK(learner.learn(0, 0) == 0);
    CHECK(learner.lasvm->finish(1e-3, 1e9));
    CHECK(learner.D().size() == 0 && learner.P().bias() == 0.0);
    learner.D().check(1e-9);
}

TEST(one_class_waits_and_no_one_leaves) {
    Pupil<float> learner(1100, {});
    std::fill(learner.stream.label.begin(), learner.stream.label.end(), 1);
    learner.learn(0, 1100);
    CHECK(learner.D().size() == Lasvm<float>::kMostWaiting);
    CHECK(learner.P().bias() == 1.0);
    CHECK(learner.lasvm->finish(1e-3, 1e9));
    CHECK(learner.D().size() == Lasvm<float>::kMostWaiting);
}

// Rows enough for several windows, most of whose members end at their bound.
Options noisy(Index classes) {
    Options options;
    options.classes = classes;
    options.C = 0.2;
    return options;
}

TEST(windows_leave_a_whole_model) {
    for (const Index classes : {2, 3})
        for (const bool sparse : {false, true}) {
            Options options = noisy(classes);
            options.sparse = options.csr = sparse;
            Pupil<float> learner(3000, options);
            Vector<float> distance(3000);
            CHECK(learner.look_ahead(0, 3000, distance) == 3000);
            bool slept = false;
            for (const Subproblem& sub : learner.D().subproblems)
                slept = slept || !sub.asleep.empty();
            CHECK_SAY(slept, "no member sleeps: no test");
            learner.lasvm->rest();
            learner.D().check(1e-4);
            CHECK(learner.lasvm->finish(1e-4, 1e9));
            learner.D().check(1e-4);
            for (Index c = 0; c < learner.D().problems(); ++c)
                CHECK(learner.P(c).extremes.delta() <= 1e-4);
        }
}

TEST(adopted_rows_are_solved_as_a_whole) {
    for (const Index classes : {2, 3})
        for (const bool sparse : {false, true}) {
            const auto learned = [&](Index threads, Index cache_bytes, double seconds) {
                Options options = noisy(classes);
                options.sparse = options.csr = sparse;
                options.threads = threads;
                options.cache_bytes = cache_bytes;
                Pupil<float> learner(1000, options);
                CHECK(learner.adopt(1000));
                CHECK(learner.D().size() == 1000);
                CHECK_SAY(!learner.adopt(1000), "a model with members adopted rows");
                while (!learner.lasvm->finish(1e-4, seconds)) {
                }
                learner.D().check(1e-4);
                for (Index c = 0; c < learner.D().problems(); ++c)
                    CHECK(learner.P(c).extremes.delta() <= 1e-4);
                Vector<float> distance(1000);
                learner.look_ahead(0, 1000, distance, 1e9, false);
                for (const float far : distance) CHECK_SAY(far > -1e-3f, "a row violates");
                learner.lasvm->rest();
                return Essence<float>(learner.D());
            };
            const Essence<float> plain = learned(1, 1 << 20, 1e9);
            CHECK(learned(3, 1 << 20, 1e9) == plain);
            CHECK(learned(1, 0, 1e9) == plain);
            CHECK(learned(2, 0, 0.0) == plain);
        }
}

TEST(a_function_is_called_for_large_blocks_of_adopted_rows) {
    std::atomic<Index> calls{0}, values{0};
    Options options = noisy(3);
    options.kernel.kind = KernelKind::callable;
    options.callable = [&](const double* a, Index m, const double* b, Index n, Index d,
                           double* out) {
        ++calls;
        values += m * n;
        for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) {
                double squared = 0;
                for (Index k = 0; k < d; ++k) squared += std::pow(a[i * d + k] - b[j * d + k], 2);
                out[i * n + j] = std::exp(-squared);
            }
    };
    const auto learned = [&](Index threads, double seconds) {
        options.threads = threads;
        calls = values = 0;
        Pupil<double> learner(1000, options);
        CHECK(learner.adopt(1000));
        while (!learner.lasvm->finish(1e-4, seconds)) {
        }
        CHECK(calls < 40 && values < 700 * 1000);
        learner.D().check(1e-4);
        for (Index c = 0; c < 3; ++c) CHECK(learner.P(c).extremes.delta() <= 1e-4);
        return Essence<double>(learner.D());
    };
    const Essence<double> plain = learned(1, 1e9);
    CHECK(learned(2, 0.0) == plain);
}

TEST(rows_beyond_the_limit_are_not_adopted) {
    Options options;
    options.norm_limit = 4.0;
    Pupil<float> learner(300, options);
    learner.stream.data.dense[3 * 270] = 50.0;
    CHECK(!learner.adopt(300));
    CHECK(learner.lasvm->beyond() && learner.D().size() == 0);
    CHECK(learner.adopt(270));
    CHECK(!learner.lasvm->beyond() && learner.D().size() == 270);
}

TEST(windows_do_not_depend_on_clock_threads_or_cache) {
    for (const Index classes : {2, 3}) {
        const auto learned = [&](Index threads, Index cache_bytes, double seconds) {
            Options options = noisy(classes);
            options.threads = threads;
            options.cache_bytes = cache_bytes;
            Pupil<float> learner(2000, options);
            Vector<float> distance(2000);
            for (Index done = 0; done < 2000;)
                done += learner.look_ahead(done, 2000, distance, seconds);
            learner.lasvm->rest();
            return Essence<float>(learner.D());
        };
        const Essence<float> plain = learned(1, 1 << 20, 1e9);
        CHECK(learned(3, 1 << 20, 1e9) == plain);
        CHECK(learned(1, 0, 1e9) == plain);
        CHECK(learned(1, 1 << 20, 0.0) == plain);
    }
}

TEST(distances_are_those_from_violating) {
    Pupil<float> learner(900, noisy(2));
    Vector<float> distance(900);
    learner.look_ahead(0, 600, distance);
    learner.lasvm->finish(1e-3, 1e9);
    const simd::Extremes e = learner.P().extremes;
    Vector<double> f(900);
    learner.lasvm->decision(learner.stream.data.view(), f.data());
    const double b = learner.P().bias();
    learner.look_ahead(600, 900, distance);
    for (Index r = 600; r < 856; ++r) {  // the first block, judged by the finished model
        const double y = learner.stream.label[r] == 1 ? 1 : -1;
        const double g = y - (f[r] - b);
        const double gap = y > 0 ? g - e.g_min : e.g_max - g;
        CHECK(std::abs(-gap - static_cast<double>(distance[r])) < 1e-4);
    }
}

TEST(a_value_does_not_depend_on_the_rows_beside_it) {
    for (const Index classes : {2, 3}) {
        Options options;
        options.classes = classes;
        Pupil<float> learner(400, options);
        learner.learn(0, 400);
        const Index problems = learner.D().problems();
        Vector<double> together(400 * problems), alone(problems);
        learner.lasvm->decision(learner.stream.data.view(), together.data());
        for (Index r = 0; r < 400; r += 13) {
            const toy::Data<double>& data = learner.stream.data;
            Matrix row = data.view();
            std::get<DenseView<double>>(row) = {data.row(r), 1, data.cols};
            learner.lasvm->decision(row, alone.data());
            for (Index c = 0; c < problems; ++c) CHECK(alone[c] == together[r * problems + c]);
        }
        // f(x) = y - g + b for members
        Subproblem& sub = learner.D().subproblems[0];
        for (Index k = 0; k < sub.P.size; ++k) {
            if (!sub.P.open[k]) continue;
            const std::int64_t id = learner.D().members.ids[Index(sub.member[k])];
            const double y = sub.P.hi[k] > 0 ? 1 : -1;
            CHECK(std::abs(together[id * problems] - (y - sub.P.g[k] + sub.P.bias())) < 1e-5);
        }
    }
}

}  // namespace
