"""First pass over svmlight files, which finds rows, labels, features and the starts of blocks."""

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
from marginwise.data._bytes import FileIdentity, LineReader
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
    """Index of one file.

    Attributes
    ----------
    size
        Size of the file in bytes.
    rows
        Number of rows.
    offsets, lines
        Byte offset and line number of the first row of each block.
    """

    size: int
    rows: int
    offsets: Ints
    lines: Ints


@dataclass(frozen=True)
class SvmlightIndex:
    """Index of all files of a source.

    Attributes
    ----------
    files
        One entry per file.
    labels
        The distinct labels, sorted: int64 if all are integers, float64 otherwise.
    many_labels
        Whether `labels` is incomplete, because there are too many labels to be classes.
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
    """Return the index of the first feature as the core expects it: -1 if it is unknown."""
    return -1 if zero_based == "auto" else 1 - int(zero_based)


@contextlib.contextmanager
def errors_at(path: str, reader: SvmlightParser | SvmlightScan) -> Iterator[None]:
    """Convert errors in the content of a file to a DataError with the file and the line."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{path}:{reader.line}: {error}.") from error


@dataclass(frozen=True)
class Extent:
    """Range of the indices in a file (-1 if there are none), and the line of the greatest index.

    If one reader reads several files in turn, the extent of each file includes the previous files.
    """

    path: str
    least: int
    greatest: int
    line: int

    @staticmethod
    def of(path: str, reader: SvmlightParser | SvmlightScan) -> Extent:
        """Return the extent of the text read so far."""
        return Extent(path, reader.least, reader.greatest, reader.line_of_greatest)


def index_files(
    paths: Sequence[str],
    zero_based: ZeroBased,
    n_features: int | None,
    identities: Sequence[FileIdentity],
) -> SvmlightIndex:
    """Read all files once, in constant memory.

    Parameters
    ----------
    paths
        The files.
    zero_based
        Whether index 0 is the first feature; "auto" means True if index 0 occurs.
    n_features
        Number of features; None uses the largest index.
    identities
        Identity of each file when the source was opened.
    """
    scans = []
    for path, identity in zip(paths, identities, strict=True):
        with identity.unchanged():
            scans.append(_scanned(path, zero_based, n_features))
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
    if last >= n_features:  # the scan reports this itself, unless the base was unknown
        where = next(extent for extent in extents if extent.greatest == greatest)
        raise DataError(
            f"{where.path}:{where.line}: index {greatest} is beyond n_features={n_features}; "
            f"expected at most {n_features - 1}, because index 0 occurs. Pass a larger "
            "n_features, or drop the feature."
        )
    return zero_based, n_features
