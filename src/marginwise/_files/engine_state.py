"""Validation of the state of an engine before it is passed to the native core.

The core does not validate a state. An external state is therefore checked completely here: types,
shapes, and the consistency of its parts. Every failure is a ValueError that names the part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._algorithm import ALGORITHMS, ENDLESS, SHIFTED, SHUT, Algorithm
from marginwise._checks import (
    MOST,
    MOST_BUDGET,
    MOST_DEGREE,
    MOST_FEATURES,
    Rule,
    boolean,
    count,
    floats,
    instance,
    key_of,
    obey,
    one_of,
    positive,
    power_of_two,
    real,
)
from marginwise._engine.engine import COUNTERS, EARLY_COUNTERS
from marginwise._engine.memory import AUTO
from marginwise._engine.plan import (
    NATIVE,
    SINGLE_LIMIT,
    Plan,
    check_squares,
    problems_of,
    signs,
)

State = Mapping[str, Any]

MOST_DENSE_FEATURES = 2**26 - 1  # the core uses 32-bit indices for the values of a dense tile
LARGEST_NORM = 1e300  # |x|^2
# Bytes of memory of a binary problem without members. A model that would be much larger in memory
# than its file is rejected, unless it is small.
PROBLEM_BYTES = 9_000
FREE_BYTES = 381 << 20
BLOW_UP = 16
SLACK = 1.01  # tolerance, because the core computes these values with other roundings
AT_ONCE = 2**18  # maximum number of values, over several problems, to check together

_PLAN: dict[str, Rule] = {
    "kernel": one_of(*NATIVE, "callable"),
    "gamma": positive(),
    "coef0": real(),
    "degree": count(1, MOST_DEGREE),
    "problems": count(1),
    "features": count(1, MOST_FEATURES),
    "sparse": boolean(),
    "double": boolean(),
    "cache_bytes": count(AUTO),
    "algorithm": key_of(ALGORITHMS, "the name of an algorithm"),
    "settings": instance(dict, "a dict"),
    "center": floats(),
    "record": boolean(),
    "unit": power_of_two(),
    "pairs": boolean(),
    "budget": count(0, MOST_BUDGET),
    "foresees": boolean(),
}

# Types of the arrays of a state, and the meaning of their dimensions.
_ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ids": ("int64", ("members",)),
    "labels": ("int32", ("members",)),
    "costs": ("float64", ("members",)),
    "alpha": ("float64", ("problems", "members")),
    "g": ("float64", ("problems", "members")),
    "rank": ("int64", ("problems", "members")),
    "box": ("uint8", ("problems", "members")),
    "trail": ("float64", ("problems", "members")),
    "inherited": ("float64", ("problems", "members")),
    "notes": ("float64", ("problems", "notes")),
    "counters": ("int64", ("counters",)),
}
_DENSE = {"X": ("real", ("members", "features"))}
_SPARSE = {
    "data": ("real", ("entries",)),
    "indices": ("int32", ("entries",)),
    "indptr": ("int64", ("members + 1",)),
}


def check_machine(
    machine: State, classes: int, fits: Callable[[State], None] | None = None
) -> None:
    """Check everything that the core assumes about the state of an engine.

    Parameters
    ----------
    machine : mapping
        Supposed result of `Engine.state`.
    classes : int
        Number of classes of the estimator.
    fits : callable, default=None
        Called with the plan; raises ValueError if it does not match the estimator.
    """
    plan: Any = machine.get("plan")
    _check_plan_values(plan)
    if fits is not None:
        fits(plan)
    _check_plan(plan, classes)
    features = _SPARSE if plan["sparse"] else _DENSE
    algorithm = ALGORITHMS[plan["algorithm"]]
    expected = {**_ARRAYS, **features, **algorithm.arrays}
    require_names({"plan", *expected}, machine, "parts of _machine")
    sizes = _sizes(machine, plan)
    for name, (dtype, sides) in expected.items():
        dtype = sizes["real"] if dtype == "real" else dtype
        check_array(name, machine[name], dtype, tuple(sizes[side] for side in sides))
    stored = sum(machine[name].nbytes for name in expected)
    _require(
        plan["problems"] * PROBLEM_BYTES <= FREE_BYTES + BLOW_UP * stored,
        f"{plan['problems']} problems are too many for a model of {stored} bytes",
    )
    with np.errstate(all="ignore"):
        _check_counts(machine, algorithm)
        _check_members(machine, classes)
        at_once = max(AT_ONCE // max(sizes["members"], 1), 1)
        for first in range(0, plan["problems"], at_once):
            _check_problems(machine, slice(first, first + at_once), plan)
        if plan["sparse"]:
            _check_lists(machine, plan["features"])
        _check_sizes(machine, plan)


def _check_plan_values(plan: Any) -> None:
    _require(isinstance(plan, dict), "the plan of _machine must be a dict")
    require_names({field.name for field in fields(Plan)}, plan, "parts of the plan")
    obey(_PLAN, plan)


def _check_plan(plan: State, classes: int) -> None:
    algorithm = ALGORITHMS[plan["algorithm"]]
    rules = algorithm.settings
    require_names(rules, plan["settings"], "settings of the algorithm")
    obey(rules, plan["settings"])
    width = plan["features"]
    _require(not plan["pairs"] or (algorithm.pairs and classes > 2), "classes cannot be paired")
    _require(not plan["budget"] or algorithm.budgeted, "its algorithm has no budget")
    _require(plan["problems"] == problems_of(classes, plan["pairs"]), "problems must fit classes_")
    _require(len(plan["center"]) in (0, width), "center must have a value per feature")
    distance = plan["gamma"] * sum(x * x for x in plan["center"])
    _require(distance <= LARGEST_NORM / 10, "center is too far off")
    centred = plan["kernel"] in ("rbf", "linear") or not algorithm.biased or algorithm.exact
    fits = centred and not plan["sparse"] and plan["kernel"] != "callable"
    _require(fits or not plan["center"], "center belongs to dense features and other kernels")
    if plan["kernel"] == "callable":
        _require(plan["double"] and not plan["sparse"], "precomputed rows are double and dense")
    _require(plan["sparse"] or width <= MOST_DENSE_FEATURES, "too many features to be dense")


def _sizes(machine: State, plan: State) -> dict[str, Any]:
    """Return the sizes of the dimensions of arrays, by name."""
    algorithm = ALGORITHMS[plan["algorithm"]]
    members = machine["ids"].shape[0]
    counters = machine["counters"]
    early = len(counters) if isinstance(counters, np.ndarray) and counters.ndim == 1 else 0
    return {
        "members": members,
        "members + 1": members + 1,
        "problems": plan["problems"],
        "features": plan["features"],
        "entries": machine["data"].shape[0] if plan["sparse"] else 0,
        "counters": early if early in EARLY_COUNTERS else len(COUNTERS),
        "notes": algorithm.counts + algorithm.numbers,
        **(algorithm.sizes(machine) if algorithm.sizes is not None else {}),
        "real": "float64" if plan["double"] else "float32",
    }


def _check_counts(machine: State, algorithm: Algorithm) -> None:
    _require(_within(machine["counters"], 0, MOST), "counters must be counts")
    notes = machine["notes"]
    counts = notes[:, : algorithm.counts]
    whole = (counts == np.floor(counts)).all()
    _require(_within(counts, 0, MOST) and whole, "notes must begin with counts")
    _require(not np.isnan(notes).any(), "notes must be numbers")
    if algorithm.check is not None:
        algorithm.check(machine)


def _check_members(machine: State, classes: int) -> None:
    _require(_within(machine["labels"], 0, classes - 1), "labels must be numbers of classes")
    costs = machine["costs"]
    _require(_within(costs, 0, np.inf) and costs.all(), "costs must be finite and above 0")
    # An id may occur twice: a member that belongs to no problem remains until it is removed, even
    # if its example is learned again. The last occurrence is then the one in use.
    ids, held = machine["ids"], (machine["rank"] >= 0).any(axis=0)
    _, last = np.unique(ids[::-1], return_index=True)
    latest = np.zeros(len(ids), dtype=bool)
    latest[len(ids) - 1 - last] = True
    _require(latest[held].all(), "ids of members that are held must be different")


def _check_problems(machine: State, some: slice, plan: State) -> None:
    """Check the coefficients, gradients and ranks of a slice of the binary problems."""
    names = ("alpha", "g", "rank", "box", "trail", "inherited")
    alpha, g, rank, box, trail, inherited = (machine[name][some] for name in names)
    held = rank >= 0
    _require((rank >= -1).all(), "rank must be -1 or more")
    ordered = np.sort(rank, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    _require(not repeated.any(), "ranks must be different")
    _require(np.isfinite(g).all(), "g must be finite")
    _require(np.isfinite(trail).all(), "trail must be finite")
    _require(np.isfinite(inherited).all(), "inherited must be finite")
    _require(plan["budget"] or not inherited.any(), "only a budget leaves something to inherit")
    algorithm = ALGORITHMS[plan["algorithm"]]
    _require(set(np.unique(box).tolist()) <= algorithm.boxes, "box must be known")
    _require(not alpha[~held].any(), "alpha must be 0 where a member has no rank")
    sides = signs(machine["labels"], plan["problems"], plan["pairs"], some).T
    shared = plan["budget"] or algorithm.shared
    _require(shared or sides[held].all(), "a problem holds members of its classes only")
    sides = np.where(box == SHIFTED, -sides, np.where(box == SHUT, 0.0, sides)) * machine["costs"]
    lo, hi = np.minimum(sides, 0) + inherited, np.maximum(sides, 0) + inherited
    inside = (alpha >= lo) & (alpha <= hi)
    unbounded = (box == ENDLESS) & np.isfinite(alpha)
    _require((inside | unbounded).all(), "alpha must lie between 0 and the cost of its member")


def _check_lists(machine: State, features: int) -> None:
    """Check the consistency of sparse features."""
    data, indices, indptr = machine["data"], machine["indices"], machine["indptr"]
    _require(indptr[0] == 0 and indptr[-1] == len(data), "indptr must count the entries")
    _require((indptr[:-1] <= indptr[1:]).all(), "indptr must not decrease")
    _require(_within(indices, 0, features - 1), "indices must be numbers of features")
    ascending = indices[:-1] < indices[1:]
    starts = indptr[(indptr > 0) & (indptr < len(data))]
    ascending[starts - 1] = True
    _require(ascending.all(), "indices must ascend within a row")


def _check_sizes(machine: State, plan: State) -> None:
    """Check that features are finite and small enough for their precision."""
    values = machine["data"] if plan["sparse"] else machine["X"]
    _require(np.isfinite(values).all(), "features must be finite")
    squares = _squares(machine, plan)
    if squares.size == 0:
        return
    single = SINGLE_LIMIT if plan["kernel"] == "rbf" else float(np.finfo(np.float32).max)
    limit = LARGEST_NORM if plan["double"] else single
    _require(squares.max() <= limit * SLACK, "features are too large for their precision")
    check_squares(Plan(**plan), squares)
    if plan["kernel"] != "callable":
        _check_reach(machine, plan, _kernel_sizes(plan, squares))
    elif knows_columns(machine):
        largest = np.abs(machine["X"][:, :-1]).max(initial=0.0)
        _check_reach(machine, plan, np.full(len(squares), np.sqrt(largest)))


def _squares(machine: State, plan: State) -> NDArray[np.float64]:
    """Return |x|^2 of all members."""
    if not plan["sparse"]:
        X = machine["X"]
        return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    squares = np.zeros(len(machine["ids"]))
    starts, ends = machine["indptr"][:-1], machine["indptr"][1:]
    filled = starts < ends
    if filled.any():
        values = np.square(machine["data"], dtype=np.float64)
        squares[filled] = np.add.reduceat(values, starts[filled])
    return squares


def _check_reach(machine: State, plan: State, sizes: NDArray[np.float64]) -> None:
    """Check that gradients do not exceed what the kernel values allow.

    Optimization from larger gradients would not terminate. `Engine.verify` later compares some
    gradients with their exact values. Here ``abs(K(k, l)) <= sizes[k] * sizes[l]``.
    """
    total = np.abs(machine["notes"][:, -1]).max() if ALGORITHMS[plan["algorithm"]].exact else 0.0
    most = 1.0 + total * sizes * sizes
    rounding = 1e-6 * sizes * (machine["costs"] @ sizes)
    at_once = max(AT_ONCE // len(sizes), 1)
    for first in range(0, plan["problems"], at_once):
        some = slice(first, first + at_once)
        added = (np.abs(machine["alpha"][some]) @ sizes)[:, None] * sizes
        fits = np.abs(machine["g"][some]) <= 4 * (most + added + rounding)
        _require(fits.all(), "g must be the gradient of alpha")


def _kernel_sizes(plan: State, squares: NDArray[np.float64]) -> NDArray[np.float64]:
    if plan["kernel"] == "linear":
        return np.sqrt(squares)
    if plan["kernel"] == "poly":
        sizes: NDArray[np.float64] = (squares + abs(plan["coef0"])) ** (plan["degree"] / 2)
        return sizes
    return np.ones(len(squares))


def knows_columns(machine: State) -> bool:
    """Return whether rows are precomputed kernel values, followed by their column number."""
    held = (machine["rank"] >= 0).any(axis=0)
    X, ids = machine["X"][held], machine["ids"][held]
    return _within(ids, 0, machine["X"].shape[1] - 2) and bool((X[:, -1] == ids).all())


# -- parts of the checks -----------------------------------------------------------------------


def _require(holds: Any, message: str) -> None:
    if not holds:
        raise ValueError(message)


def require_names(expected: Iterable[str], found: Iterable[str], what: str) -> None:
    odd = sorted(set(expected) ^ set(found))
    if odd:
        lacking = "lacks" if odd[0] in expected else "does not know"
        raise ValueError(f"its {what} are not those expected: it {lacking} {odd[0]!r:.40}")


def check_array(name: str, array: Any, dtype: str, shape: tuple[int, ...]) -> None:
    fits = type(array) is np.ndarray and array.dtype == dtype and array.shape == shape
    _require(fits, f"{name} must be an array of {dtype} of shape {shape}")


def _within(array: NDArray[Any], low: float, high: float) -> bool:
    """Return whether all values are finite numbers in a range."""
    return bool((np.isfinite(array) & (array >= low) & (array <= high)).all())
