"""Input: what callers give, checked and in the form that the core reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.validation import validate_data

from marginwise._arrays import MOST_FEATURES, Float, Ints, canonical
from marginwise._estimator.objects import are_objects, lend

_ABSENT = object()
MOST_ID = 2**63 - 1
FEW_VALUES = 4096  # are quicker looked at one by one than summed


def check_features(estimator: Any, X: Any, y: Any = _ABSENT, *, reset: bool) -> tuple[Any, Any]:
    """Validate X (and y) as scikit-learn does, and name the first entry that is not finite."""
    if callable(estimator.kernel):
        before = not reset and "_objects" in estimator.__dict__
        if are_objects(X, expected=before):
            handles = lend(estimator, X, reset=reset)
            return handles, None if y is _ABSENT else _check_labels(handles, y)
        if before:
            raise ValueError(
                f"X has rows of numbers, but {type(estimator).__name__} was fitted with a sequence "
                "of objects. Pass rows of the same kind as in fit."
            )
    if reset:
        estimator.__dict__.pop("_objects", None)
    given = X
    if estimator.kernel == "precomputed" and sp.issparse(X):
        raise TypeError(
            "Sparse precomputed kernels are not supported: with kernel='precomputed', X must be a "
            "dense matrix of kernel values. Pass X.toarray()."
        )
    X = check_rows(X, "X", estimator)
    if X.shape[1] > MOST_FEATURES:
        raise ValueError(
            f"X has {X.shape[1]} features; at most {MOST_FEATURES} are supported. Hash them to "
            "fewer columns, or drop columns without entries."
        )
    if y is _ABSENT:
        validate_data(estimator, given, reset=reset, skip_check_array=True)
        return canonical(X), None
    validate_data(estimator, given, y, reset=reset, skip_check_array=True)
    return canonical(X), _check_labels(X, y)


def check_rows(X: Any, name: str, estimator: Any = None) -> Any:
    """Return finite rows of floats, as an array or a CSR matrix with valid indices."""
    if sp.issparse(X):
        check_sparse(X)
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        estimator=estimator,
        input_name=name,
    )
    if sp.issparse(X):
        check_sparse(X)  # again: conversions copy indices as they are
    check_finite(X)
    return X


def _check_labels(X: Any, y: Any) -> Any:
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return y


def check_sparse(X: Any) -> None:
    """Raise a ValueError unless a sparse matrix has valid indices.

    SciPy does not check them: its own conversions, and the core, would write beyond their arrays.
    """
    if X.format == "coo":
        _check_coordinates(X)
    if X.format not in ("csr", "csc", "bsr"):
        return
    indices, indptr = X.indices, X.indptr
    rows, columns = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        rows, columns = rows // X.blocksize[0], columns // X.blocksize[1]
    valid = len(indptr) == rows + 1 and indptr[0] == 0 and (np.diff(indptr) >= 0).all()
    if not valid or indptr[-1] > min(len(indices), len(X.data)):
        raise ValueError(
            f"X is not a valid {X.format.upper()} matrix: indptr must start with 0, not decrease, "
            f"have {rows + 1} entries and end with the number of stored values. Build the matrix "
            "again, for example from coordinates."
        )
    stored = indices[: indptr[-1]]
    if len(stored) and not (stored.min() >= 0 and stored.max() < columns):
        wrong = int(np.flatnonzero((stored < 0) | (stored >= columns))[0])
        line = int(np.searchsorted(indptr, wrong, side="right")) - 1
        where = "column" if X.format == "csc" else "row"
        raise ValueError(
            f"X is not a valid {X.format.upper()} matrix: {where} {line} has the index "
            f"{stored[wrong]}, expected 0 to {columns - 1}. Give the matrix its full shape, or "
            "drop the entry."
        )


def _check_coordinates(X: Any) -> None:
    """Raise a ValueError unless all entries of a COO matrix lie within its shape."""
    for name, places, size in (("row", X.row, X.shape[0]), ("column", X.col, X.shape[1])):
        if len(places) and not (places.min() >= 0 and places.max() < size):
            entry = int(np.flatnonzero((places < 0) | (places >= size))[0])
            raise ValueError(
                f"X is not a valid COO matrix: entry {entry} has the {name} {places[entry]}, "
                f"expected 0 to {size - 1}. Give the matrix its full shape, or drop the entry."
            )


def check_finite(X: Any, names: Ints | None = None) -> None:
    """Raise a ValueError that names the first row and column that is NaN or infinite.

    Parameters
    ----------
    X
        The rows.
    names
        What to call them; by default, by their places.
    """
    values = X.data if sp.issparse(X) else X
    if values.size <= FEW_VALUES and np.isfinite(values).all():
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):  # one pass; a sum that overflows is looked into below
            return
    bad = np.flatnonzero(~np.isfinite(values.ravel()))
    if bad.size == 0:
        return
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        column = int(X.indices[bad[0]])
    else:
        row, column = (int(k) for k in np.unravel_index(bad[0], X.shape))
    row = row if names is None else int(names[row])
    kind = "NaN" if np.isnan(values.ravel()[bad[0]]) else "infinity"
    raise ValueError(
        f"Input X contains {kind} at row {row}, column {column}; every feature must be a finite "
        "number. Impute or drop such rows first."
    )


def check_weights(sample_weight: ArrayLike | None, n: int) -> Float:
    """Return one non-negative weight a row, not all of them zero."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected one weight for each of {n} rows."
        )
    check_weight_values(weights)
    return weights


def check_weight_values(weights: Float) -> None:
    """Raise unless weights are finite, none negative and not all zero."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight is {weights[bad[0]]} at row {bad[0]}; weights must be finite and not "
            "negative."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows; at least one must be positive.")


def check_ids(ids: ArrayLike | None, n: int, first: int) -> Ints:
    """Return one integer id a row; the running count from `first` where none are given."""
    if ids is None:
        if first + n > MOST_ID:
            raise ValueError(f"the running count of ids has reached {first}; give ids.")
        return np.arange(first, first + n, dtype=np.int64)
    array = np.asarray(ids)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"ids must be {n} integers, one a row; got {array.dtype} of shape {array.shape}."
        )
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"ids must be 64-bit integers with a sign (int64), got {array.max()}.")
    names = np.ascontiguousarray(array, dtype=np.int64)
    known, times = np.unique(names, return_counts=True)
    if len(known) < n:
        raise ValueError(
            f"the id {known[times > 1][0]} is given twice or more; an id names one example."
        )
    return names
