"""A classifier for ASReview that updates its model with each label instead of fitting again.

ASReview fits its classifier to all labelled records after each label and then scores all others.
This classifier recognises the records that it has already learned, and learns only the new ones.
ASReview finds the class through the entry point ``asreview.models.classifiers``. This module does
not import ASReview.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise.online import OnlineSVC

FEW_CHANGES = 16  # up to this number, changed coefficients are processed one by one


class ReviewSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear support vector classifier for ASReview, updated with each label.

    If the rows passed to `fit` begin with those of the previous call, with the same labels, the
    model learns only the remaining rows. Otherwise, for example after a label was changed or
    removed, the model is fitted from scratch. Changed coefficients update the weight vector, so
    that scoring takes a single sparse product.

    ASReview's balancer changes the weights of all rows with each label, which would require a new
    fit every time. The balance is therefore fixed: relevant records have `relevant_weight` times
    the penalty of irrelevant ones, and `sample_weight` is ignored.

    Parameters
    ----------
    C : float, default=0.1
        Penalty of an irrelevant record inside the margin.
    relevant_weight : float, default=100.0
        Penalty of a relevant record as a multiple of `C`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels: 0 (irrelevant) and 1 (relevant).
    coef_ : ndarray of shape (1, n_features)
        Feature weights.
    intercept_ : ndarray of shape (1,)
        Constant term of the decision function.
    n_features_in_ : int
        Number of features seen during fit.
    n_refits_ : int
        Number of fits from scratch so far.

    See Also
    --------
    marginwise.OnlineSVC : The underlying classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise.label.asreview import ReviewSVC
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.2, 0.8]])
    >>> model = ReviewSVC().fit(X[:2], np.array([1, 0]))
    >>> model.fit(X[:3], np.array([1, 0, 1])).n_refits_
    1
    >>> model.decision_function(X[2:]).argmax()
    np.int64(0)
    """

    name = "marginwise"
    label = "Online support vector machine"
    _weights: Float

    def __init__(self, *, C: float = 0.1, relevant_weight: float = 100.0) -> None:
        self.C = C
        self.relevant_weight = relevant_weight

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows that were not in the previous call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Labelled records, in the order in which they were labelled.
        y : array-like of shape (n_samples,)
            Labels: 1 for relevant records, 0 for irrelevant ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of ASReview's balancer. They are ignored.

        Returns
        -------
        self : object
            The updated classifier.
        """
        rows = X.tocsr() if sp.issparse(X) else np.array(X)  # ASReview makes new sparse rows
        labels = np.array(y)
        settings = self.C, self.relevant_weight
        known = self._known(rows, labels) if self.__dict__.get("_settings") == settings else 0
        if known == 0:
            self._refit(rows, labels)
        elif known < len(labels):
            self._model.learn_many(rows[known:], labels[known:].tolist())
        self._rows, self._labels, self._settings = rows, labels, settings
        self._update_weights()
        return self

    def decision_function(self, X: Any) -> Float:
        """Return the score of each row; rows with larger scores are more likely to be relevant.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Records to rank.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Signed distances to the decision boundary, in units of the margin.
        """
        check_is_fitted(self)
        rows = X if sp.issparse(X) else np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has the shape {rows.shape}, but {type(self).__name__} was fitted with "
                f"{self.n_features_in_} features. Pass records with the features of fit."
            )
        scores: Float = rows @ self._weights + self.intercept_[0]
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Records.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 for rows with a positive score, 0 for the others.
        """
        relevant = self.decision_function(X) > 0
        labels: NDArray[Any] = self.classes_[relevant.astype(np.intp)]
        return labels

    # -- incremental updates ---------------------------------------------------------------------

    def _known(self, rows: Any, labels: NDArray[Any]) -> int:
        """Return how many of the rows are already learned; 0 if they begin with other rows."""
        before = self._rows
        known = int(before.shape[0])
        same = (
            type(rows) is type(before)
            and rows.ndim == 2
            and rows.shape[1] == before.shape[1]
            and len(labels) == rows.shape[0] >= known
            and np.array_equal(labels[:known], self._labels)
            and _begins_with(rows, before)
        )
        return known if same else 0

    def _refit(self, rows: Any, labels: NDArray[Any]) -> None:
        found = np.unique(labels).tolist()
        if not set(found) <= {0, 1}:
            raise ValueError(
                f"y has the labels {found}; expected 0 for irrelevant and 1 for relevant records."
            )
        model = OnlineSVC(
            C=self.C, kernel="linear", class_weight={1: self.relevant_weight}, random_state=0
        )
        model.fit(rows, labels)
        self._model = model
        self.classes_ = model.classes_
        self.n_features_in_ = model.n_features_in_
        self.n_refits_ = self.__dict__.get("n_refits_", 0) + 1
        self._alpha: Float = np.empty(0)

    def _update_weights(self) -> None:
        """Update the feature weights with the coefficients that changed."""
        known = len(self._alpha)
        ids, _, coefficients = self._model._fitted().coefficients
        alpha = np.zeros(self._rows.shape[0])
        alpha[ids] = coefficients[0]
        change = alpha.copy()
        change[:known] -= self._alpha
        changed = np.flatnonzero(change)
        if known and len(changed) <= FEW_CHANGES:
            for row in changed.tolist():
                _add_row(self._weights, self._rows, row, change[row])
        else:
            self._weights = self._rows.T @ alpha
        self._alpha, self.intercept_ = alpha, self._model.intercept_

    @property
    def coef_(self) -> Float:
        """Feature weights, an array of shape (1, n_features)."""
        return self._weights[np.newaxis].copy()


def _add_row(weights: Float, rows: Any, row: int, factor: float) -> None:
    """Add a multiple of one row to the weights, in place."""
    if sp.issparse(rows):
        stored = slice(rows.indptr[row], rows.indptr[row + 1])
        np.add.at(weights, rows.indices[stored], factor * rows.data[stored])
    else:
        weights += factor * rows[row]


def _begins_with(rows: Any, before: Any) -> bool:
    """Return whether rows begin with those that were learned before."""
    known = before.shape[0]
    if not sp.issparse(rows):
        return np.array_equal(rows[:known], before)
    stored = before.indptr[-1]
    return (
        np.array_equal(rows.indptr[: known + 1], before.indptr)
        and np.array_equal(rows.indices[:stored], before.indices)
        and np.array_equal(rows.data[:stored], before.data)
    )
