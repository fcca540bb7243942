"""Snapshots of a learner's model that can be restored.

Marks are denser near the last answer, so that undoing a few answers is cheap and the number of
marks grows logarithmically with the number of answers. All marks at a fixed sequence of label
counts, the ladder, are kept to compare a model with its state at half as many labels.
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
RUNGS = 4  # rungs of the ladder per doubling of the number of labels
FIRST = 16  # number of labels at the lowest rung


def rung(labels: int) -> int:
    """Return the highest rung of the ladder up to a number of labels; 0 below the lowest rung."""
    return 0 if labels < FIRST else 1 + math.floor(RUNGS * math.log2(labels / FIRST) + 1e-9)


def is_due(events: int, before: int, labels: int) -> bool:
    """Return whether to mark a course; `before` is its number of labels before the last event."""
    return events % STEP == 0 or rung(labels) > rung(before)


@dataclass
class Mark:
    """State of a learner after a number of events.

    Parameters
    ----------
    events, labels : int
        Number of events and labels before the mark.
    rung : int
        Rung of the ladder that the last event reached, or 0.
    model : Model
        Copy of the model.
    classes, met
        Known labels, and labels taught.
    predicted : ndarray or None
        Predictions for a sample of the pool, computed on demand.
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
    """The marks of a course by number of events. Instances are immutable."""

    kept: Mapping[int, Mark]

    def plus(self, mark: Mark) -> Marks:
        """Return the marks with one more, without old marks that are too dense."""
        kept = {k: old for k, old in self.kept.items() if _stays(old, mark.events)}
        return Marks({**kept, mark.events: mark})

    def until(self, events: int) -> Marks:
        """Return the marks up to a number of events."""
        return Marks({k: mark for k, mark in self.kept.items() if k <= events})

    @property
    def complete(self) -> bool:
        """Whether the initial state is marked, which is not the case after unpickling."""
        return 0 in self.kept

    @property
    def last(self) -> Mark:
        """Mark with the largest number of events."""
        return self.kept[max(self.kept)]

    def half(self, labels: int) -> tuple[Mark, Mark] | None:
        """Return two marks on the ladder: at half as many labels, and the last up to `labels`."""
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
