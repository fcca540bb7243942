"""Rows in svmlight (LIBSVM) text files."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from marginwise._arrays import Ints
from marginwise._checks import is_integer, take_rows
from marginwise._core import SvmlightParser
from marginwise.data._bytes import FileIdentity, LineReader, kind_of_file
from marginwise.data._svmlight_cursor import Cursors
from marginwise.data._svmlight_index import (
    BLOCK,
    NO_ROWS,
    Extent,
    SvmlightIndex,
    ZeroBased,
    base_of,
    errors_at,
    features_of,
    index_files,
)
from marginwise.data.errors import DataError
from marginwise.data.rows import check_chunks

StrPath = str | os.PathLike[str]

_ALL = 2**62  # more rows than a file has
_MOST_FEATURES = 2**31 - 1
_EXACT = 2**53
_SAMPLES, _SAMPLE = 16, 2**16  # number and size of the pieces of a file in its fingerprint


class SvmlightSource:
    """Data source of rows in svmlight (LIBSVM) text files.

    Each line is ``label index:value index:value ...``, with indices in ascending order. Query ids
    (``qid:3`` after the label), comments (from ``#`` to the end of the line), blank lines and
    Windows line ends are accepted. Features are float32; features that a row does not list are 0.

    Files may be compressed with gzip or Zstandard, which is recognised by their content. Plain
    files can be read in any order. Compressed files can only be read sequentially; reading an
    earlier row starts again from the beginning.

    The first access to the length, the classes or the rows reads all files once, in constant
    memory, to determine the rows, labels and features. This pass parses only a part of each line,
    so some errors are reported later, when the rows are read.

    Parameters
    ----------
    path : str, path-like or sequence of these
        One or several files, which are concatenated in the given order.
    zero_based : bool or "auto"
        Whether the first feature has index 0 (True) or 1 (False). "auto" means True if index 0
        occurs anywhere in the files.
    n_features : int, default=None
        Number of features. Larger indices raise an error. None uses the largest index in the files,
        so pass the number of features of the training data when reading test data.
    index : SvmlightIndex, default=None
        Attribute ``index`` of another source of the same files, which avoids the first pass. None
        reads the files.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Distinct labels, sorted. Integers unless a label has a fractional part.
    n_features : int
        Number of features.
    feature_names : None
        None, because the format has no feature names.
    block : int
        Number of rows that are stored together.
    random_access : bool
        Whether blocks can be read in any order. False if a file is compressed.
    index : SvmlightIndex
        Result of the first pass over the files.

    See Also
    --------
    write_svmlight : Write rows to an svmlight file.
    sklearn.datasets.load_svmlight_file : Reader for arrays in double precision.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginwise.data import SvmlightSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.svm")
    ...     with open(path, "w") as file:
    ...         print("1 1:0.5 3:2  # a comment", file=file)
    ...         print("-1 2:0.25", file=file)
    ...     source = SvmlightSource(path, zero_based=False)
    ...     X, y = source.load()
    ...     print(len(source), source.classes, source.n_features)
    2 [-1  1] 3
    >>> X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]], dtype=float32)
    >>> y
    array([ 1, -1])
    """

    block = BLOCK
    feature_names = None

    def __init__(
        self,
        path: StrPath | Sequence[StrPath],
        *,
        zero_based: ZeroBased,
        n_features: int | None = None,
        index: SvmlightIndex | None = None,
    ) -> None:
        given = [path] if isinstance(path, str | os.PathLike) else list(path)
        _check_arguments(given, zero_based, n_features, index)
        self.paths = tuple(os.fspath(one) for one in given)
        self.zero_based = zero_based
        self._n_features = None if n_features is None else int(n_features)
        self._identities = tuple(FileIdentity(one) for one in self.paths)
        self._plain = tuple(_is_plain(one) for one in self.paths)
        self._index = index
        self._begin()

    def _begin(self) -> None:
        self._cursors: Cursors | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_cursors", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    # -- the first pass ------------------------------------------------------------------------

    @property
    def index(self) -> SvmlightIndex:
        """Result of the first pass, which another source of the same files can reuse."""
        with self._lock:
            if self._index is None:
                self._check_regular()
                self._index = index_files(
                    self.paths, self.zero_based, self._n_features, self._identities
                )
            return self._index

    def _check_regular(self) -> None:
        """Raise unless all files can be read more than once."""
        for path in self.paths:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise ValueError(
                    f"{path} is not a regular file and can be read only once; call load() to read "
                    "all rows into memory, or write the data to a file."
                )

    def __len__(self) -> int:
        return sum(file.rows for file in self.index.files)

    @property
    def classes(self) -> NDArray[Any]:
        """Distinct labels, sorted."""
        index = self.index
        if index.many_labels:
            raise DataError(
                f"{self.paths[0]}:1: there are more than {len(index.labels):,} distinct labels; "
                "expected classes. Check that the labels come first in each line."
            )
        return index.labels

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.index.n_features if self._n_features is None else self._n_features

    @property
    def random_access(self) -> bool:
        """Whether blocks can be read in any order."""
        return all(self._plain)

    # -- reading -------------------------------------------------------------------------------

    def read(self, ids: ArrayLike) -> tuple[Any, NDArray[Any]]:
        """Return rows by index.

        Reading rows in ascending order is fastest, because lines between them are skipped without
        parsing.

        Parameters
        ----------
        ids : array-like of shape (n_rows,), dtype=int
            Row indices from 0 to ``len(source) - 1``, in any order.

        Returns
        -------
        X : csr_array of shape (n_rows, n_features), dtype=float32
            Features.
        y : ndarray of shape (n_rows,)
            Labels.
        """
        ids = self._check_ids(ids)
        rows, places = ids, None
        if np.any(ids[1:] <= ids[:-1]):
            rows, places = np.unique(ids, return_inverse=True)
        parser, index = self._new_parser(), self.index
        with self._lock:
            if self._cursors is None:
                self._cursors = Cursors(self.paths, self._plain, index, self._identities)
        for start, stop in _runs(rows):
            self._cursors.read(parser, start, stop)
        X, y = self._taken(parser)
        return (X, y) if places is None else (take_rows(X, places), y[places])

    def chunks(self, rows: int = BLOCK, start: int = 0) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Iterate over all rows in chunks, in file order.

        Parameters
        ----------
        rows : int, default=4096
            Number of rows in each chunk; the last one may have fewer.
        start : int, default=0
            Index of the first row.

        Returns
        -------
        chunks : iterator
            Pairs of features (csr_array of shape (rows, n_features), dtype=float32) and labels
            (ndarray of shape (rows,)).
        """
        return self._chunks(*check_chunks(rows, start))

    def _chunks(self, rows: int, start: int) -> Iterator[tuple[Any, NDArray[Any]]]:
        n = len(self)
        cursors = Cursors(self.paths, self._plain, self.index, self._identities)
        try:
            for first in range(start, n, rows):
                parser = self._new_parser()
                cursors.read(parser, first, min(first + rows, n))
                yield self._taken(parser)
        finally:
            cursors.close()

    def load(self) -> tuple[Any, NDArray[Any]]:
        """Return all rows at once.

        The files are read once, without the first pass. This also works for pipes.

        Returns
        -------
        X : csr_array of shape (n_rows, n_features), dtype=float32
            Features.
        y : ndarray of shape (n_rows,)
            Labels.
        """
        most = -1 if self._n_features is None else self._n_features
        parser = SvmlightParser(base_of(self.zero_based), most)
        parser.expect(sum(identity.size for identity in self._identities))
        extents = []
        for path, identity in zip(self.paths, self._identities, strict=True):
            parser.line, before = 1, parser.rows
            with identity.unchanged(), LineReader(path) as lines, errors_at(path, parser):
                for text in lines:
                    parser.parse(text, 0, _ALL)
                if parser.rows == before:
                    raise ValueError(NO_ROWS)
            extents.append(Extent.of(path, parser))
        zero_based, n_features = features_of(extents, self.zero_based, self._n_features)
        labels, indptr, indices, values = parser.take()
        if self.zero_based == "auto" and not zero_based:
            indices -= 1
        integers = bool(((labels == np.floor(labels)) & (np.abs(labels) <= _EXACT)).all())
        return _csr(values, indices, indptr, n_features), _typed(labels, integers)

    def _new_parser(self) -> SvmlightParser:
        return SvmlightParser(base_of(self.index.zero_based), self.n_features)

    def _taken(self, parser: SvmlightParser) -> tuple[Any, NDArray[Any]]:
        labels, indptr, indices, values = parser.take()
        integers = self.index.labels.dtype.kind == "i"
        return _csr(values, indices, indptr, self.n_features), _typed(labels, integers)

    def _check_ids(self, ids: ArrayLike) -> Ints:
        ids = np.asarray(ids)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise ValueError(
                f"ids must be a sequence of integers, got {ids.dtype} of shape {ids.shape}."
            )
        wrong = np.flatnonzero((ids < 0) | (ids >= len(self)))
        if wrong.size:
            raise ValueError(
                f"ids[{wrong[0]}] is {ids[wrong[0]]}, which is outside this source; its ids are 0 "
                f"to {len(self) - 1}."
            )
        return np.ascontiguousarray(ids, dtype=np.int64)

    def fingerprint(self) -> str:
        """Return a digest of the sizes of the files and of pieces of their content.

        Returns
        -------
        digest : str
            Hexadecimal SHA-256.
        """
        digest = hashlib.sha256(f"{self.zero_based} {self._n_features}".encode())
        self._check_regular()
        for path in self.paths:
            with open(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                digest.update(f" {size}".encode())
                for place in np.linspace(0, max(size - _SAMPLE, 0), _SAMPLES).astype(np.int64):
                    file.seek(int(place))
                    digest.update(file.read(_SAMPLE))
        return digest.hexdigest()


def _check_arguments(
    paths: Sequence[Any], zero_based: Any, n_features: Any, index: SvmlightIndex | None
) -> None:
    if not paths:
        raise ValueError("path is an empty sequence; pass at least one file.")
    if zero_based != "auto" and not isinstance(zero_based, bool | np.bool_):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
    if n_features is not None and not (
        is_integer(n_features) and 1 <= n_features <= _MOST_FEATURES
    ):
        raise ValueError(
            f"n_features must be None or an integer from 1 to {_MOST_FEATURES}, got {n_features!r}."
        )
    if index is None:
        return
    if len(index.files) != len(paths):
        raise ValueError(
            f"index is of {len(index.files)} files, but path names {len(paths)}; pass the "
            "index of a source with the same files."
        )
    if zero_based not in ("auto", index.zero_based) or index.n_features > (n_features or np.inf):
        raise ValueError(
            f"index is of a source with zero_based={index.zero_based} and {index.n_features} "
            f"features, got zero_based={zero_based} and n_features={n_features}; pass the same "
            "values to both."
        )


def _is_plain(path: str) -> bool:
    """Return whether a file can be read from any offset; raise OSError if it is unreadable."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return stat.S_ISREG(mode) and kind_of_file(path) == "plain"


def _runs(rows: Ints) -> Iterator[tuple[int, int]]:
    """Yield the ranges of consecutive indices in ascending row indices."""
    if not len(rows):
        return
    ends = np.flatnonzero(np.diff(rows) > 1)
    starts = rows[np.concatenate([[0], ends + 1])]
    stops = rows[np.concatenate([ends, [len(rows) - 1]])] + 1
    yield from zip(starts.tolist(), stops.tolist(), strict=True)


def _csr(values: Any, indices: Any, indptr: Any, n_features: int) -> Any:
    X = sp.csr_array((values, indices, indptr), shape=(len(indptr) - 1, n_features))
    X.has_canonical_format = True  # checked by the parser
    return X


def _typed(labels: NDArray[np.float64], integers: bool) -> NDArray[Any]:
    return labels.astype(np.int64) if integers else labels
