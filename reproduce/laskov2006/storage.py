"""Where the incremental SVM keeps its matrices: copied at every change, or designed as in §5.3.

Both hold the rows of K for the support vectors ("held" rows, in slots), with labels multiplied in,
and Q, the inverse of the bordered matrix of S. They differ only in how they select and grow.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

# Where the time of algorithm 1 goes: the operations of figure 1, by line of the algorithm.
SELECT = "1, 3: select rows of X"
KERNEL = "1, 3: kernel values"
BETA = "3: β"
GATHER = "3: gather K_sr"
GAMMA = "3: γ"
AUGMENT = "13: augment K"
KAPPA = "17: κ"
INVERSE = "17: update Q"
OTHER = "other"
OPERATIONS = (SELECT, KERNEL, BETA, GATHER, GAMMA, AUGMENT, KAPPA, INVERSE, OTHER)
COPYING = (SELECT, GATHER, AUGMENT)  # these only move memory

Array = Any


class Watch:
    """CPU seconds by operation: `lap` gives those since the last lap to an operation."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(OPERATIONS, 0.0)
        self.last = time.process_time()

    def lap(self, operation: str) -> None:
        now = time.process_time()
        self.seconds[operation] += now - self.last
        self.last = now


class Storage:
    """What both ways share: the data, the kernel, and which examples are held."""

    def __init__(self, X: Array, y: Array, kernel: Any, watch: Watch) -> None:
        self.X, self.y, self.kernel, self.watch = X, y, kernel, watch
        self.norms = np.einsum("ij,ij->i", X, X)
        self.held: list[int] = []
        self.slot: dict[int, int] = {}
        self.n = 0  # examples so far

    def values(self, rows: Array, ids: Any, k: int) -> Array:
        """Return K of some examples, given their rows, with example k; labels are multiplied in."""
        found = self.kernel(rows, self.norms[ids], self.X[k], self.norms[k])
        found *= self.y[ids]
        found *= self.y[k]
        self.watch.lap(KERNEL)
        return found


