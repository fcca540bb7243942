"""Collection of decision values of unlearned rows for calibration."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import take_rows
from marginwise._core import Batch
from marginwise._engine.foresight import Foresight
from marginwise._estimator.base import KernelModel
from marginwise._training.loop import ArrayFeed

FEW_ROWS = 1000  # up to this number, calibration uses out-of-fold values of all rows
FOLDS = 5


def fold_numbers(labels: Labels, folds: int) -> Ints:
    """Assign rows to stratified folds at random."""
    rng = np.random.RandomState(0)
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    numbers = np.empty(len(labels), dtype=np.int64)
    numbers[order] = np.arange(len(labels)) % folds
    return numbers


class Foreseeing(KernelModel):
    """Base of the classifiers that collects data for calibration."""

    random_state: int | np.random.RandomState | None
    pool_size: Any

    def _new_rows(self, X: Any, labels: Labels, costs: Float, names: Ints) -> Batch:
        """Return a batch of new rows, and collect calibration data from them."""
        batch = self._labelled(X, labels, costs, names)
        if self._engine.plan.foresees:
            batch.weigh(costs / self._penalties()[labels])
        return batch

    def _calibrates_in_folds(self, n: int) -> bool:
        """Return whether `fit` calibrates by cross-validation.

        This is the case for small data sets, and with active selection, whose rows are a biased
        sample.
        """
        chosen = getattr(self, "stop", None) is not None or (
            getattr(self, "selection", "random") != "random" and self.pool_size is None
        )
        return chosen or n <= FEW_ROWS

    def _foresee_in_folds(self, X: Any, labels: Labels, weights: Float, ids: Ints) -> None:
        """Collect out-of-fold decision values of all rows."""
        engine = self._engine
        fold = fold_numbers(labels, FOLDS)
        values = np.full((len(labels), engine.plan.problems), np.nan)
        costs = weights * self._penalties()[labels]
        twin = self._copy()
        twin.verbose, twin.random_state = 0, copy.deepcopy(self.random_state)
        for k in range(FOLDS):
            rest, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if len(held) == 0 or len(np.unique(labels[rest])) < 2:
                continue
            twin._engine = engine.blank()
            rows = take_rows(X, rest)
            batch = twin._labelled(rows, labels[rest], costs[rest], ids[rest])
            twin._learn_all(ArrayFeed(batch, ids[rest]), rows, labels[rest])
            values[held] = twin._score(take_rows(X, held))
            values[np.ix_(held, np.flatnonzero(twin._engine.native.judges() == 0))] = np.nan
        signed = engine.signs(labels) * weights[:, np.newaxis]
        Foresight.held_out(values, signed).give(engine.native)

    # -- methods that subclasses implement -----------------------------------------------------

    def _learn_all(self, feed: ArrayFeed, X: Any, labels: Labels) -> None:
        """Learn the rows passed to `fit`."""
        raise NotImplementedError

    def _score(self, X: Any) -> Float:
        """Return f(x) of validated rows, one column per binary problem."""
        raise NotImplementedError

    def _penalties(self) -> Float:
        """Return the penalty of each class."""
        raise NotImplementedError
