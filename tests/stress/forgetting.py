"""Forgetting: random sequences of learning and forgetting rows with heavy tails.

Invariant: the model equals a fresh fit of the rows that are left, to 1e-6 of the largest decision
value, whatever the order in which they were learned; or the model, or the fresh fit, warns. This
holds for ``gamma="scale"`` too, which depends on the rows. Where no row is free, the bias may be
any value within bounds, and decision values may differ by a constant.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tests.stress.harness import Options, Outcome
from tests.stress.subjects import make

TOTAL = 200
BATCH = 20
LIMIT = 30.0
TOLERANCE = 1e-6


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    name = "ExactOneClassSVM" if case % 4 == 3 else "ExactSVC"
    parameters = _parameters(name, case, rng)
    n = int(rng.integers(20, 120))
    X = _rows(rng, n)
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1, -1)
    y[rng.random(n) < 0.1] *= -1
    y[:2] = y[-2:] = -1, 1
    model = make(name, **parameters)
    label = f"{name} {parameters}"
    outcome = Outcome()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        left = _sequence(model, name, X, y, rng)
        fresh = make(name, **{**parameters, "C": model.get_params()["C"]})
        fresh.fit(X[left], y[left])
        f, expected = model.decision_function(X), fresh.decision_function(X)
    return _judge(f, expected, [str(w.message) for w in said], label, outcome)


def _parameters(name: str, case: int, rng: np.random.Generator) -> dict[str, Any]:
    kernel = ("rbf", "poly", "linear")[case % 3]
    gamma: Any = "scale" if rng.random() < 0.5 else float(10 ** rng.uniform(-2, 0))
    given: dict[str, Any] = {"kernel": kernel, "gamma": gamma, "coef0": 1.0, "degree": 2}
    if name == "ExactSVC":
        given["C"] = float(10 ** rng.uniform(-2, 2))
    else:
        given["nu"] = float(rng.uniform(0.1, 0.8))
    return given


def _rows(rng: np.random.Generator, n: int) -> Any:
    """Rows of which some are up to a thousand times as large as others, in random order."""
    X = rng.normal(size=(n, int(rng.integers(1, 6))))
    if rng.random() < 0.5:
        X *= 10 ** np.minimum(np.abs(rng.standard_t(2, size=(n, 1))), 3.0)
    if rng.random() < 0.5:
        X[int(rng.integers(n))] *= 1000
    if rng.random() < 0.3:
        X[0] *= 1000
    return X


def _sequence(model: Any, name: str, X: Any, y: Any, rng: np.random.Generator) -> Any:
    """Learn and forget rows; return the numbers of those that are left, in random order."""
    n = len(X)
    given = (lambda rows: {}) if name == "ExactOneClassSVM" else (lambda rows: {"classes": [-1, 1]})
    if model.gamma == "scale":  # which the first call of partial_fit would settle
        model.fit(X, y)
        held = np.arange(n)
    else:
        held = rng.permutation(n)[: n // 2]
        model.partial_fit(X[held], y[held], ids=held, **given(held))
    for _ in range(int(rng.integers(2, 7))):
        gone = rng.choice(held, size=int(rng.integers(1, max(len(held) // 4, 2))), replace=False)
        rest = np.setdiff1d(held, gone)
        if len(rest) < 10 or len(np.unique(y[rest])) < 2:
            break
        model.forget(gone)
        held = rest
        if model.gamma != "scale" and rng.random() < 0.6:
            new = rng.permutation(np.setdiff1d(np.arange(n), held))[: n // 4]
            model.partial_fit(X[new], y[new], ids=new)
            held = np.union1d(held, new)
        if name == "ExactSVC" and rng.random() < 0.3:
            model.set_C(model.C * float(rng.uniform(0.3, 3)))
    if sorted(model.ids_.tolist()) != sorted(held.tolist()):
        raise AssertionError("ids_ are not the rows that are left")
    return rng.permutation(held)


def _judge(f: Any, expected: Any, said: list[str], label: str, outcome: Outcome) -> Outcome:
    scale = float(np.abs(expected).max()) or 1.0
    apart = float(np.abs(f - expected).max()) / scale
    if apart <= TOLERANCE:
        return outcome.count("equal")
    if float(np.ptp(f - expected)) / scale <= TOLERANCE:
        return outcome.count("equal except for the bias")
    if said:
        return outcome.count("warned")
    return outcome.violate(f"{label}: off by {apart:.2g} of the largest value")
