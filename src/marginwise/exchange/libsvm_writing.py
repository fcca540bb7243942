"""Conversion of fitted models to LIBSVM model files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise._checks import take_rows
from marginwise._engine.engine import Engine
from marginwise._engine.features import caller_features
from marginwise._estimator.imported import BALANCED, Solution
from marginwise.exchange.libsvm_layout import laid_out
from marginwise.exchange.libsvm_manifest import Part, own_class_first
from marginwise.exchange.libsvm_text import NAMES, ONE_CLASS, PARAMETERS, ModelText, formatted
from marginwise.one_class import ExactOneClassSVM

MOST_LABEL = 2**31 - 1  # LIBSVM's labels are 32-bit integers


def solution_of(model: Any, engine: Engine) -> Solution:
    """Return the support vectors of a model in the units of the caller, and the coefficients."""
    plan, state, weights = engine.plan, engine.state(), engine.weights
    support = np.flatnonzero((weights != 0).any(axis=0))
    X = take_rows(caller_features(plan, state), support)
    alpha = np.ascontiguousarray(weights[:, support])
    intercept: Float = engine.bias + getattr(model, "_intercept", 0.0)
    if plan.center and plan.kernel == "linear":
        centre = np.asarray(plan.center)
        intercept = intercept - alpha @ ((X - centre) @ centre)
        if (np.abs(alpha.sum(axis=1)) > BALANCED * np.abs(alpha).sum(axis=1)).any():
            X = X - centre  # w is the weighted sum of the centred vectors
    return Solution(X, state["ids"][support], state["labels"][support], alpha, intercept)


def check_writable(model: Any, engine: Engine) -> None:
    """Raise unless the format supports the kernel of a model."""
    name, plan = type(model).__name__, engine.plan
    if plan.kernel not in NAMES:
        kernel = "a function or precomputed" if plan.kernel == "callable" else repr(plan.kernel)
        raise ValueError(
            f"the kernel of this {name} is {kernel}, which LIBSVM does not have. Expected one of "
            f"{', '.join(map(repr, NAMES))}."
        )
    if isinstance(model, ExactOneClassSVM) and plan.kernel != "rbf":
        raise ValueError(
            f"this ExactOneClassSVM has kernel={plan.kernel!r}: the decision function of a sphere "
            "then depends on K(x, x), which that of LIBSVM does not. Use kernel='rbf'."
        )
    if plan.center and plan.kernel in ("poly", "sigmoid"):
        raise ValueError(
            f"this {name} has center=True and kernel={plan.kernel!r}: LIBSVM does not centre "
            "features. Centre them before fitting, with center=False."
        )


def kernel_of(engine: Engine) -> dict[str, Any]:
    """Return the name and the parameters of the kernel of a model."""
    plan = engine.plan
    return {
        "kernel": plan.kernel,
        **{name: getattr(plan, name) for name in PARAMETERS[plan.kernel]},
    }


def one_class(engine: Any) -> bytes:
    """Return the file of a one-class model with K(x, x) = 1."""
    found = solution_of(None, engine)
    rho = np.array([engine.total / 2 - engine.native.bias()[0]])
    return formatted(
        ModelText(ONE_CLASS, kernel_of(engine), [], [len(found)], rho, found.alpha.T, found.X)
    )


def binary(kernel: dict[str, Any], found: Solution, labels: list[int]) -> bytes:
    """Return the file of a binary model with the given labels."""
    order = np.argsort(-found.labels, kind="stable")
    counts = np.bincount(found.labels, minlength=2)[::-1].tolist()
    X, alpha = take_rows(found.X, order), found.alpha[:, order].T
    return formatted(ModelText("c_svc", kernel, labels[::-1], counts, -found.intercept, alpha, X))


def in_pairs(kernel: dict[str, Any], found: Solution, labels: list[int]) -> bytes:
    """Return the file of a one-vs-one model with the given labels."""
    vectors, groups, coefficients = laid_out(found.alpha, found.labels, len(labels))
    counts = np.bincount(groups, minlength=len(labels)).tolist()
    X = take_rows(found.X, vectors)
    return formatted(ModelText("c_svc", kernel, labels, counts, found.intercept, coefficients, X))


def against_rest(kernel: dict[str, Any], found: Solution, k: int, name: str) -> Part:
    """Return the file of class k against the rest, and its entries in the manifest."""
    classes = len(found.alpha)
    support = np.flatnonzero(found.alpha[k])
    place = np.argsort(own_class_first(k, classes))  # of each class in the file
    order = support[np.argsort(place[found.labels[support]], kind="stable")]
    n_support = np.bincount(found.labels[order], minlength=classes)
    counts = [int(n_support[k]), int(n_support.sum() - n_support[k])]
    X, alpha = take_rows(found.X, order), found.alpha[k, order][:, None]
    text = ModelText("c_svc", kernel, [1, -1], counts, -found.intercept[k : k + 1], alpha, X)
    said = {"n_support": n_support.tolist(), "ids": found.ids[order].tolist()}
    return name, formatted(text), said


def integer_labels(classes: NDArray[Any]) -> list[int] | None:
    """Return class labels as 32-bit integers; None if they are not such integers."""
    if classes.dtype.kind not in "iuf" or not (np.abs(classes.astype(float)) <= MOST_LABEL).all():
        return None
    numbers = classes.astype(np.int64)
    return numbers.tolist() if (numbers == classes).all() else None
