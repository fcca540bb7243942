"""Collection of decision values of unlearned rows for calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, Labels
from marginwise._core import Batch
from marginwise._engine.foresight import Foresight, LeftOut
from marginwise._estimator.base import KernelModel
from marginwise._training.reservoir import Reservoir

# Calibration of a solved model uses at most LEFT_OUT rows, or several classes at most MOST_LEFT_OUT
# rows with MOST_VALUES values in the problems that involve their classes. At least LEAST_SHARE of
# the rows belong to each class, divided by the number of classes, as long as there are so many.
LEFT_OUT, MOST_LEFT_OUT, MOST_VALUES, LEAST_SHARE = 2048, 3200, 32_768, 0.25
STREAM_ROWS = 1000  # rows of a stream
LONG = 8192  # rows of a stream from which on recorded values are used


def fold_numbers(labels: Labels, folds: int) -> Ints:
    """Assign rows to stratified folds at random."""
    rng = np.random.RandomState(0)
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    numbers = np.empty(len(labels), dtype=np.int64)
    numbers[order] = np.arange(len(labels)) % folds
    return numbers


def stratified(labels: Labels, most: int) -> tuple[Ints, Float]:
    """Return random rows, many of rare classes, and how many rows each of them stands for.

    There are about `most` rows, or all if there are fewer.
    """
    counts = np.bincount(labels)
    shares = np.maximum(most * counts / len(labels), LEAST_SHARE * most / len(counts))
    chosen = np.minimum(counts, np.ceil(shares)).astype(np.int64)
    order = np.random.RandomState(0).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    rows = np.concatenate([order[a : a + n] for a, n in zip(starts, chosen, strict=True)])
    rows = np.sort(rows).astype(np.int64)
    return rows, (counts / np.maximum(chosen, 1))[labels[rows]]


class Foreseeing(KernelModel):
    """Base of the classifiers that collects data for calibration."""

    _sample: Reservoir  # of a stream, with weights in place of costs
    _weighs: bool
    classes_: NDArray[Any]

    def _new_rows(self, X: Any, labels: Labels, costs: Float, names: Ints) -> Batch:
        """Return a batch of new rows, and collect calibration data from them."""
        batch = self._labelled(X, labels, costs, names)
        if self._engine.plan.foresees:
            weights = costs / self._penalties()[labels]
            batch.weigh(weights)
            if "_sample" in self.__dict__:
                self._sample = self._sample.offered(X, labels, weights, names)
        return batch

    def _begin_sample(self) -> None:
        """Start a sample of a stream for calibration, unless there is one to replay."""
        plain = not callable(self.kernel) and self.kernel != "precomputed"
        if plain and not self._replays:
            self._sample = Reservoir(STREAM_ROWS, 0)

    @property
    def _replays(self) -> bool:
        return "_reservoir" in self.__dict__

    def _honest_values(self) -> Foresight:
        """Return decision values of rows that the model had not learned.

        The values recorded in a stream are those of earlier models, and its later half. They are
        used if they have the class frequencies of a sample of the whole stream and the stream is
        long, or the model is not a solution. Otherwise, the rows of the sample are left out of the
        model.
        """
        recorded = self._engine.foresight
        sample: Any = self.__dict__.get("_reservoir", self.__dict__.get("_sample"))
        fitted = self._engine.left_out is not None
        if fitted or sample is None or len(sample.ids) == 0:
            return recorded
        X, labels, weights, ids = sample.rows()
        if self._replays:  # it stores penalties, perhaps of an earlier C
            weights = weights / self._penalties()[labels] if self._weighs else np.ones(len(ids))
        signed = self._engine.signs(labels) * weights[:, np.newaxis]
        if (sample.seen >= LONG or not self._leaves_out) and recorded.represents(signed):
            return recorded
        f = self._score(X)
        f[:, self._engine.native.judges() == 0] = np.nan
        if not self._leaves_out:
            return Foresight.held_out(f - self._own_parts(X, ids), signed)
        return LeftOut(ids, f, signed).foresight(self._engine.native)

    def _own_parts(self, X: Any, ids: Ints) -> Float:
        """Return the part of the decision values of rows that their own coefficients contribute."""
        stored, _, alpha = self._engine.native.coefficients()
        order = np.argsort(stored)
        places = np.searchsorted(stored[order], ids)
        places[places == len(stored)] = 0
        own = np.isin(ids, stored)
        parts = np.zeros((len(ids), alpha.shape[0]))
        parts[own] = alpha[:, order[places[own]]].T
        diagonal: Float = self._engine.native.diagonal(self._engine.batch(X))
        return parts * diagonal[:, np.newaxis]

    @property
    def _leaves_out(self) -> bool:
        """Whether calibration uses the decision value of each row without this row."""
        return self._algorithm.solves and not self._engine.plan.budget

    def _note_fitted(self, batch: Batch, labels: Labels, weights: Float, ids: Ints) -> None:
        """Note the rows of a fit for calibration, unless their values were recorded before."""
        if self._leaves_out:
            self._engine.left_out = self._rows_to_leave_out(batch, labels, weights, ids)

    def _rows_to_leave_out(
        self, batch: Batch, labels: Labels, weights: Float, ids: Ints
    ) -> LeftOut:
        """Choose rows of a fit, and evaluate those that the model does not store."""
        engine = self._engine
        one, pairs = engine.plan.problems == 1, engine.plan.pairs
        values = len(self.classes_) - 1 if pairs else engine.plan.problems
        rows, factors = stratified(
            labels, LEFT_OUT if one else min(MOST_LEFT_OUT, max(MOST_VALUES // values, 1))
        )
        signed = engine.signs(labels[rows]) * (weights[rows] * factors)[:, np.newaxis]
        f = np.full(signed.shape, np.nan)
        known = np.flatnonzero(engine.native.holds(ids[rows]) == 0) if one else np.arange(len(rows))
        f[known] = engine.native.decision_of(batch, rows[known])
        f[:, engine.native.judges() == 0] = np.nan
        return LeftOut(ids[rows], f, signed)

    # -- methods that subclasses implement -----------------------------------------------------

    def _score(self, X: Any) -> Float:
        """Return f(x) of validated rows, one column per binary problem."""
        raise NotImplementedError

    def _penalties(self) -> Float:
        """Return the penalty of each class."""
        raise NotImplementedError
