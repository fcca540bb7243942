"""OnlineSVC against LASVM written down from [bordes2005] in plain NumPy, example by example.

After a step that no side of the box has cut short, the two members of the pair have the same
gradient, and rounding decides which of them is the next extreme. Where both reach a side of their
box in the same step, rounding decides who arrives and who stops just short of it. The paper leaves
these choices open, so the transcription follows them all; OnlineSVC must have made one of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from marginwise import OnlineSVC
from tests.support import blobs, core_state, is_open, kernel_values, signs_of

TIE = 1e-6  # gradients as near as this may be in either order
ROUNDING = 1e-12  # what may be left to the side of a box
SIDES = [(True, True), (True, False), (False, True)]
Wanted = Callable[["Lasvm", int], bool]


class Lasvm:
    """One binary problem over a known kernel matrix: signed alpha, box [A, B], members S."""

    def __init__(self, K: np.ndarray, y: np.ndarray, C: float, tau: float) -> None:
        self.K, self.y, self.C, self.tau = K, y, C, tau
        self.A, self.B = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
        self.S: list[int] = []
        self.alpha, self.g = np.zeros(len(y)), np.zeros(len(y))

    def up(self) -> list[int]:  # arg max g_s with alpha_s < B_s
        return self._extreme([s for s in self.S if self.alpha[s] < self.B[s]], -self.g)

    def down(self) -> list[int]:  # arg min g_s with alpha_s > A_s
        return self._extreme([s for s in self.S if self.alpha[s] > self.A[s]], self.g)

    def _extreme(self, members: list[int], key: np.ndarray) -> list[int]:
        members = sorted(members, key=key.__getitem__)
        return [s for s in members if key[s] <= key[members[0]] + TIE]

    @property
    def delta(self) -> float:
        i, j = self.up(), self.down()
        return float(self.g[i[0]] - self.g[j[0]]) if i and j else 0.0

    @property
    def b(self) -> float:
        known = self.up()[:1] + self.down()[:1]
        return float(self.g[known].mean()) if known else 0.0

    def search(self, I: list[int], J: list[int]) -> Iterator[Lasvm]:  # noqa: E741
        for i, j in ((i, j) for i in I for j in J if i != j):
            curvature = self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]
            room_i, room_j = self.B[i] - self.alpha[i], self.alpha[j] - self.A[j]
            step = min((self.g[i] - self.g[j]) / max(curvature, 1e-12), room_i, room_j)
            g = self.g.copy()
            g[self.S] -= step * (self.K[i] - self.K[j])[self.S]
            for at_side in SIDES if abs(room_i - room_j) < ROUNDING else [(True, True)]:
                L = copy.copy(self)
                L.S, L.alpha, L.g = list(self.S), self.alpha.copy(), g
                L.alpha[i] = L.B[i] - (not at_side[0]) * ROUNDING
                L.alpha[j] = L.A[j] + (not at_side[1]) * ROUNDING
                if step < room_i - ROUNDING:
                    L.alpha[i] = self.alpha[i] + step
                if step < room_j - ROUNDING:
                    L.alpha[j] = self.alpha[j] - step
                yield L

    def process(self, k: int) -> Iterator[tuple[Lasvm, bool]]:
        """Yield what PROCESS(k) may lead to, and whether alpha changed."""
        L = copy.copy(self)
        L.S, L.alpha, L.g = list(self.S), self.alpha.copy(), self.g.copy()
        if k in L.S:  # 1
            yield L, False
            return
        L.alpha[k], L.g[k] = 0.0, L.y[k] - L.K[k, L.S] @ L.alpha[L.S]  # 2
        I, J = ([k], L.down()) if L.y[k] > 0 else (L.up(), [k])  # 3  # noqa: E741
        violates = bool(I and J) and L.g[I[0]] - L.g[J[0]] > L.tau
        if I and J and not violates and not L.awaits_partner(k):  # 4
            yield L, False  # departs: judged before it is inserted
            return
        L.S.append(k)
        if not violates:  # departs: no partner yet, so it waits
            yield L, False
            return
        for moved in L.search(I, J):  # 5
            yield moved, True

    def leeway(self) -> tuple[bool, float, float]:
        """Whether the bias is loose, and the interval that members at their bounds leave to it."""
        at_side = [s for s in self.S if self.alpha[s] in (self.A[s], self.B[s])]
        free = len(self.S) - len(at_side)
        bounded = [s for s in at_side if self.alpha[s] != 0]
        rising = [self.g[s] for s in bounded if self.alpha[s] < self.B[s]]
        falling = [self.g[s] for s in bounded if self.alpha[s] > self.A[s]]
        loose = free == 0 or (free <= 8 and len(bounded) > 0 and free <= len(bounded) + 1)
        return loose, max(rising, default=-np.inf), min(falling, default=np.inf)

    def awaits_partner(self, k: int) -> bool:
        """Departs: whether some bias that is possible does not satisfy k."""
        loose, least, most = self.leeway()
        positive = self.y[k] > 0
        return loose and bool(
            self.g[k] > least + self.tau if positive else self.g[k] < most - self.tau
        )

    def reprocess(self) -> Iterator[Lasvm]:
        """Yield what REPROCESS may lead to; nothing if no pair violates."""
        if self.delta <= self.tau:  # 1, 2
            return
        for L in self.search(self.up(), self.down()):  # 3
            i, j = L.up(), L.down()
            if i and j and not L.leeway()[0]:  # 4; departs: the extremes stay
                low, high = L.g[j[0]], L.g[i[0]]
                blatant = [
                    s
                    for s in L.S
                    if L.alpha[s] == 0 and s not in (*i, *j)
                    if (L.g[s] <= low if L.y[s] > 0 else L.g[s] >= high)
                ]
                L.S = [s for s in L.S if s not in blatant]
            yield L  # 5: b and delta are properties

    def reprocessed(self, wanted: Wanted, done: int = 0) -> Iterator[Lasvm]:
        """Yield what REPROCESS, repeated while it is wanted and something moves, may lead to."""
        following = list(self.reprocess()) if wanted(self, done) else []
        if not following:
            yield self
        for L in following:
            yield from L.reprocessed(wanted, done + 1)

    def learn(
        self, k: int, reprocess: int | str = 1, each: bool = False, delta_max: float = np.inf
    ) -> Iterator[Lasvm]:
        target = max(self.C, self.target())
        by_gap, by_count = (lambda L, _: L.gap() > target), (lambda _, n: n < reprocess)
        for L, processed in self.process(k):
            if not processed and not each:
                yield L
                continue
            for stepped in L.reprocessed(by_gap if reprocess == "gap" else by_count):
                yield from stepped.reprocessed(lambda L, _: L.delta > delta_max)

    def gap(self) -> float:  # [ertekin2011, eq. 9], the bias taken off g
        g = self.g[self.S] - self.b
        best = np.maximum(self.A[self.S] * g, self.B[self.S] * g)
        return float(np.sum(best - self.alpha[self.S] * g))

    def target(self) -> float:  # [ertekin2011, eq. 8]
        h = (self.A + self.B)[self.S] * (self.g[self.S] - self.b)
        return float(np.sqrt(max(0.0, h @ h - h.sum() ** 2 / max(len(self.S), 1))))


def error_of(L: Lasvm, model: OnlineSVC, c: int) -> float:
    """How far problem c is from L: infinite if its members, or those at a side, are others."""
    state = core_state(model)
    members = is_open(state)[c]
    ids, alpha, g = state["ids"][members], state["alpha"][c, members], state["g"][c, members]
    if sorted(ids.tolist()) != sorted(L.S):
        return np.inf
    for side in (L.A[ids], L.B[ids]):
        near = [np.abs(values - side) <= 1e-12 * L.C for values in (alpha, L.alpha[ids])]
        if not np.array_equal(*near):  # but for the last digit of a sum that ends at the side
            return np.inf
    machine = model._engine
    slopes, expected = (
        g - machine.native.bias()[c],
        L.g[ids] - L.b,
    )  # centring moves g and b together
    return max(
        float(np.max(np.abs(alpha - L.alpha[ids]), initial=0.0)) / L.C,
        float(np.max(np.abs(slopes - expected), initial=0.0)),
        abs(float(model.intercept_[c]) - L.b),
        abs(float(machine.native.delta()[c]) - L.delta),
    )


def follow(model: OnlineSVC, X: np.ndarray, y: np.ndarray, K: np.ndarray, tolerance: float) -> None:
    """Feed both one example at a time and compare all problems after each."""
    classes = np.unique(y)
    signs = signs_of(y, len(classes), model.multiclass)
    oracles = [Lasvm(K, column, model.C, model.tol) for column in signs.T]
    rule: dict[str, Any] = {"reprocess": model.reprocess, "each": model.reprocess_when == "each"}
    if model.delta_max is not None:
        rule["delta_max"] = model.delta_max
    for k in range(len(y)):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=classes)
        for c, oracle in enumerate(oracles):
            allowed = list(oracle.learn(k, **rule)) if oracle.y[k] else [oracle]
            errors = [error_of(L, model, c) for L in allowed]
            best = int(np.argmin(errors))
            members = sorted(core_state(model)["ids"][is_open(core_state(model))[c]].tolist())
            assert errors[best] <= tolerance, (
                f"after example {k}, problem {c} is in none of the {len(allowed)} states that "
                f"LASVM allows (nearest: {errors[best]:.3g}); members {members}, "
                f"allowed {[sorted(L.S) for L in allowed]}"
            )
            oracles[c] = allowed[best]
    assert all(len(L.S) > 2 for L in oracles), "the data were too easy to compare anything"


KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.5},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 3},
    "cosine": {},
    "tanimoto": {},
}


def data(seed: int, n: int = 60, classes: int = 2, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, in numbers that single precision holds exactly."""
    X, y = blobs(n, seed, classes, d)
    return X.astype(np.float32).astype(np.float64), y


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_example_in_double_precision(kernel: str, seed: int) -> None:
    """A callable is computed in double and kept in single precision, here as there."""
    X, y = data(seed)
    options = KERNELS[kernel]
    model = OnlineSVC(kernel=lambda A, B: kernel_values(kernel, A, B, **options), C=2.0)
    K = kernel_values(kernel, X, X, **options).astype(np.float32).astype(np.float64)
    follow(model, X, y, K, tolerance=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_example_with_native_kernels(kernel: str, seed: int) -> None:
    """Kernel values agree to single precision only, and steps divide by small curvatures."""
    X, y = data(seed)
    model = OnlineSVC(kernel=kernel, C=2.0, **{"gamma": 1.0, **KERNELS[kernel]})
    K = kernel_values(kernel, X, X, **KERNELS[kernel]).astype(np.float32).astype(np.float64)
    follow(model, X, y, K, tolerance=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"reprocess": 0},
        {"reprocess": 2},
        {"reprocess": "gap"},
        {"reprocess_when": "each"},
        {"reprocess": "gap", "reprocess_when": "each"},
        {"delta_max": 0.5},
        {"reprocess": 0, "delta_max": 1.0},
        {"tol": 0.1},
        {"C": 0.125},
        {"C": 0.3},
        {"C": 100.0},
    ],
    ids=str,
)
def test_every_example_with_each_option(options: dict[str, Any], seed: int) -> None:
    X, y = data(seed, d=2)
    model = OnlineSVC(
        **{"kernel": lambda A, B: kernel_values("rbf", A, B, gamma=0.5), "C": 2.0, **options}
    )
    K = kernel_values("rbf", X, X, gamma=0.5).astype(np.float32).astype(np.float64)
    follow(model, X, y, K, tolerance=1e-8)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_every_example_of_three_classes(multiclass: str, seed: int) -> None:
    """Each class against the rest, or another one, is LASVM on its own, whatever others hold."""
    X, y = data(seed, n=45, classes=3, d=2)
    params: dict[str, Any] = {"C": 2.0, "multiclass": multiclass}
    model = OnlineSVC(kernel=lambda A, B: kernel_values("rbf", A, B, gamma=0.5), **params)
    K = kernel_values("rbf", X, X, gamma=0.5).astype(np.float32).astype(np.float64)
    follow(model, X, y, K, tolerance=1e-9)


def test_stream_that_starts_with_one_class(seed: int) -> None:
    X, y = data(seed, n=50, d=2)
    order = np.argsort(y[:30], kind="stable")
    X[:30], y[:30] = X[order], y[order]
    model = OnlineSVC(kernel=lambda A, B: kernel_values("rbf", A, B, gamma=0.5), C=2.0)
    K = kernel_values("rbf", X, X, gamma=0.5).astype(np.float32).astype(np.float64)
    follow(model, X, y, K, tolerance=1e-9)
