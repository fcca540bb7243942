"""Hostile callers: input and surroundings that must be refused or survived.

Invariant: each of these calls ends within the time limit, with the right result or with the named
exception, and never with a crash.
"""

from __future__ import annotations

import resource
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import marginwise
from tests.stress.harness import Options, Outcome
from tests.stress.subjects import ESTIMATORS, learn, make, rows, state_of

LIMIT = 60.0
BATCH = 10


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    attack, name = CASES[case % len(CASES)]
    outcome = Outcome()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        attack(name, outcome)
    label = f"{name}, {attack.__doc__}".rstrip(".")
    outcome.violations = [f"{label}: {message}" for message in outcome.violations]
    if said:
        outcome.count("with a warning")
    outcome.spoiled = attack in (helpers, many_classes)  # limits of memory stay with the process
    return outcome


def _refused(act: Callable[[], Any], outcome: Outcome, *kinds: type[Exception]) -> None:
    """Require one of the exceptions."""
    try:
        act()
    except kinds:
        outcome.count("refused")
    else:
        outcome.violate("was not refused")


def _limit_memory(room: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room, hard))


# -- rows --------------------------------------------------------------------------------------


def indices(name: str, outcome: Outcome) -> None:
    """CSR with indices out of range."""
    X, y = rows(np.random.default_rng(0), 20, 2, 5)
    model = make(name).fit(sp.csr_matrix(X), y)
    before = state_of(model)
    for wrong in (5, 700, 2**31 - 1, -1):
        bad = sp.csr_matrix((np.ones(3), [0, 1, 2], [0, 1, 3]), shape=(2, 5))
        bad.indices[2] = wrong
        for act in (
            lambda bad=bad: model.fit(bad, [0, 1]),
            lambda bad=bad: model.predict(bad),
            lambda bad=bad: learn(model, bad, [0, 1]),
        ):
            _refused(act, outcome, ValueError)
    if state_of(model) != before:
        outcome.violate("the model has changed")


def not_a_number(name: str, outcome: Outcome) -> None:
    """NaN and infinity in single rows."""
    model = make(name)
    learn(model, *rows(np.random.default_rng(0), 30))
    before = state_of(model)
    for wrong in (np.nan, np.inf, -np.inf):
        x = np.array([0.0, wrong, 0.0])
        _refused(lambda x=x: learn(model, [x], [0]), outcome, ValueError)
        if name != "ExactOneClassSVM":
            _refused(lambda x=x: model.learn_one(x, 0), outcome, ValueError)
            _refused(lambda x=x: model.learn_many([x, x], [0, 1]), outcome, ValueError)
    if state_of(model) != before:
        outcome.violate("the model has changed")


def large_ids(name: str, outcome: Outcome) -> None:
    """Ids up to the largest."""
    X, y = rows(np.random.default_rng(0), 30)
    for largest in (2**62, 2**63 - 1):
        model = make(name)
        learn(model, X, y)
        ids = largest - np.arange(5)
        extra = {} if name == "ExactOneClassSVM" else {"y": y[:5]}
        try:
            model.partial_fit(X[:5] + 3.0, ids=ids, **extra)
        except ValueError:
            outcome.count("refused")
        else:
            outcome.count("accepted")
        try:  # the running count comes after them, or is refused
            learn(model, X[:2] + 5.0, y[:2])
        except ValueError:
            outcome.count("refused")
        if (model.support_ < 0).any():
            outcome.violate("ids wrapped around")
        marginwise.load(_saved(model))


def _saved(model: Any) -> Path:
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp", "marginwise-stress.mwz")
    marginwise.save(model, path)
    return path


