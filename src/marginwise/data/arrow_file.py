"""Parquet and Arrow files, and tables in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from marginwise._arrays import Ints
from marginwise.data.columns import need_arrow
from marginwise.data.errors import DataError
from marginwise.data.table_file import Block, TableFile, stamp_of

BLOCK_ROWS = 4096
BLOCK_BYTES = 1 << 23  # approximate size of a block that is a part of a row group
GROUP_BYTES = 1 << 26  # larger row groups are read in parts
BUFFER = 1 << 18  # bytes of a column to read at a time


@contextmanager
def guarded(path: Path, kind: str) -> Iterator[None]:
    """Convert the errors that pyarrow raises for a damaged file to DataError."""
    pa = need_arrow()
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the disk, not of the content
        fault = " ".join(str(error).split())
        raise DataError(
            f"{path}: the file is damaged or truncated ({fault:.200}); expected a complete {kind} "
            "file. Copy or download it again."
        ) from error


class ArrowTable(TableFile):
    """Base class of tables with typed columns, in which errors are located by row number."""

    parse = False

    def _set_names(self, name: str, columns: list[str]) -> None:
        self.name, self.head, self.columns = name, name, columns
        twice = [one for k, one in enumerate(columns) if one in columns[:k]]
        if twice or not columns:
            fault = f"several columns named {twice[0]!r}" if twice else "no columns"
            raise DataError(f"{name}: the table has {fault}; expected columns of distinct names.")
        self.default_label = columns[-1]

    def _block(self, table: Any, first: int) -> Block:
        return Block(table, lambda row: f"{self.name}: row {first + row}, ", self.name)


class MemoryTable(ArrowTable):
    """A table in memory.

    Parameters
    ----------
    table : pyarrow Table
        The table.
    """

    random_access = True
    block_rows = None

    def __init__(self, table: Any) -> None:
        self._table = table
        self._set_names("the table", list(table.column_names))

    @property
    def starts(self) -> Ints:
        """Start of the only block, and the number of rows."""
        return np.array([0, self._table.num_rows], dtype=np.int64)

    def blocks(self, first: int = 0, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Yield the table."""
        if first == 0:
            yield self.block(0, columns)

    def block(self, k: int, columns: Sequence[str] | None = None) -> Block:
        """Return the table."""
        table = self._table if columns is None else self._table.select(list(columns))
        return self._block(table, 0)

    def stamp(self) -> bytes:
        """Return a digest of the table."""
        digest = hashlib.sha256()
        for batch in self._table.to_batches(max_chunksize=1 << 16):
            digest.update(batch.serialize())
        return digest.digest()


class ParquetFile(ArrowTable):
    """A Parquet file.

    Blocks are row groups, which can be read in any order. If row groups are large, blocks are parts
    of row groups, which can only be read forwards.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with guarded(path, "Parquet"):
            meta = self._file.metadata
            groups = [meta.row_group(k) for k in range(meta.num_row_groups)]
            rows = [group.num_rows for group in groups]
            sizes = [group.total_byte_size for group in groups]
            names = list(self._file.schema_arrow.names)
        if any(count < 0 for count in rows) or sum(rows) != meta.num_rows:
            raise DataError(f"{path}: its row groups do not have the number of rows it states.")
        self._set_names(str(path), names)
        self.random_access = max(sizes, default=0) <= GROUP_BYTES
        self._groups = np.cumsum([0, *rows], dtype=np.int64)
        self.block_rows = max(1, max(rows, default=1))
        if not self.random_access:
            each = max(1, BLOCK_BYTES * max(1, sum(rows)) // max(1, sum(sizes)))
            self.block_rows = min(BLOCK_ROWS, 1 << (each.bit_length() - 1))

    @cached_property
    def _file(self) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_file"}

    @property
    def starts(self) -> Ints:
        """Index of the first row of each block, followed by the number of rows."""
        if self.random_access:
            return self._groups
        cuts = [
            np.arange(first, last, self.block_rows)
            for first, last in zip(self._groups[:-1], self._groups[1:], strict=True)
        ]
        return np.concatenate([*cuts, self._groups[-1:]]).astype(np.int64)

    def blocks(self, first: int = 0, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Yield the blocks in order, starting with block `first`."""
        starts = self.starts
        if self.random_access:
            for k in range(first, len(starts) - 1):
                yield self.block(k, columns)
            return
        group = int(np.searchsorted(self._groups, starts[first], side="right")) - 1
        for k in range(group, len(self._groups) - 1):
            for row, table in self._parts(k, columns):
                if row >= starts[first]:
                    yield self._block(table, row)

    def _parts(self, group: int, columns: Sequence[str] | None) -> Iterator[tuple[int, Any]]:
        """Yield the parts of a large row group, each with the index of its first row."""
        pa, row = need_arrow(), int(self._groups[group])
        names = None if columns is None else list(columns)
        with guarded(self.path, "Parquet"):
            batches = self._file.iter_batches(
                self.block_rows, row_groups=[group], columns=names, use_threads=False
            )
        held: list[Any] = []
        while True:
            with guarded(self.path, "Parquet"):
                batch = next(batches, None)
            if batch is not None:
                held.append(batch)
            size = sum(part.num_rows for part in held)
            while size >= self.block_rows or (batch is None and size):
                table = pa.Table.from_batches(held)
                part = self._checked(table.slice(0, self.block_rows))
                yield row, part
                held = table.slice(self.block_rows).to_batches()
                row, size = row + part.num_rows, size - part.num_rows
            if batch is None:
                return

    def block(self, k: int, columns: Sequence[str] | None = None) -> Block:
        """Return the rows of one row group."""
        names = None if columns is None else list(columns)
        with guarded(self.path, "Parquet"):
            table = self._file.read_row_group(k, columns=names, use_threads=False)
        if table.num_rows != self._groups[k + 1] - self._groups[k]:
            raise DataError(f"{self.path}: row group {k} does not have the rows it states.")
        return self._block(self._checked(table), int(self._groups[k]))

    def _checked(self, table: Any) -> Any:
        with guarded(self.path, "Parquet"):
            table.validate(full=True)
        return table

    def stamp(self) -> bytes:
        """Return a digest of the size and of samples of the content."""
        return stamp_of(self.path)


