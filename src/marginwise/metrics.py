"""Metrics for imbalanced classes, support vectors and streams.

`g_mean_score`, `prbep_score` and `support_vector_ratio` follow section 4 of [ertekin2007]. They are
meaningful for imbalanced data, where a classifier that labels every row negative may be 99%
accurate. :func:`sklearn.metrics.make_scorer` accepts the first two. `prequential_error` returns a
curve instead of a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import (
    Rule,
    check_arguments,
    check_weight_values,
    either,
    integer,
    none,
    plain,
    positive,
)

_STREAM_RULES: dict[str, Rule] = {
    "fading": positive(1.0),
    "window": either(none(), integer(1)),
}


def g_mean_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the geometric mean of the per-class recalls.

    For two classes, this is the square root of sensitivity times specificity (section 4 of
    [ertekin2007]_). The score is 0 if the classifier never predicts one of the classes correctly,
    however rare that class is.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        Predicted labels. A label that occurs only here counts as an error of the true class.
    labels : array-like, default=None
        Classes to average over. Each must occur in `y_true`. By default, all classes in `y_true`.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights. Rows of weight zero are ignored.

    Returns
    -------
    score : float
        Geometric mean of the recalls, between 0 and 1. Higher is better.

    See Also
    --------
    prbep_score : Precision-recall break-even point of a ranking.
    sklearn.metrics.balanced_accuracy_score : Arithmetic mean of the recalls.

    References
    ----------
    .. [ertekin2007] S. Ertekin, J. Huang, L. Bottou and C. L. Giles, "Learning on the Border:
       Active Learning in Imbalanced Data Classification", CIKM, 2007.

    Examples
    --------
    >>> from marginwise.metrics import g_mean_score
    >>> g_mean_score([0, 0, 0, 0, 1], [0, 0, 0, 0, 0])  # accuracy is 0.8
    0.0
    >>> g_mean_score([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])  # sqrt(3/4 * 1)
    0.866...
    """
    truth, predicted = _labels(y_true, "y_true"), _labels(y_pred, "y_pred")
    _check_length(predicted, "y_pred", len(truth))
    weights = _weights(sample_weight, len(truth))
    unique_labels(truth, predicted)  # raises for scores and for labels of mixed types
    classes, places = np.unique(truth, return_inverse=True)
    weight = np.bincount(places, weights)
    found = np.bincount(places, np.where(truth == predicted, weights, 0.0))
    chosen = _chosen(labels, classes, weight > 0)
    recalls = found[chosen] / weight[chosen]
    # The roots are multiplied, because the product of many recalls may underflow.
    return float(np.prod(recalls ** (1 / len(recalls))))


def prbep_score(y_true: ArrayLike, y_score: ArrayLike, *, pos_label: Any = None) -> float:
    """Compute the precision-recall break-even point.

    Precision and recall are equal if the number of rows predicted positive equals the number of
    positive rows; the score is their common value (section 4 of [ertekin2007]_). If several rows
    are tied at this threshold, the score is the mean over all orders of these rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True binary labels. A single class is accepted if `pos_label` names it.
    y_score : array-like of shape (n_samples,)
        Scores that rank the rows, such as decision values; higher means more likely positive.
        Infinite values are accepted.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. By default, the larger label, which is ``classes_[1]`` of
        a classifier.

    Returns
    -------
    score : float
        Break-even point, between 0 and 1. Higher is better.

    See Also
    --------
    g_mean_score : Geometric mean of the per-class recalls.
    sklearn.metrics.average_precision_score : Area under the precision-recall curve.

    References
    ----------
    .. [ertekin2007] S. Ertekin, J. Huang, L. Bottou and C. L. Giles, "Learning on the Border:
       Active Learning in Imbalanced Data Classification", CIKM, 2007.

    Examples
    --------
    >>> from marginwise.metrics import prbep_score
    >>> prbep_score([1, 0, 1, 0, 0], [0.9, 0.8, 0.3, 0.2, 0.1])  # one of two positives on top
    0.5
    >>> prbep_score([1, 0, 1, 0, 0], [0.9, 0.3, 0.3, 0.2, 0.1])  # the other ties for second place
    0.75
    """
    truth, scores = _labels(y_true, "y_true"), _scores(y_score)
    _check_length(scores, "y_score", len(truth))
    positive = truth == _positive_label(truth, pos_label)
    n_pos = np.count_nonzero(positive)
    cut = np.partition(scores, -n_pos)[-n_pos]
    above, tied = scores > cut, scores == cut
    slots = n_pos - np.count_nonzero(above)
    expected = slots * np.count_nonzero(positive & tied) / np.count_nonzero(tied)
    return float((np.count_nonzero(positive & above) + expected) / n_pos)