def own_ids(name: str, outcome: Outcome) -> None:
    """Rows without ids after rows with ids of the caller's own."""
    X, y = rows(np.random.default_rng(0), 200)
    model, other = make(name, C=0.1), make(name, C=0.1)
    extra = [{} if name == "ExactOneClassSVM" else {"y": y[k : k + 100]} for k in (0, 100)]
    if name != "ExactOneClassSVM":
        extra[0]["classes"] = [0, 1]
    model.partial_fit(X[:100], ids=np.arange(100, 200), **extra[0]).partial_fit(X[100:], **extra[1])
    other.partial_fit(X[:100], **extra[0]).partial_fit(X[100:], **extra[1])
    if not np.array_equal(model.decision_function(X), other.decision_function(X)):
        outcome.violate("rows were lost")
    outcome.count("compared")


def overflow(name: str, outcome: Outcome) -> None:
    """Features, costs and kernel values near the largest number."""
    X, y = rows(np.random.default_rng(0), 30)
    attempts: list[Callable[[], Any]] = [
        lambda: make(name, gamma="scale").fit(X * 1e25, y),
        lambda: make(name, C=1e308).fit(X, y, sample_weight=np.full(30, 1e10)),
        lambda: make(name, kernel=lambda A, B: 1e39 * (A @ B.T)).fit(X, y),
        lambda: make(name, kernel="poly", degree=50, coef0=1e5).fit(X, y),
    ]
    for attempt in attempts:
        try:
            model = attempt()
        except ValueError:
            outcome.count("refused")
            continue
        outcome.count("accepted")
        if not np.isfinite(model.decision_function(X[:5])).all():
            outcome.violate("values are not finite")
        if not callable(model.kernel):
            marginwise.load(_saved(model))


# -- resources ---------------------------------------------------------------------------------


def helpers(name: str, outcome: Outcome) -> None:
    """Threads that cannot start."""
    X, y = rows(np.random.default_rng(0), 2000, 2, 20)
    make(name).fit(X[:50], y[:50])  # everything is loaded
    _limit_memory(150 * 2**20)
    try:
        model = make(name, n_jobs=64).fit(X[:500], y[:500])
        outcome.count("fitted")
        if not np.isfinite(model.decision_function(X[:500])).all():
            outcome.violate("values are not finite")
    except (MemoryError, OSError, RuntimeError):
        outcome.count("refused")


def many_classes(name: str, outcome: Outcome) -> None:
    """A thousand classes within 4 GB of address space."""
    X, y = rows(np.random.default_rng(0), 60, 3)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, hard))
    model = make(name, C=10.0)
    model.partial_fit(X, 300 * y, classes=np.arange(1000))
    outcome.count("fitted")
    if model.score(X, 300 * y) < 0.5:
        outcome.violate("the model has not learned")


# -- work without end --------------------------------------------------------------------------


def endless(name: str, outcome: Outcome) -> None:
    """Tolerances and numbers of steps that no one can wait for."""
    X, y = rows(np.random.default_rng(0), 300)
    flipped = np.random.default_rng(1).random(300) < 0.2
    y = np.where(flipped, 1 - y, y)
    settings = {
        "OnlineSVC": [{"delta_max": 0, "tol": 1e-15}, {"reprocess": 10**9}, {"tol": 1e-300}],
        "GapSVC": [{"tol": 1e-15}, {"tol": 1e-300, "C": 1e10}],
        "ExactRampSVC": [{"tol": 1e-15}, {"tol": 1e-300, "C": 1e10}],
    }
    for given in settings[name]:
        model = make(name, **{"C": 1000.0, **given}).fit(X, y)
        outcome.count("ended")
        if not np.isfinite(model.decision_function(X)).all():
            outcome.violate("values are not finite")


Attack = Callable[[str, Outcome], None]
CASES: list[tuple[Attack, str]] = [
    *((attack, name) for attack in (indices, not_a_number, large_ids) for name in ESTIMATORS),
    *((attack, name) for attack in (own_ids, overflow) for name in ESTIMATORS),
    *((helpers, name) for name in ESTIMATORS),
    *((many_classes, name) for name in ESTIMATORS if name != "ExactOneClassSVM"),
    *((endless, name) for name in ("OnlineSVC", "GapSVC", "ExactRampSVC")),
]
TOTAL = len(CASES)
