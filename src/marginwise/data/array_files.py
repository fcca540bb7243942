"""Files of arrays: .npy and .npz."""

from __future__ import annotations

import contextlib
import copy
import errno
import io
import lzma
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Ints
from marginwise.data._bytes import FileIdentity
from marginwise.data.errors import DataError

PREFIXES = ("X", "X_train")
PIECE = 1 << 20  # bytes to read at a time: fits into a processor's cache
GAP = 1 << 14  # bytes that are read faster than by another call
PARTS = ("data", "indices", "indptr", "shape")
# Errors that NumPy and zipfile raise for a damaged file; OSError with EINVAL is an invalid seek.
DAMAGE = (
    *(ValueError, TypeError, KeyError, IndexError, EOFError, OSError, SyntaxError, MemoryError),
    *(OverflowError, NotImplementedError, RuntimeError, RecursionError, struct.error),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError),
)


@dataclass(frozen=True)
class Layout:
    """Where and how an array is stored in a file."""

    offset: int
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def end(self) -> int:
        """Offset of the first byte after the array."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


class ArrayFile:
    """An uncompressed array in a .npy or .npz file, whose rows are read on demand.

    Each access opens the file, so that threads can read concurrently.

    Parameters
    ----------
    path : Path
        The file.
    member : str, default=None
        Name of the member of a .npz file.
    identity : FileIdentity, default=None
        Identity of the file, if it was opened before.
    """

    def __init__(
        self, path: Path, member: str | None = None, identity: FileIdentity | None = None
    ) -> None:
        self._path, self._member = path, member
        self._identity = FileIdentity(path) if identity is None else identity
        self._layout = self._found()
        self._columns = range(self._layout.shape[1] if self.ndim == 2 else 0)
        self._verified = True  # whether the file has the layout

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_verified": False}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self._layout.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._layout.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and columns; if there are not two dimensions, the stored shape."""
        stored = self._layout.shape
        return (stored[0], len(self._columns)) if self.ndim == 2 else stored

    def __getitem__(self, key: Any) -> Any:
        """Return rows as an array, or columns: ``file[:, columns]``.

        Rows are a slice or an array of indices. A slice of columns is another ArrayFile, and a list
        of columns is an array.
        """
        if not isinstance(key, tuple):
            return self._rows(key)
        columns = key[1]
        if not isinstance(columns, slice):
            first = min(columns)
            return self[:, first : max(columns) + 1][:][:, [k - first for k in columns]]
        some = copy.copy(self)
        some._columns, some._verified = self._columns[columns], self._verified
        return some

    def _rows(self, rows: slice | Ints) -> NDArray[Any]:
        with self._identity.unchanged(), self._path.open("rb", buffering=0) as file:
            self._verify()
            if isinstance(rows, slice):
                start, stop, _ = rows.indices(self.shape[0])
                return self._consecutive(file, start, max(start, stop))
            return self._scattered(file, rows)

    def _found(self) -> Layout:
        with _guarded(self._path, ".npz" if self._member else ".npy", self._identity):
            return _layout(self._path, self._member)

    def _verify(self) -> None:
        """Raise unless the file of an unpickled source has the same layout as the original."""
        if not self._verified and self._found() != self._layout:
            raise DataError(
                f"{self._path}: the array has another shape or type than when the source was "
                "created; expected a copy of the same file. Open it as a new source."
            )
        self._verified = True

    # -- items: what is stored together, which is a row, or a value of an array in Fortran order ---

    def _consecutive(self, file: io.FileIO, start: int, stop: int) -> NDArray[Any]:
        """Return rows `start` to ``stop - 1``."""
        n, width = self._layout.shape
        if self._layout.fortran:
            out = np.empty((len(self._columns), stop - start), self.dtype)
            for k, column in enumerate(self._columns):
                self._read(file, column * n + start, out[k])
            return out.T
        out = np.empty((stop - start, len(self._columns)), self.dtype)
        if len(self._columns) == width:
            self._read(file, start, out)
            return out
        piece = self._piece()
        for first in range(start, stop, len(piece)):
            some = piece[: stop - first]
            self._read(file, first, some)
            out[first - start : first - start + len(some)] = self._selected(some)
        return out

    def _scattered(self, file: io.FileIO, ids: Ints) -> NDArray[Any]:
        """Return rows in any order."""
        places = np.argsort(ids, kind="stable")
        ids, piece = ids[places], self._piece()
        runs = self._runs(ids)
        out = np.empty((len(ids), len(self._columns)), self.dtype)
        some = self._selected(piece)
        for into, item in self._series(out):
            for a, b, first, size in runs:
                self._read(file, item + first, piece[:size])
                if b - a == 1:  # an index is faster than an array of indices
                    into[places[a]] = some[0]
                else:
                    into[places[a:b]] = some[ids[a:b] - first]
        return out

    def _series(self, out: NDArray[Any]) -> Iterator[tuple[NDArray[Any], int]]:
        """Yield parts of a result that are stored together, each with its first item."""
        if not self._layout.fortran:
            yield out, 0
            return
        for k, column in enumerate(self._columns):
            yield out[:, k], column * self._layout.shape[0]

    def _runs(self, ids: Ints) -> list[tuple[int, int, int, int]]:
        """Split ascending rows into runs to read at once, in which gaps are small.

        Each run is its beginning and end in `ids`, its first row, and the number of rows to read.
        """
        if not len(ids):
            return []
        apart = np.diff(ids) > self._fitting(GAP)
        apart |= np.diff(ids // self._fitting(PIECE)) > 0
        begins = np.concatenate([[0], np.flatnonzero(apart) + 1])
        ends = np.concatenate([begins[1:], [len(ids)]])
        sizes = ids[ends - 1] - ids[begins] + 1
        columns = (begins, ends, ids[begins], sizes)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _piece(self) -> NDArray[Any]:
        """Return memory for items that are read at once."""
        stored = () if self._layout.fortran else self._layout.shape[1:]
        return np.empty((self._fitting(PIECE), *stored), self.dtype)

    def _selected(self, items: NDArray[Any]) -> NDArray[Any]:
        """Return the columns to read of some items."""
        if self._layout.fortran:
            return items
        return items[:, self._columns.start : self._columns.stop]

    def _fitting(self, size: int) -> int:
        """Return how many items fit into a number of bytes, at least 1."""
        return max(1, size // self._item)

    @cached_property
    def _item(self) -> int:
        """Size of an item in bytes."""
        values = 1 if self._layout.fortran else self._layout.shape[1]
        return values * self.dtype.itemsize

    def _read(self, file: io.FileIO, first: int, out: NDArray[Any]) -> None:
        """Read consecutive items into an array."""
        begin = self._layout.offset + first * self._item
        file.seek(begin)
        done = file.readinto(out.data)
        while done < out.nbytes:
            read = file.readinto(out.reshape(-1).view(np.uint8)[done:].data)
            if not read:
                self._refuse(first + done // self._item, begin + done)
            done += read

    def _refuse(self, item: int, end: int) -> NoReturn:
        row = item % self._layout.shape[0] if self._layout.fortran else item
        raise DataError(
            f"{self._path}: row {row}: the file ends at byte {end:,}; expected an array up to byte "
            f"{self._layout.end:,}. Copy the file again, and open it as a new source."
        )


def read_npy(path: Path) -> NDArray[Any]:
    """Return the array in a .npy file."""
    with _guarded(path, ".npy", FileIdentity(path)):
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path}: expected an array in a .npy file.")
    return array


def read_npz(path: Path, labelled: bool) -> tuple[Any, Any, list[str] | None]:
    """Return the features, labels and feature names in a .npz file.

    Parameters
    ----------
    path : Path
        The file.
    labelled : bool
        Whether to read labels.
    """
    identity = FileIdentity(path)
    with (
        _guarded(path, ".npz", identity),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        names = list(archive.files)
        prefix = _prefix(path, names)
        X = _features(path, archive, prefix, identity)
        label = f"y{prefix[1:]}"
        if labelled and label not in names:
            raise DataError(
                f"{path}: the labels {label!r} are missing; the file has {_listed(names)}."
            )
        y = archive[label] if labelled else None
        known = archive["feature_names"].tolist() if "feature_names" in names else None
    if known is None or X.ndim != 2 or len(known) != X.shape[1]:
        return X, y, None
    return X, y, [str(name) for name in known]


def _prefix(path: Path, names: list[str]) -> str:
    """Return the prefix of the names of the feature arrays."""
    for prefix in PREFIXES:
        if prefix in names or all(f"{prefix}_{part}" in names for part in PARTS):
            return prefix
    raise DataError(
        f"{path}: expected the array X or X_train, or the parts of a CSR matrix such as "
        f"X_train_data; the file has {_listed(names)}."
    )


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:20]) or "nothing"


def _features(path: Path, archive: Any, prefix: str, identity: FileIdentity) -> Any:
    if prefix in archive.files:
        member = f"{prefix}.npy"
        if archive.zip.getinfo(member).compress_type != zipfile.ZIP_STORED:
            return archive[prefix]
        found = ArrayFile(path, member, identity)
        return archive[prefix] if 0 in found.shape else found
    data, indices, indptr, shape = (archive[f"{prefix}_{part}"] for part in PARTS)
    made = sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
    made.check_format(full_check=True)
    return made


def _layout(path: Path, member: str | None) -> Layout:
    """Return where and how an array is stored; raise ValueError if the file is too short for it."""
    with path.open("rb") as file:
        if member is not None:
            _seek_member(file, member)
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        else:  # version 3 differs only in the names of fields, which are not numbers
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        if dtype.hasobject:
            raise ValueError("Object arrays cannot be loaded")
        shape, fortran = (*map(int, shape), *dtype.shape), fortran and not dtype.shape
        made = Layout(file.tell(), shape, fortran, dtype.base)
        np.empty((0, *shape[1:]), made.dtype)  # raises an error if rows are too large
        size = file.seek(0, os.SEEK_END)
    if min(shape, default=0) < 0 or size < made.end:
        raise ValueError(f"an array of shape {shape} ends at byte {made.end}, the file at {size}")
    return made


def _seek_member(file: BinaryIO, member: str) -> None:
    """Move to the beginning of an uncompressed member of an archive."""
    with zipfile.ZipFile(file) as archive:
        start = archive.getinfo(member).header_offset
    file.seek(start + 26)  # two lengths in the local header
    lengths = np.frombuffer(file.read(4), dtype="<u2")
    file.seek(start + 30 + int(lengths.sum()))


@contextlib.contextmanager
def _guarded(path: Path, kind: str, identity: FileIdentity) -> Iterator[None]:
    """Convert the errors that are raised for a damaged file to DataError."""
    try:
        with identity.unchanged():
            yield
    except DataError:
        raise
    except DAMAGE as error:
        raise _damaged(path, kind, error) from error


def _damaged(path: Path, kind: str, error: Exception) -> Exception:
    """Return the error for an unreadable file: the original error if the disk caused it."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return error
    fault = " ".join(str(error).split()) or type(error).__name__
    return DataError(
        f"{path}: the file is damaged or truncated ({fault:.200}); expected a complete {kind} file "
        "of numbers. Copy it again, or write it with numpy.save or numpy.savez."
    )
