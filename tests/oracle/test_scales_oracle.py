"""The classifiers at any scale of the features and of C, against libsvm (scikit-learn's SVC)."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from marginwise import (
    ExactRampSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
    load,
    save,
)
from tests.support import kernel_values

SOLVERS = (OnlineSVC, GapSVC, TrackingSVC, ExactRampSVC)
SCALES = (1e-12, 1e-6, 1e6, 1e12)
W = np.array([1.0, 2.0, -1.0]) / np.sqrt(6.0)


def separable(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes with a gap between them."""
    X = np.random.RandomState(seed).randn(120, 3)
    y = (X @ W > 0).astype(int)
    return X + 0.3 * np.outer(2 * y - 1, W), y


def dual_of(svc: SVC, K: np.ndarray) -> float:
    alpha = np.zeros(len(K))
    alpha[svc.support_] = svc.dual_coef_[0]
    return float(np.abs(alpha).sum() - alpha @ K @ alpha / 2)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_of_features_leaves_no_trace(kernel: str, scale: float, seed: int) -> None:
    X, y = separable(seed)
    C = 2.0 / scale**2 if kernel == "linear" else 2.0
    for kind in (*SOLVERS, KernelPerceptron):
        params = {"kernel": kernel, "random_state": 0}
        plain = kind(C=2.0, **params).fit(X, y)
        scaled = kind(C=C, **params).fit(X * scale, y)
        np.testing.assert_allclose(
            scaled.decision_function(X * scale),
            plain.decision_function(X),
            atol=0.02,
            err_msg=f"{kind.__name__} at {scale}",
        )
        weight = np.abs(scaled.dual_coef_).sum() / np.abs(plain.dual_coef_).sum()
        assert weight == pytest.approx(C / 2.0, rel=0.02), f"dual_coef_ of {kind.__name__}"


@pytest.mark.parametrize("kind", SOLVERS)
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e12])
@pytest.mark.parametrize("C", [1.0, 1e6, 1e12, np.inf])
def test_large_products_of_cost_and_kernel(kind: Any, scale: float, C: float, seed: int) -> None:
    """`SVC` separates these rows; so do we, with few support vectors."""
    X, y = separable(seed)
    model = kind(C=C, kernel="linear", random_state=0).fit(X * scale, y)
    assert model.score(X * scale, y) == 1.0
    assert 2 <= len(model.support_) <= 40


@pytest.mark.parametrize("kernel", ["linear", "poly", "precomputed", "function"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_quantities_are_in_the_units_of_the_caller(kernel: str, scale: float, seed: int) -> None:
    X, y = separable(seed)
    X = X * scale
    function = {"function": lambda A, B: A @ B.T}
    options: dict[str, Any] = {"poly": {"gamma": 0.5 / scale**2, "degree": 2, "coef0": 1.0}}
    params = {"kernel": function.get(kernel, kernel), **options.get(kernel, {})}
    C = 1.0 if kernel == "poly" else 1.0 / scale**2
    rows = X @ X.T if kernel == "precomputed" else X
    K = kernel_values("poly", X, X, **options["poly"]) if kernel == "poly" else X @ X.T
    model = OnlineSVC(C=C, tol=1e-5, epochs=8, random_state=0, **params).fit(rows, y)
    svc = SVC(C=C, kernel="precomputed", tol=1e-5).fit(K, y)
    assert model.dual_objective() == pytest.approx(dual_of(svc, K), rel=1e-4)
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0]
    decision = K @ alpha + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(rows), decision, atol=1e-4)
    assert 0 <= model.duality_gap(rows, y) < 1e-2 * model.dual_objective()


def test_units_stay_in_files(tmp_path: Path, seed: int) -> None:
    X, y = separable(seed)
    X = X * 1e9
    model = GapSVC(C=np.inf, kernel="linear", random_state=0).fit(X[:80], y[:80])
    assert np.isinf(clone(model).C)
    save(model, tmp_path / "model.mwz")
    for other in (load(tmp_path / "model.mwz"), pickle.loads(pickle.dumps(model))):
        assert np.isinf(other.C)
        np.testing.assert_array_equal(other.dual_coef_, model.dual_coef_)
        other.partial_fit(X[80:], y[80:])
        model_now = pickle.loads(pickle.dumps(model)).partial_fit(X[80:], y[80:])
        np.testing.assert_array_equal(other.decision_function(X), model_now.decision_function(X))


@pytest.mark.parametrize("kind", [OnlineSVC, GapSVC])
def test_no_margin_is_said(kind: Any) -> None:
    """Equal rows with different labels have no hard margin."""
    X, y = make_moons(60, noise=0.3, random_state=0)
    X, y = np.concatenate([X, X[:10]]), np.concatenate([y, 1 - y[:10]])
    with pytest.warns(ConvergenceWarning, match="violation of .* tol=0.001.*lower C"):
        kind(C=np.inf, gamma=1.0, random_state=0).fit(X, y)


def test_rows_without_weight_are_said() -> None:
    X, y = separable(0)
    with pytest.raises(ValueError, match="C times weight"):
        OnlineSVC(C=1e-300, kernel="linear").fit(X * 1e-30, y)


@pytest.mark.parametrize("params", [{"delta_max": 0.0, "tol": 1e-15}, {"reprocess": 10**9}])
def test_loops_end(params: dict[str, Any]) -> None:
    X, y = make_moons(60, noise=0.3, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = OnlineSVC(C=1e3, gamma=1.0, random_state=0, **params).fit(X, y)
    assert {entry.category for entry in caught} <= {ConvergenceWarning}
    svc = SVC(C=1e3, gamma=1.0).fit(X, y)
    assert model.score(X, y) >= svc.score(X, y) - 0.05


@pytest.mark.parametrize("value", [1e8, 1e13, 1e20, 1e100])
@pytest.mark.parametrize("row", [0, 1])  # the sample that determines the centre has row 0 only
def test_a_fill_value_does_not_spoil_the_other_rows(value: float, row: int) -> None:
    X, y = make_moons(3000, noise=0.2, random_state=0)
    clean = OnlineSVC(C=10, gamma=1.0, random_state=0).fit(X, y).score(X, y)
    filled = X.copy()
    filled[row, 1] = value
    model = OnlineSVC(C=10, gamma=1.0, random_state=0).fit(filled, y)
    assert model.score(X, y) == pytest.approx(clean, abs=0.005)
