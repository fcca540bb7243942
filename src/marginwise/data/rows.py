"""Operations on rows in arrays, sparse arrays or pyarrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginwise._arrays import Ints
from marginwise._checks import is_integer


def check_ids(ids: Any, n: int) -> Ints:
    """Return row indices as int64; raise unless all of them are from 0 to n - 1."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(
            f"ids must be a sequence of integers, got {ids.dtype} of shape {ids.shape}."
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= n))
    if wrong.size:
        raise ValueError(
            f"ids[{wrong[0]}] is {ids[wrong[0]]}, which is outside this source; its rows are 0 to "
            f"{n - 1}."
        )
    return np.ascontiguousarray(ids, dtype=np.int64)


def check_chunks(rows: Any, start: Any) -> tuple[int, int]:
    """Return the size of chunks and the first row as integers; raise if they are invalid."""
    if not is_integer(rows) or rows < 1:
        raise ValueError(f"rows must be an integer of at least 1, got {rows!r}.")
    if not is_integer(start) or start < 0:
        raise ValueError(f"start must be an integer of at least 0, got {start!r}.")
    return int(rows), int(start)


def height(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0])


def take(X: Any, rows: Any) -> Any:
    """Return rows by index."""
    return X.take(rows) if is_table(X) else X[rows]


def some_rows(table: Any, rows: Ints) -> Any:
    """Return rows of a table, without a copy if they are consecutive."""
    if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return table.slice(int(rows[0]), len(rows))
    return table.take(rows)


def join(parts: list[Any]) -> Any:
    """Concatenate pieces of rows."""
    if len(parts) == 1:
        return parts[0]
    if is_table(parts[0]):
        import pyarrow as pa

        return pa.concat_tables(parts, promote_options="default")
    if sp.issparse(parts[0]):
        return sp.csr_array(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)


def is_table(X: Any) -> bool:
    """Return whether rows are a pyarrow table."""
    return hasattr(X, "column_names") and hasattr(X, "to_batches")


def gather(parts: list[tuple[Any, Any]], places: list[Ints]) -> tuple[Any, Any]:
    """Concatenate pieces of rows and labels, and move each row to its place."""
    X = join([part for part, _ in parts])
    y = None if parts[0][1] is None else np.concatenate([labels for _, labels in parts])
    order = np.concatenate(places)
    if np.array_equal(order, np.arange(len(order))):
        return X, y
    back = np.argsort(order)
    return take(X, back), None if y is None else y[back]


def rechunk(pieces: Iterator[tuple[Any, Any]], rows: int) -> Iterator[tuple[Any, Any]]:
    """Yield rows and labels in chunks of equal size; the last chunk may be smaller."""
    if rows < 1:
        raise ValueError(f"rows must be an integer of at least 1, got {rows!r}.")
    held: list[tuple[Any, Any]] = []
    size = 0
    for X, y in pieces:
        held.append((X, y))
        size += height(X)
        while size >= rows:
            X, y = join_rows(held)
            yield X[:rows], None if y is None else y[:rows]
            held = [(X[rows:], None if y is None else y[rows:])] if size > rows else []
            size -= rows
    if size:
        yield join_rows(held)


def join_rows(held: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Concatenate pieces of rows and labels."""
    y = None if held[0][1] is None else np.concatenate([labels for _, labels in held])
    return join([X for X, _ in held]), y
