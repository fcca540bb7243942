"""Interrupts: Ctrl-C at any line of the package, SIGINT at any time, and memory that runs out.

Invariant: the estimator equals its state before or after the call, bit for bit, and continues from
there like a model that was never interrupted. A file that is being saved has its old or its new
content, and no temporary is left beside it. Native work answers a SIGINT within about a second.
"""

from __future__ import annotations

import dis
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import marginwise
from marginwise.active import ActiveLearner
from tests.stress.harness import Options, Outcome
from tests.stress.subjects import (
    CLOCKS,
    ESTIMATORS,
    EXACT,
    WORK,
    differing,
    flat,
    learn,
    make,
    rows,
    state_of,
)
from tests.support import Rows

TOTAL = 2750
BATCH = 110
LIMIT = 60.0
PATIENCE = 1.5  # seconds for native work to answer SIGINT, with some for a busy machine
PACKAGE = str(Path(marginwise.__file__).parent)

State = dict[str, Any]


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    """Of eleven cases, nine are interrupts at a line, one is a SIGINT, one is without memory."""
    name = ESTIMATORS[int(rng.integers(len(ESTIMATORS)))]
    kind = case % 11
    if kind == 10:
        return _without_memory(name, rng) if case % 2 else _long_work(name, rng)
    subject = _subject(name, rng)
    if kind == 9:
        return _by_signal(subject, rng)
    return _at_line(subject, rng)


# -- what is interrupted -----------------------------------------------------------------------


@dataclass
class Subject:
    """A call that changes an object."""

    label: str
    make: Callable[[], Any]  # an object as it is before the call
    call: Callable[[Any], Any]
    state: Callable[[Any, tuple[str, ...]], State]
    more: Callable[[Any], Any]  # what is done afterwards, to see that it still learns

    def __hash__(self) -> int:
        return hash(self.label)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subject) and self.label == other.label


def _subject(name: str, rng: np.random.Generator) -> Subject:
    """One of the calls that an estimator, or a learner with it, has."""
    variant = int(rng.integers(4))
    classes, record = (2, 3)[variant % 2], variant >= 2
    calls = _calls(name, classes)
    label = sorted(calls)[int(rng.integers(len(calls)))]
    if label.startswith("learner."):
        return _learner_subject(name, label, classes)
    begun = not label.startswith("first ")

    def fresh() -> Any:
        return pickle.loads(_prepared(name, classes, record, begun))

    X, y = rows(np.random.default_rng(3), 10, classes)

    def more(model: Any) -> None:
        learn(model, X, y, classes)

    def state(model: Any, leave: tuple[str, ...]) -> State:
        return state_of(model, leave)

    return Subject(f"{name} {label} {classes} {record}", fresh, calls[label], state, more)


@cache
def _prepared(name: str, classes: int, record: bool, begun: bool) -> bytes:
    """A pickled estimator, which every attempt copies."""
    model = make(name, C=1.0, record=record, nu=0.3, finish_every=25)
    if begun:
        learn(model, *rows(np.random.default_rng(1), 40, classes), classes)
    return pickle.dumps(model)


def _calls(name: str, classes: int) -> dict[str, Callable[[Any], Any]]:
    """All calls that change an estimator."""
    X, y = rows(np.random.default_rng(2), 60, classes)
    few, labels = X[:5] + 10.0, y[:5]
    calls: dict[str, Callable[[Any], Any]] = {
        "first partial_fit": lambda m: learn(m, X, y, classes),
        "partial_fit of few": lambda m: learn(m, few, labels, classes),
        "partial_fit of many": lambda m: learn(m, X, y, classes),
        "first fit": lambda m: m.fit(X, y),
        "refit": lambda m: m.fit(X * 2.0, y),
        "set_params": lambda m: m.set_params(gamma=0.7, verbose=0, coef0=0.5),
    }
    if name in EXACT:
        calls["forget"] = lambda m: m.forget([0, 3, 7])
    if name == "ExactSVC":
        calls["set_C"] = lambda m: m.set_C(3.0)
    if name == "ExactOneClassSVM":
        return calls
    calls["learn_one"] = lambda m: m.learn_one(few[0], labels[0])
    calls["learn_many"] = lambda m: m.learn_many(few, labels)
    calls["first learn_from"] = lambda m: m.learn_from(Rows(X, y))
    calls["learn_from in stages"] = lambda m: m.learn_from(Rows(X, y, [20, 60]))
    if hasattr(make(name), "finish"):
        calls["finish"] = lambda m: m.finish()
    for step in ("teach", "teach many", "undo", "skip", "teach a new class"):
        calls[f"learner.{step}"] = lambda m: None
    return calls


