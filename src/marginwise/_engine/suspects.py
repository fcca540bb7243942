"""The part of a state that records suspects: examples whose labels look wrong.

Only suspects that are not members are recorded; the gradient of a member gives its y f(x).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOTING = ("gap", "exact_ramp")  # algorithms
# The number of suspects of each problem; then for each suspect, problem by problem and in order of
# ids: the id, the class, and y f(x) when it was last evaluated.
SUSPECTS = {
    "suspects": ("int64", ("problems",)),
    "suspect_ids": ("int64", ("suspects",)),
    "suspect_labels": ("int32", ("suspects",)),
    "suspect_values": ("float64", ("suspects",)),
}


def no_suspects(problems: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model without suspects; `problems` is the shape of the first array."""
    empty = {name: np.zeros(0, dtype) for name, (dtype, _) in SUSPECTS.items()}
    return {**empty, "suspects": np.zeros(problems, np.int64)}


def suspect_sizes(state: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of suspects."""
    counts = np.asarray(state["suspects"])
    if counts.ndim != 1 or counts.dtype != "int64" or not ((counts >= 0) & (counts <= 2**40)).all():
        raise ValueError("suspects must be a list of counts")
    return {"suspects": sum(counts.tolist())}


def check_suspects(state: Mapping[str, Any], ramp: float) -> None:
    """Check that suspects are distinct, are not members, and have y f(x) below the ramp."""
    labels, values = state["suspect_labels"], state["suspect_values"]
    if not ((labels >= 0) & (labels < max(state["plan"]["problems"], 2))).all():
        raise ValueError("suspect_labels must be numbers of classes")
    if not (np.isfinite(values) & (values < ramp)).all():
        raise ValueError("suspect_values must be finite and below the ramp")
    ends = np.cumsum(state["suspects"])[:-1]
    for c, ids in enumerate(np.split(state["suspect_ids"], ends)):
        if not (ids[:-1] < ids[1:]).all():
            raise ValueError("suspect_ids must ascend within a problem")
        if len(ids) and np.isin(ids, state["ids"][state["rank"][c] >= 0]).any():
            raise ValueError("suspect_ids must not name examples that are stored")
