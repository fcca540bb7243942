"""Long runs over a source, in stages and chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from marginwise._training.checkpoint import Checkpoint, Course
from marginwise._training.loop import ChunkFeed, Step, Trainer
from marginwise._training.orders import BlockOrder, Order, RowOrder
from marginwise._training.sift import CHUNK, Sieve, Tally
from marginwise._training.sources import block_of, reads_anywhere


@dataclass(frozen=True)
class Moment:
    """Progress of a run, passed to a callback after each chunk."""

    examples: int  # seen so far
    seconds: float  # spent so far, including runs before a checkpoint
    tally: Tally  # counts of sifting so far


Callback = Callable[[Any, Moment], bool | None]


class Run:
    """Visits a source stage by stage, in random order within a stage, one chunk at a time.

    Parameters
    ----------
    feed : ChunkFeed
        Reads the chunks of the source.
    ends : list of int
        Ids at which the stages of the source end.
    trainer : Trainer
        Defines the number of passes, the order, and whether to finish after each stage.
    course : Course
        Starting position.
    file : Checkpoint or None
        Checkpoint that is written from time to time.
    sieve : Sieve or None
        Selects the rows.
    report : callable or None
        Called after each chunk with a `Moment`; returns True to end the run.
    """

    failure: OSError | None = None  # of the last checkpoint

    def __init__(
        self,
        feed: ChunkFeed,
        ends: list[int],
        trainer: Trainer,
        course: Course,
        file: Checkpoint | None,
        sieve: Sieve | None,
        report: Callable[[Moment], bool] | None,
    ) -> None:
        self._feed = feed
        self._block, self._anywhere = block_of(feed.source), reads_anywhere(feed.source)
        self._ends = ends
        self._trainer = trainer
        self._course = course
        self._file = file
        self._sieve = sieve
        self._report = report
        self._before = course.seconds
        self._began = time.monotonic()
        first = ends[course.stage - 1] if course.stage else 0
        self.done = course.epoch * ends[-1] + first + course.done
        self.total = trainer.epochs * ends[-1]

    def steps(self) -> Iterator[Step]:
        """Yield the remaining chunks as steps; update the run between them."""
        course = self._course
        if self.done > 0 and self._is_stopped():
            return
        while course.epoch < self._trainer.epochs:
            while course.stage < len(self._ends):
                order = self._order()
                while course.done < len(order):
                    rows = self._feed.hold(order.chunk(course.done))
                    ends = course.done + len(rows) == len(order)
                    finish = ends and self._trainer.finish_at_end
                    yield Step(rows, finish, look_again=True, fresh=course.epoch == 0)
                    if self._pass_chunk(len(rows)):
                        return
                course.stage, course.done = course.stage + 1, 0
            course.epoch, course.stage = course.epoch + 1, 0

    def _pass_chunk(self, rows: int) -> bool:
        """Record that a chunk was learned; return whether the run should end."""
        self._course.done += rows
        self.done += rows
        self._course.seconds = self._before + time.monotonic() - self._began
        last = self.done == self.total
        due = self._file is not None and (last or time.monotonic() >= self._file.due)
        if due:
            self._write(last)
        stopped = self._is_stopped()
        if stopped and self._file is not None and not due:
            self._write(last)
        return stopped

    def _write(self, last: bool) -> None:
        assert self._file is not None
        self.failure = self._file.write(self._course, self._sieve, last=last)

    def _is_stopped(self) -> bool:
        """Report progress; return whether the run should end."""
        if self._report is None:
            return False
        tally = Tally() if self._sieve is None else replace(self._sieve.tally)
        return self._report(Moment(self.done, self._course.seconds, tally))

    def _order(self) -> Order:
        course = self._course
        first, end = [0, *self._ends][course.stage : course.stage + 2]
        seeds = [course.seed, course.epoch, course.stage]
        if self._block is None or not self._trainer.shuffle:
            return RowOrder(first, end, CHUNK, seeds if self._trainer.shuffle else None)
        return BlockOrder(first, end, CHUNK, seeds, block=self._block, anywhere=self._anywhere)
