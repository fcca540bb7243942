"""Parsing of strings, and conversion of columns to a given kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginwise._arrays import Float
from marginwise.data.columns import (
    CellError,
    Column,
    Numbers,
    Strings,
    Vectors,
    check_finite,
    days,
    floats,
    need_arrow,
)

TRUTHS = ("false", "true")


def parse_numbers(strings: Any) -> Float | None:
    """Parse strings as numbers; return None if any string is not a number."""
    pa = need_arrow()
    try:
        return floats(strings.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None


def parse_truths(strings: Any) -> Float | None:
    """Parse strings as booleans, 1 for "true" and 0 for "false"; None if other strings occur."""
    pa = need_arrow()
    places = pa.compute.index_in(pa.compute.utf8_lower(strings), value_set=pa.array(TRUTHS))
    return None if places.null_count > strings.null_count else floats(places)


def parse_dates(strings: Any) -> Float | None:
    """Parse ISO dates and times as days since 1970; return None if other strings occur."""
    pa = need_arrow()
    for zone in (None, "UTC"):
        try:
            return days(strings.cast(pa.timestamp("us", zone)))
        except pa.ArrowInvalid:
            continue
    return None


def first_unparsed(strings: Any, parse: Any) -> int:
    """Find the first string that a function cannot parse, by bisection."""
    low, high = 0, len(strings)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if parse(strings[low:middle]) is None else (middle, high)
    return low


PARSERS: dict[str, Callable[[Any], Float | None]] = {
    "numeric": parse_numbers,
    "boolean": parse_truths,
    "date": parse_dates,
}
_WANTED = {
    "numeric": "a number",
    "boolean": "'true' or 'false'",
    "date": "a date such as 2024-01-31",
    "vector": "a list of numbers",
}


def conform(column: Column | None, name: str, kind: str, rows: int) -> Column:
    """Convert a column to the kind that was declared or found before.

    Parameters
    ----------
    column : Column or None
        The column; None if all its values are missing.
    name : str
        Name of the column, for messages.
    kind : {"numeric", "boolean", "date", "categorical", "text", "vector"}
        Kind of the column.
    rows : int
        Number of rows.
    """
    if kind in ("categorical", "text"):
        if isinstance(column, Vectors):
            raise ValueError(f"column {name!r} has lists of numbers; expected strings.")
        return spelled(column) if isinstance(column, Numbers) else column or _no_strings(rows)
    if kind == "vector":
        if column is None or not isinstance(column, Vectors):
            raise CellError(0, name, f"expected {_WANTED[kind]}.")
        return column
    if column is None:
        return Numbers(kind, np.full(rows, np.nan))
    if isinstance(column, Strings):
        return Numbers(kind, parsed(column.values, name, kind))
    if isinstance(column, Vectors):
        raise ValueError(f"column {name!r} has lists of numbers; expected {_WANTED[kind]}.")
    return column


def parsed(strings: Any, name: str, kind: str) -> Float:
    """Parse strings of a given kind as numbers; raise if any string is invalid."""
    parse = PARSERS[kind]
    values = parse(strings)
    if values is None:
        row = first_unparsed(strings, parse)
        raise CellError(row, name, f"expected {_WANTED[kind]}, got {strings[row].as_py()!r:.60}.")
    check_finite(values, name)
    return values


def spelled(column: Numbers) -> Strings:
    """Convert numbers to strings, so that they can be categories."""
    pa = need_arrow()
    values, places = np.unique(column.values, return_inverse=True)
    words = [_spell(value, column.family) for value in values.tolist()]
    return Strings(pa.array(words, pa.string()).take(pa.array(places.ravel())))


def _spell(value: float, family: str) -> str | None:
    if value != value:
        return None
    if family == "boolean":
        return TRUTHS[int(value)]
    return str(int(value)) if value == int(value) else repr(value)


def _no_strings(rows: int) -> Strings:
    pa = need_arrow()
    return Strings(pa.nulls(rows, pa.string()))
