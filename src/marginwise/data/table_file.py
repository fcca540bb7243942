"""Interface of the table files that TableSource reads."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginwise._arrays import Ints
from marginwise.data._bytes import FileIdentity

SAMPLED = 1 << 16  # bytes at the start, middle and end of a file that enter its digest


@dataclass
class Block:
    """Consecutive rows of a table.

    Parameters
    ----------
    table : pyarrow Table
        The rows.
    place : callable
        Returns the location of a row, with which messages begin.
    head : str
        Beginning of messages about the whole file.
    """

    table: Any
    place: Callable[[int], str]
    head: str


class TableFile:
    """Table in a file or in memory, which is read in blocks of rows."""

    name: str
    head: str  # beginning of messages about the whole file
    columns: list[str]
    random_access: bool  # whether blocks can be read in any order
    parse: bool  # whether values are strings that are parsed as other types
    block_rows: int | None  # usual number of rows of a block; None if rows are stored one by one
    default_label: str  # column of the labels if the user names none
    identity: FileIdentity | None = None  # of the file when it was opened; None in memory

    def unchanged(self) -> contextlib.AbstractContextManager[None]:
        """Read within this context; raise a DataError if the file was changed."""
        return contextlib.nullcontext() if self.identity is None else self.identity.unchanged()

    @property
    def starts(self) -> Ints | None:
        """Index of the first row of each block, followed by the number of rows.

        None if they are not known yet.
        """
        raise NotImplementedError

    def blocks(self, first: int = 0, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Yield the blocks in order, starting with block `first`, with all or some columns."""
        raise NotImplementedError

    def block(self, k: int, columns: Sequence[str] | None = None) -> Block:
        """Return one block, if the file has random access."""
        raise NotImplementedError

    def stamp(self) -> bytes:
        """Return a digest of the content, or of its size and samples."""
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
