"""The queue: which items an annotator is asked about next, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginwise._arrays import Ints
from marginwise.label.agreement import share_of
from marginwise.label.answered import Answered
from marginwise.label.items import Items
from marginwise.label.model import LabelModel

DEPTH = 3  # questions that the page has at a time
AUDIT = 10  # one of so many questions is drawn at random
ACTIVE = 1800.0  # seconds within which the questions of other annotators are left to them
RETRIES = 10  # to find a question about an item that is not shared
AUDITS = "audit"  # names the order in which random questions are drawn

# Returns the row of an item, with the purpose where that is not the one that was chosen for.
Chooser = Callable[[], int | tuple[int, str] | None]


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
    item : str
        Its id.
    purpose : str
        Why.
    version : int
        Number of labels that the model had learned when the item was chosen.
    score : float, list of float or None
        Its decision value, or values, at that time.
    """

    item: str
    purpose: str
    version: int = 0
    score: Any = None


def drawn(items: Items, seed: int, purpose: str, share: float = 1.0) -> Ints:
    """Return a share of the items, in an order that depends on their ids, seed and purpose."""
    if share <= 0:
        return np.empty(0, dtype=np.int64)
    ranks = np.array([share_of(seed, purpose, item) for item in items.ids])
    order = np.argsort(ranks, kind="stable")
    return order[: int(np.count_nonzero(ranks < share))].astype(np.int64)


