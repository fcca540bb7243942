"""Profile of a table: the kinds and statistics of its columns in the rows seen so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from marginwise._warn import warn
from marginwise.data.columns import (
    CellError,
    Column,
    Numbers,
    Strings,
    Vectors,
    need_arrow,
    read_column,
)
from marginwise.data.doubts import doubt_of, oddity_of
from marginwise.data.notations import COMMA, PLAIN
from marginwise.data.number_profile import NumberProfile
from marginwise.data.parsing import TOKENS, blanked, conform, numbers_of, without_gaps
from marginwise.data.profiles import Profile, StringProfile, VectorProfile
from marginwise.data.readings import NOTATIONS, Readings

MEASURED = ("numeric", "boolean", "date")  # kinds of columns that are standardised
UNUSED = ("constant", "identifier", "row number", "dropped")


def missing_column(name: str, names: list[str]) -> str:
    """Return the message for a missing column."""
    listed = ", ".join(repr(one) for one in names[:20]) + (", ..." if len(names) > 20 else "")
    return f"column {name!r} is missing; the data has {listed or 'no columns'}."


class TableProfile:
    """Profiles of all columns of a table.

    Parameters
    ----------
    declared : dict
        Kinds that the user declared, by column name.
    most : int
        Maximum number of categories of a column whose kind is not declared.
    missing : collection of str, default=()
        Strings that represent missing values in all columns.
    notations : sequence of str, default=NOTATIONS
        Notations of numbers in strings, the preferred one first. If empty, strings are not parsed.
    """

    def __init__(
        self,
        declared: dict[str, str],
        most: int,
        missing: Collection[str] = (),
        notations: Sequence[str] = NOTATIONS,
    ) -> None:
        self._declared, self._most = declared, most
        self._missing, self._notations = missing, notations
        self._gaps = numbers_of(missing)
        self.names: list[str] = []
        self.rows = 0
        self._profiles: dict[str, Profile] = {}
        self._vectorizers: dict[str, Any] = {}

    # -- rows ----------------------------------------------------------------------------------

    def observe(self, table: Any) -> None:
        """Add rows."""
        if not self.names:
            self.names = list(table.column_names)
            self._check_names()
        present = set(table.column_names)  # a property that builds a list on each access
        for name in self.names:
            if name not in present:
                raise ValueError(missing_column(name, table.column_names))
            kind = self._declared.get(name)
            if kind == "dropped":
                continue
            column = without(read_column(table[name], name), self._missing, self._gaps)
            if kind is not None and not (kind == "numeric" and isinstance(column, Strings)):
                column = conform(column, name, kind, table.num_rows)
            self._add(name, column, table.num_rows)
        self.rows += table.num_rows

    def _check_names(self) -> None:
        """Raise unless column names are distinct and all declared columns exist."""
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"the table has several columns named {twice[0]!r}; expected distinct names. "
                "Rename one of them."
            )
        for name in self._declared:
            if name not in self.names:
                raise ValueError(missing_column(name, self.names))

    def _add(self, name: str, column: Column | None, rows: int) -> None:
        """Add rows of one column."""
        profile = self._profiles.get(name)
        if isinstance(profile, NumberProfile) and isinstance(column, Strings):
            column = column if len(blanked(column.values, TOKENS).drop_null()) else None
        elif isinstance(profile, StringProfile) and isinstance(column, Numbers):
            profile = None if profile.is_missing else profile
        if column is None:
            if profile is not None:
                profile.skip(rows)
            return
        if profile is None:
            profile = self._profiles[name] = self._new(name, column)
            if self.rows:
                profile.skip(self.rows)
        dates = (profile.family == "date") != (column.family == "date")
        if dates or _form(profile) is not type(column):
            raise CellError(
                0, name, f"the column is {column.family} here, but {profile.family} before."
            )
        profile.update(column, name)

    def _new(self, name: str, column: Column) -> Profile:
        if isinstance(column, Numbers):
            return NumberProfile(column.family)
        if isinstance(column, Vectors):
            return VectorProfile()
        declared = self._declared.get(name)
        if declared == "categorical":
            return StringProfile(None)
        codes = column.coded and declared is None
        if declared == "text" or codes or not self._notations:
            return StringProfile(self._most, as_text=declared == "text")
        readings = Readings(self._notations, declared == "numeric", self._gaps)
        return StringProfile(self._most, readings)

    # -- results -------------------------------------------------------------------------------

    def kinds(self) -> list[str]:
        """Return the kind of each column."""
        return [self._kind(name) for name in self.names]

    def _kind(self, name: str) -> str:
        declared, profile = self._declared.get(name), self._profiles.get(name)
        if declared == "dropped" or profile is None:
            return declared or "constant"
        kind = profile.kind()
        if kind == "row number" and declared == "numeric":
            return "numeric"
        if kind == "text" and self._vectorizer(name) is None:
            return "constant"
        return kind

    def _vectorizer(self, name: str) -> Any:
        """Return the vectorizer of a text column; None if its rows have no terms."""
        profile = self._profiles[name]
        assert isinstance(profile, StringProfile)
        rows, made = self._vectorizers.get(name, (-1, None))
        if rows != self.rows:
            made = profile.counted_terms().vectorizer()
            self._vectorizers[name] = self.rows, made
        return made

    def warn(self, kinds: list[str], doubts: bool = True) -> None:
        """Warn of columns that users may expect to be read differently.

        With `doubts`, these include columns whose numbers can be read in two ways.
        """
        notations = self.notations(kinds)
        commas = any(notation.startswith(COMMA) for notation in notations)
        for name, kind, notation in zip(self.names, kinds, notations, strict=True):
            readings = self._readings(name)
            oddity = None if readings is None else oddity_of(readings, name, kind)
            if oddity is not None:
                warn(oddity)
            elif kind == "identifier":
                warn(
                    f"column {name!r} has too many distinct values to be categories; it is dropped "
                    "as an identifier. Name it in categorical or text to use it, or in drop."
                )
            elif kind == "row number":
                warn(
                    f"column {name!r} numbers the rows; it is dropped. Name it in numeric to use "
                    "it, or in drop."
                )
            if doubts and readings is not None and (commas or notation != PLAIN):
                doubt = doubt_of(readings, name)
                if doubt is not None:
                    warn(doubt)

    def _readings(self, name: str) -> Readings | None:
        profile = self._profiles.get(name)
        return profile.readings if isinstance(profile, StringProfile) else None

    def notations(self, kinds: list[str]) -> list[str]:
        """Return the notation of the numbers in each column; plain for columns of other kinds.

        Beside a column with decimal commas, columns of integers have decimal commas, too.
        """
        found = [
            readings.numbers if kind == "numeric" and (readings := self._readings(name)) else None
            for name, kind in zip(self.names, kinds, strict=True)
        ]
        made = [numbers.notation if numbers else PLAIN for numbers in found]
        if not any(notation.startswith(COMMA) for notation in made):
            return made
        return [
            (numbers and numbers.comma_notation) or notation
            for numbers, notation in zip(found, made, strict=True)
        ]

    def moments(self, kinds: list[str]) -> list[NumberProfile]:
        """Return the moments of the columns that are standardised."""
        found = [self._profiles[name] for name in self._of(MEASURED, kinds)]
        return [p.numbers() if isinstance(p, StringProfile) else p for p in found]  # type: ignore[misc]

    def spelled(self, name: str) -> str:
        """Return how to parse the strings of a column: a kind, "integer", or "as it is"."""
        profile = self._profiles.get(name)
        numbers = profile.numbers() if isinstance(profile, StringProfile) else None
        if numbers is None:
            return "as it is"
        whole = numbers.family == "numeric" and numbers.whole and numbers.count == numbers.rows
        return "integer" if whole else numbers.family

    def categories(self, kinds: list[str]) -> tuple[list[list[str]], list[bool]]:
        """Return the categories of the categorical columns, and whether values are missing."""
        found = [self._profiles[name] for name in self._of(("categorical",), kinds)]
        strings = [profile for profile in found if isinstance(profile, StringProfile)]
        return [p.categories() for p in strings], [p.missing > 0 for p in strings]

    def vectorizers(self, kinds: list[str]) -> list[Any]:
        """Return the vectorizers of the text columns."""
        return [self._vectorizer(name) for name in self._of(("text",), kinds)]

    def sizes(self, kinds: list[str]) -> list[int]:
        """Return the sizes of the vector columns."""
        found = [self._profiles[name] for name in self._of(("vector",), kinds)]
        return [profile.size for profile in found if isinstance(profile, VectorProfile)]

    def nonzeros(self, kinds: list[str]) -> float:
        """Return the expected number of nonzero features per row."""
        total = float(len(self._of((*MEASURED, "categorical"), kinds)) + sum(self.sizes(kinds)))
        for name in self._of(("text",), kinds):
            profile = self._profiles[name]
            assert isinstance(profile, StringProfile)
            terms = profile.counted_terms()
            total += terms.occurrences / max(terms.documents, 1)
        return total

    def _of(self, wanted: tuple[str, ...], kinds: list[str]) -> list[str]:
        """Return the names of the columns of the given kinds."""
        return [name for name, kind in zip(self.names, kinds, strict=True) if kind in wanted]


def without(
    column: Column | None, missing: Collection[str], gaps: Sequence[float]
) -> Column | None:
    """Replace strings that represent missing values by null, and such numbers by NaN."""
    pa = need_arrow()
    if isinstance(column, Strings) and missing:
        bare = pa.compute.utf8_trim_whitespace(column.values)
        gone = pa.compute.is_in(bare, value_set=pa.array(list(missing), pa.string()))
        null = pa.scalar(None, pa.string())
        return replace(column, values=pa.compute.if_else(gone, null, column.values))
    if isinstance(column, Numbers) and column.family == "numeric":
        return replace(column, values=without_gaps(column.values, gaps))
    return column


def _form(profile: Profile) -> type[Column]:
    if isinstance(profile, StringProfile):
        return Strings
    return Vectors if isinstance(profile, VectorProfile) else Numbers
