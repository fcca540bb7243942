"""ArraySource: rows of arrays, in memory or in files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from marginwise._arrays import Ints, spread_rows
from marginwise.data.array_files import ArrayFile, read_npy, read_npz
from marginwise.data.errors import DataError
from marginwise.data.rows import check_chunks, check_ids
from marginwise.data.sniff import kind_of

BLOCK_ROWS = 4096  # of an array on disk
HASHED = 4096  # rows of an array on disk that identify it


class ArraySource:
    """Data source of arrays in memory, or of .npy and .npz files.

    Rows of uncompressed .npy and .npz files are read on demand. Memory maps are used as they are.

    Parameters
    ----------
    X : array-like, sparse matrix or path
        Features, or a file with features. A .npz file contains the arrays X and y, X_train and
        y_train, or the parts of a CSR matrix: X_data, X_indices, X_indptr and X_shape.
    y : array-like, path or int, default=None
        Class labels: an array, a .npy file, or the index of the label column of X. By default,
        labels are read from a .npz file, and arrays have no labels.
    labelled : bool, default=True
        Whether to read the labels of a .npz file.
    classes : array-like, default=None
        All class labels. By default, the labels that occur in the data.

    Attributes
    ----------
    files : list of str
        Path of the file, if there is one.
    n_features : int
        Number of features.
    feature_names : list of str or None
        Names of the features, if X is a data frame or the file contains the array feature_names.
    block : int or None
        Number of rows that are stored together: 4096 for a file that is read on demand or a memory
        map, None for arrays in memory.
    random_access : bool
        True, because rows can be read in any order.

    See Also
    --------
    open_source : Open any kind of data source.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise.data import ArraySource
    >>> source = ArraySource(np.arange(6.0).reshape(3, 2), ["a", "b", "a"])
    >>> len(source), source.n_features, source.classes.tolist()
    (3, 2, ['a', 'b'])
    >>> source.read([2, 0])[0]
    array([[4., 5.],
           [0., 1.]])
    """

    random_access = True

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        labelled: bool = True,
        classes: ArrayLike | None = None,
    ) -> None:
        self.files: list[str] = []
        self.feature_names: list[str] | None = _names_of(X)
        if isinstance(X, str | os.PathLike):
            X, y = self._open(Path(X), y, labelled)
        if isinstance(y, str | os.PathLike):
            y = read_npy(Path(y))
        elif isinstance(y, int | np.integer) and not isinstance(y, bool):
            X, y = self._split(X, int(y), labelled)
        self._name = self.files[0] if self.files else "X"
        self._X = self._checked(X)
        self._y = None if y is None or not labelled else self._checked_labels(y)
        self.n_features = int(self._X.shape[1])
        self.block = BLOCK_ROWS if _is_on_disk(self._X) else None
        self._classes = None if classes is None else np.unique(np.asarray(classes))

    def _open(self, path: Path, y: Any, labelled: bool) -> tuple[Any, Any]:
        """Return features and labels of a file."""
        self.files = [str(path)]
        kind = kind_of(path)
        if kind == "npy":
            return ArrayFile(path), y
        if kind != "npz":
            raise DataError(f"{path}: the file is {kind}; expected .npy or .npz.")
        X, labels, self.feature_names = read_npz(path, labelled and y is None)
        return X, labels if y is None else y

    def _split(self, X: Any, column: int, labelled: bool) -> tuple[Any, Any]:
        """Return the features and labels of an array with a label column."""
        X = self._checked(X, least=2)
        if not -X.shape[1] <= column < X.shape[1]:
            raise DataError(
                f"{self.files[0] if self.files else 'X'}: label column {column} is missing; the "
                f"array has columns 0 to {X.shape[1] - 1}."
            )
        column %= X.shape[1]
        y = X[:, [column]]
        y = (y.toarray() if sp.issparse(y) else y).ravel() if labelled else None
        if column == X.shape[1] - 1:
            return X[:, :-1], y
        if column == 0 and not sp.issparse(X):
            return X[:, 1:], y
        return X[:, [k for k in range(X.shape[1]) if k != column]], y

    def _checked(self, X: Any, least: int = 1) -> Any:
        """Return features as an array or a CSR array of numbers."""
        name = self.files[0] if self.files else "X"
        if not isinstance(X, np.ndarray | ArrayFile):
            X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] < least:
            raise DataError(
                f"{name}: expected an array of rows with at least {least} column(s), got one of "
                f"shape {X.shape}."
            )
        if X.dtype.kind not in "biuf":
            raise DataError(f"{name}: expected numbers, got values of type {X.dtype}.")
        return X

    def _checked_labels(self, given: Any) -> NDArray[Any]:
        """Return labels as strings or integers."""
        y: NDArray[Any] = np.asarray(given)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.ravel()
        if y.ndim != 1 or len(y) != self._X.shape[0]:
            raise DataError(
                f"{self._name}: expected one label for each of the {self._X.shape[0]} rows, got "
                f"labels of shape {y.shape}."
            )
        if y.dtype.kind == "f":
            wrong = np.flatnonzero(~(np.abs(y) < 2**53) | (y != np.floor(y)))
            if wrong.size:
                raise DataError(
                    f"{self._name}: row {wrong[0]}: the label is {y[wrong[0]]:g}; expected a "
                    "class: a string or an integer."
                )
            y = y.astype(np.int64)
        if y.dtype.kind == "O":
            gone = [k for k, label in enumerate(y.tolist()) if label is None or label != label]
            if gone:
                raise DataError(f"{self._name}: row {gone[0]}: the label is missing.")
        return y

    # -- properties ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._X.shape[0])

    @property
    def classes(self) -> NDArray[Any] | None:
        """All class labels, sorted, or None without labels."""
        if self._classes is None and self._y is not None:
            found = np.unique(self._y)
            if len(found) < 2:
                raise DataError(
                    f"{self._name}: all {len(self)} rows have the label {found.tolist()}; expected "
                    "at least two classes. Pass classes if there are more."
                )
            self._classes = found
        return self._classes

    @property
    def labels(self) -> NDArray[Any] | None:
        """Label of each row, or None without labels."""
        return self._y

    def fingerprint(self) -> str:
        """Return a digest of the rows and the labels.

        Returns
        -------
        digest : str
            Hexadecimal SHA-256. For an array on disk, it is computed from evenly spaced rows.
        """
        digest = hashlib.sha256(f"{self._X.shape} {self._X.dtype}".encode())
        if sp.issparse(self._X):
            for part in (self._X.data, self._X.indices, self._X.indptr):
                digest.update(np.ascontiguousarray(part).data)
        else:
            some = spread_rows(len(self), HASHED) if self.block and len(self) else slice(None)
            digest.update(np.ascontiguousarray(self._X[some]).data)
        digest.update(repr(None if self._y is None else self._y.tolist()).encode())
        return digest.hexdigest()

    # -- rows ----------------------------------------------------------------------------------

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return rows by index.

        Parameters
        ----------
        ids : ndarray of shape (n_rows,), dtype=int64
            Row indices, in any order.

        Returns
        -------
        X : ndarray or CSR array of shape (n_rows, n_features)
            Features.
        y : ndarray of shape (n_rows,) or None
            Class labels.
        """
        return self._some(check_ids(ids, len(self)))

    def chunks(self, rows: int = 4096, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Iterate over all rows in chunks.

        Parameters
        ----------
        rows : int, default=4096
            Number of rows per chunk.
        start : int, default=0
            Index of the first row.

        Returns
        -------
        chunks : iterator of (X, y)
            Iterator over features and labels of each chunk.
        """
        rows, start = check_chunks(rows, start)
        parts = (slice(first, first + rows) for first in range(start, len(self), rows))
        return map(self._some, parts)

    def load(self) -> tuple[Any, Any]:
        """Load all rows into memory.

        Returns
        -------
        X : ndarray or CSR array of shape (n_rows, n_features)
            Features.
        y : ndarray of shape (n_rows,) or None
            Class labels.
        """
        return self._some(slice(None))

    def _some(self, rows: Any) -> tuple[Any, Any]:
        X = self._X[rows]
        if isinstance(X, np.memmap):
            X = np.array(X)
        return X, None if self._y is None else np.asarray(self._y[rows])


def _names_of(X: Any) -> list[str] | None:
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def _is_on_disk(X: Any) -> bool:
    """Return whether rows are read from a file: of an ArrayFile, a memory map or a view of one."""
    if isinstance(X, ArrayFile):
        return True
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False
