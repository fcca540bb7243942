"""Orders in which the rows of a source are visited, one chunk at a time.

An order is a function of its seeds, so a resumed run continues in the same order.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from marginwise._arrays import Ints


class Order(Protocol):
    """An order of the rows of one stage."""

    def __len__(self) -> int: ...

    def chunk(self, done: int) -> Ints:
        """Return the rows of the chunk that begins when so many rows are done."""


class RowOrder:
    """Order of rows that are stored individually: random, or the order of the source.

    Parameters
    ----------
    first, end : int
        The rows of the stage.
    size : int
        Rows of a chunk.
    seeds : list of int or None
        Seeds of the order; None for the order of the source.
    """

    def __init__(self, first: int, end: int, size: int, seeds: list[int] | None) -> None:
        self._first, self._n, self._size = first, end - first, size
        self._order = None if seeds is None else np.random.RandomState(seeds).permutation(self._n)

    def __len__(self) -> int:
        return self._n

    def chunk(self, done: int) -> Ints:
        """Return the rows of the chunk that begins when so many rows are done."""
        places = np.arange(done, min(done + self._size, self._n), dtype=np.int64)
        return np.asarray(
            self._first + (places if self._order is None else self._order[places]), dtype=np.int64
        )


class BlockOrder:
    """Order of rows that are stored in blocks: random rows within windows of random blocks.

    A window consists of the blocks of one chunk, or of one block if that is larger. Each block is
    read for only one window, so memory does not grow with the number of rows.

    Parameters
    ----------
    first, end : int
        The rows of the stage.
    size : int
        Rows of a chunk.
    seeds : list of int
        Seeds of the order.
    block : int
        Rows of a block.
    anywhere : bool
        Whether blocks can be read in any order. Otherwise, they are read in stored order.
    """

    def __init__(
        self, first: int, end: int, size: int, seeds: list[int], *, block: int, anywhere: bool
    ) -> None:
        blocks = np.arange(first // block, -(-end // block), dtype=np.int64)
        if anywhere:
            blocks = np.random.RandomState(seeds).permutation(blocks)
        self._starts = np.maximum(blocks * block, first)
        self._stops = np.minimum((blocks + 1) * block, end)
        self._n, self._size, self._seeds = end - first, size, seeds
        self._together = max(1, size // block)  # blocks per window
        done = np.cumsum(self._stops - self._starts)
        last = np.arange(self._together - 1, len(done) + self._together - 1, self._together)
        self._window_ends = done[np.minimum(last, len(done) - 1)]

    def __len__(self) -> int:
        return self._n

    def chunk(self, done: int) -> Ints:
        """Return the rows of the chunk that begins when so many rows are done."""
        window = int(np.searchsorted(self._window_ends, done, side="right"))
        begun = done - (int(self._window_ends[window - 1]) if window else 0)
        return self._window(window)[begun : begun + self._size]

    def _window(self, window: int) -> Ints:
        some = slice(window * self._together, (window + 1) * self._together)
        spans = zip(self._starts[some].tolist(), self._stops[some].tolist(), strict=True)
        rows = np.concatenate([np.arange(start, stop, dtype=np.int64) for start, stop in spans])
        return np.random.RandomState([*self._seeds, window]).permutation(rows)
