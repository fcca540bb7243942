"""Models for many values of C and gamma on all folds, with shared kernel values.

The held-out rows of a fold remain in each binary problem, but their coefficients are fixed at 0.
Therefore, all folds and all values of C share one kernel matrix per gamma, all values of gamma
share the dot products, and the solution includes the decision values of held-out rows. Each pair of
classes has its own matrix; rows of other classes are scored afterwards.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginwise._arrays import Float, Ints, Labels
from marginwise._core import Tuner32, Tuner64
from marginwise._engine.engine import Engine
from marginwise._engine.plan import Plan, check_range, paired
from marginwise._tuning.elsewhere import each, runs_elsewhere
from marginwise._tuning.folds import Fold

TOL = 0.05  # maximum violation of models of a search: smaller ones do not affect scores


@dataclass(frozen=True)
class Scored:
    """Decision values of held-out rows, for one fold, one gamma and several values of C."""

    fold: int
    decision: Float  # of shape (values of C, rows held out, binary problems)
    fit_seconds: Float  # per value of C
    score_seconds: Float
    violation: float = 0.0  # the largest remaining one of all models


@dataclass
class SharedModels:
    """Fits models with shared kernel values.

    Parameters
    ----------
    engine : Engine
        Engine of a model with the largest gamma, which defines the kernel and the scale of rows.
    X : {ndarray, csr_array}
        The rows.
    labels : ndarray of int32
        Their classes.
    penalties : ndarray of shape (folds, rows)
        Factor of C of each row; 0 if the fold holds the row out.
    folds : list of Fold
        The folds.
    tol : float
        Maximum violation of a solution.
    """

    engine: Engine
    X: Any
    labels: Labels
    penalties: Float
    folds: list[Fold]
    tol: float

    def __post_init__(self) -> None:
        check_range(self.engine.plan, self.X)
        self._batch = self.engine.batch(self.X)
        self._signs = self.engine.signs(self.labels)

    def scored(self, wanted: Mapping[float, Float]) -> Generator[tuple[float, Scored], None, None]:
        """Fit and score models for some values of C for each gamma, one gamma at a time."""
        if runs_elsewhere() and len(wanted) > 1:
            yield from self._scored_elsewhere(wanted)
            return
        threads = min(self.engine.threads, len(wanted))
        if threads == 1:
            self._tuner = self._make_tuner(1)
            yield from self._scored(wanted)
            return

        tuners = []

        def all_of(gamma: float) -> list[tuple[float, Scored]]:
            alone = copy(self)  # with its own kernel matrix
            alone._tuner = self._make_tuner(threads)
            tuners.append(alone._tuner)
            return list(alone._scored({gamma: wanted[gamma]}))

        with ThreadPoolExecutor(threads) as pool:
            try:
                for scored in pool.map(all_of, wanted):
                    yield from scored
            except BaseException:  # such as Ctrl-C, which only this thread receives
                pool.shutdown(wait=False, cancel_futures=True)
                for tuner in tuners:
                    tuner.cancel()
                raise

    def _scored_elsewhere(self, wanted: Mapping[float, Float]) -> Iterator[tuple[float, Scored]]:
        """Fit and score the models of each gamma on a worker of a cluster."""
        shared = self.engine.plan, self.X, self.labels, self.penalties, self.folds, self.tol
        for scored in each(_all_of, ((*shared, gamma, Cs) for gamma, Cs in wanted.items())):
            yield from scored

    def _make_tuner(self, sharers: int) -> Tuner32 | Tuner64:
        """Return a tuner that may use a part of the memory for kernel values."""
        engine, spec = self.engine, self.engine._spec()
        single = not engine.plan.double and engine.native.within_limit(self._batch)
        spec["cache_bytes"] //= sharers
        return (Tuner32 if single else Tuner64)(spec, self._batch)

    def _scored(self, wanted: Mapping[float, Float]) -> Iterator[tuple[float, Scored]]:
        largest = self.engine.plan.gamma
        if self.engine.plan.pairs:
            yield from self._scored_in_pairs(wanted, largest)
            return
        rows = np.arange(len(self.labels), dtype=np.int64)
        self._tuner.begin(rows, len(wanted))
        for gamma, Cs in wanted.items():
            self._tuner.set_gamma(gamma / largest)
            for number, fold in enumerate(self.folds):
                yield gamma, self._follow(number, fold, Cs)

    def _follow(self, number: int, fold: Fold, Cs: Float) -> Scored:
        problems = self._signs.shape[1]
        decision = np.empty((len(Cs), len(fold.test), problems))
        seconds, violation = np.zeros(len(Cs)), 0.0
        for c in range(problems):
            path = self._path(rows=None, problem=c, fold=number, Cs=Cs)
            decision[:, :, c] = path["decision"][:, fold.test]
            seconds += path["seconds"]
            violation = max(violation, float(path["violation"].max()))
        return Scored(number, decision, seconds, np.zeros(len(Cs)), violation)

    def _path(self, rows: Ints | None, problem: int, fold: int, Cs: Float) -> dict[str, Any]:
        """Return the solutions of a binary problem for each C, without a fold's held-out rows."""
        own = slice(None) if rows is None else rows
        signs = np.ascontiguousarray(self._signs[own, problem])
        weights = self.engine.plan.unit * np.ascontiguousarray(self.penalties[fold][own])
        return self._tuner.follow(signs, weights, Cs, self.tol)

    # -- pairs of classes ----------------------------------------------------------------------

    def _scored_in_pairs(
        self, wanted: Mapping[float, Float], largest: float
    ) -> Iterator[tuple[float, Scored]]:
        paths = {
            (gamma, fold): _Columns(len(Cs), self._signs.shape[1])
            for gamma, Cs in wanted.items()
            for fold in range(len(self.folds))
        }
        first, second = paired(self._signs.shape[1])
        for c, pair in enumerate(zip(first, second, strict=True)):
            rows = np.flatnonzero(np.isin(self.labels, pair)).astype(np.int64)
            self._tuner.begin(rows, len(wanted))
            for gamma, Cs in wanted.items():
                self._tuner.set_gamma(gamma / largest)
                for number in range(len(self.folds)):
                    path = self._path(rows, c, number, Cs)
                    paths[gamma, number].add(c, rows, path)
        for gamma in wanted:
            self._tuner.set_gamma(gamma / largest)
            for number, fold in enumerate(self.folds):
                yield gamma, paths.pop((gamma, number)).scored(self._tuner, number, fold)


