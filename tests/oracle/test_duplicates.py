"""Exact duplicates share one weight: a model does not grow with copies of the same row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from marginwise import OnlineSVC


def repeated(seed: int, copies: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Binary rows, each several times, with labels that contradict each other here and there."""
    rng = np.random.default_rng(seed)
    rows = (rng.random((200, 12)) < 0.3).astype(np.float64)
    X = rows[rng.integers(0, len(rows), copies * len(rows))]
    y = (X @ rng.normal(size=12) + rng.normal(scale=0.5, size=len(X)) > 0).astype(int)
    return X, y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_no_more_support_vectors_than_svc(form: Any, C: float, seed: int) -> None:
    X, y = repeated(seed)
    model = OnlineSVC(C=C, gamma=0.3, tol=1e-4, random_state=0).fit(form(X), y)
    svc = SVC(C=C, gamma=0.3, tol=1e-4).fit(X, y)
    assert len(model.support_) <= len(svc.support_)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=5e-3)


def test_one_of_several_duplicates_is_free_at_most(seed: int) -> None:
    X, y = repeated(seed)
    model = OnlineSVC(C=2.0, gamma=0.3, random_state=0).fit(X, y)
    weight = np.abs(model.dual_coef_[0])
    copies: dict[tuple[float, ...], list[float]] = {}
    for s, alpha in zip(model.support_, weight, strict=True):
        copies.setdefault((y[s], *X[s]), []).append(alpha)
    assert any(len(group) > 1 for group in copies.values()), "some need more than one at its bound"
    for group in copies.values():
        free = [alpha for alpha in group if alpha < 2.0]
        assert len(free) <= 1
    assert abs(model.dual_coef_.sum()) < 1e-9


def test_weights_of_rows_are_bounds_of_their_own() -> None:
    """Copies with a small weight fill up, and the rest goes to the next."""
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])
    y = np.array([0, 0, 0, 1, 1, 1])
    weight = np.array([0.1, 0.2, 5.0, 0.1, 0.2, 5.0])
    model = OnlineSVC(C=1.0, gamma=1.0, random_state=0).fit(X, y, sample_weight=weight)
    alpha = np.zeros(6)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert (alpha <= weight + 1e-12).all()
    # The solution of two points: alpha = 1 / (1 - K) each.
    total = 1 / (1 - np.exp(-1))
    np.testing.assert_allclose([alpha[:3].sum(), alpha[3:].sum()], total, rtol=1e-3)


def test_learning_goes_on_after_duplicates_were_merged(seed: int) -> None:
    X, y = repeated(seed)
    model = OnlineSVC(C=10.0, gamma=0.3, random_state=0).fit(X[:400], y[:400])
    model.partial_fit(X[400:], y[400:]).finish()
    whole = OnlineSVC(C=10.0, gamma=0.3, random_state=0).fit(X, y)
    assert np.mean(model.predict(X) == whole.predict(X)) > 0.95


def test_copies_at_their_bound_stay_there(seed: int) -> None:
    """Weights are added up and dealt out again: 0.2 three times must not become 0.19999999999."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(60, 2)), 7, axis=0)
    y = np.where(rng.random(len(X)) < 0.3, rng.integers(0, 2, len(X)), X[:, 0] > 0).astype(int)
    model = OnlineSVC(C=0.2, gamma=0.5, tol=1e-4, random_state=0).fit(X, y)
    weight = np.abs(model.dual_coef_[0])
    assert (weight == 0.2).sum() > 20
    assert not ((weight < 0.2) & (weight > 0.2 - 1e-9)).any()
    assert model._engine.delta <= 1e-4
