"""Selection of rows to query, which depends only on the log, the pool and the seed.

Repeated calls without an answer in between return the same rows.
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
from marginwise.active.audit import ErrorAudit
from marginwise.active.batch import different_rows
from marginwise.active.log import AnswerLog, Event
from marginwise.active.pool import UNSEEN
from marginwise.active.recall import TargetRecall
from marginwise.active.scores import (
    autoactive_size,
    by_function,
    closeness,
    disagreement,
    least_positive,
)
from marginwise.active.verdict import Changed, StoppingRule

STRATEGIES = ("random", "gradient", "active", "autoactive", "near_boundary", "largest_positive")
COMPARED = 2000  # sample size of `changed_predictions`
AUTO = "auto"  # stopping rule that depends on the strategy
NAMED = (AUTO, "audit")
NONE: Ints = np.empty(0, dtype=np.int64)
WHOLE_POOL = ("near_boundary", "largest_positive")


class PoolExhaustedError(LookupError):
    """Error raised if the pool has no row left to query."""


class Draw(NamedTuple):
    """Candidates of the next query in the order drawn, with their scores.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Row indices.
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes), or None
        Decision values; None without a model.
    """

    rows: Ints
    scores: Float | None


class Questions(AnswerLog):
    """Mixin with the methods that select rows to query."""

    strategy: str | Callable[[Float], Any]
    pool_size: int | None
    _seed: int
    _noted: NDArray[Any] | None  # labels of y_pool
    _drawn: tuple[Any, Draw] | None  # arguments and result of the last draw
    _audited: set[int]  # rows whose last question was part of an audit
    _stop: StoppingRule | str | None

    @property
    def stop(self) -> StoppingRule | str | None:
        """Stopping rule, or "auto"; may be set at any time."""
        return self._stop

    @stop.setter
    def stop(self, stop: Any) -> None:
        named = isinstance(stop, str)
        if not (stop is None or isinstance(stop, StoppingRule) or (named and stop in NAMED)):
            raise TypeError(
                "stop must be a stopping rule, such as MarginExhausted() or MaxLabels(100), "
                f"'auto', 'audit' or None, got {stop!r}."
            )
        self._stop = ErrorAudit() if named and stop != AUTO else stop

    @overload
    def ask(self, n: None = None, *, exclude: ArrayLike | None = None) -> int: ...

    @overload
    def ask(self, n: int, *, exclude: ArrayLike | None = None) -> Ints: ...

    @alone
    def ask(self, n: int | None = None, *, exclude: ArrayLike | None = None) -> int | Ints:
        """Return the next rows to label.

        The result does not change until an answer is taught, skipped, corrected or undone. If
        several rows are requested, no two of them are near-duplicates. If the stopping rule
        requires an audit, some rows are drawn at random.

        Parameters
        ----------
        n : int, default=None
            Number of rows to return as an array. None returns a single row as an integer.
        exclude : array-like of int, default=None
            Unseen rows that must not be returned, such as rows being labelled by another annotator.

        Returns
        -------
        rows : int or ndarray of shape (n_rows,)
            Row indices. The array is shorter than `n` if the pool has too few different rows, and
            empty if the pool is exhausted.

        Raises
        ------
        PoolExhaustedError
            If `n` is None and no row is left.
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
            Row indices. None returns the decision values of the whole pool.

        Returns
        -------
        values : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Decision values, of shape (n_rows,) for two classes.
        """
        if not self.has_model_:
            raise ValueError(
                "decision values are not available, because there is no model yet. Teach labels "
                "of two classes first."
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
        """Return rows of the pool in their original format.

        Parameters
        ----------
        rows : int or array-like of int
            Row indices.

        Returns
        -------
        X : ndarray, sparse matrix or data frame
            The rows in the given order. Rows of a pandas data frame keep their index, so that
            ``learner.pool_rows(learner.ask(5)).index`` identifies them.
        """
        return self._pool.take_given(any_rows(rows, self._pool.n))

    @alone
    def candidate_values(self) -> Float:
        """Return the decision values of the candidates of the next query.

        Returns
        -------
        values : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Decision values. Empty if there is no model yet or the strategy does not use decision
            values.
        """
        draw = self._draw(1, NONE)
        return np.empty(0) if draw.scores is None else draw.scores

    @alone
    def sample_unseen(self, size: int) -> Ints:
        """Draw a random sample of unseen rows.

        Parameters
        ----------
        size : int
            Number of rows.

        Returns
        -------
        rows : ndarray of shape (n_rows,)
            Row indices of the sample, which does not change until an answer is recorded. All unseen
            rows if there are at most `size`.
        """
        return self._pool.sample(size, self._rng(1))

    @alone
    def changed_predictions(self, labels: int | None = None) -> Changed | None:
        """Compare predictions with those of the model at half as many labels.

        Both models are taken from a fixed sequence of label counts, with four steps per doubling.
        They predict the same rows, a sample of the initial pool.

        Parameters
        ----------
        labels : int, default=None
            Number of labels to consider. None considers all labels.

        Returns
        -------
        changed : Changed or None
            Fraction of predictions that changed, or None if there are too few labels.
        """
        if not self._marks.complete:  # after unpickling
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
                model.finish()  # unfinished models of overlapping classes fluctuate
                mark.predicted = model.predict(rows)
        earlier, now = pair
        assert earlier.predicted is not None
        assert now.predicted is not None
        share = float(np.mean(earlier.predicted != now.predicted))
        rare = 1 - float(np.unique(now.predicted, return_counts=True)[1].max()) / len(rows)
        return Changed(earlier.labels, now.labels, share, rare)

    # -- helpers ---------------------------------------------------------------------------------

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
            raise TypeError(f"exclude must be an array of row indices, got {exclude!r:.60}.")
        check_inside(rows, self._pool.n)
        unseen: Ints = rows[self._pool.status[rows] == UNSEEN].astype(np.int64)
        return unseen

    def _choose(self, wanted: int, barred: Ints) -> list[tuple[int, Any, str]]:
        """Return the next queries: rows, scores and purposes."""
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
        """Return how many of the next questions must be drawn at random."""
        rule = self._rule
        if rule is None or not self.has_model_:
            return 0
        pending = sum(row in self._audited for row in barred.tolist())
        return rule.wants_audit(self, pending)

    @property
    def _rule(self) -> StoppingRule | None:
        """The stopping rule; "auto" depends on what the strategy looks for."""
        if not isinstance(self._stop, str):
            return self._stop
        finds = self.strategy == "largest_positive" and len(self._classes) <= 2
        return TargetRecall() if finds else ErrorAudit()

    def _best(self, draw: Draw, wanted: int) -> Ints:
        """Return the positions of the candidates to query."""
        order = self._order(draw, wanted)
        if wanted > 1 and len(order) > 1 and self._model.has_features:
            order = self._different(draw, order, wanted)
        return order[:wanted]

    def _different(self, draw: Draw, order: Ints, wanted: int) -> Ints:
        """Return the first positions in `order` whose rows are not near-duplicates."""
        found = order[:0]
        for most in (max(16 * wanted, 256), len(order)):  # the first is usually sufficient
            best = order[:most]
            found = best[different_rows(self._model.features(draw.rows[best]), wanted)]
            if len(found) == wanted:
                break
        return found

    def _order(self, draw: Draw, wanted: int) -> Ints:
        """Return the positions of candidates in descending order of preference."""
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
        """Whether to query a random row if no sampled row is inside the margin.

        Rows outside the margin do not change the model, and unknown regions of a class can be found
        only by chance.
        """
        sampled = self.strategy in ("active", "autoactive", "gradient")
        return sampled and self.pool_size is not None

    def _draw(self, n: int, barred: Ints) -> Draw:
        """Draw the candidates of the next n queries, cached until the log changes."""
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