def _learner_subject(name: str, label: str, classes: int) -> Subject:
    X, y = rows(np.random.default_rng(4), 40, classes)

    def fresh() -> ActiveLearner:
        learner = ActiveLearner(make(name), X, random_state=0)
        learner.teach(np.arange(classes), y[:classes])
        for _ in range(4):
            row = learner.ask()
            learner.teach(row, y[row])
        return learner

    def teach(learner: ActiveLearner, n: int) -> None:
        unseen = np.setdiff1d(np.arange(40), [r for event in learner._log for r in event.rows])
        learner.teach(unseen[-n:], y[unseen[-n:]])

    calls: dict[str, Callable[[ActiveLearner], Any]] = {
        "learner.teach": lambda a: teach(a, 1),
        "learner.teach many": lambda a: teach(a, 5),
        "learner.undo": lambda a: a.undo(),
        "learner.skip": lambda a: a.skip(a.ask(2)),
        "learner.teach a new class": lambda a: a.teach(a.ask(), 7),
    }

    def state(learner: ActiveLearner, leave: tuple[str, ...]) -> State:
        seen = {
            "log": [(event.kind, list(event.rows), list(event.labels)) for event in learner._log],
            "history": [dict(step) for step in learner.history_],
            "counts": learner.counts_,
            "classes": learner.classes_,
            "model": learner.estimator_.__getstate__(),
            "next": np.atleast_1d(learner.ask(3)),
        }
        return dict(flat(seen, leave=leave))

    title = f"{name} {label} {classes}"
    return Subject(title, fresh, calls[label], state, lambda learner: teach(learner, 1))


