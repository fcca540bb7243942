"""The measures against other libraries, and against their definitions played through.

A failure here with tests/algo passing means that the hand-worked cases are too tame.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, precision_score, recall_score
from sklearn.svm import SVC

from marginwise import OnlineSVC
from marginwise.metrics import (
    g_mean_score,
    prbep_score,
    prequential_error,
    support_vector_ratio,
)
from tests.support import blobs


def predictions(classes: int, seed: int, n: int = 200) -> tuple[np.ndarray, ...]:
    """Labels of ever rarer classes, predictions of which most are right, and weights."""
    rng = np.random.default_rng([seed, classes])
    share = 0.5 ** np.arange(classes)
    y_true = rng.choice(classes, size=n, p=share / share.sum())
    y_true[:classes] = np.arange(classes)
    y_pred = np.where(rng.random(n) < 0.7, y_true, rng.integers(classes, size=n))
    y_pred[:classes] = np.arange(classes)
    return y_true, y_pred, rng.random(n)


def ranked(n: int, values: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels 0 and 1, and scores that tend to be higher for 1: all different, or `values` many."""
    rng = np.random.default_rng([seed, n, values or 0])
    y_true = rng.integers(2, size=n)
    y_true[:2] = 0, 1
    if values is None:
        return y_true, rng.normal(size=n) + y_true
    return y_true, rng.integers(values, size=n) + y_true


def precision_of_order(y_true: np.ndarray, order: Any) -> float:
    """The share of positives among the first n_pos rows of an order."""
    n_pos = int(y_true.sum())
    return float(y_true[list(order)[:n_pos]].sum() / n_pos)


# -- the geometric mean ---------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_g_mean_is_that_of_imbalanced_learn(classes: int, weighted: bool, seed: int) -> None:
    theirs = pytest.importorskip("imblearn.metrics").geometric_mean_score
    y_true, y_pred, weights = predictions(classes, seed)
    options: dict[str, Any] = {"sample_weight": weights} if weighted else {}
    for labels in (None, [0, 1]):
        ours = g_mean_score(y_true, y_pred, labels=labels, **options)
        expected = theirs(y_true, y_pred, labels=labels, **options)
        assert ours == pytest.approx(expected, rel=1e-12), f"labels={labels}"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_g_mean_follows_from_the_recalls_of_scikit_learn(
    classes: int, weighted: bool, seed: int
) -> None:
    y_true, y_pred, weights = predictions(classes, seed)
    options: dict[str, Any] = {"sample_weight": weights} if weighted else {}
    recalls = recall_score(y_true, y_pred, average=None, **options)
    expected = np.exp(np.log(recalls).mean())
    assert g_mean_score(y_true, y_pred, **options) == pytest.approx(expected, rel=1e-12)
    if classes == 2:
        sensitivity = recall_score(y_true, y_pred, pos_label=1, **options)
        specificity = recall_score(y_true, y_pred, pos_label=0, **options)
        g = np.sqrt(sensitivity * specificity)  # [ertekin2007, section 4]
        assert g_mean_score(y_true, y_pred, **options) == pytest.approx(g, rel=1e-12)


# -- the break-even point -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 40, 300])
def test_prbep_without_ties_is_where_the_curves_meet(n: int, seed: int) -> None:
    y_true, y_score = ranked(n, None, seed)
    precision, recall, thresholds = precision_recall_curve(y_true, y_score)
    # Where nothing is found both are 0, as they are wherever only negatives are called positive.
    meet = np.flatnonzero((precision == recall)[:-1] & (recall[:-1] > 0))
    value = prbep_score(y_true, y_score)
    assert set(precision[meet].tolist()) <= {value}, "precision equals recall at another value"
    assert len(meet) == (value > 0), "there is one such threshold, unless no positive is on top"
    for k in meet:
        called = (y_score >= thresholds[k]).astype(int)
        assert called.sum() == y_true.sum()
        assert value == precision_score(y_true, called) == recall_score(y_true, called)


