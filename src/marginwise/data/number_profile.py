"""Profile of a column of numbers: the moments of the rows seen so far."""

from __future__ import annotations

import math

import numpy as np

from marginwise._arrays import Float
from marginwise.data.columns import Column, Numbers

FEW_ROWS = 20  # below this number of rows, row numbers and identifiers are not recognised


class NumberProfile:
    """Moments of numbers.

    Parameters
    ----------
    family : {"numeric", "boolean", "date"}
        Meaning of the numbers.
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self.rows = self.count = 0
        self.mean = self._squares = 0.0
        self._low, self._high = math.inf, -math.inf
        self._first, self._counts_rows = math.nan, True
        self.whole = True  # whether all numbers are integers that doubles represent exactly

    def update(self, column: Column, name: str) -> None:
        """Take more rows into account."""
        assert isinstance(column, Numbers)
        self.add(column.values)

    def add(self, values: Float) -> None:
        """Take more numbers into account; NaN is a missing value."""
        if self.rows == 0 and len(values):
            self._first = float(values[0])
        if self._counts_rows:
            expected = self._first + np.arange(self.rows, self.rows + len(values))
            self._counts_rows = bool(np.array_equal(values, expected))
        self.rows += len(values)
        values = values[~np.isnan(values)]
        if len(values) == 0:
            return
        self.whole &= bool((values == np.floor(values)).all() and np.abs(values).max() < 2**53)
        self._low = min(self._low, float(values.min()))
        self._high = max(self._high, float(values.max()))
        n, count, mean = len(values), self.count, float(values.mean())
        shift = mean - self.mean
        self.count = count + n
        self.mean += shift * n / self.count
        squares = float(np.square(values - mean).sum())
        self._squares += squares + shift * shift * count * n / self.count

    def skip(self, rows: int) -> None:
        """Take rows without values into account."""
        self.add(np.full(rows, np.nan))

    @property
    def scale(self) -> float:
        """Standard deviation of the values, with missing values replaced by the mean."""
        return math.sqrt(self._squares / max(self.rows, 1)) or 1.0

    def kind(self) -> str:
        """Return the kind of the column."""
        if not self._low < self._high:
            return "constant"
        numbers_rows = self._counts_rows and self._first in (0.0, 1.0)
        if self.family == "numeric" and numbers_rows and self.rows >= FEW_ROWS:
            return "row number"
        return self.family
