"""The coefficients of a compressed model: projected, or fitted to rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import take_rows
from marginwise._compression.basis import SEED, Expansion, Vectors
from marginwise._compression.features import Span, span_of
from marginwise._compression.primal import Rows, minimise
from marginwise._engine.engine import Engine
from marginwise._engine.memory import auto_bytes
from marginwise._engine.plan import paired
from marginwise.progress import Progress


@dataclass
class Training:
    """Rows that coefficients are fitted to.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, features)
        The rows.
    labels : ndarray of int32
        Their classes.
    costs : ndarray of float64
        C of each row, in the units of the engine.
    values : ndarray of shape (n, problems) or None
        Values that the decision functions are fitted to, instead of the labels.
    """

    X: Any
    labels: Labels
    costs: Float
    values: Float | None = None

    def take(self, places: Ints) -> Training:
        values = None if self.values is None else self.values[places]
        return Training(take_rows(self.X, places), self.labels[places], self.costs[places], values)

    def within(self, rows: int) -> Training:
        """Return a random sample of at most this many rows, with costs scaled up accordingly."""
        n = len(self.labels)
        if n <= rows:
            return self
        drawn = np.sort(np.random.default_rng(SEED).permutation(n)[:rows])
        some = self.take(drawn)
        return replace(some, costs=some.costs * (n / rows))


def project(engine: Engine, model: Expansion, vectors: Vectors) -> tuple[Expansion, Float]:
    """Project a model onto the span of other vectors in feature space.

    Returns the expansion, and |w|^2 of each problem, which is smaller than that of the model by the
    squared distance between the two.
    """
    span = span_of(engine, vectors)
    projected = span.project(model)
    return span.expansion(projected, model.intercept), np.square(projected).sum(axis=1)


def refit(
    engine: Engine, model: Expansion, vectors: Vectors, training: Training, verbose: int
) -> Expansion:
    """Expand a model over other vectors, with coefficients fitted to rows.

    Problems whose rows all have the same label keep their projected coefficients. Values that the
    projection does not reach are fitted by the smallest change of it.
    """
    span = span_of(engine, vectors)
    weights, intercept = span.project(model), model.intercept.copy()
    # The coordinates may use as much memory as the kernel cache.
    training = training.within(max(auto_bytes(os.getpid()) // (4 * len(span.vectors)), 1))
    with Progress(len(weights), verbose, unit="problem") as progress:
        for c, rows in problems(engine, span, training):
            biased, w, b = engine.algorithm.biased, weights[c], intercept[c]
            if rows.valued:
                rest = replace(rows, targets=rows.targets - rows.times(w) - b)
                change, rise = minimise(rest, np.zeros_like(w), 0.0, biased=biased)
                weights[c], intercept[c] = w + change, b + rise
            elif np.unique(rows.targets).size == 2:
                weights[c], intercept[c] = minimise(rows, w, b, biased=biased)
            progress.count(1)
    return span.expansion(weights, intercept)


def problems(engine: Engine, span: Span, training: Training) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of each binary problem; all share the coordinates, sorted by class."""
    order: Ints = np.argsort(training.labels, kind="stable").astype(np.int64)
    labels, costs = training.labels[order], training.costs[order]
    coordinates, valued = span.coordinates(training.X, order), training.values is not None
    targets = engine.signs(labels) if training.values is None else training.values[order]
    if not engine.plan.pairs:
        everything = [slice(0, len(order))]
        for c in range(engine.plan.problems):
            yield c, Rows(coordinates, everything, targets[:, c], costs, valued)
        return
    for c, pair in enumerate(zip(*paired(engine.plan.problems), strict=True)):
        parts = [slice(*np.searchsorted(labels, (k, k + 1)).tolist()) for k in pair]
        own, paid = (
            np.concatenate([some[part] for part in parts]) for some in (targets[:, c], costs)
        )
        yield c, Rows(coordinates, parts, own, paid, valued)
