"""What all classifiers share: validation, labels, one-vs-rest, the stream, fitted attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints, spread_rows, take_rows
from marginwise._engine.engine import HARD_COST, Engine
from marginwise._estimator.attributes import ClassifierAttributes
from marginwise._estimator.base import KernelModel, Labels, scalar_or_array
from marginwise._estimator.callbacks import CallbackSupportMixin, as_task, epochs
from marginwise._estimator.exclusive import alone_once
from marginwise._estimator.input import check_features, check_finite, check_ids, check_weights
from marginwise._estimator.objects import are_objects
from marginwise._estimator.streams import StreamLearner
from marginwise._files.state import check_classifier
from marginwise._params import (
    Rule,
    boolean,
    either,
    integer,
    none,
    plain,
    positive_or_infinite,
    weights,
)
from marginwise._training.feeds import ArrayFeed, Bench
from marginwise._warn import warn_unconverged

FEW_ROWS = 16  # whose decision values show whether all are the same


def _places(classes: NDArray[Any]) -> dict[Any, int]:
    return {label: k for k, label in enumerate(classes.tolist())}


class KernelClassifier(
    ClassifierAttributes,
    CallbackSupportMixin,
    ClassifierMixin,  # type: ignore[misc]
    StreamLearner,
):
    """Base of the classifiers that learn a stream of examples one at a time."""

    _rules: ClassVar[dict[str, Rule]] = {
        **KernelModel._rules,
        "C": positive_or_infinite(),
        "epochs": integer(1),
        "class_weight": either(none(), weights()),
        "shuffle": boolean(),
    }

    # -- learning ------------------------------------------------------------------------------

    @as_task
    @alone_once
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from nothing: passes over the rows, and finishing where the algorithm has it.

        Parameters
        ----------
        X
            Training rows: dense, CSR, a data frame, the square matrix of kernel values where
            ``kernel="precomputed"``, or any objects for a kernel that is a function.
        y
            Their labels.
        sample_weight
            Scales C row by row; rows of weight zero are left out.
        """
        draft = self._draft()
        separates = draft._fit(X, y, sample_weight)
        draft._report()
        draft._warn_if_far()
        if not separates:
            warn_unconverged(
                f"{type(self).__name__} ended with an f(x) that is the same for all rows: no row "
                "is a support vector, or kernel values do not differ in their digits. Scale the "
                "features, remove a large constant from them, or change C."
            )
        self._take(draft)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> bool:
        """Learn from nothing; return whether the model tells rows apart."""
        given = X, y, sample_weight
        X, y, weights, kept = self._check_fit(X, y, sample_weight)
        classes, places = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y holds the one class {plain(classes[0])!r}; fit needs rows of two classes or "
                "more."
            )
        labels: Labels = places.astype(np.int32)
        self._set_classes(classes, y)
        self._engine = self._make_engine(X, weights, streaming=False)
        self._engine.reserve_ids(int(kept[-1]) + 1)
        rng = check_random_state(self.random_state)
        feed = ArrayFeed(self._labelled(X, labels, weights * self._penalties[labels], kept), kept)
        if self._selection == "random":
            drawn = (self._epoch_order(labels, rng) for _ in range(self.epochs))
            orders = epochs(self, drawn, *given)
            self._learn_orders(feed, orders)
        elif self.pool_size is None:
            self._search(feed, X, labels, rng)
        else:
            self._choose(feed, rng)
        return self._separates(feed.batch, X)

    def _separates(self, batch: Any, X: Any) -> bool:
        """Return whether f(x) differs between some of the rows, if these differ themselves."""
        if len(self.support_) == 0:
            return False
        if callable(self.kernel) or self._algorithm.exact:  # which checks its solution itself
            return True
        rows = spread_rows(X.shape[0], FEW_ROWS)
        if not (np.ptp(self._engine.decide(batch, rows), axis=0) == 0).all():
            return True
        some = X[rows].toarray() if hasattr(X, "toarray") else X[rows]
        return bool((some == some[0]).all())

    def _read_batch(self, X: Any, y: Any, ids: Ints) -> tuple[Any, Labels]:
        """Check what a source returned for these ids; return a batch, and the labels as numbers."""
        if callable(self.kernel) and are_objects(X, expected=False):
            raise ValueError(
                "the source returned a sequence of objects; learn_from supports rows of numbers "
                "only. Use fit or partial_fit."
            )
        X, y = check_features(self, X, y, reset=False)
        if X.shape[0] != len(ids):
            raise ValueError(f"the source returned {X.shape[0]} rows for {len(ids)} ids.")
        self._check_columns(X, ids)
        labels = self._encode(np.asarray(y))
        return self._labelled(X, labels, self._penalties[labels], ids), labels

    def _start(self, X: Any, classes: ArrayLike | None) -> None:
        """Choose classes, gamma and precision from unlabelled rows, before anything is learned."""
        self._check_params()
        X, _ = check_features(self, X, reset=True)
        self._check_classes(classes, first=True)
        self._engine = self._make_engine(X, np.ones(X.shape[0]), streaming=False)

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

    @alone_once
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
            Rows to learn. How a stream is cut into calls does not change the model, except
            for what the first call decides: ``gamma="scale"`` and the precision of kernels of x.y.
        y
            Their labels.
        classes
            All labels that may ever come; needed in the first call.
        sample_weight
            Scales C row by row; rows of weight zero are left out.
        ids
            Integers that name the rows in `support_` and `ids_`; by default, the running count. An
            id names one example: a row whose id the model holds counts as that example, seen again,
            and its features and label are not looked at.
        """
        draft = self._draft()
        batch, names = draft._read_partial(X, y, classes, sample_weight, ids)
        self._learn_rows(draft, batch, names)
        return self

    def _read_partial(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        ids: ArrayLike | None,
    ) -> tuple[Any, Ints]:
        """Check the rows of `partial_fit`; return those to learn, labelled, and their ids."""
        self._check_params()
        first = not hasattr(self, "_engine")
        X, y = check_features(self, X, y, reset=first)
        self._check_classes(classes, first)
        labels = self._encode(np.asarray(y))
        weights = check_weights(sample_weight, X.shape[0])
        names = check_ids(ids, X.shape[0], 0 if first else self._engine.next_id)
        self._check_columns(X, names)
        kept = np.flatnonzero(weights > 0)
        if len(kept) < len(weights):
            X, labels, names = take_rows(X, kept), labels[kept], names[kept]
        if first:
            self._engine = self._make_engine(X, weights[kept], streaming=True)
        elif self._starts_over:
            self._begin_again(X, weights[kept], labels)
        return self._labelled(X, labels, weights[kept] * self._penalties[labels], names), names

    def learn_one(self, x: ArrayLike, y: Any) -> Self:
        """Learn one dense row with a model that exists; only its shape and type are checked."""
        if "_objects" in self.__dict__:
            objects: Any = [x]
            return self.learn_many(objects, (y,))
        return self.learn_many(np.asarray(x)[np.newaxis], (y,))

    @alone_once
    def learn_many(self, X: ArrayLike, y: Any) -> Self:
        """Learn dense rows with a model that exists; only their shape and type are checked."""
        if self._starts_over:
            draft = self._draft()
            self._learn_rows(draft, *draft._read_partial(X, y, None, None, None))
            return self
        batch, names, at_once = self._read_many(X, y)
        if at_once and self._finish_every is None:
            self._engine.learn_now(batch, len(names))
            self._report()
        else:
            self._learn_rows(self._draft(), batch, names)
        return self

    def _read_many(self, X: ArrayLike, y: Any) -> tuple[Any, Ints, bool]:
        """Check the rows of `learn_many`.

        Returns them, labelled, their ids, and whether one native call may learn them.
        """
        engine: Any = self.__dict__.get("_engine")
        if engine is None:
            check_is_fitted(self)
        rows = self._plain_rows(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_ or rows.shape[0] != len(y):
            raise ValueError(
                f"expected rows of {self.n_features_in_} features with a label each, got an array "
                f"of shape {rows.shape} and {len(y)} labels."
            )
        try:
            labels = self._numbers(y)
        except KeyError as error:
            raise ValueError(self._unknown(error.args)) from None
        except TypeError:
            raise ValueError(f"expected one label per row, got {y!r:.80}.") from None
        names = check_ids(None, len(labels), engine.next_id)
        self._check_columns(rows, names)
        batch = engine.batch(self._augmented(rows, names))
        at_once = engine.learns_at_once(batch, len(names))
        if not at_once:  # rows that can be learned at once are within a limit, and finite
            check_finite(rows)
        self._check_names(names)
        self._check_batch(batch)
        self._update_costs()
        batch.label(labels, self._class_costs()[labels], names)
        return batch, names, at_once

    def _class_costs(self) -> Float:
        """Return the penalty of each class in the unit of the engine, which seldom changes."""
        return self._engine.class_costs(self._costs, lambda: self._penalties)

    def _plain_rows(self, X: Any) -> NDArray[Any]:
        """Return rows of numbers without further checks, or the handles of objects."""
        if "_objects" in self.__dict__:
            handles: NDArray[Any] = check_features(self, X, reset=False)[0]
            self._objects.keep(handles, lambda: self._engine.state()["X"])
            return handles
        rows = np.asarray(X, order="C")
        if rows.dtype == np.float64 or rows.dtype == np.float32:  # in native byte order
            return rows
        if rows.dtype.kind not in "biufO":
            raise ValueError(f"rows must be numbers, got an array of {rows.dtype}.")
        return rows.astype(np.float64)

    @alone_once
    def _teach(self, X: Any, y: NDArray[Any], names: Ints) -> None:
        """Learn rows that were checked before, with a model that exists."""
        labels = self._numbers(y.tolist())
        batch = self._labelled(X, labels, self._penalties[labels], names)
        self._learn_rows(self._draft(), batch, names)

    @alone_once
    def _teach_from(self, feed: Bench, rows: Ints, y: NDArray[Any]) -> None:
        """Learn rows of a batch that holds them all."""
        labels = self._numbers(y.tolist())
        feed.note(rows, labels, self._engine.costs(self._penalties[labels]))
        self._engine.reserve_ids(int(feed.ids[-1]) + 1)
        draft = self._draft()
        self._step_aside()
        draft._stream(feed, rows)
        draft._report()
        self._take(draft)

    # -- predicting ----------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Float:
        """Return f(x) for each row: ``(n,)`` for two classes, else ``(n, n_classes)``.

        A row's value does not depend on the rows it is given with.
        """
        model = self._now()
        check_is_fitted(model)
        X, _ = check_features(model, X, reset=False)
        scores = model._score(X)
        return scores[:, 0].copy() if scores.shape[1] == 1 else scores

    def _score(self, X: Any) -> Float:
        """Return f(x) of rows that were checked before, a column for each binary problem."""
        return self._engine.decision(self._augmented(X, None))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row."""
        model = self._now()
        scores = model.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = model.classes_[best.astype(np.intp)]
        return labels

    # -- looking inside ------------------------------------------------------------------------

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Support vectors of each class."""
        model = self._now()
        _, labels, _ = model._fitted().coefficients
        return np.bincount(labels, minlength=len(model.classes_)).astype(np.int32)

    def duality_gap(self, X: Any, y: Any) -> float | Float:
        """Return primal minus dual objective, the loss taken over the rows given.

        For rows that are the whole training set it bounds the distance to the optimum.
        """
        model = self._now()
        check_is_fitted(model)
        X, y = check_features(model, X, y, reset=False)
        labels = model._encode(np.asarray(y))
        gap: Float = model._engine.at_once(lambda engine: model._gap(engine, X, labels))
        return scalar_or_array(gap)

    def _gap(self, engine: Engine, X: Any, labels: Labels) -> Float:
        """Return primal minus dual objective of each binary problem."""
        scores = engine.decision(self._augmented(X, None))
        losses = self._penalties[labels] @ np.maximum(0.0, 1.0 - engine.signs(labels) * scores)
        return np.asarray(self._squared_norms(engine) / 2 + losses - engine.objective)

    def _squared_norms(self, engine: Engine) -> Float:
        """Return |w|^2 of each binary problem."""
        state, weights = engine.state(), engine.weights
        if (weights * engine.plan.unit == state["alpha"]).all():
            values: Float = engine.signs(state["labels"]).T - state["g"]
        else:  # an average, which has no gradient at hand
            values = engine.decision(engine.features_of(state)).T
        return np.asarray((weights * values).sum(axis=1))

    # -- state ---------------------------------------------------------------------------------

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        check_classifier(cls, state)

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
        self._costs = float(self.C) * self._balance

    def _check_classes(self, classes: ArrayLike | None, first: bool) -> None:
        given = None if classes is None else np.unique(np.asarray(classes))
        if first:
            if given is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            if len(given) < 2:
                raise ValueError(f"classes must name two classes or more, got {plain(given)}.")
            self._set_classes(given, None)
        elif given is not None and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes={plain(given)} is not what the model was started with: "
                f"{plain(self.classes_)}."
            )
        self._update_costs()

    def _update_costs(self) -> None:
        """Let rows that are learned from here on have the penalty that `C` is now."""
        if self._costs[0] != float(self.C) * self._balance[0]:
            self._costs = float(self.C) * self._balance

    @property
    def _penalties(self) -> Float:
        """The penalty of each class; that of a hard margin is finite, so that weights count."""
        return np.minimum(self._costs, HARD_COST * self._balance)

    def _encode(self, y: NDArray[Any]) -> Labels:
        check_classification_targets(y)
        labels, places = np.unique(y, return_inverse=True)
        numbers = np.array(
            [self._index.get(label, -1) for label in labels.tolist()], dtype=np.int32
        )
        if (numbers < 0).any():
            raise ValueError(self._unknown(labels[numbers < 0]))
        return numbers[places.reshape(-1)]

    def _numbers(self, labels: Iterable[Any]) -> Labels:
        """Return the classes of known labels; quicker than `_encode` for a few."""
        return np.array([self._index[label] for label in labels], dtype=np.int32)

    def _unknown(self, labels: Any) -> str:
        listed = ", ".join(repr(plain(label)) for label in labels)
        return f"y holds unknown labels: {listed}; the known classes are {plain(self.classes_)}."
