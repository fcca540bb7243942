"""Probabilities from decision values, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginwise import ExactSVC, OnlineSVC
from marginwise._engine.foresight import Foresight
from marginwise.calibration import Calibrator, Sigmoid, couple, normalize


def fitted(
    f: list[float], weight: list[float], kind: str = "sigmoid", **options: bool
) -> Calibrator:
    column = np.array(f, dtype=np.float32), np.array(weight, dtype=np.float32)
    return Calibrator.fit(kind, [column], **{"pairs": False, "shifted": False, **options})


def test_two_rows_on_each_side() -> None:
    # Platt's targets are 3/4 and 1/4 for two rows each: the slopes are those with
    # 1 / (1 + exp(-slope)) = 3/4 at f = 1, and 1/4 at f = -1: slope = log 3.
    (curve,) = fitted([1, 1, -1, -1], [1, 1, -1, -1]).curves
    assert isinstance(curve, Sigmoid)
    assert curve.above == pytest.approx(math.log(3), rel=1e-4)
    assert curve.below == pytest.approx(math.log(3), rel=1e-4)
    assert curve.offset == 0


def test_each_side_has_its_slope() -> None:
    # Beyond f = 1 three rows of four are positive, below f = -1 none of two: targets are 4/5 and
    # 1/5 (three positive, three negative), so that the mean at f = 1 is (3 * 0.8 + 0.2) / 4 = 0.65.
    (curve,) = fitted([1, 1, 1, 1, -1, -1], [1, 1, 1, -1, -1, -1]).curves
    assert curve.above == pytest.approx(math.log(0.65 / 0.35), rel=1e-4)
    assert curve.below == pytest.approx(math.log(4), rel=1e-4)


def test_weights_move_the_boundary() -> None:
    # At f = 0 one row of three is positive: targets 2/3 and 1/4, mean (2/3 + 2/4) / 3 = 7/18.
    (curve,) = fitted([0, 0, 0], [1, -1, -1], shifted=True).curves
    assert curve.offset == pytest.approx(math.log(7 / 11), rel=1e-4)
    (curve,) = fitted([0, 0, 0], [1, -1, -1]).curves
    assert curve.offset == 0


def test_weights_are_relative() -> None:
    # At f = 1 a positive row of weight 3 and a negative one of weight 1 count as 1.5 and 0.5 rows:
    # targets are 2.5 / 3.5 and 1 / 2.5, and their mean is (1.5 * 5/7 + 0.5 * 2/5) / 2 = 89/140.
    (curve,) = fitted([1, 1], [3, -1]).curves
    assert curve.above == pytest.approx(math.log(89 / 51), rel=1e-4)
    assert fitted([1, 1], [300, -100]).curves == [curve]


def test_values_against_their_labels_have_no_slope() -> None:
    (curve,) = fitted([1, 2, -1, -2], [-1, -1, 1, 1]).curves
    assert (curve.above, curve.below) == (0, 0)
    assert curve(np.array([-3.0, 3.0])).tolist() == [0.5, 0.5]


def test_without_values_the_slope_is_one() -> None:
    assert fitted([], []).curves == [Sigmoid(1, 1, 0)]


def test_isotonic_steps() -> None:
    # One pool of four values: the violating middle pair is averaged. The sigmoid counts as 30 rows.
    calibrator = fitted([-2, -1, 1, 2], [-1, 1, -1, 1], kind="isotonic")
    curve = calibrator.curves[0]
    assert curve.share == pytest.approx(30 / 34)
    f = np.array([-2.0, 0.0, 2.0])
    expected = np.array([0, 0.5, 1]) * 4 / 34 + curve.sigmoid(f) * 30 / 34
    assert curve(f) == pytest.approx(expected)


def test_pairs_that_agree() -> None:
    p = np.array([0.5, 0.3, 0.2])
    second = np.array([[p[j] / (p[i] + p[j]) for i, j in ((0, 1), (0, 2), (1, 2))]])
    assert couple(second)[0] == pytest.approx(p, abs=1e-6)


def test_a_class_that_wins_all_its_pairs() -> None:
    assert couple(np.array([[0.0, 0.0, 0.5]]))[0] == pytest.approx([1, 0, 0], abs=1e-6)


def test_a_circle_of_pairs_is_undecided() -> None:
    # 0 beats 1, 1 beats 2, and 2 beats 0, all with 0.9.
    assert couple(np.array([[0.1, 0.9, 0.1]]))[0] == pytest.approx([1 / 3] * 3)


def test_one_vs_rest_is_normalized() -> None:
    assert normalize(np.array([[0.2, 0.6, 0.0], [0.0, 0.0, 0.0]])).tolist() == [
        pytest.approx([0.25, 0.75, 0.0]),
        pytest.approx([1 / 3] * 3),
    ]


def test_a_stream_notes_what_it_thought() -> None:
    X, y = np.array([[-1.0], [1.0], [0.5], [-0.25]]), [0, 1, 1, 0]
    model = OnlineSVC(kernel="linear", C=1, calibration="sigmoid")
    model.partial_fit(X[:2], y[:2], classes=[0, 1])
    before = Foresight.of(model._engine.native)
    # The first row comes before anything can be judged; the second one, too.
    assert before.kept.tolist() == [0]
    # f(x) = x after the two: alpha = 1/2 each.
    model.partial_fit(X[2:3], y[2:3])
    f, weight = Foresight.of(model._engine.native).columns[0]
    assert f == pytest.approx([0.5], abs=1e-6)
    assert weight.tolist() == [1.0]


def test_exact_models_use_leave_one_out() -> None:
    X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    model = ExactSVC(kernel="linear", C=10, calibration="sigmoid").fit(X, y)
    # Without x = -1 the boundary is f(x) = (2 x + 1) / 3, which is -1/3 there; likewise at 1.
    assert model.leave_one_out().decision == pytest.approx([-2, -1 / 3, 1 / 3, 2])
    (expected,) = fitted([-2, -1 / 3, 1 / 3, 2], [-1, -1, 1, 1]).curves
    assert model.predict_proba([[0.5]])[0, 1] == pytest.approx(expected(np.array([0.5]))[0])
