"""Scores of classes from the decision values of pairs of classes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from marginwise._arrays import Float
from marginwise._engine.plan import paired


def votes(f: Float) -> Float:
    """Count the pairs that each class wins; sums of decision values break ties.

    Decision values are clipped at the margin, because large values of pairs that do not include the
    true class would otherwise dominate. As in scikit-learn's one-vs-one scores, the sum is mapped
    to the interval (-1/3, 1/3), so that it cannot outweigh a vote.

    Parameters
    ----------
    f : ndarray of shape (n, pairs)
        Decision values of the pairs, positive where the second class wins.

    Returns
    -------
    scores : ndarray of shape (n, n_classes)
        Scores of the classes.
    """
    if len(f) == 1:
        return _votes_of_one(f)
    first, second = paired(f.shape[1])
    won, sums = np.zeros((2, int(second.max()) + 1, len(f)))
    for a, b, values in zip(first, second, np.ascontiguousarray(f.T), strict=True):
        wins = values > 0
        won[b] += wins
        won[a] += ~wins
        clipped = np.clip(values, -1.0, 1.0)
        sums[a] -= clipped
        sums[b] += clipped
    scores: Float = np.ascontiguousarray((won + sums / (3 * (np.abs(sums) + 1))).T)
    return scores


def _votes_of_one(f: Float) -> Float:
    """Compute bit-identical votes of one row without the overhead of NumPy."""
    pairs, classes = _pairs(f.shape[1])
    won, sums = [0] * classes, [0.0] * classes
    for (a, b), value in zip(pairs, f[0].tolist(), strict=True):
        won[b if value > 0 else a] += 1
        clipped = -1.0 if value < -1.0 else 1.0 if value > 1.0 else value
        sums[a] -= clipped
        sums[b] += clipped
    return np.array([[w + s / (3 * (abs(s) + 1)) for w, s in zip(won, sums, strict=True)]])


@lru_cache(maxsize=32)
def _pairs(problems: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the classes of each pair, and the number of classes."""
    first, second = paired(problems)
    return tuple(zip(first.tolist(), second.tolist(), strict=True)), int(second.max()) + 1


def leads(f: Float) -> Float:
    """Return the smallest decision value of each class against the others.

    The score of a class that wins all its pairs exceeds the next score by at least twice its
    distance from the nearest boundary, as for one-vs-rest values.

    Parameters
    ----------
    f : ndarray of shape (n, pairs)
        Decision values of the pairs, positive where the second class wins.

    Returns
    -------
    leads : ndarray of shape (n, n_classes)
        Scores of the classes.
    """
    first, second = paired(f.shape[1])
    least = np.full((len(f), int(second.max()) + 1), np.inf)
    for c, (a, b) in enumerate(zip(first, second, strict=True)):
        np.minimum(least[:, a], -f[:, c], out=least[:, a])
        np.minimum(least[:, b], f[:, c], out=least[:, b])
    return least
