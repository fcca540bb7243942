"""The number of vectors: candidate sizes, and the smallest one that is accurate enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginwise._arrays import Float, Ints, Labels
from marginwise._compression.basis import SEED

SMALLEST = 8
RATIO = 2**0.5  # of successive sizes
HELD_OUT = 5  # one row in HELD_OUT is held out


def sizes_up_to(most: int) -> list[int]:
    """Return sizes in geometric progression that end with the largest."""
    sizes = [most]
    while sizes[-1] > SMALLEST:
        sizes.append(max(round(sizes[-1] / RATIO), SMALLEST))
    return sizes[::-1]


def held_out(labels: Labels) -> Any:
    """Choose a fifth of the rows of each class at random; return a mask.

    Classes of fewer than five rows are not held out, so that no class is lost.
    """
    rng = np.random.default_rng(SEED)
    mask = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == label))
        mask[own[: len(own) // HELD_OUT]] = True
    if not mask.any():
        raise ValueError(
            f"choosing a size needs {HELD_OUT} rows or more of some class, to hold a part of them "
            "out. Pass more rows, or max_vectors alone."
        )
    return mask


@dataclass
class Curve:
    """Held-out errors by the number of vectors.

    Parameters
    ----------
    sizes : ndarray of int64
        Sizes that were tried.
    errors : ndarray of float64
        Errors on the held-out rows.
    full : float
        Error of the model that was compressed.
    """

    sizes: Ints
    errors: Float
    full: float


def climb(
    most: int, full: float, increase: float | None, error_of: Callable[[int], float], *, all_: bool
) -> tuple[int, Curve]:
    """Try increasing sizes; choose the smallest one with an acceptable increase of the error.

    Parameters
    ----------
    most : int
        The largest size.
    full : float
        Error of the model that is compressed.
    increase : float or None
        Acceptable increase of the error. None chooses the largest size.
    error_of : callable
        Returns the error at a size.
    all_ : bool
        Whether to try all sizes instead of stopping at the chosen one.

    Returns
    -------
    size : int
        The chosen size; the largest one if no increase is acceptable.
    curve : Curve
        Errors of the sizes that were tried.
    """
    chosen, sizes, errors = most, [], []
    for size in sizes_up_to(most):
        sizes.append(size)
        errors.append(error_of(size))
        if increase is not None and size < chosen and errors[-1] <= full + increase:
            chosen = size
            if not all_:
                break
    return chosen, Curve(np.array(sizes, dtype=np.int64), np.array(errors), full)
