"""Creation of models from solutions of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginwise._algorithm import USUAL
from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import take_rows
from marginwise._engine.engine import COUNTERS, Engine
from marginwise._engine.features import stored_features
from marginwise._engine.given import GivenBias
from marginwise._engine.plan import Plan
from marginwise._files.engine_state import check_machine

BLOCK_VALUES = 2**24  # number of kernel values between checks for Ctrl-C
SAMPLED = 256  # support vectors at which single and double precision are compared
PRECISE = 5e-7  # accepted difference, relative to f(x)
BALANCED = 1e-9  # relative tolerance for a sum of coefficients that should be 0
AT_BOUND = 1e-9  # relative distance below which a coefficient counts as being at its bound


@dataclass
class Solution:
    """Support vectors and coefficients of binary problems, in the conventions of this package.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, features)
        The support vectors.
    ids : ndarray of int64
        Ids of the support vectors.
    labels : ndarray of int32
        Class indices of the support vectors.
    alpha : ndarray of shape (problems, n)
        Signed coefficients. The positive class is the second class of a pair, or the class that is
        separated from the rest.
    intercept : ndarray of shape (problems,)
        Constant terms.
    """

    X: Any
    ids: Ints
    labels: Labels
    alpha: Float
    intercept: Float

    def __len__(self) -> int:
        return len(self.ids)

    def without_idle(self) -> Solution:
        """Return the solution without vectors whose coefficients are all 0."""
        kept = np.flatnonzero(self.alpha.any(axis=0))
        if len(kept) == len(self):
            return self
        rows = take_rows(self.X, kept), self.ids[kept], self.labels[kept]
        return Solution(*rows, np.ascontiguousarray(self.alpha[:, kept]), self.intercept)


def take_over(model: Any, solution: Solution, costs: Float, following: int) -> None:
    """Set the state of a model to a solution, from which training can continue.

    Parameters
    ----------
    model : OnlineSVC
        Model with classes and an empty engine.
    solution : Solution
        Solution with feasible coefficients: within their bounds, and with sum 0 in each problem.
    costs : ndarray of shape (n,)
        Bound of the coefficients of each support vector.
    following : int
        Next id.
    """
    engine = model._engine = precise(model._engine, solution)
    machine = _machine(engine, solution, engine.costs(costs))
    check_machine(machine, len(model.classes_))
    engine._restore(machine)
    machine["g"] = _gradient(engine, machine, solution.X)
    check_machine(machine, len(model.classes_))
    engine._restore(machine)
    engine.given_bias = GivenBias(engine.native.bias(), bias_of(engine, solution))
    engine.native.reserve_ids(following)


def precise(engine: Engine, solution: Solution) -> Engine:
    """Return an empty engine that computes the decision values of a solution accurately.

    This is the given engine or, if the decision values of some support vectors would be too
    inaccurate, an engine in double precision, possibly with centred features.
    """
    if len(solution) == 0:
        return engine
    some = np.linspace(0, len(solution) - 1, min(SAMPLED, len(solution))).astype(np.int64)
    rows = take_rows(solution.X, some)
    engines = [engine, *(Engine(plan, None, engine.threads) for plan in _finer(engine, solution))]
    if engine.plan.kernel == "linear":
        f = np.asarray(rows @ (solution.alpha @ solution.X).T) + solution.intercept
    else:
        f = _values(engines[-1], solution, rows)
    bound = PRECISE * max(1.0, float(np.abs(f).max()))
    good = (one for one in engines if np.abs(_values(one, solution, rows) - f).max() <= bound)
    return next(good, engines[-1])


def _finer(engine: Engine, solution: Solution) -> Iterator[Plan]:
    """Yield plans with more accurate decision values."""
    plan = engine.plan
    if not plan.double:
        yield replace(plan, double=True)
    balanced = np.abs(solution.alpha.sum(axis=1)) <= BALANCED * np.abs(solution.alpha).sum(axis=1)
    if plan.kernel == "linear" and not (plan.center or plan.sparse) and balanced.all():
        centre = np.asarray(solution.X.mean(axis=0), dtype=np.float64).ravel()
        yield replace(plan, double=True, center=centre.tolist())


def _values(engine: Engine, solution: Solution, rows: Any) -> Float:
    """Return decision values of rows, computed by an engine without members."""
    packed = engine.native.pack_rows(engine.batch(rows))
    return engine.expansion(solution.X, solution.alpha, packed) + bias_of(engine, solution)


def _machine(engine: Engine, solution: Solution, costs: Float) -> dict[str, Any]:
    """Return the state of an engine whose members are the support vectors, with a gradient of 0."""
    plan = engine.plan
    shape = (plan.problems, len(solution))
    alpha = solution.alpha * plan.unit
    alpha = np.where(np.abs(alpha) < costs * (1 - AT_BOUND), alpha, np.copysign(costs, alpha))
    held = alpha != 0
    return {
        "plan": asdict(plan),
        **stored_features(plan, solution.X),
        "ids": solution.ids,
        "labels": solution.labels,
        "costs": costs,
        "alpha": alpha,
        "g": np.zeros(shape),
        "rank": np.where(held, np.cumsum(held, axis=1) - 1, -1).astype(np.int64),
        "box": np.full(shape, USUAL, dtype=np.uint8),
        "trail": np.zeros(shape),
        "inherited": np.zeros(shape),
        "notes": np.zeros((plan.problems, engine.algorithm.counts)),
        "counters": np.zeros(len(COUNTERS), dtype=np.int64),
    }


def _gradient(engine: Engine, machine: dict[str, Any], X: Any) -> Float:
    """Return the gradient of all members, given an engine whose gradient and bias are 0."""
    labels, n = machine["labels"], len(machine["ids"])
    f = np.empty((n, engine.plan.problems))
    step = max(BLOCK_VALUES // max(n, 1), 1)
    for first in range(0, n, step):
        some = np.arange(first, min(first + step, n))
        batch = engine.batch(take_rows(X, some))
        batch.label(labels[some], machine["costs"][some], machine["ids"][some])
        f[some] = engine.native.own_decision(batch)
    return np.where(machine["rank"] >= 0, (engine.signs(labels) - f).T, 0.0)


def bias_of(engine: Engine, solution: Solution) -> Float:
    """Return the constant terms of the decision functions of centred features."""
    plan = engine.plan
    if plan.kernel != "linear" or not plan.center:
        return solution.intercept
    centre = np.asarray(plan.center)
    X = solution.X.toarray() if sp.issparse(solution.X) else solution.X
    bias: Float = solution.intercept + solution.alpha @ ((X - centre) @ centre)
    return bias
