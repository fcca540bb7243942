"""The answers of a session, with counts that are updated incrementally."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterator

from marginwise.label.events import Answers, Event

UNASKED = ("browse", "import")  # purposes of answers to questions that were not in the queue
PAUSE = 300.0  # seconds without an answer that count as a pause
RECENT = 200  # most recent answers, from which the speed is computed
LEAST_TIMED = 3


class Answered:
    """Answers and their counts.

    A new answer updates the counts incrementally. A changed answer or an undo recomputes them.

    Parameters
    ----------
    items : container of str or None, default=None
        Ids of the items to count; None counts all. Other processes may store answers to items that
        are not among them.

    Attributes
    ----------
    answers : Answers
        The answers, flags and notes.
    counting : list of Event
        The effective label or skip of each answered item, in the order of `Answers.effective`.
    counts : Counter of str
        Number of items with each label.
    flagged : set of str
        Ids of the flagged items.
    """

    # INVARIANT: counting == answers.effective() restricted to items; all counts derive from it.

    def __init__(self, items: Container[str] | None = None) -> None:
        self._items = items
        self.answers = Answers()
        self.flagged: set[str] = set()
        self._recount()

    def apply(self, event: Event) -> bool:
        """Apply an event; return whether it changed or reverted an answer."""
        fresh = event.is_answer and self.answers.answer(event.item) is None
        self.answers.apply(event)
        if not self._counts(event):
            return False
        if self.answers.flagged(event.item):
            self.flagged.add(event.item)
        else:
            self.flagged.discard(event.item)
        if fresh:
            self._count(event)
        elif event.is_answer or event.kind == "undo":
            self._recount()
            return True
        return False

    @property
    def skipped(self) -> int:
        """Number of skipped items."""
        return len(self.counting) - sum(self.counts.values())

    def given(self, annotator: str, purpose: str | None = None) -> int:
        """Return how many questions of the queue an annotator has answered.

        Parameters
        ----------
        annotator : str
            Name of the annotator.
        purpose : str or None, default=None
            Purpose of the questions to count; None counts all questions.
        """
        return self._given[annotator, purpose]

    def per_hour(self, annotator: str) -> float | None:
        """Return the number of answers per hour of work of an annotator, excluding pauses.

        A pause is an interval of more than five minutes without an answer. Only the time that the
        item was on screen counts as work in a pause, if that time is known.
        """
        last = list(self._newest_of(annotator))
        if len(last) < LEAST_TIMED:
            return None
        worked = 0.0
        for later, earlier in itertools.pairwise(last):
            passed = max(later.time - earlier.time, 0.0)
            worked += passed if passed <= PAUSE else min(later.duration or 0.0, PAUSE)
        return 3600 * (len(last) - 1) / worked if worked > 0 else None

    def _newest_of(self, annotator: str) -> Iterator[Event]:
        own = (
            event
            for event in reversed(self.counting)
            if event.annotator == annotator and event.purpose != "import"
        )
        found = [event for event, _ in zip(own, range(RECENT), strict=False)]
        yield from sorted(found, key=lambda event: -event.time)

    def _count(self, event: Event) -> None:
        self.counting.append(event)
        if event.label is not None:
            self.counts[event.label] += 1
        self._note_given(event)

    def _note_given(self, event: Event) -> None:
        if event.purpose not in UNASKED:
            self._given.update([(event.annotator, None), (event.annotator, event.purpose)])

    def _recount(self) -> None:
        self.counting: list[Event] = []
        self.counts: Counter[str] = Counter()
        self._given: Counter[tuple[str, str | None]] = Counter()
        for event in filter(self._counts, self.answers.effective()):
            self.counting.append(event)
            self.counts.update([event.label] if event.label is not None else [])
        for name in self.answers.annotators():
            for event in filter(self._counts, self.answers.effective(name)):
                self._note_given(event)

    def _counts(self, event: Event) -> bool:
        return self._items is None or event.item in self._items
