"""Coefficients as LIBSVM lays them out: by class, a column for each of the other classes."""

from __future__ import annotations

import numpy as np

from marginwise._arrays import Float, Ints, Labels
from marginwise._engine.plan import paired


def laid_out(alpha: Float, labels: Labels, classes: int) -> tuple[Ints, Labels, Float]:
    """Return which vector each line of a file has, its class there, and its coefficients.

    A vector that counts in a pair of other classes than its own, as a budget or a compressed model
    may have them, has a second line, among the vectors of the first class of the pair.

    Parameters
    ----------
    alpha : ndarray of shape (n_pairs, n)
        Coefficients; the second class of a pair is the positive one.
    labels : ndarray of shape (n,)
        The numbers of the classes of the vectors.
    classes : int
        How many classes there are.

    Returns
    -------
    vectors : ndarray of shape (n_lines,)
        The vector of each line.
    groups : ndarray of shape (n_lines,)
        The class of each line, ascending.
    coefficients : ndarray of shape (n_lines, n_classes - 1)
        Coefficients of each line; the first class of a pair is the positive one.
    """
    pair, vector = np.nonzero(alpha)
    first, second = (of[pair] for of in paired(len(alpha)))
    own = labels[vector]
    group = np.where((own == first) | (own == second), own, first)
    column = np.where(group == first, second - 1, first)
    lines, line = np.unique(group * len(labels) + vector, return_inverse=True)
    coefficients = np.zeros((len(lines), classes - 1))
    coefficients[line, column] = -alpha[pair, vector]
    return lines % len(labels), (lines // len(labels)).astype(np.int32), coefficients


def in_order(alpha: Float, intercept: Float, order: Ints) -> tuple[Float, Float]:
    """Return coefficients and constants of pairs when classes are numbered in another order.

    Parameters
    ----------
    alpha : ndarray of shape (n_pairs, n)
        Coefficients; the second class of a pair is the positive one.
    intercept : ndarray of shape (n_pairs,)
        Constants, likewise.
    order : ndarray of shape (n_classes,)
        The new number of each class.
    """
    first, second = (order[of] for of in paired(len(alpha)))
    where = {pair: c for c, pair in enumerate(zip(*paired(len(alpha)), strict=True))}
    ends = zip(np.minimum(first, second), np.maximum(first, second), strict=True)
    place = np.array([where[pair] for pair in ends])
    turn = np.where(first < second, 1.0, -1.0)
    moved, constants = np.empty_like(alpha), np.empty_like(intercept)
    moved[place], constants[place] = alpha * turn[:, None], intercept * turn
    return moved, constants
