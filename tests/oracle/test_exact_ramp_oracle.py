"""ExactRampSVC against OnlineSVM^R [wang2009, Algorithms 1 and 2] in plain NumPy.

Unsigned alpha and g = 1 - y f as in the paper, whose line numbers are at the ends of lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginwise import ExactRampSVC
from tests.oracle.test_gap_oracle import (
    cloud,
    compare,
    follow,
    lattice,
    learn_all,
    rbf,
    signs_of,
    single,
)
from tests.support import kernel_values

LEAST_GAIN = 1e-5  # of the dual, below which no step is made
LARGE = 64.0  # K(x, x) above which it is less, as coefficients are
MANY = 16  # rounds; solved to a tolerance, V may come and go for ever, and the paper does not say


class Ramp:
    """One binary problem over a known kernel matrix: seen examples S, those active V."""

    def __init__(
        self,
        K: np.ndarray,
        y: np.ndarray,
        C: np.ndarray,
        *,
        max_idle: int | None = None,
        tol: float = 1e-3,
    ) -> None:
        self.K, self.y, self.C, self.max_idle, self.tol = K, y, C, max_idle, tol
        self.Q, self.diagonal = K * np.outer(y, y), np.diag(K)
        self.alpha, self.g = np.zeros(len(y)), np.ones(len(y))
        self.S: list[int] = []
        self.V: set[int] = set()
        self.doubt = np.inf

    def output(self) -> np.ndarray:
        return self.y * self.alpha

    def apart(self, *differences: float) -> None:
        """Note how far a decision was from another one."""
        self.doubt = min([self.doubt, *map(abs, differences)])

    def learn(self, k: int) -> None:
        if k not in self.S:
            self.S.append(k)
            self.alpha[k] = 0.0
            self.g[k] = 1 - self.Q[k, self.S] @ self.alpha[self.S]  # 3
            self.apart(self.g[k] - 2)
            if 0 <= self.g[k] <= 2:  # 4
                self.V.add(k)  # 5
                self.move(k, float(np.clip(self.g[k] / self.K[k, k], 0, self.C[k])))  # 6-8
        for _ in range(MANY):  # 9
            while self.optimise():  # 10
                pass
            if not self.relocate():  # 16-27
                break
        else:
            self.doubt = 0.0
        self.remove()

    def move(self, k: int, alpha: float) -> None:
        self.g[self.S] -= (alpha - self.alpha[k]) * self.Q[k, self.S]  # (15)
        self.alpha[k] = alpha

    def optimise(self) -> bool:
        """Make the step that gains most (13); tell whether there was one."""
        V = np.array(sorted(self.V), dtype=int)
        g, alpha = self.g[V], self.alpha[V]
        violation = np.where(g > 0, g * (alpha < self.C[V]), -g * (alpha > 0))
        step = np.clip(alpha + g / self.diagonal[V], 0, self.C[V]) - alpha  # (14)
        gain = step * (g - step * self.diagonal[V] / 2)
        gain[violation <= self.tol] = -1.0
        if not len(V) or gain.max() <= 0:
            return False
        best = int(np.argmax(gain))
        if self.tol > 1e-2:
            self.apart(*(violation / self.tol - 1))
        least = LEAST_GAIN * min(1.0, LARGE / self.diagonal[V[best]])
        self.apart(gain[best] / least - 1)
        if gain[best] <= least:
            return False
        self.apart(*(gain[best] - np.delete(gain, best)))  # 11
        self.move(int(V[best]), float(np.clip(alpha[best] + step[best], 0, self.C[V[best]])))
        return True

    def relocate(self) -> bool:
        """Set V to { y f >= -1 } and unlearn those that leave; tell whether it changed."""
        self.apart(*(self.g[self.S] - 2))
        active = {i for i in self.S if self.g[i] <= 2}  # 16-22
        gone, new = self.V - active, active - self.V
        self.V = active
        for i in sorted(gone):  # 23-26
            self.move(i, 0.0)
        return bool(gone or new)

    def remove(self) -> None:  # Algorithm 2
        idle = sorted((i for i in self.S if self.alpha[i] == 0), key=lambda i: abs(1 - self.g[i]))
        if self.max_idle is None or len(idle) <= self.max_idle:
            return
        kept, dropped = idle[: self.max_idle], idle[self.max_idle :]
        if kept:
            self.apart(abs(1 - self.g[kept[-1]]) - abs(1 - self.g[dropped[0]]))
        self.S = [i for i in self.S if i not in dropped]
        self.V -= set(dropped)

    def objective(self) -> float:  # (7)
        w2 = self.alpha @ self.Q @ self.alpha
        losses = np.clip(self.g[self.S], 0, 2)
        return float(w2 / 2 + self.C[self.S] @ losses)


def problems_of(K: np.ndarray, y: np.ndarray, C: np.ndarray | float, **params: Any) -> list[Ramp]:
    costs = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    return [Ramp(K, signs, costs, **params) for signs in signs_of(y)]


@pytest.mark.parametrize("C", [0.5, 5.0])
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_every_example(C: float, noise: float, seed: int) -> None:
    X, y = cloud(seed, n=80, noise=noise)
    problems = problems_of(single(rbf(X, X)), y, C)
    follow(ExactRampSVC(kernel=rbf, C=C), X, y, problems)
    assert len(problems[0].V) < len(problems[0].S), "no row is off the ramp"


@pytest.mark.parametrize("max_idle", [0, 1, 10, 1000])
def test_every_example_with_the_removal_step(max_idle: int, seed: int) -> None:
    X, y = cloud(seed, n=80)
    problems = problems_of(single(rbf(X, X)), y, 3.0, max_idle=max_idle)
    follow(ExactRampSVC(kernel=rbf, C=3.0, max_idle=max_idle), X, y, problems)


@pytest.mark.parametrize("max_idle", [None, 5])
def test_every_example_of_three_classes(max_idle: int | None, seed: int) -> None:
    X, y = cloud(seed, n=60, classes=3)
    problems = problems_of(single(rbf(X, X)), y, 3.0, max_idle=max_idle)
    follow(ExactRampSVC(kernel=rbf, C=3.0, max_idle=max_idle), X, y, problems)


@pytest.mark.parametrize("classes", [2, 3])
def test_every_example_with_weights(classes: int, seed: int) -> None:
    X, y = cloud(seed, n=60, classes=classes)
    weights = np.random.default_rng(seed).choice([0.25, 1.0, 3.0], size=len(y))
    class_weight = dict(enumerate([0.5, 2.0, 1.5][:classes]))
    costs = 2.0 * weights * np.array([class_weight[label] for label in y.tolist()])
    problems = problems_of(single(rbf(X, X)), y, costs)
    model = ExactRampSVC(kernel=rbf, C=2.0, class_weight=class_weight)
    follow(model, X, y, problems, weights)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_every_example_with_native_kernels(kernel: str, seed: int) -> None:
    X, y = lattice(seed, n=80, cells=4)
    options: dict[str, Any] = {"gamma": 1.0, "coef0": 1.0, "degree": 2} if kernel == "poly" else {}
    C = 0.25 if kernel == "linear" else 1 / 64
    problems = problems_of(kernel_values(kernel, X, X, **options), y, C)
    follow(ExactRampSVC(kernel=kernel, C=C, **options), X, y, problems)


@pytest.mark.parametrize("tol", [0.3, 0.02])
def test_every_example_with_a_coarse_tol(tol: float, seed: int) -> None:
    X, y = cloud(seed, n=80)
    problems = problems_of(single(rbf(X, X)), y, 3.0, tol=tol)
    follow(ExactRampSVC(kernel=rbf, C=3.0, tol=tol), X, y, problems)


def test_a_second_epoch(seed: int) -> None:
    """The solution is there already: examples held are passed over, those dropped come again."""
    X, y = cloud(seed, n=80)
    problems = problems_of(single(rbf(X, X)), y, 3.0, max_idle=10)
    model = ExactRampSVC(kernel=rbf, C=3.0, max_idle=10, epochs=2, shuffle=False).fit(X, y)
    assert learn_all(problems, [*range(len(y)), *range(len(y))])
    compare(model, problems, X, "after two epochs")


@pytest.mark.parametrize("classes", [2, 3])
def test_ramp_objective(classes: int, seed: int) -> None:
    X, y = cloud(seed, n=60, classes=classes)
    problems = problems_of(single(rbf(X, X)), y, 3.0)
    assert learn_all(problems, range(len(y)))
    model = ExactRampSVC(kernel=rbf, C=3.0, shuffle=False).fit(X, y)
    expected = [P.objective() for P in problems]
    np.testing.assert_allclose(np.ravel(model.ramp_objective()), expected, rtol=1e-6)