def support_vector_ratio(model: Any) -> float | Float:
    """Compute the ratio of negative to positive support vectors.

    For two classes, this is SV- / SV+ in table 1 of [ertekin2007]_. Compare it with the ratio of
    negative to positive rows: classes are usually more balanced near the boundary than in the whole
    data set.

    Parameters
    ----------
    model : estimator
        Fitted classifier with ``n_support_``: any classifier of this package, or
        :class:`sklearn.svm.SVC` or :class:`sklearn.svm.NuSVC`.

    Returns
    -------
    ratio : float or ndarray of shape (n_classes,)
        For two classes, the support vectors of the first class divided by those of the second. For
        more classes, the support vectors of all other classes divided by those of each class.
        Infinite if a class has no support vectors, NaN if there are none at all.

    See Also
    --------
    g_mean_score : Geometric mean of the per-class recalls.

    References
    ----------
    .. [ertekin2007] S. Ertekin, J. Huang, L. Bottou and C. L. Giles, "Learning on the Border:
       Active Learning in Imbalanced Data Classification", CIKM, 2007.

    Examples
    --------
    >>> from marginwise import OnlineSVC
    >>> from marginwise.metrics import support_vector_ratio
    >>> X, y = [[-1, -1], [-1, 1], [-9, 0], [1, 0]], [0, 0, 0, 1]
    >>> support_vector_ratio(OnlineSVC(C=10, kernel="linear", random_state=0).fit(X, y))
    2.0
    """
    check_is_fitted(model)
    counts = np.asarray(getattr(model, "n_support_", ()))
    if counts.ndim != 1 or len(counts) < 2:
        raise ValueError(
            "model must be a classifier that counts its support vectors by class in n_support_, "
            f"such as OnlineSVC, got {type(model).__name__}."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Float = (counts.sum() - counts) / counts
    return float(ratios[1]) if len(ratios) == 2 else ratios


def prequential_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    fading: float = 1.0,
    window: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> Float:
    """Compute the prequential error of a stream after each row.

    Prequential evaluation tests, then trains: each row is predicted before it is learned. The error
    after row t is ``E_t = S_t / B_t``, where ``S_t = loss_t + fading * S_{t-1}`` is the faded sum
    of the 0-1 losses and ``B_t = 1 + fading * B_{t-1}`` is the faded number of rows [gama2013]_.
    With ``fading=1``, the error is the mean over all rows so far, which reacts ever more slowly to
    concept drift as the stream grows. A smaller factor or a window follows the current error.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, in the order of the stream.
    y_pred : array-like of shape (n_samples,)
        Predicted labels, each predicted before its row was learned.
    fading : float, default=1.0
        Factor that multiplies the weight of older rows with each new row, greater than 0 and at
        most 1. The error averages over about ``1 / (1 - fading)`` rows. It must be 1 if `window` is
        given.
    window : int, default=None
        Number of most recent rows to average over, at least 1. At the start of the stream, the
        error averages over all rows so far. None averages over all rows, weighted by `fading`.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights, which multiply both the loss of a row and its contribution of 1 to ``B_t``.
        A row of weight zero still counts as a step of the stream.

    Returns
    -------
    error : ndarray of shape (n_samples,)
        Error after each row, between 0 and 1. Lower is better. NaN where only rows of weight zero
        are averaged over.

    See Also
    --------
    g_mean_score : Geometric mean of the per-class recalls.
    sklearn.metrics.zero_one_loss : Error over all rows, as one number.

    References
    ----------
    .. [gama2013] J. Gama, R. Sebastião and P. P. Rodrigues, "On Evaluating Stream Learning
       Algorithms", Machine Learning 90(3), 2013.

    Examples
    --------
    >>> from marginwise.metrics import prequential_error
    >>> y_true, y_pred = [1, 1, 0, 0], [0, 1, 0, 1]  # the first and the last row are wrong
    >>> prequential_error(y_true, y_pred).round(3)
    array([1.   , 0.5  , 0.333, 0.5  ])
    >>> prequential_error(y_true, y_pred, fading=0.5).round(3)
    array([1.   , 0.333, 0.143, 0.6  ])
    >>> prequential_error(y_true, y_pred, window=2)
    array([1. , 0.5, 0. , 0.5])
    """
    check_arguments(_STREAM_RULES, fading=fading, window=window)
    if window is not None and fading != 1:
        raise ValueError(
            f"fading={plain(fading)!r} and window={plain(window)!r} exclude each other; pass one "
            "of them."
        )
    truth, predicted = _labels(y_true, "y_true"), _labels(y_pred, "y_pred")
    _check_length(predicted, "y_pred", len(truth))
    weights = _weights(sample_weight, len(truth))
    unique_labels(truth, predicted)  # raises for scores and for labels of mixed types
    weights = weights / weights.max()  # so that no sum overflows
    losses = np.where(truth == predicted, 0.0, weights)
    if window is not None:
        return _ratio(_window_sums(losses, window), _window_sums(weights, window))
    # Rows of weight zero do not change the error. It is carried forward, because the faded sums may
    # underflow.
    last = np.maximum.accumulate(np.where(weights > 0, np.arange(len(weights)), -1))
    error = _ratio(_faded_sums(losses, fading), _faded_sums(weights, fading))
    return np.where(last >= 0, error[last], np.nan)


# -- sums over a stream ----------------------------------------------------------------------------


def _faded_sums(values: Float, fading: float) -> Float:
    """Return S_t = values_t + fading * S_{t-1}."""
    sums: Float = lfilter([1.0], [1.0, -float(fading)], values)
    return sums


def _window_sums(values: Float, window: int) -> Float:
    """Return the sums of the last `window` values, by additions only.

    The values are divided into blocks of length `window`, so a window is the end of one block and
    the start of the next. Differences of running sums would lose the digits of small weights.
    """
    n, width = len(values), min(window, len(values))
    blocks = np.pad(values, (0, -n % width)).reshape(-1, width)
    starts = np.cumsum(blocks, axis=1)
    ends = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1]
    starts[1:, :-1] += ends[:-1, 1:]
    sums: Float = starts.ravel()[:n]
    return sums