class Queue:
    """Questions that one annotator has been given, in order.

    INVARIANT: the queue is a function of the items, the settings and the events of the store: it is
    the `pending` list of the annotator's last event, filled up by `fill`. So it is the same after a
    restart.

    Parameters
    ----------
    items : Items
        What is labelled.
    settings : Settings
        How to ask.
    model : LabelModel
        The model.
    answered : Answered
        The answers.
    held : ndarray
        Rows that are held out, in the order in which they are asked about.

    Attributes
    ----------
    questions : list of Question
        The questions.
    audit_places : ndarray of shape (n_items,)
        Place of each row in `audits`, -1 if it is held out; set by `audits`.
    """

    audit_places: Ints

    def __init__(
        self, items: Items, settings: Settings, model: LabelModel, answered: Answered, held: Ints
    ) -> None:
        self._items, self._settings, self._model = items, settings, model
        self._answered, self._held = answered, held
        self._shared = drawn(items, settings.seed, "overlap", settings.overlap)
        self._shared_rows = set(self._shared.tolist())
        self._audits: Ints | None = None
        self._starts: dict[str, int] = {}  # up to which place all items of an order are answered
        self.questions: list[Question] = []

    # -- as it changes -----------------------------------------------------------------------------

    def restore(self) -> None:
        """Continue with the questions that were open after the annotator's last event."""
        pending = self._answered.answers.last_pending(self._settings.annotator)
        self.questions = [
            Question(item, purpose or "strategy", self._model.version, self.score(item))
            for item, _, purpose in (entry.partition(":") for entry in pending)
            if item in self._items
        ]
        self.prune()
        self.fill()

    def reset(self) -> None:
        """Forget which items were answered, since some answers were taken back."""
        self._starts.clear()

    def find(self, item: str) -> Question | None:
        """Return the question about an item, if it is in the queue."""
        return next((asked for asked in self.questions if asked.item == item), None)

    def without(self, item: str) -> list[Question]:
        """Return the questions about other items."""
        return [asked for asked in self.questions if asked.item != item]

    def prune(self) -> None:
        """Drop the questions that were answered, by other annotators as well unless shared."""
        self.questions = [asked for asked in self.questions if self._is_open(asked)]

    def _is_open(self, asked: Question) -> bool:
        own = self._settings.annotator if asked.purpose == "overlap" else None
        return self._answered.answers.answer(asked.item, own) is None

    def fill(self) -> None:
        """Choose questions until there are enough."""
        while len(self.questions) < DEPTH:
            chosen = self._choose()
            if chosen is None:
                break
            self.questions.append(chosen)

    def score(self, item: str) -> Any:
        """Return the decision value of an item, or values; None without a model."""
        if not self._model.ready:
            return None
        return self._model.values(np.array([self._items.row(item)])).tolist()[0]

    # -- choosing ----------------------------------------------------------------------------------

    def _choose(self) -> Question | None:
        """Choose the next question, which depends on the answers and on the queue alone."""
        slot = self._answered.given(self._settings.annotator) + len(self.questions) + 1
        for purpose, chooser in self._choosers(slot):
            found = chooser()
            if found is not None:
                row, why = found if isinstance(found, tuple) else (found, purpose)
                item = self._items.ids[row]
                return Question(item, why, self._model.version, self.score(item))
        return None

    def _choosers(self, slot: int) -> list[tuple[str, Chooser]]:
        """Return how the question of a slot may be chosen, what is preferred first."""
        settings = self._settings
        mine = {self._items.row(asked.item) for asked in self.questions}
        taken = mine | self._of_others()
        choosers: dict[str, Chooser] = {
            "holdout": lambda: self._next("holdout", self._held, taken, None),
            "overlap": lambda: self._next("overlap", self._shared, mine, settings.annotator),
            "random": lambda: self._next(AUDITS, self.audits(), taken, None),
            "rank": lambda: self._model.best(settings.labels[0], taken),
            "strategy": lambda: self._unshared(taken),
        }
        shares = {"holdout": settings.holdout, "overlap": settings.overlap}
        names = [name for name, share in shares.items() if self._count(name) < int(slot * share)]
        if settings.goal == "find":
            audit = not self._model.ready or slot % AUDIT == 0
            names += ["random", "rank"] if audit else ["rank"]
        else:
            names.append("strategy")
        return [(name, choosers[name]) for name in names]

    def _count(self, purpose: str) -> int:
        """Return how many questions were asked for a reason, those in the queue included."""
        waiting = sum(asked.purpose == purpose for asked in self.questions)
        return self._answered.given(self._settings.annotator, purpose) + waiting

    def _unshared(self, taken: set[int]) -> tuple[int, str] | None:
        """Return what the model asks about, of the items that are not shared if possible.

        Shared items have questions of their own, or else more than their share would be asked of
        all annotators.
        """
        waiting = [self._items.row(q.item) for q in self.questions if q.purpose == "random"]
        found = first = self._model.ask(taken, waiting)
        for _ in range(RETRIES if len(self._shared) else 0):
            if found is None or found[0] not in self._shared_rows:
                return found or first
            taken = taken | {found[0]}
            found = self._model.ask(taken, waiting)
        return first

    def audits(self) -> Ints:
        """Return the items that may be learned, in the order in which random ones are drawn."""
        if self._audits is None:
            order = drawn(self._items, self._settings.seed, AUDITS)
            self._audits = order[self._model.holds(order)]
            self.audit_places = np.full(len(self._items), -1, dtype=np.int64)
            self.audit_places[self._audits] = np.arange(len(self._audits))
        return self._audits

    def _of_others(self) -> set[int]:
        """Return the items that other annotators have been given and may be looking at."""
        answers = self._answered.answers
        lasts = [last for name in answers.annotators() if (last := answers.last(name)) is not None]
        newest = max((last.time for last in lasts), default=0.0)
        items = [
            entry.partition(":")[0]
            for last in lasts
            if last.annotator != self._settings.annotator and newest - last.time < ACTIVE
            for entry in answers.last_pending(last.annotator)
        ]
        return {self._items.row(item) for item in items if item in self._items}

    def _next(self, name: str, rows: Ints, without: set[int], annotator: str | None) -> int | None:
        """Return the first of some items that is not answered yet, by one or any annotator."""
        answers, first = self._answered.answers, True
        for place in range(self._starts.get(name, 0), len(rows)):
            row = int(rows[place])
            if answers.answer(self._items.ids[row], annotator) is None:
                if first:
                    self._starts[name], first = place, False
                if row not in without:
                    return row
        return None


def pending(questions: Sequence[Question]) -> tuple[str, ...]:
    """Return what an event stores of the queue after it: items, and why they are asked about."""
    return tuple(f"{asked.item}:{asked.purpose}" for asked in questions)
