"""Optimality and uniqueness of a solution, computed from coefficients and kernel values."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from marginwise._arrays import Float, Ints
from marginwise._engine.plan import precomputed
from marginwise.exact import ExactSVC
from marginwise.one_class import ExactOneClassSVM

AT_BOUND = 1e-12  # relative distance below which a coefficient counts as being at its bound
DEFINITE = ("linear", "rbf", "cosine", "tanimoto")  # kernels that are positive semi-definite


def is_unique(model: Any, without: Ints) -> bool:
    """Return whether the solution for the rows other than `without` is known to be unique.

    It is unique if the problem is convex: for a positive semi-definite kernel. Precomputed values
    only need to be positive semi-definite between these rows, and only on coefficients that sum to
    0, because the sum of the coefficients is given.
    """
    plan, state = model._engine.plan, model._engine.state()
    held = (state["rank"] >= 0).any(axis=0) & ~np.isin(state["ids"], without)
    if not held.any() or plan.kernel in DEFINITE:
        return True
    if plan.kernel == "poly":
        return bool(plan.coef0 >= 0)
    if model.kernel != "precomputed":
        return False
    X = model._engine.features_of(state)[held]
    return _is_definite(precomputed(X, X))


def _is_definite(K: Float) -> bool:
    """Return whether a kernel matrix is positive semi-definite after centring, up to rounding."""
    n, size = len(K), float(np.abs(K).max())
    K = K - K.mean(axis=0)
    K -= K.mean(axis=1, keepdims=True)
    # Kernel values may have been rounded to single precision, and centring rounds them to double.
    rounding = 2 * np.finfo(np.float32).eps * np.sqrt(n) * float(np.abs(K).max())
    rounding += float(np.finfo(np.float64).eps) * n * size + sys.float_info.min
    if np.abs(K - K.T).max() > rounding:
        return False
    K = (K + K.T) / 2
    K.flat[:: n + 1] += rounding
    try:
        with threadpool_limits(1):  # several threads wait for each other if processors are busy
            np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return False
    return True


def largest_violation(model: Any) -> float:
    """Return the largest violation of the optimality conditions, relative to the targets.

    f(x) is computed from the coefficients and kernel values. y f(x) must be at least 1 if the
    coefficient is 0, at most 1 if it is at its bound, and exactly 1 otherwise. For a sphere, the
    target is half the sum of the coefficients times K(x, x) instead of 1. The coefficients must sum
    to 0, or to the value that nu or C requires. The gradient that a model maintains is not used.
    """
    engine = model._engine
    state = engine.state()
    if len(state["ids"]) == 0:
        return 0.0
    X = engine.features_of(state)
    f = engine.decision(X)
    if isinstance(model, ExactOneClassSVM):
        batch = engine.batch(X)
        squares = model._square if model.kernel == "precomputed" else engine.diagonal(batch)
        target = np.reshape(engine.total / 2 * squares * np.ones(len(f)), (-1, 1))
        signs = np.ones((len(f), 1))
        total = engine.total
    else:
        signs = target = engine.signs(state["labels"])
        total = 0.0
    worst = [_imbalance(state["alpha"], total)]
    for c in range(f.shape[1]):
        held = state["rank"][c] >= 0
        size = np.abs(state["alpha"][c][held])
        rising = size < state["costs"][held] * (1 - AT_BOUND)  # below the bound
        wanting = (target[held, c] - f[held, c]) * signs[held, c]
        scale = np.where(target[held, c] == 0, 1.0, np.abs(target[held, c]))
        wrong = np.maximum(np.where(rising, wanting, 0.0), np.where(size > 0, -wanting, 0.0))
        worst.append(float(np.max(wrong / scale, initial=0.0)))
    return float(np.nan_to_num(max(worst), nan=sys.float_info.max))


def _imbalance(alpha: Float, total: float) -> float:
    """Return the error of the sum of the coefficients, relative to the sum of their sizes."""
    sizes = np.abs(alpha).sum(axis=1)
    return float(np.max(np.abs(alpha.sum(axis=1) - total) / np.where(sizes > 0, sizes, 1.0)))


def compare_with_refit(model: Any) -> dict[str, float]:
    """Fit the stored rows from scratch, and return the differences from the model.

    The new models use the current gamma, penalties and class weights of the model. Each binary
    problem is fitted separately, because with a window each problem stores different rows.
    """
    engine = model._engine
    state = engine.state()
    X = engine.features_of(state)
    said = engine.decision(X) if len(state["ids"]) else np.empty((0, 1))
    objectives = np.abs(engine.objective)
    decision = objective = 0.0
    start = time.perf_counter()
    for c in range(engine.plan.problems):
        rows = np.flatnonzero(state["rank"][c] >= 0)
        if len(rows) == 0:
            continue
        values, value = _refitted(model, state, X, rows, c)
        found = said[rows, c]
        decision = max(decision, float(np.max(np.abs(values - found))))
        scale = max(float(objectives[c]), 1e-300)
        objective = max(objective, abs(value - float(objectives[c])) / scale)
    seconds = time.perf_counter() - start
    return {
        "decision_difference": decision,
        "objective_difference": objective,
        "seconds": seconds,
    }


def _refitted(model: Any, state: Any, X: Any, rows: Any, c: int) -> tuple[Float, float]:
    """Fit a new model to rows of problem c; return its decision values and its dual objective."""
    plan = model._engine.plan
    one_class = isinstance(model, ExactOneClassSVM)
    shape: dict[str, Any] = {
        "kernel": model.kernel if plan.kernel == "callable" else plan.kernel,
        "gamma": plan.gamma,
        "degree": plan.degree,
        "coef0": plan.coef0,
        "cache_size": model.cache_size,
        "n_jobs": model.n_jobs,
    }
    some = X[rows]
    if model.kernel == "precomputed":
        some = some[:, :-1]  # without the column of row ids
    costs = state["costs"][rows]
    more = {"sample_weight": costs, "ids": state["ids"][rows]}
    if one_class:
        nu = plan.settings["nu"]
        bound = {"nu": nu} if nu else {"C": 1.0}
        new: Any = ExactOneClassSVM(**bound, **shape).partial_fit(some, **more)
    else:
        labels = model._engine.signs(state["labels"][rows])[:, c].astype(np.int64)
        new = ExactSVC(C=1.0, **shape).partial_fit(some, labels, classes=[-1, 1], **more)
    values = new._engine.decision(new._augmented(some, None))[:, 0]
    return values, float(np.abs(new._engine.objective)[0])
