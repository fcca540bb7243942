"""A session: items, the answers in a store, the model that learns them, and the queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marginwise._arrays import Ints
from marginwise.active import StoppingRule
from marginwise.label.events import Answers, Event
from marginwise.label.items import Items
from marginwise.label.model import LabelModel, Taught, share_of
from marginwise.label.store import LabelStore

DEPTH = 3  # questions that the page has at a time
FILE = "file"  # annotator of the labels that the items came with
AUDIT = 10  # one of so many questions is drawn at random, where items are ranked
ACTIVE = 1800.0  # seconds within which the questions of other annotators are left to them


@dataclass(frozen=True)
class Settings:
    """How a session asks.

    Parameters
    ----------
    labels : tuple of str
        All labels, in the order of their keys; with the goal "find", the first is looked for.
    annotator : str
        Who answers.
    goal : {"learn", "find"}
        Whether to ask what teaches the model most, or to find items of the first label.
    strategy : str
        Which item to ask about with the goal "learn"; see `ActiveLearner`.
    holdout : float
        Share of the questions whose answers are not learned, but measure the error.
    overlap : float
        Share of the questions that every annotator is asked.
    seed : int
        Seed of all draws.
    """

    labels: tuple[str, ...]
    annotator: str = "me"
    goal: str = "learn"
    strategy: str = "active"
    holdout: float = 0.0
    overlap: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Question:
    """An item that is asked about.

    Parameters
    ----------
    id : str
        The item.
    purpose : str
        Why.
    version : int
        Number of labels that the model had learned when the item was chosen.
    score : float, list of float or None
        Its decision value, or values, at that time.
    """

    id: str
    purpose: str
    version: int = 0
    score: Any = None


class Session:
    """Ask about items, store the answers, learn them.

    INVARIANT: the state follows from the items, the settings and the events of the store. The
    queue is the `pending` list of the annotator's last event, filled up by `_choose`.

    Parameters
    ----------
    items : Items
        What is labelled.
    X : {ndarray, CSR array} of shape (n_items, n_features)
        Their features.
    store : LabelStore
        Where answers are stored.
    estimator : estimator
        What learns.
    settings : Settings
        How to ask.
    stop : StoppingRule or None, default=None
        Rule that decides when to stop.
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
        self._held = self._drawn("holdout", settings.holdout)
        self._shared = self._drawn("overlap", settings.overlap)
        self._order: dict[str, Ints] = {}
        pool = np.setdiff1d(np.arange(len(items)), self._held).astype(np.int64)
        self.model = LabelModel(
            X,
            pool,
            estimator=estimator,
            labels=settings.labels,
            strategy=settings.strategy,
            seed=int(share_of(settings.seed, "annotator", settings.annotator) * 2**31),
            stop=stop,
        )
        self.answers = Answers()
        self._queue: list[Question] = []
        self._import()
        self._refresh()
        self._restore_queue()

    def _drawn(self, purpose: str, share: float) -> Ints:
        """Return a share of the items, in an order that depends on their ids alone."""
        if share <= 0:
            return np.empty(0, dtype=np.int64)
        ranks = np.array([share_of(self.settings.seed, purpose, item) for item in self.items.ids])
        order = np.argsort(ranks, kind="stable")
        return order[: int(np.count_nonzero(ranks < share))].astype(np.int64)

    def _import(self) -> None:
        """Store the labels that the items came with, once."""
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

    # -- what the page asks for --------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that the page needs when it is opened."""
        with self._lock:
            self._refresh()
            self._fill()
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
        return self._answered("label", key, item, label, duration)

    def skip(self, key: str, item: str, duration: float | None = None) -> dict[str, Any]:
        """Store that an item was skipped."""
        return self._answered("skip", key, item, None, duration)

    def undo(self, key: str) -> dict[str, Any]:
        """Take back the annotator's last action."""
        with self._lock:
            self._refresh()
            last = self.answers.undoable(self.settings.annotator)
            if last is None:
                return {"undone": None, **self._view()}
            queue = list(self._queue)
            if last.is_answer and not self._answered_before(last):
                again = Question(
                    last.item, last.purpose or "browse", last.model_version or 0, last.score
                )
                queue = [again, *(q for q in queue if q.id != last.item)]
            stored = self._append(
                Event(
                    kind="undo",
                    item=last.item,
                    undone=last.seq,
                    key=key,
                    annotator=self.settings.annotator,
                    pending=_pending(queue),
                ),
                queue,
            )
            undone = {"item": last.item, "kind": last.kind, "label": last.label}
            return {"undone": undone if stored else None, **self._view()}

    def flag(self, key: str, item: str, on: bool) -> dict[str, Any]:
        """Flag an item, or remove its flag."""
        return self._remarked("flag", key, item, "on" if on else "off")

    def note(self, key: str, item: str, text: str) -> dict[str, Any]:
        """Add a note to an item, or remove it."""
        return self._remarked("note", key, item, text)

    def history(self, before: int | None = None, limit: int = 50) -> dict[str, Any]:
        """Return the annotator's answers, the newest first."""
        with self._lock:
            self._refresh()
            own = self.answers.effective(self.settings.annotator)
            found = sorted(own, key=lambda event: -event.seq)
            if before is not None:
                found = [event for event in found if event.seq < before]
            entries = [
                {
                    "seq": event.seq,
                    "item": self._shown(event.item, event.purpose),
                    "kind": event.kind,
                    "label": event.label,
                    "time": event.time,
                    "flagged": self.answers.flagged(event.item),
                    "note": self.answers.note(event.item),
                }
                for event in found[:limit]
            ]
            return {"entries": entries, "more": len(found) > limit}

    def item(self, item: str) -> dict[str, Any]:
        """Return an item."""
        with self._lock:
            self.items.row(item)
            return self._shown(item, None)

    def image(self, item: str) -> tuple[Path, Path]:
        """Return the file of an image, and the folder that it must be in."""
        path = self.items.content.path(self.items.row(item))
        if path is None:
            raise KeyError(f"the item {item} is not an image.")
        folder: Path = self.items.content.folder  # type: ignore[attr-defined]
        return path, folder

    def guess(self, item: str) -> dict[str, Any] | None:
        """Return what the model says about an item; None without a model."""
        with self._lock:
            row = self.items.row(item)
            if not self.model.ready:
                return None
            value = self.model.values(np.array([row])).tolist()[0]
        classes = self.model.classes
        values = value if isinstance(value, list) else [-value, value]
        weights = np.exp(2 * (np.array(values) - max(values)))
        scores = sorted(zip(classes, values, strict=True), key=lambda pair: -pair[1])
        return {
            "label": self.model.named(value),
            "confidence": float(weights.max() / weights.sum()),
            "scores": [[label, float(score)] for label, score in scores],
        }

    def progress(self) -> dict[str, Any]:
        """Return curves and estimates."""
        return {}

    # -- events ------------------------------------------------------------------------------------

    def _answered(
        self, kind: str, key: str, item: str, label: str | None, duration: float | None
    ) -> dict[str, Any]:
        with self._lock:
            self._refresh()
            row = self.items.row(item)
            asked = next((q for q in self._queue if q.id == item), None)
            question = asked or Question(item, "browse", self.model.version, self._score(row))
            queue = [q for q in self._queue if q.id != item]
            self._append(
                Event(
                    kind=kind,
                    item=item,
                    label=label,
                    key=key,
                    duration=duration,
                    annotator=self.settings.annotator,
                    model_version=question.version,
                    score=question.score,
                    purpose=question.purpose,
                    pending=_pending(queue),
                ),
                queue,
            )
            return self._view()

    def _remarked(self, kind: str, key: str, item: str, text: str) -> dict[str, Any]:
        with self._lock:
            self._refresh()
            self.items.row(item)
            self._append(
                Event(
                    kind=kind,
                    item=item,
                    text=text,
                    key=key,
                    annotator=self.settings.annotator,
                    pending=_pending(self._queue),
                ),
                self._queue,
            )
            return self._view()

    def _append(self, event: Event, queue: list[Question]) -> bool:
        """Store an event, after which the queue is another one; return whether it was new."""
        stored = self.store.append(event)
        if stored.seq <= self.answers.seq:
            return False  # a request that was sent again
        self._queue = queue
        self._refresh()
        self._fill()
        return True

    def _refresh(self) -> None:
        """Apply the events that were stored since, by whichever process, and learn them."""
        events = self.store.events(self.answers.seq)
        rebuild = False
        for event in events:
            row = self.items.row(event.item)
            fresh = event.is_answer and self.answers.answer(event.item) is None
            self.answers.apply(event)
            if event.purpose == "import" or event.kind == "undo" or (event.is_answer and not fresh):
                rebuild = True
            elif event.is_answer and self.model.holds(row) and not rebuild:
                self.model.learn(row, event.label)
        if rebuild:
            self._rebuild()
        if events:
            self._queue = [q for q in self._queue if self._still_open(q)]

    def _rebuild(self) -> None:
        """Bring the model to the answers that count."""
        counting = self.answers.effective()
        taught: Taught = []
        first, leading = 0, True
        for event in counting:
            row = self.items.row(event.item)
            if self.model.holds(row):
                leading = leading and event.purpose == "import"
                first += leading
                taught.append((row, event.label))
        self.model.become(taught, first)

    def _answered_before(self, last: Event) -> bool:
        """Return whether the annotator answered the same item before."""
        own = [e for e in self.answers.effective(self.settings.annotator) if e.item == last.item]
        numbers = self.answers._by_item.get(("answer", last.item), [])
        mine = [n for n in numbers if self.answers._events[n].annotator == last.annotator]
        return bool(own) and len(mine) > 1

    def _still_open(self, question: Question) -> bool:
        shared = question.purpose == "overlap"
        return self.answers.answer(question.id, self.settings.annotator if shared else None) is None

    # -- the queue ---------------------------------------------------------------------------------

    def _restore_queue(self) -> None:
        last = self.answers.last(self.settings.annotator)
        for entry in (last.pending if last is not None else None) or ():
            item, _, purpose = entry.partition(":")
            if item in self.items:
                row = self.items.row(item)
                self._queue.append(
                    Question(item, purpose or "strategy", self.model.version, self._score(row))
                )
        self._queue = [q for q in self._queue if self._still_open(q)]
        self._fill()

    def _fill(self) -> None:
        while len(self._queue) < DEPTH:
            question = self._choose()
            if question is None:
                break
            self._queue.append(question)

    def _choose(self) -> Question | None:
        """Choose the next question, which depends on the answers and on the queue alone."""
        slot = self._given() + len(self._queue)
        for purpose, chooser in self._choosers(slot):
            row = chooser()
            if row is not None:
                return Question(self.items.ids[row], purpose, self.model.version, self._score(row))
        return None

    def _choosers(self, slot: int) -> list[tuple[str, Callable[[], int | None]]]:
        """Return how the question of a slot may be chosen, what is preferred first."""
        settings, found = self.settings, []
        mine = {self.items.row(q.id) for q in self._queue}
        taken = mine | self._of_others()
        choosers: dict[str, Callable[[], int | None]] = {
            "holdout": lambda: self._next_of(self._held, taken, None),
            "overlap": lambda: self._next_of(self._shared, mine, settings.annotator),
            "random": lambda: self._next_of(self._shuffled("audit"), taken, None),
            "rank": lambda: self.model.best(settings.labels[0], taken),
            "strategy": lambda: self.model.ask(taken),
        }
        if _is_due(slot, settings.holdout, 0):
            found.append("holdout")
        if _is_due(slot, settings.overlap, 1):
            found.append("overlap")
        if settings.goal == "find":
            found += ["random"] if _is_due(slot, 1 / AUDIT, 2) else []
            found += ["rank"] if self.model.ready else ["random"]
        else:
            found.append("strategy")
        return [(purpose, choosers[purpose]) for purpose in found]

    def _given(self) -> int:
        """Return how many questions of the queue the annotator has answered."""
        own = self.answers.effective(self.settings.annotator)
        return sum(event.purpose not in ("browse", "import") for event in own)

    def _of_others(self) -> set[int]:
        """Return the items that other annotators have been given and may be looking at."""
        lasts = [self.answers.last(name) for name in self.answers.annotators()]
        found = [last for last in lasts if last is not None]
        newest = max((last.time for last in found), default=0.0)
        return {
            self.items.row(entry.partition(":")[0])
            for last in found
            if last.annotator != self.settings.annotator and newest - last.time < ACTIVE
            for entry in last.pending or ()
            if entry.partition(":")[0] in self.items
        }

    def _shuffled(self, purpose: str) -> Ints:
        """Return the items that may be learned, in an order of their own for each purpose."""
        if purpose not in self._order:
            order = self._drawn(purpose, 2.0)
            self._order[purpose] = order[[self.model.holds(row) for row in order.tolist()]]
        return self._order[purpose]

    def _next_of(self, rows: Ints, without: set[int], annotator: str | None) -> int | None:
        """Return the first of some items that is not answered yet, by one or any annotator."""
        for row in rows.tolist():
            if row not in without and self.answers.answer(self.items.ids[row], annotator) is None:
                return int(row)
        return None

    # -- views -------------------------------------------------------------------------------------

    def _view(self) -> dict[str, Any]:
        return {
            "queue": [self._shown(q.id, q.purpose) for q in self._queue],
            "summary": self._summary(),
            "undoable": self.answers.undoable(self.settings.annotator) is not None,
        }

    def _shown(self, item: str, purpose: str | None) -> dict[str, Any]:
        found = self.answers.answer(item, self.settings.annotator)
        return self.items.show(self.items.row(item)) | {
            "answer": None if found is None else {"kind": found.kind, "label": found.label},
            "flagged": self.answers.flagged(item),
            "note": self.answers.note(item),
            "purpose": purpose,
        }

    def _score(self, row: int) -> Any:
        return self.model.values(np.array([row])).tolist()[0] if self.model.ready else None

    def _summary(self) -> dict[str, Any]:
        counting = self.answers.effective()
        counts = dict.fromkeys(self.settings.labels, 0)
        for event in counting:
            if event.label is not None:
                counts[event.label] = counts.get(event.label, 0) + 1
        answered = sum(counts.values())
        return {
            "answered": answered,
            "skipped": len(counting) - answered,
            "flagged": 0,
            "left": len(self.items) - len(counting),
            "counts": counts,
            "per_hour": None,
            "stop": {"stop": False, "reason": ""},
        }

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self.store.close()


def _pending(queue: Sequence[Question]) -> tuple[str, ...]:
    """Return what an event stores of the queue after it: items, and why they are asked about."""
    return tuple(f"{question.id}:{question.purpose}" for question in queue)


def _is_due(slot: int, share: float, offset: int) -> bool:
    """Return whether a slot is one of a share of all slots, which are evenly spaced."""
    if share <= 0:
        return False
    period = max(1, round(1 / share))
    return (slot + offset) % period == period - 1


def now() -> float:
    """Return the time in seconds since 1970."""
    return time.time()
