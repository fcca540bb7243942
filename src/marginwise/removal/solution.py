"""Optimality of a model, computed from coefficients and kernel values."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from marginwise._arrays import Float
from marginwise.exact import ExactSVC
from marginwise.one_class import ExactOneClassSVM

AT_BOUND = 1e-12  # relative to the bound: a coefficient nearer than this is at it


def largest_violation(model: Any) -> float:
    """Return the largest violation of the conditions of the solution, relative to the targets.

    With f(x) from the coefficients and kernel values, y f(x) must be at least 1 for rows whose
    coefficient is 0, at most 1 at the bound and exactly 1 in between. For a sphere, half the sum of
    the coefficients times K(x, x) takes the place of 1. The coefficients must add up to 0, or to
    what nu or C require. The gradient that a model keeps up to date is not used.
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
        rising = size < state["costs"][held] * (1 - AT_BOUND)  # may grow
        wanting = (target[held, c] - f[held, c]) * signs[held, c]
        scale = np.where(target[held, c] == 0, 1.0, np.abs(target[held, c]))
        wrong = np.maximum(np.where(rising, wanting, 0.0), np.where(size > 0, -wanting, 0.0))
        worst.append(float(np.max(wrong / scale, initial=0.0)))
    return float(np.nan_to_num(max(worst), nan=sys.float_info.max))


def _imbalance(alpha: Float, total: float) -> float:
    """Return by how much the coefficients of a problem miss their sum, relative to their sizes."""
    sizes = np.abs(alpha).sum(axis=1)
    return float(np.max(np.abs(alpha.sum(axis=1) - total) / np.where(sizes > 0, sizes, 1.0)))


def compare_with_refit(model: Any) -> dict[str, float]:
    """Fit the stored rows from scratch, problem by problem, and return how much that differs.

    The new models have the gamma, the penalties and the class weights that the model has now. Each
    problem is fitted by itself, because with a window each one stores other rows.
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
    """Return decision values and dual objective of a new model of some rows in one problem."""
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
        some = some[:, :-1]  # without the column that names the row
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
