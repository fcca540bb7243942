"""The training loop. Every training method is a feed, steps over it, and a chooser of rows.

method                 steps                                            chosen rows
partial_fit            the rows in their order                          every row
fit                    one random order of the rows per epoch           every row
fit, few rows          one step: all rows become members and are solved every row
fit with selection     passes over the remaining rows                   the best of each pool
full search            the best of all rows, one at a time              that row
learn_from             chunks of a source, stage by stage               every row, or sifted rows
finish                 a step without rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, Labels, spread_rows
from marginwise._core import Batch
from marginwise._engine.engine import COUNTERS, Engine
from marginwise._training.sift import Sieve
from marginwise._training.sources import Source
from marginwise.progress import Progress

READ = 4096  # rows of a source that are in memory at a time
SLICE_SECONDS = 0.25  # between checks for Ctrl-C and updates of the progress bar
# Selection continues until each problem has learned at least this many rows, and makes more passes
# over small sets to get there.
LEAST_CHOSEN = 1000
# After the last epoch, rows that are not members are evaluated again, at least AUDITED at a time,
# while more than a fraction WORTH_IT of them become members.
AUDITED, WORTH_IT, MOST_LOOKS = 1024, 0.1, 20
# After finishing, rows that are not members are evaluated again if they miss a hinge loss of more
# than MISSED each, estimated from a sample; less if there are fewer than MANY_ROWS rows or if fewer
# than a fraction MANY_MEMBERS of them are members, down to LEAST_SHARE of it. Rows of a rare class
# count up to 1 / RARE times.
LEAST_AUDITED, LEAST_SAMPLE, MISSED, RARE = 512, 16, 0.008, 0.2
MANY_ROWS, MANY_MEMBERS, LEAST_SHARE = 32_768, 0.25, 0.3
ROUGH = 0.05  # smaller losses are not counted, because a rough look does not admit their rows
HELD = 1e29  # larger distances are those of rows that all problems held
# Problems with at most this many rows (first value: a single problem, second value: several) are
# solved as a whole. For larger problems, windows of rows are faster, in particular if problems
# share kernel values.
FEW_ROWS = 4096, 2560
MOST_PLACES = 1 << 21  # over all problems
WIDE = 256  # more features are too expensive to copy for every call of a kernel function
CHOSEN, PROCESSED = COUNTERS.index("chosen"), COUNTERS.index("process")
FORESEEN = 256  # rows of a sifted chunk whose decision values are recorded
NOTHING: Ints = np.empty(0, dtype=np.int64)


class Feed(Protocol):
    """Access to the examples of a training call."""

    ids: Ints  # of all rows, ascending

    def cuts(self, order: Ints) -> Iterable[tuple[Batch, Ints]]:
        """Return the batches that contain the rows of an order, and their places in the batches."""


@dataclass
class ArrayFeed:
    """Examples in memory, as a single batch.

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
        """Return the batch and the unchanged order."""
        return [(self.batch, order)]


@dataclass
class SourceFeed:
    """Examples of a source, read in the order of training.

    Parameters
    ----------
    source : Source
        The source.
    ids : ndarray of int64
        Ids of its rows.
    label : callable
        Returns a labelled batch, given features, labels and ids; encodes the labels as integers.
    chunk : int
        Number of rows to read at a time; it does not affect the model.
    """

    source: Source
    ids: Ints
    label: Callable[[Any, Any, Ints], tuple[Batch, Labels]]
    chunk: int

    def cuts(self, order: Ints) -> Iterator[tuple[Batch, Ints]]:
        """Yield the batches that contain the rows of an order, and their places in the batches."""
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
        Id of its row 0; the ids of the other rows follow.
    label : callable
        Returns a labelled batch, given features, labels and ids; encodes the labels as integers.
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
        """Read a chunk of rows of the source; return the places of its rows."""
        X, y = self.source.read(rows)
        self.ids = self._first + rows
        self.batch, self.labels = self._label(X, y, self.ids)
        return np.arange(len(rows), dtype=np.int64)


