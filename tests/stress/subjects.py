"""What is attacked: estimators with rows to learn, and the comparison of whole states."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import marginwise

ESTIMATORS = (
    "OnlineSVC",
    "GapSVC",
    "TrackingSVC",
    "ExactSVC",
    "ExactOneClassSVM",
    "ExactRampSVC",
    "KernelPerceptron",
)
EXACT = ("ExactSVC", "ExactOneClassSVM")
# Not part of a model: when it was made, and how much work the caches saved.
CLOCKS = ("seconds", "_started")
WORK = ("counters",)


def rows(rng: np.random.Generator, n: int, classes: int = 2, d: int = 3) -> tuple[Any, Any]:
    """Overlapping clouds, the first rows of different classes."""
    y = rng.integers(classes, size=n)
    y[:classes] = np.arange(classes)[:n]
    X = rng.normal(size=(n, d))
    X[:, 0] += 2 * np.cos(2 * np.pi * y / classes)
    X[:, 1 % d] += 2 * np.sin(2 * np.pi * y / classes)
    return X, y


def make(name: str, **options: Any) -> Any:
    """An estimator whose result does not depend on the machine."""
    kind = getattr(marginwise, name)
    given = {"gamma": 0.5, "random_state": 0, **options}
    return kind(**{key: value for key, value in given.items() if key in kind().get_params()})


def learn(model: Any, X: Any, y: Any, classes: int = 2) -> None:
    """Call `partial_fit` as the estimator wants it."""
    if type(model).__name__ == "ExactOneClassSVM":
        model.partial_fit(X)
    else:
        model.partial_fit(X, y, classes=np.arange(classes))


# -- states ------------------------------------------------------------------------------------


def flat(value: Any, where: str = "", leave: tuple[str, ...] = CLOCKS) -> Iterator[tuple[str, Any]]:
    """Give all that a state holds by where it is, arrays by their bytes, except clocks."""
    if isinstance(value, dict):
        for key in value:
            if key not in leave:
                yield from flat(value[key], f"{where}.{key}", leave)
        yield where, ("dict", sorted(map(repr, set(value) - set(leave))))
    elif isinstance(value, list | tuple):
        for k, item in enumerate(value):
            yield from flat(item, f"{where}[{k}]", leave)
        yield where, (type(value).__name__, len(value))
    elif isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype.hasobject else value.tobytes()
        yield where, (value.dtype.str, value.shape, content)
    elif isinstance(value, np.random.RandomState):
        yield from flat(value.get_state(legacy=False), where, leave)
    elif hasattr(value, "read") or callable(value):
        yield where, type(value).__name__
    else:
        yield where, (type(value).__name__, repr(value))


def state_of(model: Any, leave: tuple[str, ...] = CLOCKS) -> dict[str, Any]:
    """The whole state of an estimator, to the bit."""
    return dict(flat(model.__getstate__(), leave=leave))


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Where two states differ."""
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def digest_of(model: Any) -> str:
    """A digest of the state, except for clocks and the counters of work."""
    state = state_of(model, (*CLOCKS, *WORK))
    return hashlib.sha256(repr(sorted(state.items())).encode()).hexdigest()
