"""Labels in a column of a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise.data.columns import CellError, need_arrow
from marginwise.data.errors import DataError
from marginwise.data.parsing import TOKENS, parse_numbers

MOST_CLASSES = 10_000
EXPECTED = "expected a class: a string or an integer"
USUAL = re.compile(r"[+-]?(0|[1-9]\d*)(\.0+)?", re.ASCII)  # form of labels that become integers


class LabelColumn:
    """Reader of the label column of a table, which also determines the classes.

    Parameters
    ----------
    name : str
        Name of the column.
    parse : bool
        Whether to convert labels to integers if all of them are integers in their usual form.
    classes : ndarray or None, default=None
        All class labels, if they are known in advance.
    """

    def __init__(self, name: str, parse: bool, classes: NDArray[Any] | None = None) -> None:
        self.name, self._parse = name, parse
        self._classes, self._declared = classes, classes is not None
        self._found: set[Any] = set()
        self._places: dict[Any, str] = {}

    def observe(self, table: Any, place: Callable[[int], str]) -> None:
        """Record the labels of some rows; `place` returns the location of a row, for messages."""
        values = self._values(table)
        for value in set(values.tolist()) - self._found:
            self._found.add(value)
            row = int(np.flatnonzero(values == value)[0])
            if len(self._found) > MOST_CLASSES:
                raise CellError(
                    row,
                    self.name,
                    f"there are more than {MOST_CLASSES} distinct labels; {EXPECTED}. Name the "
                    "column of the label.",
                )
            if self._parse:
                self._places[value] = place(row)

    @property
    def classes(self) -> NDArray[Any]:
        """All class labels, sorted."""
        if self._classes is None:
            self._classes = np.unique(self._as_numbers(np.array(sorted(self._found))))
        return self._classes

    def read(self, table: Any) -> NDArray[Any]:
        """Return the labels of some rows."""
        values = self._values(table)
        if self._classes is None and not self._found:
            return values
        if self._declared:
            self._check(values)
        if self._parse and self.classes.dtype.kind in "iufb":
            return self._numbers(values)
        return values

    def _check(self, values: NDArray[Any]) -> None:
        """Raise unless all labels are among the declared classes."""
        known: set[Any] = set(self.classes.tolist())
        found, first = np.unique(values, return_index=True)
        for label, row in sorted(zip(found.tolist(), first.tolist(), strict=True), key=_second):
            numeric = isinstance(label, str) and self.classes.dtype.kind in "iufb"
            usual = self._parse and numeric and USUAL.fullmatch(label)
            value = int(label.partition(".")[0]) if usual else label
            if value not in known:
                raise CellError(
                    row,
                    self.name,
                    f"the label {value!r:.60} is not one of the classes "
                    f"{self.classes.tolist()[:20]}.",
                )

    def _values(self, table: Any) -> NDArray[Any]:
        """Return the labels as stored: strings, integers or booleans."""
        pa = need_arrow()
        column = table[self.name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy())[0])
            raise CellError(row, self.name, f"the label is missing; {EXPECTED}.")
        types, kind = pa.types, column.type
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return np.array(column.to_pylist(), dtype=str)
        if types.is_boolean(kind) or types.is_integer(kind):
            return np.asarray(column.to_numpy())
        if types.is_floating(kind) or types.is_decimal(kind):
            return self._integers(np.asarray(column.cast(pa.float64()).to_numpy()))
        raise CellError(0, self.name, f"the label has the type {kind}; {EXPECTED}.")

    def _integers(self, values: NDArray[Any]) -> NDArray[Any]:
        """Convert numbers to integers; raise if any is not an integer."""
        wrong = np.flatnonzero(~(np.abs(values) < 2**53) | (values != np.floor(values)))
        if wrong.size:
            row = int(wrong[0])
            fault = "is missing" if np.isnan(values[row]) else f"is the number {values[row]:g}"
            if abs(values[row]) >= 2**53:
                fault += ", of which not all digits can be stored"
            raise CellError(
                row, self.name, f"the label {fault}; {EXPECTED}. Name the column of the label."
            )
        return values.astype(np.int64)

    def _numbers(self, values: NDArray[Any]) -> NDArray[Any]:
        """Convert strings to integers."""
        pa = need_arrow()
        numbers = parse_numbers(pa.array(values.tolist(), pa.string()))
        assert numbers is not None  # because all classes are numbers
        return self._integers(numbers)

    def _as_numbers(self, found: NDArray[Any]) -> NDArray[Any]:
        """Convert labels to integers if all of them are integers in their usual form.

        Otherwise, labels remain strings, so that 01 and 1 are different classes.
        """
        if not self._parse:
            return found
        pa, labels = need_arrow(), found.tolist()
        present = [label for label in labels if label.lower() not in TOKENS]
        if not present or parse_numbers(pa.array(present)) is None:
            return found
        for label in sorted(set(labels) - set(present)):
            raise DataError(
                f"{self._places[label]}column {self.name!r}: the label is {label!r}, but all other "
                "labels are numbers; expected a class. Remove the row, or rename the class."
            )
        try:
            numbers = self._numbers(found)
        except CellError as error:
            place = self._places[found[error.row]]
            raise DataError(f"{place}column {self.name!r}: {error.fault}") from error
        usual = all(USUAL.fullmatch(label) for label in labels)
        return numbers if usual and len(np.unique(numbers)) == len(labels) else found


def _second(pair: tuple[Any, int]) -> int:
    return pair[1]
