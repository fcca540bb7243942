"""Class probabilities from decision values.

A calibrator is fitted to the labels of rows and to decision values of a model that had not learned
these rows. Each binary problem has a sigmoid [platt1999]_ or an isotonic regression. The sigmoid
has separate parts for positive and other f. With class weights, it also has an offset. Without
them, it has an offset only if it fits the decision values better with it and predicts the rows as
well as the sign of f does. Otherwise, no part crosses a probability of one half, so the more
probable class is the one that the sign of f favors, and calibration cannot make predictions worse.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
# An offset must reduce the cross-entropy of all rows by LEAST_GAIN; the constants of both parts by
# four times as much, because they fit few rows too well. An offset must not lower their accuracy by
# more than LOST, and must not make a class with less than MINORITY of the rows even rarer.
LEAST_GAIN, LOST, MINORITY = 2.0, 0.002, 0.1
SHIFT = 0.1  # of decision values, as a part of their standard deviation
# Minimum reduction by an offset for models of earlier versions: in total, and per row.
EARLY_GAIN, EARLY_GAIN_PER_ROW = 5.0, 0.004
MOST_WORSE = 0.01  # relative to class frequencies, from which on values are not informative
MOST_ITERATIONS = 100
LEAST = 1e-7  # smallest probability of a class in a pair
BYTES = 32 << 20  # maximum size of the matrices that are solved together


@dataclass(frozen=True)
class Sigmoid:
    """Sigmoid calibration curve with separate parts for positive and other f.

    The probability of the positive class is ``1 / (1 + exp(-z))``, where z is ``above * f + high``
    for positive f, and ``below * f + low`` for other f. If `clipped` is true, the probability does
    not cross one half at f = 0.
    """

    above: float = 1.0
    below: float = 1.0
    high: float = 0.0
    low: float = 0.0
    clipped: bool = False

    def __call__(self, f: Float) -> Float:
        """Return the probabilities at decision values."""
        z = np.where(f > 0, self.above * f + self.high, self.below * f + self.low)
        if self.clipped:
            z = np.where(f > 0, np.maximum(z, 0), np.minimum(z, 0))
        values: Float = expit(z)
        return values

    @property
    def agrees(self) -> bool:
        """Whether the more probable class is the one that the sign of f favors."""
        return self.clipped or self.low <= 0 <= self.high

    @classmethod
    def fit(
        cls,
        f: Float,
        target: Float,
        weight: Float,
        *,
        shifted: bool,
        may_shift: Callable[[Sigmoid], bool] = lambda _: True,
        early: bool = False,
    ) -> Sigmoid:
        """Minimize the weighted cross-entropy to target probabilities.

        Negative slopes would reverse the order of the decision values and are replaced by 0. If
        `shifted` is true, both parts have the same offset. Otherwise, an offset must reduce the
        loss, and `may_shift` must return true for the sigmoid with the offset. Otherwise, the
        offset is clipped at one half, or the parts start at one half or further away from it,
        whichever reduces the loss. `early`
        selects the rule of earlier versions.
        """
        above = f > 0
        columns = np.column_stack([np.maximum(f, 0), np.minimum(f, 0), above, above - 1.0])
        unit = np.abs(columns).mean(axis=0)  # decision values may have any scale
        unit[2:] = 1.0
        unit[unit == 0] = 1.0
        columns /= unit
        offset = np.column_stack([columns[:, :2], np.ones_like(f)])
        slopes, loss = _nonnegative(offset, 2, target, weight)
        with_offset = _sigmoid(slopes[:2] / unit[:2], slopes[2], slopes[2])
        if shifted:
            return with_offset
        plain, other = _nonnegative(columns[:, :2], 2, target, weight)
        if early:
            enough = max(EARLY_GAIN, EARLY_GAIN_PER_ROW * weight.sum())
            return with_offset if other - loss > enough else _sigmoid(plain / unit[:2], 0.0, 0.0)
        parts, least = _nonnegative(columns, 4, target, weight)
        if least - loss > LEAST_GAIN and may_shift(with_offset):
            return with_offset
        clipped = replace(with_offset, clipped=True)
        p = np.clip(clipped(f), LEAST, 1 - LEAST)
        halved = -float(weight @ (target * np.log(p) + (1 - target) * np.log1p(-p)))
        if min(other, least) - halved > LEAST_GAIN:
            return clipped
        if other - least <= 4 * LEAST_GAIN:
            parts = np.append(plain, [0.0, 0.0])
        return _sigmoid(parts[:2] / unit[:2], parts[2], -parts[3])


def _sigmoid(slopes: Float, high: float, low: float) -> Sigmoid:
    above, below = slopes.tolist()
    return Sigmoid(above, below, float(high), float(low))


def _nonnegative(columns: Float, count: int, target: Float, weight: Float) -> tuple[Float, float]:
    """Return coefficients of which the first `count` are nonnegative, and their loss."""
    free = list(range(columns.shape[1]))
    found = np.zeros(len(free))
    while free:
        found[:] = 0.0
        found[free] = _newton(columns[:, free], target, weight)
        if (found[:count] >= 0).all():
            return found, _loss(columns @ found, target, weight)
        free = [k for k in free if k >= count or found[k] > 0]
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
class CalibrationReport:
    """How the calibration of a classifier was estimated.

    With several classes, losses are means over the decision values of all binary problems.

    Attributes
    ----------
    method : {"sigmoid", "isotonic"}
        The form of the calibration curves.
    n_values : ndarray of shape (n_classes,)
        Number of rows of each class whose decision values were used.
    log_loss : float
        Cross-entropy of the probabilities of these rows; NaN without rows.
    brier : float
        Mean squared difference between the probability of the positive class and the outcome.
    prior_log_loss : float
        Cross-entropy of the class frequencies of the rows.
    fallback : bool
        Whether the rows are not good enough for a calibration: a class is missing, or the
        probabilities are not better than the class frequencies. The curves of such problems have no
        offset, so that calibration does not change predictions.
    """

    method: str
    n_values: NDArray[np.int64]
    log_loss: float
    brier: float
    prior_log_loss: float
    fallback: bool


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
    report : CalibrationReport
        How the curves were estimated.
    """

    curves: Sequence[Sigmoid | Isotonic]
    pairs: bool
    report: CalibrationReport

    @classmethod
    def fit(
        cls,
        kind: str,
        columns: Sequence[Column],
        *,
        pairs: bool,
        shifted: bool,
        early: bool = False,
    ) -> Calibrator:
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
        early : bool, default=False
            Whether the values are of a model of an earlier version, whose curves remain.
        """
        rules = {"pairs": pairs, "shifted": shifted, "early": early}
        choices = _choices(kind, columns, **rules)
        best = 0
        if not early and (rows := _same_rows(columns)) is not None:
            losses = np.zeros(len(choices))
            for half in (0, 1):
                held = _choices(kind, [(f[half::2], w[half::2]) for f, w in columns], **rules)
                losses += [rows.worse(curves, slice(1 - half, None, 2)) for curves in held]
            # The last choice, at least, changes no prediction.
            best = int((losses <= LOST * rows.weights.sum()).argmax())
        return cls(choices[best], pairs, _report(kind, columns, choices[best], pairs))

    def probabilities(self, f: Float) -> Float:
        """Convert the decision values of all problems to class probabilities."""
        positive = np.column_stack([curve(f[:, c]) for c, curve in enumerate(self.curves)])
        if positive.shape[1] == 1:
            return np.column_stack([1 - positive[:, 0], positive[:, 0]])
        return couple(positive) if self.pairs else normalize(positive)


def _has_both(column: Column) -> bool:
    """Return whether both classes of a problem have decision values."""
    return bool((column[1] > 0).any() and (column[1] < 0).any())


def _report(
    kind: str, columns: Sequence[Column], curves: Sequence[Any], pairs: bool
) -> CalibrationReport:
    """Compare the curves with the labels they were fitted to, and with class frequencies."""
    losses = np.zeros(4)  # log loss, Brier score, log loss of frequencies; weight
    for (f, weight), curve in zip(columns, curves, strict=True):
        if not _has_both((f, weight)):
            continue
        size, positive = _relative(weight), weight > 0
        p = np.clip(curve(f.astype(np.float64)), LEAST, 1 - LEAST)
        prior = np.clip(size[positive].sum() / size.sum(), LEAST, 1 - LEAST)
        loss, base = (
            -float(size @ np.where(positive, np.log(q), np.log1p(-q))) for q in (p, prior)
        )
        losses += loss, float(size @ (positive - p) ** 2), base, size.sum()
    log_loss, brier, frequencies = (
        losses[:3] / losses[3] if losses[3] else losses[:3] + np.nan
    ).tolist()
    counts = _class_counts(columns, pairs)
    worse = not counts.all() or log_loss > frequencies * (1 + MOST_WORSE)
    return CalibrationReport(kind, counts, log_loss, brier, frequencies, bool(worse))


def _class_counts(columns: Sequence[Column], pairs: bool) -> NDArray[np.int64]:
    """Return the number of rows of each class; of pairs, the largest number in a problem."""
    above = np.array([(weight > 0).sum() for _, weight in columns])
    below = np.array([(weight < 0).sum() for _, weight in columns])
    if len(columns) == 1:
        return np.array([below[0], above[0]], dtype=np.int64)
    if not pairs:
        return above.astype(np.int64)
    first, second = np.triu_indices((1 + round((1 + 8 * len(columns)) ** 0.5)) // 2, 1)
    counts = np.zeros(second[-1] + 1, dtype=np.int64)
    np.maximum.at(counts, first, below)
    np.maximum.at(counts, second, above)
    return counts


@dataclass(frozen=True)
class _Rows:
    """Rows with a decision value in each one-vs-rest problem."""

    f: Float
    labels: NDArray[Any]
    weights: Float

    def worse(self, curves: Sequence[Any], part: slice) -> float:
        """Return how much worse curves predict the classes of some rows than the largest f does.

        A part of the loss of the rarest class counts in addition.
        """
        f, labels, weights = self.f[part], self.labels[part], self.weights[part]
        p = np.column_stack([curve(f[:, c]) for c, curve in enumerate(curves)])
        before = (f.argmax(axis=1) == labels).astype(float)
        loss: Float = weights * (before - (p.argmax(axis=1) == labels))
        sizes = np.bincount(self.labels, self.weights, f.shape[1])
        rarest = np.where(sizes > 0, sizes, np.inf).argmin()
        rare = (
            float(loss[labels == rarest].sum()) if sizes[rarest] < MINORITY * sizes.sum() else 0.0
        )
        return float(loss.sum() + max(rare - LOST * sizes[rarest], 0.0) * len(sizes))


def _same_rows(columns: Sequence[Column]) -> _Rows | None:
    """Return the rows of one-vs-rest problems, if all problems have values of the same rows."""
    sizes = {len(f) for f, _ in columns}
    if len(columns) == 1 or sizes == {0} or len(sizes) > 1:
        return None
    f, weight = (np.column_stack(parts).astype(np.float64) for parts in zip(*columns, strict=True))
    weights = np.abs(weight)
    if (np.ptp(weights, axis=1) > 0).any() or not ((weight > 0).sum(axis=1) == 1).all():
        return None
    return _Rows(f, (weight > 0).argmax(axis=1), weights[:, 0])


def _choices(
    kind: str, columns: Sequence[Column], *, pairs: bool, shifted: bool, early: bool
) -> list[list[Any]]:
    """Return curves for all problems: the ones asked for, and simpler ones.

    The last are one shared sigmoid, which does not change which decision value is the largest.
    """
    shared = _shared_sigmoid(columns, pairs, shifted, early)
    sigmoids = _sigmoids(columns, shared, shifted, early)
    choices: list[list[Any]] = [list(sigmoids), [shared] * len(columns)]
    if kind == "isotonic":
        both = zip(columns, sigmoids, strict=True)
        choices[:0] = [
            [
                _isotonic(*one, s, shifted or early) if early or _has_both(one) else s
                for one, s in both
            ]
        ]
    return choices


def _sigmoids(
    columns: Sequence[Column], shared: Sigmoid, shifted: bool, early: bool
) -> list[Sigmoid]:
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
            may_shift=partial(_predicts_as_well, f, weight),
            early=early,
        )
        if early or _has_both((f, weight))
        else shared
        for f, weight in columns
    ]


def _predicts_as_well(f: NDArray[Any], weight: NDArray[Any], curve: Any) -> bool:
    """Return whether a curve predicts rows about as well as the signs of their values do.

    This must also hold if all values are a little larger or smaller: the values of nearly constant
    decision functions are not more accurate than that.
    """
    size, positive = _relative(weight), weight > 0
    for shift in (0.0, SHIFT * f.std(), -SHIFT * f.std()):
        change = (curve(f + shift) > 0.5).astype(float) - (f > 0)  # of predictions
        if size @ np.where(positive, change, -change) < -LOST * size.sum():
            return False
    share, at_zero = size[positive].sum() / size.sum(), float(curve(np.zeros(1))[0])
    return not ((share < MINORITY and at_zero < 0.5) or (share > 1 - MINORITY and at_zero > 0.5))


def _shared_sigmoid(columns: Sequence[Column], pairs: bool, shifted: bool, early: bool) -> Sigmoid:
    """Fit one sigmoid to all problems, with Platt's targets.

    With pairs of classes, the choice of the positive class is arbitrary, so each row is also
    counted with the opposite sign.
    """
    f, weight = (np.concatenate(parts).astype(np.float64) for parts in zip(*columns, strict=True))
    if not (len(f) if early else _has_both((f, weight))):
        slope = 1.0 if early or not f.any() else 1 / float(np.abs(f).mean())
        return Sigmoid(slope, slope)
    own = f, weight
    if pairs:
        f, weight = np.concatenate([f, -f]), np.concatenate([weight, -weight])
    size = _relative(weight)
    positive, negative = size[weight > 0].sum(), size[weight < 0].sum()
    target = np.where(weight > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    if len(columns) > 1:  # one curve for several problems does not change the order of their values
        return Sigmoid.fit(f, target, size, shifted=shifted, early=early)
    may_shift = partial(_predicts_as_well, *own)
    return Sigmoid.fit(f, target, size, shifted=shifted, may_shift=may_shift, early=early)


def _relative(weight: NDArray[Any]) -> Float:
    """Return absolute sample weights, scaled to a mean of 1."""
    size = np.abs(weight.astype(np.float64))
    return size / size.mean() if len(size) else size


def _isotonic(
    f: NDArray[Any], weight: NDArray[Any], sigmoid: Sigmoid, free: bool
) -> Sigmoid | Isotonic:
    """Fit an isotonic curve; if `free` is false, it must predict as well as the sign of f."""
    if len(f) == 0:
        return sigmoid
    f, target, size = f.astype(np.float64), (weight > 0).astype(np.float64), _relative(weight)
    share = SIGMOID_ROWS / (SIGMOID_ROWS + len(f))

    def side(rows: NDArray[np.bool_], least: float, most: float) -> Any:
        # Both sides start with a probability of 1/2 at the boundary: a row of negligible weight.
        at, aim = np.append(f[rows], 0.0), np.append(target[rows], 0.5)
        return _regression(at, aim, np.append(size[rows], 1e-9), least, most)

    if not sigmoid.agrees:
        whole = _regression(f, target, size, 0.0, 1.0)
        curve = Isotonic(whole, whole, sigmoid, share)
        if free or _predicts_as_well(f, weight, curve):
            return curve
        sigmoid = replace(sigmoid, clipped=True)
    return Isotonic(side(f > 0, 0.5, 1.0), side(f < 0, 0.0, 0.5), sigmoid, share)


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
