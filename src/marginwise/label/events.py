"""Labelling events and the resulting answers, flags and notes."""

from __future__ import annotations

import bisect
import copy
import math
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

KINDS = ("label", "skip", "undo", "flag", "note")
PURPOSES = ("strategy", "random", "holdout", "overlap", "rank", "browse", "import")
ON, OFF = "on", "off"  # texts of a flag
LAST = 253402300799.0  # the end of the year 9999, in seconds since 1970


def new_key() -> str:
    """Return a key that no other event has."""
    return uuid.uuid4().hex


@dataclass(frozen=True, kw_only=True)
class Event:
    """One action of an annotator.

    Parameters
    ----------
    kind : {"label", "skip", "undo", "flag", "note"}
        Kind of the action.
    item : str
        Id of the item. For an undo, the item of the undone event; it may be empty if the undo has
        not been stored yet.
    annotator : str
        Name of the annotator.
    label : str or None
        Label, for events of kind "label".
    text : str or None
        Text of a note, where an empty text removes the previous note, or "on" or "off" for a flag.
    undone : int or None
        Number of the event that an undo reverts. None means the annotator's most recent event.
    key : str
        Unique key of the action, created by the client. Events with a stored key are not stored
        again.
    time : float
        Seconds since 1970.
    duration : float or None
        Number of seconds that the item was shown.
    model_version : int or None
        Number of answers that the model had learned when the item was selected.
    score : object
        Decision values of the item when it was selected, in a JSON-serializable form.
    purpose : str or None
        Purpose of the question, one of `PURPOSES`.
    pending : sequence of str or None
        Items that were assigned to the annotator and still unanswered after this event, in order.
    seq : int
        Number of the event, assigned by the store. 0 before the event is stored.
    """

    kind: str
    item: str
    annotator: str
    label: str | None = None
    text: str | None = None
    undone: int | None = None
    key: str = field(default_factory=new_key)
    time: float = field(default_factory=time.time)
    duration: float | None = None
    model_version: int | None = None
    score: Any = None
    purpose: str | None = None
    pending: tuple[str, ...] | None = None
    seq: int = 0

    def __post_init__(self) -> None:
        if self.pending is not None:
            object.__setattr__(self, "pending", tuple(self.pending))
        for name, problem in _problems(self):
            raise ValueError(f"event of kind {self.kind!r}: {name} must be {problem}.")

    def numbered(self, seq: int) -> Event:
        """Return the event with its number."""
        made = copy.copy(self)
        object.__setattr__(made, "seq", seq)
        return made

    @property
    def is_answer(self) -> bool:
        """Whether the event is a label or a skip."""
        return self.kind in ("label", "skip")


class Answer(NamedTuple):
    """Answer to an item: a label or a skip, and its event."""

    kind: str
    label: str | None
    event: Event


