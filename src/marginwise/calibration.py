"""Class probabilities from decision values.

A calibrator is fitted to the labels of rows and to decision values computed before the model
learned these rows. Each binary problem has a sigmoid [platt1999]_ or an isotonic regression.
Without class weights, both classes are equally likely at the boundary of an SVM. The sigmoid
therefore has separate slopes for positive and negative f instead of the slope and offset of the
original, so that the more probable class is the predicted one. With class weights, or if it fits
the decision values much better, the sigmoid also has an offset.

With several classes, each binary problem has few rows. A sigmoid fitted to all problems together
regularizes the sigmoid of each problem, as if it were a number of additional rows. Pairwise
probabilities are coupled into class probabilities [wu2004]_; one-vs-rest probabilities are
normalized.

References
----------
.. [platt1999] J. Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to
   Regularized Likelihood Methods", Advances in Large Margin Classifiers, 1999.
.. [wu2004] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability Estimates for Multi-class
   Classification by Pairwise Coupling", Journal of Machine Learning Research 5, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from marginwise._arrays import Float

Column = tuple[NDArray[Any], NDArray[Any]]  # decision values, and weights signed by the labels

# In each problem, the sigmoid that is shared by all problems counts as this number of rows.
SHARED_ROWS = 30.0
SHARED_AT = np.linspace(-1.5, 1.5, 7)  # decision values of these rows
# An isotonic regression has steps, and probabilities of 0 for outcomes that do not occur among few
# rows. It is therefore averaged with the sigmoid, which counts as this number of rows.
SIGMOID_ROWS = 30.0
# Minimum reduction of the cross-entropy by an offset: in total, and per row.
LEAST_GAIN, GAIN_PER_ROW = 5.0, 0.004
MOST_ITERATIONS = 100
LEAST = 1e-7  # smallest probability of a class in a pair
BYTES = 32 << 20  # maximum size of the matrices that are solved together


@dataclass(frozen=True)
class Sigmoid:
    """Sigmoid calibration curve with separate slopes for positive and negative f.

    The probability of the positive class is ``1 / (1 + exp(-z))``, where z is the offset plus
    `above` or `below` times f.
    """

    above: float = 1.0
    below: float = 1.0
    offset: float = 0.0

    def __call__(self, f: Float) -> Float:
        """Return the probabilities at decision values."""
        slope = np.where(f > 0, self.above, self.below)
        values: Float = expit(slope * f + self.offset)
        return values

    @classmethod
    def fit(cls, f: Float, target: Float, weight: Float, *, shifted: bool) -> Sigmoid:
        """Minimize the weighted cross-entropy to target probabilities.

        Negative slopes would reverse the order of the decision values and are replaced by 0. An
        offset is fitted if `shifted` is true or if it reduces the loss substantially.
        """
        columns = np.column_stack([np.maximum(f, 0), np.minimum(f, 0), np.ones_like(f)])
        unit = np.abs(columns).mean(axis=0)  # decision values may have any scale
        unit[unit == 0] = 1.0
        columns /= unit
        with_offset, loss = _with_slopes(columns, target, weight)
        if not shifted:
            through_half, other = _with_slopes(columns[:, :2], target, weight)
            if other - loss <= max(LEAST_GAIN, GAIN_PER_ROW * weight.sum()):
                return cls(*(through_half / unit[:2]).tolist())
        return cls(*(with_offset / unit).tolist())


def _with_slopes(columns: Float, target: Float, weight: Float) -> tuple[Float, float]:
    """Return coefficients with nonnegative slopes (the first two), and their loss."""
    free = list(range(columns.shape[1]))
    found = np.zeros(len(free))
    while free:
        found[:] = 0.0
        found[free] = _newton(columns[:, free], target, weight)
        if (found[:2] >= 0).all():
            return found, _loss(columns @ found, target, weight)
        free = [k for k in free if k == 2 or found[k] > 0]
    found[:] = 0.0
    return found, _loss(columns @ found, target, weight)


def _loss(z: Float, target: Float, weight: Float) -> float:
    """Return the weighted cross-entropy of the probabilities 1 / (1 + exp(-z))."""
    return float(weight @ ((1 - target) * z - log_expit(z)))


def _newton(A: Float, target: Float, weight: Float) -> Float:
    """Return the logistic regression of target probabilities on the columns of A."""
    w = np.zeros(A.shape[1])
    value = _loss(A @ w, target, weight)
    for _ in range(MOST_ITERATIONS):
        p = expit(A @ w)
        gradient = A.T @ (weight * (p - target))
        curvature = (A.T * (weight * p * (1 - p))) @ A
        curvature[np.diag_indices_from(curvature)] += 1e-10 * (1 + np.trace(curvature))
        step = np.linalg.solve(curvature, gradient)
        after = _loss(A @ (w - step), target, weight)
        while after > value and np.abs(step).max() > 1e-9:
            step /= 2
            after = _loss(A @ (w - step), target, weight)
        w, before, value = w - step, value, after
        if before - value <= 1e-9 * (1 + value):
            break
    return w


@dataclass(frozen=True)
class Isotonic:
    """Isotonic calibration curve, averaged with a sigmoid."""

    above: Any
    below: Any
    sigmoid: Sigmoid
    share: float  # weight of the sigmoid

    def __call__(self, f: Float) -> Float:
        """Return the probabilities at decision values."""
        steps: Float = np.where(f > 0, self.above.predict(f), self.below.predict(f))
        return (1 - self.share) * steps + self.share * self.sigmoid(f)


@dataclass(frozen=True)
class Calibrator:
    """Map decision values to class probabilities.

    Parameters
    ----------
    curves : list of callable
        Calibration curve of each binary problem: the probability of the positive class as a
        function of f.
    pairs : bool
        Whether each binary problem separates a pair of classes.
    """

    curves: Sequence[Sigmoid | Isotonic]
    pairs: bool

    @classmethod
    def fit(cls, kind: str, columns: Sequence[Column], *, pairs: bool, shifted: bool) -> Calibrator:
        """Fit a calibration curve to each binary problem.

        Parameters
        ----------
        kind : {"sigmoid", "isotonic"}
            Form of the curves.
        columns : list of tuple
            For each problem, decision values and sample weights, whose sign is the label.
        pairs : bool
            Whether each binary problem separates a pair of classes.
        shifted : bool
            Whether the probability at f = 0 may differ from 1/2.
        """
        sigmoids = _sigmoids(columns, pairs, shifted)
        if kind == "sigmoid":
            return cls(sigmoids, pairs)
        curves = [
            _isotonic(*column, sigmoid) for column, sigmoid in zip(columns, sigmoids, strict=True)
        ]
        return cls(curves, pairs)

    def probabilities(self, f: Float) -> Float:
        """Convert the decision values of all problems to class probabilities."""
        positive = np.column_stack([curve(f[:, c]) for c, curve in enumerate(self.curves)])
        if positive.shape[1] == 1:
            return np.column_stack([1 - positive[:, 0], positive[:, 0]])
        return couple(positive) if self.pairs else normalize(positive)


def _sigmoids(columns: Sequence[Column], pairs: bool, shifted: bool) -> list[Sigmoid]:
    shared = _shared_sigmoid(columns, pairs, shifted)
    if len(columns) == 1:
        return [shared]
    prior = shared(SHARED_AT)
    counts = np.full(len(SHARED_AT), SHARED_ROWS / len(SHARED_AT))
    return [
        Sigmoid.fit(
            np.concatenate([f, SHARED_AT]),
            np.concatenate([weight > 0, prior]),
            np.concatenate([_relative(weight), counts]),
            shifted=shifted,
        )
        for f, weight in columns
    ]


def _shared_sigmoid(columns: Sequence[Column], pairs: bool, shifted: bool) -> Sigmoid:
    """Fit one sigmoid to all problems, with Platt's targets.

    With pairs of classes, the choice of the positive class is arbitrary, so each row is also
    counted with the opposite sign.
    """
    f, weight = (np.concatenate(parts).astype(np.float64) for parts in zip(*columns, strict=True))
    if len(f) == 0:
        return Sigmoid()
    if pairs:
        f, weight = np.concatenate([f, -f]), np.concatenate([weight, -weight])
    size = _relative(weight)
    positive, negative = size[weight > 0].sum(), size[weight < 0].sum()
    target = np.where(weight > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    return Sigmoid.fit(f, target, size, shifted=shifted)


def _relative(weight: NDArray[Any]) -> Float:
    """Return absolute sample weights, scaled to a mean of 1."""
    size = np.abs(weight.astype(np.float64))
    return size / size.mean() if len(size) else size


def _isotonic(f: NDArray[Any], weight: NDArray[Any], sigmoid: Sigmoid) -> Sigmoid | Isotonic:
    if len(f) == 0:
        return sigmoid
    f, target, size = f.astype(np.float64), (weight > 0).astype(np.float64), _relative(weight)
    share = SIGMOID_ROWS / (SIGMOID_ROWS + len(f))

    def side(rows: NDArray[np.bool_], least: float, most: float) -> Any:
        # Both sides start with a probability of 1/2 at the boundary: a row of negligible weight.
        at, aim = np.append(f[rows], 0.0), np.append(target[rows], 0.5)
        return _regression(at, aim, np.append(size[rows], 1e-9), least, most)

    if sigmoid.offset == 0:
        return Isotonic(side(f > 0, 0.5, 1.0), side(f < 0, 0.0, 0.5), sigmoid, share)
    whole = _regression(f, target, size, 0.0, 1.0)
    return Isotonic(whole, whole, sigmoid, share)


def _regression(f: Float, target: Float, weight: Float, least: float, most: float) -> Any:
    from sklearn.isotonic import IsotonicRegression  # few models need it

    regression = IsotonicRegression(y_min=least, y_max=most, out_of_bounds="clip")
    return regression.fit(f, target, sample_weight=weight)


def normalize(positive: Float) -> Float:
    """Normalize one-vs-rest probabilities to a sum of 1."""
    total = positive.sum(axis=1, keepdims=True)
    even = np.full_like(positive, 1 / positive.shape[1])
    shares: Float = np.divide(positive, total, out=even, where=total > 0)
    return shares


def couple(second: Float) -> Float:
    """Couple pairwise probabilities into class probabilities.

    Minimizes the sum of ``(r[j, i] p[i] - r[i, j] p[j]) ** 2`` over all i and j, subject to ``p``
    summing to one, where ``r[i, j]`` is the probability of class i in the pair of i and j.

    Parameters
    ----------
    second : ndarray of shape (n, pairs)
        Probabilities of the second class of each pair, in the order (0, 1), (0, 2), ...

    Returns
    -------
    probabilities : ndarray of shape (n, n_classes)
        Probabilities of the classes.
    """
    classes = (1 + round((1 + 8 * second.shape[1]) ** 0.5)) // 2
    at_once = max(BYTES // (8 * (classes + 1) ** 2), 1)
    parts = [
        _couple(second[first : first + at_once], classes)
        for first in range(0, len(second), at_once)
    ]
    return np.concatenate(parts) if parts else np.empty((0, classes))


def _couple(second: Float, classes: int) -> Float:
    n = len(second)
    i, j = np.triu_indices(classes, 1)
    r = np.zeros((n, classes, classes))
    r[:, j, i] = np.clip(second, LEAST, 1 - LEAST)
    r[:, i, j] = 1 - r[:, j, i]
    # Optimality conditions: Q p + b = 0, where b is the Lagrange multiplier of the sum.
    conditions = np.ones((n, classes + 1, classes + 1))
    conditions[:, :-1, :-1] = -r * r.transpose(0, 2, 1)
    k = np.arange(classes)
    conditions[:, k, k] = (r**2).sum(axis=1) + 1e-12
    conditions[:, -1, -1] = 0.0
    right = np.zeros((n, classes + 1, 1))
    right[:, -1] = 1.0
    solved = np.linalg.solve(conditions, right)[:, :-1, 0]
    return normalize(np.clip(solved, 0.0, None))
