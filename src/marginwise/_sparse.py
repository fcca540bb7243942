"""Validation of the indices of sparse matrices, which SciPy does not check."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_sparse(X: Any) -> None:
    """Raise a ValueError unless a sparse matrix has valid indices.

    SciPy does not check them. With invalid indices, its conversions and the core would write out of
    bounds.
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
