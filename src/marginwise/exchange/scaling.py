"""Conversion of the scalers of a pipeline to one shift and one factor per feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise.data import TableEncoder
from marginwise.data.table_profile import MEASURED
from marginwise.exchange.onnx_tables import used_columns

Scaling = tuple[Float, Float]  # features become (x - shift) * factor
Names = list[str] | None


def split(model: Any) -> tuple[Any, Scaling | None, Names]:
    """Return the last step of a pipeline of scalers, the combined scaling, and the feature names.

    Parameters
    ----------
    model : estimator or Pipeline
        Model, or pipeline of scalers that ends in a model. A `TableEncoder` is a scaler if all of
        its columns are numbers, booleans or dates.

    Returns
    -------
    last : estimator
        The model itself.
    scaling : tuple of ndarray or None
        Shift and factor of each feature; None if there is no scaler.
    names : list of str or None
        Names of the features, if they are known.
    """
    if not isinstance(model, Pipeline):
        return model, None, _names_of(model)
    scaling: Scaling | None = None
    for _, step in model.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        shift, factor = _scaling_of(step)
        if scaling is not None:  # ((x - a) f - b) g = (x - (a + b / f)) f g
            shift, factor = scaling[0] + shift / scaling[1], scaling[1] * factor
        scaling = shift, factor
    return model.steps[-1][1], scaling, _names_of(model.steps[0][1])


def _names_of(step: Any) -> Names:
    if isinstance(step, TableEncoder):
        return [name for name, _ in used_columns(step)]
    names = getattr(step, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _scaling_of(step: Any) -> Scaling:
    name = type(step).__name__
    if isinstance(step, TableEncoder):
        return _measured(step)
    if not isinstance(step, StandardScaler | MinMaxScaler | MaxAbsScaler | RobustScaler):
        raise ValueError(
            f"the pipeline has the step {name}, which cannot be folded into the model; expected "
            "scalers only (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, or a "
            "TableEncoder of numbers). Export the last step alone, or use to_onnx."
        )
    check_is_fitted(step)
    ones, zeros = np.ones(step.n_features_in_), np.zeros(step.n_features_in_)
    if isinstance(step, MinMaxScaler):
        if step.clip:
            raise ValueError(
                "MinMaxScaler(clip=True) cannot be folded into the model, because it is not a "
                "linear function of the features. Use clip=False, or use to_onnx."
            )
        return -step.min_ / step.scale_, ones * step.scale_
    scale = step.scale_ if step.scale_ is not None else ones
    shift = getattr(step, "mean_", None) if isinstance(step, StandardScaler) else None
    if isinstance(step, StandardScaler) and not step.with_mean:
        shift = None
    if isinstance(step, RobustScaler):
        shift = step.center_
    return zeros if shift is None else zeros + shift, ones / scale


def _measured(encoder: TableEncoder) -> Scaling:
    """Return the scaling of an encoder of numeric columns, ignoring missing values."""
    check_is_fitted(encoder, "kinds_")
    for name, kind in used_columns(encoder):
        if kind not in MEASURED:
            raise ValueError(
                f"the column {name!r} of the TableEncoder is {kind}, which cannot be folded into "
                "the model; expected numbers, booleans and dates only. Use to_onnx."
            )
    return encoder.mean_, 1 / encoder.scale_
