"""Types of arrays, and rows in the form that the core reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._core import Batch

MOST_FEATURES = 2**28  # some arrays of the core have a value per feature

Float = NDArray[np.float64]
Ints = NDArray[np.int64]


def canonical(X: Any) -> Any:
    """Give the core's form: C-contiguous floats, or CSR with sorted, unique, native indices."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def batch_of(X: Any) -> Batch:
    """Wrap checked features for the core; nothing is copied but sparse indices of another width."""
    if not sp.issparse(X):
        return Batch(X)
    indices = np.ascontiguousarray(X.indices, dtype=np.int32)
    return Batch(
        np.ascontiguousarray(X.data), indices, X.indptr.astype(np.int64, copy=False), X.shape[1]
    )


def spread_rows(n: int, most: int) -> Ints:
    """Return up to `most` of the rows 0 to n - 1, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Select rows of a dense or CSR matrix."""
    return canonical(X[rows])
