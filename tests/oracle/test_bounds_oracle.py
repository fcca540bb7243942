"""OnlineSVC where no member is free: all examples held are at their bounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from marginwise import OnlineSVC
from tests.support import kernel_values


def dual_of(svc: SVC, K: np.ndarray) -> float:
    alpha = np.zeros(len(K))
    alpha[svc.support_] = svc.dual_coef_[0]
    return float(np.abs(alpha).sum() - alpha @ K @ alpha / 2)


@pytest.mark.parametrize("data_seed", range(6))
def test_a_small_cost_takes_all_rows_in_one_pass(data_seed: int) -> None:
    X, y = make_moons(1000, noise=0.3, random_state=data_seed)
    svc = SVC(C=0.003).fit(X, y)
    model = OnlineSVC(C=0.003, random_state=data_seed).fit(X, y)
    assert model.score(X, y) >= svc.score(X, y) - 0.01


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_binary_feature(kernel: str, seed: int) -> None:
    rng = np.random.RandomState(seed)
    X = rng.randint(0, 2, (500, 1)).astype(float)
    y = (rng.rand(500) < np.where(X[:, 0] > 0, 0.7, 0.3)).astype(int)
    svc = SVC(kernel=kernel, gamma=1.0).fit(X, y)
    optimum = dual_of(svc, kernel_values(kernel, X, X, gamma=1.0))
    model = OnlineSVC(kernel=kernel, gamma=1.0, epochs=3, random_state=0).fit(X, y)
    assert model.dual_objective() == pytest.approx(optimum, rel=1e-3)


@pytest.mark.parametrize("C", [1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_epochs_converge_for_every_cost(C: float, weighted: bool, seed: int) -> None:
    X, y = make_moons(200, noise=0.3, random_state=seed)
    weights = np.random.RandomState(seed).uniform(0.5, 2.0, len(y)) if weighted else None
    svc = SVC(C=C, gamma=1.0).fit(X, y, weights)
    optimum = dual_of(svc, kernel_values("rbf", X, X, gamma=1.0))
    model = OnlineSVC(C=C, gamma=1.0, epochs=20, random_state=0).fit(X, y, weights)
    assert model.dual_objective() == pytest.approx(optimum, rel=2e-3)
