"""Fitted attributes that go by scikit-learn's names, and what to do where one is not available."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginwise._arrays import Float
from marginwise._engine.engine import Engine
from marginwise._engine.kernel import WITH_GAMMA


class SolverAttributes:
    """Attributes of all estimators."""

    @property
    def gamma_(self) -> float:
        """The number used for `gamma`; only for the "rbf", "poly" and "sigmoid" kernels."""
        plan = _machine_of(self).plan
        if plan.kernel not in WITH_GAMMA:
            raise AttributeError(
                f"gamma_ is not available: kernel={self._kernel_name()} does not use gamma. Only "
                "the 'rbf', 'poly' and 'sigmoid' kernels do."
            )
        return float(plan.gamma)

    @property
    def n_iter_(self) -> int:
        """Number of optimization steps so far, over all binary problems.

        A step changes the coefficient of one or two examples: PROCESS and REPROCESS in
        `OnlineSVC`, a segment of the solution path in the exact estimators.
        """
        counters = _machine_of(self).counters
        return int(counters["process"] + counters["reprocess"])

    def _kernel_name(self) -> str:
        kernel: Any = getattr(self, "kernel", None)
        return repr(kernel) if isinstance(kernel, str) else "a function"


class ClassifierAttributes(SolverAttributes):
    """Attributes of the classifiers."""

    @property
    def coef_(self) -> Float:
        """Weights of the features, a row per binary problem; only for the linear kernel.

        ``X @ coef_.T + intercept_`` equals `decision_function`. The array is dense, also if the
        rows were sparse.
        """
        engine = _machine_of(self)
        if engine.plan.kernel != "linear":
            raise AttributeError(
                "coef_ is available only with kernel='linear'; here kernel is "
                f"{self._kernel_name()}."
            )
        weights = engine.at_once(_linear_weights)
        weights.flags.writeable = False  # a change would have no effect on the model
        return weights

    @property
    def intercept_(self) -> Float:
        """Constant term of each binary problem's decision function.

        It is 0 for estimators without a bias, except with a linear kernel and ``center=True``.
        """
        engine = _machine_of(self)
        if engine.plan.kernel != "linear" or not engine.plan.center:
            return engine.bias
        return engine.at_once(_linear_offset)

    @property
    def predict_proba(self) -> Any:
        """Not available; calibrate the classifier to estimate probabilities."""
        raise AttributeError(
            f"{type(self).__name__} does not estimate probabilities. Fit "
            "sklearn.calibration.CalibratedClassifierCV(model) and use its predict_proba."
        )

    @property
    def predict_log_proba(self) -> Any:
        """Not available; see `predict_proba`."""
        raise AttributeError(
            f"{type(self).__name__} does not estimate probabilities. Fit "
            "sklearn.calibration.CalibratedClassifierCV(model) and use its predict_log_proba."
        )


def _machine_of(model: Any) -> Engine:
    engine: Engine = model._fitted()
    return engine


def _linear_weights(engine: Engine) -> Float:
    """Return the sums of coefficients times features, measured from the centre if there is one."""
    state = engine.state()
    # Rows in the caller's units, but before features_of adds the centre back.
    if engine.plan.center:
        rows = state["X"].astype(np.float64) / engine.plan.scale
    else:
        rows = engine.features_of(state)
    weights: Float = engine.weights @ rows
    return weights


def _linear_offset(engine: Engine) -> Float:
    """Return b - w.c, because f(x) = w.(x - c) + b for the centre c."""
    offset: Float = engine.bias - _linear_weights(engine) @ np.asarray(engine.plan.center)
    return offset
