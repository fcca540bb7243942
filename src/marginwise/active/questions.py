"""Which rows to ask about: a function of the log, the pool and the seed.

Asking twice without an answer in between gives the same question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginwise._arrays import Float, Ints
from marginwise._core import MOST_SAMPLED
from marginwise._estimator.base import alone
from marginwise._training.loop import READ
from marginwise.active.answers import (
    AUDIT,
    STRATEGY,
    any_rows,
    check_inside,
    places_of,
    positive_integer,
)
from marginwise.active.batch import different_rows
from marginwise.active.log import AnswerLog, Event
from marginwise.active.pool import UNSEEN
from marginwise.active.scores import (
    autoactive_size,
    by_function,
    closeness,
    disagreement,
    least_positive,
)
from marginwise.active.verdict import Changed, StoppingRule

STRATEGIES = ("random", "gradient", "active", "autoactive", "near_boundary", "largest_positive")
COMPARED = 2000  # rows whose predictions are compared
NONE: Ints = np.empty(0, dtype=np.int64)
WHOLE_POOL = ("near_boundary", "largest_positive")


class PoolExhaustedError(LookupError):
    """There is no row left to ask about."""


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
    _drawn: tuple[Any, Draw] | None  # what was wanted, and what was drawn
    _audited: set[int]  # rows that were last asked about because they were drawn at random
    stop: StoppingRule | None

    @overload
    def ask(self, n: None = None, *, exclude: ArrayLike | None = None) -> int: ...

    @overload
    def ask(self, n: int, *, exclude: ArrayLike | None = None) -> Ints: ...

    @alone
    def ask(self, n: int | None = None, *, exclude: ArrayLike | None = None) -> int | Ints:
        """Return the row to label next, or `n` rows of which no two are near-duplicates.

        The same rows are returned until an answer is taught, skipped, corrected or undone. Where
        the stopping rule is an audit, some of them are drawn at random.

        Parameters
        ----------
        n : int, default=None
            Number of rows. None returns one row, as an integer.
        exclude : array-like of int, default=None
            Unseen rows not to return, such as those that another person is labelling.

        Returns
        -------
        rows : int or ndarray of shape (n_rows,)
            Row numbers. The array is empty if the pool is exhausted, and shorter than `n` if the
            pool has too few different rows.

        Raises
        ------
        PoolExhaustedError
            If one row is wanted and there is none left.
        """
        wanted = 1 if n is None else positive_integer(n, "n")
        barred = self._barred(exclude)
        found = self._choose(wanted, barred)
        for row, score, why in found:
            self._scores_asked[row] = score
            (self._audited.add if why == AUDIT else self._audited.discard)(row)
        if n is not None:
            return np.array([row for row, _, _ in found], dtype=np.int64)
        if not found:
            raise PoolExhaustedError(
                f"all {self._pool.n:,} rows of the pool were taught or skipped"
                f"{', or are excluded' if len(barred) else ''}; extend(X_new) adds rows to it."
            )
        return found[0][0]

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
        numbers = None if rows is None else any_rows(rows, self._pool.n)
        most = self._pool.n if numbers is None else len(numbers)
        if self._pool.in_memory and 2 * most > self._pool.n:
            scores = self._model.all_scores()
            return scores if numbers is None else scores[numbers]
        if numbers is None:
            return self._model.all_scores()
        parts = [numbers[k : k + READ] for k in range(0, max(len(numbers), 1), READ)]
        return np.concatenate([self._model.scores(part) for part in parts])

    @alone
    def pool_rows(self, rows: int | ArrayLike) -> Any:
        """Return rows of the pool in the form in which they were given.

        Parameters
        ----------
        rows : int or array-like of int
            Row numbers.

        Returns
        -------
        X : ndarray, sparse matrix or data frame
            The rows, one for each number; of a pandas frame with their index, so that
            ``learner.pool_rows(learner.ask(5)).index`` names them.
        """
        return self._pool.take_given(any_rows(rows, self._pool.n))

    @alone
    def candidate_values(self) -> Float:
        """Return the decision values of the rows among which the next question is chosen.

        Returns
        -------
        values : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Decision values; empty if there is no model yet or the strategy does not use them.
        """
        draw = self._draw(1, NONE)
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

    @alone
    def changed_predictions(self, labels: int | None = None) -> Changed | None:
        """Compare the model with what it was at half as many labels.

        Both are models at moments of a fixed ladder of numbers of labels, four from a number to its
        double, and predict the same rows: a sample of those that the pool had first.

        Parameters
        ----------
        labels : int, default=None
            The number of labels up to which to look. None looks at all.

        Returns
        -------
        changed : Changed or None
            How many predictions changed; None if there were too few labels.
        """
        if not self._marks.complete:  # of a learner that was pickled
            with self._all_or_nothing():
                self._rebuild(self._log)
        pair = self._marks.half(len(self.history_) if labels is None else labels)
        if pair is None or not all(mark.model.ready for mark in pair):
            return None
        rng = np.random.Generator(np.random.Philox(key=[self._seed, 3 << 40]))
        rows = np.sort(rng.permutation(self._pool.first)[:COMPARED])
        for mark in pair:
            if mark.predicted is None:
                model = mark.model.copy()
                model.finish()  # between answers, models of overlapping classes waver
                mark.predicted = model.predict(rows)
        earlier, now = pair
        assert earlier.predicted is not None
        assert now.predicted is not None
        share = float(np.mean(earlier.predicted != now.predicted))
        rare = 1 - float(np.unique(now.predicted, return_counts=True)[1].max()) / len(rows)
        return Changed(earlier.labels, now.labels, share, rare)

    # -- parts -----------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._drawn = None
        super()._begin()

    def _carry_out(self, events: list[Event]) -> None:
        super()._carry_out(events)
        self._drawn = None

    def _barred(self, exclude: ArrayLike | None) -> Ints:
        """Return the unseen rows among those to exclude, ascending."""
        if exclude is None or np.size(exclude) == 0:
            return NONE
        rows = np.unique(np.asarray(exclude))
        if rows.dtype.kind not in "iu":
            raise TypeError(f"exclude must be row numbers, got {exclude!r:.60}.")
        check_inside(rows, self._pool.n)
        unseen: Ints = rows[self._pool.status[rows] == UNSEEN].astype(np.int64)
        return unseen

    def _choose(self, wanted: int, barred: Ints) -> list[tuple[int, Any, str]]:
        """Return the next questions: rows, their scores, and why they are asked about."""
        audits = min(wanted, self._audits(barred))
        drawn: Ints = NONE
        if audits:
            drawn = self._pool.sample(audits + len(barred), self._rng(2))
            drawn = drawn[~np.isin(drawn, barred)][:audits]
        chosen: list[tuple[int, Any, str]] = []
        if len(drawn) < wanted:
            taken = np.union1d(barred, drawn)
            draw = self._draw(wanted - len(drawn), taken)
            for place in self._best(draw, wanted - len(drawn)).tolist():
                score = None if draw.scores is None else draw.scores[place].tolist()
                chosen.append((int(draw.rows[place]), score, STRATEGY))
        scores = self.decision_values(drawn).tolist() if len(drawn) else []
        return [(*pair, AUDIT) for pair in zip(drawn.tolist(), scores, strict=True)] + chosen

    def _audits(self, barred: Ints) -> int:
        """Return how many of the next questions are to be drawn at random."""
        if self.stop is None or not self.has_model_:
            return 0
        pending = sum(row in self._audited for row in barred.tolist())
        return self.stop.wants_audit(self, pending)

    def _best(self, draw: Draw, wanted: int) -> Ints:
        """Return the places of drawn rows to ask about."""
        order = self._order(draw, wanted)
        if wanted > 1 and len(order) > 1 and self._model.has_features:
            order = self._different(draw, order, wanted)
        return order[:wanted]

    def _different(self, draw: Draw, order: Ints, wanted: int) -> Ints:
        """Return the first places in order of which no two rows are near-duplicates."""
        found = order[:0]
        for most in (max(16 * wanted, 256), len(order)):  # mostly the first will do
            best = order[:most]
            found = best[different_rows(self._model.features(draw.rows[best]), wanted)]
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

    def _draw(self, n: int, barred: Ints) -> Draw:
        """Draw the rows among which the next n questions are chosen; kept until the log changes."""
        key = n, barred.tobytes()
        if self._drawn is None or self._drawn[0] != key:
            self._drawn = key, self._fresh_draw(n, barred)
        return self._drawn[1]

    def _fresh_draw(self, n: int, barred: Ints) -> Draw:
        if self._pool.n_unseen == len(barred):
            return Draw(NONE, None)
        if not self.has_model_ or self.strategy == "random":
            return Draw(self._sample(n if n == 1 else 16 * n, barred), None)
        if self.strategy in WHOLE_POOL or self.pool_size is None:
            rows = self._pool.unseen()
            rows = rows[~np.isin(rows, barred)] if len(barred) else rows
            return Draw(rows, self.decision_values(rows))
        each = MOST_SAMPLED if self.strategy == "autoactive" else self.pool_size
        rows = self._sample(n * each, barred)
        scores = self.decision_values(rows)
        if self.strategy == "autoactive" and n == 1:
            size = autoactive_size(scores, self._model.delta)
            rows, scores = rows[:size], scores[:size]
        return Draw(rows, scores)

    def _sample(self, size: int, barred: Ints) -> Ints:
        rows = self._pool.sample(size + len(barred), self._rng(0))
        return rows[~np.isin(rows, barred)][:size] if len(barred) else rows

    def _rng(self, purpose: int) -> np.random.Generator:
        first = 2 * self._seed + purpose if purpose < 2 else (purpose << 40) + self._seed
        key = np.array([first, len(self._course)], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key))
