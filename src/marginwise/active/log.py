"""The log of answers, and what follows from it: the model, the state of the pool, the history.

The log is the truth. Undoing an answer or restoring after an error replays the log, and a learner
that is loaded from a file has carried out the same events as the one that was saved.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._estimator.base import Exclusive
from marginwise.active.answers import contains
from marginwise.active.models import Model
from marginwise.active.pool import SKIPPED, TAUGHT, UNSEEN, Pool


@dataclass
class Event:
    """An entry of the log: "teach", "skip" or "finish", the rows, and the labels of "teach"."""

    kind: str
    rows: list[int]
    labels: list[Any]


class AnswerLog(Exclusive):
    """A pool and a model that are what a log of answers makes of them."""

    history_: list[dict[str, Any]]
    support_counts_: list[int | None]
    _pool: Pool
    _model: Model
    _given: NDArray[Any] | None  # classes, if they were given
    _classes: NDArray[Any]
    _met: set[Any]  # labels taught
    _log: list[Event]
    _scores_asked: dict[int, Any]
    _started: float

    # -- fitted attributes -----------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """Model that has learned every answer."""
        return self._model.estimator

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels known so far, sorted."""
        return self._classes

    @property
    def has_model_(self) -> bool:
        """Whether rows can be scored: two classes were taught, or the estimator was fitted."""
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
        """Number of rows "taught", "skipped", and "unasked": taught but never asked about."""
        return {
            "taught": len(self.history_),
            "skipped": int(np.count_nonzero(self._pool.status == SKIPPED)),
            "unasked": sum(not step["asked"] for step in self.history_),
        }

    # -- carrying out events ---------------------------------------------------------------------

    def _begin(self) -> None:
        """Return to the state before the first answer."""
        self.history_ = []
        self.support_counts_ = []
        self._met = set()
        self._pool.status[:] = UNSEEN
        self._pool.n_unseen = self._pool.n
        self._classes = np.empty(0) if self._given is None else self._given
        self._model = self._model.blank()
        if self._model.warm and not len(self._classes):
            self._classes = self._model.estimator.classes_
        if len(self._classes) >= 2:
            self._model.start(self._classes)

    def _do(self, event: Event) -> None:
        """Carry out an event and log it; if it fails or is interrupted, nothing has happened."""
        try:
            self._carry_out(event)
        except KeyboardInterrupt:
            # Errors leave a model as it was; Ctrl-C may leave it with half of an answer.
            with self._all_or_nothing():
                self._replay(self._log)
            raise

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the learner if the block fails; models are replaced there, not changed."""
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

    def _carry_out(self, event: Event) -> None:
        if event.kind == "teach":
            self._learn(event)
        elif event.kind == "skip":
            self._pool.mark(np.array(event.rows), SKIPPED)
        else:
            self._model.finish()
        self._log.append(event)

    def _learn(self, event: Event) -> None:
        rows = np.array(event.rows, dtype=np.int64)
        known = self._classes
        self._pool.require(rows)
        new = [label for label in event.labels if not contains(known, label)]
        if new:
            self._grow_classes(new, event)
        elif len(known) >= 2:
            self._model.learn(rows, np.array(event.labels, dtype=known.dtype))
        self._pool.mark(rows, TAUGHT)
        self._record(event)

    def _grow_classes(self, new: list[Any], event: Event) -> None:
        """Build the model again with more classes, from all answers including these."""
        before = self._classes
        classes = np.unique(np.array([*before.tolist(), *new]))
        if len(classes) >= 2:
            answers = [past for past in self._log if past.kind == "teach"] + [event]
            rows = np.array([row for past in answers for row in past.rows], dtype=np.int64)
            labels = np.array([y for past in answers for y in past.labels], dtype=classes.dtype)
            model = self._model.blank()
            model.start(classes)
            model.learn(rows, labels)
            self._model = model
        self._classes = classes

    def _record(self, event: Event) -> None:
        self._met.update(event.labels)
        counts = self._model.support_counts() if self.has_model_ else np.zeros(1)
        support = None if counts is None else int(counts.sum())
        # Within a batch the model was as it had been before.
        before = self.support_counts_[-1] if self.support_counts_ else 0
        self.support_counts_ += [before] * (len(event.rows) - 1) + [support]
        for row, label in zip(event.rows, event.labels, strict=True):
            self.history_.append(
                {
                    "row": row,
                    "label": label,
                    "asked": row in self._scores_asked,
                    "score": self._scores_asked.get(row),
                    "support_vectors": support,
                    "seconds": time.perf_counter() - self._started,
                }
            )

    def _replay(self, log: list[Event]) -> None:
        """Bring the learner to the state that a log describes."""
        times = [step["seconds"] for step in self.history_]
        self._log = []
        self._begin()
        for event in log:
            self._carry_out(event)
        for step, seconds in zip(self.history_, times, strict=False):
            step["seconds"] = seconds

    def _label_of(self, row: int) -> Any:
        return next(step["label"] for step in self.history_ if step["row"] == row)
