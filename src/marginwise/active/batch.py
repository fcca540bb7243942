"""Batches of questions without near-duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, spread_rows

NEAR = 0.1  # rows are near-duplicates below this fraction of the median distance of candidates


def different_rows(X: Any, n: int) -> Ints:
    """Select the first n rows of X that are not near-duplicates of each other.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_rows, n_features)
        Candidates in descending order of preference.
    n : int
        Number of rows to select.

    Returns
    -------
    rows : ndarray of shape (n_selected,)
        Row numbers; fewer than n if there are too few different rows.
    """
    chosen: list[int] = []
    squares = _squares(X)
    limit = _limit(X, squares)
    nearest = np.full(X.shape[0], np.inf)
    for row in range(X.shape[0]):
        if len(chosen) == n:
            break
        if nearest[row] <= limit:
            continue
        chosen.append(row)
        nearest = np.minimum(nearest, _distances(X, row, squares))
    return np.array(chosen, dtype=np.int64)


def _squares(X: Any) -> Float:
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.asarray(squares, dtype=np.float64).ravel()


def _distances(X: Any, row: int, squares: Float) -> Float:
    """Return the squared distances of all rows from one of them."""
    if not sp.issparse(X):
        away = X - X[row]
        found: Float = np.einsum("ij,ij->i", away, away, dtype=np.float64)
        return found
    products = np.asarray((X @ X[[row]].T).todense(), dtype=np.float64).ravel()
    distances: NDArray[np.float64] = np.maximum(squares + squares[row] - 2 * products, 0.0)
    # Equal rows may have a positive distance because of rounding.
    return np.where(distances <= 1e-12 * (squares + squares[row]), 0.0, distances)


def _limit(X: Any, squares: Float) -> float:
    """Return the squared distance up to which two rows are near-duplicates."""
    probes = spread_rows(X.shape[0], 16)
    distances = np.concatenate([_distances(X, row, squares) for row in probes.tolist()])
    distances = distances[distances > 0]
    return float(NEAR**2 * np.median(distances)) if len(distances) else 0.0
