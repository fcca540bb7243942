"""The incremental SVM in NumPy, a baseline of laskov2006, solves the problem of ExactSVC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginwise import ExactSVC
from reproduce.laskov2006.naive import STORAGES, Incremental

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear", "C": 0.5},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0, "C": 0.1},
    "rbf": {"kernel": "rbf", "gamma": 0.3, "C": 2.0},
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_it_equals_exact_svc(kernel: str, storage: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 6))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=250) > 0.5, 1.0, -1.0)
    naive = Incremental(X, y, storage=storage, **KERNELS[kernel]).fit()
    exact = ExactSVC(**KERNELS[kernel]).fit(X, y)
    np.testing.assert_allclose(naive.decision(X), exact.decision_function(X), atol=1e-8)
    assert set(naive.store.held) == set(exact.support_)
    assert naive.counts["cycles"] == 0
    assert naive.counts["iterations"] > len(exact.support_)
    assert naive.least["kappa"] > 0


def test_its_profile_adds_up() -> None:
    X = np.random.default_rng(1).normal(size=(120, 4))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    naive = Incremental(X, y, storage="naive", **KERNELS["rbf"]).fit()
    design = Incremental(X, y, storage="design", **KERNELS["rbf"]).fit()
    assert naive.watch.seconds["3: gather K_sr"] > 0
    assert design.watch.seconds["3: gather K_sr"] == 0
    assert design.watch.seconds["3: γ"] > 0
