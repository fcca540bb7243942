"""What a fitted classifier predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import check_features
from marginwise._estimator.base import KernelModel
from marginwise._estimator.pairs import leads, votes


class Predictor(KernelModel):
    """Base of the classifiers, with what they predict."""

    classes_: NDArray[Any]

    def decision_function(self, X: Any) -> Float:
        """Compute the decision function of each row.

        The value of a row does not depend on the other rows of the call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score. With ``kernel="precomputed"``, the kernel values with the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Decision values. With two classes, positive values predict ``classes_[1]``; otherwise,
            the class with the largest value is predicted. With ``multiclass="ovo"``, values are the
            number of pairs that a class wins, plus a fraction that decides ties.
        """
        model = self._now()
        scores = model._binary_values(X)
        if model._engine.plan.pairs:
            return votes(scores)
        return scores[:, 0].copy() if scores.shape[1] == 1 else scores

    def _distances(self, X: Any) -> Float:
        """Return values like `decision_function` that measure distances from the boundary."""
        model = self._now()
        return model._shaped(model._binary_values(X))

    def _shaped(self, scores: Float) -> Float:
        """Return such values of rows, from their f(x) in each binary problem."""
        if self._engine.plan.pairs:
            return leads(scores)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _binary_values(self, X: Any) -> Float:
        """Return f(x) of rows, a column for each binary problem."""
        check_is_fitted(self)
        X, _ = check_features(self, X, reset=False)
        return self._score(X)

    def _score(self, X: Any) -> Float:
        """Return f(x) of rows that were checked before, a column for each binary problem."""
        return self._engine.decision(self._augmented(X, None))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify. With ``kernel="precomputed"``, the kernel values with the training
            rows.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted class labels.
        """
        model = self._now()
        scores = model.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = model.classes_[best.astype(np.intp)]
        return labels

    @property
    def predict_proba(self) -> Any:
        """Not available; use :class:`sklearn.calibration.CalibratedClassifierCV`."""
        raise AttributeError(
            f"{type(self).__name__} does not estimate probabilities. Fit "
            "sklearn.calibration.CalibratedClassifierCV(model) and use its predict_proba."
        )

    @property
    def predict_log_proba(self) -> Any:
        """Not available; use :class:`sklearn.calibration.CalibratedClassifierCV`."""
        raise AttributeError(
            f"{type(self).__name__} does not estimate probabilities. Fit "
            "sklearn.calibration.CalibratedClassifierCV(model) and use its predict_log_proba."
        )
