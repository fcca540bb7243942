"""Pools of rows that only the estimator can read, such as texts."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from marginwise._arrays import Ints, spread_rows
from marginwise._estimator.classifier import KernelClassifier
from marginwise.active.frames import columns_of, is_frame, is_numeric, joined, rows_of
from marginwise.active.pool import PRINTS, Pool, stacked


def pool_for(X: Any, estimator: Any) -> Pool:
    """Return the pool for an estimator; validate rows unless the estimator does."""
    if isinstance(estimator, KernelClassifier) or hasattr(X, "read"):
        return Pool(X)
    if isinstance(estimator, Pipeline) or _allows_gaps(estimator) or not _is_numeric(X):
        return RawPool(X)
    return Pool(X)


def _allows_gaps(estimator: Any) -> bool:
    if isinstance(estimator, type) or not hasattr(estimator, "__sklearn_tags__"):
        return False
    return bool(get_tags(estimator).input_tags.allow_nan)


def _is_numeric(X: Any) -> bool:
    if is_frame(X):
        return is_numeric(X)
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "biuf" or X.ndim != 1
    first = X[0] if isinstance(X, list | tuple) and len(X) else None
    return not isinstance(first, str | dict | bytes)


class RawPool(Pool):
    """Rows that are passed to an estimator unchanged.

    Parameters
    ----------
    X : array, sparse matrix, data frame or sequence
        Rows. The elements of a sequence can be arbitrary objects, such as texts.
    """

    is_raw = True

    def __init__(self, X: Any) -> None:
        framed = is_frame(X)
        if sp.issparse(X):
            X = sp.csr_array(X)
        elif not framed and not isinstance(X, np.ndarray):
            X = _objects(X)
        self._source, self._rows, self._checked = None, None, True
        self.given = X
        self.n = self.first = X.shape[0]
        if self.n == 0:
            raise ValueError("X_pool is empty; pass one row or more.")
        self.features = len(columns_of(X)) if framed else 1 if X.ndim == 1 else X.shape[1]
        self.status = np.zeros(self.n, dtype=np.uint8)
        self.n_unseen = self.n

    @property
    def in_memory(self) -> bool:
        """Whether all rows can be scored in a single call."""
        return True

    def take_given(self, rows: Ints) -> Any:
        """Return rows in the original format."""
        return rows_of(self.given, rows) if is_frame(self.given) else self.given[rows]

    take = take_given

    def require(self, rows: Ints) -> None:
        """Do nothing: the estimator reads the rows."""

    def extended(self, X: Any) -> Pool:
        """Return a pool with additional rows; the status of existing rows is kept."""
        more = RawPool(X)
        if more.features != self.features:
            raise ValueError(
                f"X_new has {more.features} columns, but the pool has {self.features}; pass the "
                "same columns."
            )
        both = copy.copy(self)
        framed = is_frame(self.given)
        both.given = joined(self.given, X) if framed else stacked(self.given, more.given)
        both.n = self.n + more.n
        both.n_unseen = self.n_unseen + more.n
        both.status = np.concatenate([self.status, more.status])
        return both

    def fingerprint(self, n: int | None = None) -> str:
        """Return a digest of the shape and of some rows of the pool, or of its first n rows."""
        n = self.n if n is None else n
        rows = self.take_given(spread_rows(n, PRINTS))
        names = columns_of(rows) if is_frame(rows) else []
        values = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        text = f"{n} {self.features} {names} {values.tolist()!r}"
        return hashlib.sha256(text.encode()).hexdigest()


def _objects(X: Any) -> Any:
    """Convert a sequence to an array: numeric for rows of numbers, otherwise of objects."""
    items = list(X)
    if items and not isinstance(items[0], str | bytes | dict):
        array = np.asarray(items)
        if array.dtype.kind in "biuf" and array.ndim == 2:
            return array
    found = np.empty(len(items), dtype=object)
    found[:] = items
    return found
