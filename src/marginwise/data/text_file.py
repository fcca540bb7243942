"""Text files of rows, cut into blocks of whole rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from marginwise._arrays import Ints
from marginwise.data.errors import DataError
from marginwise.data.sniff import is_compressed, open_bytes, read_some
from marginwise.data.table_file import Block, TableFile, stamp_of

BLOCK_ROWS = 4096
BLOCK_BYTES = 1 << 23  # of a block, if rows are long
PIECE = 1 << 20  # bytes that are read at a time
LONGEST = 1 << 26  # bytes of a row
NEWLINE, RETURN, QUOTE = 10, 13, 34


@dataclass
class RawBlock:
    """Bytes of whole rows of a file.

    Parameters
    ----------
    data : bytes
        The rows.
    offset : int
        Where they begin in the (decompressed) file.
    line : int
        The number of their first line, from 1.
    rows : int
        How many rows there are; empty lines are not counted.
    """

    data: bytes
    offset: int
    line: int
    rows: int


class RowCutter:
    """Finds the rows in bytes.

    Parameters
    ----------
    delimiter : bytes or None
        What is between values, where values may be quoted and then contain newlines.
    """

    def __init__(self, delimiter: bytes | None) -> None:
        self._quoted = None
        if delimiter is not None:
            self._before = np.frombuffer(b'\r\n"' + delimiter, dtype=np.uint8)
            start = b"(?:^|[\r\n" + re.escape(delimiter) + b'])(")'
            self._quoted = re.compile(start + b'[^"]*(?:""[^"]*)*("|\\Z)')

    def ends(self, data: bytes) -> Ints:
        """Return where rows end, the newline included; the last one may not be complete."""
        codes = np.frombuffer(data, dtype=np.uint8)
        ends = np.flatnonzero(codes == NEWLINE)
        ends = ends[np.searchsorted(self._quotes(data), ends) % 2 == 0]
        starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]
        lengths = ends - starts
        empty = (lengths == 0) | ((lengths == 1) & (codes[starts] == RETURN))
        return np.asarray(ends[~empty] + 1, dtype=np.int64)

    def open_quote(self, data: bytes) -> int | None:
        """Return where a quoted value begins that does not end."""
        quotes = self._quotes(data)
        return int(quotes[-1]) if len(quotes) % 2 else None

    def _quotes(self, data: bytes) -> Ints:
        """Return the places of quotes that begin and end quoted values, alternately.

        A quote in the middle of a value that is not quoted is an ordinary character.
        """
        if self._quoted is None or b'"' not in data:
            return np.empty(0, dtype=np.int64)
        codes = np.frombuffer(data, dtype=np.uint8)
        quotes = np.flatnonzero(codes == QUOTE).astype(np.int64)
        first = quotes[::2]  # each begins a value, or is the second of two within a value
        before = codes[first[first > 0] - 1]
        if np.isin(before, self._before).all():
            return quotes
        found = [
            match.start(group)
            for match in self._quoted.finditer(data)
            for group in ((1, 2) if match[2] else (1,))
        ]
        return np.array(found, dtype=np.int64)


class TextFile(TableFile):
    """A text file with a row per line.

    Parameters
    ----------
    path : Path
        The file, plain or compressed.
    delimiter : bytes or None
        What is between values, where they may be quoted.
    skip : int, default=0
        Bytes before the first row.
    line : int, default=1
        The number of the first line of rows.
    """

    parse = True

    def __init__(
        self, path: Path, delimiter: bytes | None, *, skip: int = 0, line: int = 1
    ) -> None:
        self.path, self.name, self.head = path, str(path), f"{path}:1"
        self.random_access = not is_compressed(path)
        self._cutter = RowCutter(delimiter)
        self._skip, self._line = skip, line
        self._index: list[tuple[int, int, int, int]] = []  # offset, bytes, line, rows
        self._complete = False

    @cached_property
    def block_rows(self) -> int:  # type: ignore[override]
        """Rows of a block: 4096, or fewer if they are long."""
        with open_bytes(self.path) as file:
            self._pass(file, self._skip)
            head = read_some(file, PIECE, self.path)
        rows = max(1, len(self._cutter.ends(head)))
        most = BLOCK_BYTES * rows // max(1, len(head))
        return max(1, min(BLOCK_ROWS, 1 << max(0, most.bit_length() - 1)))

    @property
    def starts(self) -> Ints | None:
        """First rows of the blocks, and the number of rows; None before the file was read."""
        if not self._complete:
            return None
        return np.cumsum([0, *(rows for *_, rows in self._index)], dtype=np.int64)

    def blocks(self, first: int = 0, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Give the blocks in order, from one of them."""
        if self._complete and self.random_access:
            for k in range(first, len(self._index)):
                yield self.block(k, columns)
            return
        for k, raw in enumerate(self._raw_blocks()):
            if not self._complete and k == len(self._index):
                self._index.append((raw.offset, len(raw.data), raw.line, raw.rows))
            if k >= first:
                yield self._block(raw, columns)
        self._complete = True

    def block(self, k: int, columns: Sequence[str] | None = None) -> Block:
        """Return one block of a file that can be read anywhere and was read before."""
        offset, size, line, rows = self._index[k]
        with self.path.open("rb") as file:
            file.seek(offset)
            data = file.read(size)
        if len(data) < size:
            raise DataError(f"{self.path}:{line}: the file became shorter while it was read.")
        return self._block(RawBlock(data, offset, line, rows), columns)

    # -- cutting -------------------------------------------------------------------------------

    def _raw_blocks(self) -> Iterator[RawBlock]:
        """Give the bytes of blocks."""
        with open_bytes(self.path) as file:
            self._pass(file, self._skip)
            offset, line, rest, piece = self._skip, self._line, b"", PIECE
            while data := read_some(file, piece, self.path, line + rest.count(b"\n")):
                rest += data
                ends = self._cutter.ends(rest)
                begin = 0
                for last in ends[self.block_rows - 1 :: self.block_rows].tolist():
                    raw = RawBlock(rest[begin:last], offset, line, self.block_rows)
                    yield raw
                    offset, line = offset + len(raw.data), line + raw.data.count(b"\n")
                    begin, piece = last, max(PIECE, len(raw.data))
                rest = rest[begin:]
                if len(rest) > LONGEST and len(self._cutter.ends(rest)) == 0:
                    self._refuse_row(rest, line)
            yield from self._last(rest, offset, line)

    def _last(self, rest: bytes, offset: int, line: int) -> Iterator[RawBlock]:
        """Give what follows the last complete block."""
        start = self._cutter.open_quote(rest)
        if start is not None:
            self._refuse_row(rest, line)
        ends = self._cutter.ends(rest)
        open_row = rest[int(ends[-1]) if len(ends) else 0 :].strip(b"\r\n")
        rows = len(ends) + bool(open_row)
        if rows:
            yield RawBlock(rest, offset, line, rows)

    def _refuse_row(self, rest: bytes, line: int) -> None:
        start = self._cutter.open_quote(rest)
        if start is None:
            raise DataError(
                f"{self.path}:{line}: the line is longer than {LONGEST} bytes; expected rows of "
                "values, one per line."
            )
        begins = line + rest[:start].count(b"\n")
        raise DataError(
            f"{self.path}:{begins}: a quoted value begins in this line and does not end; expected "
            "a closing quote. Add it, or double quotes that are part of a value."
        )

    def _pass(self, file: BinaryIO, size: int) -> None:
        """Read and drop the bytes before the first row."""
        if size:
            read_some(file, size, self.path)

    def _line_of(self, raw: RawBlock, row: int) -> int:
        """Return the line of a row of a block."""
        ends = [0, *self._cutter.ends(raw.data).tolist()]
        start = ends[min(row, len(ends) - 1)]
        blank = len(raw.data[start:]) - len(raw.data[start:].lstrip(b"\r\n"))
        return raw.line + raw.data.count(b"\n", 0, start + blank)

    def stamp(self) -> bytes:
        """Return bytes that differ if the content does."""
        return stamp_of(self.path)

    def _block(self, raw: RawBlock, columns: Sequence[str] | None) -> Block:
        """Return the values of a block."""

        def place(row: int) -> str:
            return f"{self.path}:{self._line_of(raw, row)}: "

        return Block(self._parsed(raw, columns), place, self.head)

    def _parsed(self, raw: RawBlock, columns: Sequence[str] | None = None) -> Any:
        """Return the values of a block as a table."""
        raise NotImplementedError
