"""The queue: the next questions of an annotator and their purposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginwise._arrays import Ints
from marginwise.active.recall import RANDOM_EVERY
from marginwise.label.agreement import share_of
from marginwise.label.answered import Answered
from marginwise.label.items import Items
from marginwise.label.model import LabelModel

DEPTH = 3  # length of the queue
RETRIES = 10  # attempts to find a question about an item that is not shared
AUDITS = "audit"  # name of the order in which random questions are drawn

# Returns the row of an item, and its purpose if that differs from the purpose of the chooser.
Chooser = Callable[[], int | tuple[int, str] | None]


@dataclass(frozen=True)
class Settings:
    """Settings of a session.

    Parameters
    ----------
    labels : tuple of str
        All labels, in the order of their keys. The goal "find" searches for the first label.
    annotator : str
        Name of the annotator.
    goal : {"learn", "find"}
        Whether to select the most informative items, or to find items of the first label.
    strategy : str
        Query strategy for the goal "learn"; see `ActiveLearner`.
    holdout : float
        Fraction of the questions whose answers are not learned and measure the error.
    overlap : float
        Fraction of the questions that every annotator is asked.
    seed : int
        Seed of all random draws.
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
    """A question about an item.

    Parameters
    ----------
    item : str
        Id of the item.
    purpose : str
        Purpose of the question.
    version : int
        Number of labels that the model had learned when the item was selected.
    score : float, list of float or None
        Decision value, or values, of the item at that time.
    """

    item: str
    purpose: str
    version: int = 0
    score: Any = None


def drawn(items: Items, seed: int, purpose: str, share: float = 1.0) -> Ints:
    """Draw a fraction of the items, in an order given by their ids, the seed and the purpose."""
    if share <= 0:
        return np.empty(0, dtype=np.int64)
    ranks = np.array([share_of(seed, purpose, item) for item in items.ids])
    order = np.argsort(ranks, kind="stable")
    return order[: int(np.count_nonzero(ranks < share))].astype(np.int64)


class Queue:
    """Ordered questions that are assigned to one annotator.

    INVARIANT: the queue is a function of the items, the settings and the events of the store: it is
    the `pending` list of the annotator's last event, extended by `fill`. A restart therefore does
    not change it, unless other annotators were given questions in the meantime.

    Parameters
    ----------
    items : Items
        Items to label.
    settings : Settings
        Settings of the session.
    model : LabelModel
        The model.
    answered : Answered
        The answers.
    held : ndarray
        Rows of the held-out items, in the order of their questions.

    Attributes
    ----------
    questions : list of Question
        The questions.
    audit_places : ndarray of shape (n_items,)
        Position of each row in `audits`, -1 for held-out rows; set by `audits`.
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
        self._starts: dict[str, int] = {}  # first unanswered position of each order
        self.questions: list[Question] = []

    # -- changes -----------------------------------------------------------------------------------

    def restore(self, taken: set[str]) -> None:
        """Restore the questions that were pending after the annotator's last event.

        Questions about items that were given to others in the meantime are not asked again.
        """
        pending = self._answered.answers.last_pending(self._settings.annotator)
        self.questions = [
            Question(item, purpose or "strategy", self._model.version, self.score(item))
            for item, _, purpose in (entry.partition(":") for entry in pending)
            if item in self._items and (purpose == "overlap" or item not in taken)
        ]
        self.prune()
        self.fill(taken)

    def reset(self) -> None:
        """Forget which items are answered, because some answers were reverted."""
        self._starts.clear()

    def find(self, item: str) -> Question | None:
        """Return the question about an item, or None if it is not in the queue."""
        return next((asked for asked in self.questions if asked.item == item), None)

    def without(self, item: str) -> list[Question]:
        """Return the questions about other items."""
        return [asked for asked in self.questions if asked.item != item]

    def prune(self) -> None:
        """Drop answered questions; for shared items, only answers of this annotator count."""
        self.questions = [asked for asked in self.questions if self._is_open(asked)]

    def _is_open(self, asked: Question) -> bool:
        own = self._settings.annotator if asked.purpose == "overlap" else None
        return self._answered.answers.answer(asked.item, own) is None

    def fill(self, taken: set[str]) -> None:
        """Choose questions until the queue is full.

        Parameters
        ----------
        taken : set of str
            Items that other annotators are asked about; see `LabelStore.assign`.
        """
        others = {self._items.row(item) for item in taken if item in self._items}
        while len(self.questions) < DEPTH:
            chosen = self._choose(others)
            if chosen is None:
                break
            self.questions.append(chosen)

    def score(self, item: str) -> Any:
        """Return the decision value, or values, of an item; None without a model."""
        if not self._model.ready:
            return None
        return self._model.values(np.array([self._items.row(item)])).tolist()[0]

    # -- choosing ----------------------------------------------------------------------------------

    def _choose(self, others: set[int]) -> Question | None:
        """Choose the next question, as a function of the answers, the queue and other queues."""
        slot = self._answered.given(self._settings.annotator) + len(self.questions) + 1
        for purpose, chooser in self._choosers(slot, others):
            found = chooser()
            if found is not None:
                row, why = found if isinstance(found, tuple) else (found, purpose)
                item = self._items.ids[row]
                return Question(item, why, self._model.version, self.score(item))
        return None

    def _choosers(self, slot: int, others: set[int]) -> list[tuple[str, Chooser]]:
        """Return the choosers for the question of a slot, in order of preference."""
        settings = self._settings
        mine = {self._items.row(asked.item) for asked in self.questions}
        taken = mine | others
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
            audit = not self._model.ready or slot % RANDOM_EVERY == 0
            names += ["random", "rank"] if audit else ["rank"]
        else:
            names.append("strategy")
        return [(name, choosers[name]) for name in names]

    def _count(self, purpose: str) -> int:
        """Return the number of questions with a purpose, including those in the queue."""
        waiting = sum(asked.purpose == purpose for asked in self.questions)
        return self._answered.given(self._settings.annotator, purpose) + waiting

    def _unshared(self, taken: set[int]) -> tuple[int, str] | None:
        """Return the item that the model asks about, preferably one that is not shared.

        Shared items have separate questions. Otherwise, more than the fraction `overlap` of the
        questions would be asked of all annotators.
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
        """Return the items that can be learned, in the order of random questions."""
        if self._audits is None:
            order = drawn(self._items, self._settings.seed, AUDITS)
            self._audits = order[self._model.holds(order)]
            self.audit_places = np.full(len(self._items), -1, dtype=np.int64)
            self.audit_places[self._audits] = np.arange(len(self._audits))
        return self._audits

    def _next(self, name: str, rows: Ints, without: set[int], annotator: str | None) -> int | None:
        """Return the first of some items that one annotator, or any, has not answered yet."""
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
    """Return the queue as events store it: items and purposes."""
    return tuple(f"{asked.item}:{asked.purpose}" for asked in questions)
