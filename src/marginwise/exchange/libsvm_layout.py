"""Layout of coefficients in LIBSVM files: rows by class, one column for each other class."""

from __future__ import annotations

import numpy as np

from marginwise._arrays import Float, Ints, Labels
from marginwise._engine.plan import paired


def laid_out(alpha: Float, labels: Labels, classes: int) -> tuple[Ints, Labels, Float]:
    """Return the vector, the class and the coefficients of each line of a file.

    In compressed models and models with a budget, a vector may have a coefficient in a pair of
    classes that does not include its own. Such a vector has a second line, among the vectors of the
    first class of the pair.

    Parameters
    ----------
    alpha : ndarray of shape (n_pairs, n)
        Coefficients; the second class of a pair is the positive one.
    labels : ndarray of shape (n,)
        Class index of each vector.
    classes : int
        Number of classes.

    Returns
    -------
    vectors : ndarray of shape (n_lines,)
        Index of the vector of each line.
    groups : ndarray of shape (n_lines,)
        Class of each line, ascending.
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
    """Return the coefficients and intercepts of pairs after renumbering the classes.

    Parameters
    ----------
    alpha : ndarray of shape (n_pairs, n)
        Coefficients; the second class of a pair is the positive one.
    intercept : ndarray of shape (n_pairs,)
        Intercepts, with the same convention.
    order : ndarray of shape (n_classes,)
        New index of each class.
    """
    first, second = (order[of] for of in paired(len(alpha)))
    where = {pair: c for c, pair in enumerate(zip(*paired(len(alpha)), strict=True))}
    ends = zip(np.minimum(first, second), np.maximum(first, second), strict=True)
    place = np.array([where[pair] for pair in ends])
    turn = np.where(first < second, 1.0, -1.0)
    moved, constants = np.empty_like(alpha), np.empty_like(intercept)
    moved[place], constants[place] = alpha * turn[:, None], intercept * turn
    return moved, constants
