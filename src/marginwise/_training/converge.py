"""Convergence: passes over the rows that may violate the conditions, until no row does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from marginwise._arrays import Ints, Labels
from marginwise._engine.scores import Scores
from marginwise._training.loop import ArrayFeed, LookAhead, Step, Trainer
from marginwise._warn import warn_unconverged

FEW_ROWS = 4096, 8192  # as in fit; shared kernel values matter less here
MOST_LOOKS = 100


def learn_until_converged(
    trainer: Trainer,
    feed: ArrayFeed,
    labels: Labels,
    epoch: Iterable[Step],
    find: Callable[[Ints], object],
    as_subtasks: Callable[[Iterable[Step]], Iterable[Step]] | None = None,
) -> None:
    """Learn all rows, then those that violate, until none violates by more than the tolerance.

    Parameters
    ----------
    trainer : Trainer
        Learns the rows.
    feed : ArrayFeed
        The rows.
    labels : ndarray of int32
        Their classes.
    epoch : iterable of Step
        The first pass over all rows.
    find : callable
        Returns the features of members by their ids, or None if it does not know all of them.
    as_subtasks : callable, default=None
        Wraps the steps.
    """
    engine = trainer.engine
    chooser = LookAhead(labels, trainer.is_solved_whole(labels, FEW_ROWS))
    scores = Scores(engine, feed.batch, find, labelled=True)
    signs = engine.signs(labels)

    def violating() -> Ints:
        """Return the rows that violate by more than the tolerance, worst first."""
        ids, _, alpha = engine.coefficients
        gap = np.where(signs != 0, 1 - signs * scores.values() + engine.native.delta() / 2, 0.0)
        gap[np.searchsorted(feed.ids, ids)] *= (alpha == 0).T  # the others are already solved
        worst = gap.max(axis=1)
        rows = np.flatnonzero(worst > trainer.tol)
        return rows[np.argsort(-worst[rows], kind="stable")]

    def steps() -> Iterator[Step]:
        """Yield steps over all rows, then over the violating ones."""
        for step in epoch:
            yield Step(step.rows, finish=True, look_again=True)
        for _ in range(MOST_LOOKS):
            if chooser.whole or engine.native.unsolved:  # a warning follows
                return
            rows = violating()
            if len(rows) == 0:
                return
            yield Step(rows, finish=True, fresh=False)
        warn_unconverged(
            f"{len(rows)} rows still violate the optimality conditions by more than tol="
            f"{trainer.tol:g} after {MOST_LOOKS} passes over those that do. Scale the features, "
            "lower C or raise tol."
        )

    taken = steps() if as_subtasks is None else as_subtasks(steps())
    trainer.train(feed, taken, chooser, total=len(feed.ids))
