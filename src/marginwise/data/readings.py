"""Readings of a column of strings as numbers, booleans or dates."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from marginwise._arrays import Float
from marginwise.data.columns import check_finite, need_arrow
from marginwise.data.notations import (
    COMMA,
    PLAIN,
    POINT,
    look_like_numbers,
    parse_notation,
    sign_of,
    unit_of,
)
from marginwise.data.number_profile import NumberProfile
from marginwise.data.parsing import (
    PARSERS,
    TOKENS,
    Spelling,
    blanked,
    first_unparsed,
    parse_numbers,
    unparsed,
    without_gaps,
)

NOTATIONS = (PLAIN, POINT, COMMA)
MOST_ODD = 3  # maximum number of strings that messages list


class NumberReadings:
    """Readings of strings as numbers in several notations.

    Readings share one profile until their values differ.

    Parameters
    ----------
    notations : sequence of str
        Notations to try, the preferred one first.
    gaps : sequence of float, default=()
        Numbers that represent missing values.
    """

    def __init__(self, notations: Sequence[str], gaps: Sequence[float] = ()) -> None:
        self._gaps = gaps
        self._profiles = dict.fromkeys(notations, NumberProfile("numeric"))
        self._sign: str | None = None  # sign of the first number; None before there is one
        self._example: str | None = None  # a string whose values differ between readings

    def __bool__(self) -> bool:
        return bool(self._profiles)

    @property
    def notation(self) -> str:
        """The preferred of the possible notations."""
        return self._with_sign(next(iter(self._profiles)))

    def _with_sign(self, mark: str) -> str:
        return PLAIN if mark == PLAIN else mark + (self._sign or "")

    @property
    def comma_notation(self) -> str | None:
        """The notation with a decimal comma, if all numbers are the same in it."""
        same = COMMA in self._profiles and self._example is None
        return self._with_sign(COMMA) if same else None

    @property
    def doubtful(self) -> str | None:
        """A string that is another number in another notation, if both are possible."""
        both = COMMA in self._profiles and len(self._profiles) > 1
        return self._example if both else None

    @property
    def profile(self) -> NumberProfile:
        """Moments of the numbers in the preferred notation."""
        return next(iter(self._profiles.values()))

    def parse_plain(self, strings: Any) -> Float | None:
        """Parse strings in plain notation, unless a previous string had another one."""
        values = parse_numbers(strings) if PLAIN in self._profiles else None
        return values if values is None else without_gaps(values, self._gaps)

    def update(self, strings: Any, plain: Float | None, name: str) -> int | None:
        """Take more strings into account, of which `plain` are the values in plain notation.

        Return the row of the string that ends all readings, or None.
        """
        found = self._values(strings, plain)
        if not found:
            row = max(self._first_unread(strings, mark) for mark in self._profiles)
            self._profiles = {}
            return row
        check_finite(next(iter(found.values())), name)
        self._profiles = {mark: self._profiles[mark] for mark in found}
        if len({id(values) for values in found.values()}) > 1:
            self._separate(strings)
        for profile, values in {
            id(self._profiles[mark]): (self._profiles[mark], values)
            for mark, values in found.items()
        }.values():
            profile.add(values)
        return None

    def skip(self, rows: int) -> None:
        """Take rows without values into account."""
        for profile in {id(profile): profile for profile in self._profiles.values()}.values():
            profile.skip(rows)

    def _values(self, strings: Any, plain: Float | None) -> dict[str, Float]:
        """Return the values of each reading that is possible; equal ones are one object."""
        if self._sign is None and strings.null_count < len(strings):
            self._sign = "" if plain is not None else sign_of(strings.drop_null()[0].as_py())
        if plain is not None and (COMMA not in self._profiles or not _contain(strings, POINT)):
            return dict.fromkeys(self._profiles, plain)
        found = {}
        for mark in self._profiles:
            values = plain
            if mark == COMMA or (mark == POINT and plain is None):
                values = parse_notation(strings, self._with_sign(mark))
            if values is not None:
                found[mark] = values if values is plain else without_gaps(values, self._gaps)
        return found

    def _first_unread(self, strings: Any, mark: str) -> int:
        return first_unparsed(strings, Spelling(self._with_sign(mark)).parser("numeric"))

    def _separate(self, strings: Any) -> None:
        """Give a profile of its own to each reading, because their values differ from now on."""
        if not (_contain(strings, POINT) or _contain(strings, COMMA)):
            return
        self._profiles = {mark: copy(profile) for mark, profile in self._profiles.items()}
        if self._example is None:
            marked = need_arrow().compute.match_substring_regex(strings, "[.,]")
            self._example = strings.filter(marked)[0].as_py()


class Readings:
    """Readings of a column of strings that all strings seen so far allow.

    Parameters
    ----------
    notations : sequence of str, default=NOTATIONS
        Notations of numbers to try, the preferred one first.
    only : bool, default=False
        Whether the column is declared as numeric, so that other strings raise an error.
    gaps : sequence of float, default=()
        Numbers that represent missing values.
    """

    def __init__(
        self,
        notations: Sequence[str] = NOTATIONS,
        only: bool = False,
        gaps: Sequence[float] = (),
    ) -> None:
        self.numbers = NumberReadings(notations, gaps)
        self._only = only
        others = [] if only else [kind for kind in PARSERS if kind != "numeric"]
        self._others = {kind: NumberProfile(kind) for kind in others}
        self.numeric = self.present = 0  # numbers, and strings that are not missing
        self.odd: list[str] = []  # strings that ended the reading as numbers
        self.row: int | None = None  # row of the first of them
        self.unit = ""  # unit of the number in the first of them
        self._rows = 0

    @property
    def are_possible(self) -> bool:
        """Whether all strings seen so far are numbers, booleans, dates or missing."""
        return bool(self.numbers or self._others)

    def profile(self) -> NumberProfile | None:
        """Return the moments if all strings can be parsed, None otherwise."""
        found = [self.numbers.profile] if self.numbers else []
        return next((one for one in [*found, *self._others.values()] if one.count), None)

    def update(self, strings: Any, name: str) -> None:
        """Take more strings into account."""
        plain = self.numbers.parse_plain(strings)
        if plain is None:
            strings = blanked(strings, TOKENS)
            plain = self.numbers.parse_plain(strings)
        for kind in list(self._others):
            values = PARSERS[kind](strings)
            if values is None:
                del self._others[kind]
            else:
                self._others[kind].add(values)
        if self.numbers:
            before = self.numbers.profile.count
            row = self.numbers.update(strings, plain, name)
            if row is not None:
                self._end(strings, row, name, before)
        if not self.numbers:
            self._look(strings)
        self._rows += len(strings)

    def skip(self, rows: int) -> None:
        """Take rows without values into account."""
        self.numbers.skip(rows)
        for profile in self._others.values():
            profile.skip(rows)
        self._rows += rows

    def _end(self, strings: Any, row: int, name: str, before: int) -> None:
        """Record the string that is not a number like those before it."""
        value = strings[row].as_py()
        if self._only:
            raise unparsed(row, name, "a number", value)
        self.row, self.odd = self._rows + row, [value]
        self.unit = unit_of(value)
        self.numeric = self.present = before

    def _look(self, strings: Any) -> None:
        """Count the strings that are numbers, and record some of the others."""
        pc = need_arrow().compute
        looks = look_like_numbers(strings, self.unit)
        self.numeric += pc.sum(looks, min_count=0).as_py()
        self.present += len(strings) - strings.null_count
        if len(self.odd) < MOST_ODD:
            others = strings.filter(pc.invert(looks)).unique().to_pylist()
            self.odd = list(dict.fromkeys([*self.odd, *others]))[:MOST_ODD]


def _contain(strings: Any, mark: str) -> bool:
    """Return whether any string contains a mark."""
    pc = need_arrow().compute
    return bool(pc.any(pc.match_substring(strings, mark), min_count=0).as_py())
