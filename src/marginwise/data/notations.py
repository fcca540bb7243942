"""Notations of numbers in strings: separators, percent signs and currencies.

A notation is a string: the decimal mark, followed by the sign that accompanies every number, such
as "," for 1.234,5 or ".%" for 12.5%. The empty string is the plain notation of 1234.5 or 1e-3,
without separators of thousands.
"""

from __future__ import annotations

import re
from typing import Any

from marginwise._arrays import Float
from marginwise.data.columns import floats, need_arrow

PLAIN, POINT, COMMA = "", ".", ","
SIGNS = ("%", "‰", "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "¢", "USD", "EUR", "GBP", "JPY", "CHF")

_SPACES = " \u00a0\u2009\u202f'’"  # separators of thousands in addition to the other mark
_SIGN = "(?:" + "|".join(map(re.escape, SIGNS)) + ")"
_BETWEEN = "[ \u00a0\u2009\u202f]?"  # between a sign and its number
_MINUS = "[-+−]"


def _digits(mark: str) -> str:
    """Return a pattern of numbers with a decimal mark, in the syntax of RE2."""
    other = COMMA if mark == POINT else POINT
    whole = rf"(?:[1-9]\d{{0,2}}(?:[{other}{_SPACES}]\d{{3}})+|\d+)"
    return rf"(?:{whole}(?:[{mark}]\d*)?|[{mark}]\d+)(?:[eE][-+]?\d+)?"


def _pattern(digits: str, sign: str) -> str:
    """Return a pattern of numbers with a sign on one side, in the syntax of RE2."""
    before = rf"(?:{_MINUS}?{sign}{_BETWEEN}|{sign}{_BETWEEN}{_MINUS}){digits}"
    return rf"(?:{before}|{_MINUS}?{digits}{_BETWEEN}{sign})"


_DIGITS = {mark: _digits(mark) for mark in (POINT, COMMA)}
_EITHER = f"(?:{_DIGITS[POINT]}|{_DIGITS[COMMA]})"
_UNIT = re.compile(r"[-+−]?[\d.,]*\d ?([^\W\d_][\w/²³]*|°[CF]?)")
_DATE = r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})(?:[T ].*)?"


def sign_of(text: str) -> str:
    """Return the sign that accompanies the number in a string; empty if there is none."""
    return next((sign for sign in SIGNS if sign in text), "")


def parse_notation(strings: Any, notation: str) -> Float | None:
    """Parse strings of a notation other than plain; return None if any string has another one."""
    pc, mark, sign = need_arrow().compute, notation[:1], re.escape(notation[1:])
    fits = pc.match_substring_regex(strings, f"^{_pattern(_DIGITS[mark], sign)}$")
    if not pc.all(fits, min_count=0).as_py():
        return None
    removed = "[+" + _SPACES + (COMMA if mark == POINT else POINT) + "]"
    bare = pc.replace_substring_regex(strings, f"{removed}|{sign}" if sign else removed, "")
    bare = pc.replace_substring(pc.replace_substring(bare, "−", "-"), COMMA, POINT)
    return floats(bare.cast(need_arrow().float64()))


def unit_of(text: str) -> str:
    """Return the unit after the number in a string, such as "kg"; empty if there is none."""
    found = _UNIT.fullmatch(text)
    return "" if found is None or found[1] in SIGNS else found[1]


def is_date(text: str) -> bool:
    """Return whether a string is a date in some notation."""
    return re.fullmatch(_DATE, text) is not None


def look_like_numbers(strings: Any, unit: str = "") -> Any:
    """Return which strings are numbers or dates in some notation, as a pyarrow array of booleans.

    This includes notations that are not read: numbers with `unit`, (5) and 5-, and all dates.
    """
    number = _pattern(_EITHER, f"(?:{_SIGN}|{re.escape(unit)})?")
    pattern = rf"^(?:{number}-?|\({number}\)|{_DATE})$"
    return need_arrow().compute.match_substring_regex(strings, pattern)


def example_of(notation: str) -> str:
    """Return an example of a notation, for messages."""
    number = {PLAIN: "1234.5", POINT: "1,234.5", COMMA: "1.234,5"}[notation[:1]]
    sign = notation[1:]
    return f"{sign}{number}" if sign and sign not in "%‰" else f"{number}{sign}"
