"""Files of tables: what a TableSource reads from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginwise._arrays import Ints

SAMPLED = 1 << 16  # bytes at the start, in the middle and at the end of a file that identify it


@dataclass
class Block:
    """Consecutive rows of a table.

    Parameters
    ----------
    table : pyarrow Table
        The rows.
    place : callable
        Returns where a row is, as the start of a message.
    head : str
        What messages about the whole file begin with.
    """

    table: Any
    place: Callable[[int], str]
    head: str


class TableFile:
    """A table in blocks of rows, in a file or in memory."""

    name: str
    head: str  # what messages about the whole file begin with
    columns: list[str]
    random_access: bool  # whether any block can be read at any time
    parse: bool  # whether values are strings that may spell something else
    block_rows: int | None  # usual number of rows of a block; None if rows are stored one by one
    default_label: str  # the column that is the label if none is named

    @property
    def starts(self) -> Ints | None:
        """First rows of the blocks, and the number of rows; None if they are not known yet."""
        raise NotImplementedError

    def blocks(self, first: int = 0, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Give the blocks in order, from one of them; all columns, or some."""
        raise NotImplementedError

    def block(self, k: int, columns: Sequence[str] | None = None) -> Block:
        """Return one block, if the file has random access."""
        raise NotImplementedError

    def stamp(self) -> bytes:
        """Return bytes that differ if the content does."""
        raise NotImplementedError


def stamp_of(path: Path) -> bytes:
    """Return a digest of the size of a file and of samples of its content."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for place in (0, size // 2, max(0, size - SAMPLED)):
            file.seek(place)
            digest.update(file.read(SAMPLED))
    return digest.digest()
