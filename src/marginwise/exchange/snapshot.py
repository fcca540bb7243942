"""Fitted models as plain arrays, from which all export formats are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise._engine.engine import Engine
from marginwise._engine.plan import NATIVE
from marginwise._estimator.base import KernelModel
from marginwise.calibration import Calibrator
from marginwise.one_class import ExactOneClassSVM

MOST_VALUES = 1 << 30  # of support vectors in dense form: 8 GB of doubles


@dataclass(frozen=True)
class Snapshot:
    """State of a fitted model that predictions depend on.

    The value of binary problem c at x is the sum of ``weights[c, m] K(vectors[m], x - center)``
    over m, plus ``intercepts[c]``. With the linear kernel, and no sphere, it is
    ``coef[c] @ x + intercepts[c]``. A sphere subtracts ``total / 2`` times ``K(x, x)``.

    Parameters
    ----------
    estimator : str
        Name of the class of the model.
    kernel : str
        Name of the kernel.
    gamma, coef0, degree : float, float and int
        Parameters of the kernel; those that the kernel lacks are unused.
    features : int
        Number of features.
    center : ndarray of shape (features,) or None
        Point that is subtracted from the features.
    vectors : ndarray of shape (m, features)
        Support vectors, after subtraction of the centre.
    weights : ndarray of shape (problems, m)
        Signed coefficients.
    intercepts : ndarray of shape (problems,)
        Constant terms.
    coef : ndarray of shape (problems, features) or None
        Feature weights of a classifier with linear kernel.
    classes : ndarray or None
        Class labels; None for a sphere.
    pairs : bool
        Whether the binary problems are pairs of classes (one-vs-one).
    total : float
        Sum of the coefficients of a sphere.
    calibrator : Calibrator or None
        Calibrator that converts decision values to probabilities.
    by_probability : bool
        Whether the most probable class is predicted.
    """

    estimator: str
    kernel: str
    gamma: float
    coef0: float
    degree: int
    features: int
    center: Float | None
    vectors: Float
    weights: Float
    intercepts: Float
    coef: Float | None = None
    classes: NDArray[Any] | None = None
    pairs: bool = False
    total: float = 0.0
    calibrator: Calibrator | None = None
    by_probability: bool = False

    @property
    def problems(self) -> int:
        """Number of binary problems."""
        return len(self.intercepts)


def snapshot(model: Any) -> Snapshot:
    """Return a snapshot of a fitted estimator.

    Parameters
    ----------
    model : estimator
        Estimator of this package with a built-in kernel.

    Raises
    ------
    ValueError
        If the model is not an estimator of this package, or if its kernel is a function or
        precomputed.
    NotFittedError
        If the model is not fitted, or empty because its last row was forgotten.
    """
    name = type(model).__name__
    if not isinstance(model, KernelModel):
        raise ValueError(
            f"a {name} cannot be exported; expected a fitted estimator of marginwise, such as "
            "OnlineSVC."
        )
    model._fitted()
    model = model._copy()  # other threads may change the original engine
    engine = model._engine = model._engine.clone()
    model._require_rows()
    _require_named_kernel(model, name)
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) < 2:
        raise ValueError(
            f"this {name} has learned rows of the one class {classes.tolist()[0]!r}; an export "
            "needs two classes or more. Learn rows of another class first."
        )
    taken = _parts(model, engine, name)
    if classes is None:
        return Snapshot(**taken, total=float(engine.total))
    return Snapshot(**taken, classes=classes, pairs=engine.plan.pairs, **_probabilities(model))


def integer_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return numeric labels as 64-bit integers; float labels have no fractional part."""
    for label in classes.tolist():
        if not -(2**63) <= label < 2**63:
            raise ValueError(
                f"the class label {label!r} is beyond 64-bit integers, which labels have in other "
                "programs. Fit the model with smaller numbers or with strings."
            )
    return classes.astype(np.int64)


def _require_named_kernel(model: Any, name: str) -> None:
    kernel = model.kernel
    if kernel == "precomputed":
        raise ValueError(
            f"this {name} cannot be exported: with kernel='precomputed' it stores no support "
            "vectors, only kernel values. Fit it with one of the kernels "
            f"{', '.join(NATIVE)}."
        )
    if callable(kernel):
        called = getattr(kernel, "__name__", type(kernel).__name__)
        raise ValueError(
            f"this {name} cannot be exported: its kernel is the Python function {called!r}, which "
            f"other programs do not have. Fit it with one of the kernels {', '.join(NATIVE)}."
        )


def _parts(model: Any, engine: Engine, name: str) -> dict[str, Any]:
    """Return the fields of a snapshot that all models have."""
    plan, state, weights = engine.plan, engine.state(), engine.weights
    kept = (weights != 0).any(axis=0)
    weights = weights[:, kept]
    intercepts = engine.bias + getattr(model, "_intercept", 0.0)
    center = np.asarray(plan.center) if plan.center else None
    vectors = _vectors(state, plan, kept)
    coef = None
    if plan.kernel == "linear" and not isinstance(model, ExactOneClassSVM):
        coef = np.asarray(weights @ vectors)
        if center is not None:
            intercepts, center = intercepts - coef @ center, None
        vectors, weights = np.zeros((0, plan.features)), weights[:, :0]
    return {
        "estimator": name,
        "kernel": plan.kernel,
        "gamma": float(plan.gamma),
        "coef0": float(plan.coef0),
        "degree": int(plan.degree),
        "features": plan.features,
        "center": center,
        "vectors": vectors if coef is not None else _dense(vectors, name),
        "weights": weights,
        "intercepts": np.asarray(intercepts, dtype=np.float64),
        "coef": coef,
    }


def _vectors(state: dict[str, Any], plan: Any, kept: NDArray[np.bool_]) -> Any:
    """Return the members with nonzero weights, in the units of the caller, minus the centre."""
    if not plan.sparse:
        return state["X"][kept].astype(np.float64) / plan.scale
    shape = (len(state["ids"]), plan.features)
    parts = (state["data"] / np.float64(plan.scale), state["indices"], state["indptr"])
    return sp.csr_array(parts, shape=shape)[np.flatnonzero(kept)]


def _dense(vectors: Any, name: str) -> Float:
    if not sp.issparse(vectors):
        return np.asarray(vectors, dtype=np.float64)
    rows, columns = vectors.shape
    if rows * columns > MOST_VALUES:
        raise ValueError(
            f"this {name} has {rows:,} support vectors of {columns:,} features, too many to write "
            "out densely. Reduce the features, make the model smaller with compress, or use "
            "kernel='linear'."
        )
    dense: Float = vectors.toarray()
    return dense


def _probabilities(model: Any) -> dict[str, Any]:
    """Return the calibrator of a classifier, if any, and whether it determines predictions."""
    if model.calibration is None or not model._is_calibrated():
        return {}
    calibrator = model._engine.calibrator(str(model.calibration), model._fit_calibrator)
    return {"calibrator": calibrator, "by_probability": not model._is_weighted}
