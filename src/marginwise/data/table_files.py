"""Concatenation of table files of one format."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marginwise._arrays import Ints
from marginwise.data._bytes import FileIdentity
from marginwise.data.arrow_file import ArrowFile, MemoryTable, ParquetFile
from marginwise.data.columns import as_table
from marginwise.data.csv_file import CsvFile
from marginwise.data.errors import DataError
from marginwise.data.json_lines import JsonLinesFile
from marginwise.data.sniff import kind_of
from marginwise.data.table_file import Block, TableFile

HELD_BYTES = 1 << 27  # limits of the cache of recently used blocks
HELD_BLOCKS = 8


class TableFiles:
    """Concatenation of tables of one format with the same columns.

    Parameters
    ----------
    files : list of TableFile
        The tables.
    """

    def __init__(self, files: list[TableFile]) -> None:
        self.files, self.first = files, files[0]
        self.random_access = all(file.random_access for file in files)
        self._check_columns()
        self._starts: Ints | None = None
        self._begin()

    def _begin(self) -> None:
        self._held: OrderedDict[int, Block] = OrderedDict()
        self._reading: tuple[int, Iterator[Block]] | None = None  # position of sequential reading
        self._columns: list[str] | None = None  # columns of the cached blocks
        self.lock = threading.Lock()  # held while a block is fetched, or all rows are scanned

    def __getstate__(self) -> dict[str, Any]:
        kept = ("files", "first", "random_access", "_starts")
        return {name: value for name, value in vars(self).items() if name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def _check_columns(self) -> None:
        """Raise unless all tables have the same format and the same columns."""
        first = self.first
        for other in self.files[1:]:
            if type(other) is not type(first):
                raise DataError(
                    f"{other.head}: expected a file of the same kind as {first.name}. Open files "
                    "of different kinds one by one."
                )
            different = sorted(set(other.columns) ^ set(first.columns))
            if different:
                name = different[0]
                has, lacks = (other, first) if name in other.columns else (first, other)
                raise DataError(
                    f"{other.head}: expected the columns of {first.name}; {has.name} has the "
                    f"column {name!r}, and {lacks.name} does not."
                )

    @property
    def starts(self) -> Ints | None:
        """Index of the first row of each block, followed by the number of rows.

        None if they are not known yet.
        """
        if self._starts is None:
            found = [file.starts for file in self.files]
            known = [starts for starts in found if starts is not None]
            if len(known) == len(found):
                sizes = np.concatenate([np.diff(starts) for starts in known])
                self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return self._starts

    def blocks(self, columns: Sequence[str]) -> Iterator[Block]:
        """Yield all blocks in order, with the given columns."""
        for file in self.files:
            blocks = file.blocks(columns=columns)
            while True:
                with file.unchanged():
                    block = next(blocks, None)
                if block is None:
                    break
                yield block

    def fetch(self, k: int, columns: list[str]) -> Block:
        """Return one block, with the given columns."""
        with self.lock:
            if columns != self._columns:
                self._columns, self._reading = columns, None
                self._held.clear()
            file, own = self._place(k)
            with file.unchanged():
                if k not in self._held:
                    read = self.random_access
                    self._hold(k, file.block(own, columns) if read else self._read_forwards(k))
                self._held.move_to_end(k)
                return self._held[k]

    def _hold(self, k: int, block: Block) -> None:
        """Add a block to the cache, and evict the least recently used blocks."""
        self._held[k] = block
        while len(self._held) > 1 and (
            len(self._held) > HELD_BLOCKS
            or sum(held.table.nbytes for held in self._held.values()) > HELD_BYTES
        ):
            self._held.popitem(last=False)

    def _place(self, k: int) -> tuple[TableFile, int]:
        """Return the file of a block, and the number of the block within it."""
        for file in self.files:
            assert file.starts is not None
            if k < len(file.starts) - 1:
                return file, k
            k -= len(file.starts) - 1
        raise IndexError(k)

    def _read_forwards(self, k: int) -> Block:
        """Read forwards to a block, from the beginning if it was already passed."""
        if self._reading is None or self._reading[0] > k:
            assert self._columns is not None
            self._reading = 0, self.blocks(self._columns)
        at, blocks = self._reading
        self._reading = None  # if an error occurs, the next call starts again
        for block in blocks:
            at += 1
            if at > k:
                self._reading = at, blocks
                return block
        raise DataError(f"{self.files[-1].head}: the file became shorter while it was read.")


def open_tables(tables: Any, missing: Collection[str] = (), header: bool = True) -> TableFiles:
    """Open one or several tables.

    Parameters
    ----------
    tables : path, list of paths or table
        Files, or one table in memory.
    missing : collection of str, default=()
        Values of a CSV file, and strings among numbers of JSON lines, to treat as missing.
    header : bool, default=True
        Whether the first line of a CSV file contains the column names.
    """
    if isinstance(tables, str | os.PathLike):
        tables = [tables]
    if not isinstance(tables, list | tuple):
        return TableFiles([MemoryTable(as_table(tables))])
    if not tables:
        raise ValueError("there are no files to read; expected at least one.")
    return TableFiles([_open_table(Path(path), missing, header) for path in tables])


def _open_table(path: Path, missing: Collection[str], header: bool) -> TableFile:
    identity = FileIdentity(path)
    file = _table_of(path, missing, header)
    file.identity = identity
    return file


def _table_of(path: Path, missing: Collection[str], header: bool) -> TableFile:
    kind = kind_of(path)
    if kind == "csv":
        return CsvFile(path, missing, header)
    if kind == "json":
        return JsonLinesFile(path, missing)
    if kind == "parquet":
        return ParquetFile(path)
    if kind in ("arrow", "arrow stream"):
        return ArrowFile(path, streamed=kind == "arrow stream")
    raise DataError(
        f"{path}: the file is {kind}; expected a table: CSV, JSON lines, Parquet or Arrow. Open it "
        "with open_source."
    )
