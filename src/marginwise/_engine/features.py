"""Conversion of features between the units of the caller and the state of an engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from marginwise._arrays import Float
from marginwise._engine.plan import Plan


def stored_features(plan: Plan, X: Any) -> dict[str, Any]:
    """Return rows as an engine stores them: centred and scaled."""
    real = np.float64 if plan.double else np.float32
    if plan.sparse:
        return {
            "data": (X.data * plan.scale).astype(real),
            "indices": X.indices.astype(np.int32),
            "indptr": X.indptr.astype(np.int64),
        }
    dense = X.toarray() if sp.issparse(X) else X
    offset = np.asarray(plan.center) if plan.center else 0.0
    return {"X": ((dense - offset) * plan.scale).astype(real)}


def caller_features(plan: Plan, state: dict[str, Any]) -> Any:
    """Return the members of a state in the units of the caller, in double precision.

    They equal the rows that were learned up to the precision of the engine.
    """
    if plan.sparse:
        parts = (state["data"].astype(np.float64) / plan.scale, state["indices"], state["indptr"])
        return sp.csr_array(parts, shape=(len(state["ids"]), plan.features))
    rows: Float = state["X"].astype(np.float64) / plan.scale
    return rows + np.asarray(plan.center) if plan.center else rows
