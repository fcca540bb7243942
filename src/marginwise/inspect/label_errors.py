"""Detection of label errors with out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from marginwise._arrays import Float, Ints
from marginwise._checks import check_arguments, check_weights, integer, one_of, plain, positive
from marginwise.inspect.decisions import margins
from marginwise.inspect.folds import (
    Fold,
    check_classes,
    held_out_decision,
    make_folds,
    seeded,
    weight_name,
)

# Inverse regularization strength of the regression that converts decision values to probabilities.
# For k classes, it has k (k + 1) coefficients, so that weaker regularization overfits small data.
# Below FEW rows, regularization is reduced, because it would make all probabilities equal.
RIDGE, FEW = 0.1, 300
RULES = {
    "rounds": integer(1),
    "threshold": positive(),
    "rank_by": one_of("probability", "margin"),
}


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """Result of `find_label_errors`.

    Parameters
    ----------
    order : ndarray of shape (n_samples,)
        Row indices, sorted by decreasing suspicion of a label error.
    is_suspect : ndarray of bool of shape (n_samples,)
        Whether the label of each row is suspect: another class is more probable, and the
        probability of the given label is below `threshold` divided by the number of classes.
    suggested : ndarray of shape (n_samples,)
        Most probable label of each row, which may equal the given label.
    probability : ndarray of shape (n_samples,)
        Estimated probability of the given label.
    margin : ndarray of shape (n_samples,)
        Out-of-fold margin of each row: ``y f(x)`` for two classes, otherwise half the difference
        between the decision value of the given class and the largest one of the other classes.
        Negative if another class is predicted.
    decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Out-of-fold decision values.
    classes : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of `decision`.

    See Also
    --------
    find_label_errors : Find label errors by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise import OnlineSVC
    >>> from marginwise.inspect import find_label_errors
    >>> X = np.arange(40.0)[:, None]
    >>> y = np.where(X[:, 0] < 20, "low", "high")
    >>> y[5] = "high"
    >>> found = find_label_errors(OnlineSVC(), X, y, random_state=0)
    >>> found.suspects, found.suggested[5].item()
    (array([5]), 'low')
    """

    order: Ints
    is_suspect: NDArray[np.bool_]
    suggested: NDArray[Any]
    probability: Float
    margin: Float
    decision: Float
    classes: NDArray[Any]

    @property
    def suspects(self) -> Ints:
        """Row indices of the suspect labels, the most suspect first."""
        return self.order[self.is_suspect[self.order]]


def find_label_errors(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = 5,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    rounds: int = 2,
    threshold: float = 0.6,
    rank_by: str = "probability",
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> LabelErrors:
    """Find label errors by cross-validation.

    For each fold, a clone of the estimator is fitted to the other folds and scores the rows of the
    fold. A logistic regression of the given labels on these out-of-fold decision values estimates
    class probabilities. A second round excludes the suspects of the first round from training,
    because they would distort the models, and the probabilities of both rounds are averaged.

    Parameters
    ----------
    estimator : classifier
        Classifier with `decision_function`, such as a classifier of this package or of
        scikit-learn, a pipeline or a search. It is cloned and not modified.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Rows, in any format that the estimator accepts.
    y : array-like of shape (n_samples,)
        Labels, some of which may be wrong.
    cv : int, cross-validation splitter or iterable, default=5
        Cross-validation strategy: the number of stratified, shuffled folds, a splitter, or an
        iterable of (train, test) indices. Every row must be held out exactly once.
    groups : array-like of shape (n_samples,), default=None
        Groups of rows for a splitter such as ``GroupKFold``, which keeps near-duplicates in one
        fold.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights for all fits. Rows of weight zero are also ranked. None gives all rows the
        same weight.
    rounds : int, default=2
        Number of rounds. Later rounds exclude the suspects of earlier rounds from training, but
        never more than half of the rows of a class.
    threshold : float, default=0.6
        A label is suspect if its probability is below `threshold` divided by the number of classes
        and another class is more probable. Larger values find more wrong labels, at the cost of
        more false alarms.
    rank_by : {"probability", "margin"}, default="probability"
        Quantity that `order` is sorted by: the probability of the given label or its margin.
    n_jobs : int, default=None
        Number of folds to fit in parallel threads. None means 1 unless in a
        ``joblib.parallel_config`` context. -1 means using all processors.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds, and for the estimator if its `random_state` is None.

    Returns
    -------
    result : LabelErrors
        Ranking, suspects, suggested labels, probabilities and margins.

    See Also
    --------
    GapSVC : Online classifier that reports suspect labels in `suspects_`.
    MarginDisplay : Plot the distribution of margins.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from marginwise import OnlineSVC
    >>> from marginwise.inspect import find_label_errors
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> y.iloc[[7, 42]] = 2  # two setosas become virginicas
    >>> found = find_label_errors(OnlineSVC(C=10), X, y, random_state=0)
    >>> np.sort(found.order[:2]), found.suggested[[7, 42]]
    (array([ 7, 42]), array([0, 0]))
    """
    check_arguments(RULES, rounds=rounds, threshold=threshold, rank_by=rank_by)
    _check_estimator(estimator)
    (X,) = indexable(X)
    labels = _checked_labels(X, y)
    classes, codes = np.unique(labels, return_inverse=True)
    _check_several(classes)
    weights = check_weights(sample_weight, len(labels))
    fit_weights = {} if sample_weight is None else {weight_name(estimator): weights}
    draw = None if random_state is None else check_random_state(random_state)
    folds = make_folds(cv, X, labels, groups, draw)
    check_classes(folds, codes, weights, classes)
    model = seeded(estimator, draw)

    decisions: list[Float] = []
    estimates: list[Float] = []
    used = folds
    for _ in range(rounds):
        parts = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(held_out_decision)(model, X, labels, fold, fit_weights) for fold in used
        )
        decisions.append(_assembled(parts, folds))
        estimates.append(_probabilities(decisions[-1], codes, weights))
        mean = np.mean(estimates, axis=0)
        suspect = _suspects(mean, codes, threshold)
        if not suspect.any():
            break
        used = _without(suspect, folds, codes, mean)
    return _result(np.mean(decisions, axis=0), mean, suspect, codes, classes, rank_by)


# -- parts -----------------------------------------------------------------------------------------


def _check_estimator(estimator: Any) -> None:
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator is the class {estimator.__name__}; expected an instance. Pass "
            f"{estimator.__name__}()."
        )
    lacking = [name for name in ("fit", "decision_function") if not hasattr(estimator, name)]
    if lacking or not is_classifier(estimator):
        fault = f"has no {lacking[0]}" if lacking else "is not a classifier"
        raise TypeError(
            f"{type(estimator).__name__} {fault}; find_label_errors needs a classifier with fit "
            "and decision_function. Pass an OnlineSVC, for example."
        )


def _checked_labels(X: Any, y: Any) -> NDArray[Any]:
    labels = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    if len(labels) != _num_samples(X):
        raise ValueError(
            f"y has {len(labels)} labels, but X has {_num_samples(X)} rows; expected one label per "
            "row. Pass the labels of these rows."
        )
    return np.asarray(labels)


def _check_several(classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        held = f"only one class, {plain(classes[0])!r}" if len(classes) else "no label"
        raise ValueError(
            f"y has {held}; find_label_errors requires at least two classes. Pass rows of all "
            "classes."
        )


def _assembled(parts: Sequence[Float], folds: Sequence[Fold]) -> Float:
    """Combine the decision values of the folds."""
    decision = np.empty((sum(len(part) for part in parts), *parts[0].shape[1:]))
    for part, (_, test) in zip(parts, folds, strict=True):
        decision[test] = part
    return decision


def _probabilities(decision: Float, codes: NDArray[np.intp], weights: Float) -> Float:
    """Estimate class probabilities by logistic regression.

    With several classes, the decision values of all classes are used. They show which classes are
    confused and correct different scales of the scores.
    """
    values = decision.reshape(len(decision), -1)
    scale = float(values.std())
    values = (values - values.mean(axis=0)) / (scale if scale > 0 else 1.0)
    ridge = RIDGE * max(1.0, FEW / len(values))
    regression = LogisticRegression(C=ridge, max_iter=1000)
    found: Float = regression.fit(values, codes, weights).predict_proba(values)
    return found


def _suspects(probabilities: Float, codes: NDArray[np.intp], threshold: float) -> NDArray[np.bool_]:
    given = probabilities[np.arange(len(codes)), codes]
    rare = given < threshold / probabilities.shape[1]
    found: NDArray[np.bool_] = rare & (probabilities.argmax(axis=1) != codes)
    return found


def _without(
    suspect: NDArray[np.bool_],
    folds: Sequence[Fold],
    codes: NDArray[np.intp],
    probabilities: Float,
) -> list[Fold]:
    """Return folds whose training rows lack the suspects.

    At least half of the rows of each class remain, so that a rare class whose rows all look wrong
    is still learned.
    """
    given = probabilities[np.arange(len(codes)), codes]
    used = []
    for train, test in folds:
        dropped = []
        for code in range(probabilities.shape[1]):
            own = train[codes[train] == code]
            worst = own[suspect[own]]
            worst = worst[np.argsort(given[worst], kind="stable")]
            dropped.append(worst[: len(own) // 2])
        used.append((np.setdiff1d(train, np.concatenate(dropped)), test))
    return used


def _result(
    decision: Float,
    probabilities: Float,
    suspect: NDArray[np.bool_],
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    rank_by: str,
) -> LabelErrors:
    given: Float = probabilities[np.arange(len(codes)), codes]
    margin = margins(decision, codes)
    order = np.argsort(given if rank_by == "probability" else margin, kind="stable")
    return LabelErrors(
        order=order.astype(np.int64),
        is_suspect=suspect,
        suggested=classes[probabilities.argmax(axis=1)],
        probability=given,
        margin=margin,
        decision=decision,
        classes=classes,
    )
