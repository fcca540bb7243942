"""Text files, which are read in blocks of whole rows."""

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
BLOCK_BYTES = 1 << 23  # approximate size of a block of long rows
PIECE = 1 << 20  # bytes to read at a time
LONGEST = 1 << 26  # maximum size of a row
NEWLINE, RETURN, QUOTE = 10, 13, 34


@dataclass
class RawBlock:
    """Bytes of whole rows of a file.

    Parameters
    ----------
    data : bytes
        The rows.
    offset : int
        Offset of the rows in the (decompressed) file.
    line : int
        Number of the first line, starting at 1.
    rows : int
        Number of rows, without empty lines.
    """

    data: bytes
    offset: int
    line: int
    rows: int


class RowCutter:
    """Splitter of bytes into rows.

    Parameters
    ----------
    delimiter : bytes or None
        Delimiter of values. Values may be quoted, and quoted values may contain newlines. None if
        the format has no quotes.
    """

    def __init__(self, delimiter: bytes | None) -> None:
        self._quoted = None
        if delimiter is not None:
            self._before = np.frombuffer(b'\r\n"' + delimiter, dtype=np.uint8)
            start = b"(?:^|[\r\n" + re.escape(delimiter) + b'])(")'
            self._quoted = re.compile(start + b'[^"]*(?:""[^"]*)*("|\\Z)')

    def ends(self, data: bytes) -> Ints:
        """Return the offsets after the newline of each row; an incomplete last row has none."""
        codes = np.frombuffer(data, dtype=np.uint8)
        ends = np.flatnonzero(codes == NEWLINE)
        ends = ends[np.searchsorted(self._quotes(data), ends) % 2 == 0]
        starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]
        lengths = ends - starts
        empty = (lengths == 0) | ((lengths == 1) & (codes[starts] == RETURN))
        return np.asarray(ends[~empty] + 1, dtype=np.int64)

    def open_quote(self, data: bytes) -> int | None:
        """Return the offset of a quoted value without a closing quote, or None."""
        quotes = self._quotes(data)
        return int(quotes[-1]) if len(quotes) % 2 else None

    def _quotes(self, data: bytes) -> Ints:
        """Return the offsets of opening and closing quotes, which alternate.

        A quote in the middle of an unquoted value is an ordinary character.
        """
        if self._quoted is None or b'"' not in data:
            return np.empty(0, dtype=np.int64)
        codes = np.frombuffer(data, dtype=np.uint8)
        quotes = np.flatnonzero(codes == QUOTE).astype(np.int64)
        first = quotes[::2]  # each opens a value, or is the second quote of a pair within one
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
    """Text file with one row per line.

    Parameters
    ----------
    path : Path
        The file, plain or compressed.
    delimiter : bytes or None
        Delimiter of values that may be quoted; None if the format has no quotes.
    skip : int, default=0
        Number of bytes before the first row.
    line : int, default=1
        Line number of the first row.
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
        """Number of rows of a block: 4096, or fewer if rows are long."""
        with open_bytes(self.path) as file:
            self._pass(file, self._skip)
            head = read_some(file, PIECE, self.path)
        rows = max(1, len(self._cutter.ends(head)))
        most = BLOCK_BYTES * rows // max(1, len(head))
        return max(1, min(BLOCK_ROWS, 1 << max(0, most.bit_length() - 1)))

    @property
    def starts(self) -> Ints | None:
        """Index of the first row of each block, followed by the number of rows.

        None before the file was read once.
        """
        if not self._complete:
            return None
        return np.cumsum([0, *(rows for *_, rows in self._index)], dtype=np.int64)

    def blocks(self, first: int = 0, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Yield the blocks in order, starting with block `first`."""
        if self._complete and self.random_access:
            for k in range(first, len(self._index)):
                yield self.block(k, columns)
            return
        for k, raw in enumerate(self._raw_blocks()):
            if not self._complete:  # another thread may have stored the same entry
                self._index[k : k + 1] = [(raw.offset, len(raw.data), raw.line, raw.rows)]
            if k >= first:
                yield self._block(raw, columns)
        self._complete = True

    def block(self, k: int, columns: Sequence[str] | None = None) -> Block:
        """Return one block of an uncompressed file that was read before."""
        offset, size, line, rows = self._index[k]
        with self.path.open("rb") as file:
            file.seek(offset)
            data = file.read(size)
        if len(data) < size:
            raise DataError(f"{self.path}:{line}: the file became shorter while it was read.")
        return self._block(RawBlock(data, offset, line, rows), columns)

    # -- cutting -------------------------------------------------------------------------------

    def _raw_blocks(self) -> Iterator[RawBlock]:
        """Yield the bytes of each block."""
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
        """Yield the rows after the last complete block, if any."""
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
        """Skip the bytes before the first row."""
        if size:
            read_some(file, size, self.path)

    def _line_of(self, raw: RawBlock, row: int) -> int:
        """Return the line number of a row of a block."""
        ends = [0, *self._cutter.ends(raw.data).tolist()]
        start = ends[min(row, len(ends) - 1)]
        blank = len(raw.data[start:]) - len(raw.data[start:].lstrip(b"\r\n"))
        return raw.line + raw.data.count(b"\n", 0, start + blank)

    def stamp(self) -> bytes:
        """Return a digest of the size and of samples of the content."""
        return stamp_of(self.path)

    def _block(self, raw: RawBlock, columns: Sequence[str] | None) -> Block:
        """Return the values of a block."""

        def place(row: int) -> str:
            return f"{self.path}:{self._line_of(raw, row)}: "

        return Block(self._parsed(raw, columns), place, self.head)

    def _parsed(self, raw: RawBlock, columns: Sequence[str] | None = None) -> Any:
        """Return the values of a block as a table."""
        raise NotImplementedError
