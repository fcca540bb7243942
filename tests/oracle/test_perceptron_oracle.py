"""KernelPerceptron against the perceptrons of [bordes2005, section 2.2] in plain NumPy.

Also the passive-aggressive update: the least change that closes the loss, at most C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginwise import KernelPerceptron
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


class Perceptron:
    """One binary problem over a known kernel matrix: signed alpha, members S."""

    def __init__(
        self,
        K: np.ndarray,
        y: np.ndarray,
        C: np.ndarray,
        *,
        budget: int | None = None,
        margin: float = 0.0,
        average: bool = False,
        update: str = "perceptron",
        exact: bool = False,
    ) -> None:
        self.K, self.y, self.C, self.budget, self.margin = K, y, C, budget, margin
        self.averages, self.update, self.exact = average, update, exact
        self.alpha, self.total = np.zeros(len(y)), np.zeros(len(y))
        self.S: list[int] = []
        self.seen, self.removed, self.ties, self.doubt = 0, 0, 0, np.inf

    def output(self) -> np.ndarray:
        return self.total / max(self.seen, 1) if self.averages else self.alpha

    def apart(self, *differences: float) -> None:
        """Note how far a decision was from another one, unless all numbers are exact."""
        self.ties += 0.0 in differences
        if not self.exact:
            self.doubt = min([self.doubt, *map(abs, differences)])

    def learn(self, t: int) -> None:
        terms = self.K[t, self.S] * self.alpha[self.S]
        z = float(self.y[t] * terms.sum())  # 3
        change = self.change(t, z, float(np.abs(terms).sum()))
        if change > 0:  # 4
            if t not in self.S:
                self.S.append(t)
            self.alpha[t] += self.y[t] * change  # 4a
            if self.budget is not None and len(self.S) > self.budget:  # 4b
                self.remove()
        self.seen += 1
        self.total += self.alpha

    def change(self, t: int, z: float, size: float) -> float:
        wanted = self.margin or float(self.update == "pa")
        if self.S:
            self.apart((z - wanted) / max(size + wanted, 1e-300))
        if self.update == "pa":
            return min(float(self.C[t]), max(0.0, wanted - z) / float(self.K[t, t]))
        return float(self.C[t]) if z <= wanted else 0.0

    def remove(self) -> None:
        S = np.array(self.S)
        f = self.K[np.ix_(S, S)] @ self.alpha[S]
        without = self.y[S] * (f - self.alpha[S] * np.diag(self.K)[S])
        best = int(np.argmax(without))
        self.apart(*(without[best] - np.delete(without, best)))
        self.alpha[S[best]] = 0.0
        self.S.remove(int(S[best]))
        self.removed += 1


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "margin": {"margin": 0.7},
    "averaged": {"average": True},
    "averaged with a margin": {"average": True, "margin": 0.7},
    "budget": {"budget": 12},
    "budget with a margin": {"budget": 20, "margin": 0.7},
    "pa": {"update": "pa"},
    "pa with a margin": {"update": "pa", "margin": 0.3},
    "pa averaged": {"update": "pa", "average": True},
    "pa with a budget": {"update": "pa", "budget": 15},
}


def problems_of(
    K: np.ndarray, y: np.ndarray, C: np.ndarray | float, **params: Any
) -> list[Perceptron]:
    costs = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    return [Perceptron(K, signs, costs, **params) for signs in signs_of(y)]


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("C", [0.5, 1.0])
def test_every_example(variant: str, C: float, seed: int) -> None:
    X, y = cloud(seed)
    params = VARIANTS[variant]
    problems = problems_of(single(rbf(X, X)), y, C, **params)
    follow(KernelPerceptron(kernel=rbf, C=C, **params), X, y, problems)
    assert "budget" not in params or problems[0].removed > 5, "the budget was never exceeded"


@pytest.mark.parametrize("variant", ["plain", "averaged", "budget", "pa"])
def test_every_example_of_three_classes(variant: str, seed: int) -> None:
    X, y = cloud(seed, n=100, classes=3)
    params = VARIANTS[variant]
    problems = problems_of(single(rbf(X, X)), y, 1.0, **params)
    follow(KernelPerceptron(kernel=rbf, **params), X, y, problems)


@pytest.mark.parametrize("variant", ["plain", "averaged", "budget", "pa"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_example_with_weights(variant: str, classes: int, seed: int) -> None:
    """The weight of a row scales its step, or the most that a step of "pa" may be."""
    X, y = cloud(seed, n=100, classes=classes)
    weights = np.random.default_rng(seed).choice([0.25, 1.0, 3.0], size=len(y))
    class_weight = dict(enumerate([0.5, 2.0, 1.5][:classes]))
    costs = 0.5 * weights * np.array([class_weight[label] for label in y.tolist()])
    params = VARIANTS[variant]
    problems = problems_of(single(rbf(X, X)), y, costs, **params)
    model = KernelPerceptron(kernel=rbf, C=0.5, class_weight=class_weight, **params)
    follow(model, X, y, problems, weights)


@pytest.mark.parametrize("variant", ["plain", "averaged", "budget", "pa"])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_every_example_with_native_kernels(variant: str, kernel: str, seed: int) -> None:
    X, y = lattice(seed, cells=4)
    options: dict[str, Any] = {"gamma": 1.0, "coef0": 1.0, "degree": 2} if kernel == "poly" else {}
    params = VARIANTS[variant]
    whole = variant != "pa"  # steps of 1 of kernel values in sixteenths: all sums are exact
    K = kernel_values(kernel, X, X, **options)
    problems = problems_of(K, y, 1.0, exact=whole, **params)
    follow(KernelPerceptron(kernel=kernel, **options, **params), X, y, problems)


@pytest.mark.parametrize("variant", ["plain", "margin of one", "averaged"])
def test_a_tie_is_a_mistake(variant: str, seed: int) -> None:
    """In whole numbers all sums are exact: y f = 0, or = margin, is told from anything else."""
    X, y = lattice(seed, d=2, cells=1)
    params: dict[str, Any] = {"margin of one": {"margin": 1.0}, **VARIANTS}[variant]
    problems = problems_of(kernel_values("linear", X, X), y, 1.0, exact=True, **params)
    follow(KernelPerceptron(kernel="linear", **params), X, y, problems)
    assert problems[0].ties > 5, "no tie came up"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("epochs", [2, 4])
def test_several_epochs(variant: str, epochs: int, seed: int) -> None:
    """A mistake on an example held already adds to its coefficient."""
    X, y = cloud(seed, n=60)
    params = VARIANTS[variant]
    problems = problems_of(single(rbf(X, X)), y, 0.5, **params)
    model = KernelPerceptron(kernel=rbf, C=0.5, epochs=epochs, shuffle=False, **params).fit(X, y)
    assert learn_all(problems, [*range(len(y))] * epochs)
    compare(model, problems, X, f"after {epochs} epochs")
