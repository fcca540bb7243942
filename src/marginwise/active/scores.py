"""Query scores: functions of decision values.

Decision values have shape ``(n,)`` for two classes, otherwise ``(n, n_classes)``. Each function
returns one number per row, and the row with the smallest number is queried first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._core import ENOUGH_INSIDE

Float = NDArray[np.float64]


def pool_size_for(top: float = 0.05, confidence: float = 0.95) -> int:
    """Compute the sample size for approximately optimal queries.

    The best row of a sample of this size is, with the given confidence, among the best fraction
    `top` of the pool. The size is ``log(1 - confidence) / log(1 - top)``, rounded up, and does not
    depend on the size of the pool [ertekin2007]_.

    Parameters
    ----------
    top : float, default=0.05
        Fraction of the pool that counts as best, between 0 and 1 (exclusive).
    confidence : float, default=0.95
        Probability that the best row of the sample belongs to this fraction.

    Returns
    -------
    size : int
        Number of rows to sample.

    See Also
    --------
    ActiveLearner : Pool-based active learner with the parameter `pool_size`.

    References
    ----------
    .. [ertekin2007] S. Ertekin, J. Huang, L. Bottou and C. L. Giles, "Learning on the Border:
       Active Learning in Imbalanced Data Classification", CIKM, 2007.

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
    return max(1, math.ceil(size * (1 - 1e-12)))  # tolerance for rounding errors


def closeness(scores: Float) -> Float:
    """Compute the distance of rows from the decision boundary.

    The distance is ``abs(f)`` for two classes, and half the difference between the two largest
    decision values for more classes. Both definitions agree for two classes, whose one-vs-rest
    values are f and -f. Rows inside the margin have a distance less than 1.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Decision values.

    Returns
    -------
    distance : ndarray of shape (n_rows,)
        Distances from the boundary.

    See Also
    --------
    MarginExhausted : Stop when no unseen row is inside the margin.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise.active import closeness
    >>> closeness(np.array([-2.0, 0.5]))
    array([2. , 0.5])
    """
    if scores.ndim == 1:
        return np.abs(scores)
    best = np.partition(scores, -2, axis=1)
    lead: Float = (best[:, -1] - best[:, -2]) / 2
    return lead


def least_positive(scores: Float) -> Float:
    """Rank rows by confidence of the positive class [laskov2006, section 6.2]."""
    highest: Float = scores if scores.ndim == 1 else scores.max(axis=1)
    return -highest


def disagreement(scores: Float, labels: NDArray[np.intp]) -> Float:
    """Compute ``y f(x)`` for the noisy labels of rows.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Decision values.
    labels : ndarray of shape (n_rows,)
        Class index of each row, or -1 for rows without a label, for which `closeness` is used.

    Returns
    -------
    values : ndarray of shape (n_rows,)
        Values in which the row that the model contradicts most is smallest.
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
    """Return the size of a sample with `ENOUGH_INSIDE` rows within 1 + δ/2 [bordes2005, 4.4]."""
    inside = np.flatnonzero(closeness(scores) < 1 + max(delta, 0.0) / 2)
    return int(inside[ENOUGH_INSIDE - 1]) + 1 if len(inside) >= ENOUGH_INSIDE else len(scores)


def by_function(function: Callable[[Float], Any]) -> Callable[[Float], Float]:
    """Wrap a user-defined strategy, whose largest value is queried first."""

    def values(scores: Float) -> Float:
        found = np.asarray(function(scores.copy()), dtype=np.float64)
        if found.shape != (len(scores),):
            raise ValueError(
                f"the strategy must return one value for each of {len(scores)} rows, got an array "
                f"of shape {found.shape}."
            )
        if np.isnan(found).any():
            row = int(np.flatnonzero(np.isnan(found))[0])
            raise ValueError(
                f"the strategy returned NaN for row {row} of its argument; it must return numbers."
            )
        return -found

    return values