@dataclass(frozen=True)
class Step:
    """Rows of a feed to visit in order, and whether to finish the model afterwards.

    With `look_again`, rows that are not members are then evaluated again, those nearest to a
    violation first, while many of them become members. Rows that the model has learned before are
    not `fresh`: their decision values are not representative of new rows.
    """

    rows: Ints
    finish: bool = False
    look_again: bool = False
    fresh: bool = True


class EveryRow:
    """Chooser that learns every row. Its subclasses learn only some of the rows."""

    def begin(self, engine: Engine, ids: Ints) -> None:
        """Prepare for a step over the rows with these ids."""

    def choose(self, engine: Engine, batch: Batch, rows: Ints) -> Ints:
        """Return which of the given rows of a batch to visit."""
        return rows

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> int:
        """Process rows of a batch for a time slice; return the number of processed rows."""
        return engine.native.learn(batch, rows, SLICE_SECONDS)

    def to_double(self, engine: Engine) -> None:
        """Switch the model to double precision in the middle of a step."""
        engine.to_double()

    def end(self, engine: Engine) -> None:
        """Complete the step."""

    def rest(self, engine: Engine) -> None:
        """Return the model to the state in which it can be used for other things than learning."""


class LookAhead(EveryRow):
    """Learns window by window: in each window the violating rows, the worst ones first.

    Parameters
    ----------
    labels : ndarray of int32
        Classes of the rows of the batch.
    whole : bool, default=False
        Whether to solve the problems of a new model as a whole, without windows, if possible.
    """

    def __init__(self, labels: Labels, whole: bool = False) -> None:
        self.labels = labels
        # Distance of each row from a violation when it was last evaluated.
        self.distance = np.full((1, len(labels)), np.inf, dtype=np.float32)
        self.roughly = True  # the first pass skips small violations
        self.whole = whole

    def adopt(self, engine: Engine, batch: Batch, rows: Ints) -> bool:
        """Make all rows members, to be solved by finishing; return whether that was possible."""
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
        """Return the rows that were evaluated; none if the algorithm does not look ahead."""
        was_judged: NDArray[np.bool_] = np.isfinite(self.distance[0, rows])
        return rows[was_judged]

    def nearest(self, engine: Engine, ids: Ints, rows: Ints) -> Ints:
        """Return rows that are not members of all problems, those nearest to a violation first."""
        if engine.plan.problems == 1:  # else the distance excludes problems that contain the row
            rows = rows[engine.native.holds(ids[rows]) == 0]
        return rows[np.argsort(self.distance[0, rows], kind="stable")]

    def promising(self, engine: Engine, feed: Feed, rows: Ints) -> Ints:
        """Return the rows to evaluate again, those nearest to a violation first.

        The hinge loss that problems miss because they do not hold a row is estimated from a sample
        of each stratum. Nearer rows of a stratum miss more, so rows are returned up to the distance
        where they miss too little; none if the mean over all these rows is small.
        """
        rows = self.nearest(engine, feed.ids, rows)
        strata = self._strata(rows)
        samples = [stratum[_sample(len(stratum), len(rows))] for stratum in strata]
        loss = self._missed_loss(engine, feed, np.concatenate([NOTHING, *samples]))
        losses = np.split(loss, np.cumsum([len(sample) for sample in samples]))
        pairs = list(zip(strata, losses, strict=False))  # the last part is empty
        enough = worth_a_look(len(self.labels), engine.native.size)
        if sum(loss.mean() * len(part) for part, loss in pairs) <= enough * len(rows):
            return NOTHING
        chosen = np.concatenate([_worst(*pair, enough) for pair in pairs])
        return chosen[np.argsort(self.distance[0, chosen], kind="stable")]

    def _strata(self, rows: Ints) -> list[Ints]:
        """Divide rows by class, and by whether all problems held them when last evaluated."""
        kind = 2 * self.labels[rows] + (self.distance[0, rows] > HELD)
        return [rows[kind == k] for k in np.unique(kind)]

    def _missed_loss(self, engine: Engine, feed: Feed, rows: Ints) -> Float:
        """Return the loss of rows in the problems that do not hold them, weighted by class."""
        none = np.empty((0, engine.plan.problems))
        losses = [engine.native.missed_loss(batch, at) for batch, at in feed.cuts(rows)]
        labels = self.labels[rows]
        loss = missed_by_row(np.concatenate([none, *losses]), engine.signs(labels))
        return loss * class_weights(np.bincount(self.labels))[labels]


