"""Messages about columns of strings that may be numbers."""

from __future__ import annotations

import math

from marginwise.data.columns import need_arrow
from marginwise.data.notations import COMMA, POINT, is_date, parse_notation
from marginwise.data.readings import Readings


def oddity_of(readings: Readings, name: str, kind: str) -> str | None:
    """Return the message for a column of strings of which most are numbers, or None."""
    if readings.are_possible or 2 * readings.numeric <= readings.present:
        return None
    read = "dropped as an identifier" if kind == "identifier" else f"read as strings ({kind})"
    if readings.unit:
        return (
            f"column {name!r} has numbers with the unit {readings.unit!r}, first in row "
            f"{readings.row}; it is {read}. Remove the unit, or name the column in categorical, "
            "text or drop."
        )
    first, *others = (f"{value!r:.60}" for value in readings.odd)
    dates = is_date(readings.odd[0])
    if readings.numeric == readings.present:
        what = "dates in an unknown notation" if dates else "numbers in different notations"
        advice = "dates as 2024-01-31" if dates else "all numbers in one notation"
        return (
            f"column {name!r} has {what}, such as {first} in row {readings.row}; it is {read}. "
            f"Write {advice}, or name the column in categorical, text or drop."
        )
    share = math.floor(100 * readings.numeric / readings.present)
    what, odd = ("dates", others) if dates else ("numbers", [first, *others])
    place = "" if dates else f", first in row {readings.row}"
    return (
        f"column {name!r} has {what} in {share} % of its values, but also {' and '.join(odd)}"
        f"{place}; it is {read}. If they mean that the value is missing, name them in "
        "missing; otherwise name the column in categorical, text or drop."
    )


def doubt_of(readings: Readings, name: str) -> str | None:
    """Return the message for a column whose numbers can be read in two ways, or None."""
    text = readings.numbers.doubtful
    if text is None:
        return None
    sign = readings.numbers.notation[1:]
    array = need_arrow().array([text])
    values = [parse_notation(array, mark + sign) for mark in (POINT, COMMA)]
    point, comma = (f"{float(value[0]):.15g}" for value in values if value is not None)
    return (
        f"column {name!r} has numbers such as {text!r:.60}, which can be {point} or {comma}; they "
        f"are read as {point}. Pass decimal=',' if the comma is the decimal mark, and decimal='.' "
        "if it is not."
    )
