"""Profile of a table: the kinds and statistics of its columns in the rows seen so far."""

from __future__ import annotations

from collections import Counter
from typing import Any

from marginwise._warn import warn
from marginwise.data.columns import (
    CellError,
    Column,
    Numbers,
    Strings,
    Vectors,
    read_column,
)
from marginwise.data.parsing import conform
from marginwise.data.profiles import NumberProfile, Profile, StringProfile, VectorProfile

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
    """

    def __init__(self, declared: dict[str, str], most: int) -> None:
        self._declared, self._most = declared, most
        self.names: list[str] = []
        self.rows = 0
        self._profiles: dict[str, Profile] = {}
        self._vectorizers: dict[str, Any] = {}

    # -- rows ----------------------------------------------------------------------------------

    def observe(self, table: Any, parse: bool = False) -> None:
        """Add rows; with `parse`, columns of strings are parsed if all values allow it."""
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
            column = read_column(table[name], name)
            if kind is not None:
                column = conform(column, name, kind, table.num_rows)
            self._add(name, column, table.num_rows, parse)
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

    def _add(self, name: str, column: Column | None, rows: int, parse: bool) -> None:
        """Add rows of one column."""
        profile = self._profiles.get(name)
        if column is None:
            if profile is not None:
                profile.skip(rows)
            return
        if profile is None:
            profile = self._profiles[name] = self._new(name, column, parse)
            if self.rows:
                profile.skip(self.rows)
        if _form(profile) is not type(column):
            raise CellError(
                0, name, f"the column is {column.family} here, but {profile.family} before."
            )
        profile.update(column, name)

    def _new(self, name: str, column: Column, parse: bool) -> Profile:
        if isinstance(column, Numbers):
            return NumberProfile(column.family)
        if isinstance(column, Vectors):
            return VectorProfile()
        declared = self._declared.get(name)
        if declared == "categorical":
            return StringProfile(None)
        return StringProfile(self._most, parse and declared is None, as_text=declared == "text")

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

    def warn(self, kinds: list[str]) -> None:
        """Warn of columns that users may expect to be read differently."""
        for name, kind in zip(self.names, kinds, strict=True):
            profile = self._profiles.get(name)
            if kind == "identifier":
                warn(
                    f"column {name!r} has too many distinct values to be categories; it is dropped "
                    "as an identifier. Name it in categorical or text to use it, or in drop."
                )
            elif kind == "row number":
                warn(
                    f"column {name!r} numbers the rows; it is dropped. Name it in numeric to use "
                    "it, or in drop."
                )
            if isinstance(profile, StringProfile) and profile.spoiled is not None:
                row, value = profile.spoiled
                warn(
                    f"column {name!r} has numbers up to row {row}, which has {value!r:.60}; it is "
                    f"read as strings ({kind}). If {value!r:.60} means that the value is missing, "
                    "name it in missing."
                )

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


def _form(profile: Profile) -> type[Column]:
    if isinstance(profile, StringProfile):
        return Strings
    return Vectors if isinstance(profile, VectorProfile) else Numbers
