"""The plan of a run: the rows that are evaluated in each round.

A plan is a function of the layout of the data, `round_rows` and the seed. It does not depend on the
number of workers, their speed, or lost workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marginwise._arrays import Ints
from marginwise._training.orders import Order

WARM_ROWS = 2048  # rows of each of the first two rounds, which are learned without evaluation
WARM_BLOCKS = 16  # blocks from which these rows are taken
PIECES = 8  # minimum per round, to be distributed over workers
MOST_PIECE = 2048  # maximum number of rows of a piece


@dataclass(frozen=True)
class Piece:
    """Rows that one task evaluates.

    Parameters
    ----------
    block : int
        Block of the rows; -1 for rows of a source.
    length : int
        Number of rows of the block.
    first : int
        Id of row 0 of the block.
    start, stop : int
        Range of the rows in the order of the block.
    seeds : tuple of int or None
        Seeds of the order; None keeps the order in which rows are stored.
    per_class : int, default=0
        Minimum number of rows of each class. Missing rows are taken from the rest of the block.
    ids : ndarray of int64, default=None
        Ids of the rows, for rows of a source.
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
    """Rows that are evaluated with the same snapshot of the model.

    Parameters
    ----------
    number : int
        Number of the round in its pass.
    pieces : tuple of Piece
        The rows, in the order in which they are learned.
    epoch : int
        Number of the pass over the data.
    finish : bool
        Whether the round ends a stage or a pass.
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
        Number of rows of each block; blocks may be empty.
    classes : tuple of frozenset of int
        Indices of the classes that occur in each block.
    first : int, default=0
        Id of row 0.
    """

    lengths: tuple[int, ...]
    classes: tuple[frozenset[int], ...]
    first: int = 0

    @cached_property
    def firsts(self) -> Ints:
        """The id of the first row of each block."""
        return self.first + np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)


def piece_rows(round_rows: int) -> int:
    """Return the maximum number of rows per task."""
    return max(1, min(MOST_PIECE, -(-round_rows // PIECES)))


def round_sizes(round_rows: int, warm: bool) -> Iterator[int]:
    """Yield the number of rows of each round; a new model starts with small, growing rounds."""
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
        Number of rows per round.
    seeds : sequence of int or None
        Seeds of the order; None keeps the order in which rows are stored.
    warm : bool
        Whether the model is new. If so, all rows of the first two rounds are learned. They come
        from several blocks, in which every class occurs.
    per_class : int
        Minimum number of rows of each class that the first round takes from each of these blocks.
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
    """Return the first blocks, and further blocks until all classes occur."""
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
    """Return the next rows of a block, and mark them as done."""
    start = int(done[block])
    stop = min(start + rows, layout.lengths[block])
    done[block] = stop
    key = None if seeds is None else (*seeds, 2)
    first = int(layout.firsts[block])
    return Piece(block, layout.lengths[block], first, start, stop, key, per_class)


def _cut(
    layout: Layout, blocks: list[int], done: Ints, most: int, seeds: Sequence[int] | None
) -> list[Piece]:
    """Divide the remaining rows of each block into pieces of about the same size."""
    pieces = []
    for block in blocks:
        left = layout.lengths[block] - int(done[block])
        count = -(-left // most)
        for k in range(count):
            rows = (k + 1) * left // count - k * left // count
            pieces.append(_piece(layout, block, done, rows, seeds))
    return pieces


def _grouped(pieces: list[Piece], sizes: Iterator[int]) -> Iterator[list[Piece]]:
    """Group pieces into rounds of the given sizes."""
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
    """Yield the pieces of each round of a stage of a source.

    Parameters
    ----------
    order : Order
        The order of the rows.
    first : int
        Id of row 0.
    sizes : iterator of int
        Number of rows of each round.
    most : int
        Maximum number of rows of a piece.
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
