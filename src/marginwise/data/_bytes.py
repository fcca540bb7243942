"""Detection of changes to a file, and readers of plain, gzip and Zstandard files.

Files are read, not memory-mapped: this is equally fast, and a file that another program truncates
raises an error instead of SIGBUS. The compression of a file is recognised by its first bytes, and
lines are returned in pieces of whole lines.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import os
import stat
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from marginwise._extras import install
from marginwise.data.errors import DataError

Bytes = NDArray[np.uint8]
Kind = Literal["plain", "gzip", "zstd"]

SLICE = 2**19  # bytes to read at a time: fits into a processor's cache
PIECE = 2**16  # bytes to decompress at a time
LONGEST_LINE = 2**30
_MAGIC: dict[bytes, Kind] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_NAMES = {"gzip": "gzip", "zstd": "Zstandard"}


def kind_of(head: bytes) -> Kind:
    """Return the compression of a file that begins with the given bytes."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "plain")


def kind_of_file(path: str) -> Kind:
    """Return the compression of a file."""
    with open(path, "rb", buffering=0) as file:
        return kind_of(file.read(4))


def _open_zstd(path: str, file: BinaryIO) -> Any:
    try:  # part of Python since 3.14
        return importlib.import_module("compression.zstd").ZstdFile(file)
    except ImportError:
        pass
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            f"{path} is compressed with Zstandard, which needs pyarrow or Python 3.14: "
            f"run {install('tables')}, or decompress the file."
        ) from error
    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


class FileIdentity:
    """Device, inode, size and modification time of a file when it was opened.

    After unpickling, only the size must be the same, because the file may be a copy on another
    machine; the rest is recorded when it is first read.

    Parameters
    ----------
    path
        The file. Pipes and other files that are not regular have no identity.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._recorded = self._current()
        self._copied = False  # whether only the size is known

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_copied": True}

    def _current(self) -> tuple[int, ...]:
        now = os.stat(self._path)
        if not stat.S_ISREG(now.st_mode):
            return ()
        return now.st_size, now.st_dev, now.st_ino, now.st_mtime_ns

    @property
    def size(self) -> int:
        """Size in bytes, or 0 if it is unknown."""
        return sum(self._recorded[:1])

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Read within this context; raise a DataError if the file is not the one that was opened.

        The file is examined after reading, so that a change during the read is noticed as well, and
        replaces the errors that it caused.
        """
        if self._copied:
            now = self._current()
            if now[:1] != self._recorded[:1]:
                self._check()
            self._recorded, self._copied = now, False
        try:
            yield
        except Exception:
            self._check()
            raise
        self._check()

    def _check(self) -> None:
        was = self._recorded
        try:
            now = self._current()
        except FileNotFoundError:
            now = ()
        if not was or was == now:
            return
        raise DataError(
            f"{self._path}: the file has changed since it was opened: {_difference(was, now)}; "
            "expected the same content until all rows are read. Read a copy that no program "
            "changes, or open the file as a new source."
        )


def _difference(was: tuple[int, ...], now: tuple[int, ...]) -> str:
    """Return what differs between the identities of a file, of which the second may be empty."""
    if not now:
        return "it no longer exists"
    if was[0] != now[0]:
        return f"its size was {was[0]:,} bytes and is {now[0]:,} bytes"
    if was[1:3] != now[1:3]:
        return "another file has replaced it"
    seconds = (now[3] - was[3]) / 1e9
    return f"its size is the same, but its modification time differs by {seconds:+,.3g} s"


class LineReader:
    """Reader of whole lines, as many at a time as fit into a buffer.

    Parameters
    ----------
    path
        The file.
    offset
        Offset of the first byte to read, for plain files.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 (closed by close)
        try:
            if offset:
                self._file.seek(offset)
            self.kind: Kind = "plain" if offset else kind_of(self._file.peek(4))
            self._stream = self._decoded(path)
        except BaseException:
            self._file.close()
            raise
        self._buffer = bytearray(SLICE)
        self._begin = self._end = 0  # bytes read but not yet returned
        self._failure: str | None = None

    def _decoded(self, path: str) -> Any:
        if self.kind == "gzip":
            return gzip.GzipFile(fileobj=self._file, mode="rb")
        return _open_zstd(path, self._file) if self.kind == "zstd" else self._file

    def __iter__(self) -> Iterator[Bytes]:
        while len(text := self.read()):
            yield text

    def read(self) -> Bytes:
        """Return the next whole lines, which stay valid until the next call; empty at the end.

        Only the last line of a file may lack its line break. Raises a ValueError if the compressed
        data are damaged or a line is too long.
        """
        self._move_to_front()
        while read := self._fill():
            end = self._buffer.rfind(b"\n", self._end - read, self._end) + 1
            if end:
                break
        else:
            end = self._end
        self._begin = end
        return np.frombuffer(self._buffer, dtype=np.uint8)[:end]

    def _move_to_front(self) -> None:
        kept = self._end - self._begin
        self._buffer[:kept] = self._buffer[self._begin : self._end]
        self._begin, self._end = 0, kept

    def _fill(self) -> int:
        """Fill the buffer, which grows if a line does not fit; return the number of bytes read.

        An error is raised by the next call if bytes were read before it occurred.
        """
        if self._end == len(self._buffer):
            self._grow()
        before = self._end
        while self._failure is None and self._end < len(self._buffer):
            try:
                read = self._read_into(memoryview(self._buffer)[self._end :])
            except ValueError as error:
                self._failure = str(error)  # storing the exception would create a reference cycle
                break
            if not read:
                break
            self._end += read
        if self._failure is not None and self._end == before:
            raise ValueError(self._failure)
        return self._end - before

    def _grow(self) -> None:
        if self._end >= LONGEST_LINE:
            raise ValueError(
                f"the line is longer than {LONGEST_LINE:,} bytes; expected text with one row per "
                "line. Check that this is a text file"
            )
        # A copy, because the caller may still hold a view of the old buffer.
        self._buffer = self._buffer + bytes(len(self._buffer))

    def _read_into(self, buffer: memoryview) -> int:
        """Read once; data decompressed before a damaged part are still returned."""
        stream = self._stream
        try:
            if self.kind == "zstd":
                return int(stream.readinto(buffer[:PIECE]))
            return int(stream.readinto1(buffer))
        except (EOFError, zlib.error) as error:
            damage: Exception = error
        except OSError as error:  # without errno, the data are damaged, not the disk
            if error.errno is not None or self.kind == "plain":
                raise
            damage = error
        except Exception as error:
            if type(error).__name__ != "ZstdError":
                raise
            damage = error
        raise ValueError(
            f"the {_NAMES[self.kind]} data end too early or are damaged ({damage}); expected a "
            "complete file. Copy or download it again"
        ) from damage

    def close(self) -> None:
        """Close the file."""
        try:
            self._stream.close()
        finally:
            self._file.close()

    def __enter__(self) -> LineReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
