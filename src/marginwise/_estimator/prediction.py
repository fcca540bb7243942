"""What a fitted classifier predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import check_features
from marginwise._estimator.base import KernelModel


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
            the class with the largest value is predicted.
        """
        model = self._now()
        check_is_fitted(model)
        X, _ = check_features(model, X, reset=False)
        scores = model._score(X)
        return scores[:, 0].copy() if scores.shape[1] == 1 else scores

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
