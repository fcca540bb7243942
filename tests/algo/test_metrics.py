"""Measures for imbalanced classes and streams worked by hand: a failure means a wrong definition.

The last part is what is refused: there a failure means a number where none is defined.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC, SVR, OneClassSVM

from marginwise import OnlineSVC
from marginwise.metrics import (
    g_mean_score,
    prbep_score,
    prequential_error,
    support_vector_ratio,
)
from tests.support import blobs

# -- the geometric mean ---------------------------------------------------------------------------


def test_two_classes() -> None:
    # Sensitivity: 1 of 2 positives. Specificity: 2 of 4 negatives. sqrt(1/2 * 2/4) = 1/2.
    y_true, y_pred = [1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1, 1]
    assert g_mean_score(y_true, y_pred) == pytest.approx(0.5)
    names = np.array(["no", "yes"])
    assert g_mean_score(names[y_true], names[y_pred]) == pytest.approx(0.5), "strings differ"
    frame = pd.Series(names[y_true], dtype="category")
    assert g_mean_score(frame, names[y_pred].tolist()) == pytest.approx(0.5), "categories differ"


def test_three_classes() -> None:
    # Recalls 2/2, 1/2 and 1/4: (1/8) ** (1/3) = 1/2.
    y_true = ["a", "a", "b", "b", "c", "c", "c", "c"]
    y_pred = ["a", "a", "b", "a", "c", "a", "b", "b"]
    assert g_mean_score(y_true, y_pred) == pytest.approx(0.5)
    # The last two alone: sqrt(1/2 * 1/4); a class that is named twice counts once.
    assert g_mean_score(y_true, y_pred, labels=["c", "b"]) == pytest.approx(math.sqrt(1 / 8))
    assert g_mean_score(y_true, y_pred, labels=["c", "b", "c"]) == pytest.approx(math.sqrt(1 / 8))
    assert g_mean_score(y_true, y_pred, labels=["b"]) == pytest.approx(0.5)


def test_best_and_worst_are_exact() -> None:
    assert g_mean_score([0, 1, 2, 2], [0, 1, 2, 2]) == 1.0
    assert g_mean_score([0] * 99 + [1], [0] * 100) == 0.0, "one class is never found"
    # A class that is only predicted has no recall, and makes two classes no three: sqrt(1/2 * 1).
    assert g_mean_score([0, 0, 1], [0, 2, 1]) == pytest.approx(math.sqrt(1 / 2))


def test_weights_count_rows() -> None:
    # Recalls 3 / (3 + 1) and 1 / (1 + 2): sqrt(3/4 * 1/3) = 1/2.
    y_true, y_pred = [0, 0, 1, 1], [0, 1, 1, 0]
    assert g_mean_score(y_true, y_pred, sample_weight=[3, 1, 1, 2]) == pytest.approx(0.5)
    # A row of weight zero is not there: recalls 1 and 1/2; without class 1, 1/2 alone.
    assert g_mean_score(y_true, y_pred, sample_weight=[1, 0, 1, 1]) == pytest.approx(math.sqrt(0.5))
    assert g_mean_score(y_true, y_pred, sample_weight=[1, 1, 0, 0]) == pytest.approx(0.5)


def test_many_low_recalls_do_not_vanish() -> None:
    # 400 classes with one row of ten found: the product 1e-400 is below every float, the mean 1/10.
    y_true = np.repeat(np.arange(400), 10)
    y_pred = np.where(np.arange(4000) % 10 == 0, y_true, (y_true + 1) % 400)
    assert g_mean_score(y_true, y_pred) == pytest.approx(0.1)


# -- the break-even point -------------------------------------------------------------------------


def test_no_ties() -> None:
    # Three positives; two of the three highest scores are theirs.
    y_true, y_score = [1, 0, 1, 0, 1], [5.0, 4.0, 3.0, 2.0, 1.0]
    assert prbep_score(y_true, y_score) == 2 / 3
    # The two zeros as positives: of the two highest scores (5, 4) one is theirs.
    assert prbep_score(y_true, y_score, pos_label=0) == 1 / 2
    assert prbep_score([0, 0, 1, 1], [1, 2, 3, 4]) == 1.0
    assert prbep_score([1, 1, 0, 0], [1, 2, 3, 4]) == 0.0


def test_ties_at_the_cut() -> None:
    # n_pos = 3. Above the tie: one positive, so 2 slots for the 4 tied rows, 2 of them positive:
    # (1 + 2 * 2/4) / 3 = 2/3.
    y_true, y_score = [1, 1, 1, 0, 0, 0], [9, 5, 5, 5, 5, 1]
    assert prbep_score(y_true, y_score) == 2 / 3
    # n_pos = 2, all tied: 2 slots, 2 of 5 rows are positive: (2 * 2/5) / 2 = 2/5.
    assert prbep_score([1, 0, 1, 0, 0], [7, 7, 7, 7, 7]) == 2 / 5


def test_ties_off_the_cut_change_nothing() -> None:
    # n_pos = 2: the tie of the first two fills both slots, and the tie below is not reached.
    assert prbep_score([1, 0, 1, 0, 0], [8, 8, 3, 3, 3]) == 1 / 2


def test_infinite_scores_rank() -> None:
    # n_pos = 2: one positive at the top, and one slot for the two at zero: (1 + 1/2) / 2.
    assert prbep_score([1, 1, 0, 0], [np.inf, 0.0, -0.0, -np.inf]) == 3 / 4


def test_large_integers_are_no_ties() -> None:
    """As floats the two are the same number, and the value would be 1/2."""
    assert prbep_score([0, 1], [2**53, 2**53 + 1]) == 1.0


def test_the_larger_label_is_positive() -> None:
    scores = [4, 3, 2, 1]
    for y_true in (["b", "b", "a", "a"], [1, 1, -1, -1], [True, True, False, False], [7, 7, 3, 3]):
        assert prbep_score(y_true, scores) == 1.0, f"{y_true}: the smaller label was positive"
    assert prbep_score(["b", "b", "a", "a"], scores, pos_label="a") == 0.0


def test_positives_alone_are_all_found() -> None:
    assert prbep_score(["a", "a"], [1.0, 2.0], pos_label="a") == 1.0


# -- the support vectors --------------------------------------------------------------------------


class Counted(BaseEstimator):
    """A fitted classifier of which nothing but the counts is known."""

    def __init__(self, *n_support: int) -> None:
        self.n_support_ = np.array(n_support, dtype=np.int32)

    def fit(self) -> Counted:
        return self


def test_ratio_of_two_classes() -> None:
    assert support_vector_ratio(Counted(6, 4)) == 1.5
    assert support_vector_ratio(Counted(0, 4)) == 0.0
    assert support_vector_ratio(Counted(6, 0)) == math.inf
    assert math.isnan(support_vector_ratio(Counted(0, 0)))
    assert type(support_vector_ratio(Counted(6, 4))) is float


def test_ratios_of_several_classes() -> None:
    # (2 + 4) / 6, (6 + 4) / 2, (6 + 2) / 4
    assert support_vector_ratio(Counted(6, 2, 4)).tolist() == [1.0, 5.0, 2.0]
    # (0 + 4) / 1, (1 + 4) / 0, (1 + 0) / 4
    assert support_vector_ratio(Counted(1, 0, 4)).tolist() == [4.0, math.inf, 0.25]
    assert np.isnan(support_vector_ratio(Counted(0, 0, 0))).all()


@pytest.mark.parametrize("kind", [SVC, OnlineSVC])
def test_ratio_of_a_model(kind: Any) -> None:
    # The nearest points of the two hulls are (-1, 0), between the first two rows, and (1, 0):
    # both negatives at x = -1 hold the boundary, the one at -9 does not.
    X, y = [[-1, -1], [-1, 1], [-9, 0], [1, 0]], ["no", "no", "no", "yes"]
    model = kind(C=10.0, kernel="linear", random_state=0).fit(X, y)
    assert support_vector_ratio(model) == 2.0


def test_a_stream_of_one_class_has_no_support_vectors() -> None:
    model = OnlineSVC(gamma=1.0).partial_fit([[0.0], [1.0]], [0, 0], classes=[0, 1])
    assert math.isnan(support_vector_ratio(model))


# -- the prequential error ------------------------------------------------------------------------


def test_prequential_error_over_all_rows() -> None:
    # Losses 1, 0, 0, 1: running means 1/1, 1/2, 1/3, 2/4.
    error = prequential_error([1, 1, 0, 0], [0, 1, 0, 1])
    assert error.tolist() == [1.0, 1 / 2, 1 / 3, 1 / 2]
    assert error.dtype == np.float64
    names = np.array(["no", "yes"])
    same = prequential_error(names[[1, 1, 0, 0]], names[[0, 1, 0, 1]].tolist())
    assert same.tolist() == error.tolist(), "strings differ"


def test_prequential_error_fades() -> None:
    # Losses 1, 0, 0, 1 and fading 1/2.
    # S: 1, 1/2, 1/4, 1 + 1/8 = 9/8.   B: 1, 1 + 1/2 = 3/2, 1 + 3/4 = 7/4, 1 + 7/8 = 15/8.
    error = prequential_error([1, 1, 0, 0], [0, 1, 0, 1], fading=0.5)
    assert error == pytest.approx([1.0, 1 / 3, 1 / 7, 9 / 15])


def test_prequential_error_in_a_window() -> None:
    # Losses 1, 0, 0, 1, 1. Two rows: 1/1, 1/2, 0/2, 1/2, 2/2. Three: 1/1, 1/2, 1/3, 1/3, 2/3.
    y_true, y_pred = [1, 1, 0, 0, 0], [0, 1, 0, 1, 1]
    assert prequential_error(y_true, y_pred, window=2).tolist() == [1, 1 / 2, 0, 1 / 2, 1]
    assert prequential_error(y_true, y_pred, window=3).tolist() == [1, 1 / 2, 1 / 3, 1 / 3, 2 / 3]
    # One row is its own loss; more rows than there are is the mean over all.
    assert prequential_error(y_true, y_pred, window=1).tolist() == [1, 0, 0, 1, 1]
    everything = prequential_error(y_true, y_pred, window=2**62)
    assert everything.tolist() == prequential_error(y_true, y_pred).tolist()


def test_prequential_error_with_weights() -> None:
    # Losses 1, 0, 1 with weights 1, 3, 2, fading 1/2: S = 1, 1/2, 2 + 1/4; B = 1, 3 + 1/2, 2 + 7/4.
    labels, weights = ([1, 1, 0], [0, 1, 1]), {"sample_weight": [1, 3, 2]}
    error = prequential_error(*labels, fading=0.5, **weights)
    assert error == pytest.approx([1.0, 1 / 7, 9 / 15])
    # Over all rows 1/1, 1/4, 3/6; over the last two 1/1, 1/4, 2/5.
    assert prequential_error(*labels, **weights) == pytest.approx([1.0, 1 / 4, 1 / 2])
    assert prequential_error(*labels, window=2, **weights) == pytest.approx([1.0, 1 / 4, 2 / 5])


def test_rows_of_weight_zero_have_no_error() -> None:
    labels, weights = ([1, 1, 0, 0], [0, 1, 1, 1]), {"sample_weight": [0, 1, 0, 0]}
    np.testing.assert_array_equal(prequential_error(*labels, **weights), [np.nan, 0, 0, 0])
    in_window = prequential_error(*labels, window=2, **weights)
    np.testing.assert_array_equal(in_window, [np.nan, 0, 0, np.nan])


def test_the_error_outlasts_any_number_of_rows_of_weight_zero() -> None:
    # Weights 1 and 1, losses 1 and 0: S = 1/2, B = 3/2. Then both fade by 2^-5000, which is no
    # float, and their ratio stays.
    y_true, y_pred = np.zeros(5002, int), np.r_[1, np.zeros(5001, int)]
    weights = np.r_[1.0, 1.0, np.zeros(5000)]
    error = prequential_error(y_true, y_pred, fading=0.5, sample_weight=weights)
    assert error[-1] == pytest.approx(1 / 3)


@pytest.mark.parametrize("options", [{}, {"fading": 0.9}, {"fading": 1e-300}, {"window": 7}])
def test_constant_streams_have_constant_errors(options: dict[str, Any]) -> None:
    zeros, ones = np.zeros(2000, int), np.ones(2000, int)
    assert (prequential_error(zeros, ones, **options) == 1.0).all()
    assert (prequential_error(ones, ones, **options) == 0.0).all()
    weights = np.random.default_rng(0).random(2000) * 1e308  # sums would overflow
    assert (prequential_error(zeros, ones, sample_weight=weights, **options) == 1.0).all()


# -- scorers --------------------------------------------------------------------------------------


def test_scorers() -> None:
    """A scorer gives what the metric gives: if not, model selection ranks by something else."""
    X, y = blobs(90, 0, classes=2)
    y = np.array(["rare", "usual"])[y]
    model = OnlineSVC(random_state=0).fit(X, y)
    values = model.decision_function(X)
    assert make_scorer(g_mean_score)(model, X, y) == g_mean_score(y, model.predict(X))
    ranked = {"response_method": "decision_function"}
    assert make_scorer(prbep_score, **ranked)(model, X, y) == prbep_score(y, values)
    # "rare" comes first in classes_: scikit-learn turns the scores round where it is positive.
    rare = make_scorer(prbep_score, pos_label="rare", **ranked)
    assert rare(model, X, y) == prbep_score(y, -values, pos_label="rare") > 0.5
    for scorer in (make_scorer(g_mean_score), rare):
        folds = cross_val_score(OnlineSVC(random_state=0), X, y, scoring=scorer, cv=3)
        assert (folds > 0.5).all(), "worse than chance on clouds that hardly overlap"


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y_true", "y_pred", "options", "message"),
    [
        ([0, 1], [0, 1], {"labels": [0, 2]}, r"labels contains 2.*no row"),
        (["a", "b"], ["a", "b"], {"labels": ["b", "c"]}, r"labels contains 'c'.*no row"),
        ([0, 1], [0, 1], {"labels": [1], "sample_weight": [1, 0]}, r"labels contains 1.*no row"),
        ([0, 1], [0, 1], {"labels": []}, r"labels is empty"),
        ([0, 1], [0, 1], {"labels": 1}, r"labels must have one value per row"),
        ([0, 1], [0, 1, 1], {}, r"y_pred has 3 rows, but y_true has 2"),
        ([0, 1], ["a", "b"], {}, r"string and number"),
        ([0, 1], [0.2, 0.7], {}, r"continuous"),
        ([0, 1, np.nan], [0, 1, 1], {}, r"y_true is nan at row 2"),
        (["a", "b"], ["a", None], {}, r"y_pred is None at row 1"),
        ([[0, 1], [1, 0]], [0, 1], {}, r"y_true must have one value per row.*\(2, 2\)"),
        ([], [], {}, r"y_true is empty"),
        ([0, 1], [0, 1], {"sample_weight": [1.0]}, r"sample_weight has 1 rows, but y_true has 2"),
        ([0, 1], [0, 1], {"sample_weight": [1.0, -2.0]}, r"sample_weight is -2.0 at row 1"),
        ([0, 1], [0, 1], {"sample_weight": [np.nan, 1.0]}, r"sample_weight is nan at row 0"),
        ([0, 1], [0, 1], {"sample_weight": [0.0, 0.0]}, r"sample_weight is zero for all rows"),
    ],
)
def test_g_mean_refuses(y_true: Any, y_pred: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        g_mean_score(y_true, y_pred, **options)


@pytest.mark.parametrize(
    ("y_true", "y_score", "pos_label", "message"),
    [
        ([0, 1, 1], [0.1, np.nan, np.nan], None, r"y_score is NaN at row 1"),
        ([0, 1], [0.1, None], None, r"y_score is NaN at row 1"),
        ([0, 1], ["0.1", "0.2"], None, r"y_score must be real numbers"),
        ([0, 1], [[0.1, 0.9], [0.2, 0.8]], None, r"y_score must have one value per row.*\(2, 2\)"),
        ([0, 1], [0.1], None, r"y_score has 1 rows, but y_true has 2"),
        ([0, 1, 2], [0.1, 0.2, 0.3], None, r"two classes, got 3"),
        ([0, 1, 2], [0.1, 0.2, 0.3], 2, r"two classes, got 3"),
        ([0.1, 0.7], [0.1, 0.2], None, r"Unknown label type"),
        ([0, 0], [0.1, 0.2], None, r"the single class 0.*pos_label"),
        ([0, 0], [0.1, 0.2], 1, r"pos_label=1 is not among the labels of y_true, \[0\]"),
        (["a", "b"], [0.1, 0.2], "c", r"pos_label='c' is not among.*\['a', 'b'\]"),
        ([0, np.inf], [0.1, 0.2], None, r"y_true is inf at row 1"),
        ([], [], None, r"y_true is empty"),
    ],
)
def test_prbep_refuses(y_true: Any, y_score: Any, pos_label: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prbep_score(y_true, y_score, pos_label=pos_label)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "options", "message"),
    [
        ([0, 1], [0, 1], {"fading": 0.0}, r"fading must be a number above 0, at most 1.0, got 0.0"),
        ([0, 1], [0, 1], {"fading": 1.5}, r"fading must be .* at most 1.0, got 1.5"),
        ([0, 1], [0, 1], {"fading": np.nan}, r"fading must be .* got nan"),
        ([0, 1], [0, 1], {"fading": "1"}, r"fading must be .* got '1'"),
        ([0, 1], [0, 1], {"window": 0}, r"window must be None or an integer of at least 1, got 0"),
        ([0, 1], [0, 1], {"window": 1.5}, r"window must be .* got 1.5"),
        ([0, 1], [0, 1], {"window": True}, r"window must be .* got True"),
        ([0, 1], [0, 1], {"fading": 0.9, "window": 2}, r"fading=0.9 and window=2 exclude .* one"),
        ([0, 1], [0, 1, 1], {}, r"y_pred has 3 rows, but y_true has 2"),
        ([0, 1], [0, 1], {"sample_weight": [1.0]}, r"sample_weight has 1 rows, but y_true has 2"),
        ([0, 1], [0, 1], {"sample_weight": [1.0, -2.0]}, r"sample_weight is -2.0 at row 1"),
        ([0, 1], [0, 1], {"sample_weight": [0.0, 0.0]}, r"sample_weight is zero for all rows"),
        ([], [], {}, r"y_true is empty"),
        ([0, 1, np.nan], [0, 1, 1], {}, r"y_true is nan at row 2"),
        ([0, 1], [0.2, 0.7], {}, r"continuous"),
        ([0, 1], ["a", "b"], {}, r"string and number"),
    ],
)
def test_prequential_error_refuses(
    y_true: Any, y_pred: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        prequential_error(y_true, y_pred, **options)


@pytest.mark.parametrize("kind", [SVC, OnlineSVC])
def test_ratio_needs_a_fitted_model(kind: Any) -> None:
    with pytest.raises(NotFittedError):
        support_vector_ratio(kind())


@pytest.mark.parametrize("kind", [LogisticRegression, SVR, OneClassSVM])
def test_ratio_needs_classes_with_support_vectors(kind: Any) -> None:
    model = kind().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    with pytest.raises(ValueError, match=f"n_support_.* got {kind.__name__}"):
        support_vector_ratio(model)
