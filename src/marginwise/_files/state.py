"""Validation of the state of an estimator that comes from a file.

Every failure is a ValueError that names the part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginwise._checks import (
    MOST_FEATURES,
    MOST_ID,
    Rule,
    boolean,
    class_weights,
    count,
    either,
    instance,
    non_negative,
    none,
    obey,
    one_of,
    real,
    threads,
    whole,
)
from marginwise._engine.foresight import Foresight
from marginwise._engine.plan import problems_of, upgraded
from marginwise._files.engine_state import check_array, check_machine, knows_columns, require_names

State = Mapping[str, Any]

# Parameters that the rules of an estimator omit or restrict less.
_MORE_RULES: dict[str, Rule] = {
    "n_jobs": either(none(), threads()),
    "class_weight": either(none(), one_of("balanced"), class_weights()),
    "random_state": either(
        none(), count(0, 2**32 - 1), instance(np.random.RandomState, "a RandomState")
    ),
    "verbose": either(boolean(), whole()),
}
_ATTRIBUTES: dict[str, Rule] = {
    "_seen": count(0, MOST_ID),
    "_since_finish": count(),
    "n_features_in_": count(1, MOST_FEATURES),
    "_square": real(),
    "_full_size": count(),
    "_weighs": (lambda v: v is True, "True"),
}

_FITTED = {"n_features_in_", "_machine", "_seen", "_since_finish"}
_FITTED_CLASSIFIER = {*_FITTED, "classes_", "_balance", "_costs"}
_FITTED_ONE_CLASS = {*_FITTED, "_square"}
_FITTED_COMPRESSED = {
    *_FITTED,
    "classes_",
    "_weighted",
    "_intercept",
    "_full_size",
    "_curve",
    "n_jobs",
}


def check_classifier(kind: Any, state: State) -> None:
    """Check the state of a `KernelClassifier`, fitted or not.

    Parameters
    ----------
    kind : type
        The class.
    state : mapping
        Supposed result of `__getstate__` of an instance.
    """
    if not _check_outline(kind, state, _FITTED_CLASSIFIER, {"_weighs", "_sample"}):
        return
    _check_classes(state)
    classes = len(state["classes_"])
    kind._check_own_state(state, problems_of(classes, pairs=False))
    _check_machine(kind, state, classes)


def check_one_class(kind: Any, state: State) -> None:
    """Check the state of an `ExactOneClassSVM`, fitted or not.

    Parameters
    ----------
    kind : type
        The class.
    state : mapping
        Supposed result of `__getstate__` of an instance.
    """
    if not _check_outline(kind, state, _FITTED_ONE_CLASS):
        return
    kind._check_own_state(state, 1)
    _check_machine(kind, state, 2)  # all rows belong to the second of two classes
    if not (state["_machine"]["labels"] == 1).all():
        raise ValueError("labels must be 1")


def check_compressed(kind: Any, state: State) -> None:
    """Check the state of a `CompressedSVC`, whether `compress` created it or not.

    Parameters
    ----------
    kind : type
        The class.
    state : mapping
        Supposed result of `__getstate__` of an instance.
    """
    if not _check_outline(kind, state, _FITTED_COMPRESSED):
        return
    obey(_MORE_RULES, state)
    _check_labels(state["classes_"], 1)  # one, if a stream has had one class so far
    _check_machine(kind, state, len(state["classes_"]))
    if state["_machine"]["plan"]["record"]:
        raise ValueError("a compressed model has no history")
    problems = state["_machine"]["plan"]["problems"]
    check_array("_intercept", state["_intercept"], "float64", (problems,))
    if not np.isfinite(state["_intercept"]).all():
        raise ValueError("_intercept must be finite")
    if state["_curve"] is not None:
        _check_curve(state["_curve"])
    calibration = {"calibration": one_of("sigmoid", "isotonic")}
    obey({**calibration, "_weighted": boolean()}, state)
    if state["_machine"]["plan"]["foresees"] != ("calibration" in state):
        raise ValueError("calibration must fit the state of the engine")


def _check_curve(curve: Any) -> None:
    if not isinstance(curve, dict):
        raise ValueError("_curve must be a dict")
    require_names(("n_vectors", "error", "full_error", "chosen"), curve, "parts of _curve")
    obey({"full_error": non_negative(), "chosen": count(1)}, curve)
    sizes = np.shape(curve["n_vectors"])[:1]
    check_array("n_vectors", curve["n_vectors"], "int64", sizes)
    check_array("error", curve["error"], "float64", sizes)
    if curve["chosen"] not in curve["n_vectors"]:
        raise ValueError("chosen must be one of n_vectors")


def _check_outline(kind: Any, state: State, fitted: set[str], optional: Iterable[str] = ()) -> bool:
    """Check names and parameters; return whether the estimator is fitted."""
    names = set(kind._get_param_names())
    require_names(names, set(state) & names, "parameters")
    parameters = {name: state[name] for name in names}
    obey(kind._rules, parameters)
    obey(_MORE_RULES, parameters)
    if not set(state) - names:
        return False
    own = {"feature_names_in_", "_foresight", *optional, *kind._own_state}
    require_names(fitted, set(state) - names - own, "attributes")
    obey(_ATTRIBUTES, state)
    if "feature_names_in_" in state:
        columns = state["feature_names_in_"]
        check_array("feature_names_in_", columns, "object", (state["n_features_in_"],))
        if not all(type(name) is str for name in columns):
            raise ValueError("feature_names_in_ must be strings")
    return True


def _check_classes(state: State) -> None:
    classes = state["classes_"]
    _check_labels(classes, 1 if "_grows" in state else 2)
    for name in ("_balance", "_costs"):
        values = state[name]
        check_array(name, values, "float64", (len(classes),))
        hard = name == "_costs" and bool((values == np.inf).all())
        if not hard and not (np.isfinite(values) & (values >= np.finfo(np.float64).tiny)).all():
            raise ValueError(f"{name} must be finite and above 0")


def _check_labels(classes: Any, least: int) -> None:
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        raise ValueError("classes_ must be a list")
    if len(classes) < least:
        raise ValueError("classes_ must be two or more")
    if not (classes[:-1] < classes[1:]).all():
        raise ValueError("classes_ must be in order and different")


def _check_machine(kind: Any, state: State, classes: int) -> None:
    """Check the state of the engine and its consistency with the estimator."""
    if not isinstance(state["_machine"], dict):
        raise ValueError("_machine must be a dict")
    machine = upgraded(state["_machine"])
    precomputed = state.get("kernel") == "precomputed"

    def fits(plan: State) -> None:
        if plan["algorithm"] != kind._algorithm.name:
            raise ValueError(f"its algorithm is not that of {kind.__name__}")
        if plan["features"] != state["n_features_in_"] + precomputed:
            raise ValueError("features must fit n_features_in_")
        if (plan["kernel"] == "callable") != precomputed:
            raise ValueError("kernel was changed after fitting")

    check_machine(machine, classes, fits)
    if machine["plan"]["foresees"]:
        Foresight.check(state.get("_foresight"), machine["plan"]["problems"])
    elif "_foresight" in state:
        raise ValueError("_foresight is not of a model that foresees")
    if precomputed and not knows_columns(machine):
        raise ValueError("precomputed rows must end with their ids, columns of X")
    one_class = kind.__name__ == "ExactOneClassSVM"
    if machine["plan"]["settings"].get("sphere", one_class) != one_class:
        raise ValueError("sphere must fit the class")
