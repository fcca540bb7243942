"""Threads: one model used by several threads at once.

Invariant: no crash, no deadlock, no value that is not finite, and no exception except those that a
single thread could get as well (a row that is already forgotten or already labelled). What a
reader gets is a consistent model: a pickle or a file taken meanwhile can be loaded and predicts.
Afterwards the executable invariants of the core hold. A kernel function that uses its own model
gets a RuntimeError. `VirtualSet.read` returns the same images to every thread.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import marginwise
from marginwise.active import ActiveLearner
from marginwise.invariance import ImageDeformer, VirtualSet
from tests.stress.harness import Options, Outcome
from tests.stress.subjects import ESTIMATORS, EXACT, learn, make, rows

TOTAL = 200
BATCH = 10
LIMIT = 90.0
GRACE = 30.0  # seconds in which a thread must end once it is told to
MOST_ROWS = 3000  # a model that has learned more is fitted again

# One round: every estimator with one learning thread and with two, and the special cases.
ROUND = (
    *((name, 1, "rbf") for name in ESTIMATORS),
    *((name, 2, "rbf") for name in ESTIMATORS),
    ("OnlineSVC", 1, "function"),
    ("ExactSVC", 2, "function"),
    ("active", 1, ""),
    ("active", 2, ""),
    ("virtual", 3, ""),
    ("reentrant", 1, ""),
)


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    name, writers, kernel = ROUND[case % len(ROUND)]
    seconds = options.thread_seconds
    if name == "active":
        return _active(rng, writers, seconds)
    if name == "virtual":
        return _virtual(rng, writers, seconds)
    if name == "reentrant":
        return _reentrant(rng, case // len(ROUND))
    model, classes = _begun(name, kernel, rng)
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        team = Team(seconds, outcome)
        for k in range(writers):
            team.add("partial_fit", Writer(model, classes, np.random.default_rng([case, k])))
        actions = _actions(model, name, kernel, Path(folder), np.random.default_rng([case, 9]))
        for k in rng.permutation(len(actions))[:3]:
            team.add(*list(actions.items())[k])
        team.run()
    if not outcome.spoiled:
        _judge(model, outcome)
    return outcome


class Team:
    """Threads that each repeat an action until the time is over, and what they met with."""

    def __init__(self, seconds: float, outcome: Outcome) -> None:
        self._seconds = seconds
        self._outcome = outcome
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._seen: set[str] = set()

    def add(self, name: str, action: Callable[[], Any]) -> None:
        def repeat() -> None:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self._check(name, action())
                except Exception as error:
                    self._note(name, error)
                self._outcome.counts[name] += 1
                if name in ("predict", "decision_function") and time.monotonic() - began > 1:
                    self._outcome.counts["predictions over 1 s"] += 1
                time.sleep(0)

        self._threads.append(threading.Thread(target=repeat, name=name, daemon=True))

    def run(self) -> None:
        sys.setswitchinterval(1e-4)  # fifty times as often as usual
        for thread in self._threads:
            thread.start()
        time.sleep(self._seconds)
        self._stop.set()
        end = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                self._outcome.violate(f"deadlock: {thread.name} does not return")
                self._outcome.spoiled = True

    def _check(self, name: str, value: Any) -> None:
        if value is not None and not np.isfinite(value).all():
            self._outcome.violate(f"{name} returned values that are not finite")

    def _note(self, name: str, error: Exception) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{name} raised {type(error).__name__}: {error} ({last.name}:{last.lineno})"
        if what not in self._seen and len(self._seen) < 5:
            self._outcome.violate(what[:400])
        self._seen.add(what)


def _begun(name: str, kernel: str, rng: np.random.Generator) -> tuple[Any, int]:
    classes = 2 if kernel == "function" or rng.random() < 0.5 else 3
    given: dict[str, Any] = {"kernel": _gaussian} if kernel == "function" else {}
    given["calibration"] = rng.choice([None, "sigmoid", "isotonic"])
    model = make(name, C=1.0, nu=0.2, n_jobs=int(rng.integers(1, 3)), **given)
    if name in EXACT:
        model.set_params(window=400)
    learn(model, *rows(rng, 100, classes), classes)
    return model, classes


def _gaussian(A: Any, B: Any) -> Any:
    distances = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-0.5 * distances)


class Writer:
    """Learns 200 rows at a time, and starts again when there are too many."""

    def __init__(self, model: Any, classes: int, rng: np.random.Generator) -> None:
        self._model, self._classes, self._rng = model, classes, rng
        self._learned = 0

    def __call__(self) -> None:
        size = 40 if callable(self._model.kernel) else 200
        X, y = rows(self._rng, size, self._classes)
        if self._learned > MOST_ROWS:
            self._model.fit(X, y)
            self._learned = 0
        else:
            learn(self._model, X, y, self._classes)
            self._learned += size


def _actions(
    model: Any, name: str, kernel: str, folder: Path, rng: np.random.Generator
) -> dict[str, Callable[[], Any]]:
    """The operations that an estimator has besides learning rows."""
    X, _ = rows(rng, 20)
    path = folder / "model.mwz"

    def through_pickle() -> Any:
        return pickle.loads(pickle.dumps(model)).decision_function(X)

    def through_file() -> Any:
        marginwise.save(model, path)
        return marginwise.load(path).decision_function(X)

    def look() -> Any:
        found = model.support_
        if len(np.unique(found)) != len(found):
            raise AssertionError("support_ names a row twice")
        return np.concatenate([model.dual_coef_.ravel(), np.ravel(model.intercept_)])

    actions: dict[str, Callable[[], Any]] = {
        "decision_function": lambda: model.decision_function(X),
        "predict": lambda: model.predict(X),
        "stats_": lambda: model.stats_ and None,
        "support_": look,
        "clone": lambda: clone(model) and None,
        "set_params": lambda: model.set_params(verbose=0) and None,
        "pickle": through_pickle,
    }
    if hasattr(model, "predict_proba"):
        actions["predict_proba"] = lambda: model.predict_proba(X)
    if kernel != "function":
        actions["save"] = through_file
    if name == "ExactSVC":
        actions["set_C"] = lambda: model.set_C(float(rng.uniform(0.5, 2))) and None
    if name in EXACT:
        actions["forget"] = lambda: _forget(model, rng)
    if hasattr(model, "finish"):
        actions["finish"] = lambda: model.finish() and None
    return actions


def _forget(model: Any, rng: np.random.Generator) -> None:
    held = model.ids_  # of which most stay, because an empty model does not predict
    with contextlib.suppress(KeyError):  # another thread may be quicker
        model.forget(rng.choice(held, size=min(5, len(held) // 10), replace=False))


def _judge(model: Any, outcome: Outcome) -> None:
    """Check the model that the threads leave behind."""
    try:
        model._engine.native.check(1e-3)
    except Exception as error:
        outcome.violate(f"the core is inconsistent afterwards: {error}")


# -- the special cases -------------------------------------------------------------------------


def _active(rng: np.random.Generator, writers: int, seconds: float) -> Outcome:
    X, y = rows(rng, 400)
    learner = ActiveLearner(make("OnlineSVC"), X, random_state=0)
    learner.teach([0, 1], y[:2])
    outcome = Outcome()
    team = Team(seconds, outcome)

    def teach() -> None:
        row = learner.ask()
        if np.ndim(row) == 1:  # the pool is exhausted
            learner.undo()
            return
        try:
            learner.teach(row, y[row])
        except ValueError as error:
            if writers == 1 or "already taught" not in str(error):
                raise

    for _ in range(writers):
        team.add("teach", teach)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "learner.mwz")
        team.add("ask", lambda: learner.ask(3))
        team.add("decision_values", lambda: learner.decision_values())
        team.add("should_stop", lambda: learner.should_stop().stop)
        team.add("save", lambda: learner.save(path))
        team.run()
        if not outcome.spoiled:
            ActiveLearner.load(path, X)
    return outcome


def _virtual(rng: np.random.Generator, readers: int, seconds: float) -> Outcome:
    X, y = rng.random((30, 64)), np.arange(30) % 3
    source = VirtualSet(X, y, ImageDeformer((8, 8)), variants=20, cache_size=0.02)
    expected = source.images(np.arange(len(source)))
    outcome = Outcome()
    team = Team(seconds, outcome)

    def reader(own: np.random.Generator) -> Callable[[], Any]:
        def read() -> None:
            ids = own.integers(len(source), size=own.integers(1, 200))
            images, labels = source.read(ids)
            if not np.array_equal(images, expected[ids]):
                raise AssertionError("read returned other images")
            if not np.array_equal(labels, y[ids % 30]):
                raise AssertionError("read returned other labels")

        return read

    for k in range(readers):
        team.add("read", reader(np.random.default_rng(rng.integers(2**32) + k)))
    team.run()
    return outcome


def _reentrant(rng: np.random.Generator, turn: int) -> Outcome:
    """A kernel function that uses the model it belongs to, while that model learns."""
    X, y = rows(rng, 60)
    uses: list[Callable[[Any], Any]] = [
        lambda model: model.decision_function(X[:2]),
        lambda model: model.partial_fit(X[:2], y[:2]),
        lambda model: pickle.dumps(model),
        lambda model: model.support_,
    ]
    outcome = Outcome()
    for name in ESTIMATORS:
        if name == "ExactOneClassSVM":
            continue
        kernel = Selfish()
        model = make(name, kernel=kernel)
        model.fit(X, y)
        kernel.use = lambda model=model: uses[turn % len(uses)](model)
        try:
            model.partial_fit(X, y, **({"ids": np.arange(100, 160)} if name in EXACT else {}))
        except RuntimeError:
            outcome.count("reentrance refused")
        except Exception as error:
            outcome.violate(f"{name}: re-entrance raised {type(error).__name__}: {error}"[:300])
        else:
            outcome.violate(f"{name}: re-entrance was not refused")
        kernel.use = None
        if not np.isfinite(model.decision_function(X)).all():
            outcome.violate(f"{name}: values are not finite after re-entrance")
    return outcome


class Selfish:
    """A Gaussian kernel that does something else first; it cannot be pickled with it."""

    def __init__(self) -> None:
        self.use: Callable[[], Any] | None = None

    def __call__(self, A: Any, B: Any) -> Any:
        use, self.use = self.use, None
        if use is not None:
            use()
        return _gaussian(A, B)

    def __reduce__(self) -> Any:
        return Selfish, ()
