"""Models for values of C and gamma, fitted one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints
from marginwise._checks import take_rows
from marginwise._tuning.folds import Fold
from marginwise._tuning.shared import Scored


@dataclass
class PlainModels:
    """Fits each model by itself, where models cannot share their kernel values.

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
        """Fit and score models for some values of C for each gamma; gamma by gamma."""
        for gamma, Cs in wanted.items():
            for number, fold in enumerate(self.folds):
                yield gamma, self._fold(number, fold, gamma, Cs)

    def _fold(self, number: int, fold: Fold, gamma: float, Cs: Float) -> Scored:
        decision, seconds = [], np.zeros((2, len(Cs)))
        train, test = self._rows(fold.train, fold.train), self._rows(fold.test, fold.train)
        for k, C in enumerate(Cs):
            start = time.perf_counter()
            model = self.make(float(C), gamma)
            model.fit(train, self.y[fold.train], self.weights[fold.train])
            fitted = time.perf_counter()
            decision.append(model._binary_values(test))
            seconds[:, k] = fitted - start, time.perf_counter() - fitted
        return Scored(number, np.stack(decision), *seconds)

    def _rows(self, rows: Ints, columns: Ints) -> Any:
        some = take_rows(self.X, rows)
        return some[:, columns] if self.square else some
