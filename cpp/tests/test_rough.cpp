// Rough decision values against exact ones, and learning only what is wanted.

#include <cstring>
#include <map>

#include "check.hpp"
#include "toy_stream.hpp"

using namespace marginwise;
using toy::Essence;
using toy::Options;
using toy::Pupil;

namespace {

constexpr Index kLearned = 200, kRows = 700;  // rows: several blocks of 256

Vector<Options> many_options() {
    Vector<Options> all(7);
    all[1].classes = 3;
    all[2].classes = 3;
    all[2].sparse = all[2].csr = true;
    all[3].csr = true;
    all[4].kernel = {KernelKind::linear, 1.0, 0.0, 3};
    all[4].C = 0.1;
    all[5].kernel = {KernelKind::poly, 0.5, 1.0, 2};
    all[5].C = 0.1;
    all[6].classes = 18;  // more than one group of problems
    return all;
}

// Bound of what single precision may be off by: the sizes of all terms.
template <class T>
Vector<double> slack_of(Pupil<T>& pupil, const Matrix& X) {
    const Index problems = pupil.D().problems(), n = rows_of(X);
    Vector<double> off(n * problems, 0.0);
    Array<float> values(n * pupil.D().size());
    pupil.lasvm->cross_values(pupil.D().members, Sample(X), values.data());
    for (Index r = 0; r < n; ++r)
        for (Index c = 0; c < problems; ++c) {
            double size = 1.0;
            const Array<double> weight = pupil.lasvm->output(c);
            for (Index s = 0; s < pupil.D().size(); ++s)
                size += std::abs(weight[s] * static_cast<double>(values[r * pupil.D().size() + s]));
            off[r * problems + c] = 1e-5 * size;
        }
    return off;
}

template <class T>
void rough_is_exact_but_for_rounding(const Options& options) {
    Pupil<T> pupil(kRows, options);
    pupil.learn(0, kLearned);
    const Index problems = pupil.D().problems();
    const Matrix X = pupil.stream.batch(options.csr).X;
    Vector<double> exact(kRows * problems);
    pupil.lasvm->decision(Sample(X), exact.data());
    const Vector<double> off = slack_of(pupil, X);

    Vector<float> rough(kRows * problems, 99.0f);
    pupil.lasvm->rough_decision(Sample(X), rough.data());
    for (Index k = 0; k < rough.size(); ++k)
        CHECK_SAY(std::abs(static_cast<double>(rough[k]) - exact[k]) <= off[k],
                  toy::at("rough_decision is off at", Index(k)));

    // Rows in another order, and alone, have the same bits.
    Vector<std::int64_t> order;
    for (Index r = kRows - 1; r >= 0; r -= 3) order.push_back(r);
    Vector<float> some(order.size() * problems);
    pupil.lasvm->rough_decision(Sample(X, order.data(), order.size()), some.data());
    for (Index k = 0; k < order.size(); ++k)
        CHECK(std::memcmp(some.data() + k * problems, rough.data() + order[k] * problems,
                          problems * sizeof(float)) == 0);

    // Where they are asked for, and nowhere else.
    toy::Random random(7);
    Vector<std::uint8_t> asked(rough.size());
    for (std::uint8_t& flag : asked) flag = random.uniform() < 0.4;
    Vector<float> where(rough.size(), 99.0f);
    pupil.lasvm->rough_decision_where(X, asked.data(), where.data());
    for (Index k = 0; k < where.size(); ++k)
        CHECK_SAY(asked[k] ? std::abs(static_cast<double>(where[k]) - exact[k]) <= off[k]
                           : where[k] == 99.0f,
                  toy::at("rough_decision_where is off at", Index(k)));
    const Vector<std::uint8_t> none(rough.size(), 0);
    Vector<float> untouched(rough.size(), 99.0f);
    pupil.lasvm->rough_decision_where(X, none.data(), untouched.data());
    for (const float value : untouched) CHECK(value == 99.0f);
}

TEST(rough_decisions_are_the_decisions) {
    for (const Options& options : many_options()) {
        rough_is_exact_but_for_rounding<float>(options);
        rough_is_exact_but_for_rounding<double>(options);
    }
}

TEST(rough_decisions_without_members_are_the_bias) {
    for (const Options& options : many_options()) {
        Pupil<float> pupil(kRows, options);
        const Matrix X = pupil.stream.batch(options.csr).X;
        Vector<float> rough(kRows * pupil.D().problems(), 99.0f), where = rough;
        pupil.lasvm->rough_decision(Sample(X), rough.data());
        const Vector<std::uint8_t> all(rough.size(), 1);
        pupil.lasvm->rough_decision_where(X, all.data(), where.data());
        for (Index k = 0; k < rough.size(); ++k) CHECK(rough[k] == 0.0f && where[k] == 0.0f);
    }
}

TEST(threads_do_not_change_rough_values) {
    for (const Options& options : many_options()) {
        Vector<Vector<float>> found;
        for (const Index threads : {1, 3}) {
            Options more = options;
            more.threads = threads;
            Pupil<float> pupil(kRows, more);
            pupil.learn(0, kLearned);
            const Matrix X = pupil.stream.batch(options.csr).X;
            const Index size = kRows * pupil.D().problems();
            Vector<float> rough(size), where(size, 0.0f);
            pupil.lasvm->rough_decision(Sample(X), rough.data());
            Vector<std::uint8_t> asked(size);
            for (Index k = 0; k < size; ++k) asked[k] = k % 3 == 0;
            pupil.lasvm->rough_decision_where(X, asked.data(), where.data());
            rough.insert(rough.end(), where.begin(), where.end());
            found.push_back(rough);
        }
        CHECK(found[0] == found[1]);
    }
}

TEST(an_expansion_over_centres_is_a_sum_of_cross_values) {
    for (const Options& options : many_options()) {
        Pupil<float> pupil(kRows, options);
        pupil.learn(0, 20);
        const Index problems = 3;
        const Matrix X = pupil.stream.batch(options.csr).X;
        toy::Stream other(90, options, 5);
        const Members<float> centres = pupil.lasvm->pack(other.batch(options.csr).X);
        toy::Random random(3);
        Vector<Array<double>> weight(problems);
        Vector<double> bias;
        for (Array<double>& w : weight) {
            for (Index m = 0; m < 90; ++m) w.push_back(random.around_zero());
            bias.push_back(random.around_zero());
        }
        Vector<float> out(kRows * problems), values(kRows * 90);
        pupil.lasvm->rough_expansion(centres, RoughWeights(weight, bias, 90), Sample(X),
                                     out.data());
        pupil.lasvm->cross_values(centres, Sample(X), values.data());
        for (Index r = 0; r < kRows; ++r)
            for (Index c = 0; c < problems; ++c) {
                double expected = bias[c], size = 1.0;
                for (Index m = 0; m < 90; ++m) {
                    const double term = weight[c][m] * static_cast<double>(values[r * 90 + m]);
                    expected += term;
                    size += std::abs(term);
                }
                CHECK(std::abs(static_cast<double>(out[r * problems + c]) - expected) <=
                      1e-5 * size);
            }
    }
}

TEST(cross_values_are_those_of_the_kernel) {
    const Options options;
    Pupil<double> pupil(100, options);
    const Matrix X = pupil.stream.batch(false).X;
    const Members<double> centres = pupil.lasvm->pack(X);
    Vector<float> values(100 * 100);
    pupil.lasvm->cross_values(centres, Sample(X), values.data());
    for (Index r = 0; r < 100; ++r)
        for (Index m = 0; m < 100; ++m) {
            double distance = 0;
            for (Index k = 0; k < 3; ++k) {
                const double step = pupil.stream.data.row(r)[k] - pupil.stream.data.row(m)[k];
                distance += step * step;
            }
            const double found = static_cast<double>(values[r * 100 + m]);
            CHECK(std::abs(found - std::exp(-distance)) <= 1e-6);
        }
}

TEST(rows_of_another_width_are_refused) {
    Pupil<float> pupil(50, Options{});
    pupil.learn(0, 50);
    const toy::Data<double> narrow(5, 2, 1.0, 1);
    float out[5];
    const std::uint8_t asked[5] = {1, 1, 1, 1, 1};
    CHECK_THROWS("not as wide", (pupil.lasvm->rough_decision(Sample(narrow.view()), out), 0));
    CHECK_THROWS("not as wide", (pupil.lasvm->rough_decision_where(narrow.view(), asked, out), 0));
}

// --- learning what is wanted ---------------------------------------------------------------------

TEST(what_all_problems_want_is_learned_as_ever) {
    for (const Options& options : many_options()) {
        Pupil<float> plain(kRows, options), wanting(kRows, options);
        plain.learn(0, kRows);
        const Index problems = plain.D().problems();
        const Vector<std::uint8_t> all(kRows * problems, 1);
        const auto order = toy::ascending(kRows);
        // In steps that end wherever a deadline is found to have passed.
        Index done = 0;
        while (done < kRows)
            done +=
                wanting.lasvm->learn_wanted(wanting.stream.batch(options.csr), order.data() + done,
                                            all.data() + done * problems, kRows - done, 0.0);
        CHECK(Essence<float>(plain.D()) == Essence<float>(wanting.D()));
        wanting.lasvm->check(1e-4);
    }
}

// alpha and g of what a problem holds, by id.
std::map<std::int64_t, std::pair<double, double>> held(const Dual<float>& D, Index c) {
    std::map<std::int64_t, std::pair<double, double>> found;
    const Subproblem& sub = D.subproblems[c];
    for (Index k = 0; k < sub.P.size; ++k)
        if (sub.P.open[k])
            found[D.members.ids[Index(sub.member[k])]] = {sub.P.alpha[k], sub.P.g[k]};
    return found;
}

// With one problem wanting rows it is a model of two classes, in the place of that problem.
TEST(a_problem_learns_the_rows_that_it_wants) {
    Options three, two;
    three.classes = 3;
    Pupil<float> several(kRows, three), binary(kRows, two);
    toy::Random random(9);
    Vector<std::uint8_t> wanted(kRows * 3, 0);
    Vector<std::int64_t> chosen;
    for (Index r = 0; r < kRows; ++r)
        if (random.uniform() < 0.5) {
            wanted[r * 3 + 1] = 1;
            chosen.push_back(r);
        }
    const auto order = toy::ascending(kRows);
    CHECK(several.lasvm->learn_wanted(several.stream.batch(false), order.data(), wanted.data(),
                                      kRows, 1e9) == kRows);
    for (Index r = 0; r < kRows; ++r) binary.stream.label[r] = several.stream.label[r] == 1;
    binary.lasvm->learn(binary.stream.batch(false), chosen.data(), chosen.size(), 1e9);
    CHECK(held(several.D(), 1) == held(binary.D(), 0) && several.P(1).members() > 20);
    CHECK(several.P(1).bias() == binary.P().bias());
    CHECK(several.P(0).members() == 0 && several.P(2).members() == 0);
    several.lasvm->check(1e-4);
}

TEST(an_example_that_no_problem_wants_leaves_no_trace) {
    for (const Options& options : many_options()) {
        Pupil<float> pupil(kRows, options);
        pupil.learn(0, kLearned);
        const Essence<float> before(pupil.D());
        const Index members = pupil.D().size();
        const Vector<std::uint8_t> none(kRows * pupil.D().problems(), 0);
        const auto order = toy::ascending(kRows);
        CHECK(pupil.lasvm->learn_wanted(pupil.stream.batch(options.csr), order.data(), none.data(),
                                        kRows, 1e9) == kRows);
        CHECK(Essence<float>(pupil.D()) == before && pupil.D().size() == members);
    }
}

// --- memory shared by what is needed -------------------------------------------------------------

// A model of five problems, with little memory for their rows.
Pupil<float> five_problems() {
    Options options;
    options.classes = 5;
    options.cache_bytes = 8 << 20;
    Pupil<float> pupil(kRows, options);
    pupil.learn(0, kRows);
    return pupil;
}

TEST(problems_share_the_memory_for_rows) {
    Pupil<float> pupil = five_problems();
    Dual<float>& D = pupil.D();
    const Index all = Dual<float>::kWorkingBytes + pupil.options.cache_bytes;
    const auto total = [&] {
        Index sum = 0;
        for (const Subproblem& sub : D.subproblems) sum += sub.rows.limit();
        return sum;
    };
    D.divide_cache();
    CHECK(total() <= all + all / 8);  // small changes are not worth the moving
    Index most = 0;
    for (const Subproblem& sub : D.subproblems) most = std::max(most, sub.rows.limit());
    CHECK(most > 2 * all / 5);  // what the others do not need
    for (const Subproblem& sub : D.subproblems) {
        CHECK(sub.rows.most() == all);
        CHECK(sub.rows.limit() >= Dual<float>::kLeastBytes / 2);
        CHECK(sub.rows.bytes() <= std::max(sub.rows.limit(), 16 * sub.rows.width() * 4));
    }
    D.check(1e-4);
}

TEST(problems_that_find_no_room_borrow_in_turn) {
    Pupil<float> pupil = five_problems();
    Dual<float>& D = pupil.D();
    const auto borrowers = [&] {
        Index count = 0;
        for (const Subproblem& sub : D.subproblems) count += sub.borrows;
        return count;
    };
    CHECK(D.lend_cache(2, false) == 0);  // there is room for all
    CHECK(borrowers() == 0);
    const Index width = padded(D.problem(3).size);
    for (Subproblem& sub : D.subproblems) sub.rows = RowCache(0, 4 * width * width);
    const Index lent = D.lend_cache(2, false);
    CHECK(borrowers() > 0 && lent > 0);
    Index total = 2 * lent;
    for (const Subproblem& sub : D.subproblems) total += sub.borrows ? 0 : sub.rows.limit();
    CHECK(total <= 4 * width * width);
    RowCache memory(0);
    for (Index c = 0; c < D.problems(); ++c) {
        D.borrow_rows(c, memory, lent);
        if (D.subproblems[c].borrows) CHECK(D.subproblems[c].rows.limit() == lent);
        for (Index k = 0; k < D.problem(c).size; ++k)
            if (D.problem(c).open[k]) D.row(c, k);
        CHECK(D.subproblems[c].rows.held() > 0);
        D.return_rows(c, memory);
        if (D.subproblems[c].borrows) CHECK(D.subproblems[c].rows.held() == 0);
    }
    D.check(1e-4);
    D.divide_cache();
    CHECK(borrowers() == 0);
}

TEST(rows_fetched_together_are_those_fetched_one_by_one) {
    Pupil<float> pupil = five_problems();
    Dual<float>& D = pupil.D();
    const Index width = padded(D.problem(3).size);
    for (Subproblem& sub : D.subproblems) sub.rows = RowCache(0, 8 * width * width);
    const Index lent = D.lend_cache(1, false);
    Index together = 0;
    RowCache memory(0);
    for (Index c = 0; c < D.problems(); ++c) {
        Subproblem& sub = D.subproblems[c];
        if (!sub.borrows) continue;
        Vector<Vector<float>> expected;
        D.borrow_rows(c, memory, lent);
        for (Index k = 0; k < sub.P.size; ++k) {
            const float* row = sub.P.open[k] ? D.row(c, k) : nullptr;
            expected.emplace_back(row ? Vector<float>(row, row + sub.P.size) : Vector<float>());
        }
        D.return_rows(c, memory);
        const Dual<float>::FeatureRows features(D, ThreadPool::alone());
        D.borrow_rows(c, memory, lent);
        together += D.fetch_all(c);
        for (Index k = 0; k < sub.P.size; ++k)
            for (Index l = 0; l < sub.P.size; ++l)
                if (sub.P.open[k] && sub.P.open[l]) CHECK(D.row(c, k)[l] == expected[k][l]);
        D.return_rows(c, memory);
    }
    CHECK(together > 0);
    D.check(1e-4);
}

}  // namespace
