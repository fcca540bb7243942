"""Forgetting rows that gamma, the class weights or the centre were computed from."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from marginwise import ExactOneClassSVM, ExactSVC, load, save
from tests.support import blobs, rings

GONE, REST = np.arange(0, 45), np.arange(45, 160)


def stretched(seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which those to be forgotten are larger, and mostly of one class."""
    X, y = rings(160, seed, noise=0.1) if classes == 2 else blobs(160, seed, classes)
    order = np.argsort(y != 1, kind="stable")
    order = np.concatenate([order[:30], np.random.default_rng(seed).permutation(order[30:])])
    X, y = X[order], y[order]
    X[GONE] *= 4
    return X, y


def assert_same(model: Any, other: Any, X: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(X), rtol=0, atol=tolerance
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"C": 50.0},
        {"kernel": "poly", "coef0": 1.0, "degree": 2},
        {"class_weight": "balanced"},
        {"class_weight": "balanced", "kernel": "linear"},
    ],
    ids=str,
)
def test_a_fit_without_the_rows(params: dict[str, Any], classes: int, seed: int) -> None:
    X, y = stretched(seed, classes)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, size=len(y))
    model = ExactSVC(**params).fit(X, y, sample_weight=weights).forget(GONE)
    model._engine.native.check(1e-7)
    never = ExactSVC(**params).fit(X[REST], y[REST], sample_weight=weights[REST])
    assert_same(model, never, X)
    model = pickle.loads(pickle.dumps(model)).forget(REST[:10])
    never.fit(X[REST[10:]], y[REST[10:]], sample_weight=weights[REST[10:]])
    assert_same(model, never, X)
    assert model._engine.resolved == 0


def test_sparse_rows(seed: int) -> None:
    X, y = stretched(seed)
    X = sp.csr_array(np.column_stack([np.zeros((160, 60)), X]))
    model = ExactSVC().fit(X, y).forget(GONE)
    assert model._engine.plan.sparse
    assert_same(model, ExactSVC().fit(X[REST], y[REST]), X)


def test_a_stream_without_the_rows(seed: int, tmp_path: Path) -> None:
    X, y = stretched(seed)
    model = ExactSVC().partial_fit(X[:100], y[:100], classes=[0, 1]).partial_fit(X[100:], y[100:])
    gamma = model._engine.plan.gamma
    model.forget([110, 120])  # not of the first batch
    assert model._engine.plan.gamma == gamma
    save(model, tmp_path / "model.mwz")
    model = load(tmp_path / "model.mwz").forget(GONE)
    never = ExactSVC().partial_fit(X[45:100], y[45:100], classes=[0, 1])
    late = np.setdiff1d(np.arange(100, 160), [110, 120])
    assert_same(model, never.partial_fit(X[late], y[late]), X)
    model.forget(range(45, 100))  # no row of the first batch is left
    assert_same(model, ExactSVC().fit(X[late], y[late]), X)
    model.forget(late)
    assert model.ids_.size == 0


def test_a_sphere_without_the_rows(seed: int) -> None:
    X, _ = stretched(seed)
    for rows in (X, X + 1e5):  # the second with a centre
        model = ExactOneClassSVM(nu=0.13).fit(rows).forget(GONE)
        never = ExactOneClassSVM(nu=0.13).fit(rows[REST])
        assert_same(model, never, rows, 1e-8)


def test_a_centre_does_not_outlive_its_rows(seed: int) -> None:
    X, y = stretched(seed)
    model = ExactSVC(gamma=1.0).partial_fit(X, y, classes=[0, 1])
    assert not model._engine.plan.center, "no centre where none is needed"
    model = ExactSVC(gamma=1.0).partial_fit(X + 1e5, y, classes=[0, 1])
    secret = model._engine.plan.center
    assert secret == (X[0] + 1e5).tolist()
    model.forget([0])
    assert not set(secret) & set(model._engine.plan.center)
    assert_same(model, ExactSVC(gamma=1.0).fit(X[1:] + 1e5, y[1:]), X + 1e5, 1e-8)


def test_gamma_may_be_kept_with_a_warning(seed: int) -> None:
    X, y = stretched(seed)
    model = ExactSVC(class_weight="balanced").fit(X, y)
    gamma, weights = model._engine.plan.gamma, model._balance
    with pytest.warns(UserWarning, match=r"gamma stays .* instead of .* and class weights stay"):
        model.forget(GONE, gamma="keep")
    assert model._engine.plan.gamma == gamma
    own = dict(enumerate(weights))
    assert_same(model, ExactSVC(gamma=gamma, class_weight=own).fit(X[REST], y[REST]), X)
    ExactSVC(gamma=1.0).fit(X, y).forget(GONE, gamma="keep")  # nothing to report
    with pytest.raises(ValueError, match="gamma='drop' is not supported by forget"):
        model.forget([50], gamma="drop")  # type: ignore[arg-type]
    assert 50 in model.ids_


def test_the_path_leads_to_the_new_solution(seed: int) -> None:
    X, y = stretched(seed)
    model = ExactSVC(record=True).fit(X, y).forget(GONE)
    path = model.path_
    where = dict(zip(path["id"].tolist(), path["target"].tolist(), strict=True))
    assert {k for k, place in where.items() if place in ("free", "bounded")} == set(model.support_)
    assert {k for k, place in where.items() if place == "gone"} <= set(GONE.tolist())
