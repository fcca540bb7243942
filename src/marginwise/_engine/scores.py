"""Decision values of many rows, updated while a model learns.

Learning one example changes few coefficients. The decision values of a pool are therefore updated
with the kernel values of the changed members only, instead of being recomputed from all support
vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginwise._arrays import Float, Ints
from marginwise._core import Batch
from marginwise._engine.engine import Engine

MOST_BYTES = 1 << 32  # of a copy of the rows; larger pools are recomputed each time


class Scores:
    """Decision values of the rows of a pool under a model that continues to learn.

    Parameters
    ----------
    engine
        The model.
    batch
        The rows.
    find
        Returns the features of members by their ids, or None if it does not know all of them.
    labelled
        Whether the rows have labels, so that only the problems of their classes matter.
    """

    def __init__(
        self,
        engine: Engine,
        batch: Batch,
        find: Callable[[Ints], Any | None],
        labelled: bool = False,
    ) -> None:
        self.engine = engine
        self.batch = batch
        self._find = find
        self._labelled = labelled
        # An update uses all rows, whereas labelled rows in one-vs-one problems need only a third
        # of the members.
        self._most_changed = 1 / 6 if labelled and engine.plan.pairs else 1 / 2
        self._ids: Ints = np.empty(0, dtype=np.int64)
        self._alpha: Float = np.empty((engine.plan.problems, 0))
        self._sums: Float | None = None
        self._laid: tuple[bool, Any] | None = None
        self.recomputed = 0  # number of complete recomputations

    def values(self) -> Float:
        """Return f(x) of all rows, one column per binary problem."""
        engine = self.engine
        ids, _, alpha = engine.coefficients
        changed, change = self._difference(ids, alpha)
        few = 0 < len(changed) <= self._most_changed * len(ids)
        centres = self._find(changed) if few else None
        sums = self._sums
        if sums is None or (len(changed) and (centres is None or self._too_large)):
            native = engine.native
            decision = native.own_decision if self._labelled else native.decision
            sums = decision(self.batch) - native.bias()
            self.recomputed += 1
        elif centres is not None:
            sums = sums + engine.expansion(centres, change, self._rows_laid_out())
        # One assignment, so that an interrupt cannot lead to the same update twice.
        self._ids, self._alpha, self._sums = ids, alpha, sums
        return sums + engine.bias

    def _rows_laid_out(self) -> Any:
        """Return the rows in the core's memory layout and the precision of the model."""
        double = self.engine.plan.double
        if self._laid is None or self._laid[0] != double:
            self._laid = double, self.engine.native.pack_rows(self.batch)
        return self._laid[1]

    @property
    def _too_large(self) -> bool:
        assert self._sums is not None
        plan = self.engine.plan
        return not plan.sparse and len(self._sums) * plan.features * 8 > MOST_BYTES

    def _difference(self, ids: Ints, alpha: Float) -> tuple[Ints, Float]:
        """Return the ids whose coefficients changed since the last call, and the changes."""
        every = np.union1d(self._ids, ids)
        change = np.zeros((alpha.shape[0], len(every)))
        change[:, np.searchsorted(every, ids)] = alpha
        change[:, np.searchsorted(every, self._ids)] -= self._alpha
        moved = change.any(axis=0)
        return every[moved], np.ascontiguousarray(change[:, moved])

    def state(self) -> dict[str, Any] | None:
        """Return what a copy needs to return bitwise identical values."""
        if self._sums is None:
            return None
        return {"ids": self._ids, "alpha": self._alpha, "sums": self._sums}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `state`."""
        ids, alpha, sums = state["ids"], state["alpha"], state["sums"]
        rows = len(sums) if self._sums is None else len(self._sums)
        problems = self.engine.plan.problems
        shapes = {"alpha": (problems, len(ids)), "sums": (rows, problems)}
        for name, shape in shapes.items():
            array = state[name]
            if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"its {name} must be finite numbers of shape {shape}")
        if ids.dtype != np.int64 or len(np.unique(ids)) < len(ids):
            raise ValueError("its ids of scores must be different integers")
        self._ids, self._alpha, self._sums = ids, alpha, sums.copy()
