"""What the state of an estimator must satisfy before the native core is given it.

The core believes what it is handed, so a state from outside is checked here in full: types,
shapes, and the parts against each other. All failures are ValueErrors that name the part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._algorithm import ALGORITHMS, ENDLESS, SHIFTED, SHUT, Algorithm
from marginwise._arrays import MOST_FEATURES
from marginwise._engine.engine import COUNTERS, EARLY_COUNTERS
from marginwise._engine.kernel import NATIVE
from marginwise._engine.plan import SINGLE_LIMIT, Plan, check_squares, upgraded
from marginwise._params import (
    MOST,
    MOST_DEGREE,
    Rule,
    boolean,
    check_params,
    count,
    either,
    is_integer,
    is_real,
    none,
    one_of,
    positive,
    real,
    threads,
)

State = Mapping[str, Any]

# What `record=True` keeps of every example, and in what type.
HISTORY = {"gap": "float64", "members": "int64", "kernel_evaluations": "int64"}

MOST_IDS = 2**63 - 1  # the next id; the last there is stays as it is
MOST_DENSE_FEATURES = 2**26 - 1  # the core numbers the values of a dense tile with 32 bits
LARGEST_NORM = 1e300  # |x|^2
# A binary problem takes so many bytes in memory, however few members it has. A model that would be
# much larger in memory than in its file is refused, unless it is small.
PROBLEM_BYTES = 9_000
FREE_BYTES = 1 << 28
BLOW_UP = 16
SLACK = 1.01  # for a limit that was held in the arithmetic of the core
AT_ONCE = 2**18  # values of all problems that are looked at together


def _is_weights(value: Any) -> bool:
    return isinstance(value, dict) and all(is_real(v) and v >= 0 for v in value.values())


def _is_floats(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is float and is_real(v) for v in value)


# Parameters that an estimator's own rules leave out or bound less.
_MORE_RULES: dict[str, Rule] = {
    "n_jobs": either(none(), threads()),
    "class_weight": either(none(), one_of("balanced"), (_is_weights, "a dict of weights")),
    "random_state": either(
        none(),
        count(0, 2**32 - 1),
        (lambda v: isinstance(v, np.random.RandomState), "a RandomState"),
    ),
    "verbose": either(boolean(), (is_integer, "an integer")),
}

_PLAN: dict[str, Rule] = {
    "kernel": one_of(*NATIVE, "callable"),
    "gamma": positive(),
    "coef0": real(),
    "degree": count(1, MOST_DEGREE),
    "problems": count(1),
    "features": count(1, MOST_FEATURES),
    "sparse": boolean(),
    "double": boolean(),
    "cache_bytes": count(),
    "algorithm": (lambda v: isinstance(v, str) and v in ALGORITHMS, "the name of an algorithm"),
    "settings": (lambda v: isinstance(v, dict), "a dict"),
    "center": (_is_floats, "a list of finite numbers"),
    "record": boolean(),
    "unit": (
        lambda v: is_real(v) and v > 0 and math.frexp(v)[0] == 0.5,
        "a power of 2",
    ),
}

# Types of the arrays of a machine, and what their sides count.
_ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ids": ("int64", ("members",)),
    "labels": ("int32", ("members",)),
    "costs": ("float64", ("members",)),
    "alpha": ("float64", ("problems", "members")),
    "g": ("float64", ("problems", "members")),
    "rank": ("int64", ("problems", "members")),
    "box": ("uint8", ("problems", "members")),
    "trail": ("float64", ("problems", "members")),
    "notes": ("float64", ("problems", "notes")),
    "counters": ("int64", ("counters",)),
}
_DENSE = {"X": ("real", ("members", "features"))}
_SPARSE = {
    "data": ("real", ("entries",)),
    "indices": ("int32", ("entries",)),
    "indptr": ("int64", ("members + 1",)),
}

# S of an exact model, problem by problem and slot by slot, and its factors.
_MARGINS = {
    "slots": ("int64", ("problems",)),
    "margin": ("int64", ("slots",)),
    "factor": ("float64", ("factor",)),
}

_FITTED = {"n_features_in_", "_machine", "_seen", "_since_finish"}
_FITTED_CLASSIFIER = {*_FITTED, "classes_", "_balance", "_costs"}
_FITTED_ONE_CLASS = {*_FITTED, "_square"}
_OPTIONAL = {"feature_names_in_", "_history", "_steps", "_basis_ids", "_basis_weights", "_adapts"}


def check_classifier(kind: Any, state: State) -> None:
    """Check the state of a `KernelClassifier`, fitted or not.

    Parameters
    ----------
    kind
        The class.
    state
        What `__getstate__` of one of its instances returned, or is said to have.
    """
    if not _check_outline(kind, state, _FITTED_CLASSIFIER):
        return
    classes = state["classes_"]
    _check_classes(state)
    _check_attributes(state, 1 if len(classes) == 2 else len(classes))
    _check_machine(kind, state, len(classes))


def check_one_class(kind: Any, state: State) -> None:
    """Check the state of an `ExactOneClassSVM`, fitted or not.

    Parameters
    ----------
    kind
        The class.
    state
        What `__getstate__` of one of its instances returned, or is said to have.
    """
    if not _check_outline(kind, state, _FITTED_ONE_CLASS):
        return
    _obey({"_square": real()}, state, "")
    _check_attributes(state, 1)
    _check_machine(kind, state, 2)  # all rows are of the second of two
    _require((state["_machine"]["labels"] == 1).all(), "labels must be 1")


def _check_outline(kind: Any, state: State, fitted: set[str]) -> bool:
    """Check names and parameters; return whether the state is that of a fitted estimator."""
    names = set(kind().get_params(deep=False))
    _require_names(names, set(state) & names, "parameters")
    _check_parameters(kind, {name: state[name] for name in names})
    if not set(state) - names:
        return False
    _require_names(fitted, set(state) - names - _OPTIONAL, "attributes")
    return True


def _require(holds: Any, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _require_names(expected: Iterable[str], found: Iterable[str], what: str) -> None:
    odd = sorted(set(expected) ^ set(found))
    if odd:
        lacking = "lacks" if odd[0] in expected else "does not know"
        raise ValueError(f"its {what} are not those expected: it {lacking} {odd[0]!r:.40}")


def _obey(rules: Mapping[str, Rule], values: Mapping[str, Any], where: str) -> None:
    for name, (test, expected) in rules.items():
        if name in values and not test(values[name]):
            raise ValueError(f"{where}{name} must be {expected}, not {values[name]!r:.40}")


# -- parts of an estimator ---------------------------------------------------------------------


def _check_parameters(kind: Any, parameters: dict[str, Any]) -> None:
    check_params(kind(**parameters), kind._rules)
    _obey(_MORE_RULES, parameters, "")


def _check_classes(state: State) -> None:
    classes = state["classes_"]
    _require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_ must be a list")
    _require(len(classes) >= 2, "classes_ must be two or more")
    _require((classes[:-1] < classes[1:]).all(), "classes_ must be in order and different")
    for name in ("_balance", "_costs"):
        _check_array(name, state[name], "float64", (len(classes),))
        hard = name == "_costs" and bool((state[name] == np.inf).all())
        least = np.finfo(np.float64).tiny
        fits = hard or _within(state[name], least, np.inf)
        _require(fits, f"{name} must be finite and above 0")


def _check_attributes(state: State, problems: int) -> None:
    _obey({"_seen": count(0, MOST_IDS), "_since_finish": count()}, state, "")
    _obey({"n_features_in_": count(1, MOST_FEATURES)}, state, "")
    if "_history" in state:
        _check_history(state["_history"], problems)
    if "_steps" in state:
        steps = state["_steps"]
        _check_array("_steps", steps, "int64", (np.shape(steps)[0], 5))
        _require(_within(steps[:, 2], 0, problems - 1), "_steps must name problems")
        _require(_within(steps[:, 3:], 0, 3), "_steps must go from set to set")
    _obey({"_adapts": one_of("", "gamma", "balance", "gamma balance")}, state, "")
    if "_basis_weights" in state:
        weights = state["_basis_weights"]
        _check_array("_basis_weights", weights, "float64", (np.size(weights),))
        _require(_within(weights, 0.0, np.inf), "_basis_weights must be finite and not negative")
    if "_basis_ids" in state:
        _require_names(
            {"_basis_ids", "_basis_weights"},
            {"_basis_ids", "_basis_weights"} & set(state),
            "rows that gamma was computed from",
        )
        ids = state["_basis_ids"]
        _check_array("_basis_ids", ids, "int64", (np.size(weights),))
    if "feature_names_in_" in state:
        names = state["feature_names_in_"]
        _check_array("feature_names_in_", names, "object", (state["n_features_in_"],))
        _require(all(type(name) is str for name in names), "feature_names_in_ must be strings")


def _check_history(history: Any, problems: int) -> None:
    _require(isinstance(history, dict), "_history must be a dict")
    _require_names(HISTORY, history, "parts of _history")
    rows = np.shape(history["gap"])[0]
    for name, dtype in HISTORY.items():
        _check_array(name, history[name], dtype, (rows, problems))


# -- the machine -------------------------------------------------------------------------------


def _check_machine(kind: Any, state: State, classes: int) -> None:
    """Check the machine of an estimator, by itself and against the estimator."""
    _require(isinstance(state["_machine"], dict), "_machine must be a dict")
    machine = upgraded(state["_machine"])
    plan: Any = machine.get("plan")
    _check_plan_values(plan)
    _check_plan_fits(kind, plan, state)
    check_machine(machine, classes)
    if kind._algorithm.exact:
        one_class = kind.__name__ == "ExactOneClassSVM"
        _require(plan["settings"]["sphere"] == one_class, "sphere must fit the class")
    if plan["kernel"] == "callable":
        _require(_knows_columns(machine), "precomputed rows must end with their ids, columns of X")


def check_machine(machine: State, classes: int) -> None:
    """Check all that the core would believe of the state of a machine.

    Parameters
    ----------
    machine
        What `Engine.state` returned, or is said to have.
    classes
        How many classes the estimator has.
    """
    plan: Any = machine.get("plan")
    _check_plan_values(plan)
    _check_plan(plan, classes)
    features = _SPARSE if plan["sparse"] else _DENSE
    algorithm = ALGORITHMS[plan["algorithm"]]
    margins = _MARGINS if algorithm.exact else {}
    expected = {**_ARRAYS, **features, **margins}
    _require_names({"plan", *expected}, machine, "parts of _engine")
    sizes = _sizes(machine, plan)
    for name, (dtype, sides) in expected.items():
        dtype = sizes["real"] if dtype == "real" else dtype
        _check_array(name, machine[name], dtype, tuple(sizes[side] for side in sides))
    stored = sum(machine[name].nbytes for name in expected)
    _require(
        plan["problems"] * PROBLEM_BYTES <= FREE_BYTES + BLOW_UP * stored,
        f"{plan['problems']} classes are too many for a model of {stored} bytes",
    )
    with np.errstate(all="ignore"):
        _check_counts(machine, algorithm)
        _check_members(machine, classes)
        at_once = max(AT_ONCE // max(sizes["members"], 1), 1)
        for first in range(0, plan["problems"], at_once):
            _check_problems(machine, slice(first, first + at_once), plan)
        if margins:
            _check_margins(machine, plan)
        if plan["sparse"]:
            _check_lists(machine, plan["features"])
        _check_sizes(machine, plan)


def _check_plan_values(plan: Any) -> None:
    _require(isinstance(plan, dict), "the plan of _engine must be a dict")
    _require_names({field.name for field in fields(Plan)}, plan, "parts of the plan")
    _obey(_PLAN, plan, "")


def _check_plan(plan: State, classes: int) -> None:
    algorithm = ALGORITHMS[plan["algorithm"]]
    rules = algorithm.settings
    _require_names(rules, plan["settings"], "settings of the algorithm")
    _obey(rules, plan["settings"], "")
    width = plan["features"]
    _require(plan["problems"] == (1 if classes == 2 else classes), "problems must fit classes_")
    _require(len(plan["center"]) in (0, width), "center must have a value a feature")
    distance = plan["gamma"] * sum(x * x for x in plan["center"])
    _require(distance <= LARGEST_NORM / 10, "center is too far off")
    centred = plan["kernel"] in ("rbf", "linear") or not algorithm.biased or algorithm.exact
    fits = centred and not plan["sparse"] and plan["kernel"] != "callable"
    _require(fits or not plan["center"], "center belongs to dense features and other kernels")
    if plan["kernel"] == "callable":
        _require(plan["double"] and not plan["sparse"], "precomputed rows are double and dense")
    _require(plan["sparse"] or width <= MOST_DENSE_FEATURES, "too many features to be dense")


def _check_plan_fits(kind: Any, plan: State, state: State) -> None:
    """Check the blueprint of a machine against the estimator that it belongs to."""
    own = plan["algorithm"] == kind._algorithm.name
    _require(own, f"its algorithm is not that of {kind.__name__}")
    precomputed = state["kernel"] == "precomputed"
    width = state["n_features_in_"] + precomputed
    _require(plan["features"] == width, "features must fit n_features_in_")
    _require((plan["kernel"] == "callable") == precomputed, "kernel was changed after fitting")


def _sizes(machine: State, plan: State) -> dict[str, Any]:
    """Return how many there are of everything that arrays may have along a side."""
    algorithm = ALGORITHMS[plan["algorithm"]]
    members = machine["ids"].shape[0]
    counters = machine["counters"]
    early = isinstance(counters, np.ndarray) and counters.shape == (EARLY_COUNTERS,)
    return {
        "members": members,
        "members + 1": members + 1,
        "problems": plan["problems"],
        "features": plan["features"],
        "entries": machine["data"].shape[0] if plan["sparse"] else 0,
        "counters": EARLY_COUNTERS if early else len(COUNTERS),
        "notes": algorithm.counts + algorithm.numbers,
        **_margin_sizes(machine),
        "real": "float64" if plan["double"] else "float32",
    }


def _margin_sizes(machine: State) -> dict[str, int]:
    if "slots" not in machine:
        return {}
    slots = np.asarray(machine["slots"])
    _require(slots.ndim == 1 and slots.dtype == "int64", "slots must be a list of counts")
    _require(_within(slots, 0, 2**31), "slots must be counts")
    sizes = slots.tolist()
    return {"slots": sum(sizes), "factor": sum(2 * n + n * (n + 1) // 2 for n in sizes)}


def _check_margins(machine: State, plan: State) -> None:
    """Check S and the factors: members that are held and differ, and triangles that are regular."""
    settings, factor = plan["settings"], machine["factor"]
    _require(plan["double"], "exact models are in double precision")
    _require(settings["sphere"] or settings["nu"] == 0, "nu belongs to a sphere")
    _require(np.isfinite(factor).all(), "factor must be finite")
    first = at = 0
    for c in np.flatnonzero(machine["slots"]).tolist():
        n = int(machine["slots"][c])
        margin = machine["margin"][first : first + n]
        holes = margin == -1
        inside = margin[~holes]
        _require(_within(inside, 0, len(machine["ids"]) - 1), "margin must name members")
        _require(len(np.unique(inside)) == len(inside), "margin must name members once")
        _require((machine["rank"][c][inside] >= 0).all(), "margin must name members that are held")
        _require((factor[at : at + n] == holes).all(), "factor must know its holes")
        starts = at + 2 * n + np.cumsum([0, *range(n, 1, -1)])[:n]
        _require((factor[starts] > 0).all(), "factor must have a positive diagonal")
        first, at = first + n, at + 2 * n + n * (n + 1) // 2


def _check_array(name: str, array: Any, dtype: str, shape: tuple[int, ...]) -> None:
    fits = type(array) is np.ndarray and array.dtype == dtype and array.shape == shape
    _require(fits, f"{name} must be an array of {dtype} of shape {shape}")


def _within(array: NDArray[Any], low: float, high: float) -> bool:
    """Return whether all values are finite numbers in a range."""
    return bool((np.isfinite(array) & (array >= low) & (array <= high)).all())


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
    # An id may stand twice: a member that no problem holds waits to be removed when its example
    # comes again. The one that is held is then the last.
    ids, held = machine["ids"], (machine["rank"] >= 0).any(axis=0)
    _, last = np.unique(ids[::-1], return_index=True)
    latest = np.zeros(len(ids), dtype=bool)
    latest[len(ids) - 1 - last] = True
    _require(latest[held].all(), "ids of members that are held must be different")


def _check_problems(machine: State, some: slice, plan: State) -> None:
    """Check the coefficients, gradients and ranks of some binary problems."""
    names = ("alpha", "g", "rank", "box", "trail")
    alpha, g, rank, box, trail = (machine[name][some] for name in names)
    held = rank >= 0
    _require((rank >= -1).all(), "rank must be -1 or more")
    ordered = np.sort(rank, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    _require(not repeated.any(), "ranks must be different")
    _require(np.isfinite(g).all(), "g must be finite")
    _require(np.isfinite(trail).all(), "trail must be finite")
    known = ALGORITHMS[plan["algorithm"]].boxes
    _require(set(np.unique(box).tolist()) <= known, "box must be known")
    _require(not alpha[~held].any(), "alpha must be 0 where a member has no rank")
    numbers = np.arange(plan["problems"])[some, None]
    positive_label = 1 if plan["problems"] == 1 else numbers
    costs = np.where(box == SHUT, 0.0, machine["costs"])
    sides = np.where((machine["labels"] == positive_label) != (box == SHIFTED), costs, -costs)
    inside = (alpha >= np.minimum(sides, 0)) & (alpha <= np.maximum(sides, 0))
    unbounded = (box == ENDLESS) & np.isfinite(alpha)
    _require((inside | unbounded).all(), "alpha must lie between 0 and the cost of its member")


def _check_lists(machine: State, features: int) -> None:
    """Check lists of nonzeros against each other."""
    data, indices, indptr = machine["data"], machine["indices"], machine["indptr"]
    _require(indptr[0] == 0 and indptr[-1] == len(data), "indptr must count the entries")
    _require((indptr[:-1] <= indptr[1:]).all(), "indptr must not decrease")
    _require(_within(indices, 0, features - 1), "indices must be numbers of features")
    ascending = indices[:-1] < indices[1:]
    starts = indptr[(indptr > 0) & (indptr < len(data))]
    ascending[starts - 1] = True
    _require(ascending.all(), "indices must ascend within a row")


def _check_sizes(machine: State, plan: State) -> None:
    """Check that features are finite and small enough for the precision they are kept in."""
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
    elif _knows_columns(machine):
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
    """Check that no gradient is larger than any kernel values could have made it.

    Descent from gradients beyond that would not end. `Engine.verify` then compares some of them
    with what they should be. Here ``abs(K(k, l)) <= sizes[k] * sizes[l]``.
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


def _knows_columns(machine: State) -> bool:
    """Return whether rows are those of a precomputed kernel, which end with their own columns."""
    held = (machine["rank"] >= 0).any(axis=0)
    X, ids = machine["X"][held], machine["ids"][held]
    return _within(ids, 0, machine["X"].shape[1] - 2) and bool((X[:, -1] == ids).all())
