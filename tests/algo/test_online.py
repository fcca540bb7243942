"""LASVM worked by hand on two to four points.

Signed alpha; g = y - sum_t alpha_t K(s, t); a pair (i, j) has alpha_i < B_i and alpha_j > A_j;
its step is lambda = min((g_i - g_j) / (K_ii + K_jj - 2 K_ij), B_i - alpha_i, alpha_j - A_j).
Gradients are compared less b: where features are centred, all g and b move by one constant.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginwise import OnlineSVC
from tests.support import core_state, held

E = np.eye(6)  # orthogonal unit vectors: with the linear kernel, K is the identity


def learner(**params: object) -> OnlineSVC:
    return OnlineSVC(**{"kernel": "linear", "C": 10.0, "gamma": 1.0, **params})


def feed(model: OnlineSVC, *examples: tuple[object, int]) -> OnlineSVC:
    """Give examples (x, y) one at a time; a number stands for a row of one feature."""
    for x, y in examples:
        model.partial_fit([np.atleast_1d(x)], [y], classes=[-1, 1])
    return model


def slopes(model: OnlineSVC, problem: int = 0) -> dict[int, float]:
    """g - b of the members, by id."""
    b = float(model._engine.native.bias()[problem])
    return {id_: g - b for id_, g in held(model, "g", problem).items()}


def bias_and_delta(model: OnlineSVC) -> tuple[float, float]:
    return float(model.intercept_[0]), model._engine.delta


# -- two points -----------------------------------------------------------------------------------


def test_two_points_linear() -> None:
    # x = 1 and -1: g = (1, -1), curvature 1 + 1 + 2 = 4, lambda = 2/4; then w = 1 and g = (0, 0).
    model = feed(learner(), (1.0, +1), (-1.0, -1))
    assert held(model) == {0: 0.5, 1: -0.5}
    assert slopes(model) == {0: 0.0, 1: 0.0}
    assert bias_and_delta(model) == (0.0, 0.0)
    # W = sum alpha y - |w|^2 / 2 = 1 - 1/2
    assert model.dual_objective() == 0.5
    assert model.decision_function([[1.0], [-1.0], [3.0]]).tolist() == [1.0, -1.0, 3.0]


def test_two_points_rbf() -> None:
    # K = 1/2 between them: curvature 1 + 1 - 1, lambda = 2; g = 1 - 2 (1 - 1/2) = 0.
    model = feed(learner(kernel="rbf", gamma=math.log(2)), (0.0, +1), (1.0, -1))
    assert held(model) == pytest.approx({0: 2.0, 1: -2.0}, rel=1e-6)
    assert slopes(model) == pytest.approx({0: 0.0, 1: 0.0}, abs=1e-6)
    # W = 4 - (4 + 4 - 2 * 4 / 2) / 2
    assert model.dual_objective() == pytest.approx(2.0, rel=1e-6)
    assert bias_and_delta(model) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_step_is_clipped_at_its_bound() -> None:
    # lambda = min(1/2, C, C) = 1/4: w = 1/2, g = (1/2, -1/2). Both at their bound: now only the
    # negative may go up (g_max = -1/2) and only the positive down (g_min = 1/2).
    model = feed(learner(C=0.25), (1.0, +1), (-1.0, -1))
    assert held(model) == {0: 0.25, 1: -0.25}
    assert slopes(model) == {0: 0.5, 1: -0.5}
    assert bias_and_delta(model) == (0.0, -1.0)
    assert model.dual_objective() == 0.5 - 0.25 / 2


def test_rbf_step_is_clipped_at_its_bound() -> None:
    # lambda = min(2, 3/2): g = 1 - 3/2 * 1/2 = 1/4.
    model = feed(learner(kernel="rbf", gamma=math.log(2), C=1.5), (0.0, +1), (1.0, -1))
    assert held(model) == {0: 1.5, 1: -1.5}
    assert slopes(model) == pytest.approx({0: 0.25, 1: -0.25}, rel=1e-6)


def test_weights_scale_the_bound_of_each_example() -> None:
    # C = 10 times weight 1/40 bounds the negative, and with it the step, to 1/4.
    model = learner()
    model.partial_fit([[1.0], [-1.0]], [1, -1], classes=[-1, 1], sample_weight=[1.0, 0.025])
    assert held(model) == {0: 0.25, 1: -0.25}
    # The positive has room left, so both extremes are its own: g_max = g_min = 1/2.
    assert bias_and_delta(model) == (0.5 / 2 + 0.5 / 2, 0.0)


def test_class_weights_scale_the_bound_of_each_class() -> None:
    model = feed(learner(class_weight={-1: 0.025, 1: 1.0}), (1.0, +1), (-1.0, -1))
    assert held(model) == {0: 0.25, 1: -0.25}
    assert core_state(model)["costs"].tolist() == [10.0, 0.25]


# -- waiting while one class only has been seen ---------------------------------------------------


@pytest.mark.parametrize("y", [+1, -1])
def test_first_example_waits_and_gives_its_class(y: int) -> None:
    model = feed(learner(), (2.0, y))
    assert held(model) == {0: 0.0}
    assert slopes(model) == {0: 0.0}  # g = y = b
    assert bias_and_delta(model) == (float(y), 0.0)
    assert model.predict([[-5.0], [5.0]]).tolist() == [y, y]


def test_examples_of_one_class_wait_until_the_other_comes() -> None:
    model = feed(learner(), (1.0, +1), (2.0, +1), (3.0, +1))
    assert held(model) == {0: 0.0, 1: 0.0, 2: 0.0}, "nobody may be evicted before both extremes are"
    # x = -1 pairs with the first of the three that tie at g = 1: lambda = 2/4, w = 1.
    feed(model, (-1.0, -1))
    assert held(model) == {0: 0.5, 1: 0.0, 2: 0.0, 3: -0.5}
    assert slopes(model) == {0: 0.0, 1: -1.0, 2: -2.0, 3: 0.0}
    assert bias_and_delta(model) == (0.0, 0.0)


def test_no_more_than_1024_examples_wait() -> None:
    X = np.linspace(1.0, 2.0, 1100)[:, None]
    model = learner().partial_fit(X, np.ones(1100, dtype=int), classes=[-1, 1])
    assert model.ids_.tolist() == list(range(1024))
    feed(model, (-1.0, -1))
    assert held(model)[1100] < 0, "the other class must still be taken in"


# -- PROCESS --------------------------------------------------------------------------------------


def test_example_beyond_the_margin_is_not_inserted() -> None:
    # f(x) = x; x = 3 has g = 1 - 3 = -2, not above g_min = 0.
    model = feed(learner(), (1.0, +1), (-1.0, -1))
    before = held(model), model.stats_["process"]
    feed(model, (3.0, +1), (-3.0, -1))
    assert (held(model), model.stats_["process"]) == before


@pytest.mark.parametrize(("x", "inserted"), [(1 - 5e-4, False), (1 - 2e-3, True)])
def test_violation_within_tol_is_left_alone(x: float, inserted: bool) -> None:
    # g = 1 - x, g_min = 0, tol = 1e-3
    model = feed(learner(tol=1e-3), (1.0, +1), (-1.0, -1), (x, +1))
    assert (2 in held(model)) is inserted


def test_example_held_already_is_passed_over() -> None:
    model = feed(learner(), (1.0, +1), (-1.0, -1))
    before = held(model), model.stats_["process"]
    model.partial_fit([[0.25]], [1], ids=[0])
    assert (held(model), model.stats_["process"]) == before


def test_process_alone() -> None:
    # x = 1/2, y = 1 after w = 1: g = 1/2. Both members have g_min = 0; the first of them is j.
    # lambda = min((1/2) / (1/4 + 1 - 1), 10, alpha_0 = 1/2) = 1/2; w becomes 3/4.
    model = feed(learner(reprocess=0), (1.0, +1), (-1.0, -1), (0.5, +1))
    assert held(model) == {0: 0.0, 1: -0.5, 2: 0.5}
    # g = (1/4, -1/4, 5/8). Up: all three, g_max = 5/8; down: not the first, at 0; g_min = -1/4.
    b = (0.625 - 0.25) / 2
    assert slopes(model) == {0: 0.25 - b, 1: -0.25 - b, 2: 0.625 - b}
    assert bias_and_delta(model) == (b, 0.875)
    assert model.stats_["reprocess"] == 0


# -- REPROCESS and eviction -----------------------------------------------------------------------


@pytest.mark.parametrize("sign", [+1, -1])
@pytest.mark.parametrize("reprocess", [1, 2])
def test_reprocess_evicts_a_blatant_non_support_vector(sign: int, reprocess: int) -> None:
    # From the state above: i = 2, j = 1, lambda = (7/8) / (1/4 + 1 + 1) = 7/18, so that
    # alpha = (0, -8/9, 8/9), w = 4/3, g = (-1/3, 1/3, 1/3). Example 0 has alpha = 0 and g below
    # g_min = 1/3: it leaves. delta = 0, so a second REPROCESS finds nothing to do.
    # Turning all signs over (`sign`) turns alpha, g and b over.
    model = feed(
        learner(reprocess=reprocess), (sign * 1.0, sign), (sign * -1.0, -sign), (sign * 0.5, sign)
    )
    third = sign / 3
    assert held(model) == pytest.approx({1: -sign * 8 / 9, 2: sign * 8 / 9}, rel=1e-12)
    assert slopes(model) == pytest.approx({1: 0.0, 2: 0.0}, abs=1e-12)
    assert bias_and_delta(model) == pytest.approx((third, 0.0), abs=1e-12)
    counted = {name: model.stats_[name] for name in ("process", "reprocess", "inserted", "removed")}
    assert counted == {"process": 3, "reprocess": 1, "inserted": 3, "removed": 1}


def three_orthogonal(**params: object) -> OnlineSVC:
    """e0 (+), e1 (-), e2 (+) with K = I: every curvature is 2.

    e0, e1: lambda = 2/2, alpha = (1, -1), g = (0, 0).
    e2: g = 1, j = e0 (first of g_min = 0), lambda = 1/2: alpha = (1/2, -1, 1/2), g = (1/2, 0, 1/2).
    """
    return feed(learner(**params), (E[0], +1), (E[1], -1), (E[2], +1))


def after_reprocess(times: int) -> tuple[dict[int, float], float, float]:
    """alpha, b and delta after that many REPROCESS from there; the first index wins ties."""
    return {
        0: ({0: 1 / 2, 1: -1.0, 2: 1 / 2}, 1 / 4, 1 / 2),  # g = (1/2, 0, 1/2)
        1: ({0: 3 / 4, 1: -5 / 4, 2: 1 / 2}, 3 / 8, 1 / 4),  # pair (0, 1): g = (1/4, 1/4, 1/2)
        2: ({0: 5 / 8, 1: -5 / 4, 2: 5 / 8}, 5 / 16, 1 / 8),  # pair (2, 0): g = (3/8, 1/4, 3/8)
        3: ({0: 11 / 16, 1: -21 / 16, 2: 5 / 8}, 11 / 32, 1 / 16),  # (0, 1): g = (5, 5, 6)/16
        4: ({0: 21 / 32, 1: -21 / 16, 2: 21 / 32}, 21 / 64, 1 / 32),  # (2, 0): (11, 10, 11)/32
    }[times]


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_reprocess_counts_the_steps_after_process(times: int) -> None:
    model = three_orthogonal(reprocess=times)
    alpha, b, delta = after_reprocess(times)
    assert held(model) == alpha
    assert bias_and_delta(model) == (b, delta)
    assert model.stats_["reprocess"] == times


@pytest.mark.parametrize(
    ("reprocess", "delta_max", "times"),
    [(1, 0.3, 1), (1, 0.2, 2), (0, 0.2, 2), (1, 0.1, 3), (0, 0.05, 4), (3, 0.2, 3)],
)
def test_delta_max_repeats_reprocess(reprocess: int, delta_max: float, times: int) -> None:
    model = three_orthogonal(reprocess=reprocess, delta_max=delta_max)
    assert held(model) == after_reprocess(times)[0]
    assert model._engine.delta <= delta_max


@pytest.mark.parametrize(("when", "times"), [("processed", 1), ("each", 2)])
def test_reprocess_when_says_whether_rejected_examples_count(when: str, times: int) -> None:
    # 3 e0 has f = 9/4, far beyond the margin: PROCESS does nothing.
    model = feed(three_orthogonal(reprocess=1, reprocess_when=when), (3 * E[0], +1))
    assert held(model) == after_reprocess(times)[0]


def test_reprocess_by_gap() -> None:
    # Three positives wait with g = 1; h = C y (g - b) = 0 for b = g_max = 1, so the target is 0 and
    # the gap has to come below C = 10. The negative e3: lambda = 1 with e0, g = (0, 1, 1, 0),
    # b = 1/2; gap = 1/2 + 5 + 5 + (5 - 1/2) = 15 > 10: REPROCESS.
    # Pair (e1, e0): lambda = 1/2, g = (1/2, 1/2, 1, 0), b = 1/2; gap = 0 + 0 + 5 + 9/2 <= 10: done.
    model = feed(learner(reprocess="gap"), (E[0], +1), (E[1], +1), (E[2], +1), (E[3], -1))
    assert held(model) == {0: 0.5, 1: 0.5, 2: 0.0, 3: -1.0}
    assert slopes(model) == {0: 0.0, 1: 0.0, 2: 0.5, 3: -0.5}  # b = 1/2
    assert model.stats_["reprocess"] == 1


def test_reprocess_by_gap_does_nothing_within_the_target() -> None:
    # After PROCESS(e2): g = (1/2, 0, 1/2), b = 1/4;
    # gap = 2 (10/4 - 1/8) + (10/4 - 1/4) = 7 <= C.
    assert held(three_orthogonal(reprocess="gap")) == after_reprocess(0)[0]


def test_extremes_are_never_evicted() -> None:
    # C = 1/4. After x = 1, -1 both are at their bounds with w = 1/2. x = 1/10 (+): g = 19/20,
    # j = 0, lambda = min((9/20) / (81/100), 1/4, 1/4) = 1/4: alpha = (0, -1/4, 1/4), w = 11/40.
    # Up: 0 (g = 29/40) and 1 (-29/40); down: 2 alone (g = 389/400). Example 0 has alpha = 0 and
    # g below g_min, but is the only one that may go up far enough: it is g_max.
    model = feed(learner(C=0.25), (1.0, +1), (-1.0, -1), (0.1, +1)).finish()
    assert held(model) == {0: 0.0, 1: -0.25, 2: 0.25}
    b = (0.725 + 0.9725) / 2
    expected = {0: 0.725 - b, 1: -0.725 - b, 2: 0.9725 - b}
    assert slopes(model) == pytest.approx(expected, rel=1e-6)
    assert bias_and_delta(model) == pytest.approx((b, 0.725 - 0.9725), rel=1e-6)


# -- FINISH ---------------------------------------------------------------------------------------


def test_finish_reaches_the_optimum() -> None:
    # K = I and one negative: alpha = (2/3, -4/3, 2/3), g = b = 1/3 for all.
    model = three_orthogonal(reprocess=0, tol=1e-9)
    assert model.finish() is model
    assert held(model) == pytest.approx({0: 2 / 3, 1: -4 / 3, 2: 2 / 3}, rel=1e-8)
    b, delta = bias_and_delta(model)
    assert b == pytest.approx(1 / 3, rel=1e-8)
    assert delta <= 1e-9
    # W = sum alpha y - sum alpha^2 / 2 = 8/3 - (4 + 16 + 4) / 18
    assert model.dual_objective() == pytest.approx(4 / 3, rel=1e-8)


def test_finish_evicts_even_when_nothing_moves() -> None:
    # Of the waiting (1, 2, 3) only the first became a support vector; 2 and 3 have g <= g_min = 0.
    model = feed(learner(), (1.0, +1), (2.0, +1), (3.0, +1), (-1.0, -1)).finish()
    assert held(model) == {0: 0.5, 3: -0.5}


def test_finish_leaves_waiting_examples_alone() -> None:
    model = feed(learner(), (1.0, +1), (2.0, +1)).finish()
    assert held(model) == {0: 0.0, 1: 0.0}


def test_finish_respects_the_box() -> None:
    # C = 1: the negative stops at -1 and the positives share it: alpha = (1/2, -1, 1/2).
    model = three_orthogonal(C=1.0, tol=1e-9).finish()
    assert held(model) == pytest.approx({0: 0.5, 1: -1.0, 2: 0.5}, rel=1e-8)


@pytest.mark.parametrize("by", ["partial_fit", "learn_one"])
def test_finish_every(by: str) -> None:
    # Two examples: finished, nothing to do. The third leaves delta = 1/2. The fourth is rejected
    # (3 e0 has f = 3/2) but is the second since finishing.
    model = feed(learner(reprocess=0, finish_every=2, tol=1e-6), (E[0], +1))
    give = feed if by == "partial_fit" else lambda m, example: m.learn_one(*example)
    give(model, (E[1], -1))
    give(model, (E[2], +1))
    assert held(model) == after_reprocess(0)[0]
    give(model, (3 * E[0], +1))
    assert held(model) == pytest.approx({0: 2 / 3, 1: -4 / 3, 2: 2 / 3}, rel=1e-5)


# -- fit: the order of rows, epochs ---------------------------------------------------------------


@pytest.mark.parametrize(("epochs", "times"), [(1, 1), (2, 4)])
def test_epochs_visit_the_rows_again(epochs: int, times: int) -> None:
    # In the second epoch all rows are held; with "each" every visit is one REPROCESS.
    model = learner(reprocess_when="each", epochs=epochs, shuffle=False, finish_at_end=False)
    model.fit(E[:3], [1, -1, 1])
    assert held(model) == after_reprocess(times)[0]


def test_fit_opens_with_five_of_each_class() -> None:
    # K = I: every row violates on arrival, and without REPROCESS nobody leaves.
    y = np.repeat([-1, 1], 10)
    model = learner(reprocess=0, finish_at_end=False, shuffle=False).fit(np.eye(20), y)
    expected = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 5, 6, 7, 8, 9, 15, 16, 17, 18, 19]
    assert core_state(model)["ids"].tolist() == expected


# -- several classes ------------------------------------------------------------------------------


def test_three_classes_are_three_problems_over_one_stream() -> None:
    model = learner(multiclass="ovr")
    for k in range(3):
        model.partial_fit([E[k]], [k], classes=[0, 1, 2])
    # Class 0 against the rest: (e0, e1) lambda = 1; e2: g = -1 with i = e0: lambda = 1/2,
    # alpha = (3/2, -1, -1/2), g = (-1/2, 0, -1/2); REPROCESS (e1, e0): lambda = 1/4.
    assert held(model, problem=0) == {0: 1.25, 1: -0.75, 2: -0.5}
    assert slopes(model, 0) == {0: 0.125, 1: 0.125, 2: -0.125}  # g = (-1/4, -1/4, -1/2)
    # Class 1: (e1, e0) lambda = 1; e2 (-): g = -1, i = e0 (first of g_max = 0): lambda = 1/2,
    # alpha = (-1/2, 1, -1/2), g = (-1/2, 0, -1/2); REPROCESS (e1, e0): lambda = 1/4.
    assert held(model, problem=1) == {0: -0.75, 1: 1.25, 2: -0.5}
    # Class 2: e0 and e1 wait; e2 (+): j = e0, lambda = 1: g = (0, -1, 0); REPROCESS (e0, e1):
    # lambda = min(1/2, 1) = 1/2.
    assert held(model, problem=2) == {0: -0.5, 1: -0.5, 2: 1.0}
    assert slopes(model, 2) == {0: -0.25, 1: -0.25, 2: 0.25}  # g = (-1/2, -1/2, 0)
    # b = (g_max + g_min) / 2 in each
    assert model.intercept_.tolist() == [-0.375, -0.375, -0.25]
    assert model.predict(E[:3]).tolist() == [0, 1, 2]


def test_three_classes_are_three_pairs_over_one_stream() -> None:
    model = learner(multiclass="ovo")
    for k in range(3):
        model.partial_fit([E[k]], [k], classes=[0, 1, 2])
    # Each pair of examples: g = (-1, 1), curvature 2, lambda = 1; g = (0, 0), b = 0.
    assert held(model, problem=0) == {0: -1.0, 1: 1.0}
    assert held(model, problem=1) == {0: -1.0, 2: 1.0}
    assert held(model, problem=2) == {1: -1.0, 2: 1.0}
    assert model.intercept_.tolist() == [0.0, 0.0, 0.0]
    assert model.dual_objective().tolist() == [1.0, 1.0, 1.0]
    # f(e0) = (-1, -1, 0), and a 0 goes to the first of its pair: classes 0 to 2 have 2, 1 and 0
    # votes, and sums s of 2, -1 and -1; s / (3 (|s| + 1)) is added.
    assert model.decision_function(E[:1]) == pytest.approx(
        np.array([[2 + 2 / 9, 1 - 1 / 6, -1 / 6]]), rel=1e-15
    )
    assert model.predict(E[:3]).tolist() == [0, 1, 2]
    # e3 of class 0: in (0, 1), g = -1 with i = e0, lambda = 1/2: alpha = (-1/2, 1, -1/2),
    # g = (-1/2, 0, -1/2); REPROCESS (e1, e0): lambda = 1/4. The same in (0, 2).
    model.partial_fit([E[3]], [0])
    assert held(model, problem=0) == {0: -0.75, 1: 1.25, 3: -0.5}
    assert slopes(model, 0) == {0: 0.125, 1: 0.125, 3: -0.125}  # g = (-1/4, -1/4, -1/2)
    assert held(model, problem=1) == {0: -0.75, 2: 1.25, 3: -0.5}
    assert held(model, problem=2) == {1: -1.0, 2: 1.0}, "a pair of classes that e3 is not of"
    assert model.intercept_.tolist() == [-0.375, -0.375, 0.0]


def test_a_pair_without_one_of_its_classes_waits() -> None:
    model = learner(multiclass="ovo")
    for k, label in enumerate([0, 0, 1]):
        model.partial_fit([E[k]], [label], classes=[0, 1, 2])
    # (0, 1): e0 and e1 wait; e2 (+): j = e0, lambda = 1: g = (0, -1, 0); REPROCESS (e0, e1): 1/2.
    assert held(model, problem=0) == {0: -0.5, 1: -0.5, 2: 1.0}
    assert held(model, problem=1) == {0: 0.0, 1: 0.0}, "class 2 is still to come"
    assert held(model, problem=2) == {2: 0.0}
    # g = y for those that wait, and b is theirs: without an example of class 2 it wins no pair.
    assert model.intercept_.tolist() == [-0.25, -1.0, -1.0]
    assert model.predict(E[:3]).tolist() == [0, 0, 1]