class Copies(Storage):
    """Plain arrays: to select is to copy, and to grow is to copy everything."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.K, self.Q = np.empty((0, 0)), np.empty((0, 0))

    def arrive(self) -> Array:
        """Take in the next example; return its kernel values with the held ones."""
        c, ids = self.n, np.array(self.held, dtype=int)
        rows = self.X[ids]
        self.watch.lap(SELECT)
        values = self.values(rows, ids, c)
        self.K = np.column_stack([self.K, values]) if self.held else np.empty((0, c + 1))
        self.n += 1
        self.watch.lap(AUGMENT)
        return values

    def hold(self, k: int) -> None:
        """Add the kernel row of an example; its values with the held ones are known."""
        ids = np.array(self.held, dtype=int)
        rest = np.setdiff1d(np.arange(self.n), ids, assume_unique=True)
        rows = self.X[rest]
        self.watch.lap(SELECT)
        row = np.empty(self.n)
        row[rest] = self.values(rows, rest, k)
        row[ids] = self.K[:, k]
        self.slot[k] = len(self.held)
        self.held.append(k)
        self.K = np.vstack([self.K, row])
        self.watch.lap(AUGMENT)

    def release(self, k: int) -> None:
        self.K = np.delete(self.K, self.slot[k], axis=0)
        self.held.remove(k)
        self.slot = {one: at for at, one in enumerate(self.held)}
        self.watch.lap(AUGMENT)

    def rates(self, beta: Array, free: list[int], rest: Array, c: int) -> Array:
        """Return γ of the rest [algorithm 4]: create the matrix, then multiply."""
        Z = np.empty((len(free) + 1, len(rest)))
        Z[0] = self.y[rest]
        Z[1:] = self.K[np.ix_([self.slot[k] for k in free], rest)]
        self.watch.lap(GATHER)
        gamma = beta @ Z + self.K[self.slot[c], rest]
        self.watch.lap(GAMMA)
        return gamma

    def inverse(self) -> Array:
        return self.Q

    def expand(self, beta: Array, kappa: float) -> None:
        """Grow Q by one example [eq. 16]."""
        m = len(self.Q)
        grown = np.zeros((m + 1, m + 1))
        grown[:m, :m] = self.Q
        last = np.append(beta, 1.0)
        self.Q = grown + np.outer(last, last) / kappa
        self.watch.lap(INVERSE)

    def shrink(self, at: int) -> None:
        """Take one example out of Q [eq. 22]."""
        q, pivot = np.delete(self.Q[at], at), self.Q[at, at]
        left = np.delete(np.delete(self.Q, at, axis=0), at, axis=1)
        self.Q = left - np.outer(q, q) / pivot
        self.watch.lap(INVERSE)

    def start(self, Q: Array) -> None:
        self.Q = Q


class Designed(Storage):
    """The design of §5.3: room in advance, whole rows in place, and sums over rows."""

    def __init__(self, *given: Any) -> None:
        from scipy.linalg.blas import daxpy

        super().__init__(*given)
        self.add = daxpy  # y += a x, in place
        self.rows = np.empty((64, self.X.shape[1]))  # of the held examples, side by side
        self.K = np.empty((64, len(self.y)))
        self.Q, self.size = np.empty((64, 64)), 0

    def arrive(self) -> Array:
        c, m = self.n, len(self.held)
        values = self.values(self.rows[:m], self.held, c)
        self.K[:m, c] = values
        self.n += 1
        self.watch.lap(AUGMENT)
        return values

    def hold(self, k: int) -> None:
        m, n = len(self.held), self.n
        if m == len(self.K):
            self.K = np.concatenate([self.K, np.empty_like(self.K)])
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        self.watch.lap(AUGMENT)
        self.K[m, :n] = self.values(self.X[:n], slice(n), k)
        self.rows[m] = self.X[k]
        self.slot[k] = m
        self.held.append(k)
        self.watch.lap(AUGMENT)

    def release(self, k: int) -> None:
        """Move the last row to where this one was."""
        at, last = self.slot.pop(k), self.held.pop()
        if last != k:
            self.K[at, : self.n] = self.K[len(self.held), : self.n]
            self.rows[at] = self.rows[len(self.held)]
            self.held[at], self.slot[last] = last, at
        self.watch.lap(AUGMENT)

    def rates(self, beta: Array, free: list[int], rest: Array, c: int) -> Array:
        """Return γ of the rest [algorithm 3]: add up whole rows, then select of the sum."""
        n = self.n
        z = beta[0] * self.y[:n]
        z += self.K[self.slot[c], :n]
        for k, rate in zip(free, beta[1:].tolist(), strict=True):
            self.add(self.K[self.slot[k], :n], z, a=rate)
        gamma = z[rest]
        self.watch.lap(GAMMA)
        return gamma

    def inverse(self) -> Array:
        return self.Q[: self.size, : self.size]

    def expand(self, beta: Array, kappa: float) -> None:
        m = self.size
        if m == len(self.Q):
            self.Q = np.pad(self.Q, (0, m))
        for i, value in enumerate((beta / kappa).tolist()):  # [eq. 31]
            self.add(beta, self.Q[i, :m], a=value)
        self.Q[m, :m] = self.Q[:m, m] = beta / kappa
        self.Q[m, m] = 1 / kappa
        self.size += 1
        self.watch.lap(INVERSE)

    def shrink(self, at: int) -> None:
        """Take one example out of Q; those behind it close up."""
        m = self.size - 1
        q, pivot = np.delete(self.Q[at, : m + 1], at), float(self.Q[at, at])
        self.Q[at:m, : m + 1] = self.Q[at + 1 : m + 1, : m + 1]
        self.Q[:m, at:m] = self.Q[:m, at + 1 : m + 1]
        for i, value in enumerate((-q / pivot).tolist()):
            self.add(q, self.Q[i, :m], a=value)
        self.size = m
        self.watch.lap(INVERSE)

    def start(self, Q: Array) -> None:
        self.size = len(Q)
        self.Q[: self.size, : self.size] = Q
