"""Which rows to learn: passes over pools, and the search of all rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints


class Passes:
    """The rows that are left for a pass of selection, and when the passes end.

    Parameters
    ----------
    ids
        Ids of the rows.
    problems
        Binary problems, each of which learns a row once at most.
    epochs
        Passes to make, unless nothing is left to learn.
    before
        What `done` would be told now: counts of a model that has learned before.
    """

    # Fewer rows than this are not worth stopping at: a small set is gone through again until so
    # many were learned.
    LEAST = 1000

    def __init__(self, ids: Ints, problems: int, epochs: int, before: tuple[int, int]) -> None:
        self._ids = ids
        self._epochs = epochs
        self._made = 0
        self._least = before[0] + self.LEAST * problems
        self._changed = before[1]
        self.seen: NDArray[np.uint8] = np.zeros((problems, int(ids.max()) + 1), dtype=np.uint8)

    def orders(
        self, draw: Callable[[int], Ints], counts: Callable[[], tuple[int, int]]
    ) -> Iterator[Ints]:
        """Give the rows of one pass after the other.

        Parameters
        ----------
        draw
            Returns an order of n rows.
        counts
            Returns what `done` is to be told, after a pass.
        """
        done = False
        while not done:
            left = self.left()
            yield left[draw(len(left))].astype(np.int64)
            done = self.done(*counts())

    def left(self) -> NDArray[np.intp]:
        """Return the rows that some problem has not learned."""
        return np.flatnonzero((self.seen[:, self._ids] == 0).any(axis=0))

    def done(self, chosen: int, changed: int) -> bool:
        """Tell, after a pass, whether it was the last.

        Parameters
        ----------
        chosen
            Rows that were learned so far, counted once a problem.
        changed
            How many of them changed the model.
        """
        self._made += 1
        idle = changed == self._changed
        self._changed = changed
        enough = self._made >= self._epochs and chosen >= self._least
        return idle or enough or len(self.left()) == 0


class FullSearch:
    """Selection that looks at all rows that are left before it learns one.

    Parameters
    ----------
    rule
        "gradient", "active" or "autoactive"; the last two are the same here.
    signs
        Labels as +1 and -1, a column for each binary problem.
    order
        The order in which rows are learned while a problem has no model.
    slack
        A row must lie within the margin by more than this.
    """

    def __init__(self, rule: str, signs: Float, order: Ints, slack: float) -> None:
        self._by_label = rule == "gradient"
        self._signs = signs
        self._order = order
        self._slack = slack
        self._unseen = np.ones(len(signs), dtype=bool)

    def rows(self, scores: Callable[[], Float], deltas: Callable[[], Float]) -> Iterator[int]:
        """Give the next row to learn, for one problem after the other, until none has one.

        Parameters
        ----------
        scores
            Returns the decision values of all rows, a column for each problem.
        deltas
            Returns δ of each problem, minus infinity where it has no pair of examples yet.
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
        score = self._signs[:, c] * f if self._by_label else np.abs(f)
        row = int(np.where(self._unseen, score, np.inf).argmin())
        return row if self._unseen[row] and score[row] < 1 + delta / 2 - self._slack else None
