"""Snapshots of a learner's model that can be restored.

Marks are denser near the last answer, so that undoing a few answers is cheap and the number of
marks grows logarithmically with the number of answers. Marks at a fixed sequence of label counts
are all kept, to compare a model with its state at half as many labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from marginwise.active.models import Model

STEP = 16  # events between marks
NEAR = 4 * STEP  # events within which all marks are kept
RUNGS = 4  # of the ladder, from a number of labels to its double
FIRST = 16  # labels at the foot of the ladder


def rung(labels: int) -> int:
    """Return the highest rung of the ladder that so many labels reach, 0 below its foot."""
    return 0 if labels < FIRST else 1 + math.floor(RUNGS * math.log2(labels / FIRST) + 1e-9)


def is_due(events: int, before: int, labels: int) -> bool:
    """Return whether to mark a course of so many events, the last of which added labels."""
    return events % STEP == 0 or rung(labels) > rung(before)


@dataclass
class Mark:
    """A learner after some of the events of its course.

    Parameters
    ----------
    events, labels : int
        How many events and labels came before.
    rung : int
        The rung of the ladder that was reached with the last event, 0 for none.
    model : Model
        A copy of the model.
    classes, met
        Labels known, and those taught.
    predicted : ndarray or None
        What the model predicts for a sample of the pool, once that was asked for.
    """

    events: int
    labels: int
    rung: int
    model: Model
    classes: NDArray[Any]
    met: frozenset[Any]
    predicted: NDArray[Any] | None = None


@dataclass(frozen=True)
class Marks:
    """The marks of a course, by the number of events before them; a value that is replaced."""

    kept: Mapping[int, Mark]

    def plus(self, mark: Mark) -> Marks:
        """Return these marks and one more, without those that lie too close for their age."""
        kept = {k: old for k, old in self.kept.items() if _stays(old, mark.events)}
        return Marks({**kept, mark.events: mark})

    def until(self, events: int) -> Marks:
        """Return the marks of at most so many events."""
        return Marks({k: mark for k, mark in self.kept.items() if k <= events})

    @property
    def complete(self) -> bool:
        """Whether they reach back to the beginning; those of a pickled learner do not."""
        return 0 in self.kept

    @property
    def last(self) -> Mark:
        """The mark of the most events."""
        return self.kept[max(self.kept)]

    def half(self, labels: int) -> tuple[Mark, Mark] | None:
        """Return two marks on the ladder: the last up to some labels, and one of half as many."""
        rungs = [mark for mark in self.kept.values() if mark.rung and mark.labels <= labels]
        if not rungs:
            return None
        now = max(rungs, key=lambda mark: mark.events)
        earlier = [mark for mark in rungs if 2 * mark.labels <= now.labels]
        return (max(earlier, key=lambda mark: mark.events), now) if earlier else None


def _stays(mark: Mark, events: int) -> bool:
    age = events - mark.events
    if mark.rung or mark.events == 0 or age <= NEAR:
        return True
    return mark.events % (STEP << math.ceil(math.log2(age / NEAR))) == 0
