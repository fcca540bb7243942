"""Training from data sources that are read in chunks, and from pools."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import (
    Rule,
    check_arguments,
    check_params,
    either,
    integer,
    non_negative,
    none,
    one_of,
    take_rows,
)
from marginwise._core import Batch
from marginwise._estimator.base import KernelModel, on_draft
from marginwise._training.checkpoint import Checkpoint, Course
from marginwise._training.loop import (
    READ,
    ArrayFeed,
    ChunkFeed,
    EveryRow,
    LookAheadInChunks,
    Pools,
    Sifted,
    SourceFeed,
)
from marginwise._training.runs import Callback, Moment, Run
from marginwise._training.sift import Sieve, Tally
from marginwise._training.sources import (
    Source,
    Stream,
    block_of,
    check_source,
    is_stream,
    sample_rows,
)

SAMPLE = 2000  # rows of a source from which gamma and precision are determined
# Rules of the parameters of estimators that can select rows.
SELECTION_RULES: dict[str, Rule] = {
    "selection": one_of("random", "gradient", "active", "autoactive"),
    "pool_size": either(none(), integer(1)),
}
LABEL_FREE = ("active", "autoactive")  # selection strategies that do not use labels

_RUN_RULES: dict[str, Rule] = {
    "sift": either(none(), non_negative(below=1)),
    "checkpoint_minutes": non_negative(),
}


@dataclass(frozen=True)
class RunArguments:
    """Arguments of `learn_from` other than the source and its classes.

    Parameters
    ----------
    sift, checkpoint, minutes, callback, note
        The arguments of `learn_from`.
    """

    sift: float | None
    checkpoint: str | os.PathLike[str] | None
    minutes: float
    callback: Callback | None
    note: Mapping[str, Any] | None

    @property
    def is_watched(self) -> bool:
        """Whether the arguments require processing of the source in chunks."""
        asked = (self.sift, self.checkpoint, self.callback)
        return any(argument is not None for argument in asked)


class PoolFeed(ArrayFeed):
    """Pool of rows that is converted once and labelled row by row.

    Parameters
    ----------
    batch : Batch
        The rows, without labels.
    ids : ndarray of int64
        Ids of the rows, ascending.
    """

    def __init__(self, batch: Batch, ids: Ints) -> None:
        super().__init__(batch, ids)
        self._labels = np.zeros(len(ids), dtype=np.int32)
        self._costs = np.ones(len(ids))
        self._weights = np.ones(len(ids))
        batch.label(self._labels, self._costs, ids)  # the batch refers to these arrays
        batch.weigh(self._weights)

    def label(self, rows: Ints, labels: Labels, costs: Float) -> None:
        """Set the labels of rows."""
        self._labels[rows] = labels
        self._costs[rows] = costs


class StreamLearner(KernelModel):
    """Base class of the classifiers with `learn_from`."""

    classes_: NDArray[Any]
    random_state: int | np.random.RandomState | None
    epochs: Any  # a number, or "converge"
    shuffle: bool
    pool_size: Any  # an integer, or None for a full search, if the estimator selects rows
    _seeds_per_class = 0  # examples of each class at the start of an epoch of `fit`

    # -- sources -------------------------------------------------------------------------------

    def learn_from(
        self,
        source: Source | Stream,
        classes: ArrayLike | None = None,
        *,
        sift: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_minutes: float = 10.0,
        callback: Callback | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn from a data source or stream that is read in chunks.

        A new model is trained as by `fit`, except that training does not start with a few rows of
        each class. Training of an existing model continues, and all rows count as new rows.

        A source may define ``source.stages``, the ids at which training stages end. Rows are then
        learned stage by stage, and `finish` is called after each stage if `finish_at_end` is set.
        With stages, blocks, `sift`, a checkpoint or a callback, rows are read in chunks of 16,384.
        Selection pools do not span several chunks, and `finish_every` is evaluated after each
        chunk.

        A source that is stored in blocks, such as a file, defines the number of rows per block as
        ``source.block``. With ``shuffle=True``, blocks are visited in random order, or in file
        order if ``source.random_access`` is False, and rows are shuffled within windows of 16,384
        rows, or of one block if it is larger.

        A stream has no length. Its batches are learned in order, as by `partial_fit`, and `finish`
        is called at the end if `finish_at_end` is set.

        Parameters
        ----------
        source : object
            Data source or stream. For a data source, ``len(source)`` is the number of rows and
            ``source.read(ids)`` returns the features and labels of the given rows. For a stream,
            ``source.chunks()`` yields batches of features and labels.
            :func:`marginwise.data.open_source` creates sources from files and other objects.
        classes : array-like of shape (n_classes,), default=None
            All labels that can occur. By default, ``source.classes``. Not needed for a fitted
            model.
        sift : float, default=None
            If given, the model at the start of a chunk evaluates all rows of the chunk, and rows
            far from every margin are skipped. A coarse approximation of the model finds most of
            these rows. `sift` is the fraction of rows inside a margin that the approximation may
            miss; 0 uses the full model. Rows are always learned as long as the model has too few
            examples of a class. None evaluates each row with the model at the time it is visited.
        checkpoint : str or path-like, default=None
            File from which an interrupted run is resumed. An existing file must belong to the same
            run, with the same parameters and the same source. If the file cannot be written,
            training continues with a warning. If the last write fails, OSError is raised after the
            model is updated.
        checkpoint_minutes : float, default=10.0
            Minutes between writes of the checkpoint.
        callback : callable, default=None
            Function called as ``callback(model, moment)`` with a copy of the model and its progress
            after each chunk and when a run is resumed. If it returns True, training stops after
            writing the checkpoint, from which it can be resumed, and the model keeps what it has
            learned.
        note : dict, default=None
            Strings and numbers to store in the checkpoint, such as the arguments of a script.

        Returns
        -------
        self : object
            The updated estimator.
        """
        failures: list[OSError] = []
        run = RunArguments(sift, checkpoint, checkpoint_minutes, callback, note)
        self._learn_from(source, classes, run, failures)
        if failures:  # the last checkpoint could not be written, but the model is complete
            raise failures[0]
        return self

    @on_draft
    def _learn_from(
        self,
        source: Any,
        classes: ArrayLike | None,
        run: RunArguments,
        failures: list[OSError],
    ) -> Self:
        check_params(self)
        if self.epochs == "converge":
            raise ValueError(
                "epochs='converge' is not supported by learn_from, which makes a fixed number of "
                "passes. Set epochs to an integer, or use fit."
            )
        if getattr(self, "stop", None) is not None:
            raise ValueError(
                "stop is not supported by learn_from. Set stop=None, or pass a callback that "
                "returns True to stop training."
            )
        self._check_run(run)
        if is_stream(source):
            self._learn_stream(source, classes, run)
            return self
        ends = check_source(source)
        self._begin_run(source, ends[-1], classes)
        self._step_aside()
        if run.is_watched or len(ends) > 1 or block_of(source) is not None:
            failures += self._learn_chunks(source, ends, run)
        else:
            self._learn_source(source, ends[-1])
        self._warn_if_far()
        return self

    def _check_run(self, run: RunArguments) -> None:
        """Validate the other arguments of `learn_from`."""
        sift = run.sift
        check_arguments(_RUN_RULES, sift=sift, checkpoint_minutes=run.minutes)
        rule, size = self._selection()
        if rule != "random" and size is None:
            raise ValueError(
                "pool_size=None compares all rows for each selection, which requires all rows in "
                "memory and is not supported by learn_from. Set pool_size to an integer, or use "
                "fit."
            )
        if rule in LABEL_FREE and "_engine" in self.__dict__ and self._engine.plan.pairs:
            raise ValueError(
                f"selection={rule!r} chooses rows without looking at labels, but this model "
                "separates classes in pairs, and needs the label of a row to know its pairs. Start "
                "it with multiclass='ovr'."
            )
        if sift is not None and (callable(self.kernel) or self.kernel == "precomputed"):
            raise ValueError(
                "sift is not supported with callable or precomputed kernels. Set sift=None, or "
                "use a built-in kernel."
            )
        if sift is not None and "selection" not in self._rules:
            raise ValueError(
                f"{type(self).__name__} does not support sift, because it learns every row. Set "
                "sift=None, or use an estimator with the parameter selection."
            )

    def _begin_run(self, source: Source, n: int, classes: ArrayLike | None) -> None:
        """Validate the classes, and create an engine if there is none."""
        if hasattr(self, "_engine"):
            self._check_classes(classes, first=False)
            return
        named = getattr(source, "classes", None) if classes is None else classes
        if named is None:
            raise ValueError(
                "learn_from requires all labels that can occur, but neither classes nor "
                "source.classes is given. Pass classes."
            )
        self._start(source.read(sample_rows(source, n, SAMPLE))[0], named)

    def _selection(self) -> tuple[str, Any]:
        """Return the selection strategy and the pool size."""
        return getattr(self, "selection", "random"), getattr(self, "pool_size", 1)

    def _learn_source(self, source: Source, n: int) -> None:
        """Learn from a source in passes over all its rows."""
        rng, native = check_random_state(self.random_state), self._engine.native
        ids = native.next_id + np.arange(n, dtype=np.int64)
        native.reserve_ids(native.next_id + n)
        feed = SourceFeed(source, ids, self._read_batch, chunk=READ)
        rule, size = self._selection()
        if rule == "random":
            self._trainer.learn_epochs(feed, rng)
        else:
            self._trainer.learn_passes(feed, rule, size, rng)

    def _learn_chunks(self, source: Source, ends: list[int], run: RunArguments) -> list[OSError]:
        """Learn from a source chunk by chunk; return the error if the last checkpoint failed."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rule, size = self._selection()
        sieve = None if run.sift is None else Sieve(rule, size, float(run.sift), seed)
        file = course = None
        if run.checkpoint is not None:
            file = Checkpoint(run.checkpoint, run.minutes, self, source, ends, run.note)
            course = file.read(sieve)
        if course is None:
            course = Course(seed, self._engine.native.next_id)
            self._engine.native.reserve_ids(course.first + ends[-1])
        elif sieve is not None:
            sieve.seed = course.seed
        feed = ChunkFeed(source, course.first, self._read_batch)
        chooser: EveryRow = EveryRow() if rule == "random" else Pools(rule, size)
        if sieve is not None:
            chooser = Sifted(sieve, feed)
        elif rule == "random" and block_of(source) is not None:
            chooser = LookAheadInChunks(feed)
        trainer = self._trainer
        report = None if run.callback is None else partial(self._report_to, run.callback)
        steps = Run(feed, ends, trainer, course, file, sieve, report)
        trainer.train(
            feed, steps.steps(), chooser, total=steps.total, done=steps.done, in_chunks=True
        )
        return [] if steps.failure is None else [steps.failure]

    def _report_to(self, callback: Callback, moment: Moment) -> bool:
        """Call the callback after a chunk; return whether to stop."""
        return callback(self._snapshot(), moment) is True

    def _learn_stream(self, stream: Stream, classes: ArrayLike | None, run: RunArguments) -> None:
        """Learn a stream batch by batch."""
        if run.sift is not None or run.checkpoint is not None or self.epochs > 1:
            raise ValueError(
                "sift, checkpoint and epochs other than 1 are not supported with a stream, which "
                "can be read only once. Write the rows to a file and open it with "
                "marginwise.data.open_source."
            )
        classes = getattr(stream, "classes", None) if classes is None else classes
        began, rows = time.monotonic(), 0
        for X, y in stream.chunks():
            self._partial_fit(X, y, classes if rows == 0 else None)
            rows += len(y)
            moment = Moment(rows, time.monotonic() - began, Tally())
            if run.callback is not None and self._report_to(run.callback, moment):
                break
        if rows == 0:
            raise ValueError("the stream is empty; expected at least one row.")
        if getattr(self, "finish_at_end", False):
            self._settle()
        self._warn_if_far()

    def _snapshot(self) -> Self:
        """Return a copy of the model for a callback."""
        copy = self._copy()
        copy._engine = copy._engine.clone()
        return copy

    # -- pools ---------------------------------------------------------------------------------

    @on_draft
    def _teach(self, X: Any, y: NDArray[Any], names: Ints) -> Self:
        """Learn validated rows with an existing model."""
        labels = self._numbers(y.tolist())
        batch = self._labelled(X, labels, self._penalties()[labels], names)
        batch.weigh(np.ones(len(names)))  # so that values for calibration are recorded
        self._learn_rows(batch, names)
        return self

    @on_draft
    def _teach_from(
        self, pool: PoolFeed, parts: Sequence[tuple[Ints, NDArray[Any]]], counts: list[int | None]
    ) -> Self:
        """Learn rows of a pool, part by part, and append the support vectors after each part."""
        costs, trainer = self._engine.costs(self._penalties()), self._trainer
        self._engine.native.reserve_ids(int(pool.ids[-1]) + 1)
        self._step_aside()
        for rows, y in parts:
            labels = self._numbers(y.tolist())
            pool.label(rows, labels, costs[labels])
            trainer.learn_part(pool, rows)
            counts.append(len(self._engine.native.coefficients()[0]))
        return self

    def _finder(self, X: Any, ids: Ints) -> Callable[[Ints], Any]:
        """Return a function from ids to features, or None for a callable kernel."""
        rows = self._augmented(X, ids)
        unknown = self._engine.function is not None
        return lambda some: None if unknown else take_rows(rows, np.searchsorted(ids, some))

    # -- methods that subclasses implement -----------------------------------------------------

    def _partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, ids: Any = None
    ) -> Self:
        """Learn more rows in the given order."""
        raise NotImplementedError

    def _start(self, X: Any, classes: ArrayLike | None) -> None:
        """Determine classes, gamma and precision before training starts."""
        raise NotImplementedError

    def _read_batch(self, X: Any, y: Any, ids: Ints) -> tuple[Batch, Labels]:
        """Validate the rows returned by a source; return a batch and encoded labels."""
        raise NotImplementedError

    def _check_classes(self, classes: ArrayLike | None, first: bool) -> None:
        """Set the classes of the model, or raise if they differ."""
        raise NotImplementedError

    def _numbers(self, labels: Any) -> Labels:
        """Encode known labels."""
        raise NotImplementedError

    def _penalties(self) -> Float:
        """Return the penalty of each class."""
        raise NotImplementedError

    def _warn_if_far(self) -> None:
        """Warn if the model is known to be far from the solution."""
