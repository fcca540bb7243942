"""ExactSVC where kernel values are very large, very small, or very different from row to row.

A model is judged by the duality gap of its coefficients, computed here from kernel values: it
bounds how far the objective is from its optimum, whatever the units. Where double precision cannot
hold the solution, a ConvergenceWarning must say so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from marginwise import ExactOneClassSVM, ExactSVC
from tests.support import kernel_values

Rows = tuple[np.ndarray, np.ndarray]
POLY = {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 0.0}
QUADRATIC = {"kernel": "poly", "degree": 2, "gamma": 0.25, "coef0": 1.0}
LINEAR = {"kernel": "linear"}
RBF = {"kernel": "rbf", "gamma": 1.0}


def plain(n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n) > 0.3
    return X, y.astype(np.int64)


def separable(n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    w = np.array([1.0, 0.5, -1.0])
    X = rng.normal(size=(n, 3))
    y = X @ w > 0
    return X + 0.4 * np.where(y, 1.0, -1.0)[:, None] * w, y.astype(np.int64)


TAILS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "first": lambda rng, n: np.where(np.arange(n) == 0, 1e3, 1.0),
    "lognormal": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "cauchy": lambda rng, n: np.minimum(np.abs(rng.standard_cauchy(n)), 1e3),
    "extreme": lambda rng, n: np.clip(np.exp(5 * rng.normal(size=n)), 1e-6, 1e6),
}


def relative_gap(model: ExactSVC, X: np.ndarray, y: np.ndarray) -> float:
    """The duality gap over the primal objective; row k of X has the id k where it is held."""
    params = model.get_params()
    rows = np.sort(model.ids_)
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0]
    alpha, X, signs = alpha[rows], X[rows], np.where(y[rows] == 1, 1.0, -1.0)
    known = {name: params[name] for name in ("gamma", "coef0", "degree")}
    f = kernel_values(params["kernel"], X, X, **known) @ alpha
    losses = np.maximum(0.0, 1 - signs * (f + model.intercept_[0]))
    primal = alpha @ f / 2 + params["C"] * losses.sum()
    return float((primal - (signs @ alpha - alpha @ f / 2)) / primal)


def quietly(call: Callable[..., Any], *args: Any) -> bool:
    """Call; return whether there was no warning about convergence."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call(*args)
    assert all(issubclass(warning.category, ConvergenceWarning) for warning in said)
    return not said


@pytest.mark.parametrize("seed", range(3))
def test_a_large_first_row_is_one_row_of_many(seed: int) -> None:
    X, y = plain(200, seed)
    X[0] *= 1000
    model = ExactSVC(C=1.0, **POLY)
    reverse = ExactSVC(C=1.0, **POLY)
    quietly(model.fit, X, y)
    reverse.fit(X[::-1], y[::-1])
    near = X[1:]
    np.testing.assert_allclose(
        model.decision_function(near), reverse.decision_function(near), rtol=0, atol=1e-6
    )
    svc = SVC(C=1.0, tol=1e-6, **POLY).fit(X, y)
    assert abs(model.score(X, y) - svc.score(X, y)) <= 0.01
    quietly(model.forget, [0])
    never = ExactSVC(C=1.0, **POLY).fit(near, y[1:])
    np.testing.assert_allclose(
        model.decision_function(near), never.decision_function(near), rtol=0, atol=1e-8
    )


