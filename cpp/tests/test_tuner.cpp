// The tuner: solutions of a binary problem for several values of C, on parts of the examples.
#include <numeric>

#include "check.hpp"
#include "marginwise/tune/tuner.hpp"

using namespace marginwise;

namespace {

struct Toy {
    Vector<double> X, y;
    Index n, d;

    // Two rings with some labels that are wrong.
    explicit Toy(Index n_, Index d_ = 2) : n(n_), d(d_) {
        for (Index k = 0; k < n; ++k) {
            const double angle = 0.7 * static_cast<double>(k), radius = k % 2 == 0 ? 1.0 : 1.8;
            X.push_back(radius * std::cos(angle) + 0.3 * std::sin(5.1 * static_cast<double>(k)));
            X.push_back(radius * std::sin(angle) + 0.3 * std::cos(3.7 * static_cast<double>(k)));
            for (Index f = 2; f < d; ++f) X.push_back(0.01 * static_cast<double>((k * f) % 7 + 1));
            y.push_back((k % 2 == 0) != (k % 17 == 0) ? 1 : -1);
        }
    }
    Matrix matrix() const { return DenseView<double>{X.data(), n, d}; }
    double kernel(Index k, Index l, double gamma) const {
        double square = 0;
        for (Index f = 0; f < d; ++f)
            square += (X[d * k + f] - X[d * l + f]) * (X[d * k + f] - X[d * l + f]);
        return std::exp(-gamma * square);
    }
};

ModelSpec spec(Index cache_bytes, Index features = 2) {
    ModelSpec made;
    made.kernel = "rbf";
    made.features = features;
    made.cache_bytes = cache_bytes;
    return made;
}

template <class V>
View<V> view(const Vector<V>& values) {
    return {values.data(), values.size()};
}

Vector<std::int64_t> all_of(Index n) {
    Vector<std::int64_t> found(n);
    std::iota(found.begin(), found.end(), std::int64_t(0));
    return found;
}

// f(x) of each solution is that of its coefficients, and these satisfy the optimality conditions.
template <class T>
void check_path(const Toy& toy, const SolutionPath& path, const Vector<double>& weight,
                const Vector<double>& Cs, double gamma, double tau) {
    for (Index c = 0; c < Cs.size(); ++c) {
        Vector<double> alpha(toy.n, 0.0);
        double sum = 0;
        for (Index p = path.begin[c]; p < path.begin[c + 1]; ++p)
            sum += alpha[path.example[p]] = path.alpha[p];
        CHECK(std::abs(sum) < 1e-6 * Cs[c]);
        double most = -1e30, least = 1e30;
        for (Index k = 0; k < toy.n; ++k) {
            const bool looks = k % (1 + toy.n / 200) == 0;
            double f = looks ? path.bias[c] : path.decision.row(c)[k];
            for (Index l = 0; looks && l < toy.n; ++l) f += alpha[l] * toy.kernel(k, l, gamma);
            CHECK(std::abs(f - path.decision.row(c)[k]) < 1e-3 * (1 + Cs[c] / 10));
            const double hi = std::max(0.0, toy.y[k] * Cs[c] * weight[k]);
            const double lo = std::min(0.0, toy.y[k] * Cs[c] * weight[k]);
            CHECK(lo <= alpha[k] && alpha[k] <= hi);
            const double g = toy.y[k] - path.decision.row(c)[k];
            if (alpha[k] < hi) most = std::max(most, g);
            if (alpha[k] > lo) least = std::min(least, g);
        }
        CHECK(most - least <= tau + 1e-9);
        CHECK(path.violation[c] <= tau);
    }
}

Vector<double> weights_without(Index n, Index fold) {
    Vector<double> weight(n, 1.0);
    for (Index k = 0; k < n; ++k) weight[k] = k % 5 == fold ? 0.0 : k % 3 == 0 ? 2.0 : 1.0;
    return weight;
}

template <class T>
void test_solutions(Index n, Index cache_bytes, Index features = 2) {
    const Toy toy(n, features);
    const bool small = n < 1000;
    const Vector<double> Cs = small ? Vector<double>{0.5, 4.0, 64.0} : Vector<double>{0.5, 2.0};
    const double tau = small ? 1e-2 : 5e-2;
    Tuner<T> tuner(spec(cache_bytes, features), toy.matrix());
    tuner.begin(view(all_of(n)), 2);
    const bool again = small || features > 2;
    for (const double gamma : again ? Vector<double>{1.0, 4.0} : Vector<double>{1.0}) {
        tuner.set_gamma(gamma);
        for (const Index fold : {0, 3}) {
            const Vector<double> weight = weights_without(n, fold);
            const SolutionPath part = tuner.follow(view(toy.y), view(weight), view(Cs), tau);
            check_path<T>(toy, part, weight, Cs, gamma, tau);
        }
    }
}

// A fold starts from the solution on the one before: coefficients of new examples are guessed by
// their margin, and the sum stays 0.
void test_fold_start() {
    const Toy toy(600);
    const Vector<double> first = weights_without(toy.n, 0), second = weights_without(toy.n, 3);
    Tuner<double> tuner(spec(64 << 20), toy.matrix());
    tuner.begin(view(all_of(toy.n)), 1);
    const Vector<double> Cs{0.01};
    tuner.follow(view(toy.y), view(first), view(Cs), 1e-2);
    constexpr double kAny = 1e9;  // a violation that takes no step
    const SolutionPath begun = tuner.follow(view(toy.y), view(second), view(Cs), kAny);
    check_path<double>(toy, begun, second, Cs, 1.0, kAny);
    CHECK(begun.alpha.size() > toy.n / 2);
    CHECK(begun.violation[0] < 0.2);
    tuner.set_gamma(2.0);  // whose solution is another
    CHECK(tuner.follow(view(toy.y), view(second), view(Cs), kAny).alpha.empty());
}

// What a few coefficients add up to, against sums by hand.
void test_expansion() {
    const Toy toy(200);
    Tuner<double> tuner(spec(1 << 20), toy.matrix());
    const Vector<std::int64_t> rows{3, 199, 0};
    const Vector<std::int64_t> begin{0, 2, 2, 3};
    const Vector<std::int32_t> example{5, 130, 64};
    const Vector<double> value{2.0, -1.0, 0.5};
    const OwnedMatrix<double> f =
        tuner.expand(view(rows), {view(begin), view(example), view(value)});
    const auto K = [&](Index k, Index l) { return toy.kernel(k, l, 1.0); };
    for (Index r = 0; r < 3; ++r) {
        CHECK(std::abs(f.row(r)[0] - (2 * K(rows[r], 5) - K(rows[r], 130))) < 1e-6);
        CHECK(f.row(r)[1] == 0.0);
        CHECK(std::abs(f.row(r)[2] - 0.5 * K(rows[r], 64)) < 1e-6);
    }
}

TEST(a_tiny_C_does_not_spoil_the_values_above_it) {
    const Toy toy(300);
    const Vector<double> weight(toy.n, 1.0), far = {1e-18, 1e-9, 1.0}, alone = {1.0};
    const Vector<std::int64_t> all = all_of(toy.n);
    Tuner<double> one(spec(1 << 20), toy.matrix()), other(spec(1 << 20), toy.matrix());
    one.begin(view(all), 1);
    other.begin(view(all), 1);
    const SolutionPath path = one.follow(view(toy.y), view(weight), view(far), 1e-4);
    const SolutionPath cold = other.follow(view(toy.y), view(weight), view(alone), 1e-4);
    for (Index k = 0; k < toy.n; ++k)
        CHECK(std::abs(path.decision.row(2)[k] - cold.decision.row(0)[k]) < 1e-2);
}

TEST(a_cancelled_search_ends_at_once) {
    const Toy toy(300);
    const Vector<double> weight(toy.n, 1.0), Cs = {1.0, 10.0};
    Tuner<float> tuner(spec(1 << 20), toy.matrix());
    tuner.begin(view(all_of(toy.n)), 1);
    tuner.cancel();
    CHECK(tuner.follow(view(toy.y), view(weight), view(Cs), 1e-3).seconds.empty());
}

}  // namespace

TEST(solutions_satisfy_the_conditions) {
    test_solutions<float>(150, 64 << 20);
    test_solutions<double>(150, 64 << 20);
    test_solutions<float>(1, 64 << 20);
}
TEST(solutions_by_working_sets) { test_solutions<float>(4200, 256 << 20); }
TEST(solutions_with_room_for_few_rows) { test_solutions<float>(4200, -(51 << 20)); }
TEST(solutions_from_dot_products) {
    test_solutions<float>(150, 64 << 20, 40);
    test_solutions<double>(2500, -(51 << 20), 40);  // room for few rows and few products
}
TEST(folds_start_from_each_other) { test_fold_start(); }
TEST(expansion_is_the_sum_of_kernel_values) { test_expansion(); }
TEST(examples_outside_the_batch_are_refused) {
    const Toy toy(10);
    Tuner<float> tuner(spec(1 << 20), toy.matrix());
    const Vector<std::int64_t> rows{3, 10};
    CHECK_THROWS("outside", tuner.begin(view(rows), 1));
    const Vector<double> none;
    CHECK_THROWS("begin", tuner.follow(view(none), view(none), view(none), 0.1));
}
