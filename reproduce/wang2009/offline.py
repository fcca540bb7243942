"""One ramp SVM offline, by CCCP, so that its cost can be compared with that of the online one.

The hinge SVM without bias is solved on V, which is all rows at first. V is then replaced by the
rows with y f ≥ -1, until it no longer changes. The solver is that of OnlineSVM^R: the coordinate of
largest gain, and the same two limits. Each solution starts from the last one.

Kernel evaluations are counted as with a cache without limit. The solver keeps the gradient of all n
rows, so a coordinate that moves asks for its whole row of the kernel matrix; each pair of rows
counts once: r rows that were asked for are r n - r (r - 1) / 2 evaluations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

Float = NDArray[np.float64]

TOLERANCE = 1e-3  # of the optimality conditions
LEAST_GAIN = 1e-5  # of the dual objective, in one step
MOST_ROUNDS = 100


@dataclass
class Rows:
    """The rows of a kernel matrix, each computed when it is first asked for."""

    X: Float
    gamma: float
    known: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    def __getitem__(self, i: int) -> NDArray[np.float32]:
        if i not in self.known:
            row = rbf_kernel(self.X[i : i + 1], self.X, gamma=self.gamma)[0]
            self.known[i] = row.astype(np.float32)
        return self.known[i]

    @property
    def evaluations(self) -> int:
        asked = len(self.known)
        return asked * len(self.X) - asked * (asked - 1) // 2


class OfflineRamp:
    """A ramp SVM by CCCP. Labels are 0 and 1; `g` is 1 - y f, `alpha` has no sign."""

    def __init__(self, *, C: float, gamma: float) -> None:
        self.C, self.gamma = C, gamma

    def fit(self, X: Float, labels: NDArray[np.int64]) -> OfflineRamp:
        self._rows, self._y = Rows(X, self.gamma), 2.0 * labels - 1
        self._alpha, self._g = np.zeros(len(X)), np.ones(len(X))
        self.steps_, inside = 0, np.ones(len(X), dtype=bool)
        for self.rounds_ in range(1, MOST_ROUNDS + 1):
            self._solve(inside)
            last, inside = inside, self._g <= 2
            if (inside == last).all():
                break
            for i in np.flatnonzero(~inside & (self._alpha > 0)):
                self._move(i, -self._alpha[i])
        self.support_ = np.flatnonzero(self._alpha > 0)
        self._vectors, self._coef = X[self.support_], (self._alpha * self._y)[self.support_]
        return self

    def _solve(self, inside: NDArray[np.bool_]) -> None:
        """Ascend on the rows inside until no step is worth it."""
        V = np.flatnonzero(inside)
        while True:
            g, alpha = self._g[V], self._alpha[V]
            step = np.clip(g, -alpha, self.C - alpha)  # K(x, x) is 1
            gain = step * (g - 0.5 * step)
            best = int(gain.argmax())
            if gain[best] <= LEAST_GAIN or abs(g[best]) <= TOLERANCE:
                return
            self._move(V[best], step[best])
            self.steps_ += 1

    def _move(self, i: Any, step: float) -> None:
        self._alpha[i] = max(0.0, self._alpha[i] + step)
        self._g -= (step * self._y[i]) * (self._y * self._rows[int(i)])

    @property
    def stats_(self) -> dict[str, int]:
        return {"kernel_evaluations": self._rows.evaluations}

    def ramp_objective(self) -> float:
        """Return ½ |w|² + C Σ min(2, max(0, 1 - y f)) over all rows."""
        norm = float(self._alpha @ (1 - self._g))
        return norm / 2 + self.C * float(np.clip(self._g, 0, 2).sum())

    def decision_function(self, X: Float) -> Float:
        return np.asarray(rbf_kernel(X, self._vectors, gamma=self.gamma) @ self._coef)

    def predict(self, X: Float) -> NDArray[np.int64]:
        return (self.decision_function(X) > 0).astype(np.int64)
