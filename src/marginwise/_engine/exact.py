"""The native model of the exact estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from marginwise._arrays import Float
from marginwise._core import ExactLearner
from marginwise._engine.engine import Engine
from marginwise._engine.plan import BlockFunction, Plan

# Arrays of an exact model: the free set, problem by problem and slot by slot, and its factors.
FREE_SET = {
    "slots": ("int64", ("problems",)),
    "margin": ("int64", ("slots",)),
    "factor": ("float64", ("factor",)),
}


def free_set_sizes(state: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of slots and the number of values in all factors."""
    slots = np.asarray(state["slots"])
    if slots.ndim != 1 or slots.dtype != "int64" or not ((slots >= 0) & (slots <= 2**31)).all():
        raise ValueError("slots must be a list of counts")
    sizes = slots.tolist()
    return {"slots": sum(sizes), "factor": sum(2 * n + n * (n + 1) // 2 for n in sizes)}


def check_free_sets(state: Mapping[str, Any]) -> None:
    """Check that free sets contain distinct members and that their factors are nonsingular."""
    plan, factor = state["plan"], state["factor"]
    if not plan["double"]:
        raise ValueError("exact models are in double precision")
    if plan["settings"]["nu"] != 0 and not plan["settings"]["sphere"]:
        raise ValueError("nu belongs to a sphere")
    if not np.isfinite(factor).all():
        raise ValueError("factor must be finite")
    first = at = 0
    for c in np.flatnonzero(state["slots"]).tolist():
        n = int(state["slots"][c])
        holes = state["margin"][first : first + n] == -1
        inside = state["margin"][first : first + n][~holes]
        if not ((inside >= 0) & (inside < len(state["ids"]))).all():
            raise ValueError("margin must name members")
        if len(np.unique(inside)) < len(inside):
            raise ValueError("margin must name members once")
        if not (state["rank"][c][inside] >= 0).all():
            raise ValueError("margin must name members that are held")
        if not (factor[at : at + n] == holes).all():
            raise ValueError("factor must know its holes")
        starts = at + 2 * n + np.cumsum([0, *range(n, 1, -1)])[:n]
        if not (factor[starts] > 0).all():
            raise ValueError("factor must have a positive diagonal")
        first, at = first + n, at + 2 * n + n * (n + 1) // 2


class ExactEngine(Engine):
    """Wrapper of a native model that is the exact solution after every call."""

    native: ExactLearner
    _reported = 0  # number of paths that could not be followed

    def _build(self) -> ExactLearner:
        return ExactLearner(self._spec(), self.plan.settings)

    @classmethod
    def from_state(
        cls, state: dict[str, Any], function: BlockFunction | None, jobs: int | None
    ) -> Self:
        """Return the engine that had this state."""
        engine = super().from_state(state, function, jobs)
        engine.take_resolved()
        return engine

    def _stored(self) -> dict[str, Any]:
        stored = super()._stored()
        stored.pop("_history", None)
        return {**stored, "_steps": self.native.path()} if self.plan.record else stored

    def rebuilt(self, plan: Plan, costs: Float) -> ExactEngine:
        """Return the solution for the same examples with another scale, centre or other costs.

        Parameters
        ----------
        plan : Plan
            Plan of the new engine.
        costs : ndarray of shape (members,)
            New costs of the members.
        """
        state = self.state()
        held = (state["rank"] >= 0).any(axis=0)
        if plan.sparse:
            features = {"data": state["data"] * (plan.scale / self.plan.scale)}
        else:
            centre = np.asarray(plan.center) if plan.center else 0.0
            X = (self.features_of(state) - centre) * plan.scale
            features = {"X": np.where(held[:, None], X, 0.0)}
        alpha = state["alpha"] * (costs / state["costs"])  # bounded ones stay at their bounds
        bounds = np.abs(costs)
        known = {
            **state,
            **features,
            "costs": costs,
            "alpha": np.clip(alpha, -bounds, bounds),
        }
        engine = ExactEngine(plan, self.function, self.threads)
        engine._restore(known)  # with a gradient of the old kernel, which solve() replaces
        engine.take_resolved()
        engine.native.reserve_ids(self.native.next_id)
        engine.native.count_since_finish(self.native.since_finish)
        if plan.record:
            engine.native.set_path(self.native.path())
        engine.native.solve()
        return engine

    def scale_costs(self, factor: float) -> None:
        """Multiply all costs by a factor and update the solution."""
        while factor != 1.0:  # in small steps, so that the events along a path stay distinct
            step = min(max(factor, 1e-6), 1e6)
            self.native.scale_costs(step)
            factor /= step

    @property
    def resolved(self) -> int:
        """Number of paths that could not be followed."""
        return int(np.sum(self.native.resolved()))

    def take_resolved(self) -> int:
        """Return the number of paths that could not be followed since the last call."""
        before, self._reported = self._reported, self.resolved
        return self._reported - before

    @property
    def total(self) -> float:
        """Sum of the coefficients."""
        return float(self.native.total()[0])
