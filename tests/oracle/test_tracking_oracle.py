"""TrackingSVC against Algorithms 1 and 2 of [usunier2010] in plain NumPy, example by example.

The picks are made as TrackingSVC makes them, from the seed of the model; all else is the paper's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginwise import TrackingSVC
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

WORD = 2**64 - 1


def pick(seed: int, t: int, k: int, n: int) -> int:
    """Pick k of round t among n: 64 mixed bits of the three numbers, scaled to n."""
    z = seed ^ ((t + 1) * 0x9E3779B97F4A7C15 & WORD) ^ ((k + 1) * 0xBF58476D1CE4E5B9 & WORD)
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return (z ^ z >> 31) * n >> 64


def seed_of(model: TrackingSVC) -> int:
    return int(model._engine.plan.settings["seed"])


class Tracking:
    """One binary problem over a known kernel matrix: signed alpha, known examples S."""

    def __init__(
        self,
        K: np.ndarray,
        y: np.ndarray,
        C: np.ndarray,
        *,
        seed: int,
        steps: int = 10,
        process: bool = True,
        average: bool = True,
        gradients: str = "all",
    ) -> None:
        self.K, self.y, self.C, self.seed, self.steps = K, y, C, seed, steps
        self.processes, self.averages, self.gradients = process, average, gradients
        self.lo, self.hi = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
        self.alpha, self.bar = np.zeros(len(y)), np.zeros(len(y))
        self.S: list[int] = []
        self.known: set[int] = set()
        self.rounds, self.delta, self.doubt = 0, 0.0, np.inf

    def output(self) -> np.ndarray:
        return self.bar if self.averages else self.alpha

    def learn(self, k: int) -> None:
        self.known.add(k)
        if k not in self.S:
            self.S.append(k)
        if self.processes:  # Algorithm 2
            self.delta += self.ascend(k)  # 4
        self.bar = np.zeros(len(self.y))
        for step in range(self.steps):  # 5
            i = pick(self.seed, self.rounds, step, len(self.known))  # 6
            if self.gradients == "all" or self.is_open(i):
                self.ascend(self.S[i])  # 7
            self.bar += self.alpha / self.steps  # 8
        self.rounds += 1
        if self.gradients == "support":  # an example that the output needs stays for another round
            self.S = [s for s in self.S if self.alpha[s] != 0 or self.output()[s] != 0]

    def is_open(self, i: int) -> bool:
        """Whether pick i is a support vector; others are passed over [section 5.2, ii]."""
        return i < len(self.S) and self.alpha[self.S[i]] != 0

    def ascend(self, i: int) -> float:
        """Make the best step along one coordinate (3); return what the dual gains."""
        g = float(self.y[i] - self.K[i] @ self.alpha)
        before = self.alpha[i]
        self.alpha[i] = np.clip(before + g / self.K[i, i], self.lo[i], self.hi[i])
        a = self.alpha[i] - before
        return float(a * (g - a * self.K[i, i] / 2))

    def objectives(self) -> tuple[float, float]:
        """P and D at alpha, over the examples held."""
        S, f = self.S, self.K @ self.alpha
        w2 = float(self.alpha @ f)
        losses = self.C[S] * np.maximum(0.0, 1 - self.y[S] * f[S])
        return w2 / 2 + float(losses.sum()), float(self.alpha @ self.y) - w2 / 2

    def normalised_gap(self) -> float:
        P, D = self.objectives()
        return (P - D) / float(self.C[self.S].sum())

    def bound(self) -> float:  # theorems 2 and 3; the primal stands for D*, which it bounds
        x = (self.objectives()[0] - self.delta) / (self.steps * self.rounds)
        R = float(np.diag(self.K)[: self.rounds].max())
        return float(np.sqrt(2 * R * x) + x / self.C[0])


VARIANTS: dict[str, dict[str, Any]] = {
    "algorithm 1": {"process": False},
    "algorithm 2": {"process": True},
    "algorithm 1, last": {"process": False, "average": False},
    "algorithm 2, last": {"process": True, "average": False},
    "one step": {"steps": 1},
    "many steps": {"steps": 40},
    "support": {"gradients": "support"},
    "support, last": {"gradients": "support", "average": False},
}


def problems_of(
    model: TrackingSVC, K: np.ndarray, y: np.ndarray, C: np.ndarray | float, params: dict[str, Any]
) -> list[Tracking]:
    """What a model that has its seed must do."""
    costs = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    return [Tracking(K, signs, costs, seed=seed_of(model), **params) for signs in signs_of(y)]


def run(
    X: np.ndarray,
    y: np.ndarray,
    K: np.ndarray,
    variant: dict[str, Any],
    seed: int,
    weights: np.ndarray | None = None,
    **params: Any,
) -> tuple[TrackingSVC, list[Tracking]]:
    """Follow a model through a stream."""
    C = params.get("C", 2.0)
    model = TrackingSVC(**{"kernel": rbf, "C": C, "random_state": seed, **variant, **params})
    probe = TrackingSVC(**model.get_params())  # the seed is settled by the first row
    probe.partial_fit(X[:1], y[:1], classes=np.unique(y))
    costs = C * (np.ones(len(y)) if weights is None else weights)
    problems = problems_of(probe, K, y, costs, variant)
    follow(model, X, y, problems, weights)
    assert seed_of(model) == seed_of(probe), "the seed is not that of random_state"
    return model, problems


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("C", [0.25, 3.0])
def test_every_example(variant: str, C: float, seed: int) -> None:
    X, y = cloud(seed, n=120)
    run(X, y, single(rbf(X, X)), VARIANTS[variant], seed, C=C)


@pytest.mark.parametrize("variant", ["algorithm 1", "algorithm 2", "support"])
def test_every_example_of_three_classes(variant: str, seed: int) -> None:
    """All problems make the same picks; each makes its own steps."""
    X, y = cloud(seed, n=100, classes=3)
    run(X, y, single(rbf(X, X)), VARIANTS[variant], seed)


@pytest.mark.parametrize("variant", ["algorithm 1", "algorithm 2", "support"])
def test_every_example_with_weights(variant: str, seed: int) -> None:
    X, y = cloud(seed, n=100)
    weights = np.random.default_rng(seed).choice([0.25, 1.0, 3.0], size=len(y))
    run(X, y, single(rbf(X, X)), VARIANTS[variant], seed, weights)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_every_example_with_native_kernels(kernel: str, seed: int) -> None:
    X, y = lattice(seed, n=120, cells=4)
    options: dict[str, Any] = {"gamma": 1.0, "coef0": 1.0, "degree": 2} if kernel == "poly" else {}
    K = kernel_values(kernel, X, X, **options)
    run(X, y, K, {}, seed, kernel=kernel, C=0.25, **options)


@pytest.mark.parametrize("variant", ["algorithm 1", "algorithm 2", "algorithm 2, last"])
def test_a_second_epoch(variant: str, seed: int) -> None:
    """Examples seen before are known already: a round each, but nobody is known twice."""
    X, y = cloud(seed, n=60)
    params = VARIANTS[variant]
    model = TrackingSVC(
        kernel=rbf, C=2.0, epochs=2, shuffle=False, random_state=seed, **params
    ).fit(X, y)
    problems = problems_of(model, single(rbf(X, X)), y, 2.0, params)
    assert learn_all(problems, [*range(len(y)), *range(len(y))])
    compare(model, problems, X, "after two epochs")


@pytest.mark.parametrize("variant", ["algorithm 1", "algorithm 2", "support"])
@pytest.mark.parametrize("classes", [2, 3])
def test_bound_and_normalised_gap(variant: str, classes: int, seed: int) -> None:
    X, y = cloud(seed, n=100, classes=classes)
    model, problems = run(X, y, single(rbf(X, X)), VARIANTS[variant], seed)
    gaps = np.ravel(model.normalised_gap_)
    if variant == "support":  # which the theorems do not cover
        assert not hasattr(model, "bound_")
    else:
        bounds = np.ravel(model.bound_)
        np.testing.assert_allclose(bounds, [P.bound() for P in problems], rtol=1e-6)
    np.testing.assert_allclose(gaps, [P.normalised_gap() for P in problems], rtol=1e-5, atol=1e-9)


def test_bound_with_a_kernel_that_is_not_one_on_the_diagonal(seed: int) -> None:
    """R is the largest K(x, x), which the paper takes to be at most 1."""
    X, y = lattice(seed, n=80, cells=4)
    K = kernel_values("linear", X, X)
    model, problems = run(X, y, K, {"steps": 3}, seed, kernel="linear", C=0.25)
    assert model.bound_ == pytest.approx(problems[0].bound(), rel=1e-6)


@pytest.mark.parametrize("average", [True, False])
def test_members_in_history(average: bool, seed: int) -> None:
    """With gradients of support vectors alone, an example that the average needs is held longer."""
    X, y = cloud(seed, n=80)
    params: dict[str, Any] = {"gradients": "support", "steps": 5, "average": average}
    model = TrackingSVC(
        kernel=rbf, C=2.0, record=True, shuffle=False, random_state=seed, **params
    ).fit(X, y)
    problems = problems_of(model, single(rbf(X, X)), y, 2.0, params)
    members = []
    for k in range(len(y)):
        assert learn_all(problems, [k])
        members.append(len(problems[0].S))
    np.testing.assert_array_equal(model.history_["members"], members)
    assert members[-1] < len(y) - 10, "nobody left"


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**40])
def test_picks_are_uniform(n: int) -> None:
    """The theorems are about uniform picks: each tenth of the examples is picked equally often."""
    picks = np.array([pick(12345, t, k, n) for t in range(400) for k in range(10)])
    assert picks.min() >= 0
    assert picks.max() < n
    parts = min(n, 10)
    counts = np.bincount([p * parts // n for p in picks.tolist()], minlength=parts)
    expected = len(picks) / parts
    assert ((counts - expected) ** 2 / expected).sum() < 28, "chi-square, 9 degrees, 1 in 1000"
