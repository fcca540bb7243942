"""Log of answers, which determines the model, the pool state and the history.

The log lists all actions, including corrections. Its *course* lists the effective answers in order.
To undo or correct an answer, or to recover from an error, the learner returns to a mark before
which the course is unchanged and replays the course from there. A learner that is loaded from a
file has replayed the course of the saved one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints
from marginwise._estimator.base import Exclusive
from marginwise.active.answers import (
    AUDIT,
    GIVEN,
    check_labels,
    contains,
    plain_answers,
    row_numbers,
)
from marginwise.active.marks import Mark, Marks, is_due, rung
from marginwise.active.models import Model
from marginwise.active.pool import SKIPPED, TAUGHT, Pool


@dataclass
class Event:
    """Entry of the log: "teach", "skip", "correct" or "finish", with rows and answers.

    Answers are labels, or None for skipped rows. Only "teach" has purposes of the questions.
    """

    kind: str
    rows: list[int]
    labels: list[Any] = field(default_factory=list)
    purposes: list[str] = field(default_factory=list)


def course_of(log: Iterable[Event]) -> list[Event]:
    """Return the effective answers of a log, with corrections applied."""
    course: list[Event] = []
    place: dict[int, int] = {}  # position of the answer of each row in the course
    for event in log:
        if event.kind != "correct":
            place.update(dict.fromkeys(event.rows, len(course)))
            course.append(event)
            continue
        for row, label in zip(event.rows, event.labels, strict=True):
            former = course[place[row]]
            k = former.rows.index(row)
            labels = former.labels or [None] * len(former.rows)
            purposes = former.purposes or [GIVEN] * len(former.rows)
            labels = [*labels[:k], label, *labels[k + 1 :]]
            kind = "skip" if all(one is None for one in labels) else "teach"
            course[place[row]] = Event(kind, former.rows, labels, purposes)
    return course


def check_log(log: Iterable[Event], n: int, given: NDArray[Any] | None) -> None:
    """Raise unless an untrusted log is valid for a pool of n rows."""
    taught: set[int] = set()
    answered: set[int] = set()
    known: NDArray[Any] = np.empty(0)
    for event in log:
        if event.kind == "finish" and not event.rows:
            continue
        rows = row_numbers(event.rows, n).tolist()
        free = answered.issuperset(rows) if event.kind == "correct" else taught.isdisjoint(rows)
        if not free or (event.kind == "skip" and not answered.isdisjoint(rows)):
            raise ValueError(f"its log has an answer to row {rows[0]} that cannot be")
        answered.update(rows)
        if event.labels and event.labels != [None]:
            labels = plain_answers(event.labels, np.array(rows))
            check_labels(labels, given, known)
            known = np.array(labels[:1]) if given is None else given
        if event.kind == "teach" or event.labels:
            taught.update(rows)
        if event.labels == [None]:
            taught.difference_update(rows)


class AnswerLog(Exclusive):
    """Pool and model determined by a log of answers."""

    history_: list[dict[str, Any]]
    support_counts_: list[int | None]
    _pool: Pool
    _model: Model
    _seed: int
    _given: NDArray[Any] | None  # the argument `classes`
    _classes: NDArray[Any]
    _met: set[Any]  # labels taught
    _log: list[Event]
    _course: list[Event]  # effective answers, in order
    _marks: Marks
    _scores_asked: dict[int, Any]
    _foreseen: dict[int, Any]  # predictions for audit rows before they were learned
    _started: float
    _replaying = False  # whether earlier answers are being learned again

    # -- fitted attributes -----------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """Model trained on all answers."""
        return self._model.fitted()

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels known so far, sorted."""
        return self._classes

    @property
    def has_model_(self) -> bool:
        """Whether the model can score rows."""
        return self._model.ready and (self._model.warm or len(self._met) >= 2)

    @property
    def n_pool_(self) -> int:
        """Number of rows in the pool."""
        return self._pool.n

    @property
    def n_unseen_(self) -> int:
        """Number of rows that were neither taught nor skipped."""
        return self._pool.n_unseen

    @property
    def counts_(self) -> dict[str, int]:
        """Number of rows "taught", "skipped" and "unasked"."""
        return {
            "taught": len(self.history_),
            "skipped": int(np.count_nonzero(self._pool.status == SKIPPED)),
            "unasked": sum(not step["asked"] for step in self.history_),
        }

    # -- applying events -------------------------------------------------------------------------

    def _begin(self) -> None:
        """Return to the state before the first answer."""
        self.history_ = []
        self.support_counts_ = []
        self._met = set()
        self._course = []
        self._pool.set_answers({})
        self._classes = np.empty(0) if self._given is None else self._given
        self._model = self._model.blank(self._seed)
        if self._model.warm and not len(self._classes):
            self._classes = self._model.estimator.classes_
        if len(self._classes) >= 2:
            self._model.start(self._classes)
        self._marks = Marks({0: self._mark(0)})

    def _do(self, event: Event) -> None:
        """Apply and log an event; undo it if it fails or is interrupted."""
        try:
            self._foresee(event)
            self._carry_out([event])
            self._log.append(event)
        except KeyboardInterrupt:
            # Errors do not change a model, but Ctrl-C may interrupt an answer halfway.
            with self._all_or_nothing():
                self._rebuild(self._log)
            raise

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the learner if the block fails."""
        before = dict(self.__dict__)
        status, unseen = self._pool.status.copy(), self._pool.n_unseen
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            self._pool.status[:] = status
            self._pool.n_unseen = unseen
            raise

    def _carry_out(self, events: list[Event]) -> None:
        """Apply an event, or several answers that can be learned together."""
        before = len(self.history_)
        if events[0].kind == "finish":
            self._model.finish()
        elif events[0].kind == "skip":
            self._pool.mark(np.array(events[0].rows), SKIPPED)
        else:
            self._learn(events)
        self._course += events
        if is_due(len(self._course), before, len(self.history_)):
            self._marks = self._marks.plus(self._mark(before))

    def _learn(self, events: list[Event]) -> None:
        """Learn answers; only a single event may contain new labels."""
        parts = [_taught(event) for event in events]
        for rows, _ in parts:
            self._pool.require(rows)
        new = [label for label in parts[0][1] if not contains(self._classes, label)]
        counts: list[int | None] = []
        if new:
            self._grow_classes(new, parts[0])
        elif len(self._classes) >= 2:
            labelled = [(rows, np.array(y, dtype=self._classes.dtype)) for rows, y in parts]
            counts = self._model.learn(labelled, later=self._replaying)
        for k, event in enumerate(events):
            self._met.update(parts[k][1])
            support: int | None = 0
            if self.has_model_:
                support = self._model.support() if new else counts[k]
            self._record(event, support)
        self._pool.mark(np.array([row for event in events for row in event.rows]), SKIPPED)
        self._pool.mark(np.concatenate([rows for rows, _ in parts]), TAUGHT)

    def _grow_classes(self, new: list[Any], part: tuple[Ints, list[Any]]) -> None:
        """Rebuild the model with more classes from all answers."""
        classes = np.unique(np.array([*self._classes.tolist(), *new]))
        if len(classes) >= 2:
            parts = [_taught(past) for past in self._course if past.kind == "teach"] + [part]
            rows = np.concatenate([rows for rows, _ in parts])
            labels = np.array([y for _, labels in parts for y in labels], dtype=classes.dtype)
            model = self._model.blank(self._seed)
            model.start(classes)
            model.learn([(rows, labels)], later=self._replaying)
            self._model = model
        self._classes = classes

    def _record(self, event: Event, support: int | None) -> None:
        given = [k for k, label in enumerate(event.labels) if label is not None]
        # Labels of a batch are learned together, so the count changes only with the last one.
        before = self.support_counts_[-1] if self.support_counts_ else 0
        self.support_counts_ += [before] * (len(given) - 1) + [support]
        for k in given:
            row = event.rows[k]
            self.history_.append(
                {
                    "row": row,
                    "label": event.labels[k],
                    "asked": row in self._scores_asked,
                    "purpose": event.purposes[k],
                    "score": self._scores_asked.get(row),
                    "predicted": self._foreseen.get(row),
                    "support_vectors": support,
                    "seconds": time.perf_counter() - self._started,
                }
            )

    def _foresee(self, event: Event) -> None:
        """Record predictions for audit rows before they are learned."""
        audited = [
            row
            for row, label, why in zip(event.rows, event.labels, event.purposes, strict=False)
            if why == AUDIT and label is not None and row not in self._foreseen
        ]
        if audited and self.has_model_:
            found = self._model.predict(np.array(audited, dtype=np.int64)).tolist()
            self._foreseen = {**self._foreseen, **dict(zip(audited, found, strict=True))}

    # -- restoring earlier states ----------------------------------------------------------------

    def _mark(self, before: int) -> Mark:
        """Return a mark of the current state."""
        labels = len(self.history_)
        reached = rung(labels) if rung(labels) > rung(before) else 0
        parts = self._model.copy(), self._classes, frozenset(self._met)
        return Mark(len(self._course), labels, reached, *parts)

    def _rebuild(self, log: list[Event]) -> None:
        """Rebuild the state from a log, starting at the last common mark."""
        times = {step["row"]: step["seconds"] for step in self.history_}
        course = course_of(log)
        pairs = enumerate(zip(course, self._course, strict=False))
        same = next((k for k, (a, b) in pairs if a != b), min(len(course), len(self._course)))
        answered = {row for event in course for row in event.rows}
        self._foreseen = {row: y for row, y in self._foreseen.items() if row in answered}
        self._return_to(self._marks.until(same))
        self._replaying = True
        while len(self._course) < len(course):
            events = self._together(course)
            self._foresee(events[0])
            self._carry_out(events)
        self._replaying = False
        self._log = log
        self._model.fitted()
        for step in self.history_:
            step["seconds"] = times.get(step["row"], step["seconds"])

    def _return_to(self, marks: Marks) -> None:
        """Return to the last mark, or to the initial state."""
        if not marks.complete:
            self._begin()
            return
        mark = marks.last
        self._marks = marks
        self._course = self._course[: mark.events]
        self.history_ = self.history_[: mark.labels]
        self.support_counts_ = self.support_counts_[: mark.labels]
        self._classes, self._met = mark.classes, set(mark.met)
        self._model = mark.model.copy(cached=self._model)
        answers = [_answers(event) for event in self._course]
        self._pool.set_answers({row: status for part in answers for row, status in part.items()})

    def _together(self, course: list[Event]) -> list[Event]:
        """Return the next events of a course that can be applied together."""
        first, labels = len(self._course), len(self.history_)
        end = first
        while end < len(course):
            event = course[end]
            plain = event.kind == "teach" and all(
                label is not None and contains(self._classes, label) for label in event.labels
            )
            unforeseen = AUDIT in event.purposes and not self._foreseen.keys() >= set(event.rows)
            if end > first and not (plain and not unforeseen):
                break
            end, before, labels = end + 1, labels, labels + len(event.labels)
            if not plain or len(self._classes) < 2 or is_due(end, before, labels):
                break
        return course[first:end]

    def _label_of(self, row: int) -> Any:
        return next(step["label"] for step in self.history_ if step["row"] == row)


def _taught(event: Event) -> tuple[Ints, list[Any]]:
    """Return the rows of an event that have labels, and the labels."""
    given = [(r, y) for r, y in zip(event.rows, event.labels, strict=True) if y is not None]
    return np.array([row for row, _ in given], dtype=np.int64), [label for _, label in given]


def _answers(event: Event) -> dict[int, int]:
    """Return the status that an event gives to its rows."""
    labels = event.labels or [None] * len(event.rows)
    return {r: SKIPPED if y is None else TAUGHT for r, y in zip(event.rows, labels, strict=True)}
