"""Kernels: the names users give, resolved to what the core computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise._warn import warn

NATIVE = ("linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto")
KERNELS = (*NATIVE, "precomputed")
WITH_GAMMA = ("rbf", "poly", "sigmoid")
FEW = 50  # rows of a first batch below which gamma="scale" warns

LARGEST = 1e37  # kernel value that single precision holds

BlockFunction = Callable[[Float, Float], Float]


def resolve_gamma(gamma: str | float, X: Any, weights: Float) -> float:
    """Turn "scale", "auto" or a number into a number; "scale" is 1 / (d * weighted variance)."""
    if not isinstance(gamma, str):
        return float(gamma)
    d = max(int(X.shape[1]), 1)
    if gamma == "auto":
        return 1.0 / d
    variance = weighted_variance(X, weights)
    return 1.0 / (d * variance) if variance > 0 else 1.0


def warn_if_few(gamma: str | float, kernel: Any, rows: int) -> None:
    """Warn if the first rows of a stream are too few to choose gamma from."""
    if isinstance(gamma, str) and gamma == "scale" and _uses_gamma(kernel) and rows < FEW:
        warn(
            f"gamma='scale' is computed from the first batch only, which has {rows} row"
            f"{'' if rows == 1 else 's'}: their variance may be far from that of the stream. Pass "
            f"gamma as a number, or start with a batch of at least {FEW} rows."
        )


def _uses_gamma(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel in WITH_GAMMA


def weighted_variance(X: Any, weights: Float) -> float:
    """Return the variance of all entries of X, rows counted by their weights."""
    total = float(weights.sum()) * max(int(X.shape[1]), 1)
    row_sums = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    mean = float(weights @ row_sums) / total
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
        return max(float(weights @ squares) / total - mean * mean, 0.0)
    deviations = (_centred_squares(X[k : k + 4096], mean) for k in range(0, X.shape[0], 4096))
    return float(weights @ np.concatenate(list(deviations))) / total


def _centred_squares(X: NDArray[Any], mean: float) -> Float:
    centred = X.astype(np.float64) - mean
    squares: Float = np.einsum("ij,ij->i", centred, centred)
    return squares


def checked(function: Callable[[Any, Any], Any]) -> BlockFunction:
    """Wrap a user's kernel: it is given blocks, and must return one finite number per pair."""

    def block(A: Float, B: Float) -> Float:
        values = np.ascontiguousarray(function(A, B), dtype=np.float64)
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"kernel returned shape {values.shape} for blocks of {A.shape[0]} and "
                f"{B.shape[0]} rows; expected {(A.shape[0], B.shape[0])}."
            )
        if not np.isfinite(values).all():
            raise ValueError("kernel returned NaN or infinity; expected finite values.")
        largest = float(np.abs(values).max(initial=0.0))
        if largest > LARGEST:
            raise ValueError(
                f"kernel returned a value of size {largest:.3g}; expected at most {LARGEST:g}, for "
                "values are stored in single precision. Scale the kernel down, and C up."
            )
        return values

    return block


def precomputed(A: Float, B: Float) -> Float:
    """Look kernel values up: the last feature of a row is its own column in the others' rows."""
    return np.ascontiguousarray(A[:, B[:, -1].astype(np.intp)])
