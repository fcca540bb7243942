"""What a first pass over svmlight files finds: rows, labels, features, and where blocks begin."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints
from marginwise._core import SvmlightParser, SvmlightScan
from marginwise.data._bytes import LineReader
from marginwise.data.errors import DataError

ZeroBased = bool | Literal["auto"]

BLOCK = 4096
NO_ROWS = (
    "the file has no rows; expected lines such as '1 3:0.5 7:2'. Check that this is the right file"
)
NO_FEATURES = (
    "no row has a feature; expected index:value after the label, as in '1 3:0.5 7:2'. Pass "
    "n_features if the rows are empty on purpose."
)


@dataclass(frozen=True)
class FileIndex:
    """One file of an index.

    Attributes
    ----------
    size
        Bytes of the file.
    rows
        Rows in it.
    offsets, lines
        Where the first row of each block begins: the byte and the number of the line.
    """

    size: int
    rows: int
    offsets: Ints
    lines: Ints


@dataclass(frozen=True)
class SvmlightIndex:
    """All files of a source.

    Attributes
    ----------
    files
        One entry per file.
    labels
        The distinct labels, sorted: int64 if all are integers, float64 otherwise.
    many_labels
        Whether `labels` lacks some, because there are too many for classes.
    zero_based
        Whether index 0 is the first feature.
    n_features
        Number of features.
    """

    files: tuple[FileIndex, ...]
    labels: NDArray[Any]
    many_labels: bool
    zero_based: bool
    n_features: int


def base_of(zero_based: ZeroBased) -> int:
    """Return the index of the first feature, as the core takes it: -1 if it is not known."""
    return -1 if zero_based == "auto" else 1 - int(zero_based)


@contextlib.contextmanager
def errors_at(path: str, reader: SvmlightParser | SvmlightScan) -> Iterator[None]:
    """Turn errors about a file's content into a DataError that names the file and the line."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{path}:{reader.line}: {error}.") from error


@dataclass(frozen=True)
class Extent:
    """The indices of a file as they are written, -1 if there are none, and where the greatest is.

    Several files that were read in turn may have one extent each that includes those before.
    """

    path: str
    least: int
    greatest: int
    line: int

    @staticmethod
    def of(path: str, reader: SvmlightParser | SvmlightScan) -> Extent:
        """Return the extent of what was read so far."""
        return Extent(path, reader.least, reader.greatest, reader.line_of_greatest)


def index_files(
    paths: Sequence[str], zero_based: ZeroBased, n_features: int | None
) -> SvmlightIndex:
    """Read all files once, in constant memory.

    Parameters
    ----------
    paths
        The files.
    zero_based
        Whether index 0 is the first feature; "auto" looks whether it occurs.
    n_features
        Number of features, or None for as many as occur.
    """
    scans = [_scanned(path, zero_based, n_features) for path in paths]
    extents = [Extent.of(path, scan) for path, scan in zip(paths, scans, strict=True)]
    zero_based, n_features = features_of(extents, zero_based, n_features)
    labels = np.unique(np.concatenate([scan.labels() for scan in scans]))
    return SvmlightIndex(
        tuple(
            FileIndex(os.stat(path).st_size, scan.rows, scan.offsets(), scan.lines())
            for path, scan in zip(paths, scans, strict=True)
        ),
        labels.astype(np.int64) if all(scan.integers_only for scan in scans) else labels,
        any(scan.many_labels for scan in scans),
        zero_based,
        n_features,
    )


def _scanned(path: str, zero_based: ZeroBased, n_features: int | None) -> SvmlightScan:
    scan = SvmlightScan(base_of(zero_based), -1 if n_features is None else n_features, BLOCK)
    with LineReader(path) as lines, errors_at(path, scan):
        for text in lines:
            scan.scan(text)
        if scan.rows == 0:
            raise ValueError(NO_ROWS)
    return scan


def features_of(
    extents: Sequence[Extent], zero_based: ZeroBased, n_features: int | None
) -> tuple[bool, int]:
    """Return whether files are zero-based, and how many features they have."""
    if zero_based == "auto":
        zero_based = any(extent.least == 0 for extent in extents)
    greatest = max(extent.greatest for extent in extents)
    last = greatest if zero_based else greatest - 1
    if n_features is None:
        if greatest < 0:
            raise DataError(f"{extents[0].path}:1: {NO_FEATURES}")
        return zero_based, last + 1
    if last >= n_features:  # found here only where the base was not known before
        where = next(extent for extent in extents if extent.greatest == greatest)
        raise DataError(
            f"{where.path}:{where.line}: index {greatest} is beyond n_features={n_features}; "
            f"expected at most {n_features - 1}, because index 0 occurs. Pass a larger "
            "n_features, or drop the feature."
        )
    return zero_based, n_features
