"""Sources: labelled rows that are read on demand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from marginwise._arrays import Ints, spread_rows

SAMPLED_BLOCKS = 16  # number of blocks from which rows of a source are sampled


class Source(Protocol):
    """Labelled rows that can be read in any order; ids run from 0 to ``len(source) - 1``.

    A source may have more attributes: `classes`, all labels; `stages`, the ids at which training
    stages end; `fingerprint()`, a digest of its content. If rows are stored in blocks, such as the
    row groups of a file, `block` is the number of rows per block, and `random_access` is False if
    blocks can only be read in order.
    """

    def __len__(self) -> int: ...

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return features and labels of these rows, in this order."""


class Stream(Protocol):
    """Labelled rows that can be read only once, in order."""

    def chunks(self) -> Iterator[tuple[Any, Any]]:
        """Yield features and labels of successive rows."""


def is_stream(source: Any) -> bool:
    """Return whether the rows can be read only once and their number is unknown."""
    return callable(getattr(source, "chunks", None)) and not hasattr(source, "__len__")


def check_source(source: Any) -> list[int]:
    """Check that `source` is a source with rows; return the ids at which its stages end.

    Most sources have one stage.
    """
    if not hasattr(source, "__len__") or not callable(getattr(source, "read", None)):
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            got = f"the path {path!r}; open it with marginwise.data.open_source({path!r})"
        else:
            got = f"{type(source).__name__}; for arrays use fit or partial_fit"
        raise TypeError(
            "source must be an object with len(source) and source.read(ids), which returns "
            "features and labels of the rows with these numbers, or a stream with "
            f"source.chunks(); got {got}."
        )
    n = len(source)
    if n == 0:
        raise ValueError("the source is empty; it must have at least one row.")
    ends = list(getattr(source, "stages", [n]))
    if ends and np.asarray(ends).dtype.kind not in "iu":
        raise ValueError(f"source.stages must be integers, got {ends}.")
    rising = all(a < b for a, b in zip([0, *ends], ends, strict=False))
    if not ends or ends[-1] != n or not rising:
        raise ValueError(f"source.stages must be rising ids that end with {n}, got {ends}.")
    return [int(end) for end in ends]


def block_of(source: Any) -> int | None:
    """Return the number of rows per block; None if rows are stored individually."""
    block = getattr(source, "block", None)
    if block is None:
        return None
    if isinstance(block, bool) or not isinstance(block, int | np.integer) or block < 1:
        raise ValueError(f"source.block must be an integer of at least 1, got {block!r}.")
    return int(block)


def reads_anywhere(source: Any) -> bool:
    """Return whether the blocks of a source can be read in any order."""
    return bool(getattr(source, "random_access", True))


def sample_rows(source: Any, n: int, most: int) -> Ints:
    """Return up to `most` of the rows 0 to n - 1, ascending, that are cheap to read.

    The rows are evenly spaced. If the source has blocks, the rows come from a few of them: evenly
    spaced ones, or the first ones if blocks can only be read in order.
    """
    block = block_of(source)
    if block is None or n <= most:
        return spread_rows(n, most)
    blocks = spread_rows(-(-n // block), SAMPLED_BLOCKS)
    if not reads_anywhere(source):
        blocks = np.arange(len(blocks), dtype=np.int64)
    each = -(-most // len(blocks))
    parts = [k * block + spread_rows(min(block, n - k * block), each) for k in blocks.tolist()]
    return np.concatenate(parts)
