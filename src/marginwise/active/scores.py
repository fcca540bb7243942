"""How much a row is worth asking about: pure functions of decision values.

Decision values come as ``(n,)`` for two classes, else ``(n, n_classes)``. Each function returns a
number a row, and the row with the smallest is the first to be asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

ENOUGH = 5  # rows within the margin that end an autoactive sample
MOST_SAMPLED = 100  # rows of an autoactive sample, however few are


def pool_size_for(top: float = 0.05, confidence: float = 0.95) -> int:
    """Return how many rows to sample so that the best of them is likely among the best of all.

    It is log(1 - confidence) / log(1 - top), rounded up, however large the pool is
    [ertekin2007, eq. 7].

    Parameters
    ----------
    top
        Share of the pool that is good enough, such as 0.05 for the best twentieth.
    confidence
        Probability that the best of the sample is in that share.

    Examples
    --------
    >>> from marginwise.active import pool_size_for
    >>> pool_size_for(top=0.05, confidence=0.95)
    59
    """
    for name, value in (("top", top), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value!r}.")
    size = math.log1p(-confidence) / math.log1p(-top)
    return max(1, math.ceil(size * (1 - 1e-12)))  # what rounding adds is no row


def closeness(scores: Float) -> Float:
    """Return how far rows are from the boundary: |f|, or half the lead of the best class.

    With two classes, one-vs-rest values would be f and -f, and half the lead |f|: the two agree. A
    row within the margin has a value below 1.

    Parameters
    ----------
    scores
        Decision values, ``(n,)`` or ``(n, n_classes)``.
    """
    if scores.ndim == 1:
        return np.abs(scores)
    best = np.partition(scores, -2, axis=1)
    lead: Float = (best[:, -1] - best[:, -2]) / 2
    return lead


def least_positive(scores: Float) -> Float:
    """Return rows by their largest value, the surest positives first [laskov2006, 6.2]."""
    highest: Float = scores if scores.ndim == 1 else scores.max(axis=1)
    return -highest


def disagreement(scores: Float, labels: NDArray[np.intp]) -> Float:
    """Return y f(x): rows whose noted label the model contradicts most come first.

    Parameters
    ----------
    scores
        Decision values.
    labels
        The class of each row by its place; -1 where none is noted, and `closeness` counts.
    """
    near = closeness(scores)
    if scores.ndim == 1:
        own = np.where(labels == 1, scores, -scores)
    else:
        rows = np.arange(len(scores))
        others = scores.copy()
        others[rows, labels] = -np.inf
        own = (scores[rows, labels] - others.max(axis=1)) / 2
    values: Float = np.where(labels >= 0, own, near)
    return values


def autoactive_size(scores: Float, delta: float) -> int:
    """Return after how many rows sampling stops: `ENOUGH` within 1 + δ/2 [bordes2005, 4.4]."""
    inside = np.flatnonzero(closeness(scores) < 1 + max(delta, 0.0) / 2)
    return int(inside[ENOUGH - 1]) + 1 if len(inside) >= ENOUGH else len(scores)


def by_function(function: Callable[[Float], Any]) -> Callable[[Float], Float]:
    """Wrap a user's function, of which the largest value is to be asked first."""

    def values(scores: Float) -> Float:
        found = np.asarray(function(scores.copy()), dtype=np.float64)
        if found.shape != (len(scores),):
            raise ValueError(
                f"the strategy must return one value for each of {len(scores)} rows, got an array "
                f"of shape {found.shape}."
            )
        if np.isnan(found).any():
            row = int(np.flatnonzero(np.isnan(found))[0])
            raise ValueError(f"the strategy returned NaN for row {row} of those it was given.")
        return -found

    return values
