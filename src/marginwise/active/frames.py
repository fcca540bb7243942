"""Access to rows of data frames of pandas, polars and other libraries, through narwhals."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from marginwise._arrays import Ints


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame whose rows are in memory."""
    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)


def columns_of(frame: Any) -> list[str]:
    """Return the names of the columns of a data frame."""
    return list(nw.from_native(frame, eager_only=True).columns)


def is_numeric(frame: Any) -> bool:
    """Return whether all columns of a data frame are numbers or booleans."""
    kinds = nw.from_native(frame, eager_only=True).schema.values()
    return all(kind.is_numeric() or kind == nw.Boolean for kind in kinds)


def rows_of(frame: Any, rows: Ints) -> Any:
    """Return rows of a data frame in the given order, with their index, if any."""
    return nw.from_native(frame, eager_only=True)[rows].to_native()


def joined(one: Any, other: Any) -> Any:
    """Append a data frame to another one with the same columns."""
    above = nw.from_native(one, eager_only=True)
    if not is_frame(other):
        raise TypeError(
            f"the pool is a data frame with the columns {', '.join(map(str, above.columns))}; pass "
            f"X_new as such a frame, too, not as {type(other).__name__}."
        )
    below = nw.from_native(other, eager_only=True)
    if below.columns != above.columns:
        raise ValueError(
            f"X_new has the columns {below.columns!r:.200}, but the pool has "
            f"{above.columns!r:.200}; pass the same columns in the same order."
        )
    return nw.concat([above, below], how="vertical").to_native()
