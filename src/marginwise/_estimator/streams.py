"""How rows reach a classifier: orders of arrays, selection, and sources read a chunk at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from marginwise._arrays import Ints, spread_rows, take_rows
from marginwise._engine.scores import Scores
from marginwise._estimator.base import KernelModel, Labels
from marginwise._estimator.exclusive import alone_once
from marginwise._params import Rule, either, integer, is_real, none, one_of
from marginwise._training.checkpoint import Callback, Checkpoint, Course, Moment, Run, stage_ends
from marginwise._training.feeds import ArrayFeed, Source, SourceFeed, check_source
from marginwise._training.loop import (
    Chooser,
    EveryRow,
    Pools,
    Sifted,
    Step,
    order_steps,
    run_steps,
    search_steps,
)
from marginwise._training.selection import FullSearch, Passes
from marginwise._training.sift import Sieve, Tally

SAMPLE = 2000  # rows of a source that gamma and precision are chosen from

# Of estimators that may choose the rows they learn.
SELECTION_RULES: dict[str, Rule] = {
    "selection": one_of("random", "gradient", "active", "autoactive"),
    "pool_size": either(none(), integer(1)),
}


class StreamLearner(KernelModel):
    """Base of the classifiers, with the ways by which they are given rows to learn."""

    classes_: NDArray[Any]
    epochs: int
    shuffle: bool
    pool_size: Any  # int, or None for a full search
    random_state: int | np.random.RandomState | None
    _seeds_per_class = 0  # examples of each class that open a fit

    # -- sources -------------------------------------------------------------------------------

    @alone_once
    def learn_from(
        self,
        source: Source,
        classes: ArrayLike | None = None,
        *,
        sift: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_minutes: float = 10.0,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from a source of examples, which is read a chunk at a time.

        A new model learns as `fit` does, without the few rows of each class that open a fit. One
        that exists continues, and takes the rows as new ones.

        A source may have `stages`, ids at which the stages of learning end: its rows are then taken
        stage by stage, and the model is finished after each, if `finish_at_end`. With stages,
        sifting, a checkpoint or a callback rows come in chunks of 16,384; pools of selection end
        with their chunk, and `finish_every` is judged after each.

        Parameters
        ----------
        source
            ``len(source)`` rows; ``source.read(ids)`` returns features and labels of some of them.
        classes
            All labels that may come; by default ``source.classes``. A model that exists knows.
        sift
            Where given, rows are judged by the model as it is when their chunk begins, and those
            that are far from every margin are passed over. A coarse model tells most of them; it
            may hide this share of the rows within a margin, which makes sifting an approximation. 0
            asks the whole model. None judges each row by the model of its moment. Rows that come
            before a class can judge any are learned.
        checkpoint
            A file from which a run that was stopped continues. If it exists, it must be of the same
            run: the same parameters and the same source. If it cannot be written, learning
            continues with a warning; if the last one cannot, an OSError is raised and the model is
            kept.
        checkpoint_minutes
            Minutes between two writings of the file.
        callback
            Called with a copy of the model as it is and a `Moment` after each chunk, and when a run
            is resumed. If it returns True the run ends, and the model keeps what it has learned.
        """
        draft = self._draft()
        staged = draft._check_source(source, sift, checkpoint_minutes)
        draft._begin_run(source, classes)
        self._step_aside()
        error = None
        if sift is not None or checkpoint is not None or callback is not None or staged:
            error = draft._go_through(source, sift, checkpoint, checkpoint_minutes, callback)
        else:
            draft._learn_source(source)
        draft._report()
        draft._warn_if_far()
        self._take(draft)
        if error is not None:  # of the last checkpoint, without which the model is still good
            raise error
        return self

    def _check_source(self, source: Source, sift: float | None, minutes: float) -> bool:
        """Check the arguments of `learn_from`; return whether the source has stages."""
        self._check_params()
        if self._selection != "random" and self.pool_size is None:
            raise ValueError(
                "pool_size=None searches all rows for each one that is learned, which needs "
                "them in memory: use fit, or a pool_size."
            )
        check_source(source)
        if len(source) == 0:
            raise ValueError("the source is empty.")
        self._check_run(sift, minutes)
        return len(stage_ends(source)) > 1

    def _begin_run(self, source: Source, classes: ArrayLike | None) -> None:
        """Check the classes, and make a engine where there is none."""
        if hasattr(self, "_engine"):
            self._check_classes(classes, first=False)
            return
        named = getattr(source, "classes", None) if classes is None else classes
        if named is None:
            raise ValueError(
                "learn_from needs all labels that may come: give them as classes, or let "
                "the source name them in source.classes."
            )
        self._start(source.read(spread_rows(len(source), SAMPLE))[0], named)

    def _check_run(self, sift: float | None, minutes: float) -> None:
        if sift is not None and not (is_real(sift) and 0 <= sift < 1):
            raise ValueError(f"sift must be None or a number of at least 0, below 1, got {sift!r}.")
        if sift is not None and self._function() is not None:
            raise ValueError("sift needs one of marginwise's own kernels.")
        if sift is not None and not hasattr(self, "selection"):
            raise ValueError(f"{type(self).__name__} learns all rows, so that there is no sifting.")
        if not is_real(minutes) or minutes < 0:
            raise ValueError(f"checkpoint_minutes must be a number of at least 0, got {minutes!r}.")

    def _learn_source(self, source: Source) -> None:
        """Learn from a source in passes over all its rows."""
        n, rng = len(source), check_random_state(self.random_state)
        feed = SourceFeed(source, self._read_batch, self._engine.next_id)
        self._engine.reserve_ids(self._engine.next_id + n)
        if self._selection == "random":
            orders = (self._plain_order(n, rng) for _ in range(self.epochs))
            self._learn_orders(feed, orders)
        else:
            self._choose(feed, rng)

    def _go_through(
        self,
        source: Source,
        sift: float | None,
        checkpoint: str | os.PathLike[str] | None,
        minutes: float,
        callback: Callback | None,
    ) -> OSError | None:
        """Learn from a source chunk by chunk; return an error if the last checkpoint failed."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        pool_size = getattr(self, "pool_size", 1)
        sieve = None if sift is None else Sieve(self._selection, pool_size, float(sift), seed)
        course = error = None
        if checkpoint is not None:
            file = Checkpoint(checkpoint, minutes, self, source)
            course = file.read(sieve)
        if course is None:
            course = Course(seed, self._engine.next_id)
            self._engine.reserve_ids(course.first + len(source))
        elif sieve is not None:
            sieve.seed = course.seed
        run = Run(source, self.epochs, self.shuffle, course)
        feed = SourceFeed(source, self._read_batch, course.first, chunk=len(source))

        def report() -> bool:
            if callback is None:
                return False
            moment = Moment(
                run.examples, course.seconds, replace(sieve.tally) if sieve else Tally()
            )
            return callback(self._snapshot(), moment) is True

        def after(step: Step) -> bool:
            nonlocal error
            run.pass_chunk(len(step.rows))
            if checkpoint is not None and (file.due or run.left == 0):
                error = file.write(course, sieve, last=run.left == 0)
            return report()

        if run.examples > 0 and report():
            return None
        self._trainer.train(
            feed,
            run_steps(run.chunks(), finish=self._finishes),
            self._chooser(sieve, feed),
            total=run.examples + run.left,
            done=run.examples,
            in_chunks=True,
            after=after,
        )
        return error

    def _chooser(self, sieve: Sieve | None, feed: SourceFeed) -> Chooser:
        """Return what decides which rows of a chunk are learned."""
        if sieve is not None:
            return Sifted(sieve, feed)
        return EveryRow() if self._selection == "random" else Pools(self._selection, self.pool_size)

    def _snapshot(self) -> Self:
        """Return a copy of the model as it is; what is shown to a callback."""
        copy = self._draft()
        copy._step_aside()
        return copy

    # -- selection and orders ------------------------------------------------------------------

    @property
    def _selection(self) -> str:
        """How `fit` chooses the rows to learn."""
        return "random"

    def _learn_orders(self, feed: ArrayFeed | SourceFeed, orders: Iterable[Ints]) -> None:
        """Learn all rows, epoch by epoch."""
        steps = order_steps(orders, finish=self._finishes)
        self._trainer.train(feed, steps, EveryRow(), total=len(feed.ids) * self.epochs)

    def _choose(self, feed: ArrayFeed | SourceFeed, rng: np.random.RandomState) -> None:
        """Make passes over the rows, learning those that selection chooses."""
        passes = Passes(feed.ids, self._engine.plan.problems, self.epochs, self._chosen())
        orders = passes.orders(lambda n: self._plain_order(n, rng), self._chosen)
        self._trainer.train(
            feed,
            order_steps(orders, finish=self._finishes),
            Pools(self._selection, self.pool_size, passes.seen),
            total=len(feed.ids) * self.epochs,
        )

    def _chosen(self) -> tuple[int, int]:
        """Return how many rows selection has chosen so far, and how many rows changed the model."""
        counters = self._engine.counters
        return counters["chosen"], counters["process"]

    def _search(self, feed: ArrayFeed, X: Any, labels: Labels, rng: np.random.RandomState) -> None:
        """Learn, again and again, the best of all rows, until none is left that would matter."""
        engine = self._engine
        rows = self._augmented(X, feed.ids)

        def find(ids: Ints) -> Any:
            return None if engine.function else take_rows(rows, np.searchsorted(feed.ids, ids))

        scores = Scores(engine, feed.batch, find)
        search = FullSearch(
            self._selection,
            engine.signs(labels),
            self._plain_order(len(labels), rng),
            slack=engine.plan.settings.get("tol", 0.0),
        )
        seen = np.zeros((engine.plan.problems, engine.next_id), dtype=np.uint8)
        found = search.rows(scores.values, lambda: engine.deltas)
        self._trainer.train(
            feed,
            search_steps(found, finish=self._finishes),
            Pools("active", 1, seen),  # pools of the one row that was found
            total=len(feed.ids),
        )

    def _epoch_order(self, labels: Labels, rng: np.random.RandomState) -> Ints:
        """Return an order of the rows that opens with a few of each class."""
        n = len(labels)
        order = rng.permutation(n) if self.shuffle else np.arange(n)
        seeds = np.zeros(n, dtype=bool)
        for label in range(len(self.classes_)):
            seeds[np.flatnonzero(labels[order] == label)[: self._seeds_per_class]] = True
        return np.concatenate([order[seeds], order[~seeds]]).astype(np.int64)

    def _plain_order(self, n: int, rng: np.random.RandomState) -> Ints:
        order = rng.permutation(n) if self.shuffle else np.arange(n)
        return order.astype(np.int64)

    # -- what a subclass knows -----------------------------------------------------------------

    def _start(self, X: Any, classes: ArrayLike | None) -> None:
        """Choose classes, gamma and precision from unlabelled rows, before anything is learned."""
        raise NotImplementedError

    def _check_classes(self, classes: ArrayLike | None, first: bool) -> None:
        """Raise unless these are the classes of the model, or make them so."""
        raise NotImplementedError

    def _read_batch(self, X: Any, y: Any, ids: Ints) -> tuple[Any, Labels]:
        """Check what a source returned for these ids; return a batch, and the labels as numbers."""
        raise NotImplementedError

    def _warn_if_far(self) -> None:
        """Warn of a model that is far from the solution, where this can be known."""
