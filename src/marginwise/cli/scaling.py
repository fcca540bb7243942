"""Scaling of numeric features without column descriptions, such as arrays and svmlight files.

Features such as pixels, counts, indicators or term weights share one range. They are divided by the
overall largest value, which preserves their proportions. Other features are divided by their
standard deviations. Features are not centred, because this would destroy sparsity, and the RBF
kernel is translation invariant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.sparsefuncs import min_max_axis

from marginwise._arrays import Float

SAME_LENGTH = 1e-3  # relative difference of the lengths of rows that count as normalised
NEAR = 0.25  # fraction of the overall largest value that columns of one range reach
OFTEN = 0.1  # columns that are nonzero in a smaller fraction of the rows are ignored


class Ranges:
    """Ranges of columns and lengths of rows, computed chunk by chunk."""

    def __init__(self) -> None:
        self._largest: Float | None = None
        self._lengths = [np.inf, 0.0]
        self._rows, self._nonzeros = 0, np.zeros(0)
        self._deviations = StandardScaler(with_mean=False)

    def update(self, X: Any) -> None:
        """Take more rows into account."""
        values = X.data if sp.issparse(X) else X
        if not np.isfinite(values).all():
            wrong = values[~np.isfinite(values)].ravel()[0]
            raise ValueError(
                f"the features contain {wrong:g}; expected finite numbers. Impute or drop the rows."
            )
        low, high = min_max_axis(X, axis=0) if sp.issparse(X) else (X.min(axis=0), X.max(axis=0))
        largest = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
        if self._largest is None:
            self._largest, self._nonzeros = np.zeros_like(largest), np.zeros_like(largest)
        self._largest = np.maximum(self._largest, largest)
        self._nonzeros += _nonzeros(X)
        self._rows += X.shape[0]
        lengths = _lengths(X)
        self._lengths = [min(self._lengths[0], lengths.min()), max(self._lengths[1], lengths.max())]
        self._deviations.partial_fit(X)

    @property
    def shared(self) -> bool:
        """Whether the columns share one range.

        They do if all rows have the same length, or if every column that is nonzero in at least a
        tenth of the rows reaches a quarter of the overall largest value.
        """
        assert self._largest is not None
        shortest, longest = self._lengths
        if longest - shortest <= SAME_LENGTH * longest:
            return True
        frequent = self._largest[self._nonzeros >= OFTEN * self._rows]
        return bool((frequent >= NEAR * self._largest.max()).all())

    def scaler(self, rule: str) -> Any:
        """Return a fitted transformer, or None if values are not scaled."""
        assert self._largest is not None
        if rule == "none" or not self._largest.any():
            return None
        if rule == "standard" or not self.shared:
            return self._deviations
        most = float(self._largest.max())
        return None if most == 1.0 else _divisor(most, len(self._largest))


def ranges_of(chunks: Iterable[Any]) -> Ranges:
    """Compute the ranges of rows that are given in chunks."""
    ranges = Ranges()
    for X in chunks:
        ranges.update(X)
    return ranges


def _lengths(X: Any) -> Float:
    """Return the Euclidean length of each row."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.asarray(np.sqrt(squares), dtype=np.float64)


def _nonzeros(X: Any) -> Float:
    """Return the number of nonzero values of each column."""
    if sp.issparse(X):
        counts = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    else:
        counts = np.count_nonzero(X, axis=0)
    return np.asarray(counts, dtype=np.float64)


def _divisor(most: float, columns: int) -> MaxAbsScaler:
    """Return a transformer that divides all columns by the same number."""
    row = np.full((1, columns), most)
    return MaxAbsScaler().fit(row)
