"""Compressed models against plain NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import rbf_kernel

from marginwise import GapSVC, OnlineSVC
from tests.support import binary_values

GAMMA = 2.0


def moons(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    return make_moons(n, noise=0.3, random_state=0)


def test_coefficients_are_those_of_least_squares_in_feature_space() -> None:
    X, y = moons()
    model = OnlineSVC(C=10.0, gamma=GAMMA, random_state=0).fit(X, y)
    small = model.compress(max_vectors=12)
    # |sum_s alpha_s phi(x_s) - sum_j beta_j phi(b_j)|^2 is a least-squares problem in coordinates
    # of the span of all vectors, which a Cholesky factor gives.
    B, S = small.support_vectors_, model.support_vectors_
    every = np.vstack([B, S])
    root = np.linalg.cholesky(rbf_kernel(every, gamma=GAMMA) + 1e-9 * np.eye(len(every)))
    target = root[len(B) :].T @ model.dual_coef_[0]
    beta = np.linalg.lstsq(root[: len(B)].T, target, rcond=None)[0]
    assert small.dual_coef_[0] == pytest.approx(beta, abs=1e-3 * np.abs(beta).max())
    assert small.intercept_ == pytest.approx(model.intercept_)


def minimum(
    K: np.ndarray, square: np.ndarray, y: np.ndarray, costs: np.ndarray, biased: bool = True
) -> np.ndarray:
    """The coefficients, and b, of the squared hinge over vectors, by SciPy."""

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        beta, b = v[:-1], v[-1] if biased else 0.0
        slack = np.maximum(0.0, 1.0 - y * (K @ beta + b))
        pull = -costs * y * slack
        value = beta @ square @ beta / 2 + costs @ slack**2 / 2
        return value, np.r_[square @ beta + K.T @ pull, pull.sum() if biased else 0.0]

    start = np.zeros(K.shape[1] + 1)
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-14, "gtol": 1e-9}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("size", [4, 15])
def test_refitted_coefficients_minimise_the_squared_hinge(biased: bool, size: int) -> None:
    X, y = moons()
    kind = OnlineSVC if biased else GapSVC
    model = kind(C=3.0, gamma=GAMMA, random_state=0).fit(X, y)
    small = model.compress(X, y, max_vectors=size)
    B = small.support_vectors_
    K, square = rbf_kernel(X, B, gamma=GAMMA), rbf_kernel(B, gamma=GAMMA)
    found = minimum(K, square, np.where(y == 1, 1.0, -1.0), np.full(len(y), 3.0), biased)
    assert small.decision_function(X) == pytest.approx(K @ found[:-1] + found[-1], abs=5e-3)
    if not biased:
        assert small.intercept_.tolist() == [0.0]


@pytest.mark.slow
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_each_problem_of_several_classes_is_fitted_to_its_rows(multiclass: str) -> None:
    X, y = make_blobs(240, centers=4, cluster_std=2.5, random_state=0)
    weight = {0: 1.0, 1: 2.0, 2: 1.0, 3: 0.5}
    model = OnlineSVC(C=2.0, gamma=0.1, multiclass=multiclass, class_weight=weight, random_state=0)
    small = model.fit(X, y).compress(X, y, max_vectors=10)
    B = small.support_vectors_
    K, square = rbf_kernel(X, B, gamma=0.1), rbf_kernel(B, gamma=0.1)
    signs = model._engine.signs(y.astype(np.int32))
    costs = 2.0 * np.vectorize(weight.get)(y)
    found = binary_values(small, X)
    for c in range(signs.shape[1]):
        own = signs[:, c] != 0
        solved = minimum(K[own], square, signs[own, c], costs[own])
        assert found[own, c] == pytest.approx(K[own] @ solved[:-1] + solved[-1], abs=5e-3)
