"""Cursors in svmlight files, which read rows forwards."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import numpy as np

from marginwise._core import SvmlightParser
from marginwise.data._bytes import Bytes, FileIdentity, LineReader
from marginwise.data._svmlight_index import BLOCK, FileIndex, SvmlightIndex, errors_at
from marginwise.data.errors import DataError


class Cursor:
    """Position in a file: the next row, and text that was read but not yet parsed.

    Parameters
    ----------
    path
        The file.
    number
        Number of the file within the source.
    index
        Result of the first pass over the file.
    block
        First block to read. Compressed files are always read from the first block.
    """

    def __init__(self, path: str, number: int, index: FileIndex, block: int) -> None:
        if os.stat(path).st_size != index.size:
            raise DataError(
                f"{path}: the file has changed since its rows were counted: {index.size:,} bytes "
                f"became {os.stat(path).st_size:,}. Open it as a new source."
            )
        self.path, self.number = path, number
        self.row = block * BLOCK
        self._line = int(index.lines[block]) if block else 1
        self._lines = LineReader(path, int(index.offsets[block]) if block else 0)
        self._text: Bytes = np.empty(0, dtype=np.uint8)
        self._position = 0

    def skip(self, parser: SvmlightParser, row: int) -> None:
        """Move forwards to a row."""
        self._read(parser, row - self.row, parse=False)

    def parse(self, parser: SvmlightParser, rows: int) -> None:
        """Pass the next rows to a parser."""
        self._read(parser, rows, parse=True)

    def _read(self, parser: SvmlightParser, most: int, *, parse: bool) -> None:
        work = parser.parse if parse else parser.skip
        parser.line = self._line
        with errors_at(self.path, parser):
            while most > 0:
                if self._position == len(self._text):
                    self._text, self._position = self._lines.read(), 0
                    if not len(self._text):
                        raise ValueError(
                            "the file has fewer rows than were counted before; it was changed "
                            "meanwhile. Open it as a new source"
                        )
                self._position, done = work(self._text, self._position, most)
                self._line = parser.line
                self.row += done
                most -= done

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class Cursors:
    """Reader of rows of several files, which continues where the previous read ended.

    Several threads can read concurrently. A thread takes the idle cursor while it reads. If there
    is none, it opens the file again.

    Parameters
    ----------
    paths
        The files.
    plain
        Whether each file can be read from any block.
    index
        Result of the first pass over the files.
    identities
        Identity of each file when the source was opened.
    """

    def __init__(
        self,
        paths: Sequence[str],
        plain: Sequence[bool],
        index: SvmlightIndex,
        identities: Sequence[FileIdentity],
    ) -> None:
        self._idle: Cursor | None = None
        self._lock = threading.Lock()  # never held while rows are read
        self._paths, self._plain, self._files = paths, plain, index.files
        self._identities = identities
        self._ends = np.cumsum([file.rows for file in index.files])

    def read(self, parser: SvmlightParser, start: int, stop: int) -> None:
        """Pass rows `start` to ``stop - 1`` to a parser."""
        while start < stop:
            number = int(np.searchsorted(self._ends, start, side="right"))
            rows, end = self._files[number].rows, int(self._ends[number])
            row, count = start - (end - rows), min(stop, end) - start
            with self._identities[number].unchanged():
                cursor = self._take(number, row)
                try:
                    cursor.skip(parser, row)
                    cursor.parse(parser, count)
                except BaseException:
                    cursor.close()
                    raise
                if cursor.row < rows:
                    self._keep(cursor)
                else:
                    cursor.close()
            start += count

    def _take(self, number: int, row: int) -> Cursor:
        """Return a cursor at or before `row` of a file: the idle one if it is nearer."""
        block = row // BLOCK if self._plain[number] else 0
        with self._lock:
            cursor, self._idle = self._idle, None
        if cursor is not None:
            if cursor.number == number and block * BLOCK <= cursor.row <= row:
                return cursor
            cursor.close()
        return Cursor(self._paths[number], number, self._files[number], block)

    def _keep(self, cursor: Cursor | None) -> None:
        with self._lock:
            cursor, self._idle = self._idle, cursor
        if cursor is not None:
            cursor.close()

    def close(self) -> None:
        """Close the open file, if any."""
        self._keep(None)

    def __del__(self) -> None:
        if self._idle is not None:
            self._idle.close()