# -- judging -----------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _expected(subject: Subject) -> tuple[State, State, State, State, int, float]:
    """States before, after, and after more of either; how many lines and seconds the call takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = subject.make(), subject.make()
        before = subject.state(one, CLOCKS)
        counter = Tracer(None)
        began = time.perf_counter()
        subject.call(other)
        seconds = time.perf_counter() - began
        after = subject.state(other, CLOCKS)
        traced = subject.make()
        with counter:
            subject.call(traced)
        ends = []
        for model in (one, other):
            subject.more(model)
            ends.append(subject.state(model, (*CLOCKS, *WORK)))
    return before, after, ends[0], ends[1], counter.lines, seconds


def _judge(subject: Subject, model: Any, outcome: Outcome, where: str) -> Outcome:
    """Compare an interrupted object with what it may be."""
    try:
        return _compare(subject, model, outcome, where)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return outcome.violate(f"{subject.label}: unusable {where}: {what}"[:400])


def _compare(subject: Subject, model: Any, outcome: Outcome, where: str) -> Outcome:
    before, after, more_before, more_after, *_ = _expected(subject)
    state = subject.state(model, CLOCKS)
    if not differing(state, before):
        kept, end = "before", more_before
    elif not differing(state, after):
        kept, end = "after", more_after
    else:
        near = min(differing(state, before), differing(state, after), key=len)
        return outcome.violate(f"{subject.label}: a mixture {where}: {', '.join(near[:6])}"[:400])
    outcome.count(f"left as {kept}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject.more(model)
    apart = differing(subject.state(model, (*CLOCKS, *WORK)), end)
    if apart:
        outcome.violate(f"{subject.label}: continues otherwise {where}: {', '.join(apart[:6])}")
    return outcome


class Tracer:
    """Counts lines of the package that are run, and interrupts at one of them."""

    def __init__(self, at: int | None) -> None:
        self.lines = 0
        self.where = ""
        self._at = at

    def __enter__(self) -> Tracer:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and frame.f_lasti not in _ends_of_with(frame.f_code):
            self.lines += 1
            if self.lines == self._at:
                self.where = f"at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._line


@cache
def _ends_of_with(code: CodeType) -> set[int]:
    """Return where ``__exit__`` is about to be called after the body of a ``with`` statement.

    Tracing visits these places, but the interpreter handles no signal there, so that a lock is
    always released.
    """
    steps = list(dis.get_instructions(code))
    nones = [step.opname == "LOAD_CONST" and step.argval is None for step in steps]
    calls = [step.opname in ("CALL", "PRECALL") for step in steps]
    return {
        steps[k].offset for k in range(len(steps) - 3) if all(nones[k : k + 3]) and calls[k + 3]
    }


def _at_line(subject: Subject, rng: np.random.Generator) -> Outcome:
    lines = _expected(subject)[4]
    if rng.random() < 0.05:
        return _saving(subject, rng)
    model = subject.make()
    outcome = Outcome()
    tracer = Tracer(int(rng.integers(1, max(lines, 1) + 1)))
    try:
        with warnings.catch_warnings(), tracer:
            warnings.simplefilter("ignore")
            subject.call(model)
    except KeyboardInterrupt:
        outcome.count("interrupts")
    else:
        outcome.count("not reached")
    return _judge(subject, model, outcome, tracer.where)


def _saving(subject: Subject, rng: np.random.Generator) -> Outcome:
    """Interrupt `save`: the file has its old content or the new one."""
    old, new = subject.make(), subject.make()
    if isinstance(old, ActiveLearner):
        return Outcome().count("not reached")
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        subject.call(new)
        path, other = Path(folder, "model.mwz"), Path(folder, "other.mwz")
        marginwise.save(old, path)
        counter = Tracer(None)
        with counter:
            marginwise.save(new, other)
        known = {path.read_bytes(), other.read_bytes()}
        tracer = Tracer(int(rng.integers(1, counter.lines + 1)))
        try:
            with tracer:
                marginwise.save(new, path)
        except KeyboardInterrupt:
            pass
        outcome = Outcome().count("interrupts of save")
        if path.read_bytes() not in known:
            outcome.violate(f"save leaves another content {tracer.where}")
        left = sorted(p.name for p in Path(folder).iterdir() if p not in (path, other))
        if left:
            outcome.violate(f"save leaves {left} {tracer.where}")
    return outcome


# -- signals -----------------------------------------------------------------------------------


def _by_signal(subject: Subject, rng: np.random.Generator) -> Outcome:
    """Send SIGINT at a random time of a short call."""
    seconds = _expected(subject)[5]
    model = subject.make()
    outcome = Outcome()
    _interrupted(lambda: subject.call(model), float(rng.uniform(0, seconds)), outcome)
    return _judge(subject, model, outcome, "by SIGINT")


def _interrupted(call: Callable[[], Any], delay: float, outcome: Outcome) -> float | None:
    """Return how long a call took to answer SIGINT; None if it was done before."""
    due = [0.0]

    def send() -> None:
        time.sleep(max(0.0, due[0] - time.monotonic()))
        signal.raise_signal(signal.SIGINT)

    sender = threading.Thread(target=send, daemon=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            due[0] = time.monotonic() + delay
            sender.start()
            call()
            done = time.monotonic()
            sender.join()
            time.sleep(0.001)
    except KeyboardInterrupt:
        now = time.monotonic()
        sender.join()
        outcome.count("signals")
        return now - due[0] if "done" not in locals() else None
    return None


def _long_work(name: str, rng: np.random.Generator) -> Outcome:
    """Interrupt seconds of native work: it answers soon, and nothing of it remains."""
    X, y = rows(np.random.default_rng(5), 6000 if name not in EXACT else 1500, 2, 10)
    flipped = np.random.default_rng(6).random(len(y)) < 0.2
    y = np.where(flipped, 1 - y, y)
    model = make(name, C=100.0, nu=0.3, epochs=20)
    learn(model, X[:50], y[:50])
    before = state_of(model)
    outcome = Outcome()
    call = (lambda: model.fit(X, y)) if rng.random() < 0.5 else (lambda: learn(model, X, y))
    waited = _interrupted(call, float(rng.uniform(0.05, 0.6)), outcome)
    if waited is None:
        return outcome.count("done before the signal")
    if waited > PATIENCE:
        outcome.violate(f"{name}: SIGINT was answered after {waited:.1f} s")
    apart = differing(state_of(model), before)
    if apart:
        outcome.violate(f"{name}: a mixture after SIGINT in long work: {', '.join(apart[:6])}")
    return outcome


# -- memory ------------------------------------------------------------------------------------


def _without_memory(name: str, rng: np.random.Generator) -> Outcome:
    """Learn with little address space left: all is learned, or MemoryError and nothing is."""
    X, y = rows(np.random.default_rng(7), 600, 2, 2000)
    model = make(name, C=1.0, nu=0.3)
    learn(model, X[:20], y[:20])
    twin = pickle.loads(pickle.dumps(model))
    before = state_of(model, (*CLOCKS, *WORK))
    call = learn if rng.random() < 0.5 else (lambda m, X, y: m.fit(X, y))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = int(10 ** rng.uniform(4, 8))
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    outcome = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room, hard))
        try:
            call(model, X, y)
        except (MemoryError, OSError, RuntimeError) as error:
            outcome.count(f"{type(error).__name__} without memory")
        else:
            outcome.count("memory was enough")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        state = state_of(model, (*CLOCKS, *WORK))
        if differing(state, before):
            call(twin, X, y)
            apart = differing(state, state_of(twin, (*CLOCKS, *WORK)))
            if apart:
                outcome.violate(f"{name}: a mixture without memory: {', '.join(apart[:6])}")
    return outcome
