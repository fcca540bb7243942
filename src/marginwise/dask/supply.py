"""The rows of a run: blocks of Dask collections, or a data source that workers read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from distributed import Future

from marginwise._training.checkpoint import fingerprint
from marginwise._training.orders import BlockOrder, Order, RowOrder
from marginwise._training.sources import Source, block_of, reads_anywhere, sample_rows
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

WARM_PER_CLASS = 5  # minimum rows of each class that the first round takes from a block


@dataclass(frozen=True)
class Course:
    """Parameters that, together with the data, determine the rounds of a run.

    Parameters
    ----------
    seed : int
        Seed of the order of rows.
    round_rows : int
        Number of rows per round.
    shuffle : bool
        Whether to visit rows in random order.
    """

    seed: int
    round_rows: int
    shuffle: bool


class Supply(Protocol):
    """Rows that workers can access, and the plan for evaluating them."""

    def __len__(self) -> int: ...

    def rounds(self, course: Course, epoch: int, *, warm: bool) -> Iterator[Round]:
        """Yield the rounds of a pass; the first ones are small if the model is new."""

    def sample(self, seeds: Sequence[int], rows: int, most: int) -> list[Piece]:
        """Return pieces with random rows from a limited number of blocks."""

    def held(self, piece: Piece) -> list[Future]:
        """Return futures of the data that contain the rows of a piece."""

    def name(self, piece: Piece) -> str:
        """Return the name of a piece for messages."""

    def fingerprint(self) -> str:
        """Return a digest of the rows."""


def _numbered(groups: Iterable[tuple[list[Piece], bool]], epoch: int) -> Iterator[Round]:
    for number, (pieces, last) in enumerate(groups):
        yield Round(number, tuple(pieces), epoch, last)


class BlockSupply:
    """Rows in blocks of Dask collections.

    Parameters
    ----------
    xs, ys : list of Future
        The blocks.
    population : Population
        Summary of the blocks.
    first : int
        Id of row 0.
    """

    def __init__(
        self, xs: Sequence[Future], ys: Sequence[Future], population: Population, first: int
    ) -> None:
        self._xs, self._ys = xs, ys
        self._population = population
        lengths = tuple(block.rows for block in population.blocks)
        classes = tuple(population.in_block(k) for k in range(len(lengths)))
        self._layout = Layout(lengths, classes, first)

    def __len__(self) -> int:
        return self._population.rows

    def rounds(self, course: Course, epoch: int, *, warm: bool) -> Iterator[Round]:
        """Yield the rounds of a pass; the first ones are small if the model is new."""
        seeds = [course.seed, epoch] if course.shuffle else None
        groups = block_rounds(
            self._layout, course.round_rows, seeds, warm=warm, per_class=WARM_PER_CLASS
        )
        return _numbered(((group, group is groups[-1]) for group in groups), epoch)

    def sample(self, seeds: Sequence[int], rows: int, most: int) -> list[Piece]:
        """Return pieces with random rows from a limited number of blocks."""
        rng = np.random.default_rng(seeds)
        lengths = np.array(self._layout.lengths)
        drawn = np.sort(rng.choice(len(lengths), most, p=lengths / lengths.sum()))
        blocks, times = np.unique(drawn, return_counts=True)
        counts = np.minimum(times * -(-rows // most), lengths[blocks])
        key = (*seeds, 3)
        return [
            Piece(block, int(lengths[block]), int(self._layout.firsts[block]), 0, count, key)
            for block, count in zip(blocks.tolist(), counts.tolist(), strict=True)
        ]

    def held(self, piece: Piece) -> list[Future]:
        """Return futures of the data that contain the rows of a piece."""
        return [self._xs[piece.block], self._ys[piece.block]]

    def name(self, piece: Piece) -> str:
        """Return the name of a piece for messages."""
        start = piece.first - self._layout.first
        return f"block {piece.block} of X (rows {start} to {start + piece.length - 1})"

    def fingerprint(self) -> str:
        """Return a digest of the rows."""
        digest = hashlib.sha256(repr(self._layout.lengths).encode())
        for block in self._population.blocks:
            counted = block.classes.tolist(), block.counts.tolist(), block.names, block.digest
            digest.update(repr(counted).encode())
        return digest.hexdigest()


class SourceSupply:
    """Rows of a source, of which every worker has a copy.

    Parameters
    ----------
    source : Source
        The source.
    ends : list of int
        Row numbers at which the stages of the source end.
    published : callable
        Returns the future of the published source.
    first : int
        Id of row 0.
    """

    def __init__(
        self, source: Source, ends: list[int], published: Callable[[], Future], first: int
    ) -> None:
        self._source = source
        self._ends = ends
        self._published = published
        self._first = first

    def __len__(self) -> int:
        return self._ends[-1]

    def rounds(self, course: Course, epoch: int, *, warm: bool) -> Iterator[Round]:
        """Yield the rounds of a pass, stage by stage; the first ones are small for a new model."""
        return _numbered(self._groups(course, epoch, warm), epoch)

    def _groups(self, course: Course, epoch: int, warm: bool) -> Iterator[tuple[list[Piece], bool]]:
        sizes = round_sizes(course.round_rows, warm)
        most = piece_rows(course.round_rows)
        for stage in range(len(self._ends)):
            order, done = self._order(course, epoch, stage), 0
            for group in source_rounds(order, self._first, sizes, most):
                done += sum(map(len, group))
                yield group, done == len(order)

    def _order(self, course: Course, epoch: int, stage: int) -> Order:
        first, end = [0, *self._ends][stage : stage + 2]
        seeds, block = [course.seed, epoch, stage], block_of(self._source)
        if block is None or not course.shuffle:
            return RowOrder(first, end, course.round_rows, seeds if course.shuffle else None)
        anywhere = reads_anywhere(self._source)
        return BlockOrder(first, end, course.round_rows, seeds, block=block, anywhere=anywhere)

    def sample(self, seeds: Sequence[int], rows: int, most: int) -> list[Piece]:
        """Return one piece with random rows, or evenly spaced rows if the source has blocks."""
        if block_of(self._source) is not None:
            ids = sample_rows(self._source, len(self), rows)
        else:
            rng = np.random.default_rng(seeds)
            ids = np.unique(rng.integers(len(self), size=min(rows, len(self))))
        return [Piece(-1, len(ids), self._first, 0, len(ids), None, ids=ids)]

    def held(self, piece: Piece) -> list[Future]:
        """Return futures of the data that contain the rows of a piece."""
        return [self._published()]

    def name(self, piece: Piece) -> str:
        """Return the name of a piece for messages."""
        assert piece.ids is not None
        return f"{len(piece.ids)} rows of the source, the first of which is {int(piece.ids[0])}"

    def fingerprint(self) -> str:
        """Return a digest of the rows."""
        return fingerprint(self._source, self._ends[-1])