@pytest.mark.parametrize("values", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [2, 4, 6])
def test_prbep_is_the_mean_over_all_orders_of_the_ties(n: int, values: int, seed: int) -> None:
    y_true, y_score = ranked(n, values, seed)
    orders = [
        order
        for order in itertools.permutations(range(n))
        if all(y_score[a] >= y_score[b] for a, b in itertools.pairwise(order))
    ]
    expected = np.mean([precision_of_order(y_true, order) for order in orders])
    assert prbep_score(y_true, y_score) == pytest.approx(expected, rel=1e-12), f"{len(orders)}"


@pytest.mark.parametrize("values", [1, 4, 20])
def test_prbep_is_what_random_orders_of_the_ties_tend_to(values: int, seed: int) -> None:
    y_true, y_score = ranked(120, values, seed)
    rng = np.random.default_rng(seed)
    # The last key of lexsort counts first: by score, ties by a random number.
    drawn = [
        precision_of_order(y_true, np.lexsort((rng.random(120), -y_score))) for _ in range(2000)
    ]
    error = np.std(drawn) / np.sqrt(len(drawn))
    # Six standard errors: one false alarm in some 10^8 draws.
    assert abs(prbep_score(y_true, y_score) - np.mean(drawn)) <= 6 * error + 1e-12


# -- the support vectors --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SVC, OnlineSVC])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_ratio_is_counted_from_the_labels_of_the_support_vectors(
    kind: Any, classes: int, seed: int
) -> None:
    X, y = blobs(150, seed, classes=classes)
    model = kind(C=2.0, gamma=0.5, random_state=0).fit(X, y)
    own = np.array([(y[model.support_] == c).sum() for c in range(classes)])
    np.testing.assert_array_equal(model.n_support_, own, "n_support_ does not count the support")
    if classes == 2:
        assert support_vector_ratio(model) == own[0] / own[1]
    else:
        others = np.array([(y[model.support_] != c).sum() for c in range(classes)])
        np.testing.assert_array_equal(support_vector_ratio(model), others / own)


# -- the prequential error ------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fading", [1.0, 0.998, 0.5, 1e-3])
def test_fading_error_is_the_recursion_of_the_paper(
    fading: float, weighted: bool, seed: int
) -> None:
    y_true, y_pred, weights = predictions(3, seed, n=3000)
    weights = np.where(weights < 0.2, 0.0, weights) if weighted else np.ones(3000)
    weights[0] = 1.0
    S = B = 0.0
    expected = []
    for t in range(3000):  # the recursion of [gama2013]
        S = weights[t] * float(y_true[t] != y_pred[t]) + fading * S
        B = weights[t] + fading * B
        expected.append(S / B)
    ours = prequential_error(y_true, y_pred, fading=fading, sample_weight=weights)
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("window", [1, 2, 7, 200, 399, 400, 401, 1000])
def test_windowed_error_is_the_mean_of_each_window(window: int, weighted: bool, seed: int) -> None:
    y_true, y_pred, weights = predictions(3, seed, n=400)
    # From 1e-18 to 1: differences of running sums would lose the small ones.
    weights = weights**40 + 1e-18 if weighted else np.ones(400)
    wrong = (y_true != y_pred).astype(float)
    parts = [slice(max(0, t - window + 1), t + 1) for t in range(400)]
    expected = [np.average(wrong[part], weights=weights[part]) for part in parts]
    ours = prequential_error(y_true, y_pred, window=window, sample_weight=weights)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_without_fading_the_error_is_the_running_mean(seed: int) -> None:
    """A million rows: sums of zeros and ones are exact, however many there are."""
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.integers(2, size=(2, 10**6))
    wrong = np.cumsum(y_true != y_pred)
    error = prequential_error(y_true, y_pred)
    np.testing.assert_array_equal(error, wrong / np.arange(1, 10**6 + 1))
    np.testing.assert_array_equal(prequential_error(y_true, y_pred, window=10**6), error)
    last = prequential_error(y_true, y_pred, window=1000)[999:]
    np.testing.assert_array_equal(last, (wrong[999:] - np.r_[0, wrong[:-1000]]) / 1000)
