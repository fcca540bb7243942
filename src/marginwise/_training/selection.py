"""Full search: selection that evaluates all remaining rows before it learns one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from marginwise._arrays import Float, Ints, Labels
from marginwise._engine.scores import Scores
from marginwise._training.loop import NOTHING, ArrayFeed, Pools, Step, Trainer
from marginwise._training.sift import widths


def learn_by_search(
    trainer: Trainer,
    feed: ArrayFeed,
    labels: Labels,
    rule: str,
    rng: np.random.RandomState,
    find: Callable[[Ints], object],
) -> None:
    """Learn the best of all remaining rows, one at a time, until none lies within the margin.

    Parameters
    ----------
    trainer : Trainer
        Learns the rows.
    feed : ArrayFeed
        The rows.
    labels : ndarray of int32
        Their classes.
    rule : {"gradient", "active", "autoactive"}
        Selection rule.
    rng : RandomState
        Orders the rows that are learned while a problem has no model.
    find : callable
        Returns the features of members by their ids, or None if it does not know all of them.
    """
    engine = trainer.engine
    search = FullSearch(
        rule,
        engine.signs(labels),
        trainer.order(len(labels), rng),
        slack=engine.plan.settings.get("tol", 0.0),
    )
    scores = Scores(engine, feed.batch, find)

    def steps() -> Iterator[Step]:
        for row in search.rows(scores.values, lambda: widths(engine)):
            yield Step(np.array([row], dtype=np.int64))
        if trainer.finish_at_end:
            yield Step(NOTHING, finish=True)

    seen = np.zeros((engine.plan.problems, engine.native.next_id), dtype=np.uint8)
    one_row_pools = Pools("active", 1, seen)  # the row that was found
    trainer.train(feed, steps(), one_row_pools, total=len(feed.ids))


class FullSearch:
    """Selection that evaluates all remaining rows before it learns one.

    Parameters
    ----------
    rule : {"gradient", "active", "autoactive"}
        Selection rule; the last two are equivalent here.
    signs : ndarray of shape (n, problems)
        Labels as +1 and -1, one column per binary problem; 0 if the problem excludes the row.
    order : ndarray of int64
        Order in which rows are learned while a problem has no model.
    slack : float
        A row must lie within the margin by more than this.
    """

    def __init__(self, rule: str, signs: Float, order: Ints, slack: float) -> None:
        self._by_label = rule == "gradient"
        self._signs = signs
        self._order = order
        self._slack = slack
        self._unseen = np.ones(len(signs), dtype=bool)

    def rows(self, scores: Callable[[], Float], deltas: Callable[[], Float]) -> Iterator[int]:
        """Yield the next row to learn, for each problem in turn, until no problem has one.

        Parameters
        ----------
        scores : callable
            Returns the decision values of all rows, one column per problem.
        deltas : callable
            Returns δ of each problem, minus infinity if it does not have a pair of examples yet.
        """
        problems = self._signs.shape[1]
        waiting = (int(row) for row in self._order if self._unseen[row])
        idle = 0
        for c in itertools.cycle(range(problems)):
            delta = float(deltas()[c])
            row = self._best(scores()[:, c], c, delta) if delta > -np.inf else next(waiting, None)
            idle = idle + 1 if row is None else 0
            if row is not None:
                self._unseen[row] = False
                yield row
            if idle == problems or not self._unseen.any():
                return

    def _best(self, f: Float, c: int, delta: float) -> int | None:
        """Return the best row for problem c if it lies within the margin."""
        signs = self._signs[:, c]
        score = np.where(signs == 0, np.inf, signs * f if self._by_label else np.abs(f))
        row = int(np.where(self._unseen, score, np.inf).argmin())
        return row if self._unseen[row] and score[row] < 1 + delta / 2 - self._slack else None
