"""Selection of the model wrapper for an estimator."""

from __future__ import annotations

import contextlib
from typing import Any

from sklearn.pipeline import Pipeline

from marginwise._checks import check_params
from marginwise._estimator.classifier import KernelClassifier
from marginwise.active.models import Model, is_fitted, width_mismatch
from marginwise.active.own import OwnModel
from marginwise.active.piped import LabelsNeededError, PipedModel
from marginwise.active.pool import Pool
from marginwise.active.refit import RefitModel


def model_for(estimator: Any, pool: Pool) -> Model:
    """Return the model wrapper for a copy of an estimator."""
    if isinstance(estimator, KernelClassifier):
        check_params(estimator)
        if estimator.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' requires all labels at once, but an active learner "
                "receives them one by one. Set class_weight to a dict."
            )
        if estimator._starts_with_fit and not is_fitted(estimator):
            raise ValueError(
                f"{type(estimator).__name__} requires all labels at once, but an active learner "
                "receives them one by one. Pass an OnlineSVC with given C and gamma, or a fitted "
                "estimator."
            )
        return OwnModel(estimator, pool)
    if isinstance(estimator, type):
        raise TypeError(
            f"{estimator.__name__} is a class, not an instance; pass {estimator.__name__}(...)."
        )
    if not (hasattr(estimator, "fit") or hasattr(estimator, "partial_fit")):
        raise TypeError(
            f"{type(estimator).__name__} has no fit and no partial_fit; an active learner needs a "
            "classifier: one of marginwise or of scikit-learn, a Pipeline, or one with the same "
            "methods."
        )
    if isinstance(estimator, Pipeline):
        with contextlib.suppress(LabelsNeededError):
            return PipedModel(estimator, pool)
    if not (hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")):
        raise TypeError(
            f"{type(estimator).__name__} has no decision_function and no predict_proba; an active "
            "learner needs one of them to see how sure a prediction is."
        )
    if not hasattr(estimator, "partial_fit"):
        return RefitModel(estimator, pool)
    if getattr(estimator, "n_features_in_", pool.features) != pool.features:
        raise ValueError(width_mismatch(estimator, pool))
    return Model(estimator, pool)
