"""Decision values and margins of any classifier."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from marginwise._arrays import Float
from marginwise._estimator.pairs import leads


def distances(model: Any, X: Any) -> Float:
    """Return decision values that measure distances from the boundary.

    The decision values of one-vs-one classifiers are votes, which hardly depend on the distance.
    For classifiers of this package and for SVC, this function returns the smallest pairwise value
    of each class against the others instead.

    Parameters
    ----------
    model : classifier
        Fitted classifier with `decision_function`, possibly in a pipeline or a search.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to score.

    Returns
    -------
    decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Decision values, of shape (n_samples,) for two classes.
    """
    model, X = _innermost(model, X)
    own = getattr(model, "_distances", None)
    if own is not None:
        found: Float = own(X)
    elif hasattr(model, "decision_function_shape") and len(model.classes_) > 2:
        pairwise = copy.copy(model).set_params(decision_function_shape="ovo")
        # SVC's values are positive for the first class of a pair, those of `leads` for the second.
        found = leads(-pairwise.decision_function(X))
    else:
        found = np.asarray(model.decision_function(X), dtype=np.float64)
    _check_values(found, model)
    return found


def margins(decision: Float, codes: NDArray[np.intp]) -> Float:
    """Return the margin of each row.

    Parameters
    ----------
    decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Decision values.
    codes : ndarray of shape (n_samples,)
        Class index of each row.

    Returns
    -------
    margin : ndarray of shape (n_samples,)
        Margins, negative if another class is predicted.
    """
    if decision.ndim == 1:
        return np.where(codes == 1, decision, -decision)
    rows = np.arange(len(codes))
    others = decision.copy()
    others[rows, codes] = -np.inf
    margin: Float = (decision[rows, codes] - others.max(axis=1)) / 2
    return margin


def _innermost(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier inside pipelines and searches, and the transformed rows."""
    while True:
        if isinstance(model, Pipeline):
            for _, step in model.steps[:-1]:
                X = X if step in (None, "passthrough") else step.transform(X)
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return model, X


def _check_values(decision: Float, model: Any) -> None:
    count = len(model.classes_)
    if decision.shape[1:] != (() if count == 2 else (count,)):
        raise ValueError(
            f"decision_function of {type(model).__name__} returned an array of shape "
            f"{decision.shape} for {count} classes; expected one value per row for two classes, "
            "else one per row and class. Use a classifier that returns one value per class."
        )
    bad = np.flatnonzero(~np.isfinite(decision).reshape(len(decision), -1).all(axis=1))
    if bad.size:
        raise ValueError(
            f"decision_function of {type(model).__name__} is not finite for the row at place "
            f"{bad[0]}; every value must be a finite number. Scale the features, or check them for "
            "missing values."
        )
