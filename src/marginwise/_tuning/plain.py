"""Models for several values of C and gamma, fitted independently."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints
from marginwise._checks import take_rows
from marginwise._tuning.elsewhere import each, runs_elsewhere
from marginwise._tuning.folds import Fold
from marginwise._tuning.shared import Scored


@dataclass
class PlainModels:
    """Fits each model independently, for models that cannot share kernel values.

    Parameters
    ----------
    make : callable
        Returns an unfitted estimator for a C and a gamma.
    X, y, weights : array-like
        The rows, their labels and their weights.
    folds : list of Fold
        The folds.
    square : bool
        Whether X is a precomputed kernel matrix.
    """

    make: Callable[[float, float], Any]
    X: Any
    y: NDArray[Any]
    weights: Float
    folds: list[Fold]
    square: bool

    def scored(self, wanted: Mapping[float, Float]) -> Generator[tuple[float, Scored], None, None]:
        """Fit and score models for some values of C for each gamma, one gamma at a time."""
        tasks = [
            (gamma, number, fold, [self.make(float(C), gamma) for C in Cs])
            for gamma, Cs in wanted.items()
            for number, fold in enumerate(self.folds)
        ]
        given = (
            (number, fold, models, self.X, self.y, self.weights, self.square)
            for _, number, fold, models in tasks
        )
        # A random number generator that models share must be used sequentially.
        shared = isinstance(tasks[0][3][0].random_state, np.random.RandomState)
        far = runs_elsewhere() and not shared
        found = each(_fit_and_score, given) if far else (_fit_and_score(*one) for one in given)
        for (gamma, *_), scored in zip(tasks, found, strict=True):
            yield gamma, scored


def _fit_and_score(
    number: int,
    fold: Fold,
    models: list[Any],
    X: Any,
    y: NDArray[Any],
    weights: Float,
    square: bool,
) -> Scored:
    """Fit models on the training part of a fold, and score the held-out rows."""
    decision, seconds = [], np.zeros((2, len(models)))
    train, test = (_rows(X, rows, fold.train, square) for rows in (fold.train, fold.test))
    for k, model in enumerate(models):
        start = time.perf_counter()
        model.fit(train, y[fold.train], weights[fold.train])
        fitted = time.perf_counter()
        decision.append(model._binary_values(test))
        seconds[:, k] = fitted - start, time.perf_counter() - fitted
    return Scored(number, np.stack(decision), *seconds)


def _rows(X: Any, rows: Ints, columns: Ints, square: bool) -> Any:
    some = take_rows(X, rows)
    return some[:, columns] if square else some
