"""Where examples come from: arrays in memory, or a source that is read a chunk at a time."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginwise._core import Batch
from marginwise._input import Float, Ints

CHUNK = 4096  # rows of a source that are in memory at a time; the model does not depend on it


class Source(Protocol):
    """Labelled rows that can be read in any order; ids run from 0 to ``len(source) - 1``."""

    def __len__(self) -> int: ...

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return features and labels of these rows, in this order."""


def check_source(source: Any) -> None:
    """Raise a TypeError that says what a source is unless `source` is one."""
    if hasattr(source, "__len__") and callable(getattr(source, "read", None)):
        return
    if isinstance(source, str | os.PathLike):
        got = f"the path {os.fspath(source)!r}; load the file, or write a class that reads it"
    else:
        got = f"{type(source).__name__}; for arrays use fit or partial_fit"
    raise TypeError(
        "source must be an object with len(source) and source.read(ids), which returns features "
        f"and labels of the rows with these numbers; got {got}."
    )


class ArrayFeed:
    """Examples in memory: one batch serves every order.

    Parameters
    ----------
    batch
        The labelled rows.
    ids
        Their ids, ascending.
    """

    def __init__(self, batch: Batch, ids: Ints) -> None:
        self.batch = batch
        self.ids = ids

    def cuts(self, order: Ints) -> Iterator[tuple[Batch, Ints]]:
        """Give the batches that hold the rows of an order, and the places of the rows there."""
        yield self.batch, order


class Bench(ArrayFeed):
    """Rows whose labels come one by one: made ready once, so that a row costs little to learn.

    Parameters
    ----------
    batch
        The rows, without labels.
    ids
        Their ids, ascending.
    """

    def __init__(self, batch: Batch, ids: Ints) -> None:
        super().__init__(batch, ids)
        self._labels = np.zeros(len(ids), dtype=np.int32)
        self._costs = np.ones(len(ids))
        batch.label(self._labels, self._costs, ids)  # which keeps looking at these arrays

    def note(self, rows: Ints, labels: NDArray[np.int32], costs: Float) -> None:
        """Give rows their labels."""
        self._labels[rows] = labels
        self._costs[rows] = costs


class SourceFeed:
    """Examples of a source, read in the order in which they are wanted.

    Parameters
    ----------
    source
        The source.
    label
        Makes a labelled batch of features, labels and ids.
    first
        Id of row 0.
    """

    def __init__(
        self, source: Source, label: Callable[[Any, Any, Ints], Batch], first: int
    ) -> None:
        self._source = source
        self._label = label
        self.ids: Ints = np.arange(first, first + len(source), dtype=np.int64)

    def cuts(self, order: Ints) -> Iterator[tuple[Batch, Ints]]:
        """Give the batches that hold the rows of an order, and the places of the rows there."""
        for start in range(0, len(order), CHUNK):
            rows = np.ascontiguousarray(order[start : start + CHUNK])
            X, y = self._source.read(rows)
            yield self._label(X, y, self.ids[rows]), np.arange(len(rows), dtype=np.int64)


class Passes:
    """The rows that are left for a pass of selection, and when the passes end.

    Parameters
    ----------
    ids
        Ids of the rows.
    problems
        Binary problems, each of which learns a row once at most.
    epochs
        Passes to make, unless nothing is left to learn.
    before
        What `done` would be told now: counts of a model that has learned before.
    """

    # Fewer rows than this are not worth stopping at: a small set is gone through again until so
    # many were learned.
    LEAST = 1000

    def __init__(self, ids: Ints, problems: int, epochs: int, before: tuple[int, int]) -> None:
        self._ids = ids
        self._epochs = epochs
        self._made = 0
        self._least = before[0] + self.LEAST * problems
        self._changed = before[1]
        self.seen: NDArray[np.uint8] = np.zeros((problems, int(ids.max()) + 1), dtype=np.uint8)

    def left(self) -> NDArray[np.intp]:
        """Return the rows that some problem has not learned."""
        return np.flatnonzero((self.seen[:, self._ids] == 0).any(axis=0))

    def done(self, chosen: int, changed: int) -> bool:
        """Tell, after a pass, whether it was the last.

        Parameters
        ----------
        chosen
            Rows that were learned so far, counted once a problem.
        changed
            How many of them changed the model.
        """
        self._made += 1
        idle = changed == self._changed
        self._changed = changed
        enough = self._made >= self._epochs and chosen >= self._least
        return idle or enough or len(self.left()) == 0


class FullSearch:
    """Selection that looks at all rows that are left before it learns one.

    Parameters
    ----------
    rule
        "gradient", "active" or "autoactive"; the last two are the same here.
    signs
        Labels as +1 and -1, a column for each binary problem.
    order
        The order in which rows are learned while a problem has no model.
    slack
        A row must lie within the margin by more than this.
    """

    def __init__(self, rule: str, signs: Float, order: Ints, slack: float) -> None:
        self._by_label = rule == "gradient"
        self._signs = signs
        self._order = order
        self._slack = slack
        self._unseen = np.ones(len(signs), dtype=bool)

    def rows(self, scores: Callable[[], Float], deltas: Callable[[], Float]) -> Iterator[int]:
        """Give the next row to learn, for one problem after the other, until none has one.

        Parameters
        ----------
        scores
            Returns the decision values of all rows, a column for each problem.
        deltas
            Returns δ of each problem, minus infinity where it has no pair of examples yet.
        """
        problems = self._signs.shape[1]
        waiting = (int(row) for row in self._order if self._unseen[row])
        idle = 0
        for c in itertools.cycle(range(problems)):
            delta = float(deltas()[c])
            row = self._best(scores()[:, c], c, delta) if delta > -np.inf else next(waiting, None)
            idle = idle + 1 if row is None else 0
            if row is not None:
                self._unseen[row] = False
                yield row
            if idle == problems or not self._unseen.any():
                return

    def _best(self, f: Float, c: int, delta: float) -> int | None:
        """Return the best row for problem c if it lies within the margin."""
        score = self._signs[:, c] * f if self._by_label else np.abs(f)
        row = int(np.where(self._unseen, score, np.inf).argmin())
        return row if self._unseen[row] and score[row] < 1 + delta / 2 - self._slack else None