def _ratio(losses: Float, weights: Float) -> Float:
    with np.errstate(invalid="ignore"):
        ratio: Float = losses / weights
    return ratio


# -- checks ----------------------------------------------------------------------------------------


def _column(values: Any, name: str) -> NDArray[Any]:
    """Return one value per row; a single column is accepted."""
    shape = np.shape(values)
    if len(shape) != 1 and shape[1:] != (1,):
        raise ValueError(f"{name} must have one value per row, got an array of shape {shape}.")
    if shape[0] == 0:
        raise ValueError(f"{name} is empty; pass one value or more.")
    column: NDArray[Any] = column_or_1d(values)
    return column


def _check_length(column: NDArray[Any], name: str, n: int) -> None:
    if len(column) != n:
        raise ValueError(
            f"{name} has {len(column)} rows, but y_true has {n}; pass one value per row."
        )


def _labels(values: ArrayLike, name: str) -> NDArray[Any]:
    labels = _column(values, name)
    bad: Any = []
    if labels.dtype.kind == "O":
        bad = np.flatnonzero([not isinstance(label, str) for label in labels])
    elif labels.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(labels))
    if len(bad):
        raise ValueError(
            f"{name} is {labels[bad[0]]} at row {bad[0]}; labels must be all strings or all finite "
            "numbers. Remove rows without a label."
        )
    return labels


def _scores(y_score: ArrayLike) -> NDArray[Any]:
    """Return scores without converting their type, because large integers may tie as floats."""
    scores = _column(y_score, "y_score")
    if scores.dtype.kind == "O":
        scores = scores.astype(np.float64)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"y_score must be real numbers, got values of type {scores.dtype}.")
    missing = np.flatnonzero(np.isnan(scores))
    if missing.size:
        raise ValueError(
            f"y_score is NaN at row {missing[0]}, which has no rank; remove it or give it a score."
        )
    return scores


def _weights(sample_weight: ArrayLike | None, n: int) -> Float:
    if sample_weight is None:
        return np.ones(n)
    weights: Float = _column(sample_weight, "sample_weight").astype(np.float64)
    _check_length(weights, "sample_weight", n)
    check_weight_values(weights)
    return weights


def _chosen(
    labels: ArrayLike | None, classes: NDArray[Any], present: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Return the indices of the classes to average over."""
    places = {label: k for k, label in enumerate(classes.tolist()) if present[k]}
    wanted = places if labels is None else dict.fromkeys(_column(labels, "labels").tolist())
    absent = [label for label in wanted if label not in places]
    if absent:
        raise ValueError(
            f"labels contains {plain(absent[0])!r}, but y_true has no row of that class, so that "
            "its recall is undefined. Pass classes that occur in y_true."
        )
    return np.array([places[label] for label in wanted], dtype=np.intp)


def _positive_label(truth: NDArray[Any], pos_label: Any) -> Any:
    classes = unique_labels(truth).tolist()
    if len(classes) > 2:
        raise ValueError(
            f"y_true must have two classes, got {len(classes)}. Score one class against the rest."
        )
    if pos_label is None:
        if len(classes) == 1:
            raise ValueError(
                f"y_true has the single class {plain(classes[0])!r}, which may be positive or "
                "negative; pass the positive label as pos_label."
            )
        return classes[1]
    if pos_label not in classes:
        raise ValueError(
            f"pos_label={plain(pos_label)!r} is not among the labels of y_true, {plain(classes)}, "
            "so that no row is positive. Pass one of these labels."
        )
    return pos_label