def _all_of(
    plan: Plan,
    X: Any,
    labels: Labels,
    penalties: Float,
    folds: list[Fold],
    tol: float,
    gamma: float,
    Cs: Float,
) -> list[tuple[float, Scored]]:
    """Fit and score the models of one gamma with one thread."""
    models = SharedModels(Engine(plan, None, 1), X, labels, penalties, folds, tol)
    return list(models.scored({gamma: Cs}))


class _Columns:
    """Sparse coefficients of all pairs of classes, for several values of C."""

    def __init__(self, values: int, problems: int) -> None:
        self.shape = values, problems
        self.parts: dict[tuple[int, int], tuple[Ints, Float]] = {}
        self.bias = np.zeros(self.shape)
        self.seconds = np.zeros(values)
        self.violation = 0.0

    def add(self, problem: int, rows: Ints, path: Mapping[str, Any]) -> None:
        """Add the solutions of a pair of classes for its rows."""
        begin = path["begin"]
        for k in range(self.shape[0]):
            part = slice(begin[k], begin[k + 1])
            examples = rows[path["example"][part]].astype(np.int32)
            self.parts[k, problem] = examples, path["alpha"][part]
        self.bias[:, problem] = path["bias"]
        self.seconds += path["seconds"]
        self.violation = max(self.violation, float(path["violation"].max()))

    def scored(self, tuner: Tuner32 | Tuner64, number: int, fold: Fold) -> Scored:
        """Return the decision values of a fold's held-out rows for all pairs of classes."""
        column, kept = self._different()
        begin = np.concatenate([[0], np.cumsum([len(alpha) for _, alpha in kept])])
        examples = np.concatenate([examples for examples, _ in kept])
        alpha = np.concatenate([alpha for _, alpha in kept])
        f = tuner.expand(fold.test, begin.astype(np.int64), examples, alpha)
        decision = np.empty((len(column), *f.shape[:1], column.shape[1]))
        for own, bias, out in zip(column, self.bias, decision, strict=True):
            np.take(f, own, axis=1, out=out, mode="clip")  # "clip" writes to `out` directly
            out += bias
        return Scored(number, decision, self.seconds, np.zeros(len(column)), self.violation)

    def _different(self) -> tuple[Ints, list[tuple[Ints, Float]]]:
        """Return the distinct coefficients, and which of them each C and pair of classes uses.

        If no coefficient is at its bound, the next larger C has the same solution.
        """
        values, problems = self.shape
        column = np.zeros(self.shape, dtype=np.int64)
        kept: list[tuple[Ints, Float]] = []
        for c in range(problems):
            for k in range(values):
                part = self.parts[k, c]
                if k == 0 or not _same(part, kept[-1]):
                    kept.append(part)
                column[k, c] = len(kept) - 1
        return column, kept


def _same(part: tuple[Ints, Float], other: tuple[Ints, Float]) -> bool:
    return all(np.array_equal(own, others) for own, others in zip(part, other, strict=True))
