"""The training loop. Every way of learning is a feed of rows, steps over it, and a chooser of rows.

partial_fit            one order of the rows                            every row
fit                    orders of the rows, one per epoch                every row
fit, few rows          one step: all become members, and are solved     every row
fit with selection     passes over the rows that are left               the best of each pool
full search            the best of all rows, one after the other        that row
learn_from             chunks of a source, stage by stage               any of them, or sifted
finish                 a step without rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints, Labels, spread_rows
from marginwise._core import Batch
from marginwise._engine.engine import COUNTERS, Engine
from marginwise._training.sift import Sieve
from marginwise._training.sources import Source
from marginwise.progress import Progress

READ = 4096  # rows of a source that are in memory at a time
SLICE_SECONDS = 0.25  # between chances to answer Ctrl-C and to move the progress bar
# Fewer rows than this, per problem, are not worth stopping selection at: a small set is gone
# through again until so many were learned.
LEAST_CHOSEN = 1000
# After the last epoch, rows that are not members are judged again, AUDITED and more at a time,
# while more than a share of WORTH_IT of them become members.
AUDITED, WORTH_IT, MOST_LOOKS = 1024, 0.1, 20
# All rows are judged again if, of a sample of rows that are not members, a share of MISSED and more
# than FEW_MISSED rows violate the margin of a problem by more than GROSS.
LEAST_AUDITED, MISSED, FEW_MISSED, GROSS = 256, 0.05, 8, 0.1
# Problems of so few rows, the first if there is only one problem, are solved as a whole. Beyond
# that, windows of rows are faster, in particular where problems share their kernel values.
FEW_ROWS = 4096, 2560
MOST_PLACES = 1 << 21  # of all rows in all problems
WIDE = 256  # features that are too many to be copied for every call of a kernel function
CHOSEN, PROCESSED = COUNTERS.index("chosen"), COUNTERS.index("process")
FORESEEN = 256  # rows of a sifted chunk whose decision values are noted
NOTHING: Ints = np.empty(0, dtype=np.int64)


class Feed(Protocol):
    """Where examples come from."""

    ids: Ints  # of all rows, ascending

    def cuts(self, order: Ints) -> Iterable[tuple[Batch, Ints]]:
        """Return the batches that hold the rows of an order, and the places of the rows there."""


@dataclass
class ArrayFeed:
    """Examples in memory: one batch serves every order.

    Parameters
    ----------
    batch : Batch
        The labelled rows.
    ids : ndarray of int64
        Their ids, ascending.
    """

    batch: Batch
    ids: Ints

    def cuts(self, order: Ints) -> Iterable[tuple[Batch, Ints]]:
        """Return the batch, and the order as it is."""
        return [(self.batch, order)]


@dataclass
class SourceFeed:
    """Examples of a source, read in the order in which they are wanted.

    Parameters
    ----------
    source : Source
        The source.
    ids : ndarray of int64
        Ids of its rows.
    label : callable
        Makes a labelled batch of features, labels and ids, and numbers the labels.
    chunk : int
        How many rows to read at a time; the model does not depend on it.
    """

    source: Source
    ids: Ints
    label: Callable[[Any, Any, Ints], tuple[Batch, Labels]]
    chunk: int

    def cuts(self, order: Ints) -> Iterator[tuple[Batch, Ints]]:
        """Give the batches that hold the rows of an order, and the places of the rows there."""
        for start in range(0, len(order), self.chunk):
            rows = np.ascontiguousarray(order[start : start + self.chunk])
            X, y = self.source.read(rows)
            batch, _ = self.label(X, y, self.ids[rows])
            yield batch, np.arange(len(rows), dtype=np.int64)


class ChunkFeed(ArrayFeed):
    """The examples of one chunk of a source, in memory until the next chunk is read.

    Parameters
    ----------
    source : Source
        The source.
    first : int
        The id of its row 0; the others follow.
    label : callable
        Makes a labelled batch of features, labels and ids, and numbers the labels.
    """

    labels: Labels

    def __init__(
        self,
        source: Source,
        first: int,
        label: Callable[[Any, Any, Ints], tuple[Batch, Labels]],
    ) -> None:
        self.source = source
        self._first = first
        self._label = label

    def hold(self, rows: Ints) -> Ints:
        """Read a chunk, of rows of the source; return the places of its rows."""
        X, y = self.source.read(rows)
        self.ids = self._first + rows
        self.batch, self.labels = self._label(X, y, self.ids)
        return np.arange(len(rows), dtype=np.int64)


@dataclass(frozen=True)
class Step:
    """Rows of a feed to go through in order, and whether to finish the model after them.

    With `look_again`, rows that are not members are then judged again, those nearest to violating
    first, while many of them become members. Rows that the model has learned before are not
    `fresh`: what it thinks of them says nothing of new rows.
    """

    rows: Ints
    finish: bool = False
    look_again: bool = False
    fresh: bool = True


class EveryRow:
    """Learns every row. Other choosers decide which of the rows they are shown are learned."""

    def begin(self, engine: Engine, ids: Ints) -> None:
        """Prepare for a step over the rows of these ids."""

    def choose(self, engine: Engine, batch: Batch, rows: Ints) -> Ints:
        """Return the rows of a batch to look at, of those given."""
        return rows

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> int:
        """Look at rows of a batch for a slice of time; return how many are done."""
        return engine.native.learn(batch, rows, SLICE_SECONDS)

    def to_double(self, engine: Engine) -> None:
        """Let the model, in the middle of a step, continue in double precision."""
        engine.to_double()

    def end(self, engine: Engine) -> None:
        """Complete what the step left open."""

    def rest(self, engine: Engine) -> None:
        """Make the model one that can do other things than learn."""


class LookAhead(EveryRow):
    """Learns every row, window by window: of each window the rows that violate, worst first.

    Parameters
    ----------
    labels : ndarray of int32
        Classes of the rows of the batch.
    whole : bool, default=False
        Whether to solve the problems of a new model as a whole, without windows, if it can be done.
    """

    def __init__(self, labels: Labels, whole: bool = False) -> None:
        self.labels = labels
        # How far a row was from violating when it was last judged.
        self.distance = np.full((1, len(labels)), np.inf, dtype=np.float32)
        self.roughly = True  # the first time, rows that violate by little are passed over
        self.whole = whole

    def adopt(self, engine: Engine, batch: Batch, rows: Ints) -> bool:
        """Make members of all rows, for finishing to solve; return whether that was possible."""
        order = np.sort(rows)
        adopted = engine.native.adopt(batch, order)
        if not adopted and engine.native.beyond:
            self.to_double(engine)
            adopted = engine.native.adopt(batch, order)
        self.whole = adopted
        return adopted

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> int:
        native = engine.native
        return native.learn_ahead(batch, rows, self.roughly, self.distance, SLICE_SECONDS)

    def rest(self, engine: Engine) -> None:
        engine.native.rest()
        self.roughly = False

    def judged(self, rows: Ints) -> Ints:
        """Return the rows that were judged: none of them, by algorithms that do not look ahead."""
        was_judged: NDArray[np.bool_] = np.isfinite(self.distance[0, rows])
        return rows[was_judged]

    def nearest(self, engine: Engine, ids: Ints, rows: Ints) -> Ints:
        """Return the rows that not all problems hold, those nearest to violating first."""
        if engine.plan.problems == 1:  # of several, the distance leaves out those that hold the row
            rows = rows[engine.native.holds(ids[rows]) == 0]
        return rows[np.argsort(self.distance[0, rows], kind="stable")]


class LookAheadInChunks(LookAhead):
    """Looks ahead within each chunk of a source, as within the rows of a `fit`.

    Parameters
    ----------
    feed : ChunkFeed
        Knows the labels of the rows of the chunk.
    """

    def __init__(self, feed: ChunkFeed) -> None:
        self._feed = feed
        super().__init__(np.empty(0, dtype=np.int32))

    def begin(self, engine: Engine, ids: Ints) -> None:
        super().__init__(self._feed.labels)


def _none_seen(engine: Engine, ids: Ints) -> NDArray[np.uint8]:
    """Return marks, all unset, of which problem has learned which id."""
    return np.zeros((engine.plan.problems, int(ids.max()) + 1), dtype=np.uint8)


@dataclass
class Pools(EveryRow):
    """Learns the best row of each pool, by a rule of selection.

    Parameters
    ----------
    rule : {"gradient", "active", "autoactive"}
        Which row is the best.
    size : int
        Rows of a pool.
    seen : ndarray of shape (problems, ids), default=None
        Marks which problem has learned which id. By default every step begins with none.
    """

    rule: str
    size: int
    seen: NDArray[np.uint8] | None = None

    def begin(self, engine: Engine, ids: Ints) -> None:
        self._marks = _none_seen(engine, ids) if self.seen is None else self.seen
        engine.native.begin_pass(self.rule, self.size, self._marks)

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> int:
        return engine.native.select(batch, rows, SLICE_SECONDS)

    def to_double(self, engine: Engine) -> None:
        engine.native.end_pass()  # pools do not outlive the native model that they are in
        engine.to_double()
        engine.native.begin_pass(self.rule, self.size, self._marks)

    def end(self, engine: Engine) -> None:
        engine.native.end_pass()


@dataclass
class Sifted(EveryRow):
    """Learns the rows that a sieve finds worth it, in the problems that want them.

    Parameters
    ----------
    sieve : Sieve
        Judges the rows of a step by the model as it is when the step begins.
    feed : ChunkFeed
        Knows the labels of the rows it has read.
    """

    sieve: Sieve
    feed: ChunkFeed

    def choose(self, engine: Engine, batch: Batch, rows: Ints) -> Ints:
        self._foresee(engine, batch, len(rows))
        wanted = self.sieve.choose(engine, batch, engine.signs(self.feed.labels))
        order = np.flatnonzero(wanted.any(axis=1)).astype(np.int64)
        self._wanted = wanted[order]
        return order

    def _foresee(self, engine: Engine, batch: Batch, n: int) -> None:
        """Note decision values of some of all rows: those that are learned are no fair sample."""
        if engine.plan.foresees and batch.weighed:
            engine.native.foresee(batch, spread_rows(n, FORESEEN))
        batch.drop_weights()

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> int:
        wanted = self._wanted[len(self._wanted) - len(rows) :]
        return engine.native.learn_wanted(batch, rows, wanted, SLICE_SECONDS)


@dataclass(frozen=True)
class Trainer:
    """Runs the loop for a model.

    Parameters
    ----------
    engine : Engine
        The native model.
    tol : float
        The violation at which finishing ends.
    finish_at_end : bool, default=False
        Whether to finish the model after each epoch, pass or stage.
    finish_every : int, default=None
        Finish after every so many rows, too.
    epochs : int, default=1
        How often to go through the rows.
    shuffle : bool, default=False
        Whether rows are taken in random order.
    verbose : int, default=0
        Whether to show progress.
    """

    engine: Engine
    tol: float
    finish_at_end: bool = False
    finish_every: int | None = None
    epochs: int = 1
    shuffle: bool = False
    verbose: int = 0

    # -- ways to learn -------------------------------------------------------------------------

    def learn(self, feed: Feed, rows: Ints) -> None:
        """Learn rows in the order given."""
        self.train(feed, [Step(rows)], EveryRow(), total=len(rows))

    def learn_part(self, feed: ArrayFeed, rows: Ints) -> None:
        """Learn a few rows in the order given, with little around it where nothing else is due."""
        if self.finish_every is None and not self.verbose:
            self._learn(feed.batch, rows, EveryRow(), None)
        else:
            self.learn(feed, rows)

    def learn_epochs(
        self,
        feed: Feed,
        rng: np.random.RandomState,
        labels: Labels | None = None,
        seeds: int = 0,
        as_subtasks: Callable[[Iterable[Step]], Iterable[Step]] | None = None,
    ) -> None:
        """Learn all rows, epoch by epoch.

        Parameters
        ----------
        feed : Feed
            The rows.
        rng : RandomState
            Shuffles them.
        labels : ndarray of int32, default=None
            Their classes, where `seeds` is not 0.
        seeds : int, default=0
            How many examples of each class open an epoch.
        as_subtasks : callable, default=None
            Wraps the steps, each of which is an epoch.
        """
        chooser = EveryRow()
        if isinstance(feed, ArrayFeed) and labels is not None:
            chooser = LookAhead(labels, self.is_solved_whole(labels, FEW_ROWS))
        steps: Iterable[Step] = self.orders(len(feed.ids), rng, labels, seeds)
        if as_subtasks is not None:
            steps = as_subtasks(steps)
        self.train(feed, steps, chooser, total=len(feed.ids) * self.epochs)

    def learn_passes(self, feed: Feed, rule: str, size: int, rng: np.random.RandomState) -> None:
        """Make passes over the rows, learning the best of each pool of `size`."""
        seen = _none_seen(self.engine, feed.ids)
        steps = self._passes(feed.ids, seen, rng)
        self.train(feed, steps, Pools(rule, size, seen), total=len(feed.ids) * self.epochs)

    def learn_again(self, feed: ArrayFeed, labels: Labels, rng: np.random.RandomState) -> None:
        """Learn rows that were learned before, in random order, and finish the model."""
        order = rng.permutation(len(feed.ids)).astype(np.int64)
        step = Step(order, finish=True, look_again=True)
        self.train(feed, [step], LookAhead(labels), total=len(order))

    def finish(self) -> None:
        """Finish the model, whatever it has learned."""
        self.train(None, [Step(NOTHING, finish=True)], EveryRow(), total=0)

    def order(self, n: int, rng: np.random.RandomState) -> Ints:
        """Return an order of n rows."""
        order = rng.permutation(n) if self.shuffle else np.arange(n)
        return order.astype(np.int64)

    def orders(
        self, n: int, rng: np.random.RandomState, labels: Labels | None, seeds: int
    ) -> Iterator[Step]:
        """Give an order of all rows for each epoch; `seeds` rows of each class come first."""
        for epoch in range(self.epochs):
            order = self.order(n, rng)
            if labels is not None and seeds:
                first = np.zeros(n, dtype=bool)
                for label in range(int(labels.max()) + 1):
                    first[np.flatnonzero(labels[order] == label)[:seeds]] = True
                order = np.concatenate([order[first], order[~first]])
            last = epoch + 1 == self.epochs
            yield Step(order, self.finish_at_end, look_again=last, fresh=epoch == 0)

    def is_solved_whole(self, labels: Labels, few: tuple[int, int]) -> bool:
        """Return whether to solve problems with rows of these classes as a whole.

        They must have few rows, and nothing may be asked for between rows.
        """
        counts, plan = np.bincount(labels), self.engine.plan
        largest = int(np.sort(counts)[-2:].sum()) if plan.pairs else len(labels)
        places = len(labels) * (len(counts) - 1 if plan.pairs else plan.problems)
        small = largest <= few[plan.problems > 1] and places <= MOST_PLACES
        if plan.kernel == "callable" and plan.features > WIDE:
            return False
        return small and self.finish_at_end and self.finish_every is None

    def _passes(
        self, ids: Ints, seen: NDArray[np.uint8], rng: np.random.RandomState
    ) -> Iterator[Step]:
        """Give the rows that some problem has not learned, until a pass changes nothing.

        Otherwise passes end when none is left, or after `epochs` of them if enough were learned.
        """
        counters = self.engine.native.counters()
        enough = counters[CHOSEN] + LEAST_CHOSEN * self.engine.plan.problems
        made = 0
        left = np.arange(len(ids))
        while len(left):
            order = left[self.order(len(left), rng)].astype(np.int64)
            yield Step(order, self.finish_at_end, fresh=made == 0)
            made, before = made + 1, counters
            counters = self.engine.native.counters()
            idle = counters[PROCESSED] == before[PROCESSED]
            if idle or (made >= self.epochs and counters[CHOSEN] >= enough):
                return
            left = np.flatnonzero((seen[:, ids] == 0).any(axis=0))

    # -- the loop ------------------------------------------------------------------------------

    def train(
        self,
        feed: Feed | None,
        steps: Iterable[Step],
        chooser: EveryRow,
        *,
        total: int,
        done: int = 0,
        in_chunks: bool = False,
    ) -> None:
        """Take the steps.

        Parameters
        ----------
        feed : Feed or None
            Where the rows are; None for steps without rows.
        steps : iterable of Step
            What to do. It may look at the model: a step is asked for when the last one is done.
        chooser : EveryRow
            Decides which rows are learned.
        total : int
            Rows of all steps, for the display.
        done : int, default=0
            Rows before the first step, likewise.
        in_chunks : bool, default=False
            Whether `finish_every` is looked at after whole steps only.
        """
        shown = Progress(total, self.verbose, done) if self.verbose else nullcontext()
        with shown as progress:
            for step in steps:
                if feed is not None and self._solve_whole(feed, step, chooser, progress):
                    continue
                if feed is not None:
                    chooser.begin(self.engine, feed.ids[step.rows])
                    for part in [step.rows] if in_chunks else self._parts(step.rows):
                        for batch, rows in feed.cuts(part):
                            if not step.fresh:
                                batch.drop_weights()
                            self._learn(batch, rows, chooser, progress)
                        if not in_chunks and self._finish_is_due():
                            self._finish(progress)
                    if step.look_again and isinstance(chooser, LookAhead):
                        self._look_again(feed, step, chooser)
                    chooser.end(self.engine)
                if step.finish or (in_chunks and self._finish_is_due()):
                    self._finish(progress)
                chooser.rest(self.engine)
                if feed is not None and step.look_again and isinstance(chooser, LookAhead):
                    self._catch_up(feed, step, chooser, progress)

    def _solve_whole(
        self, feed: Feed, step: Step, chooser: EveryRow, progress: Progress | None
    ) -> bool:
        """Solve problems of few rows as a batch solver does; return whether that was done.

        Every later step over the same rows is then done, too: no row violates.
        """
        if not isinstance(chooser, LookAhead) or not chooser.whole:
            return False
        if self.engine.native.size == 0:
            for batch, rows in feed.cuts(step.rows):
                if not chooser.adopt(self.engine, batch, rows):
                    return False
            self._finish(progress)
            chooser.rest(self.engine)
        if progress is not None:
            progress.learned(len(step.rows), self.engine.native.size, self.engine.delta)
        return True

    def _look_again(self, feed: Feed, step: Step, chooser: LookAhead) -> None:
        """Judge rows again that are not members, while enough of them become members."""
        rows = chooser.judged(step.rows)
        for _ in range(MOST_LOOKS if len(rows) else 0):
            again = chooser.nearest(self.engine, feed.ids, rows)
            start, size = 0, AUDITED
            while start < len(again):
                part = again[start : start + size]
                if self._stored(feed, part, chooser) <= WORTH_IT * len(part):
                    break
                start, size = start + size, size + size // 2
            if start == 0:
                return

    def _catch_up(
        self, feed: Feed, step: Step, chooser: LookAhead, progress: Progress | None
    ) -> None:
        """Judge all rows again while a sample of them shows that the model has missed many.

        Rows are passed over because of what the model was when they were judged. It may have
        changed since then, far from the rows that it met last.
        """
        rows = chooser.judged(step.rows)
        for _ in range(MOST_LOOKS if len(rows) else 0):
            again = chooser.nearest(self.engine, feed.ids, rows)
            if not self._has_missed(feed, again, chooser):
                return
            self._stored(feed, again, chooser)
            if step.finish:
                self._finish(progress)
            chooser.rest(self.engine)

    def _has_missed(self, feed: Feed, rows: Ints, chooser: LookAhead) -> bool:
        """Return whether many rows that no problem holds violate the margin of some problem."""
        rows = rows[self.engine.native.holds(feed.ids[rows]) == 0]
        sample = rows[spread_rows(len(rows), min(AUDITED, max(LEAST_AUDITED, len(rows) // 32)))]
        signs = self.engine.signs(chooser.labels[sample])
        for batch, at in feed.cuts(sample):
            margins = signs * self.engine.native.decision_of(batch, at)
        missed = (signs != 0) & (margins < 1 - GROSS)
        counts, most = np.count_nonzero(missed, axis=0), np.count_nonzero(signs, axis=0)
        return bool((counts > np.maximum(MISSED * most, FEW_MISSED)).any())

    def _stored(self, feed: Feed, rows: Ints, chooser: LookAhead) -> int:
        """Judge rows again; return how many of them became members."""
        native = self.engine.native
        before = native.holds(feed.ids[rows])
        for batch, at in feed.cuts(rows):
            batch.drop_weights()
            self._learn(batch, at, chooser, progress=None)
        return int(np.count_nonzero(native.holds(feed.ids[rows]) > before))

    def _parts(self, rows: Ints) -> Iterator[Ints]:
        """Cut rows where finishing is due."""
        if self.finish_every is None:
            yield rows
            return
        start = 0
        while start < len(rows):
            end = start + max(self.finish_every - self.engine.native.since_finish, 1)
            yield rows[start:end]
            start = end

    def _learn(
        self, batch: Batch, rows: Ints, chooser: EveryRow, progress: Progress | None
    ) -> None:
        """Look at rows of a batch, a slice of time after the other."""
        engine = self.engine
        chosen = chooser.choose(engine, batch, rows)
        done = 0
        while done < len(chosen):
            count = chooser.learn(engine, batch, chosen[done:])
            if engine.native.beyond:
                chooser.to_double(engine)
            done += count
            if progress is not None:
                progress.learned(count, engine.native.size, engine.delta)
        passed_over = len(rows) - len(chosen)
        if passed_over:
            engine.native.count_since_finish(engine.native.since_finish + passed_over)
        if passed_over and progress is not None:
            progress.learned(passed_over, engine.native.size, engine.delta)

    def _finish_is_due(self) -> bool:
        done = self.engine.native.since_finish
        return self.finish_every is not None and done >= self.finish_every

    def _finish(self, progress: Progress | None) -> None:
        native = self.engine.native
        native.count_since_finish(0)
        delta = self.engine.delta if progress is not None else 0.0
        try:
            while not native.finish(self.tol, SLICE_SECONDS):
                if progress is not None:
                    progress.finishing(delta)
        finally:
            native.end_finish()
