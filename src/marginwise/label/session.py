"""Labelling session: items, stored answers, model and queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marginwise.active import StoppingRule
from marginwise.label.agreement import share_of
from marginwise.label.answered import Answered
from marginwise.label.events import Event
from marginwise.label.items import Items
from marginwise.label.model import LabelModel, Taught
from marginwise.label.progress import Measures
from marginwise.label.queue import Question, Queue, Settings, drawn, pending
from marginwise.label.store import LabelStore

MANY = 3  # the model is rebuilt after more new events than this
FILE = "file"  # annotator of the existing labels of the items


class Session:
    """Labelling session.

    A session selects items to label, stores the answers and trains a model on them. Its state
    depends only on its items, its settings and the events of its store. An answer is stored before
    it is learned, and learned before it is acknowledged. Any number of threads can use a session,
    and any number of sessions can share a store.

    Parameters
    ----------
    items : Items
        Items to label. Existing labels of the items are stored once as answers of the annotator
        "file".
    X : {ndarray, CSR array} of shape (n_items, n_features)
        Features of the items.
    store : LabelStore
        Store of the answers.
    estimator : estimator
        Classifier to train.
    settings : Settings
        Settings of the session.
    stop : StoppingRule or None, default=None
        Stopping rule. None uses the default of `ActiveLearner`.
    """

    def __init__(
        self,
        items: Items,
        X: Any,
        store: LabelStore,
        *,
        estimator: Any,
        settings: Settings,
        stop: StoppingRule | None = None,
    ) -> None:
        self.items, self.store, self.settings = items, store, settings
        self._lock = threading.RLock()
        held = drawn(items, settings.seed, "holdout", settings.holdout)
        self.model = LabelModel(
            X,
            held,
            estimator=estimator,
            labels=settings.labels,
            strategy=settings.strategy,
            seed=int(share_of(settings.seed, "annotator", settings.annotator) * 2**31),
            stop=stop,
        )
        self.answered = Answered(items)
        self._queue = Queue(items, settings, self.model, self.answered, held)
        self._measures = Measures(items, settings, self.model, self.answered, self._queue)
        self._import()
        self._refresh()
        self._assign(self._queue.restore)

    def _import(self) -> None:
        """Store the existing labels of the items, once."""
        known = [
            Event(
                kind="label",
                item=item,
                label=label,
                annotator=FILE,
                key=f"file:{item}",
                purpose="import",
            )
            for item, label in zip(self.items.ids, self.items.labels, strict=True)
            if label is not None
        ]
        if known:
            self.store.append_all(known)

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self.store.close()

    # -- requests of the page ----------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state that the page needs when it is opened."""
        with self._lock:
            self._refresh()
            self._assign(self._queue.fill)
            return {
                "name": self.items.name,
                "annotator": self.settings.annotator,
                "goal": self.settings.goal,
                "labels": list(self.settings.labels),
                "items": len(self.items),
                **self._view(),
            }

    def answer(
        self, key: str, item: str, label: str, duration: float | None = None
    ) -> dict[str, Any]:
        """Store and learn the label of an item."""
        if label not in self.settings.labels:
            raise ValueError(
                f"there is no label {label!r:.60}; expected one of "
                f"{', '.join(self.settings.labels)}."
            )
        return self._answer("label", key, item, label, duration)

    def skip(self, key: str, item: str, duration: float | None = None) -> dict[str, Any]:
        """Store that an item was skipped."""
        return self._answer("skip", key, item, None, duration)

    def undo(self, key: str) -> dict[str, Any]:
        """Undo the annotator's last action; an unanswered item moves to the front."""
        with self._lock:
            self._refresh()
            last = self.answered.answers.undoable(self.settings.annotator)
            if last is None:
                return {"undone": None, **self._view()}
            questions = self._queue.questions
            if last.is_answer and not self.answered.answers.has_earlier(last):
                version, purpose = last.model_version or 0, last.purpose or "browse"
                again = Question(last.item, purpose, version, last.score)
                questions = [again, *self._queue.without(last.item)]
            event = Event(
                kind="undo",
                item=last.item,
                undone=last.seq,
                key=key,
                annotator=self.settings.annotator,
                pending=pending(questions),
            )
            undone = {"item": last.item, "kind": last.kind, "label": last.label}
            return {"undone": undone if self._append(event, questions) else None, **self._view()}

    def flag(self, key: str, item: str, on: bool) -> dict[str, Any]:
        """Flag an item, or remove its flag."""
        return self._remark("flag", key, item, "on" if on else "off")

    def note(self, key: str, item: str, text: str) -> dict[str, Any]:
        """Add a note to an item, or remove it."""
        return self._remark("note", key, item, text)

    def history(self, before: int | None = None, limit: int = 50) -> dict[str, Any]:
        """Return the annotator's effective answers, newest first."""
        with self._lock:
            self._refresh()
            own = self.answered.answers.effective(self.settings.annotator)
            found = sorted(own, key=lambda event: -event.seq)
            if before is not None:
                found = [event for event in found if event.seq < before]
            return {"entries": [self._entry(e) for e in found[:limit]], "more": len(found) > limit}

    def item(self, item: str) -> dict[str, Any]:
        """Return an item."""
        with self._lock:
            asked = self._queue.find(item)
            return self._shown(item, None if asked is None else asked.purpose)

    def image(self, item: str) -> tuple[Path, Path]:
        """Return the file of an image, and the folder that must contain it."""
        path = self.items.content.path(self.items.row(item))
        if path is None:
            raise KeyError(f"the item {item} is not an image.")
        folder: Path = self.items.content.folder  # type: ignore[attr-defined]
        return path, folder

    def guess(self, item: str) -> dict[str, Any] | None:
        """Return the prediction for an item, or None without a model."""
        with self._lock:
            self.items.row(item)
            value = self._queue.score(item)
            if value is None:
                return None
            classes = self.model.classes
        values = np.array(value if isinstance(value, list) else [-value, value])
        weights = np.exp(2 * (values - values.max()))
        order = np.argsort(-values, kind="stable").tolist()
        return {
            "label": classes[order[0]],
            "confidence": float(weights.max() / weights.sum()),
            "scores": [[classes[k], float(values[k])] for k in order],
        }

    def progress(self) -> dict[str, Any]:
        """Return curves and estimates."""
        with self._lock:
            self._refresh()
            return self._measures.progress()

    # -- answers from other programs ---------------------------------------------------------------

    def record(self, events: Sequence[Event]) -> int:
        """Store answers that were not given on the page, and learn them.

        Parameters
        ----------
        events : sequence of Event
            Labels and skips of any annotators. Events whose keys are already stored are ignored.

        Returns
        -------
        count : int
            Number of new events.
        """
        with self._lock:
            self._refresh()
            for event in events:
                self.items.row(event.item)
            before = self.answered.answers.seq
            stored = self.store.append_all(events)
            self._refresh()
            self._assign(self._queue.fill)
            return len({event.seq for event in stored if event.seq > before})

    def withdraw(self, event: Event, key: str) -> int:
        """Revert a stored answer with an undo if possible, otherwise with a skip.

        Parameters
        ----------
        event : Event
            The answer, as returned by the store.
        key : str
            Key of the event that reverts it.

        Returns
        -------
        count : int
            Number of stored events.
        """
        with self._lock:
            self._refresh()
            last = self.answered.answers.undoable(event.annotator)
            newest = last is not None and last.seq == event.seq
            kind, undone = ("undo", event.seq) if newest else ("skip", None)
            taken = Event(
                kind=kind, item=event.item, annotator=event.annotator, undone=undone, key=key
            )
            return self.record([taken])

    # -- events ------------------------------------------------------------------------------------

    def _answer(
        self, kind: str, key: str, item: str, label: str | None, duration: float | None
    ) -> dict[str, Any]:
        with self._lock:
            self._refresh()
            self.items.row(item)
            asked = self._queue.find(item)
            if asked is None:
                asked = Question(item, "browse", self.model.version, self._queue.score(item))
            questions = self._queue.without(item)
            event = Event(
                kind=kind,
                item=item,
                label=label,
                key=key,
                duration=duration,
                annotator=self.settings.annotator,
                model_version=asked.version,
                score=asked.score,
                purpose=asked.purpose,
                pending=pending(questions),
            )
            self._append(event, questions)
            return self._view()

    def _remark(self, kind: str, key: str, item: str, text: str) -> dict[str, Any]:
        with self._lock:
            self._refresh()
            self.items.row(item)
            event = Event(
                kind=kind,
                item=item,
                text=text,
                key=key,
                annotator=self.settings.annotator,
                pending=pending(self._queue.questions),
            )
            self._append(event, self._queue.questions)
            return self._view()

    def _append(self, event: Event, questions: list[Question]) -> bool:
        """Store an event and replace the queue; return whether the event was new."""
        stored = self.store.append(event)
        if stored.seq <= self.answered.answers.seq:
            return False  # a repeated request
        self._queue.questions = questions
        self._refresh()
        self._assign(self._queue.fill)
        return True

    def _assign(self, choose: Callable[[set[str]], None]) -> None:
        """Choose questions, and store them before another annotator can be asked the same."""

        def chosen(taken: set[str]) -> tuple[str, ...]:
            choose(taken)
            return pending(self._queue.questions)

        self.store.assign(self.settings.annotator, self.answered.answers.seq, chosen)

    def _refresh(self) -> None:
        """Apply and learn the events that any process has stored in the meantime."""
        events = self.store.events(self.answered.answers.seq)
        rebuild = len(events) > MANY
        for event in events:
            changed = self.answered.apply(event)
            rebuild = rebuild or changed
            if event.is_answer and event.item in self.items and not rebuild:
                self.model.learn(*self._taught(event))
        if rebuild:
            self._rebuild()
        if events:
            self._queue.prune()

    def _rebuild(self) -> None:
        """Update the model to the effective answers."""
        taught: Taught = [self._taught(event) for event in self.answered.counting]
        self.model.become([answer for answer in taught if self.model.holds(answer[0])])
        self._queue.reset()

    def _taught(self, event: Event) -> tuple[int, str | None, str | None]:
        """Return the row, label and purpose that the model learns from an answer.

        Other processes may store labels that this session does not have. The model treats them as
        skips.
        """
        label = event.label if event.label in self.settings.labels else None
        return self.items.row(event.item), label, event.purpose

    # -- views -------------------------------------------------------------------------------------

    def _view(self) -> dict[str, Any]:
        return {
            "queue": [self._shown(asked.item, asked.purpose) for asked in self._queue.questions],
            "summary": self._measures.summary(),
            "undoable": self.answered.answers.undoable(self.settings.annotator) is not None,
        }

    def _shown(self, item: str, purpose: str | None) -> dict[str, Any]:
        answers = self.answered.answers
        found = answers.answer(item, self.settings.annotator)
        return self.items.show(self.items.row(item)) | {
            "answer": None if found is None else {"kind": found.kind, "label": found.label},
            "flagged": answers.flagged(item),
            "note": answers.note(item),
            "purpose": purpose,
        }

    def _entry(self, event: Event) -> dict[str, Any]:
        shown = self._shown(event.item, event.purpose)
        return {
            "seq": event.seq,
            "item": shown,
            "kind": event.kind,
            "label": event.label,
            "time": event.time,
            "flagged": shown["flagged"],
            "note": shown["note"],
        }
