"""Margins, folds and rankings worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from marginwise.inspect import find_label_errors
from marginwise.inspect.decisions import margins
from marginwise.inspect.label_errors import _suspects, _without


class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose decision values are the columns of X; it notes what it is fitted to."""

    fits: list[Any] = []  # noqa: RUF012

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Given:
        self.classes_ = np.unique(y)
        Given.fits.append((np.asarray(X), np.asarray(y), sample_weight))
        return self

    def decision_function(self, X: Any) -> Any:
        X = np.asarray(X)
        return X[:, 0] + self.shift if len(self.classes_) == 2 else X


@pytest.fixture(autouse=True)
def _forget_fits() -> None:
    Given.fits.clear()


def test_margins_of_two_classes_are_y_f() -> None:
    f, codes = np.array([2.0, -0.5, 3.0, -1.0]), np.array([1, 1, 0, 0])
    np.testing.assert_array_equal(margins(f, codes), [2.0, -0.5, -3.0, 1.0])


def test_margins_of_several_classes_are_half_the_lead() -> None:
    f = np.array([[3.0, 1.0, -1.0], [3.0, 1.0, -1.0], [0.0, 0.0, -4.0]])
    # 3 against 1; 1 against 3; -4 against 0.
    np.testing.assert_array_equal(margins(f, np.array([0, 1, 2])), [1.0, -1.0, -2.0])
    assert f[0].tolist() == [3.0, 1.0, -1.0], "the values are not changed"


def test_two_columns_and_one_give_the_same_margin() -> None:
    f, codes = np.array([0.3, -2.0]), np.array([0, 1])
    np.testing.assert_allclose(margins(np.column_stack([-f, f]), codes), margins(f, codes))


def test_suspects_are_improbable_and_another_class_wins() -> None:
    # Chance is 1/3: 0.6 times chance is 0.2.
    P = np.array([[0.1, 0.8, 0.1], [0.25, 0.7, 0.05], [0.19, 0.4, 0.41], [0.5, 0.3, 0.2]])
    assert _suspects(P, np.zeros(4, dtype=np.intp), 0.6).tolist() == [True, False, True, False]
    assert _suspects(P, np.zeros(4, dtype=np.intp), 3.0).tolist() == [True, True, True, False]
    assert _suspects(P, np.zeros(4, dtype=np.intp), 0.3).tolist() == [False] * 4


def test_half_of_a_class_is_kept() -> None:
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    given = np.array([0.3, 0.1, 0.2, 0.4, 0.5, 0.1, 0.9, 0.9])
    P = np.where(codes[:, None] == [0, 1], given[:, None], 1 - given[:, None])
    suspect = np.array([True] * 5 + [True, False, False])
    folds = [(np.arange(8), np.arange(0)), (np.array([5]), np.arange(5))]
    (first, _), (second, _) = _without(suspect, folds, codes, P)
    assert first.tolist() == [0, 3, 4, 6, 7], "of five, the two least probable leave"
    assert second.tolist() == [5], "the only row of a class remains"


def test_order_is_that_of_margins() -> None:
    f = np.array([2.0, -1.0, 1.0, -2.0, 0.5, -0.5, 3.0, -3.0])
    y = np.array(["b", "a", "b", "a", "a", "b", "b", "a"])  # rows 4 and 5 are on the other side
    for rank_by in ("probability", "margin"):
        found = find_label_errors(Given(), f[:, None], y, cv=2, rank_by=rank_by, random_state=0)
        assert found.margin.tolist() == [2.0, 1.0, 1.0, 2.0, -0.5, -0.5, 3.0, 3.0]
        assert found.order.tolist() == [4, 5, 1, 2, 0, 3, 6, 7]
        assert found.suggested.tolist() == ["b", "a", "b", "a", "b", "a", "b", "a"]
        assert found.classes.tolist() == ["a", "b"]
        assert found.decision.tolist() == f.tolist()


def test_probabilities_correct_a_shifted_boundary() -> None:
    """Margins of a boundary that lies off rank right labels first; probabilities do not."""
    f = np.repeat([1.0, -1.0], 50)
    y = (f > 0).astype(int)
    y[[3, 80]] = 1 - y[[3, 80]]
    X = f[:, None]
    margin = find_label_errors(Given(shift=-3.0), X, y, rank_by="margin", random_state=0)
    assert set(margin.order[:2].tolist()) != {3, 80}
    found = find_label_errors(Given(shift=-3.0), X, y, random_state=0)
    assert set(found.order[:2].tolist()) == {3, 80} == set(found.suspects.tolist())
    assert found.is_suspect.sum() == 2
    assert (
        found.probability[[3, 80]].max() < 0.3 < 0.7 < np.delete(found.probability, [3, 80]).min()
    )


def test_probabilities_are_platts() -> None:
    rng = np.random.default_rng(0)
    f = rng.normal(size=500)
    y = (f + rng.normal(size=500) > 0).astype(int)
    found = find_label_errors(Given(), f[:, None], y, rounds=1, random_state=0)
    scaled = ((f - f.mean()) / f.std())[:, None]
    P = LogisticRegression(C=0.1).fit(scaled, y).predict_proba(scaled)
    np.testing.assert_allclose(found.probability, P[np.arange(500), y], rtol=1e-6)


def test_later_rounds_leave_out_suspects_and_are_averaged() -> None:
    f = np.repeat([1.0, -1.0], 20)
    y = (f > 0).astype(int)
    y[7] = 0
    folds = [(np.arange(0, 40, 2), np.arange(1, 40, 2)), (np.arange(1, 40, 2), np.arange(0, 40, 2))]
    X = np.column_stack([f, np.arange(40)])
    find_label_errors(Given(), X, y, cv=folds, rounds=1)
    assert [len(rows) for rows, _, _ in Given.fits] == [20, 20]
    Given.fits.clear()
    find_label_errors(Given(), X, y, cv=folds, rounds=3)
    assert [len(rows) for rows, _, _ in Given.fits] == [20, 20, 20, 19, 20, 19]
    assert 7.0 not in Given.fits[3][0][:, 1]


def test_rounds_end_where_nothing_is_suspect() -> None:
    f = np.repeat([1.0, -1.0], 10)
    found = find_label_errors(Given(), f[:, None], f > 0, cv=2, rounds=5, random_state=0)
    assert len(Given.fits) == 2
    assert not found.is_suspect.any()
    assert found.suspects.tolist() == []


def test_weights_reach_every_fit() -> None:
    f = np.linspace(-1, 1, 12)
    weights = np.arange(1.0, 13.0)
    folds = [(np.arange(0, 12, 2), np.arange(1, 12, 2)), (np.arange(1, 12, 2), np.arange(0, 12, 2))]
    find_label_errors(Given(), f[:, None], f > 0, cv=folds, rounds=1, sample_weight=weights)
    assert [given.tolist() for _, _, given in Given.fits] == [
        [1, 3, 5, 7, 9, 11],
        [2, 4, 6, 8, 10, 12],
    ]