class ArrowFile(ArrowTable):
    """An Arrow file (Feather), or a file of Arrow's streaming format.

    Parameters
    ----------
    path : Path
        The file.
    streamed : bool, default=False
        Whether the file has the streaming format, which can only be read forwards.
    """

    def __init__(self, path: Path, streamed: bool = False) -> None:
        self.path, self._streamed = path, streamed
        self.random_access = not streamed
        self._starts: Ints | None = None
        self.block_rows = BLOCK_ROWS
        with guarded(path, "Arrow"):
            reader = self._open()
            names = list(reader.schema.names)
        self._set_names(str(path), names)
        if not streamed:
            with guarded(path, "Arrow"):
                least = min(reader.schema, key=_width).name
                reader = self._open([least])  # of which less is read than of the others
                sizes = [reader.get_batch(k).num_rows for k in range(reader.num_record_batches)]
            self._starts = np.cumsum([0, *sizes], dtype=np.int64)
            self.block_rows = max(1, max(sizes, default=1))

    def _open(self, columns: Sequence[str] | None = None) -> Any:
        """Return a reader of record batches with all or some columns.

        The file is read, not memory-mapped, so that truncation raises an error instead of SIGBUS.
        """
        pa = need_arrow()
        from pyarrow import ipc

        some = [] if columns is None else [self.columns.index(name) for name in columns]
        file = pa.OSFile(str(self.path))
        options = ipc.IpcReadOptions(included_fields=some)
        return (ipc.open_stream if self._streamed else ipc.open_file)(file, options=options)

    @property
    def starts(self) -> Ints | None:
        """Index of the first row of each block, followed by the number of rows.

        None for a stream that was not read yet.
        """
        return self._starts

    def blocks(self, first: int = 0, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Yield the blocks in order, starting with block `first`."""
        if not self._streamed:
            assert self._starts is not None
            for k in range(first, len(self._starts) - 1):
                yield self.block(k, columns)
            return
        with guarded(self.path, "Arrow"):
            reader = self._open(columns)
        sizes: list[int] = []
        while True:
            with guarded(self.path, "Arrow"):
                batch = next(reader, None)
            if batch is None:
                break
            if len(sizes) >= first:
                yield self._block(self._checked(batch, columns), sum(sizes))
            sizes.append(batch.num_rows)
        self._starts = np.cumsum([0, *sizes], dtype=np.int64)

    def block(self, k: int, columns: Sequence[str] | None = None) -> Block:
        """Return one record batch."""
        assert self._starts is not None
        with guarded(self.path, "Arrow"):
            batch = self._open(columns).get_batch(k)
        return self._block(self._checked(batch, columns), int(self._starts[k]))

    def _checked(self, batch: Any, columns: Sequence[str] | None) -> Any:
        with guarded(self.path, "Arrow"):
            table = need_arrow().Table.from_batches([batch])
            table = table if columns is None else table.select(list(columns))
            table.validate(full=True)
        return table

    def stamp(self) -> bytes:
        """Return a digest of the size and of samples of the content."""
        return stamp_of(self.path)


def _width(field: Any) -> int:
    """Return the size of a value in bits, or a large number if values differ in size."""
    try:
        return int(field.type.bit_width)
    except ValueError:
        return 1 << 16
