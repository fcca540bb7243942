"""Predictions of fitted classifiers."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import check_features, either, none, one_of
from marginwise._engine.foresight import Foresight
from marginwise._estimator.base import KernelModel
from marginwise._estimator.pairs import leads, votes
from marginwise._estimator.unchecked import rows_to_predict
from marginwise._warn import warn
from marginwise.calibration import CalibrationReport, Calibrator

LEAST_JUDGED = 30  # per class
CALIBRATION_RULE = either(none(), one_of("sigmoid", "isotonic"))


class IfCalibrated:
    """Decorate a method to be available only with `calibration`.

    This is `available_if` of scikit-learn, except that the error itself, and not its cause,
    explains how to get probabilities.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        update_wrapper(cast(Any, self), method)
        self._name = method.__name__
        self._available = available_if(lambda model: model.calibration is not None)(method)

    def __get__(self, model: Any, owner: Any = None) -> Any:
        try:
            return self._available.__get__(model, owner)
        except AttributeError:
            raise AttributeError(
                f"this {type(model).__name__} has no attribute {self._name!r}, because it does not "
                f"estimate probabilities. {model._to_calibrate}"
            ) from None


class Predictor(KernelModel):
    """Base of the classifiers with the prediction methods."""

    classes_: NDArray[Any]
    calibration: str | None = None  # None for estimators without this parameter
    _to_calibrate: ClassVar[str] = "Set calibration='sigmoid' or 'isotonic' and fit it again."
    _balance: Float  # class weights

    def decision_function(self, X: Any) -> Float:
        """Compute the decision function of each row.

        The value of a row does not depend on the other rows of the call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score. With ``kernel="precomputed"``, kernel values between these rows and the
            training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Decision values. With two classes, positive values favour ``classes_[1]``. With more
            classes, the class with the largest value is favoured; `predict` returns it unless
            `calibration` is set. With ``multiclass="ovo"``, the value of a class is the number of
            pairs it wins plus a fraction that breaks ties.
        """
        model = self._now()
        scores = model._binary_values(X)
        if model._engine.plan.pairs:
            return votes(scores)
        return scores[:, 0].copy() if scores.shape[1] == 1 else scores

    def _distances(self, X: Any) -> Float:
        """Return decision values that measure distances to the boundary."""
        model = self._now()
        return model._shaped(model._binary_values(X))

    def _shaped(self, scores: Float) -> Float:
        """Convert f(x) of the binary problems to values that measure distances to the boundary."""
        if self._engine.plan.pairs:
            return leads(scores)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _binary_values(self, X: Any) -> Float:
        """Return f(x) of rows, one column per binary problem."""
        check_is_fitted(self)
        X, _ = check_features(self, X, reset=False)
        return self._score(X)

    def _score(self, X: Any) -> Float:
        """Return f(x) of validated rows, one column per binary problem."""
        return self._engine.decision(self._augmented(X, None))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

        The predicted class is the one that the decision function favours. If `calibration` is set
        and `class_weight` is None, it is the most probable class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify. With ``kernel="precomputed"``, kernel values between these rows and
            the training rows.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted class labels.
        """
        model = self._now()
        return model._labels(model._binary_values(X))

    def predict_one(self, x: ArrayLike) -> Any:
        """Predict the class of a single dense row, with few checks.

        The result equals that of `predict`, in a fraction of the time. The method checks that the
        number of features is right and that their values are finite, but not their names.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Row to classify.

        Returns
        -------
        label : label
            Predicted class label, one of `classes_`.
        """
        if "_objects" in self.__dict__:
            return self.predict([x])[0]
        model = self._now()
        f = model._unchecked_values(np.asarray(x)[np.newaxis])
        if f.shape[1] == 1 and not model._decides_by_probability:
            return model.classes_[int(f[0, 0] > 0)]
        return model._labels(f)[0]

    def predict_many(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of dense rows, with few checks.

        Use this method instead of `predict` for small batches, where input validation would
        dominate the cost. It checks that the number of features is right and that their values are
        finite, but not their names.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted class labels.
        """
        model = self._now()
        if "_objects" in model.__dict__:
            return model.predict(X)
        return model._labels(model._unchecked_values(X))

    def _unchecked_values(self, X: Any) -> Float:
        """Return f(x) of dense rows, with few checks."""
        if "_engine" not in self.__dict__:
            self._fitted()  # raises NotFittedError
        self._require_rows()
        return self._score(rows_to_predict(X, self.n_features_in_))

    def _labels(self, f: Float) -> NDArray[Any]:
        """Return the classes of rows from their f(x) in each binary problem."""
        if f.shape[1] == 1 and not self._decides_by_probability:
            return self.classes_[(f[:, 0] > 0).view(np.int8)]
        if self._decides_by_probability:
            scores = self._probabilities_at(f)
            if f.shape[1] == 1 and scores.shape[1] == 2:  # the sign of f breaks ties
                likely = np.where(scores[:, 1] == 0.5, f[:, 0] > 0, scores[:, 1] > 0.5)
                return self.classes_[likely.view(np.int8)]
        else:
            scores = votes(f) if self._engine.plan.pairs else f
        labels: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return labels

    # -- probabilities -------------------------------------------------------------------------

    @IfCalibrated
    def predict_proba(self, X: Any) -> Float:
        """Estimate class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score. With ``kernel="precomputed"``, kernel values between these rows and the
            training rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities of the classes, in the order of `classes_`. Each row sums to one.
        """
        model = self._now()
        check_is_fitted(model)
        model._require_calibration()
        return model._probabilities_at(model._binary_values(X))

    @IfCalibrated
    def predict_log_proba(self, X: Any) -> Float:
        """Estimate logarithms of class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score. With ``kernel="precomputed"``, kernel values between these rows and the
            training rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities of `predict_proba`.
        """
        with np.errstate(divide="ignore"):  # a probability that underflows
            logarithms: Float = np.log(self.predict_proba(X))
        return logarithms

    @property
    def calibration_(self) -> CalibrationReport:
        """How the probabilities were estimated, if `calibration` is set.

        A :class:`~marginwise.calibration.CalibrationReport`.
        """
        model = self._now()
        if model.calibration is None:
            raise AttributeError(
                f"calibration_ needs a model with probabilities. {model._to_calibrate}"
            )
        check_is_fitted(model)
        model._require_calibration()
        if len(model.classes_) == 1:  # before a stream has a second class
            nothing = np.zeros(1, dtype=np.int64)
            return CalibrationReport(model.calibration, nothing, np.nan, np.nan, np.nan, True)
        return model._calibrator().report

    def _require_calibration(self) -> None:
        """Raise if the model was fitted without calibration."""
        if not self._is_calibrated():
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without calibration and has no "
                "probabilities. Fit it again with the current value of calibration."
            )

    def _is_calibrated(self) -> bool:
        """Return whether the model was fitted with calibration."""
        return "_engine" in self.__dict__ and self._engine.plan.foresees

    @property
    def _is_weighted(self) -> bool:
        """Whether classes have weights, which move the boundary."""
        return bool(np.ptp(self._balance) > 0)

    def _foreseen(self) -> Foresight:
        """Return decision values of rows that the model had not learned."""
        return self._engine.foresight

    @property
    def _decides_by_probability(self) -> bool:
        """Whether `predict` returns the most probable class."""
        calibrated = self.calibration is not None and self._is_calibrated()
        return calibrated and not self._is_weighted

    def _probabilities_at(self, f: Float) -> Float:
        """Return probabilities of rows from their f(x) in each binary problem."""
        if len(self.classes_) == 1:  # before a stream has a second class
            return np.ones_like(f)
        return self._calibrator().probabilities(f)

    def _calibrator(self) -> Calibrator:
        return self._engine.calibrator(str(self.calibration), self._fit_calibrator)

    def _fit_calibrator(self, kind: str) -> Calibrator:
        """Fit a calibrator to decision values of rows that the model had not learned."""
        columns, pairs = self._foreseen().columns, self._engine.plan.pairs
        rules = {"shifted": self._is_weighted, "early": self._engine.early_curves}
        found = Calibrator.fit(kind, columns, pairs=pairs, **rules)
        few = found.report.n_values.min() < LEAST_JUDGED  # too few to judge
        if self._engine.left_out is not None and found.report.fallback and not few:
            warn(
                f"the decision values of {type(self).__name__} hardly predict the labels of rows "
                "that the model has not learned: its probabilities are about the class "
                "frequencies. Choose other values of C and gamma, for example with OnlineSVCCV, or "
                "set class_weight='balanced' if a class is rare; calibration_ has the figures."
            )
        return found
