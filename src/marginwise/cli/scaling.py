"""Scaling of numeric features without column descriptions, such as arrays and svmlight files.

Features such as pixels, counts, indicators or term weights share one range. They are divided by the
overall largest value, which preserves their proportions. Other features are divided by their
standard deviations. Features are not centred, because this would destroy sparsity, and the RBF
kernel is translation invariant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.sparsefuncs import min_max_axis

from marginwise._arrays import Float

SAME_LENGTH = 1e-3  # relative difference of the lengths of rows that count as normalised
NEAR = 0.25  # fraction of the overall largest value that columns of one range reach
OFTEN = 0.1  # columns that are nonzero in a smaller fraction of the rows are ignored


class Scaling(NamedTuple):
    """How features are scaled.

    Parameters
    ----------
    scaler : transformer or None
        Fitted transformer, or None if values are not scaled.
    why : str
        What is done and why, as the end of a sentence about the features.
    """

    scaler: Any
    why: str


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
        lengths = lengths[lengths > 0]  # a text without a known word is normalised, too
        if len(lengths):
            shortest, longest = self._lengths
            self._lengths = [min(shortest, lengths.min()), max(longest, lengths.max())]
        self._deviations.partial_fit(X)

    @property
    def same_length(self) -> bool:
        """Whether all rows that are not empty have the same length."""
        shortest, longest = self._lengths
        return longest - shortest <= SAME_LENGTH * longest

    @property
    def shared(self) -> bool:
        """Whether the columns share one range.

        They do if all rows that are not empty have the same length, or if every column that is
        nonzero in at least a tenth of the rows reaches a quarter of the overall largest value.
        """
        assert self._largest is not None
        frequent = self._largest[self._nonzeros >= OFTEN * self._rows]
        return self.same_length or bool((frequent >= NEAR * self._largest.max()).all())

    def choose(self, rule: str) -> Scaling:
        """Choose a transformer by a rule, one of "auto", "standard" and "none"."""
        assert self._largest is not None
        if rule == "none":
            return Scaling(None, "not scaled, because of --scale none")
        if not self._largest.any():
            return Scaling(None, "not scaled, because all are zero")
        by_deviation = "divided by their standard deviations, because "
        if rule == "standard":
            return Scaling(self._deviations, f"{by_deviation}of --scale standard")
        if not self.shared:
            return Scaling(self._deviations, f"{by_deviation}their ranges differ")
        why = "all rows have the same length" if self.same_length else "they share one range"
        most = float(self._largest.max())
        if most == 1.0:
            return Scaling(None, f"not scaled, because {why} and the largest value is 1")
        divisor = _divisor(most, len(self._largest))
        return Scaling(divisor, f"divided by their largest value, {most:g}, because {why}")


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