@pytest.mark.slow
@pytest.mark.parametrize("params", [POLY, QUADRATIC, LINEAR, RBF], ids=["p3", "p2", "lin", "rbf"])
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_heavy_tails_are_solved_or_reported(
    tail: str, params: dict[str, Any], C: float, seed: int
) -> None:
    for own in range(2):
        X, y = plain(120, 10 * seed + own)
        X *= TAILS[tail](np.random.default_rng(seed), 120)[:, None]
        if (np.einsum("ij,ij->i", X, X).max() * params.get("gamma", 1.0)) ** 3 > 1e36:
            X /= 10  # poly values that are refused
        rest = np.argsort(-np.einsum("ij,ij->i", X, X))
        for order in (np.arange(120), np.arange(120)[::-1]):
            model = ExactSVC(C=C, **params)
            quiet = quietly(model.fit, X[order], y[order])
            assert not quiet or relative_gap(model, X[order], y[order]) < 1e-5
            assert tail == "extreme" or relative_gap(model, X[order], y[order]) < 1e-3
        model = ExactSVC(C=C, **params)
        quietly(model.fit, X, y)
        quiet = quietly(model.forget, rest[:15])
        assert not quiet or relative_gap(model, X, y) < 1e-5
        assert tail == "extreme" or relative_gap(model, X, y) < 1e-6


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6, 1e12])
def test_units_do_not_matter_where_classes_are_separable(C: float, scale: float) -> None:
    X, y = separable(120, 1)
    if C * scale**2 < 1e-2:  # all at their bounds
        C = 1e-2 / scale**2
    model = ExactSVC(C=C, **LINEAR).fit(X * scale, y)
    if C * scale**2 > 10:
        assert model.score(X * scale, y) == 1.0
    one = ExactSVC(C=min(C * scale**2, 1e3), **LINEAR).fit(X, y)
    assert relative_gap(one, X, y) < 1e-5
    np.testing.assert_allclose(
        model.decision_function(X * scale), one.decision_function(X), rtol=0, atol=1e-6
    )


def test_what_precision_cannot_hold_is_reported() -> None:
    X, y = plain(150, 0)
    with pytest.warns(ConvergenceWarning, match=r"violated by .* Scale the features.*lower C"):
        ExactSVC(C=1e6, **LINEAR).fit(X * 1e6, y)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6])
def test_units_do_not_matter_to_a_sphere(scale: float, seed: int) -> None:
    X, _ = plain(100, seed)
    one = ExactOneClassSVM(nu=0.123, kernel="linear").fit(X)
    model = ExactOneClassSVM(nu=0.123, kernel="linear").fit(X * scale)
    assert model.support_.tolist() == one.support_.tolist()
    np.testing.assert_allclose(
        model.decision_function(X * scale) / scale**2,
        one.decision_function(X),
        rtol=0,
        atol=1e-9 * one._engine.total,
    )
    model.forget(range(0, 100, 3))
    one.forget(range(0, 100, 3))
    assert model.support_.tolist() == one.support_.tolist()


def test_coefficients_that_were_large_leave_no_rounding(seed: int) -> None:
    """A row of K = 1e16 at its bound moves all gradients, and is forgotten."""
    X, y = plain(80, seed)
    X[7] *= 1e8
    model = ExactSVC(C=1.0, **LINEAR)
    quietly(model.fit, X, y)
    quietly(model.forget, [7])
    model._engine.native.check(1e-9)
    rest = np.setdiff1d(np.arange(80), 7)
    never = ExactSVC(C=1.0, **LINEAR).fit(X[rest], y[rest])
    np.testing.assert_allclose(
        model.decision_function(X[rest]), never.decision_function(X[rest]), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("params", [LINEAR, RBF], ids=["lin", "rbf"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_an_infinite_c_is_a_hard_margin(params: dict[str, Any], scale: float) -> None:
    X, y = separable(100, 2)
    X *= 1.0 if params is RBF else scale
    model = ExactSVC(C=np.inf, **params).fit(X, y, sample_weight=np.full(100, 2.0))
    signs = np.where(y == 1, 1.0, -1.0)
    assert (signs * model.decision_function(X)).min() == pytest.approx(1.0, abs=1e-7)
    large = 1e6 if params is RBF else 1e6 / scale**2
    soft = ExactSVC(C=large, **params).fit(X, y)
    for same in (model, soft.set_C(np.inf), ExactSVC(C=1.0, **params).fit(X, y).set_C(np.inf)):
        np.testing.assert_allclose(
            same.decision_function(X), model.decision_function(X), rtol=0, atol=1e-6
        )
    again = ExactSVC(C=np.inf, **params).fit(X, y).set_C(large)
    np.testing.assert_allclose(
        again.decision_function(X), soft.set_C(large).decision_function(X), rtol=0, atol=1e-6
    )
    rest = np.arange(10, 100)
    never = ExactSVC(C=np.inf, **params).fit(X[rest], y[rest])
    np.testing.assert_allclose(
        model.forget(range(10)).decision_function(X),
        never.decision_function(X),
        rtol=0,
        atol=1e-7,
    )


def test_an_infinite_c_without_a_margin_is_reported() -> None:
    with pytest.warns(ConvergenceWarning, match="not the exact solution"):
        ExactSVC(C=np.inf, **LINEAR).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