class Answers:
    """State that results from a sequence of events.

    An undo reverts one event of the same annotator that was not imported. The answer of an
    annotator to an item is the last label or skip that was not reverted. The overall answer is the
    most recent one of all annotators. The same rules apply to flags and notes.

    Parameters
    ----------
    events : iterable of Event
        Events to start with, in the order of their numbers.

    Attributes
    ----------
    seq : int
        Number of the last event; the state after `LabelStore.events(after=seq)` is the newest one.
    """

    # INVARIANT: every list of numbers below is increasing and contains no reverted event.

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.seq = 0
        self._events: dict[int, Event] = {}
        self._by_annotator: dict[str, list[int]] = {}
        self._by_item: dict[tuple[str, str], list[int]] = {}  # by (what, item); see _what
        self._last: dict[str, Event] = {}
        self._pending: dict[str, tuple[str, ...]] = {}
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Apply the next event.

        Parameters
        ----------
        event : Event
            Event returned by the store. Its number must be greater than those of all previous
            events.
        """
        if event.seq <= self.seq:
            raise ValueError(
                f"event {event.seq} was applied after event {self.seq}; apply events in the order "
                "of their numbers, as LabelStore.events(after=answers.seq) returns them."
            )
        self.seq = event.seq
        self._last[event.annotator] = event
        if event.pending is not None:
            self._pending[event.annotator] = event.pending
        if event.kind == "undo":
            self._take_back(event)
            return
        self._events[event.seq] = event
        for numbers in self._lists_of(event):
            numbers.append(event.seq)

    def _take_back(self, undo: Event) -> None:
        event = self._events.get(undo.undone or 0)
        if event is None or event.annotator != undo.annotator:
            return  # already reverted, or not an event of this annotator
        del self._events[event.seq]
        for numbers in self._lists_of(event):
            del numbers[bisect.bisect_left(numbers, event.seq)]

    def _lists_of(self, event: Event) -> list[list[int]]:
        found = [self._by_item.setdefault((_what(event), event.item), [])]
        if event.purpose != "import":  # imported events cannot be undone on the page
            found.append(self._by_annotator.setdefault(event.annotator, []))
        return found

    # -- resulting state ---------------------------------------------------------------------------

    def answer(self, item: str, annotator: str | None = None) -> Answer | None:
        """Return the current answer of an item, or None if it has none.

        Parameters
        ----------
        item : str
            Id of the item.
        annotator : str or None
            Name of the annotator. None means the most recent answer of all annotators.
        """
        event = self.newest("answer", item, annotator)
        return None if event is None else Answer(event.kind, event.label, event)

    def flagged(self, item: str, annotator: str | None = None) -> bool:
        """Return whether an item is flagged, by the most recent flag of one or all annotators."""
        event = self.newest("flag", item, annotator)
        return event is not None and event.text == ON

    def note(self, item: str, annotator: str | None = None) -> str:
        """Return the most recent note on an item, by one or all annotators; empty if none."""
        event = self.newest("note", item, annotator)
        return "" if event is None else event.text or ""

    def purposes(self, item: str) -> set[str | None]:
        """Return the purposes of all answers to an item that were not reverted."""
        numbers = self._by_item.get(("answer", item), [])
        return {self._events[seq].purpose for seq in numbers}

    def has_earlier(self, answer: Event) -> bool:
        """Return whether the annotator had already answered the same item before."""
        return any(
            seq < answer.seq and self._is_of(seq, answer.annotator)
            for seq in self._by_item.get(("answer", answer.item), [])
        )

    def undoable(self, annotator: str) -> Event | None:
        """Return the event that an undo of this annotator would revert, or None."""
        numbers = self._by_annotator.get(annotator)
        return self._events[numbers[-1]] if numbers else None

    def last_pending(self, annotator: str) -> tuple[str, ...]:
        """Return the pending questions after the last event of an annotator on the page."""
        return self._pending.get(annotator, ())

    def last(self, annotator: str) -> Event | None:
        """Return the last event of an annotator, including undos, or None."""
        return self._last.get(annotator)

    def effective(self, annotator: str | None = None) -> list[Event]:
        """Return the effective label or skip of each answered item.

        Answers are ordered by the first answer to each item that was not reverted, so that a
        changed answer keeps its position.

        Parameters
        ----------
        annotator : str or None
            Name of the annotator. None means the most recent answers of all annotators.
        """
        placed = []
        for (what, _), numbers in self._by_item.items():
            if what == "answer":
                own = [seq for seq in numbers if self._is_of(seq, annotator)]
                if own:
                    placed.append((own[0], own[-1]))
        return [self._events[last] for _, last in sorted(placed)]

    def answered(self, annotator: str | None = None) -> list[str]:
        """Return the ids of the items with an answer, in the order of `effective`."""
        return [event.item for event in self.effective(annotator)]

    def touched(self) -> list[str]:
        """Return the ids of all items with an answer, a flag or a note, answered ones first."""
        others = (item for (_, item), numbers in self._by_item.items() if numbers)
        return list(dict.fromkeys([*self.answered(), *others]))

    def annotators(self) -> list[str]:
        """Return the names of all annotators, in the order of their first event."""
        return list(self._last)

    def newest(self, what: str, item: str, annotator: str | None = None) -> Event | None:
        """Return the newest answer, flag or note on an item, or None.

        Parameters
        ----------
        what : {"answer", "flag", "note"}
            What to look for.
        item : str
            Id of the item.
        annotator : str or None
            Whose; None for all annotators.
        """
        for seq in reversed(self._by_item.get((what, item), [])):
            if self._is_of(seq, annotator):
                return self._events[seq]
        return None

    def _is_of(self, seq: int, annotator: str | None) -> bool:
        return annotator is None or self._events[seq].annotator == annotator


def _what(event: Event) -> str:
    """Return the aspect of an item that an event sets; a newer event of that aspect replaces it."""
    return "answer" if event.is_answer else event.kind


# -- checks ----------------------------------------------------------------------------------------


def _problems(event: Event) -> Iterable[tuple[str, str]]:
    """Yield the fields with invalid values, and the expected values."""
    for name, (test, expected) in _RULES.items():
        if not test(event):
            yield name, f"{expected}; got {getattr(event, name)!r}"


def _is_text(value: object) -> bool:
    """Return whether a value is text that can be encoded as UTF-8."""
    if not isinstance(value, str):
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:  # an unpaired surrogate
        return False


def _is_number(value: object, least: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and least <= value < math.inf  # type: ignore[operator]


def _has_label(event: Event) -> bool:
    if event.kind == "label":
        return _is_text(event.label) and event.label != ""
    return event.label is None


def _has_text(event: Event) -> bool:
    if event.kind == "flag":
        return event.text in (ON, OFF)
    return _is_text(event.text) if event.kind == "note" else event.text is None


def _has_number(event: Event) -> bool:
    value = event.undone
    return value is None or (event.kind == "undo" and type(value) is int and value > 0)


def _has_pending(event: Event) -> bool:
    return event.pending is None or all(_is_text(item) for item in event.pending)


_RULES: dict[str, tuple[Callable[[Event], bool], str]] = {
    "kind": (lambda e: e.kind in KINDS, f"one of {', '.join(KINDS)}"),
    "item": (
        lambda e: _is_text(e.item) and (e.item != "" or e.kind == "undo"),
        "the id of an item",
    ),
    "annotator": (lambda e: _is_text(e.annotator) and e.annotator != "", "a name"),
    "label": (_has_label, "a text that is not empty for a label, and None for other kinds"),
    "text": (_has_text, "on or off for a flag, a text for a note, and None for other kinds"),
    "undone": (_has_number, "the number of an event for an undo, and None for other kinds"),
    "key": (lambda e: _is_text(e.key) and e.key != "", "a text that is not empty"),
    "time": (lambda e: _is_number(e.time, 0) and e.time <= LAST, "seconds since 1970"),
    "duration": (lambda e: e.duration is None or _is_number(e.duration, 0), "seconds or None"),
    "model_version": (
        lambda e: (
            e.model_version is None or (type(e.model_version) is int and e.model_version >= 0)
        ),
        "a count of answers or None",
    ),
    "purpose": (
        lambda e: e.purpose is None or e.purpose in PURPOSES,
        f"one of {', '.join(PURPOSES)} or None",
    ),
    "pending": (_has_pending, "ids of items or None"),
}
