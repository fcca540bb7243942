"""Algorithm 1 of [laskov2006], the incremental SVM of Cauwenberghs and Poggio, in NumPy.

    g       gradient of each example: -1 + K α + μ y, with labels multiplied into K
    S E O   free examples; those at C; those at 0
    β, γ    rates of change of (μ, α of S), and of g, with the coefficient of the new example

Unlike `ExactSVC`, it updates an explicit inverse, repairs no rounding errors and expects examples
that are linearly independent in feature space.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduce.laskov2006.storage import BETA, KAPPA, OTHER, Copies, Designed, Watch

O, S, E, CURRENT = range(4)  # noqa: E741
EPSILON = 1e-10  # rates below it count as 0
STORAGES = {"naive": Copies, "design": Designed}

Array = Any


def kernel_of(kernel: str, **given: float) -> Any:
    """Return a function of rows, their squared norms, and one row and its squared norm."""

    def linear(rows: Array, norms: Array, x: Array, norm: float) -> Array:
        return rows @ x

    def poly(rows: Array, norms: Array, x: Array, norm: float) -> Array:
        return (given["gamma"] * (rows @ x) + given["coef0"]) ** given["degree"]

    def rbf(rows: Array, norms: Array, x: Array, norm: float) -> Array:
        return np.exp(-given["gamma"] * np.maximum(norms + norm - 2 * (rows @ x), 0))

    return {"linear": linear, "poly": poly, "rbf": rbf}[kernel]


class Incremental:
    """The SVM of the first n rows of X, for labels +1 and -1; `learn` takes in the next row."""

    def __init__(self, X: Array, y: Array, *, C: float, storage: str, **kernel: Any) -> None:
        self.watch = Watch()
        self.store = STORAGES[storage](X, y, kernel_of(**kernel), self.watch)
        self.y, self.C, self.mu = y, C, 0.0
        self.alpha, self.g = np.zeros(len(y)), np.zeros(len(y))
        self.where = np.zeros(len(y), dtype=np.int8)
        self.free: list[int] = []  # S, in the order of Q
        self.joined = -1  # the example that joined S in the last iteration
        self.counts = {"iterations": 0, "idle_rows": 0, "zero_steps": 0, "cycles": 0}
        self.least = {"kappa": np.inf, "step": np.inf}

    def fit(self) -> Incremental:
        for _ in range(len(self.y)):
            self.learn()
        self.watch.lap(OTHER)
        return self

    def learn(self) -> None:
        """Learn one example; the numbers are the lines of algorithm 1."""
        c = self.store.n
        values = self.store.arrive()  # 1
        self.g[c] = -1 + values @ self.alpha[self.store.held] + self.mu * self.y[c]
        if self.g[c] >= 0:
            self.counts["idle_rows"] += 1
            return
        self.store.hold(c)
        self.where[c], self.joined = CURRENT, -1
        while self.where[c] == CURRENT:  # 2
            self.counts["iterations"] += 1
            if self.free:
                self._follow(c)
            else:
                self._move_mu(c)

    def _follow(self, c: int) -> None:
        """Follow the path of solutions to the next event."""
        n = self.store.n
        self.watch.lap(OTHER)
        row = self.store.K[self.store.slot[c]]
        beta = -(self.store.inverse() @ np.append(self.y[c], row[self.free]))  # 3
        self.watch.lap(BETA)
        rest = np.flatnonzero(self.where[:n] != S)
        gamma = self.store.rates(beta, self.free, rest, c)
        step, event = self._first_event(beta[1:], gamma, rest, c)  # 4, 5
        self._note(step, event)
        self.mu += beta[0] * step
        self.alpha[c] += step  # 6
        self.alpha[self.free] += beta[1:] * step  # 7
        self.g[rest] += gamma * step  # 8
        self._migrate(event, c, self.alpha[event] > self.C / 2)  # 9-16

    def _first_event(self, beta: Array, gamma: Array, rest: Array, c: int) -> tuple[float, int]:
        """Return how far the coefficient of c may rise, and the example that stops it."""
        alpha, g, where = self.alpha[self.free], self.g[rest], self.where[rest]
        room = np.where(beta > 0, self.C - alpha, alpha)
        bound = np.full(len(beta), np.inf)
        np.divide(room, np.abs(beta), out=bound, where=np.abs(beta) > EPSILON)  # (10)
        nearing = (where == E) & (gamma > EPSILON) | (where == O) & (gamma < -EPSILON)
        nearing |= (where == CURRENT) & (gamma > EPSILON)
        zero = np.full(len(gamma), np.inf)
        np.divide(-g, gamma, out=zero, where=nearing)  # (11), (12)
        first = (bound.argmin(), zero.argmin())
        events = [
            (bound[first[0]], self.free[first[0]]),
            (zero[first[1]], int(rest[first[1]])),
            (self.C - self.alpha[c], c),  # (13)
        ]
        step, event = min(events)  # (14)
        if event == c:
            self.reached = events[2][0] <= step
        self.least["step"] = min(self.least["step"], float(step))
        return max(float(step), 0.0), event  # rounding may make it negative

    def _move_mu(self, c: int) -> None:
        """With S empty, move μ until a gradient is 0 [section 4.1]."""
        n, y = self.store.n, self.y[: self.store.n]
        rates, where, g = y * y[c], self.where[:n], self.g[:n]
        nearing = (where == E) & (rates > 0) | (where == O) & (rates < 0) | (where == CURRENT)
        distance = np.where(nearing, -g * rates, np.inf)
        event = int(distance.argmin())
        step = max(float(distance[event]), 0.0)
        self.mu += y[c] * step
        g += rates * step
        self.reached = False
        self._migrate(event, c, upper=False)

    def _migrate(self, k: int, c: int, upper: bool) -> None:
        """Move the example of an event between the sets, and update Q."""
        self.joined = -1
        if self.where[k] == S:
            self.alpha[k] = self.C if upper else 0.0
            self._leave(k, E if upper else O)
        elif k == c and self.reached:
            self.alpha[c], self.where[c] = self.C, E
        else:
            if self.where[k] == O:
                self.store.hold(k)
            self._join(k)

    def _join(self, k: int) -> None:
        self.watch.lap(OTHER)
        self.g[k], self.where[k], self.joined = 0.0, S, k
        row = self.store.K[self.store.slot[k]]
        if not self.free:
            self.store.start(np.array([[-row[k], self.y[k]], [self.y[k], 0.0]]))
        else:
            eta = np.append(self.y[k], row[self.free])
            beta = -(self.store.inverse() @ eta)
            kappa = float(row[k] + eta @ beta)  # (17)
            self.least["kappa"] = min(self.least["kappa"], kappa)
            self.watch.lap(KAPPA)
            self.store.expand(beta, kappa)
        self.free.append(k)

    def _leave(self, k: int, target: int) -> None:
        self.watch.lap(OTHER)
        at = self.free.index(k)
        self.store.shrink(at + 1)
        self.free.pop(at)
        self.where[k] = target
        if target == O:
            self.store.release(k)

    def _note(self, step: float, event: int) -> None:
        """Count steps of length 0, and examples that leave S at once."""
        self.counts["zero_steps"] += step == 0
        self.counts["cycles"] += step == 0 and event == self.joined and self.where[event] == S

    def decision(self, some: Array) -> Array:
        """Return f of some rows."""
        held, store = self.store.held, self.store
        weights = self.alpha[held] * self.y[held]
        norms = np.einsum("ij,ij->i", some, some)
        rows, held_norms = store.X[held], store.norms[held]
        pairs = zip(some, norms, strict=True)
        K = np.array([store.kernel(rows, held_norms, x, norm) for x, norm in pairs])
        return K @ weights + self.mu
