"""Where examples come from: arrays in memory, or a source that is read a chunk at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints
from marginwise._core import Batch

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
        Makes a labelled batch of features, labels and ids, and numbers the labels.
    first
        Id of row 0.
    chunk
        How many rows to read at a time; `CHUNK` by default.
    """

    labels: NDArray[np.int32]  # of the rows that were read last

    def __init__(
        self,
        source: Source,
        label: Callable[[Any, Any, Ints], tuple[Batch, NDArray[np.int32]]],
        first: int,
        chunk: int | None = None,
    ) -> None:
        self._source = source
        self._label = label
        self._chunk = chunk
        self.ids: Ints = np.arange(first, first + len(source), dtype=np.int64)

    def cuts(self, order: Ints) -> Iterator[tuple[Batch, Ints]]:
        """Give the batches that hold the rows of an order, and the places of the rows there."""
        chunk = CHUNK if self._chunk is None else self._chunk
        for start in range(0, len(order), chunk):
            rows = np.ascontiguousarray(order[start : start + chunk])
            X, y = self._source.read(rows)
            batch, self.labels = self._label(X, y, self.ids[rows])
            yield batch, np.arange(len(rows), dtype=np.int64)
