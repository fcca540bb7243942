"""Measures for imbalanced classes, where accuracy says little, and of the support vectors.

They are those of [ertekin2007, section 4], where a learner that calls every row negative may be
99% accurate. Each takes what scikit-learn's own metrics take, so that `make_scorer` makes scorers
of the first two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import check_weight_values, plain


def g_mean_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the geometric mean of the recalls of the classes [ertekin2007, section 4].

    For two classes it is the root of sensitivity times specificity. It is 0 as soon as one class
    is never found, however rare that class is.

    Parameters
    ----------
    y_true
        The labels, one a row.
    y_pred
        The predicted labels. A class that only they have counts as a miss of the true one.
    labels
        The classes to average over, each of them in `y_true`; by default all of `y_true`.
    sample_weight
        Counts each row that many times; rows of weight zero are left out.

    Returns
    -------
    float
        From 0 to 1, the higher the better.

    Examples
    --------
    >>> from marginwise.metrics import g_mean_score
    >>> g_mean_score([0, 0, 0, 0, 1], [0, 0, 0, 0, 0])  # 80% accurate
    0.0
    >>> g_mean_score([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])  # the root of 3/4 * 1
    0.866...
    """
    truth, predicted = _labels(y_true, "y_true"), _labels(y_pred, "y_pred")
    _check_length(predicted, "y_pred", len(truth))
    weights = _weights(sample_weight, len(truth))
    unique_labels(truth, predicted)  # refuses scores, and numbers beside strings
    classes, places = np.unique(truth, return_inverse=True)
    weight = np.bincount(places, weights)
    found = np.bincount(places, np.where(truth == predicted, weights, 0.0))
    chosen = _chosen(labels, classes, weight > 0)
    recalls = found[chosen] / weight[chosen]
    # Each root by itself: the product of a thousand recalls may be too small for a float.
    return float(np.prod(recalls ** (1 / len(recalls))))


def prbep_score(y_true: ArrayLike, y_score: ArrayLike, *, pos_label: Any = None) -> float:
    """Return the precision-recall break-even point [ertekin2007, section 4].

    Where as many rows are called positive as there are positives, precision and recall have the
    same denominator and so are the same: this is their value there. Rows tied at that cut are
    taken as ordered at random, and the value is the mean over their orders.

    Parameters
    ----------
    y_true
        The labels, one a row, of two classes. One class is enough if `pos_label` names it.
    y_score
        Scores that rank the rows, the likeliest positives highest, such as decision values. They
        may be infinite.
    pos_label
        The label of the positives; by default the larger of the two, as the second of the
        ``classes_`` of a classifier.

    Returns
    -------
    float
        From 0 to 1, the higher the better.

    Examples
    --------
    >>> from marginwise.metrics import prbep_score
    >>> prbep_score([1, 0, 1, 0, 0], [0.9, 0.8, 0.3, 0.2, 0.1])  # of two positives one is on top
    0.5
    >>> prbep_score([1, 0, 1, 0, 0], [0.9, 0.3, 0.3, 0.2, 0.1])  # the other may come second
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
    """Return how many support vectors the others have for each one of a class.

    For two classes it is SV- / SV+ of [ertekin2007, Table 1]. Compare it with the same ratio of
    the rows: near the boundary the classes are more even than in the whole data.

    Parameters
    ----------
    model
        A fitted classifier that counts its support vectors by class in ``n_support_``: those of
        this package, and ``SVC`` and ``NuSVC`` of scikit-learn.

    Returns
    -------
    float or array
        Two classes: the support vectors of the first for each one of the second. More: for each
        class, those of all others for each one of its own. Infinite where a class has none, NaN
        where there are none at all.

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
            f"got {type(model).__name__}."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Float = (counts.sum() - counts) / counts
    return float(ratios[1]) if len(ratios) == 2 else ratios


# -- checks ----------------------------------------------------------------------------------------


def _column(values: Any, name: str) -> NDArray[Any]:
    """Return one value a row; a single column will do."""
    shape = np.shape(values)
    if len(shape) != 1 and shape[1:] != (1,):
        raise ValueError(f"{name} must hold one value a row, got an array of shape {shape}.")
    if shape[0] == 0:
        raise ValueError(f"{name} is empty.")
    column: NDArray[Any] = column_or_1d(values)
    return column


def _check_length(column: NDArray[Any], name: str, n: int) -> None:
    if len(column) != n:
        raise ValueError(f"{name} has {len(column)} rows, and y_true has {n}.")


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
            "numbers."
        )
    return labels


def _scores(y_score: ArrayLike) -> NDArray[Any]:
    """Return scores in the type they have: as floats, large integers might become ties."""
    scores = _column(y_score, "y_score")
    if scores.dtype.kind == "O":
        scores = scores.astype(np.float64)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"y_score must be real numbers, got values of type {scores.dtype}.")
    missing = np.flatnonzero(np.isnan(scores))
    if missing.size:
        raise ValueError(f"y_score is NaN at row {missing[0]}; such a row has no rank.")
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
    """Return the places of the classes to average over."""
    places = {label: k for k, label in enumerate(classes.tolist()) if present[k]}
    wanted = places if labels is None else dict.fromkeys(_column(labels, "labels").tolist())
    absent = [label for label in wanted if label not in places]
    if absent:
        raise ValueError(
            f"labels names {plain(absent[0])!r}, a class of which y_true has no row; its recall is "
            "not defined."
        )
    return np.array([places[label] for label in wanted], dtype=np.intp)


def _positive_label(truth: NDArray[Any], pos_label: Any) -> Any:
    classes = unique_labels(truth).tolist()
    if len(classes) > 2:
        raise ValueError(f"y_true must be of two classes, got {len(classes)}.")
    if pos_label is None:
        if len(classes) == 1:
            raise ValueError(
                f"y_true holds the one class {plain(classes[0])!r}, which may be either; name the "
                "positive one by pos_label."
            )
        return classes[1]
    if pos_label not in classes:
        raise ValueError(
            f"pos_label={plain(pos_label)!r} is not among the labels of y_true, {plain(classes)}: "
            "there are no positive rows."
        )
    return pos_label
