"""What a fitted classifier predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import check_features, either, none, one_of
from marginwise._engine.foresight import Foresight
from marginwise._estimator.base import KernelModel
from marginwise._estimator.pairs import leads, votes
from marginwise.calibration import Calibrator

CALIBRATION_RULE = either(none(), one_of("sigmoid", "isotonic"))


def _calibrates(model: Predictor) -> bool:
    """Return whether a classifier has probabilities; the reason is in the error if it has not."""
    if model.calibration is None:
        raise AttributeError(
            f"this {type(model).__name__} does not estimate probabilities. Set "
            "calibration='sigmoid' or 'isotonic' and fit it again."
        )
    return True


class Predictor(KernelModel):
    """Base of the classifiers, with what they predict."""

    classes_: NDArray[Any]
    calibration: str | None = None  # of those that have the parameter
    _balance: Float  # weights of classes

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
            Decision values. With two classes, positive values favour ``classes_[1]``; otherwise,
            the largest value shows the class that is favoured. It is also the one predicted, unless
            `calibration` is set. With ``multiclass="ovo"``, values are the number of pairs that a
            class wins, plus a fraction that decides ties.
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

        With `calibration`, this is the most probable class. With `class_weight`, which moves the
        boundary on purpose, it is the class that the decision function favours in any case.

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
        calibrated = model.calibration is not None and model._is_calibrated()
        if calibrated and not model._is_weighted:
            scores = model._probabilities(X)
        else:
            scores = model.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = model.classes_[best.astype(np.intp)]
        return labels

    # -- probabilities -------------------------------------------------------------------------

    @available_if(_calibrates)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Float:
        """Estimate the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score. With ``kernel="precomputed"``, the kernel values with the training rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities of the classes, in the order of `classes_`. They sum to one.
        """
        model = self._now()
        check_is_fitted(model)
        if not model._is_calibrated():
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without calibration, and has no "
                "probabilities. Fit it again, now that calibration is set."
            )
        return model._probabilities(X)

    @available_if(_calibrates)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Float:
        """Estimate the logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score. With ``kernel="precomputed"``, the kernel values with the training rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities of `predict_proba`.
        """
        with np.errstate(divide="ignore"):  # a probability that underflows
            logarithms: Float = np.log(self.predict_proba(X))
        return logarithms

    def _is_calibrated(self) -> bool:
        """Return whether a model was fitted to have probabilities."""
        return "_engine" in self.__dict__ and self._engine.plan.foresees

    @property
    def _is_weighted(self) -> bool:
        """Whether classes have weights, which move the boundary."""
        return bool(np.ptp(self._balance) > 0)

    def _foreseen(self) -> Foresight:
        """Return decision values of rows that the model had not learned."""
        return Foresight.of(self._engine.native)

    def _probabilities(self, X: Any) -> Float:
        f = self._binary_values(X)
        if len(self.classes_) == 1:  # so far, of a stream
            return np.ones_like(f)
        return self._engine.calibrator(str(self.calibration), self._fit_calibrator).probabilities(f)

    def _fit_calibrator(self, kind: str) -> Calibrator:
        """Fit a calibrator to what the model thought of rows before it learned them."""
        columns, pairs = self._foreseen().columns, self._engine.plan.pairs
        return Calibrator.fit(kind, columns, pairs=pairs, shifted=self._is_weighted)
