"""Parsing of the columns of CSV files without encoding."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise.data.columns import MICROSECONDS, need_arrow
from marginwise.data.notations import PLAIN
from marginwise.data.parsing import TOKENS, Spelling, parsed
from marginwise.data.table_profile import TableProfile

_SPELLING = Spelling(tokens=TOKENS)
_PARSED = {"integer": "numeric"}


class ColumnTypes:
    """Substitute for an encoder that converts the types of columns without encoding them.

    A column of strings is converted if all of them are numbers, booleans or dates, or missing. All
    other columns remain unchanged.

    Parameters
    ----------
    parse : bool
        Whether to convert strings.
    """

    def __init__(self, parse: bool) -> None:
        self._parse = parse
        self.mean_ = self.scale_ = np.empty(0)

    def _begin(self) -> TableProfile:
        return TableProfile({}, 1, notations=(PLAIN,) if self._parse else ())

    def _conclude(self, profile: TableProfile) -> Self:
        self.feature_names_in_ = np.array(profile.names, dtype=object)
        self.kinds_ = [profile.spelled(name) for name in profile.names]
        self._profile = profile
        return self

    def _check_features(self) -> None:
        """Accept any columns."""

    def get_feature_names_out(self) -> NDArray[Any]:
        """Return the names of the columns."""
        return self.feature_names_in_

    def transform(self, table: Any) -> Any:
        """Return a table with converted columns."""
        pa = need_arrow()
        columns = [
            self._typed(table[name], name, kind)
            for name, kind in zip(self.feature_names_in_.tolist(), self.kinds_, strict=True)
        ]
        return pa.table(columns, names=self.feature_names_in_.tolist())

    def _typed(self, column: Any, name: str, kind: str) -> Any:
        pa = need_arrow()
        if kind == "as it is":
            return column
        values = parsed(column.combine_chunks(), name, _PARSED.get(kind, kind), _SPELLING)
        if kind == "integer":
            return pa.array(values.astype(np.int64))
        if kind == "boolean":
            return pa.array(values == 1, mask=np.isnan(values))
        if kind == "date":
            return pa.array(_moments(values), pa.timestamp("us"), mask=np.isnan(values))
        return pa.array(values, mask=np.isnan(values))


def _moments(days: Float) -> NDArray[np.int64]:
    """Convert days since 1970 to microseconds."""
    return np.rint(np.nan_to_num(days) * MICROSECONDS).astype(np.int64)
