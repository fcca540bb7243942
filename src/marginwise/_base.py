"""What all classifiers share: validation, labels, one-vs-rest, the stream, fitted attributes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from marginwise._feed import ArrayFeed, Bench, FullSearch, Passes, Source, SourceFeed
from marginwise._input import (
    Float,
    Ints,
    check_features,
    check_finite,
    check_ids,
    check_weights,
    spread_rows,
    take_rows,
)
from marginwise._model import KernelModel, Labels, Undo, scalar_or_array
from marginwise._params import (
    Rule,
    boolean,
    either,
    integer,
    is_real,
    none,
    one_of,
    positive,
    weights,
)
from marginwise._run import Callback, Checkpoint, Course, Moment, Run, stage_ends
from marginwise._scores import Scores
from marginwise._sift import Sieve, Tally
from marginwise.progress import Progress

SAMPLE = 2000  # rows of a source that settle gamma and precision

# Of estimators that may choose the rows they learn.
SELECTION_RULES: dict[str, Rule] = {
    "selection": one_of("random", "gradient", "active", "autoactive"),
    "pool_size": either(none(), integer(1)),
}


def _places(classes: NDArray[Any]) -> dict[Any, int]:
    return {label: k for k, label in enumerate(classes.tolist())}


class KernelClassifier(ClassifierMixin, KernelModel):  # type: ignore[misc]
    """Base of the classifiers that learn a stream of examples one at a time."""

    _seeds_per_class = 0  # examples of each class that open a fit

    _rules: ClassVar[dict[str, Rule]] = {
        **KernelModel._rules,
        "C": positive(),
        "epochs": integer(1),
        "class_weight": either(none(), weights()),
        "shuffle": boolean(),
    }

    # -- learning ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from nothing: passes over the rows, and finishing where the algorithm has it.

        Parameters
        ----------
        X
            Training rows: dense, CSR, a data frame, or the square matrix of kernel values where
            ``kernel="precomputed"``.
        y
            Their labels.
        sample_weight
            Scales C row by row; rows of weight zero are left out.
        """
        with Undo(self):
            X, y, weights, kept = self._check_fit(X, y, sample_weight)
            classes, places = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(
                    f"y holds the one class {classes[0]!r}; fit needs rows of two classes or more."
                )
            labels: Labels = places.astype(np.int32)
            self._set_classes(classes, y)
            self._machine = self._make_machine(X, weights, streaming=False)
            self._seen = int(kept[-1]) + 1
            self._since_finish = 0
            rng = check_random_state(self.random_state)
            feed = ArrayFeed(self._labelled(X, labels, weights * self._costs[labels], kept), kept)
            if self._selection == "random":
                orders = (self._epoch_order(labels, rng) for _ in range(self.epochs))
                self._stream(feed, orders, epochs=self.epochs, finish=self._finishes)
            elif self.pool_size is None:
                self._search(feed, X, labels, rng)
            else:
                self._choose(feed, rng)
        return self

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

        A new model learns as `fit` does, but for the few rows of each class that open a fit. One
        that exists goes on, and takes the rows as new ones.

        A source may have `stages`, ids at which the stages of learning end: its rows are then taken
        stage by stage, and the model is settled after each, where it finishes. With stages,
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
            A file to go on from where a run was stopped. If it exists, it must be of the same run:
            the same parameters and the same source.
        checkpoint_minutes
            Minutes between two writings of the file.
        callback
            Called with the model and a `Moment` after each chunk, and when a run is taken up again.
        """
        with Undo(self, part_read=True):
            self._check_params()
            if self._selection != "random" and self.pool_size is None:
                raise ValueError(
                    "pool_size=None searches all rows for each one that is learned, which needs "
                    "them in memory: use fit, or a pool_size."
                )
            n = len(source)
            if n == 0:
                raise ValueError("the source is empty.")
            staged = len(stage_ends(source)) > 1
            self._check_run(sift, checkpoint_minutes)
            rng = check_random_state(self.random_state)
            if hasattr(self, "_machine"):
                self._check_classes(classes, first=False)
            else:
                named = getattr(source, "classes", None) if classes is None else classes
                if named is None:
                    raise ValueError(
                        "learn_from needs all labels that may come: give them as classes, or let "
                        "the source name them in source.classes."
                    )
                self._start(source.read(spread_rows(n, SAMPLE))[0], named)
            if sift is not None or checkpoint is not None or callback is not None or staged:
                self._go_through(source, rng, sift, checkpoint, checkpoint_minutes, callback)
                return self
            feed = SourceFeed(source, self._read_batch, self._seen)
            self._seen += n
            if self._selection == "random":
                orders = (self._plain_order(n, rng) for _ in range(self.epochs))
                self._stream(feed, orders, epochs=self.epochs, finish=self._finishes)
            else:
                self._choose(feed, rng)
        return self

    def _check_run(self, sift: float | None, minutes: float) -> None:
        if sift is not None and not (is_real(sift) and 0 <= sift < 1):
            raise ValueError(f"sift must be None or a number of at least 0, below 1, got {sift!r}.")
        if sift is not None and self._function() is not None:
            raise ValueError("sift needs one of marginwise's own kernels.")
        if sift is not None and not hasattr(self, "selection"):
            raise ValueError(f"{type(self).__name__} learns all rows, so that there is no sifting.")
        if not is_real(minutes) or minutes < 0:
            raise ValueError(f"checkpoint_minutes must be a number of at least 0, got {minutes!r}.")

    def _go_through(
        self,
        source: Source,
        rng: np.random.RandomState,
        sift: float | None,
        checkpoint: str | os.PathLike[str] | None,
        minutes: float,
        callback: Callback | None,
    ) -> None:
        """Learn from a source chunk by chunk."""
        seed = int(rng.randint(2**31 - 1))
        pool_size = getattr(self, "pool_size", 1)
        sieve = None if sift is None else Sieve(self._selection, pool_size, float(sift), seed)
        course = None
        if checkpoint is not None:
            file = Checkpoint(checkpoint, minutes, self, source)
            course = file.read(sieve)
        if course is None:
            course = Course(seed, self._seen)
            self._seen += len(source)
        elif sieve is not None:
            sieve.seed = course.seed
        run = Run(source, self.epochs, self.shuffle, course)

        def tell() -> None:
            if callback is not None:
                tally = Tally() if sieve is None else replace(sieve.tally)
                callback(self, Moment(run.examples, course.seconds, tally))

        if run.examples > 0:
            tell()
        with Progress(run.examples + run.left, self.verbose, run.examples) as progress:
            for rows, ends in run.chunks():
                self._learn_chunk(source, rows, course.first, sieve, progress)
                self._since_finish += len(rows)
                due = self._finish_every is not None and self._since_finish >= self._finish_every
                if due or (ends and self._finishes):
                    self._finish(progress)
                run.pass_chunk(len(rows))
                if checkpoint is not None and (file.due or run.left == 0):
                    file.write(course, sieve)
                tell()

    def _learn_chunk(
        self, source: Source, rows: Ints, first: int, sieve: Sieve | None, progress: Progress
    ) -> None:
        """Learn the rows of a chunk that are worth it."""
        machine, choosing = self._machine, self._selection != "random"
        X, y = source.read(rows)
        batch = self._read_batch(X, y, first + rows)
        order = np.arange(len(rows), dtype=np.int64)
        if sieve is not None:
            wanted = sieve.choose(machine, batch, machine.signs(self._encode(np.asarray(y))))
            order = np.flatnonzero(wanted.any(axis=1)).astype(np.int64)
            learned = machine.learn_wanted(batch, order, wanted[order])
        elif choosing:
            seen = np.zeros((machine.plan.problems, first + int(rows.max()) + 1), dtype=np.uint8)
            machine.begin_pass(self._selection, self.pool_size, seen)
            learned = machine.select(batch, order)
        else:
            learned = machine.learn(batch, order)
        for count in learned:
            progress.learned(count, machine.size, machine.delta)
        progress.learned(len(rows) - len(order), machine.size, machine.delta)
        if choosing and sieve is None:
            machine.end_pass()
        self._keep_records()

    def _read_batch(self, X: Any, y: Any, ids: Ints) -> Any:
        """Check what a source returned for these ids."""
        X, y = check_features(self, X, y, reset=False)
        if X.shape[0] != len(ids):
            raise ValueError(f"the source returned {X.shape[0]} rows for {len(ids)} ids.")
        self._check_columns(X, ids)
        labels = self._encode(np.asarray(y))
        return self._labelled(X, labels, self._costs[labels], ids)

    def _start(self, X: Any, classes: ArrayLike | None) -> None:
        """Settle classes, gamma and precision from unlabelled rows, before anything is learned."""
        self._check_params()
        X, _ = check_features(self, X, reset=True)
        self._check_classes(classes, first=True)
        self._machine = self._make_machine(X, np.ones(X.shape[0]), streaming=False)

    def _check_fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> tuple[Any, NDArray[Any], Float, Ints]:
        """Check the input of `fit`; return the rows of positive weight and their numbers."""
        self._check_params()
        X, y = check_features(self, X, y, reset=True)
        check_classification_targets(y)
        weights = check_weights(sample_weight, X.shape[0])
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs the square matrix of kernel values between the "
                f"training rows, got {X.shape[0]} rows and {X.shape[1]} columns."
            )
        kept = np.flatnonzero(weights > 0).astype(np.int64)
        if len(kept) < len(weights):
            X, y, weights = take_rows(X, kept), y[kept], weights[kept]
        return X, np.asarray(y), weights, kept

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows, in the order given.

        Parameters
        ----------
        X
            Rows to learn. How a stream is cut into calls does not change the model, but for what
            the first call settles: ``gamma="scale"`` and the precision of kernels of x.y.
        y
            Their labels.
        classes
            All labels that may ever come; needed in the first call.
        sample_weight
            Scales C row by row; rows of weight zero are left out.
        ids
            Integers that name the rows in `support_` and `ids_`; by default, the running count.
        """
        with Undo(self):
            self._check_params()
            first = not hasattr(self, "_machine")
            X, y = check_features(self, X, y, reset=first)
            self._check_classes(classes, first)
            labels = self._encode(np.asarray(y))
            weights = check_weights(sample_weight, X.shape[0])
            names = given = check_ids(ids, X.shape[0], self._seen)
            self._check_columns(X, names)
            kept = np.flatnonzero(weights > 0)
            if len(kept) < len(weights):
                X, labels, names = take_rows(X, kept), labels[kept], names[kept]
            if first:
                self._machine = self._make_machine(X, weights[kept], streaming=True)
            self._count_on(given)
            self._learn_rows(X, labels, weights[kept] * self._costs[labels], names)
        return self

    def learn_one(self, x: ArrayLike, y: Any) -> Self:
        """Learn one dense row with a model that exists; only its shape and type are checked."""
        return self.learn_many(np.asarray(x)[np.newaxis], (y,))

    def learn_many(self, X: ArrayLike, y: Any) -> Self:
        """Learn dense rows with a model that exists; only their shape and type are checked."""
        machine: Any = self.__dict__.get("_machine")
        if machine is None:
            check_is_fitted(self)
        rows = np.asarray(X, order="C")
        if rows.dtype.char not in "fd":
            rows = rows.astype(np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_ or rows.shape[0] != len(y):
            raise ValueError(
                f"expected rows of {self.n_features_in_} features with a label each, got an array "
                f"of shape {rows.shape} and {len(y)} labels."
            )
        try:
            labels = self._numbers(y)
        except KeyError as error:
            raise ValueError(self._unknown(error.args)) from None
        n, seen = len(labels), self._seen
        names = np.arange(seen, seen + n, dtype=np.int64)
        plain = machine.function is None and self._finish_every is None and self._trusting
        if plain and not machine.plan.record:
            batch = machine.batch(rows)
            self._check_batch(batch)
            batch.label(labels, self._costs[labels], names)
            machine.learn_now(batch, n)
            self._seen = seen + n
            return self
        with Undo(self):
            if not self._trusting:
                check_finite(rows)
            self._seen = seen + n
            self._learn_rows(rows, labels, self._costs[labels], names)
        return self

    def _finish_now(self) -> Self:
        """Repeat REPROCESS until no pair violates by more than `tol`."""
        check_is_fitted(self)
        with Undo(self), Progress(0, self.verbose) as progress:
            self._finish(progress)
        return self

    def _teach(self, X: Any, y: NDArray[Any], names: Ints) -> None:
        """Learn rows that were checked before, with a model that exists."""
        with Undo(self):
            self._seen = max(self._seen, int(names.max()) + 1)
            labels = self._numbers(y.tolist())
            self._learn_rows(X, labels, self._costs[labels], names)

    def _teach_from(self, feed: Bench, rows: Ints, y: NDArray[Any]) -> None:
        """Learn rows of a batch that holds them all."""
        with Undo(self):
            labels = self._numbers(y.tolist())
            feed.note(rows, labels, self._costs[labels])
            self._seen = max(self._seen, int(feed.ids[-1]) + 1)
            self._stream(feed, [rows])

    # -- predicting ----------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Float:
        """Return f(x) for each row: ``(n,)`` for two classes, else ``(n, n_classes)``.

        A row's value does not depend on the rows it is given with.
        """
        check_is_fitted(self)
        X, _ = check_features(self, X, reset=False)
        scores = self._score(X)
        return scores[:, 0].copy() if scores.shape[1] == 1 else scores

    def _score(self, X: Any) -> Float:
        """Return f(x) of rows that were checked before, a column for each binary problem."""
        return self._machine.decision(self._augmented(X, None))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row."""
        scores = self.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best.astype(np.intp)]
        return labels

    # -- looking inside ------------------------------------------------------------------------

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Support vectors of each class."""
        check_is_fitted(self)
        _, labels, _ = self._machine.coefficients
        return np.bincount(labels, minlength=len(self.classes_)).astype(np.int32)

    def duality_gap(self, X: Any, y: Any) -> float | Float:
        """Return primal minus dual objective, the loss taken over the rows given.

        For rows that are the whole training set it bounds the distance to the optimum.
        """
        scores = self.decision_function(X).reshape(-1, self._machine.plan.problems)
        labels = self._encode(np.asarray(y))
        signs = self._machine.signs(labels)
        losses = self._costs[labels] @ np.maximum(0.0, 1.0 - signs * scores)
        return scalar_or_array(self._squared_norms() / 2 + losses - self._machine.objective)

    def _squared_norms(self) -> Float:
        """Return |w|^2 of each binary problem."""
        machine = self._machine
        state, weights = machine.state(), machine.weights
        if (weights == state["alpha"]).all():
            values: Float = machine.signs(state["labels"]).T - state["g"]
        else:  # an average, which has no gradient at hand
            values = machine.decision(machine.features_of(state)).T
        return np.asarray((weights * values).sum(axis=1))

    # -- state ---------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        state.pop("_index", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "classes_" in state:
            self._index = _places(self.classes_)

    @property
    def _problems(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    @property
    def _selection(self) -> str:
        """How `fit` chooses the rows to learn."""
        return "random"

    # -- parts ---------------------------------------------------------------------------------

    def _set_classes(self, classes: NDArray[Any], y: NDArray[Any] | None) -> None:
        self.classes_ = classes
        self._index = _places(classes)
        if self.class_weight == "balanced" and y is None:
            raise ValueError(
                "class_weight='balanced' needs all labels at once; give partial_fit a dict of "
                "weights instead."
            )
        balance = compute_class_weight(
            self.class_weight, classes=classes, y=classes if y is None else y
        )
        self._balance = np.asarray(balance, dtype=np.float64)
        self._costs = self.C * self._balance

    def _check_classes(self, classes: ArrayLike | None, first: bool) -> None:
        given = None if classes is None else np.unique(np.asarray(classes))
        if first:
            if given is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            if len(given) < 2:
                raise ValueError(f"classes must name two classes or more, got {given.tolist()}.")
            self._set_classes(given, None)
            self._seen = 0
            self._since_finish = 0
        elif given is not None and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes={given.tolist()} is not what the model was started with: "
                f"{self.classes_.tolist()}."
            )
        self._costs = self.C * self._balance

    def _encode(self, y: NDArray[Any]) -> Labels:
        check_classification_targets(y)
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(self._unknown(np.unique(y[~known]).tolist()))
        return np.searchsorted(self.classes_, y).astype(np.int32)

    def _numbers(self, labels: Iterable[Any]) -> Labels:
        """Return the classes of known labels; quicker than `_encode` for a few."""
        return np.array([self._index[label] for label in labels], dtype=np.int32)

    def _unknown(self, labels: Any) -> str:
        listed = ", ".join(repr(label) for label in labels)
        return f"y holds unknown labels: {listed}; the known classes are {self.classes_.tolist()}."

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

    def _choose(self, feed: ArrayFeed | SourceFeed, rng: np.random.RandomState) -> None:
        """Make passes over the rows, learning those that selection chooses."""
        machine = self._machine
        passes = Passes(feed.ids, machine.plan.problems, self.epochs, self._chosen())
        with Progress(len(feed.ids) * self.epochs, self.verbose) as progress:
            done = False
            while not done:
                left = passes.left()
                order = left[self._plain_order(len(left), rng)].astype(np.int64)
                machine.begin_pass(self._selection, self.pool_size, passes.seen)
                self._run(machine.select, feed, order, progress)
                machine.end_pass()
                if self._finishes:
                    self._finish(progress)
                done = passes.done(*self._chosen())

    def _chosen(self) -> tuple[int, int]:
        """Return how many rows selection has chosen so far, and how many rows changed the model."""
        counters = self._machine.counters
        return counters["chosen"], counters["process"]

    def _search(self, feed: ArrayFeed, X: Any, labels: Labels, rng: np.random.RandomState) -> None:
        """Learn, again and again, the best of all rows, until none is left that would matter."""
        machine = self._machine
        rows = self._augmented(X, feed.ids)

        def find(ids: Ints) -> Any:
            return None if machine.function else take_rows(rows, np.searchsorted(feed.ids, ids))

        scores = Scores(machine, feed.batch, find)
        search = FullSearch(
            self._selection,
            machine.signs(labels),
            self._plain_order(len(labels), rng),
            slack=machine.plan.settings.get("tol", 0.0),
        )
        seen = np.zeros((machine.plan.problems, self._seen), dtype=np.uint8)
        machine.begin_pass("active", 1, seen)  # pools of the one row that was found
        with Progress(len(feed.ids), self.verbose) as progress:
            for row in search.rows(scores.values, lambda: machine.deltas):
                self._run(machine.select, feed, np.array([row], dtype=np.int64), progress)
            machine.end_pass()
            if self._finishes:
                self._finish(progress)
