"""Validation of rows, labels and classes passed to a learner."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginwise._arrays import Ints
from marginwise._checks import plain

# Purpose of a question: selected by the strategy, drawn at random, or taught without being asked.
STRATEGY, AUDIT, GIVEN = PURPOSES = ("strategy", "audit", "given")


def row_numbers(rows: Any, n: int) -> Ints:
    """Return one or several distinct row indices as an array."""
    numbers = any_rows(rows, n)
    if numbers.size == 0:
        raise ValueError("rows is empty; pass one row number or more.")
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) < len(numbers):
        raise ValueError(f"rows contains row {values[counts > 1][0]} twice; pass each row once.")
    return numbers


def any_rows(rows: Any, n: int) -> Ints:
    """Return any number of row indices as an array."""
    numbers = np.atleast_1d(np.asarray(rows))
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise TypeError(f"rows must be an integer or a sequence of integers, got {rows!r:.60}.")
    check_inside(numbers, n)
    return numbers.astype(np.int64)


def check_inside(rows: NDArray[Any], n: int) -> None:
    """Raise if a row is outside a pool of n."""
    outside = rows[(rows < 0) | (rows >= n)]
    if len(outside):
        raise IndexError(
            f"row {outside[0]} is outside the pool; its rows are numbered 0 to {n - 1}."
        )


def check_labels(labels: Sequence[Any], given: NDArray[Any] | None, known: NDArray[Any]) -> None:
    """Raise if labels are not among the classes or have another type."""
    for label in labels:
        if given is not None and not contains(given, label):
            raise ValueError(
                f"label {plain(label)!r} is not one of the classes {plain(given)}; pass all labels "
                "that may occur as classes when the learner is created."
            )
    first = (known.tolist() or list(labels[:1]) or [None])[0]
    odd = [label for label in labels if _kind(label) != _kind(first)]
    if odd:
        raise TypeError(
            f"labels must be all strings or all numbers, got {plain(first)!r} and "
            f"{plain(odd[0])!r}; convert them to one type."
        )


def _kind(label: Any) -> str:
    return "string" if isinstance(label, str) else "number"


def contains(classes: NDArray[Any], label: Any) -> bool:
    """Return whether a label is one of the classes."""
    return label in classes.tolist()


def positive_integer(value: Any, name: str) -> int:
    """Return an integer that must be at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {plain(value)!r}.")
    return int(value)


def checked_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return distinct classes, sorted."""
    given = np.asarray(classes, dtype=object).ravel().tolist()
    simple = all(isinstance(label, str | int | float | np.generic) for label in given)
    if not simple or len({_kind(label) for label in given}) > 1:
        raise TypeError(f"classes must be all strings or all numbers, got {plain(given)}.")
    found = np.unique(np.asarray(classes))
    if len(found) < 2:
        raise ValueError(f"classes must contain at least two classes, got {plain(found)}.")
    return found


def plain_answers(labels: Any, rows: Ints) -> list[Any]:
    """Return one label per row, as plain Python values."""
    several = np.ndim(labels) > 0 and not isinstance(labels, str)
    # Not via an array, which would convert all labels to strings if any label is a string.
    given = list(labels) if several else [labels]
    found = [label.item() if isinstance(label, np.generic) else label for label in given]
    if len(found) != len(rows):
        raise ValueError(f"got {len(found)} labels for {len(rows)} rows; pass one label per row.")
    for row, label in zip(rows.tolist(), found, strict=True):
        missing = label is None or (isinstance(label, float) and not np.isfinite(label))
        if missing or not isinstance(label, str | int | float):
            raise ValueError(
                f"the label of row {row} is {label!r}; expected a string or a finite number. Use "
                "skip() for a row without a label."
            )
    return found


def check_purposes(purposes: Sequence[str]) -> list[str]:
    """Return the purposes of questions, after validation."""
    for purpose in purposes:
        if purpose not in PURPOSES:
            listed = ", ".join(repr(name) for name in PURPOSES)
            raise ValueError(f"purpose must be one of {listed}, got {purpose!r}.")
    return list(purposes)


def noted_labels(y_pool: Any, n: int) -> NDArray[Any] | None:
    """Return noisy labels, with None for missing ones."""
    if y_pool is None:
        return None
    given = np.asarray(y_pool, dtype=object)
    if given.shape != (n,):
        raise ValueError(
            f"y_pool must have one entry for each of the {n} rows of X_pool, got an array of shape "
            f"{given.shape}; use None or NaN for rows without a label."
        )
    noted = np.empty(n, dtype=object)
    noted[:] = [None if _is_missing(label) else label for label in given.tolist()]
    return noted


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # comparisons with pandas.NA have no truth value
        return True


def places_of(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the class index of each label, or -1 for missing labels."""
    places: dict[Hashable, int] = {label: k for k, label in enumerate(classes.tolist())}
    return np.array([places.get(label, -1) for label in labels.tolist()], dtype=np.intp)
