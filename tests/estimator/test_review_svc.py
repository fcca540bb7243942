"""The classifier for ASReview: what it adds, when it fits again, and bad input."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from marginwise import OnlineSVC
from marginwise.label.asreview import ReviewSVC
from tests.support import sparse_rows


def records(rows: int = 60, features: int = 300) -> tuple[Any, np.ndarray]:
    """Return rows of unit length with few entries, and labels of which a sixth are 1."""
    rng = np.random.default_rng(7)
    X = sparse_rows(rows, features, 0.1, rng)
    y = (np.arange(rows) % 6 == 0).astype(np.int64)
    X = sp.csr_matrix(X + sp.csr_matrix((y * 0.5, (range(rows), [0] * rows)), X.shape))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / lengths) @ X), y


def one_by_one(X: Any, y: np.ndarray, first: int = 2) -> ReviewSVC:
    model = ReviewSVC()
    for rows in range(first, len(y) + 1):
        model.fit(X[:rows], y[:rows])
    return model


@pytest.mark.parametrize("dense", [False, True])
def test_only_new_rows_are_learned(dense: bool) -> None:
    X, y = records()
    X = X.toarray() if dense else X
    model = one_by_one(X, y)
    plain = OnlineSVC(C=0.1, kernel="linear", class_weight={1: 100.0}, random_state=0)
    plain.fit(X[:2], y[:2])
    for row in range(2, len(y)):
        plain.learn_many(X[row : row + 1], [int(y[row])])
    assert model.n_refits_ == 1
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, plain.decision_function(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-5, atol=1e-6)
    assert scores[y == 1].mean() > scores[y == 0].mean() + 0.5
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))


def test_the_same_rows_change_nothing() -> None:
    X, y = records()
    model = one_by_one(X, y)
    before = model.decision_function(X)
    assert np.array_equal(model.fit(X, y).decision_function(X), before)
    assert model.n_refits_ == 1


def changed_label(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    y = y.copy()
    y[3] = 1 - y[3]
    return X, y


def changed_value(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    X = X.copy()
    X.data[5] *= 2
    return X, y


def changed_column(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    X = X.tocsc()[:, np.r_[1 : X.shape[1], 0]].tocsr()
    X.sort_indices()
    return X, y


CHANGES = {
    "label": changed_label,
    "value": changed_value,
    "column": changed_column,
    "rows removed": lambda X, y: (X[1:], y[1:]),
    "order": lambda X, y: (X[::-1], y[::-1]),
    "dense": lambda X, y: (X.toarray(), y),
    "width": lambda X, y: (sp.hstack([X, X[:, :1]], format="csr"), y),
}


@pytest.mark.parametrize("what", CHANGES)
def test_other_rows_are_fitted_from_scratch(what: str) -> None:
    X, y = records()
    model = one_by_one(X, y, first=30)
    X, y = CHANGES[what](X, y)
    model.fit(X, y)
    assert model.n_refits_ == 2
    fresh = ReviewSVC().fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), fresh.decision_function(X))


def test_other_parameters_are_fitted_from_scratch() -> None:
    X, y = records()
    model = ReviewSVC().fit(X, y)
    model.set_params(C=1.0).fit(X, y)
    assert model.n_refits_ == 2
    assert np.array_equal(model.coef_, ReviewSVC(C=1.0).fit(X, y).coef_)


def test_the_weights_of_a_balancer_are_ignored() -> None:
    X, y = records()
    weighted = ReviewSVC().fit(X, y, sample_weight=np.linspace(1, 9, len(y)))
    assert np.array_equal(weighted.coef_, ReviewSVC().fit(X, y).coef_)


def test_rows_of_the_caller_may_change_later() -> None:
    X, y = records()
    X, labels = X.toarray(), y.copy()
    model = ReviewSVC().fit(X, labels)
    labels[0] = 1 - labels[0]
    model.fit(X, labels)
    assert model.n_refits_ == 2, "labels are copied"
    X[4] *= 3
    assert model.fit(X, labels).n_refits_ == 3, "rows are copied"


def test_bad_input() -> None:
    X, y = records()
    with pytest.raises(NotFittedError):
        ReviewSVC().decision_function(X)
    with pytest.raises(ValueError, match=r"expected 0 for irrelevant and 1"):
        ReviewSVC().fit(X, y + 1)
    with pytest.raises(ValueError, match="one class"):
        ReviewSVC().fit(X, np.zeros_like(y))
    model = ReviewSVC().fit(X, y)
    with pytest.raises(ValueError, match="300 features"):
        model.decision_function(X[:, :-1])
    more, labels = sp.vstack([X, X[:1] * np.nan], format="csr"), np.r_[y, 0]
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(more, labels)
    assert np.array_equal(model.decision_function(X), before)
    with pytest.raises(ValueError, match="2"):
        model.fit(X[[*range(X.shape[0]), 0]], np.r_[y, 2])
    assert np.array_equal(model.fit(X, y).decision_function(X), before)


def test_parameters() -> None:
    model = clone(ReviewSVC(C=0.3, relevant_weight=7.0))
    assert model.get_params(deep=False) == {"C": 0.3, "relevant_weight": 7.0}


def test_the_entry_point_names_the_class() -> None:
    page = Path(__file__).parents[2] / "pyproject.toml"
    groups = tomllib.loads(page.read_text(encoding="utf-8"))["project"]["entry-points"]
    module, _, name = groups["asreview.models.classifiers"][ReviewSVC.name].partition(":")
    assert getattr(import_module(module), name) is ReviewSVC


def test_labels_that_are_refused_leave_the_model_as_it_was() -> None:
    X, y = records()
    model, scores = one_by_one(X[:30], y[:30]), one_by_one(X[:30], y[:30]).decision_function(X)
    with pytest.raises(ValueError, match="expected 0 for irrelevant and 1"):
        model.fit(X[:40], y[:40].astype(str))
    assert np.array_equal(model.decision_function(X), scores)
    model.fit(X, y)
    assert model.n_refits_ == 1
