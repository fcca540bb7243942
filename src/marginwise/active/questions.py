"""Which rows to ask about: a function of the log, the pool and the seed.

Asking twice without an answer in between gives the same question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginwise._arrays import Float, Ints
from marginwise._core import MOST_SAMPLED
from marginwise._estimator.base import alone
from marginwise._training.loop import READ
from marginwise.active.answers import check_inside, places_of, positive_integer
from marginwise.active.batch import different_rows
from marginwise.active.log import AnswerLog, Event
from marginwise.active.scores import (
    autoactive_size,
    by_function,
    closeness,
    disagreement,
    least_positive,
)

STRATEGIES = ("random", "gradient", "active", "autoactive", "near_boundary", "largest_positive")
WHOLE_POOL = ("near_boundary", "largest_positive")


class Draw(NamedTuple):
    """Rows that may be asked about next, in the order in which they were drawn, and their scores.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Row numbers.
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes), or None
        Decision values; None without a model.
    """

    rows: Ints
    scores: Float | None


class Questions(AnswerLog):
    """The asking half of an active learner: samples of the pool, their scores, the best of them."""

    strategy: str | Callable[[Float], Any]
    pool_size: int | None
    _seed: int
    _noted: NDArray[Any] | None  # labels of y_pool
    _drawn: tuple[int, Draw] | None  # how many rows were wanted, and what was drawn

    @alone
    def ask(self, n: int | None = None) -> int | Ints:
        """Return the row to label next, or `n` rows of which no two are near-duplicates.

        The same rows are returned until an answer is taught, skipped or undone.

        Parameters
        ----------
        n : int, default=None
            Number of rows. None returns one row, as an integer.

        Returns
        -------
        rows : int or ndarray of shape (n_rows,)
            Row numbers. The array is empty if the pool is exhausted, and shorter than `n` if the
            pool has too few different rows.
        """
        wanted = 1 if n is None else positive_integer(n, "n")
        draw = self._draw(wanted)
        order = self._order(draw, wanted)
        if wanted > 1 and len(order) > 1:
            order = self._different(draw, order, wanted)
        places = order[:wanted]
        for place in places.tolist():
            score = None if draw.scores is None else draw.scores[place].tolist()
            self._scores_asked[int(draw.rows[place])] = score
        rows = draw.rows[places]
        return int(rows[0]) if n is None and len(rows) else rows

    @alone
    def decision_values(self, rows: ArrayLike | None = None) -> Float:
        """Return the decision values of rows of the pool.

        Parameters
        ----------
        rows : array-like of int of shape (n_rows,), default=None
            Row numbers. None returns the values of the whole pool.

        Returns
        -------
        values : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Decision values, in one column for two classes.
        """
        if not self.has_model_:
            raise ValueError(
                "there is no model yet, so the rows of the pool have no decision values: teach "
                "labels of two classes first."
            )
        numbers = None if rows is None else np.asarray(rows, dtype=np.int64)
        if numbers is not None:
            check_inside(numbers, self._pool.n)
        most = self._pool.n if numbers is None else len(numbers)
        if self._pool.in_memory and 2 * most > self._pool.n:
            scores = self._model.all_scores()
            return scores if numbers is None else scores[numbers]
        if numbers is None:
            return self._model.all_scores()
        parts = [numbers[k : k + READ] for k in range(0, max(len(numbers), 1), READ)]
        return np.concatenate([self._model.scores(part) for part in parts])

    @alone
    def candidate_values(self) -> Float:
        """Return the decision values of the rows among which the next question is chosen.

        Returns
        -------
        values : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Decision values; empty if there is no model yet or the strategy does not use them.
        """
        draw = self._draw(1)
        return np.empty(0) if draw.scores is None else draw.scores

    @alone
    def sample_unseen(self, size: int) -> Ints:
        """Draw unseen rows at random; the sample is the same until the log changes.

        Parameters
        ----------
        size : int
            Number of rows.

        Returns
        -------
        rows : ndarray of shape (n_rows,)
            Row numbers; all unseen rows if there are no more than `size`.
        """
        return self._pool.sample(size, self._rng(1))

    # -- parts -----------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._drawn = None
        super()._begin()

    def _carry_out(self, event: Event) -> None:
        super()._carry_out(event)
        self._drawn = None

    def _different(self, draw: Draw, order: Ints, wanted: int) -> Ints:
        """Return the first places in order of which no two rows are near-duplicates."""
        found = order[:0]
        for most in (max(16 * wanted, 256), len(order)):  # mostly the first will do
            best = order[:most]
            found = best[different_rows(self._pool.take(draw.rows[best]), wanted)]
            if len(found) == wanted:
                break
        return found

    def _order(self, draw: Draw, wanted: int) -> Ints:
        """Return the places of drawn rows, the best to ask about first; one if one is wanted."""
        if draw.scores is None or self.strategy == "random":
            return np.arange(len(draw.rows), dtype=np.int64)
        if callable(self.strategy):
            values = by_function(self.strategy)(draw.scores)
        elif self.strategy == "largest_positive":
            values = least_positive(draw.scores)
        elif self.strategy == "gradient" and self._noted is not None:
            noted = self._noted[draw.rows]
            values = disagreement(draw.scores, places_of(noted, self.estimator_.classes_))
        else:
            values = closeness(draw.scores)
            if self._explores and len(values) and values.min() >= 1 + max(self._model.delta, 0) / 2:
                return np.arange(len(values), dtype=np.int64)
        if wanted == 1:
            return np.array([values.argmin()] if len(values) else [], dtype=np.int64)
        return np.argsort(values, kind="stable").astype(np.int64)

    @property
    def _explores(self) -> bool:
        """Whether any row is as good as another once no sampled one lies within the margin.

        The nearest of those outside would teach nothing new, while a part of a class that no
        label has shown yet is found by chance alone.
        """
        sampled = self.strategy in ("active", "autoactive", "gradient")
        return sampled and self.pool_size is not None

    def _draw(self, n: int) -> Draw:
        """Draw the rows among which the next n questions are chosen; kept until the log changes."""
        if self._drawn is None or self._drawn[0] != n:
            self._drawn = n, self._fresh_draw(n)
        return self._drawn[1]

    def _fresh_draw(self, n: int) -> Draw:
        pool, rng = self._pool, self._rng(0)
        if pool.n_unseen == 0:
            return Draw(np.empty(0, dtype=np.int64), None)
        if not self.has_model_ or self.strategy == "random":
            return Draw(pool.sample(n if n == 1 else 16 * n, rng), None)
        if self.strategy in WHOLE_POOL or self.pool_size is None:
            rows = pool.unseen()
            return Draw(rows, self.decision_values(rows))
        each = MOST_SAMPLED if self.strategy == "autoactive" else self.pool_size
        rows = pool.sample(n * each, rng)
        scores = self.decision_values(rows)
        if self.strategy == "autoactive" and n == 1:
            size = autoactive_size(scores, self._model.delta)
            rows, scores = rows[:size], scores[:size]
        return Draw(rows, scores)

    def _rng(self, purpose: int) -> np.random.Generator:
        key = np.array([2 * self._seed + purpose, len(self._log)], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key))
