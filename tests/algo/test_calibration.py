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
    assert curve.above + curve.high == pytest.approx(math.log(3), rel=1e-4)
    assert curve.below - curve.low == pytest.approx(math.log(3), rel=1e-4)


def test_each_side_has_its_slope() -> None:
    # Beyond f = 1 three rows of four are positive, below f = -1 none of two: targets are 4/5 and
    # 1/5 (three positive, three negative), so that the mean at f = 1 is (3 * 0.8 + 0.2) / 4 = 0.65.
    (curve,) = fitted([1, 1, 1, 1, -1, -1], [1, 1, 1, -1, -1, -1]).curves
    assert curve.above + curve.high == pytest.approx(math.log(0.65 / 0.35), rel=1e-4)
    assert curve.below - curve.low == pytest.approx(math.log(4), rel=1e-4)


def test_weights_move_the_boundary() -> None:
    # At f = 0 one row of three is positive: targets 2/3 and 1/4, mean (2/3 + 2/4) / 3 = 7/18.
    (curve,) = fitted([0, 0, 0], [1, -1, -1], shifted=True).curves
    assert curve.high == curve.low == pytest.approx(math.log(7 / 11), rel=1e-4)
    (curve,) = fitted([0, 0, 0], [1, -1, -1]).curves
    assert (curve.high, curve.low) == (0, 0)
    # With many rows, the part of f <= 0 ends below 1/2, and that of f > 0 still begins at 1/2: two
    # rows of three are negative, and targets are about 0 and 1.
    (curve,) = fitted([0, 0, 0] * 1000, [1, -1, -1] * 1000).curves
    assert curve.low == pytest.approx(-math.log(2), rel=1e-2)
    assert curve.high == 0


def test_parts_do_not_cross_one_half() -> None:
    # All rows have f < 0, where three of four are positive: the best constant of this part is 1/2.
    (curve,) = fitted([-1, -1, -1, -2], [1, 1, -1, 1]).curves
    assert (curve.below, curve.low, curve.high) == (0, 0, 0)
    assert curve(np.array([-1.0, 1.0])).tolist() == [0.5, 0.5]


def test_an_offset_must_be_worth_it() -> None:
    # f = -1 for negative rows, -0.5 for positive ones: an offset separates what the signs of f do
    # not. With two rows of each class the loss falls by less than 2; with 40 rows, by more.
    f, weight = [-1.0, -1.0, -0.5, -0.5], [-1.0, -1.0, 1.0, 1.0]
    (few,) = fitted(f, weight).curves
    (many,) = fitted(20 * f, 20 * weight).curves
    assert few.agrees
    assert not many.agrees
    assert (many(np.array([-1.0, -0.5])) > 0.5).tolist() == [False, True]


def test_an_offset_that_makes_a_rare_class_rarer_is_clipped() -> None:
    # Of nine rows with f = 0.5, 5 are positive; all others have f = -1 and are negative.
    f = [0.5] * 9 + [-1.0] * 91
    weight = [1.0] * 5 + [-1.0] * 4 + [-1.0] * 91
    report = fitted(10 * f, 10 * weight)
    (curve,) = report.curves
    assert curve.agrees
    assert (curve(np.array([0.5])) > 0.5).all()


def test_an_offset_that_costs_accuracy_is_clipped() -> None:
    # All f are negative, and so are nearly all rows; those with f = -1 are positive in 4 of 10
    # cases. Only a line with an offset can fit this, and no class is rare enough to be predicted.
    f = [-1.0] * 10 + [-1.01] * 90
    weight = [1.0] * 4 + [-1.0] * 6 + [-1.0] * 89 + [1.0]
    (curve,) = fitted(5 * f, 5 * weight).curves
    p = curve(np.array([-1.0, -1.01]))
    assert p == pytest.approx([0.4, 1 / 90], abs=0.02)
    assert (
        curve(np.array([-0.5, 0.5]))[0] == 0.5 <= curve(np.array([0.5]))[0]
        if curve.clipped
        else True
    )


def test_the_report_counts_rows_and_losses() -> None:
    calibrator = fitted([1, 1, -1, -1], [1, 1, -1, -1])
    # Probabilities are 3/4 of the right class.
    assert calibrator.report.n_values.tolist() == [2, 2]
    assert calibrator.report.log_loss == pytest.approx(-math.log(0.75), rel=1e-4)
    assert calibrator.report.brier == pytest.approx(1 / 16, rel=1e-4)
    assert calibrator.report.prior_log_loss == pytest.approx(math.log(2))
    assert not calibrator.report.fallback
    assert fitted([1, 1], [1, 1]).report.fallback


def test_weights_are_relative() -> None:
    # At f = 1 a positive row of weight 3 and a negative one of weight 1 count as 1.5 and 0.5 rows:
    # targets are 2.5 / 3.5 and 1 / 2.5, and their mean is (1.5 * 5/7 + 0.5 * 2/5) / 2 = 89/140.
    (curve,) = fitted([1, 1], [3, -1]).curves
    assert curve.above + curve.high == pytest.approx(math.log(89 / 51), rel=1e-4)
    assert fitted([1, 1], [300, -100]).curves == [curve]


def test_values_against_their_labels_have_no_slope() -> None:
    (curve,) = fitted([1, 2, -1, -2], [-1, -1, 1, 1]).curves
    assert curve == Sigmoid(0, 0, 0, 0)
    assert curve(np.array([-3.0, 3.0])).tolist() == [0.5, 0.5]


def test_without_values_the_slope_is_one() -> None:
    assert fitted([], []).curves == [Sigmoid(1, 1, 0, 0)]
    # One class is missing: P = 1 / (1 + exp(-1)) at the mean of |f|.
    assert fitted([1, 3], [1, 1]).curves == [Sigmoid(0.5, 0.5, 0, 0)]


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
