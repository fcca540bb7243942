"""Where the rows of a run are: in blocks of the cluster, or in a source that workers read."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from distributed import Future

from marginwise._training.checkpoint import fingerprint
from marginwise._training.orders import BlockOrder, Order, RowOrder
from marginwise._training.sources import Source, block_of, reads_anywhere
from marginwise.dask.census import Population
from marginwise.dask.plan import (
    Layout,
    Piece,
    Round,
    block_rounds,
    piece_rows,
    round_sizes,
    source_rounds,
)
from marginwise.dask.tasks import sift_block, sift_source

WARM_PER_CLASS = 5  # rows of each class that open the first round


class Supply(Protocol):
    """Rows that workers can reach, and the plan by which they are judged."""

    def __len__(self) -> int: ...

    def passes(
        self, shuffle: bool, seed: int, round_rows: int, passes: int, warm: bool
    ) -> Iterator[Round]:
        """Give the rounds of some passes over all rows."""

    def call(self, piece: Piece) -> tuple[Callable[..., Any], list[Any]]:
        """Return the task that judges a piece, and what it needs besides the model."""

    def name(self, piece: Piece) -> str:
        """Return what a piece is called in messages."""

    def fingerprint(self) -> str:
        """Return a digest of the rows."""


def _numbered(
    groups: Iterator[tuple[int, list[Piece], bool]],
) -> Iterator[Round]:
    for number, (epoch, pieces, last) in enumerate(groups):
        yield Round(number, tuple(pieces), epoch, last)


class BlockSupply:
    """Rows in blocks of Dask collections.

    Parameters
    ----------
    xs, ys : list of Future
        The blocks.
    population : Population
        What they hold.
    first : int
        The id of row 0.
    """

    def __init__(
        self, xs: Sequence[Future], ys: Sequence[Future], population: Population, first: int
    ) -> None:
        self.xs, self.ys = xs, ys
        self.population = population
        self._first = first
        lengths = tuple(block.rows for block in population.blocks)
        classes = tuple(population.in_block(k) for k in range(len(lengths)))
        self.layout = Layout(lengths, classes, first)

    def __len__(self) -> int:
        return self.population.rows

    def passes(
        self, shuffle: bool, seed: int, round_rows: int, passes: int, warm: bool
    ) -> Iterator[Round]:
        """Give the rounds of some passes over all rows."""

        def groups() -> Iterator[tuple[int, list[Piece], bool]]:
            for epoch in range(passes):
                seeds = [seed, epoch] if shuffle else None
                new = warm and epoch == 0
                pieces = block_rounds(
                    self.layout, round_rows, seeds, warm=new, per_class=WARM_PER_CLASS
                )
                for k, group in enumerate(pieces):
                    yield epoch, group, k + 1 == len(pieces)

        return _numbered(groups())

    def call(self, piece: Piece) -> tuple[Callable[..., Any], list[Any]]:
        """Return the task that judges a piece, and what it needs besides the model."""
        return sift_block, [self.xs[piece.block], self.ys[piece.block]]

    def name(self, piece: Piece) -> str:
        """Return what a piece is called in messages."""
        start = piece.first - self._first
        return f"block {piece.block} of X (rows {start} to {start + piece.length - 1})"

    def fingerprint(self) -> str:
        """Return a digest of the rows."""
        digest = hashlib.sha256(repr(self.layout.lengths).encode())
        for block in self.population.blocks:
            counted = block.classes.tolist(), block.counts.tolist(), block.mean, block.squares
            digest.update(repr(counted).encode())
        return digest.hexdigest()


class SourceSupply:
    """Rows of a source, which every worker has a copy of.

    Parameters
    ----------
    source : Source
        The source.
    ends : list of int
        The ids at which its stages end.
    published : callable
        Returns the future of the copies.
    first : int
        The id of row 0.
    """

    def __init__(
        self, source: Source, ends: list[int], published: Callable[[], Future], first: int
    ) -> None:
        self.source = source
        self._ends = ends
        self._published = published
        self._first = first

    def __len__(self) -> int:
        return self._ends[-1]

    def passes(
        self, shuffle: bool, seed: int, round_rows: int, passes: int, warm: bool
    ) -> Iterator[Round]:
        """Give the rounds of some passes over all rows, stage by stage."""

        def groups() -> Iterator[tuple[int, list[Piece], bool]]:
            for epoch in range(passes):
                sizes = round_sizes(round_rows, warm and epoch == 0)
                for stage in range(len(self._ends)):
                    order = self._order(
                        stage, [seed, epoch, stage] if shuffle else None, round_rows
                    )
                    done = 0
                    for group in source_rounds(order, self._first, sizes, piece_rows(round_rows)):
                        done += sum(map(len, group))
                        yield epoch, group, done == len(order)

        return _numbered(groups())

    def _order(self, stage: int, seeds: list[int] | None, size: int) -> Order:
        first, end = [0, *self._ends][stage : stage + 2]
        block = block_of(self.source)
        if block is None or seeds is None:
            return RowOrder(first, end, size, seeds)
        anywhere = reads_anywhere(self.source)
        return BlockOrder(first, end, size, seeds, block=block, anywhere=anywhere)

    def call(self, piece: Piece) -> tuple[Callable[..., Any], list[Any]]:
        """Return the task that judges a piece, and what it needs besides the model."""
        return sift_source, [self._published()]

    def name(self, piece: Piece) -> str:
        """Return what a piece is called in messages."""
        assert piece.ids is not None
        return f"a piece of the source ({len(piece.ids)} rows, the first is {int(piece.ids[0])})"

    def fingerprint(self) -> str:
        """Return a digest of the rows."""
        return fingerprint(self.source, self._ends[-1])


def stacked(parts: Sequence[Any]) -> Any:
    """Return rows of several blocks as one array or CSR matrix."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        return importlib.import_module("pandas").concat(parts)
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)
