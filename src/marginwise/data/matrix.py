"""Conversion of numeric columns to a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise.data.columns import LARGEST, CellError, need_arrow, whole

ROWS = 1024  # rows to standardise at a time, so that they stay in the processor's cache


class ColumnMatrix:
    """Rows of a table as a matrix, for models that were not trained with a `TableEncoder`.

    The matrix is in single precision if it can represent the types of all columns.

    Parameters
    ----------
    names : sequence of str
        Names of the columns, in the order of the features.
    finite : bool
        Whether missing and infinite values raise an error.
    """

    def __init__(self, names: Sequence[str], *, finite: bool) -> None:
        self.feature_names_in_ = np.array(list(names), dtype=object)
        self.kinds_ = ["numeric"] * len(self.feature_names_in_)
        self.finite = finite

    def transform(self, table: Any) -> NDArray[Any]:
        """Return the columns of a pyarrow table, selected by name, as a matrix."""
        names = self.feature_names_in_.tolist()
        columns = [_numbers(table[name], name) for name in names]
        exact = all(np.can_cast(column.dtype, np.float32) for column in columns)
        X = np.empty((table.num_rows, len(names)), np.float32 if exact else np.float64)
        for k, column in enumerate(columns):
            X[:, k] = column
        if self.finite and not np.isfinite(X).all():
            row, k = np.argwhere(~np.isfinite(X))[0].tolist()
            fault = "missing" if np.isnan(X[row, k]) else "infinite"
            raise CellError(row, names[k], f"the value is {fault}; expected a finite number.")
        return X


def standardised(
    columns: Sequence[Any], mean: NDArray[Any], scale: NDArray[Any], fill: NDArray[Any]
) -> NDArray[np.float32] | None:
    """Return numeric columns as standardised features.

    Parameters
    ----------
    columns : sequence of pyarrow arrays
        The columns.
    mean, scale, fill : ndarray of shape (n_columns,)
        Value to subtract from each column, value to divide it by, and replacement of missing
        values.

    Returns
    -------
    X : ndarray of shape (n_rows, n_columns) or None
        Features. None if a column has another type or a value is out of range. Columns must then be
        encoded one by one, which locates the value.
    """
    if not columns or not all(_is_number(column.type) for column in columns):
        return None
    values = [_as_numpy(column) for column in columns]
    X = np.empty((len(values[0]), len(values)), dtype=np.float32)
    block = np.empty((len(values), ROWS))
    for first in range(0, len(X), ROWS):
        part = block[:, : len(X) - first]
        for k, column in enumerate(values):
            part[k] = column[first : first + ROWS]
        if not _within(part) and not _filled(part, fill):
            return None
        part -= mean[:, None]
        part /= scale[:, None]
        if not _within(part):
            return None
        X[first : first + ROWS] = part.T
    return X


def _within(values: NDArray[Any]) -> bool:
    """Return whether all values are numbers within the range of float32."""
    return bool(values.max(initial=0.0) <= LARGEST and values.min(initial=0.0) >= -LARGEST)


def _filled(values: NDArray[Any], fill: NDArray[Any]) -> bool:
    """Replace missing values; return whether all values are then within range."""
    column, row = np.nonzero(np.isnan(values))
    values[column, row] = fill[column]
    return _within(values)


def _is_number(kind: Any) -> bool:
    types = need_arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _as_numpy(column: Any) -> NDArray[Any]:
    """Return a column of numbers, without a copy if possible; missing values are NaN."""
    values: NDArray[Any] = whole(column).to_numpy(zero_copy_only=False)
    return values


def _numbers(column: Any, name: str) -> NDArray[Any]:
    pa, kind = need_arrow(), column.type
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64() if pa.types.is_decimal(kind) else pa.uint8())
    elif not _is_number(kind):
        raise ValueError(
            f"column {name!r} has the type {kind}; expected numbers, as the model was trained "
            "without a TableEncoder. Convert the column."
        )
    return _as_numpy(column)
