"""Learning a stream in parts, with figures measured at the end of each part."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from reproduce.experiment import Values
from reproduce.wang2009.learners import accuracy

Learn = Callable[[int, int], int]  # learns the rows of a range; returns how many labels it asked


def follow(
    model: Any, split: Any, stops: list[int], learn: Learn, seconds_limit: float = np.inf
) -> Values:
    """Learn up to each stop; measure accuracy, size, labels, time and kernel evaluations."""
    names = ("size", "accuracy", "support_vectors", "labels", "seconds", "kernel_evaluations")
    found: dict[str, list[Any]] = {name: [] for name in names}
    seconds, asked = 0.0, 0
    for start, stop in zip([0, *stops], stops, strict=False):
        began = time.perf_counter()
        asked += learn(start, stop)
        seconds += time.perf_counter() - began
        values = (
            stop,
            accuracy(model, split),
            len(model.support_),
            asked,
            seconds,
            int(model.stats_["kernel_evaluations"]),
        )
        for name, value in zip(names, values, strict=True):
            found[name].append(value)
        if seconds > seconds_limit:
            break
    return dict(found)


def every_row(model: Any, split: Any) -> Learn:
    """Return a way to learn that asks for all labels."""

    def learn(start: int, stop: int) -> int:
        classes = np.unique(split.y) if start == 0 else None
        model.partial_fit(split.X[start:stop], split.y[start:stop], classes=classes)
        return stop - start

    return learn


def asking(model: Any, split: Any, wanted: Callable[[int], bool]) -> Learn:
    """Return a way to learn that asks for the labels of the rows that are wanted."""

    def learn(start: int, stop: int) -> int:
        asked = 0
        for row in range(start, stop):
            if row == 0 or wanted(row):
                one = slice(row, row + 1)
                classes = np.unique(split.y) if row == 0 else None
                model.partial_fit(split.X[one], split.y[one], classes=classes, ids=[row])
                asked += 1
        return asked

    return learn
