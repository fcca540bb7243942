"""The plan of a run: which rows are judged in which round.

A plan is a function of the layout of the data, of `round_rows` and of the seed. It does not depend
on the number of workers, on how fast they are, or on which of them are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marginwise._arrays import Ints
from marginwise._training.orders import Order

WARM_ROWS = 2048  # of each of the first two rounds, which no model has judged
WARM_BLOCKS = 16  # from which these rows are taken
PIECES = 8  # of a round, at least: what workers share between them
MOST_PIECE = 2048  # rows


@dataclass(frozen=True)
class Piece:
    """Rows that one task judges.

    Parameters
    ----------
    block : int
        The block that has them; -1 for rows of a source.
    length : int
        Rows of the block.
    first : int
        The id of its row 0.
    start, stop : int
        The places of the rows in the order of the block.
    seeds : tuple of int or None
        Numbers that decide the order; None for the order in which rows are stored.
    per_class : int, default=0
        How many rows of each class come first, wherever they are in the block.
    ids : ndarray of int64, default=None
        The rows of a source instead, by id.
    """

    block: int
    length: int
    first: int
    start: int
    stop: int
    seeds: tuple[int, ...] | None
    per_class: int = 0
    ids: Ints | None = None

    def __len__(self) -> int:
        return self.stop - self.start

    def order(self) -> Ints:
        """Return the order of all rows of the block."""
        if self.seeds is None:
            return np.arange(self.length, dtype=np.int64)
        order = np.random.default_rng([*self.seeds, self.block]).permutation(self.length)
        return order.astype(np.int64, copy=False)


@dataclass(frozen=True)
class Round:
    """Rows that are judged by one state of the model.

    Parameters
    ----------
    number : int
        Its number in the run.
    pieces : tuple of Piece
        Its rows, in the order in which they are applied.
    epoch : int
        The pass over the data that it is part of.
    finish : bool
        Whether a stage or a pass ends with it.
    """

    number: int
    pieces: tuple[Piece, ...]
    epoch: int
    finish: bool

    def __len__(self) -> int:
        return sum(len(piece) for piece in self.pieces)


@dataclass(frozen=True)
class Layout:
    """The blocks of a collection.

    Parameters
    ----------
    lengths : tuple of int
        Rows of each block; some may be empty.
    classes : tuple of frozenset of int
        The classes that occur in each block, by number.
    first : int, default=0
        The id of row 0.
    """

    lengths: tuple[int, ...]
    classes: tuple[frozenset[int], ...]
    first: int = 0

    @cached_property
    def firsts(self) -> Ints:
        """The id of the first row of each block."""
        return self.first + np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)


def piece_rows(round_rows: int) -> int:
    """Return how many rows one task judges at most."""
    return max(1, min(MOST_PIECE, -(-round_rows // PIECES)))


def round_sizes(round_rows: int, warm: bool) -> Iterator[int]:
    """Give the rows of rounds; those of a new model are small at first, and grow."""
    if warm:
        size = min(WARM_ROWS, round_rows)
        yield size
        while size < round_rows:
            yield size
            size *= 2
    while True:
        yield round_rows


# -- blocks ------------------------------------------------------------------------------------


def block_rounds(
    layout: Layout, round_rows: int, seeds: Sequence[int] | None, *, warm: bool, per_class: int
) -> list[list[Piece]]:
    """Return the pieces of each round of a pass over blocks.

    Parameters
    ----------
    layout : Layout
        The blocks.
    round_rows : int
        Rows of a round.
    seeds : sequence of int or None
        Numbers that decide the order; None takes rows as they are stored.
    warm : bool
        Whether the model is new, so that the first two rounds are learned as a whole. Their rows
        come from several blocks, among them one of each class.
    per_class : int
        How many rows of each class of these blocks are then among them.
    """
    blocks = np.flatnonzero(layout.lengths)
    if seeds is not None:
        blocks = np.random.default_rng([*seeds, 0]).permutation(blocks)
    done = np.zeros(len(layout.lengths), dtype=np.int64)
    rounds = []
    sizes = round_sizes(round_rows, warm)
    if warm and seeds is not None:
        chosen = _warm_blocks(layout, blocks.tolist())
        for number in range(2):
            each = -(-next(sizes) // len(chosen))
            some = [_piece(layout, b, done, each, seeds, per_class * (number == 0)) for b in chosen]
            rounds.append([piece for piece in some if len(piece)])
    rest = _cut(layout, blocks.tolist(), done, piece_rows(round_rows), seeds)
    if seeds is not None:
        order = np.random.default_rng([*seeds, 1]).permutation(len(rest))
        rest = [rest[k] for k in order]
    return [pieces for pieces in [*rounds, *_grouped(rest, sizes)] if pieces]


def _warm_blocks(layout: Layout, blocks: list[int]) -> list[int]:
    """Return the first blocks, and as many others as are needed for all classes to occur."""
    chosen = blocks[:WARM_BLOCKS]
    met = frozenset[int]().union(*(layout.classes[b] for b in chosen))
    for block in blocks[WARM_BLOCKS:]:
        if not layout.classes[block] <= met:
            chosen.append(block)
            met |= layout.classes[block]
    return chosen


def _piece(
    layout: Layout,
    block: int,
    done: Ints,
    rows: int,
    seeds: Sequence[int] | None,
    per_class: int = 0,
) -> Piece:
    """Return the next rows of a block, and count them as done."""
    start = int(done[block])
    stop = min(start + rows, layout.lengths[block])
    done[block] = stop
    key = None if seeds is None else (*seeds, 2)
    first = int(layout.firsts[block])
    return Piece(block, layout.lengths[block], first, start, stop, key, per_class)


def _cut(
    layout: Layout, blocks: list[int], done: Ints, most: int, seeds: Sequence[int] | None
) -> list[Piece]:
    """Cut what is left of each block into pieces of about the same size."""
    pieces = []
    for block in blocks:
        left = layout.lengths[block] - int(done[block])
        count = -(-left // most)
        for k in range(count):
            rows = (k + 1) * left // count - k * left // count
            pieces.append(_piece(layout, block, done, rows, seeds))
    return pieces


def _grouped(pieces: list[Piece], sizes: Iterator[int]) -> Iterator[list[Piece]]:
    """Give pieces in groups of as many rows as rounds have."""
    group: list[Piece] = []
    size = next(sizes)
    for piece in pieces:
        if group and sum(map(len, group)) + len(piece) > size:
            yield group
            group, size = [], next(sizes)
        group.append(piece)
    yield group


# -- sources -----------------------------------------------------------------------------------


def source_rounds(
    order: Order, first: int, sizes: Iterator[int], most: int
) -> Iterator[list[Piece]]:
    """Give the pieces of each round of a stage of a source.

    Parameters
    ----------
    order : Order
        The order of its rows.
    first : int
        The id of row 0.
    sizes : iterator of int
        The rows of each round.
    most : int
        Rows of a piece, at most.
    """
    done = 0
    while done < len(order):
        size = next(sizes)
        rows: list[Ints] = []
        while done < len(order) and sum(map(len, rows)) < size:
            chunk = order.chunk(done)[: size - sum(map(len, rows))]
            rows.append(chunk)
            done += len(chunk)
        together = np.concatenate(rows)
        count = -(-len(together) // most)
        yield [
            Piece(-1, len(part), first, 0, len(part), None, ids=part)
            for part in np.array_split(together, count)
        ]
