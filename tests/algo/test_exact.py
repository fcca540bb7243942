"""The exact solution [laskov2006] worked by hand on one to four points of a line.

f(x) = w x + b with the linear kernel, w the sum of signed coefficients times points. Where nobody
is free, b may lie anywhere in an interval, and is put in its middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from marginwise import ExactOneClassSVM, ExactSVC
from tests.support import held

TIGHT: dict[str, Any] = {"rel": 0, "abs": 1e-13}


def feed(*examples: tuple[float, int], **params: Any) -> ExactSVC:
    """A linear model that learned points (x, y) one after the other."""
    model = ExactSVC(**{"kernel": "linear", "C": 10.0, **params})
    for x, y in examples:
        model.partial_fit([[x]], [y], classes=[-1, 1])
        model._engine.native.check(1e-12)
    return model


def sphere(*points: float, **params: Any) -> ExactOneClassSVM:
    model = ExactOneClassSVM(**{"kernel": "linear", **params})
    for x in points:
        model.partial_fit([[x]])
        model._engine.native.check(1e-12)
    return model


def line(model: Any, *points: float) -> list[float]:
    values: list[float] = model.decision_function(np.array(points)[:, None]).tolist()
    return values


# -- two classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [-1, 1])
def test_one_class_alone_is_a_constant(y: int) -> None:
    model = feed((3.0, y), (-2.0, y), (0.0, y))
    assert held(model) == {0: 0.0, 1: 0.0, 2: 0.0}
    assert line(model, -5.0, 0.0, 9.0) == [y, y, y]
    assert model.support_.size == 0


def test_two_points_meet_in_the_middle() -> None:
    # w = 2 / 2 = 1, alpha = w / 2 = 1/2, b = -1.
    model = feed((0.0, -1), (2.0, +1))
    assert held(model) == pytest.approx({0: -0.5, 1: 0.5}, **TIGHT)
    assert model.intercept_ == pytest.approx([-1.0], **TIGHT)
    assert line(model, 0.0, 1.0, 2.0) == pytest.approx([-1.0, 0.0, 1.0], **TIGHT)
    assert model.dual_objective() == pytest.approx(0.5, **TIGHT)  # 1 - |w|^2 / 2


def test_two_points_at_their_bounds_leave_the_bias_an_interval() -> None:
    # alpha = 1/10 each, w = 1/5. f(0) = b >= -1 and f(2) = 2/5 + b <= 1: b in [-1, 3/5].
    model = feed((0.0, -1), (2.0, +1), C=0.1)
    assert held(model) == {0: -0.1, 1: 0.1}
    assert model.intercept_ == pytest.approx([-0.2], **TIGHT)


def test_a_point_beyond_the_margin_is_idle() -> None:
    model = feed((0.0, -1), (2.0, +1), (3.0, +1))
    assert held(model) == pytest.approx({0: -0.5, 1: 0.5, 2: 0.0}, **TIGHT)
    assert model.support_.tolist() == [0, 1]
    assert model.ids_.tolist() == [0, 1, 2]


def test_a_nearer_point_takes_over_and_gives_back() -> None:
    # Between 0 and 1: w = 2, alpha = 2, b = -1. Without the point at 1, as before it came.
    model = feed((0.0, -1), (2.0, +1), (1.0, +1))
    assert held(model) == pytest.approx({0: -2.0, 1: 0.0, 2: 2.0}, **TIGHT)
    assert model.intercept_ == pytest.approx([-1.0], **TIGHT)
    model.forget([2])._engine.native.check(1e-12)
    assert held(model) == pytest.approx({0: -0.5, 1: 0.5}, **TIGHT)
    assert model.intercept_ == pytest.approx([-1.0], **TIGHT)


def test_a_point_inside_the_margin_at_its_bound() -> None:
    # C = 1, points 0 (-), 1 (+) and 2 (+), 1 at its bound and the others free: w = 1, b = -1 from
    # f(0) = -1 and f(2) = 1; w = 1 + 2 a_2 and a_0 = 1 + a_2 would be a_2 = 0, a_0 = 1 = C. So all
    # are at bounds: w = 1, f(0) = b >= -1, f(1) = 1 + b <= 1, f(2) = 2 + b >= 1: b in [-1, 0].
    model = feed((0.0, -1), (1.0, +1), (2.0, +1), C=1.0)
    assert held(model) == pytest.approx({0: -1.0, 1: 1.0, 2: 0.0}, **TIGHT)
    assert model.intercept_ == pytest.approx([-0.5], **TIGHT)


def test_tiny_c_puts_the_nearest_at_their_bounds() -> None:
    # C = 1/100: the negative point and one positive point at C; that of least f, at 1. w = 1/100.
    # f(1) = 1/100 + b <= 1, f(3) = 3/100 + b >= 1: b in [97/100, 99/100].
    model = feed((0.0, -1), (1.0, +1), (3.0, +1), C=0.01)
    assert held(model) == {0: -0.01, 1: 0.01, 2: 0.0}
    assert model.intercept_ == pytest.approx([0.98], **TIGHT)


def test_the_same_point_in_both_classes() -> None:
    # Nothing can be separated: both at C, w = 0, b in [-1, 1].
    model = feed((1.0, -1), (1.0, +1), C=3.0)
    assert held(model) == {0: -3.0, 1: 3.0}
    assert line(model, 1.0, 7.0) == pytest.approx([0.0, 0.0], **TIGHT)
    # A third one at 3 (+): any weight of it would have to come from alpha_1, and f(3) = f(1) + 4
    # alpha_2 with both free needs alpha_2 = 0. So f = b, b <= 1 for 1 and b >= 1 for 2.
    model.partial_fit([[3.0]], [1])
    assert held(model) == pytest.approx({0: -3.0, 1: 3.0, 2: 0.0}, **TIGHT)
    assert line(model, 1.0, 3.0) == pytest.approx([1.0, 1.0], **TIGHT)
    model.forget([0, 2])
    assert held(model) == {1: 0.0}
    assert line(model, 0.0, 5.0) == [1.0, 1.0]


def test_forgetting_a_bounded_point_frees_the_other() -> None:
    # 0 (-), 2 (+) as free points, and one of class -1 at 2, at its bound.
    # C = 1: alpha_1 = 1 at 2 would have w = 2 (alpha_1 - a_2): with both of them at C, w = 0 and
    # alpha_0 = 0. f = b, with f(0) <= -1 as alpha_0 = 0, and f(2) <= 1 and >= -1: b = -1.
    model = feed((0.0, -1), (2.0, +1), (2.0, -1), C=1.0)
    assert held(model) == pytest.approx({0: 0.0, 1: 1.0, 2: -1.0}, **TIGHT)
    assert line(model, 0.0, 2.0) == pytest.approx([-1.0, -1.0], **TIGHT)
    model.forget([2])
    assert held(model) == pytest.approx({0: -0.5, 1: 0.5}, **TIGHT)
    assert line(model, 0.0, 2.0) == pytest.approx([-1.0, 1.0], **TIGHT)


def test_forgetting_a_class_leaves_the_other_constant() -> None:
    model = feed((0.0, -1), (2.0, +1), (3.0, +1)).forget([0])
    assert held(model) == {1: 0.0, 2: 0.0}
    assert line(model, 0.0, 9.0) == [1.0, 1.0]
    model.partial_fit([[1.0]], [-1], ids=[9])  # w = 2, alpha = 2, b = -3
    assert held(model) == pytest.approx({1: 2.0, 2: 0.0, 9: -2.0}, **TIGHT)
    assert model.intercept_ == pytest.approx([-3.0], **TIGHT)


def test_forgetting_everything_leaves_an_empty_model() -> None:
    model = feed((0.0, -1), (2.0, +1)).forget([0, 1])
    assert held(model) == {}
    assert model.is_empty_
    with pytest.raises(
        NotFittedError, match="this ExactSVC is empty, because all rows were forgotten"
    ):
        line(model, 0.0, 9.0)


def test_weights_bound_coefficients_one_by_one() -> None:
    # Bounds 1/10 and 3/10, so alpha = 1/10 for both, w = 1/5, and 1 is free: f(2) = 1, b = 3/5.
    model = ExactSVC(kernel="linear", C=1.0)
    model.partial_fit([[0.0], [2.0]], [-1, 1], classes=[-1, 1], sample_weight=[0.1, 0.3])
    assert held(model) == pytest.approx({0: -0.1, 1: 0.1}, **TIGHT)
    assert model.intercept_ == pytest.approx([0.6], **TIGHT)


def test_c_up_and_down_again() -> None:
    model = feed((0.0, -1), (2.0, +1), C=0.1)
    for C, alpha, b in [(0.3, 0.3, -0.6), (2.0, 0.5, -1.0), (0.2, 0.2, -0.4), (1e4, 0.5, -1.0)]:
        model.set_C(C)._engine.native.check(1e-12)
        assert held(model) == pytest.approx({0: -alpha, 1: alpha}, **TIGHT)
        # at C: b in [-1, 1 - 4 C]
        assert model.intercept_ == pytest.approx([b], **TIGHT)
        assert model.C == C


def test_leaving_one_out_by_hand() -> None:
    # 0 (-), 2 (+), 3 (+), C = 10. Without 0, f = 1. Without 2, w = 2/3, b = -1: f(2) = 1/3.
    # 3 is idle: f(3) = 2 with or without it.
    model = feed((0.0, -1), (2.0, +1), (3.0, +1))
    said = model.leave_one_out()
    assert said.ids.tolist() == [0, 1, 2]
    assert said.decision == pytest.approx([1.0, 1 / 3, 2.0], **TIGHT)
    assert said.error == pytest.approx(1 / 3)


def test_leaving_one_out_where_an_idle_point_bounds_the_bias() -> None:
    # 0 (-), 1 (+), 2 (+), C = 1/10: 0 and 1 at C, 2 idle; w = 1/10, b in [8/10, 9/10].
    # Without 2: b in [-1, 9/10], f(2) = 2/10 - 1/20 = 3/20.
    model = feed((0.0, -1), (1.0, +1), (2.0, +1), C=0.1)
    assert model.intercept_ == pytest.approx([0.85], **TIGHT)
    without = feed((0.0, -1), (1.0, +1), C=0.1)
    assert line(without, 2.0) == pytest.approx([0.15], **TIGHT)
    assert model.leave_one_out().decision[2] == pytest.approx(0.15, **TIGHT)


def test_the_window_forgets_the_lightest_and_of_several_the_oldest() -> None:
    # 3 and 4 are idle; 3 is the older one of them.
    model = feed((0.0, -1), (2.0, +1), (3.0, +1), (4.0, +1), window=4)
    model.partial_fit([[5.0]], [1])
    assert model.ids_.tolist() == [0, 1, 3, 4]
    model = feed((0.0, -1), (2.0, +1), (3.0, +1), (4.0, +1), window=4, evict="oldest")
    model.partial_fit([[5.0]], [1])
    assert model.ids_.tolist() == [1, 2, 3, 4]
    assert line(model, 0.0) == [1.0], "all that is left is of one class"


def test_the_path_of_three_points() -> None:
    # 0 and 2 become free. 1 comes: 2 leaves S, and 1 joins it. 1 goes: 2 is free again.
    model = feed((0.0, -1), (2.0, +1), (1.0, +1), record=True).forget([2])
    steps = [tuple(step) for step in model.path_.tolist()]
    assert set(steps[:2]) == {(1, 0, 0, "idle", "free"), (1, 1, 0, "idle", "free")}
    assert set(steps[2:4]) == {(2, 1, 0, "free", "idle"), (2, 2, 0, "idle", "free")}
    assert (2, 1, 0, "idle", "free") in steps[4:]
    assert steps[-1][4] == "gone"
    assert len(steps) <= 7


# -- one class ------------------------------------------------------------------------------------


def test_a_sphere_around_one_point_is_the_point() -> None:
    for params in ({"nu": 0.5}, {"nu": 1.0}, {"C": 0.25}, {"C": 5.0}):
        model = sphere(3.0, **params)
        assert line(model, 3.0) == pytest.approx([0.0], **TIGHT)
        assert line(model, 2.0)[0] < 0
        assert model.predict([[2.0], [4.0]]).tolist() == [-1, -1]


def test_coefficients_of_one_point() -> None:
    assert held(sphere(3.0, nu=0.5)) == {0: 0.5}
    assert held(sphere(3.0, C=0.25)) == {0: 0.25}  # fewer than 1 / C: all at C
    assert held(sphere(3.0, C=5.0)) == {0: 1.0}


@pytest.mark.parametrize("params", [{"nu": 0.5}, {"C": 1.0}, {"C": 0.5}], ids=str)
def test_a_sphere_around_two_points(params: dict[str, float]) -> None:
    # Centre 1, radius 1, coefficients 1/2: (1 - (x - 1)^2) / 2.
    model = sphere(0.0, 2.0, **params)
    assert held(model) == pytest.approx({0: 0.5, 1: 0.5}, **TIGHT)
    assert line(model, 0.0, 1.0, 2.0, 4.0) == pytest.approx([0.0, 0.5, 0.0, -4.0], **TIGHT)
    assert model.dual_coef_.sum() == pytest.approx(1.0, **TIGHT)


def test_nu_counts_rows() -> None:
    # nu = 1: all at their bound 1; the centre is the mean.
    model = sphere(0.0, 2.0, nu=1.0)
    assert held(model) == {0: 1.0, 1: 1.0}
    assert line(model, 0.0, 1.0) == pytest.approx([0.0, 1.0], **TIGHT)  # 2 x - x^2
    model = sphere(0.0, 1.0, 2.0, 7.0, nu=0.25)
    assert model.dual_coef_.sum() == pytest.approx(0.25 * 4, **TIGHT)


def test_the_total_stays_one_from_1_over_c_rows_on() -> None:
    model = ExactOneClassSVM(kernel="linear", C=0.4)
    for n, x in enumerate([0.0, 1.0, 5.0, 2.0], start=1):
        model.partial_fit([[x]])
        assert model.dual_coef_.sum() == pytest.approx(min(1.0, 0.4 * n), **TIGHT)
        assert model.dual_coef_.max() <= 0.4
        if n < 2.5:
            assert set(held(model).values()) == {0.4}, "all at C"


def test_fewer_than_1_over_c_rows_are_in_order() -> None:
    # C = 1/5: all coefficients are 1/5, and the centre is their sum, 3/5; 1 is nearest to it.
    model = sphere(0.0, 1.0, 2.0, C=0.2)
    assert set(held(model).values()) == {0.2}
    scores = model.score_samples([[0.0], [1.0], [2.0]])
    assert scores.argsort().tolist() == [2, 0, 1]


def test_forgetting_an_outlier_shrinks_the_sphere() -> None:
    # C = 1/2: two coefficients of 1/2 at least, those of the outermost; the centre is 4, and 2 is
    # nearer to it. Without 8, the sphere of 0 and 2.
    model = sphere(0.0, 2.0, 8.0, C=0.5)
    assert held(model) == pytest.approx({0: 0.5, 1: 0.0, 2: 0.5}, **TIGHT)
    model.forget([2])
    assert held(model) == pytest.approx({0: 0.5, 1: 0.5}, **TIGHT)
    assert line(model, 0.0, 1.0, 2.0) == pytest.approx([0.0, 0.5, 0.0], **TIGHT)


def test_a_forgotten_sphere_is_nothing() -> None:
    model = sphere(0.0, 2.0, nu=0.5).forget([0, 1])
    assert held(model) == {}
    assert model.is_empty_
    assert model.ids_.size == 0
    with pytest.raises(NotFittedError, match="ExactOneClassSVM is empty, because all rows"):
        line(model, 1.0)
    model.partial_fit([[3.0]])
    assert model.ids_.tolist() == [2]
    assert line(model, 3.0) == pytest.approx([0.0], **TIGHT)


def test_the_window_of_a_sphere() -> None:
    oldest = sphere(0.0, 1.0, 2.0, nu=0.4, window=2)
    assert oldest.ids_.tolist() == [1, 2]
    # coefficients of 0, 1, 4: (1/2, 0, 1/2) in C mode; 1 is the lightest
    lightest = sphere(0.0, 4.0, 1.0, C=0.5, window=3, evict="lightest").partial_fit([[5.0]])
    assert lightest.ids_.tolist() == [0, 1, 3]
