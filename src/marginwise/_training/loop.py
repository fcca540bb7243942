"""The training loop. Every way of learning is a feed, steps over it, and a chooser of rows.

fit, partial_fit       orders of the rows, each a step                  every row
fit with selection     passes over the rows that are left               the best of a pool
full search            the best of all rows, one after the other        that row
learn_from             chunks of a source, stage by stage               any of them, or sifted
finish                 a step without rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints
from marginwise._core import Batch
from marginwise._engine.engine import Engine
from marginwise._training.feeds import ArrayFeed, SourceFeed
from marginwise._training.sift import Sieve
from marginwise.progress import Progress

Feed = ArrayFeed | SourceFeed
NOTHING: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Step:
    """Rows of a feed to go through in order, and whether to finish the model after them."""

    rows: Ints
    finish: bool = False


class Chooser(Protocol):
    """Decides which of the rows it is shown the model learns."""

    def begin(self, engine: Engine, ids: Ints) -> None:
        """Prepare for a step over the rows of these ids."""

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> Iterator[int]:
        """Go through rows of a batch; yield, a few times a second, how many more are done."""

    def end(self, engine: Engine) -> None:
        """Complete what the step left open."""


class EveryRow:
    """Learns every row."""

    def begin(self, engine: Engine, ids: Ints) -> None:
        pass

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> Iterator[int]:
        return engine.learn(batch, rows)

    def end(self, engine: Engine) -> None:
        pass


@dataclass
class Pools:
    """Learns the best row of each pool, by a rule of selection.

    Parameters
    ----------
    rule : str
        "gradient", "active" or "autoactive".
    size : int
        Rows of a pool.
    seen : ndarray of shape (problems, ids), default=None
        Marks which problem has learned which id. By default every step begins with none.
    """

    rule: str
    size: int
    seen: NDArray[np.uint8] | None = None

    def begin(self, engine: Engine, ids: Ints) -> None:
        seen = self.seen
        if seen is None:
            seen = np.zeros((engine.plan.problems, int(ids.max()) + 1), dtype=np.uint8)
        engine.begin_pass(self.rule, self.size, seen)

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> Iterator[int]:
        return engine.select(batch, rows)

    def end(self, engine: Engine) -> None:
        engine.end_pass()


@dataclass
class Sifted:
    """Learns the rows that a sieve finds worth it, in the problems that want them.

    Parameters
    ----------
    sieve : Sieve
        Judges the rows of a step by the model as it is when the step begins.
    feed : SourceFeed
        Knows the labels of the rows it has read.
    """

    sieve: Sieve
    feed: SourceFeed

    def begin(self, engine: Engine, ids: Ints) -> None:
        pass

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> Iterator[int]:
        wanted = self.sieve.choose(engine, batch, engine.signs(self.feed.labels))
        order = np.flatnonzero(wanted.any(axis=1)).astype(np.int64)
        yield from engine.learn_wanted(batch, order, wanted[order])
        passed_over = len(rows) - len(order)
        engine.count_since_finish(engine.since_finish + passed_over)
        yield passed_over

    def end(self, engine: Engine) -> None:
        pass


@dataclass(frozen=True)
class Trainer:
    """Runs the loop for a model.

    Parameters
    ----------
    engine : Engine
        The native model.
    tol : float
        The violation at which finishing ends.
    finish_every : int, default=None
        Finish after every so many rows, too.
    verbose : int, default=0
        Whether to show progress.
    """

    engine: Engine
    tol: float
    finish_every: int | None = None
    verbose: int = 0

    def train(
        self,
        feed: Feed | None,
        steps: Iterable[Step],
        choose: Chooser,
        *,
        total: int,
        done: int = 0,
        in_chunks: bool = False,
        after: Callable[[Step], bool] | None = None,
    ) -> None:
        """Take the steps.

        Parameters
        ----------
        feed : ArrayFeed, SourceFeed or None
            Where the rows are; None for steps without rows.
        steps : iterable of Step
            What to do. It may look at the model: a step is asked for when the last one is done.
        choose : Chooser
            Decides which rows are learned.
        total, done : int
            Rows of all steps, and of those before the first one, for the display.
        in_chunks : bool, default=False
            Whether `finish_every` is looked at after whole steps only.
        after : callable, default=None
            Called with each step that is done; returns True to end the loop.
        """
        with Progress(total, self.verbose, done) as progress:
            for step in steps:
                if feed is not None:
                    choose.begin(self.engine, feed.ids[step.rows])
                    self._go_through(feed, step.rows, choose, progress, in_chunks)
                    choose.end(self.engine)
                if step.finish or (in_chunks and self._finish_is_due):
                    self._finish(progress)
                if after is not None and after(step):
                    return

    def _go_through(
        self, feed: Feed, rows: Ints, choose: Chooser, progress: Progress, in_chunks: bool
    ) -> None:
        engine = self.engine
        for part in [rows] if in_chunks else self._parts(rows):
            for batch, places in feed.cuts(part):
                for count in choose.learn(engine, batch, places):
                    progress.learned(count, engine.size, engine.delta)
            if not in_chunks and self._finish_is_due:
                self._finish(progress)

    def _parts(self, rows: Ints) -> Iterator[Ints]:
        """Cut rows where finishing is due."""
        if self.finish_every is None:
            yield rows
            return
        start = 0
        while start < len(rows):
            end = start + max(self.finish_every - self.engine.since_finish, 1)
            yield rows[start:end]
            start = end

    @property
    def _finish_is_due(self) -> bool:
        return self.finish_every is not None and self.engine.since_finish >= self.finish_every

    def _finish(self, progress: Progress) -> None:
        self.engine.count_since_finish(0)
        for delta in self.engine.finish(self.tol):
            progress.finishing(delta)


def finish_only(trainer: Trainer) -> None:
    """Finish a model, whatever it has learned."""
    trainer.train(None, [Step(NOTHING, finish=True)], EveryRow(), total=0)


def run_steps(chunks: Iterable[tuple[Ints, bool]], *, finish: bool) -> Iterator[Step]:
    """Give the chunks of a run as steps, finishing after the last of each stage if wanted."""
    for rows, ends in chunks:
        yield Step(rows, finish and ends)


def search_steps(found: Iterable[int], *, finish: bool) -> Iterator[Step]:
    """Give rows that a search finds as steps of their own, and finishing as the last."""
    for row in found:
        yield Step(np.array([row], dtype=np.int64))
    if finish:
        yield Step(NOTHING, finish=True)


def order_steps(orders: Iterable[Any], *, finish: bool) -> Iterator[Step]:
    """Give orders of the rows as steps."""
    for order in orders:
        yield Step(order, finish)
