"""Rows that arrive one after the other: which labels are worth asking for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from marginwise.active.scores import closeness

Bools = NDArray[np.bool_]


class MarginRule:
    """Ask for the labels of rows within the margin: |f| <= 1 [wang2009, OnlineASVM^R].

    For several classes it is half the lead of the best class that counts. While the model cannot
    score, every row is worth asking about.

    Parameters
    ----------
    estimator
        The model; it may continue to learn between calls.
    margin
        Half-width of the margin. Smaller asks less.

    Attributes
    ----------
    n_seen_
        Rows that have arrived.
    n_asked_
        How many of them were worth asking about.
    """

    def __init__(self, estimator: Any, margin: float = 1.0) -> None:
        if not margin > 0:
            raise ValueError(f"margin must be above 0, got {margin!r}.")
        self.estimator = estimator
        self.margin = margin
        self.n_seen_ = 0
        self.n_asked_ = 0

    def wants(self, X: Any) -> Bools:
        """Tell for each row, in the order of arrival, whether to ask for its label; count both."""
        try:
            distance = closeness(np.asarray(self.estimator.decision_function(X)))
        except NotFittedError:
            distance = np.zeros(X.shape[0] if hasattr(X, "shape") else len(X))
        wanted = self._decide(distance)
        self.n_seen_ += len(wanted)
        self.n_asked_ += int(wanted.sum())
        return wanted

    def _decide(self, distance: NDArray[np.float64]) -> Bools:
        return distance <= self.margin


class BudgetRule(MarginRule):
    """Ask for a share of the labels at most, those nearest to the boundary first.

    The width within which rows are worth asking about adapts: it shrinks after each question and
    grows after each row that passes, so that the budget is spent on the rows that are the nearest
    of their time.

    Parameters
    ----------
    estimator
        The model; it may continue to learn between calls.
    budget
        Share of the rows that may be asked about, such as 0.1. It is never exceeded by more than
        one row.
    margin
        Width to begin with.
    step
        How fast the width adapts.
    """

    def __init__(
        self, estimator: Any, budget: float = 0.1, *, margin: float = 1.0, step: float = 0.01
    ) -> None:
        super().__init__(estimator, margin)
        for name, value in (("budget", budget), ("step", step)):
            if not 0 < value < 1:
                raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value!r}.")
        self.budget = budget
        self.step = step
        self.width_ = margin

    def _decide(self, distance: NDArray[np.float64]) -> Bools:
        wanted = np.zeros(len(distance), dtype=bool)
        spent = self.n_asked_
        for k, d in enumerate(distance):
            earned = self.budget * (self.n_seen_ + k + 1)
            if spent < earned and d <= self.width_:
                wanted[k] = True
                spent += 1
                self.width_ *= 1 - self.step
            elif d > self.width_:
                # At this ratio of steps the width rests where the budget is just spent.
                self.width_ *= 1 + self.step * self.budget / (1 - self.budget)
        return wanted
