"""Fast input validation, which checks only shape, type and values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._checks import canonical, check_finite
from marginwise._sparse import check_sparse


def plain_rows(X: Any) -> NDArray[Any]:
    """Return rows of numbers without further checks.

    Parameters
    ----------
    X : array-like
        Rows. An array of floats is not copied.
    """
    rows = np.asarray(X, order="C")
    if rows.dtype == np.float64 or rows.dtype == np.float32:  # in native byte order
        return rows
    if rows.dtype.kind not in "biufO":
        raise ValueError(f"rows must be numeric, got an array of dtype {rows.dtype}.")
    return rows.astype(np.float64)


def sparse_rows(X: Any) -> Any:
    """Return rows of numbers as a CSR matrix with valid indices.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        Rows. A CSR matrix of floats with sorted indices is not copied.
    """
    if X.ndim != 2:
        raise ValueError(f"expected a two-dimensional sparse matrix, got {X.ndim} dimension.")
    check_sparse(X)
    rows = X if X.format == "csr" else X.tocsr()
    if rows.dtype != np.float64 and rows.dtype != np.float32:
        if rows.dtype.kind not in "biuf":
            raise ValueError(f"rows must be numeric, got a sparse matrix of dtype {rows.dtype}.")
        rows = rows.astype(np.float64)
    return canonical(rows)


def rows_to_predict(X: Any, features: int) -> NDArray[Any]:
    """Return finite rows with the expected number of features.

    Parameters
    ----------
    X : array-like
        The rows.
    features : int
        Number of features of the model.
    """
    rows = X if type(X) is np.ndarray else np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != features:
        raise ValueError(
            f"expected dense rows of {features} features, got an array of shape {rows.shape}. Use "
            "predict for sparse rows and data frames."
        )
    rows = plain_rows(rows)
    if not np.isfinite(rows).all():
        check_finite(rows)  # raises with the position of the value
    return rows
