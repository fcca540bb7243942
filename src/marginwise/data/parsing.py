"""Parsing of strings, and conversion of columns to a given kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
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
from marginwise.data.notations import PLAIN, example_of, parse_notation

TRUTHS = ("false", "true")
# Strings that represent missing values among numbers, as in pandas, without case.
TOKENS = (
    *("", "?", "na", "n/a", "<na>", "#na", "#n/a", "#n/a n/a", "nan", "-nan", "null", "none"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
)


def parse_numbers(strings: Any) -> Float | None:
    """Parse strings as numbers; return None if any string is not a number."""
    pa = need_arrow()
    try:
        return floats(strings.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None


def numbers_of(missing: Collection[str]) -> list[float]:
    """Return the numbers among the strings that represent missing values, in both precisions."""
    parsed = [parse_numbers(need_arrow().array([text])) for text in missing]
    exact = np.array([value[0] for value in parsed if value is not None])
    with np.errstate(over="ignore"):
        numbers: list[float] = np.unique([exact, exact.astype(np.float32)]).tolist()
    return numbers


def without_gaps(values: Float, gaps: Sequence[float]) -> Float:
    """Replace numbers that represent missing values by NaN."""
    return np.where(np.isin(values, gaps), np.nan, values) if gaps else values


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


def blanked(strings: Any, tokens: Collection[str]) -> Any:
    """Strip white space, and replace strings that represent missing values by null.

    Parameters
    ----------
    strings : pyarrow array
        The strings.
    tokens : collection of str
        Strings that represent missing values, in lower case.
    """
    pa = need_arrow()
    pc = pa.compute
    bare = pc.utf8_trim_whitespace(strings)
    gone = pc.is_in(pc.utf8_lower(bare), value_set=pa.array(tokens, pa.string()))
    return pc.if_else(gone, pa.scalar(None, pa.string()), bare)


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
_FOUND = {
    "numeric": "numbers",
    "boolean": "booleans",
    "date": "dates",
    "vector": "lists of numbers",
}


@dataclass(frozen=True)
class Spelling:
    """How strings represent numbers, booleans or dates.

    Parameters
    ----------
    notation : str, default=""
        Notation of numbers.
    tokens : tuple of str, default=()
        Strings that represent missing values, in lower case.
    gaps : sequence of float, default=()
        Numbers that represent missing values.
    """

    notation: str = PLAIN
    tokens: tuple[str, ...] = ()
    gaps: Sequence[float] = ()

    def parser(self, kind: str) -> Callable[[Any], Float | None]:
        """Return the function that parses strings of a kind."""
        if kind == "numeric" and self.notation != PLAIN:
            return partial(parse_notation, notation=self.notation)
        return PARSERS[kind]

    def expected(self, kind: str) -> str:
        """Return what is expected, for messages."""
        if kind == "numeric" and self.notation != PLAIN:
            return f"a number such as {example_of(self.notation)}"
        return _WANTED[kind]


def conform(
    column: Column | None, name: str, kind: str, rows: int, spelling: Spelling | None = None
) -> Column:
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
    spelling : Spelling, default=None
        How strings represent numbers, booleans or dates. By default, in plain notation.
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
        return Numbers(kind, parsed(column.values, name, kind, spelling or Spelling()))
    if column.family != kind and {"vector", "date"} & {column.family, kind}:
        raise ValueError(f"column {name!r} has {_FOUND[column.family]}; expected {_WANTED[kind]}.")
    return column


def parsed(strings: Any, name: str, kind: str, spelling: Spelling) -> Float:
    """Parse strings of a given kind as numbers; raise if any string is invalid."""
    parse = spelling.parser(kind)
    values = parse(strings)
    if values is None:
        strings = blanked(strings, spelling.tokens) if spelling.tokens else strings
        values = parse(strings)
    if values is None:
        row = first_unparsed(strings, parse)
        raise unparsed(row, name, spelling.expected(kind), strings[row].as_py())
    check_finite(values, name)
    return without_gaps(values, spelling.gaps) if kind == "numeric" else values


def unparsed(row: int, name: str, wanted: str, got: str) -> CellError:
    """Return the error about a string that is not a number, a boolean or a date."""
    advice = " If it means that the value is missing, name it in missing."
    advice = "" if any(map(str.isdigit, got)) else advice
    return CellError(row, name, f"expected {wanted}, got {got!r:.60}.{advice}")


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
