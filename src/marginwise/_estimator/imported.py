"""Models of solutions that were computed elsewhere: their support vectors become members."""

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

BLOCK_VALUES = 2**24  # kernel values between two looks at Ctrl-C
SAMPLED = 256  # support vectors at which single precision is compared with double
PRECISE = 5e-7  # relative to f(x): what single precision may differ by
BALANCED = 1e-9  # relative: a sum of coefficients that is 0, up to rounding
AT_BOUND = 1e-9  # relative: a coefficient so near to its bound is there, up to rounding


@dataclass
class Solution:
    """Support vectors and coefficients of binary problems, by the conventions of this package.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, features)
        The support vectors.
    ids : ndarray of int64
        Their ids.
    labels : ndarray of int32
        The numbers of their classes.
    alpha : ndarray of shape (problems, n)
        Signed coefficients. The second class of a pair is the positive one, and so is a class
        against the rest.
    intercept : ndarray of shape (problems,)
        The constant terms.
    """

    X: Any
    ids: Ints
    labels: Labels
    alpha: Float
    intercept: Float

    def __len__(self) -> int:
        return len(self.ids)

    def without_idle(self) -> Solution:
        """Return the solution without the vectors whose coefficients are all 0."""
        kept = np.flatnonzero(self.alpha.any(axis=0))
        if len(kept) == len(self):
            return self
        rows = take_rows(self.X, kept), self.ids[kept], self.labels[kept]
        return Solution(*rows, np.ascontiguousarray(self.alpha[:, kept]), self.intercept)


def take_over(model: Any, solution: Solution, costs: Float, following: int) -> None:
    """Give a model, whose classes and empty engine are set, a solution to continue from.

    Parameters
    ----------
    model : OnlineSVC
        The model.
    solution : Solution
        Its coefficients are feasible: within their bounds, and of sum 0 in each problem.
    costs : ndarray of shape (n,)
        The bounds of the coefficients of each support vector.
    following : int
        The next id.
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
    """Return an empty engine by which decision values are those of a solution.

    It is the given one, or one in double precision, whose features may be measured from a centre,
    if the decision values of some support vectors are otherwise too far off.
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
    """Yield plans by which decision values have fewer errors."""
    plan = engine.plan
    if not plan.double:
        yield replace(plan, double=True)
    balanced = np.abs(solution.alpha.sum(axis=1)) <= BALANCED * np.abs(solution.alpha).sum(axis=1)
    if plan.kernel == "linear" and not (plan.center or plan.sparse) and balanced.all():
        centre = np.asarray(solution.X.mean(axis=0), dtype=np.float64).ravel()
        yield replace(plan, double=True, center=centre.tolist())


def _values(engine: Engine, solution: Solution, rows: Any) -> Float:
    """Return decision values of rows by an engine without members."""
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
    """Return the gradient of all places, of an engine whose gradient, and so its bias, is 0."""
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
    """Return the constant terms of decision functions of features measured from the centre."""
    plan = engine.plan
    if plan.kernel != "linear" or not plan.center:
        return solution.intercept
    centre = np.asarray(plan.center)
    X = solution.X.toarray() if sp.issparse(solution.X) else solution.X
    bias: Float = solution.intercept + solution.alpha @ ((X - centre) @ centre)
    return bias
