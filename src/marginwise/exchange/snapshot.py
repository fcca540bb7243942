"""What a fitted model computes, as plain arrays: the common ground of all exports."""

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

MOST_VALUES = 1 << 30  # of support vectors that are written out densely, 8 GB of doubles


@dataclass(frozen=True)
class Snapshot:
    """One moment of a fitted model: all that predictions depend on.

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
        Its parameters; those that it does not have are unused.
    features : int
        Number of features.
    center : ndarray of shape (features,) or None
        Point that features are measured from.
    vectors : ndarray of shape (m, features)
        Support vectors, measured from the centre.
    weights : ndarray of shape (problems, m)
        Signed coefficients.
    intercepts : ndarray of shape (problems,)
        Constant terms.
    coef : ndarray of shape (problems, features) or None
        Weights of the features themselves, where the kernel is linear.
    classes : ndarray or None
        Labels; None for a sphere.
    pairs : bool
        Whether binary problems are pairs of classes.
    total : float
        Sum of the coefficients of a sphere.
    calibrator : Calibrator or None
        What turns decision values into probabilities.
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
    """Return what a fitted estimator of this package computes.

    Parameters
    ----------
    model : estimator
        Any estimator of this package whose kernel has a name.

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
    model = model._copy()  # with an engine of its own, which other threads do not change
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
    """Return labels that are numbers as 64-bit integers; floats that are labels are whole."""
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
    """Return what all models have."""
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
    """Return the members that count, in the units of the caller and measured from the centre."""
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
    """Return the calibrator of a classifier that has one, and whether it decides."""
    if model.calibration is None or not model._is_calibrated():
        return {}
    calibrator = model._engine.calibrator(str(model.calibration), model._fit_calibrator)
    return {"calibrator": calibrator, "by_probability": not model._is_weighted}
