"""Base class of the classifiers: labels, penalties, multiclass, training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints, Labels, spread_rows
from marginwise._checks import (
    Rule,
    boolean,
    check_features,
    check_finite,
    check_fit,
    check_ids,
    check_params,
    check_weights,
    either,
    integer,
    none,
    plain,
    positive_or_infinite,
    take_rows,
    weights,
)
from marginwise._core import Batch
from marginwise._engine.engine import HARD_COST
from marginwise._engine.foresight import Foresight
from marginwise._engine.plan import may_pair, problems_of
from marginwise._estimator.attributes import ClassifierAttributes
from marginwise._estimator.base import KernelModel, change, on_draft, refuse_reentry
from marginwise._estimator.callbacks import (
    NOTES,
    CallbackSupportMixin,
    epochs_as_subtasks,
    fit_as_task,
    with_callbacks,
)
from marginwise._estimator.compression import Compressible
from marginwise._estimator.foreseeing import Foreseeing
from marginwise._estimator.prediction import CALIBRATION_RULE, Predictor
from marginwise._estimator.streams import StreamLearner
from marginwise._estimator.unchecked import plain_rows, sparse_rows
from marginwise._files.state import check_classifier
from marginwise._objects import are_objects
from marginwise._training.converge import learn_until_converged
from marginwise._training.loop import ArrayFeed, Step
from marginwise._training.putback import PutBack
from marginwise._training.reservoir import Reservoir
from marginwise._training.selection import learn_by_search
from marginwise._warn import warn, warn_unconverged

FEW_ROWS = 16  # number of rows with which a constant decision function is detected
JUDGED = 1000  # number of training rows from which noisy labels are detected
NOISY = 0.15  # share of misclassified training rows
RESERVOIRS = frozenset({"_reservoir", "_sample"})  # attributes


class UnknownLabelError(ValueError):
    """Error raised for labels that are not among the classes of the model."""


def number_classes(y: NDArray[Any]) -> tuple[NDArray[Any], Labels]:
    """Return the classes of labels, at least two, and the encoded labels."""
    classes, places = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {plain(classes[0])!r}; fit requires rows of at least two "
            "classes."
        )
    return classes, places.astype(np.int32)


def check_label_type(y: NDArray[Any]) -> None:
    """Raise ValueError if these are not labels of classes.

    Labels are passed twice, because scikit-learn warns if more than half of those it is given are
    different, which is usual for a small batch or a list of classes.
    """
    check_classification_targets(np.tile(y, 2))


class KernelClassifier(
    ClassifierAttributes,
    CallbackSupportMixin,
    ClassifierMixin,  # type: ignore[misc]
    Predictor,
    StreamLearner,
    Foreseeing,
    Compressible,
):
    """Base class of the classifiers."""

    _rules: ClassVar[dict[str, Rule]] = {
        **KernelModel._rules,
        "C": positive_or_infinite(),
        "epochs": integer(1),
        "calibration": CALIBRATION_RULE,
        "class_weight": either(none(), weights()),
        "shuffle": boolean(),
    }

    # -- learning ------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model from scratch.

        The method makes `epochs` passes over the rows, followed by `finish` if the estimator
        supports it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows. With ``kernel="precomputed"``, the square matrix of kernel values. With a
            callable kernel, any sequence of objects.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that multiply C for each row. Rows of weight zero are ignored. With None, all
            rows have weight 1.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer. Only the exact estimators store groups and can
            forget all rows of a group; the other estimators raise a ValueError.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if NOTES.isdisjoint(self.__dict__):
            return self._fit(X, y, sample_weight, groups)
        fit_as_task(self, X, y, sample_weight, groups)
        return self

    @on_draft
    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, groups: Any = None) -> Self:
        given = X, y, sample_weight
        X, y, weights, ids, following = check_fit(self, X, y, sample_weight)
        groups = self._check_groups(groups, following)
        classes, labels = number_classes(y)
        self._set_classes(classes, y)
        self._grows = False
        self._weighs = len(ids) < following or bool((weights != 1).any())
        self._engine = self._make_engine(X, weights, streaming=False, rows=len(ids))
        self._engine.native.reserve_ids(following)
        self._note_groups(ids, None if groups is None else groups[ids])
        batch = self._labelled(X, labels, weights * self._penalties()[labels], ids)
        foresees = self._engine.plan.foresees
        if foresees and not self._leaves_out:
            batch.weigh(weights)
        called_back = not NOTES.isdisjoint(self.__dict__)
        as_subtasks = epochs_as_subtasks(self, *given) if called_back else None
        self._learn_all(ArrayFeed(batch, ids), X, labels, as_subtasks)
        self._warn_if_far()
        self._warn_if_constant(batch, X)
        self._warn_if_unpaired(batch, labels)
        if foresees:
            self._note_fitted(batch, labels, weights, ids)
        self._begin_reservoir()
        self._remember(X, labels, weights * self._penalties()[labels], ids)
        return self

    def _learn_all(
        self,
        feed: ArrayFeed,
        X: Any,
        labels: Labels,
        as_subtasks: Callable[[Iterable[Step]], Iterable[Step]] | None = None,
    ) -> None:
        """Learn the rows passed to `fit`."""
        rng = check_random_state(self.random_state)
        trainer, selection = self._trainer, getattr(self, "selection", "random")
        if (stop := getattr(self, "stop", None)) is not None:
            rows = selection, self.pool_size
            loop = PutBack(trainer, feed, labels, self.classes_, *rows, stop, self._shaped, rng)
            loop.learn(self._seeds_per_class)
        elif selection == "random" and getattr(self, "epochs", 1) == "converge":
            epoch = trainer.orders(len(feed.ids), rng, labels, self._seeds_per_class)
            find = self._finder(X, feed.ids)
            learn_until_converged(trainer, feed, labels, epoch, find, as_subtasks)
        elif selection == "random":
            trainer.learn_epochs(feed, rng, labels, self._seeds_per_class, as_subtasks)
        elif self.pool_size is None:
            find = self._finder(X, feed.ids)
            learn_by_search(trainer, feed, labels, selection, rng, find)
        else:
            trainer.learn_passes(feed, selection, self.pool_size, rng)

    def _warn_if_constant(self, batch: Batch, X: Any) -> None:
        """Warn if the decision function is constant although the rows differ."""
        native = self._engine.native
        if native.unsolved:  # another warning follows
            return
        if native.objective().any():
            if callable(self.kernel) or self._algorithm.exact:  # exact models check their solution
                return
            rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], FEW_ROWS)).astype(np.int64)
            if not (np.ptp(native.decision_of(batch, rows), axis=0) == 0).all():
                return
            some = X[rows].toarray() if hasattr(X, "toarray") else X[rows]
            if (some == some[0]).all():
                return
        warn_unconverged(
            f"{type(self).__name__} has a constant decision function: no row is a support vector, "
            "or kernel values are equal up to rounding. Scale or centre the features, or change C."
        )

    def _warn_if_unpaired(self, batch: Batch, labels: Labels) -> None:
        """Warn if there are too many classes for one-vs-one and the labels look noisy."""
        classes = len(self.classes_)
        plan = self._engine.plan
        if classes < 3 or plan.pairs or plan.budget or not may_pair(self):
            return
        rows = spread_rows(len(labels), JUDGED)
        f = self._engine.native.decision_of(batch, rows)
        wrong = np.mean(np.argmax(f, axis=1) != labels[rows])
        if wrong > NOISY:
            warn(
                f"{100 * wrong:.0f} % of the training rows are misclassified: the labels look "
                "noisy. With this many classes, rows or steps, multiclass='auto' is one-vs-rest, "
                "which is then less accurate than one-vs-one. To train pairs, set "
                f"multiclass='ovo' ({problems_of(classes, True):,} binary problems); to accept "
                "this model, set multiclass='ovr'."
            )

    @on_draft
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to learn. The model does not depend on how a stream is divided into calls, except
            that the first call determines the value of ``gamma="scale"`` and the precision of
            kernels that are functions of the inner product.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that can occur. If the first call passes `classes`, or if the model was
            fitted with `fit`, other labels raise an error. The first call requires `classes`,
            except for `OnlineSVC`, which otherwise adds a class whenever a new label occurs. Later
            calls of `OnlineSVC` may pass additional classes. The binary problem of a new class
            starts from the stored examples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that multiply C for each row. Rows of weight zero are ignored. With None, all
            rows have weight 1.
        ids : array-like of int of shape (n_samples,), default=None
            Ids of the rows, which `support_` and `ids_` refer to. By default, rows are numbered
            consecutively. If an id is already stored, the row counts as another visit to the stored
            example, and its features and label are ignored.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer. Only the exact estimators store groups and can
            forget all rows of a group; the other estimators raise a ValueError.

        Returns
        -------
        self : object
            The updated estimator.
        """
        return self._partial_fit(X, y, classes, sample_weight, ids, groups)

    def _partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        ids: Any = None,
        groups: Any = None,
    ) -> Self:
        check_params(self)
        first = not hasattr(self, "_engine")
        X, y = check_features(self, X, y, reset=first)
        y = np.asarray(y)
        self._check_classes(classes, first, y)
        runs = self._runs(y)
        labels = None if runs else self._encode(y)
        weights = check_weights(sample_weight, X.shape[0])
        self._weighs = (self._weighs and not first) or bool((weights != 1).any())
        following = 0 if first else self._engine.native.next_id
        names = check_ids(ids, X.shape[0], following)
        groups = self._check_groups(groups, X.shape[0])
        following += X.shape[0] if ids is None else 0  # rows of weight zero also get ids
        kept = np.flatnonzero(weights > 0)
        rows = take_rows(X, kept) if len(kept) < len(weights) else X
        if first:
            self._engine = self._make_engine(rows, weights[kept], streaming=True)
            self._begin_reservoir()
            if self._engine.plan.foresees:
                self._begin_sample()
        elif self._starts_over:
            self._begin_again(rows, weights[kept], self._encode(y)[kept])
        self._note_groups(names[kept], None if groups is None else groups[kept])
        if labels is not None:
            self._learn_labelled(rows, labels[kept], weights[kept], names[kept])
        else:
            for run in runs:
                self._grow_classes(y[run])
                kept = run.start + np.flatnonzero(weights[run] > 0)
                labels = self._encode(y[kept])
                self._learn_labelled(take_rows(X, kept), labels, weights[kept], names[kept])
        self._engine.native.reserve_ids(following)
        return self

    def _learn_labelled(self, X: Any, labels: Labels, weights: Float, names: Ints) -> None:
        """Learn rows of known classes in the given order."""
        costs = weights * self._penalties()[labels]
        if "_reservoir" in self.__dict__:
            self._learn_and_replay(X, labels, costs, names)
        else:
            self._learn_rows(self._new_rows(X, labels, costs, names), names)

    def _runs(self, y: NDArray[Any]) -> list[slice]:
        """Split rows before each new label if classes may be added."""
        if not self._grows:
            return []
        check_label_type(y)
        labels, first = np.unique(y, return_index=True)
        met = [label in self._index for label in labels.tolist()]
        if all(met):
            return []
        starts = [0, *sorted(set(first[~np.array(met)].tolist()) - {0})]
        return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(y)], strict=True)]

    def learn_one(self, x: ArrayLike, y: Any) -> Self:
        """Learn a single dense row with minimal input validation.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Row to learn.
        y : label
            Class label, one of `classes_`.

        Returns
        -------
        self : object
            The updated estimator.
        """
        if "_objects" in self.__dict__:
            objects: Any = [x]
            return self.learn_many(objects, (y,))
        return self.learn_many(np.asarray(x)[np.newaxis], (y,))

    def learn_many(self, X: ArrayLike, y: Any) -> Self:
        """Learn rows in the given order with minimal input validation.

        Use this method instead of `partial_fit` to train a fitted model on small batches, where
        input validation would dominate the cost. It only checks the shape and type of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to learn.
        y : sequence of length n_samples
            Class labels, among `classes_`.

        Returns
        -------
        self : object
            The updated estimator.
        """
        refuse_reentry(self)
        self._turn.run(self._learn_many, X, y)
        return self

    def _learn_many(self, X: ArrayLike, y: Any) -> None:
        if self._starts_over or "_reservoir" in self.__dict__:
            change(self, type(self)._partial_fit, X, y)
            return
        try:
            batch, names, at_once, sample = self._read_many(X, y)
        except UnknownLabelError:
            if not self._grows:
                raise
            change(self, type(self)._partial_fit, X, y)
            return
        if at_once and getattr(self, "finish_every", None) is None:
            self._engine.keep_foresight()
            if sample is not None:
                self._sample = sample
            self._engine.learn_now(batch, len(names))
            self._tidy()
            self._report()
        else:
            change(self, type(self)._learn_batch, batch, names, sample)

    def _learn_batch(self, batch: Batch, names: Ints, sample: Reservoir | None) -> None:
        if sample is not None:
            self._sample = sample
        self._learn_rows(batch, names)

    def _read_many(self, X: ArrayLike, y: Any) -> tuple[Any, Ints, bool, Reservoir | None]:
        """Validate the rows passed to `learn_many`.

        Returns the labelled rows, their ids, whether one native call can learn them, and the sample
        of the stream with them.
        """
        engine: Any = self.__dict__.get("_engine")
        if engine is None:
            check_is_fitted(self)
        rows = self._plain_rows(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_ or rows.shape[0] != len(y):
            raise ValueError(
                f"expected rows of {self.n_features_in_} features and one label per row, got an "
                f"array of shape {rows.shape} and {len(y)} labels."
            )
        try:
            labels = self._numbers(y)
        except KeyError as error:
            raise UnknownLabelError(self._unknown(error.args)) from None
        except TypeError:
            raise ValueError(f"expected one label per row, got {y!r:.80}.") from None
        names = check_ids(None, len(labels), engine.native.next_id)
        batch = engine.batch(self._augmented(rows, names))
        at_once = engine.learns_at_once(batch, len(names))
        if not at_once:  # rows that are learned at once are known to be finite
            check_finite(rows)
        self._check_names(names)
        self._check_batch(batch)
        self._update_costs()
        batch.label(labels, engine.class_costs(self._costs, self._penalties)[labels], names)
        sample = None
        if engine.plan.foresees:
            batch.weigh(ones := np.ones(len(names)))
            if "_sample" in self.__dict__:
                sample = self._sample.offered(rows, labels, ones, names)
        return batch, names, at_once, sample

    def _plain_rows(self, X: Any) -> Any:
        """Return rows of numbers without further checks, or the handles of objects."""
        if "_objects" in self.__dict__:
            handles: NDArray[Any] = check_features(self, X, reset=False)[0]
            self._objects.keep(handles, lambda: self._engine.state()["X"])
            return handles
        if sp.issparse(X):
            quick = self.kernel != "precomputed" and not callable(self.kernel)
            return sparse_rows(X) if quick else check_features(self, X, reset=False)[0]
        return plain_rows(X)

    # -- replay --------------------------------------------------------------------------------

    def _begin_reservoir(self) -> None:
        """Start an empty reservoir, if the estimator has one."""
        self.__dict__.pop("_reservoir", None)
        self.__dict__.pop("_sample", None)
        size = getattr(self, "replay", 0)
        if size == 0:
            return
        if "_objects" in self.__dict__:
            raise ValueError("replay supports rows of numbers only, got objects. Set replay=0.")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self._reservoir = Reservoir(size, int(seed))

    def _remember(self, X: Any, labels: Labels, costs: Float, names: Ints) -> None:
        """Add rows to the reservoir, if there is one."""
        if "_reservoir" in self.__dict__:
            self._reservoir = self._reservoir.copy()  # the call may still fail
            self._reservoir.offer(X, labels, costs, names)

    def _learn_and_replay(self, X: Any, labels: Labels, costs: Float, names: Ints) -> None:
        """Learn rows in order, replaying rows of the reservoir in between."""
        reservoir = self._reservoir = self._reservoir.copy()
        for piece in reservoir.pieces(len(names)):
            rows = X[piece], labels[piece], costs[piece], names[piece]
            self._learn_rows(self._new_rows(*rows), rows[-1])
            reservoir.offer(*rows)
            if reservoir.is_due:
                again = reservoir.rows(reservoir.draw())
                self._learn_rows(self._labelled(*again), again[-1])

    def _settle(self) -> None:
        """Replay all rows of the reservoir, if there is one, and finish the model."""
        reservoir = self.__dict__.get("_reservoir")
        if reservoir is None or len(reservoir.ids) == 0:
            super()._settle()
            return
        rows = reservoir.rows()
        feed = ArrayFeed(self._labelled(*rows), rows[-1])
        self._trainer.learn_again(feed, rows[1], np.random.RandomState(reservoir.seed))

    def _start(self, X: Any, classes: ArrayLike | None) -> None:
        """Determine classes, gamma and precision before training starts."""
        X, _ = check_features(self, X, reset=True)
        self._check_classes(classes, first=True)
        self._weighs = False
        self._engine = self._make_engine(X, np.ones(X.shape[0]), streaming=False)
        self._begin_reservoir()
        if self._engine.plan.foresees:
            self._begin_sample()

    def _read_batch(self, X: Any, y: Any, ids: Ints) -> tuple[Batch, Labels]:
        """Validate the rows returned by a source; return a batch and encoded labels."""
        if callable(self.kernel) and are_objects(X, expected=False):
            raise ValueError(
                "the source returned a sequence of objects; learn_from supports rows of numbers "
                "only. Use fit or partial_fit."
            )
        X, y = check_features(self, X, y, reset=False)
        if X.shape[0] != len(ids):
            raise ValueError(
                f"source.read returned {X.shape[0]} rows for {len(ids)} ids; it must return one "
                "row per id."
            )
        labels = self._encode(np.asarray(y))
        costs = self._penalties()[labels]
        self._remember(X, labels, costs, ids)
        return self._new_rows(X, labels, costs, ids), labels

    def _foreseen(self) -> Foresight:
        return self._honest_values()

    # -- groups --------------------------------------------------------------------------------

    def _check_groups(self, groups: Any, rows: int) -> Any:
        """Return the group of each row; raise if the estimator does not store groups."""
        if groups is None:
            return None
        more = (
            " To keep groups together in the folds, pass cv=list(splitter.split(X, y, groups))."
            if hasattr(self, "cv")
            else ""
        )
        raise ValueError(
            f"{type(self).__name__} does not store groups, because it cannot remove the influence "
            "of single rows. Pass groups=None, or use ExactSVC, whose forget removes all rows of a "
            f"group exactly.{more}"
        )

    def _note_groups(self, names: Ints, groups: Any) -> None:
        """Record the groups of rows that are about to be learned."""

    # -- state ---------------------------------------------------------------------------------

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        check_classifier(cls, state)
        if "_sample" in state:
            Reservoir.check(state["_sample"], state["n_features_in_"], len(state["classes_"]))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        state.pop("_index", None)
        for name in RESERVOIRS & state.keys():
            state[name] = state[name].state()
        for name in ("_grows", "_weighs"):
            if not state.get(name, True):  # as in models of earlier versions
                del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in RESERVOIRS & state.keys():
            setattr(self, name, Reservoir.from_state(state[name]))
        if "classes_" in state:
            self._grows = bool(state.get("_grows", False))
            self._index = {label: k for k, label in enumerate(self.classes_.tolist())}

    # -- parts ---------------------------------------------------------------------------------

    def _set_classes(self, classes: NDArray[Any], y: NDArray[Any] | None) -> None:
        self.classes_ = classes
        self._index = {label: k for k, label in enumerate(classes.tolist())}
        if self.class_weight == "balanced" and y is None:
            raise ValueError(
                "class_weight='balanced' requires all labels at once, but partial_fit receives "
                "them in parts. Call fit first, or set class_weight to a dict."
            )
        if y is None and self._grows and self.class_weight is not None:
            # A dict may contain classes that have not occurred yet.
            balance = [self.class_weight.get(label, 1.0) for label in classes.tolist()]
        else:
            balance = compute_class_weight(
                self.class_weight, classes=classes, y=classes if y is None else y
            )
        self._balance = np.asarray(balance, dtype=np.float64)
        self._costs = float(self.C) * self._balance

    _may_grow: ClassVar[bool] = False  # whether new classes may be added without `classes`
    _starts_with_fit: ClassVar[bool] = False  # whether `partial_fit` only continues a model
    _grows: bool
    _weighs: bool = False  # whether rows had other weights than 1

    def _check_classes(self, classes: ArrayLike | None, first: bool, y: Any = None) -> None:
        given = None if classes is None else np.unique(np.asarray(classes))
        if first:
            self._grows = self._may_grow and given is None and y is not None
            if self._grows:
                given = np.unique(y[:1])
            if given is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            if len(given) < 2 and not self._grows:
                raise ValueError(f"classes must contain at least two classes, got {plain(given)}.")
            self._set_classes(given, None)
        elif given is not None and not np.array_equal(given, self.classes_):
            if not self._may_grow or not np.isin(self.classes_, given).all():
                raise ValueError(
                    f"classes={plain(given)} differs from the classes of the model, "
                    f"{plain(self.classes_)}. Pass the same classes, or call fit to start a new "
                    "model."
                )
            self._grow_classes(given)
        self._update_costs()

    def _grow_classes(self, y: Any) -> None:
        """Add classes for new labels."""
        if (np.asarray(y).dtype.kind in "OSU") != (self.classes_.dtype.kind in "OSU"):
            raise ValueError(
                f"y has the label {plain(np.asarray(y).flat[0])!r}, whose type differs from that "
                f"of the known classes {plain(self.classes_)}. Convert the labels to the same "
                "type."
            )
        before, classes = self.classes_, np.union1d(self.classes_, y)
        if len(classes) == len(before):
            return
        if self.class_weight == "balanced":
            unknown = [label for label in classes.tolist() if label not in self._index]
            raise ValueError(
                f"{self._unknown(unknown)} class_weight='balanced' does not define weights of new "
                "classes. Set class_weight to a dict."
            )
        self._set_classes(classes, None)
        numbers = np.searchsorted(classes, before)
        pairs = self._engine.plan.pairs or (self.multiclass == "ovo" and len(before) <= 2)
        self._engine = self._engine.clone()  # another thread may be reading the old engine
        self._engine.grow(numbers, len(classes), pairs and len(classes) > 2)
        for name in RESERVOIRS & self.__dict__.keys():
            reservoir = getattr(self, name).copy()
            reservoir.labels = numbers[reservoir.labels].astype(np.int32)
            setattr(self, name, reservoir)

    def _update_costs(self) -> None:
        """Use the current value of `C` for rows that are learned from now on."""
        if self._costs[0] != float(self.C) * self._balance[0]:
            self._costs = float(self.C) * self._balance

    def _penalties(self) -> Float:
        """Return the penalty of each class, which is finite even for a hard margin."""
        return np.minimum(self._costs, HARD_COST * self._balance)

    def _encode(self, y: NDArray[Any]) -> Labels:
        check_label_type(y)
        labels, places = np.unique(y, return_inverse=True)
        numbers = np.array(
            [self._index.get(label, -1) for label in labels.tolist()], dtype=np.int32
        )
        if (numbers < 0).any():
            raise ValueError(self._unknown(labels[numbers < 0]))
        return numbers[places.reshape(-1)]

    def _numbers(self, labels: Iterable[Any]) -> Labels:
        """Encode known labels; faster than `_encode` for a few labels."""
        return np.array([self._index[label] for label in labels], dtype=np.int32)

    def _unknown(self, labels: Any) -> str:
        listed = ", ".join(repr(plain(label)) for label in labels)
        return f"y has unknown labels: {listed}. The known classes are {plain(self.classes_)}."