def missed_by_row(loss: Float, signs: Float) -> Float:
    """Return the loss that counts for each row, given those in the problems that miss it.

    A loss in one of a row's n problems changes fewer predictions than in its only problem, but more
    than a fraction 1 / n, because the problems that miss a row are often the decisive ones.
    """
    counted: Float = np.where(loss < ROUGH, 0.0, loss).sum(axis=1)
    counted /= np.sqrt(np.count_nonzero(signs, axis=1))
    return counted


def class_weights(counts: Ints) -> Float:
    """Return the weight of a row of each class in a mean: 1, but more for rare classes."""
    frequency: Float = counts * len(counts) / counts.sum()
    weights: Float = 1 / np.clip(frequency, RARE, 1)
    return weights


def worth_a_look(rows: int, members: int) -> float:
    """Return the loss per row from which on rows are worth evaluating again.

    It is lower where a look takes little time: in a small set, or with few members.
    """
    size, share = rows / MANY_ROWS, members / (MANY_MEMBERS * rows)
    return float(MISSED * min(size, 1) * np.clip(share, LEAST_SHARE, 1))


def _sample(stratum: int, rows: int) -> Ints:
    """Return evenly spaced places in a stratum for a sample of all `rows`."""
    most = min(AUDITED, max(LEAST_AUDITED, rows // 16))
    return spread_rows(stratum, max(LEAST_SAMPLE, most * stratum // rows))


def _worst(stratum: Ints, loss: Float, enough: float) -> Ints:
    """Return the first rows of a stratum, up to where those of its sample miss too little."""
    excess = np.cumsum(loss - enough)
    count = int(excess.argmax()) + 1 if excess.max() > 0 else 0
    return stratum[: -(-count * len(stratum) // len(loss))]


class LookAheadInChunks(LookAhead):
    """Looks ahead within each chunk of a source, as `fit` does within its rows.

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
    """Return unset marks of which problem has learned which id."""
    return np.zeros((engine.plan.problems, int(ids.max()) + 1), dtype=np.uint8)


@dataclass
class Pools(EveryRow):
    """Learns the best row of each pool according to a selection rule.

    Parameters
    ----------
    rule : {"gradient", "active", "autoactive"}
        Selection rule.
    size : int
        Rows of a pool.
    seen : ndarray of shape (problems, ids), default=None
        Marks which problem has learned which id. By default, every step starts without marks.
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
        engine.native.end_pass()  # pools belong to the native model, which is replaced
        engine.to_double()
        engine.native.begin_pass(self.rule, self.size, self._marks)

    def end(self, engine: Engine) -> None:
        engine.native.end_pass()


@dataclass
class Sifted(EveryRow):
    """Learns the rows that a sieve selects, in the problems for which it selects them.

    Parameters
    ----------
    sieve : Sieve
        Evaluates the rows of a step with the model at the beginning of the step.
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
        """Record decision values of some of all rows; selected rows would be a biased sample."""
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
        Violation at which finishing stops.
    finish_at_end : bool, default=False
        Whether to finish the model after each epoch, pass or stage.
    finish_every : int, default=None
        Number of rows between additional calls of finish.
    epochs : int, default=1
        Number of passes over the rows.
    shuffle : bool, default=False
        Whether rows are visited in random order.
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
        """Learn a few rows in the order given, with little overhead if nothing else is due."""
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
            Their classes; required if `seeds` is not 0.
        seeds : int, default=0
            Number of examples of each class at the beginning of an epoch.
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
        """Make passes over the rows and learn the best row of each pool of `size` rows."""
        seen = _none_seen(self.engine, feed.ids)
        steps = self._passes(feed.ids, seen, rng)
        self.train(feed, steps, Pools(rule, size, seen), total=len(feed.ids) * self.epochs)

    def learn_again(self, feed: ArrayFeed, labels: Labels, rng: np.random.RandomState) -> None:
        """Learn rows that were learned before, in random order, and finish the model."""
        order = rng.permutation(len(feed.ids)).astype(np.int64)
        step = Step(order, finish=True, look_again=True)
        self.train(feed, [step], LookAhead(labels), total=len(order))

    def finish(self) -> None:
        """Finish the model without learning rows."""
        self.train(None, [Step(NOTHING, finish=True)], EveryRow(), total=0)

    def order(self, n: int, rng: np.random.RandomState) -> Ints:
        """Return an order of n rows."""
        order = rng.permutation(n) if self.shuffle else np.arange(n)
        return order.astype(np.int64)

    def orders(
        self, n: int, rng: np.random.RandomState, labels: Labels | None, seeds: int
    ) -> Iterator[Step]:
        """Yield an order of all rows for each epoch; `seeds` rows of each class come first."""
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

        They must have few rows, and no option may require an action between rows.
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
        """Yield passes over the rows that some problem has not learned.

        Passes end when a pass changes nothing, when no row is left, or after `epochs` passes if
        enough rows were learned.
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
        """Run the steps.

        Parameters
        ----------
        feed : Feed or None
            The rows; None for steps without rows.
        steps : iterable of Step
            The steps. A generator may inspect the model: the next step is requested only when the
            previous one is complete.
        chooser : EveryRow
            Decides which rows are learned.
        total : int
            Number of rows of all steps, for the progress bar.
        done : int, default=0
            Number of rows before the first step, for the progress bar.
        in_chunks : bool, default=False
            Whether `finish_every` is checked only after complete steps.
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
        """Solve problems with few rows like a batch solver; return whether that was possible.

        Later steps over the same rows have nothing left to do, because no row violates.
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
        """Evaluate rows that are not members again, while enough of them become members."""
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
        """Evaluate rows again while a sample shows that the model misses much of their loss.

        Rows were skipped according to an earlier state of the model. Since then, the model may have
        changed, in particular far from the most recent rows. No look follows one that stores no
        row, or if finishing stopped early: it would stop even earlier, and a warning follows.
        """
        rows = chooser.judged(step.rows)
        for _ in range(MOST_LOOKS if len(rows) else 0):
            if self.engine.native.unsolved:
                return
            again = chooser.promising(self.engine, feed, rows)
            if len(again) == 0:
                return
            chooser.roughly = True  # as in the first pass
            stored = self._stored(feed, again, chooser)
            if step.finish:
                self._finish(progress)
            chooser.rest(self.engine)
            if stored == 0:
                return

    def _stored(self, feed: Feed, rows: Ints, chooser: LookAhead) -> int:
        """Evaluate rows again; return how many of them became members."""
        native = self.engine.native
        before = native.holds(feed.ids[rows])
        for batch, at in feed.cuts(rows):
            batch.drop_weights()
            self._learn(batch, at, chooser, progress=None)
        return int(np.count_nonzero(native.holds(feed.ids[rows]) > before))

    def _parts(self, rows: Ints) -> Iterator[Ints]:
        """Divide rows at the points where finishing is due."""
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
        """Process rows of a batch in time slices."""
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
