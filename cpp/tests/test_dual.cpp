// check() finds every invariant that is broken, and names it.

#include <functional>

#include "check.hpp"
#include "toy_stream.hpp"

using namespace marginwise;
using toy::Options;
using toy::Pupil;

namespace {

using Break = std::function<void(Pupil<double>&)>;

// A learned stream with free, bounded and closed places.
Pupil<double> learned(Index classes) {
    Options options;
    options.classes = classes;
    options.settings.reprocess = 2;
    Pupil<double> learner(150, options);
    learner.learn(0, 150);
    return learner;
}

Index place_where(Problem& P, const std::function<bool(std::size_t)>& wanted) {
    for (Index k = 0; k < P.size; ++k)
        if (wanted(k)) return k;
    throw std::runtime_error("the toy stream has no such place");
}
Index an_open_place(Problem& P) {
    return place_where(P, [&](std::size_t k) { return P.open[k] != 0; });
}
Index a_closed_place(Problem& P) {
    return place_where(P, [&](std::size_t k) { return P.open[k] == 0; });
}
Index a_free_place(Problem& P) {
    return place_where(P, [&](std::size_t k) {
        return P.open[k] && P.alpha[k] > P.lo[k] && P.alpha[k] < P.hi[k];
    });
}
void finds(const std::string& named, const Break& break_it, Index classes = 2) {
    Pupil<double> learner = learned(classes);
    learner.D().check(1e-6);  // whole so far
    break_it(learner);
    CHECK_THROWS("invariant broken: " + named, learner.D().check(1e-6));
}

TEST(a_whole_state_passes) {
    for (const Index classes : {2, 3}) {
        Pupil<double> learner = learned(classes);
        learner.D().check(1e-6);
        CHECK(learner.D().size() > 20);
    }
}

TEST(a_closed_place_with_a_box_is_found) {
    finds("closed places have alpha = lo = hi = 0",
          [](auto& l) { l.P().lo[a_closed_place(l.P())] = -1.0; });
    finds("closed places have alpha = lo = hi = 0",
          [](auto& l) { l.P().alpha[a_closed_place(l.P())] = 0.5; });
}

TEST(a_closed_place_that_may_move_is_found) {
    finds("closed places do not move", [](auto& l) { l.P().up[a_closed_place(l.P())] = 0.0; });
    finds("closed places do not move", [](auto& l) { l.P().down[a_closed_place(l.P())] = 0.0; });
}

TEST(a_place_that_is_not_its_members_is_found) {
    const Break swap = [](auto& l) {
        Subproblem& sub = l.D().subproblems[0];
        const Index s = Index(sub.member[an_open_place(sub.P)]);
        sub.place[s] += 1;
    };
    finds("place[member[k]] == k", swap);
    finds("place[member[k]] == k", swap, 3);
}

TEST(a_weight_that_is_not_alpha_is_found) {
    finds("weight[member[k]] == alpha[k]", [](auto& l) {
        Subproblem& sub = l.D().subproblems[0];
        sub.weight[Index(sub.member[a_free_place(sub.P)])] += 1e-9;
    });
}

TEST(alpha_outside_its_box_is_found) {
    for (const double sign : {-1.0, 1.0})
        finds("lo <= alpha <= hi", [sign](auto& l) {
            Subproblem& sub = l.D().subproblems[0];
            Problem& P = sub.P;
            const Index k = place_where(P, [&](std::size_t p) {
                return P.open[p] && P.alpha[p] == (sign > 0 ? P.hi[p] : P.lo[p]) && P.alpha[p] != 0;
            });
            P.alpha[k] += sign * 1e-9;
            sub.weight[Index(sub.member[k])] = P.alpha[k];
        });
}

TEST(wrong_signs_of_room_are_found) {
    finds("up == 0 iff alpha < hi",
          [](auto& l) { l.P().up[a_free_place(l.P())] = -simd::Extremes::kInfinite; });
    finds("down == 0 iff alpha > lo",
          [](auto& l) { l.P().down[a_free_place(l.P())] = simd::Extremes::kInfinite; });
}

TEST(an_idle_place_that_is_not_listed_is_found) {
    Pupil<double> learner(20, {});
    std::fill(learner.stream.label.begin(), learner.stream.label.end(), 0);
    learner.learn(0, 20);  // one class only: all wait with alpha = 0
    learner.D().check(1e-6);
    learner.P().listed[7] = 0;
    CHECK_THROWS("invariant broken: alpha == 0 is listed in idle", learner.D().check(1e-6));
}

TEST(a_wrong_kernel_row_is_found) {
    finds("rows hold K(k, l)", [](auto& l) {
        const Index k = an_open_place(l.P());
        l.D().row(0, k);
        l.D().subproblems[0].rows.peek(k)->values[k] += 0.25f;
    });
}

TEST(a_wrong_gradient_is_found) {
    finds("g[k] == y[k] - sum_l alpha[l] K(k, l)",
          [](auto& l) { l.P().g[an_open_place(l.P())] += 1e-3; });
}

TEST(a_wrong_count_of_closed_places_is_found) {
    finds("closed counts the closed places", [](auto& l) { ++l.P().closed; });
}

TEST(alphas_that_do_not_sum_to_zero_are_found) {
    Options options;
    options.size = 0.05;  // such small kernel values that g does not show the change
    options.kernel = {KernelKind::linear, 1.0, 0.0, 1};
    Pupil<double> learner(150, options);
    learner.learn(0, 150);
    learner.D().check(0.05);
    Problem& P = learner.P();
    const Index k = an_open_place(P);
    P.alpha[k] = P.alpha[k] == 0 ? (P.lo[k] + P.hi[k]) / 2 : 0.0;
    P.refresh(Index(k));
    P.find_extremes();
    learner.D().weigh(0, Index(k));
    CHECK_THROWS("invariant broken: sum of alpha == 0", learner.D().check(0.05));
}

TEST(extremes_of_another_gradient_are_found) {
    finds("extremes are those of g", [](auto& l) {
        Problem& P = l.P();
        P.extremes.i = P.extremes.i == 0 ? 1 : 0;
    });
    finds("extremes are those of g", [](auto& l) { l.P(2).extremes.j = kNone; }, 3);
}

TEST(a_wrong_count_of_holders_is_found) {
    finds("holders[s] counts the problems that hold s", [](auto& l) {
        ++l.D().holders[Index(l.D().subproblems[0].member[an_open_place(l.P())])];
    });
}

TEST(an_id_that_is_not_found_is_found) {
    finds("find(ids[s]) == s", [](auto& l) {
        l.D().members.forget(Index(l.D().subproblems[0].member[an_open_place(l.P())]));
    });
}

TEST(a_wrong_count_of_the_dead_is_found) {
    finds("dead counts the members that no problem holds", [](auto& l) { ++l.D().dead; });
}

// --- the parts
// ------------------------------------------------------------------------------------

TEST(compaction_changes_no_number) {
    for (const Index classes : {2, 3}) {
        Pupil<double> learner = learned(classes);
        const toy::Essence<double> before(learner.D());
        const Vector<std::int64_t> ids = learner.D().members.ids;
        const Compaction compaction = learner.D().compact();
        CHECK(toy::Essence<double>(learner.D()) == before);
        CHECK(learner.D().dead == 0 && learner.D().size() == compaction.size());
        for (Index s = 0; s < compaction.size(); ++s)
            CHECK(learner.D().members.ids[s] == ids[compaction[s]]);
        learner.D().check(1e-6);
        for (Subproblem& sub : learner.D().subproblems) sub.compact();
        learner.D().check(1e-6);
        CHECK(toy::Essence<double>(learner.D()) == before);
    }
}

TEST(regrading_gives_the_gradient_that_was_kept_up) {
    Pupil<double> learner = learned(3);
    const toy::Essence<double> before(learner.D());
    learner.D().regrade();
    const toy::Essence<double> after(learner.D());
    CHECK(before.ids == after.ids);
    double worst = 0;
    for (Index k = 0; k < before.numbers.size(); ++k)
        worst = std::max(worst, std::abs(before.numbers[k] - after.numbers[k]));
    CHECK(worst < 1e-12);
    learner.D().check(1e-12);
}

TEST(the_objective_is_the_sum_it_stands_for) {
    Pupil<double> learner = learned(2);
    Problem& P = learner.P();
    double expected = 0;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        expected += std::abs(P.alpha[k]);  // alpha y
        const float* row = learner.D().row(0, k);
        for (Index l = 0; l < P.size; ++l)
            if (P.open[l]) expected -= P.alpha[k] * P.alpha[l] * static_cast<double>(row[l]) / 2;
    }
    CHECK(std::abs(learner.D().objective(0) - expected) < 1e-10 * (1 + std::abs(expected)));
}

}  // namespace
