"""Foresight: decision values of rows, computed before the model learned them.

For each binary problem, the core stores the most recent values with the labels of the rows.
Calibration curves are fitted to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, spread_rows
from marginwise._core import Learner32, Learner64

MOST_KEPT = 4096  # values per problem
MOST_SEEN = 2**62
MOST_ERRORS = 4.0  # standard errors by which the shares of a class may differ
# To leave all rows out, at most about STEPS steps, and WORK updates of a gradient.
STEPS, WORK = 200_000, 400_000_000
FLOATS = np.finfo(np.float32)
FORM = 2  # of stored values; the curves of models that lack it remain those of earlier versions
TYPES = {"seen": "int64", "kept": "int64", "f": "float64", "weight": "float32"}


@dataclass(frozen=True)
class Foresight:
    """Decision values of rows before the binary problems of a model learned them.

    Parameters
    ----------
    seen : ndarray of shape (n_problems,)
        Number of values that each problem has recorded.
    kept : ndarray of shape (n_problems,)
        Number of values that it still stores.
    f : ndarray of shape (n_values,)
        Decision values, one problem after the other.
    weight : ndarray of shape (n_values,), dtype=float32
        Weights of the rows, with the sign of their label.
    """

    seen: Ints
    kept: Ints
    f: Float
    weight: NDArray[np.float32]

    @classmethod
    def of(cls, native: Learner32 | Learner64) -> Self:
        """Return the foresight of a native model."""
        return cls(*native.foresight())

    @classmethod
    def held_out(cls, f: Float, weights: Float) -> Self:
        """Return the foresight for rows that were held out, as in cross-validation.

        Parameters
        ----------
        f : ndarray of shape (n_rows, n_problems)
            Decision values; values that are not finite are ignored.
        weights : ndarray of shape (n_rows, n_problems)
            Weights, with the sign of the label in each problem; 0 if the problem excludes the row.
        """
        known = np.isfinite(f) & (weights != 0)
        f = np.clip(f, FLOATS.min, FLOATS.max)
        weights = np.sign(weights) * np.clip(np.abs(weights), FLOATS.tiny, FLOATS.max)
        columns = []
        for c in range(f.shape[1]):
            rows = np.flatnonzero(known[:, c])
            columns.append(rows[spread_rows(len(rows), MOST_KEPT)] if len(rows) else rows)
        return cls._of_columns(
            [(f[rows, c], weights[rows, c]) for c, rows in enumerate(columns)],
            seen=[2 * len(rows) for rows in columns],
        )

    @classmethod
    def _of_columns(
        cls, columns: Sequence[tuple[NDArray[Any], NDArray[Any]]], seen: Iterable[int]
    ) -> Self:
        f, weight = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        kept = np.array([len(values) for values, _ in columns], dtype=np.int64)
        return cls(
            np.array(list(seen), dtype=np.int64),
            kept,
            f.astype(np.float64),
            weight.astype(np.float32),
        )

    @property
    def columns(self) -> list[tuple[Float, NDArray[np.float32]]]:
        """Values and signed weights of each problem."""
        ends = np.cumsum(self.kept)[:-1]
        return list(zip(np.split(self.f, ends), np.split(self.weight, ends), strict=True))

    def grown(self, sources: Iterable[tuple[int | None, bool]]) -> Foresight:
        """Return the foresight of a model with more classes.

        For each problem, `sources` contains the previous problem that it continues, or None, and
        whether its classes have swapped sides.
        """
        nothing = np.empty(0)
        before, columns, seen = self.columns, [], []
        for source, mirrored in sources:
            f, weight = (nothing, nothing) if source is None else before[source]
            columns.append((-f, -weight) if mirrored else (f, weight))
            seen.append(0 if source is None else int(self.seen[source]))
        return self._of_columns(columns, seen)

    def completed(self, other: Foresight) -> Foresight:
        """Return this foresight; problems that lack a class take the values of another one."""
        seen, columns = self.seen.copy(), self.columns
        for c, (_, weight) in enumerate(columns):
            if not (weight > 0).any() or not (weight < 0).any():
                seen[c], columns[c] = other.seen[c], other.columns[c]
        return self._of_columns(columns, seen)

    def represents(self, signed: Float) -> bool:
        """Return whether these values have about the same shares of classes as other rows.

        `signed` contains the weights of the other rows, as in `held_out`.
        """
        for (_, weight), other in zip(self.columns, signed.T, strict=True):
            counts = np.array(
                [[(w > 0).sum(), (w < 0).sum()] for w in (weight, other[other != 0])], dtype=float
            )
            rows, positive = counts.sum(axis=1), counts[:, 0].sum() / max(counts.sum(), 1.0)
            if not rows.all():
                return False
            share = counts[:, 0] / rows
            error = np.sqrt(positive * (1 - positive) * (1 / rows).sum())
            if abs(share[0] - share[1]) > MOST_ERRORS * error:
                return False
        return True

    def give(self, native: Learner32 | Learner64) -> None:
        """Store these values in a native model."""
        native.set_foresight(self.seen, self.kept, self.f, self.weight)

    @classmethod
    def check(cls, state: Any, problems: int) -> None:
        """Raise ValueError unless an external state is valid for this number of problems."""
        if not isinstance(state, Mapping) or set(state) - {"form"} != set(TYPES):
            raise ValueError(f"_foresight must have the parts {', '.join(TYPES)}")
        if state.get("form", FORM) != FORM or type(state.get("form", FORM)) is not int:
            raise ValueError(f"form of _foresight must be {FORM}")
        for name, dtype in TYPES.items():
            array = state[name]
            if name == "f" and "form" not in state:
                dtype = "float32"
            if type(array) is not np.ndarray or array.dtype != dtype or array.ndim != 1:
                raise ValueError(f"{name} of _foresight must be a list of {dtype}")
        seen, kept = state["seen"], state["kept"]
        if len(seen) != problems or not ((seen >= 0) & (seen <= MOST_SEEN)).all():
            raise ValueError("seen of _foresight must be a count for each problem")
        if len(kept) != problems or not ((kept >= 0) & (kept <= MOST_KEPT)).all():
            raise ValueError("kept of _foresight must be a count for each problem")
        if not len(state["f"]) == len(state["weight"]) == int(kept.sum()):
            raise ValueError("f and weight of _foresight must have a value for each that is kept")
        if not (
            np.isfinite(state["f"]) & np.isfinite(state["weight"]) & (state["weight"] != 0)
        ).all():
            raise ValueError("f and weight of _foresight must be finite, and no weight 0")


@dataclass(frozen=True)
class LeftOut:
    """Rows that a model has learned, for decision values of the model without each of them.

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
        Their ids.
    f : ndarray of shape (n_rows, n_problems)
        Decision values of the model with all rows, which hold if the model does not store the row;
        NaN where it is known to store it.
    signed : ndarray of shape (n_rows, n_problems)
        Weights, with the sign of the label in each problem; 0 if the problem excludes the row.
    """

    ids: Ints
    f: Float
    signed: Float

    def foresight(self, native: Learner32 | Learner64) -> Foresight:
        """Return the decision value of each row without this row."""
        without = native.leave_out(self.ids, min(STEPS, WORK // max(native.size, 1)))
        return Foresight.held_out(np.where(np.isnan(without), self.f, without), self.signed)
