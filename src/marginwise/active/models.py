"""Estimators as an active learner uses them: those of this package, and any other classifier.

A model is built again from the log of answers whenever that is simpler than changing it: when a
new class appears, and when answers are undone.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints
from marginwise._checks import check_params
from marginwise._engine.plan import check_range
from marginwise._engine.scores import Scores
from marginwise._estimator.classifier import KernelClassifier
from marginwise._estimator.streams import SAMPLE, PoolFeed
from marginwise._training.loop import READ
from marginwise.active.pool import Pool


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator has learned anything."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def model_for(estimator: Any, pool: Pool) -> Model:
    """Return the model that drives a copy of an estimator, which stays as it is."""
    if isinstance(estimator, KernelClassifier):
        check_params(estimator)
        if estimator.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all labels at once, which an active learner does "
                "not have; pass a dict of weights instead."
            )
        if estimator._starts_with_fit and not is_fitted(estimator):
            raise ValueError(
                f"{type(estimator).__name__} must see all labels before it can learn one row after "
                "the other, which an active learner does not have; pass OnlineSVC with C and gamma "
                "set, or a fitted estimator."
            )
        return OwnModel(estimator, pool)
    for method in ("partial_fit", "decision_function"):
        if not hasattr(estimator, method):
            raise TypeError(
                f"{type(estimator).__name__} has no {method}; an active learner needs an estimator "
                "of marginwise, or a classifier with partial_fit and decision_function."
            )
    if getattr(estimator, "n_features_in_", pool.features) != pool.features:
        raise ValueError(_width(estimator, pool))
    return Model(estimator, pool)


def _width(estimator: Any, pool: Pool) -> str:
    return (
        f"X_pool has {pool.features} features, but the estimator was fitted with "
        f"{estimator.n_features_in_}; pass the same columns as in fit."
    )


class Model:
    """Any classifier with `partial_fit` and `decision_function`.

    Parameters
    ----------
    estimator : estimator
        The classifier; a fitted one continues to learn.
    pool : Pool
        The rows.
    """

    def __init__(self, estimator: Any, pool: Pool) -> None:
        self.given = copy.deepcopy(estimator)
        self.pool = pool
        self.warm = is_fitted(estimator)
        self.estimator = copy.deepcopy(self.given)
        self.ready = self.warm  # it can score
        self._classes: NDArray[Any] = np.empty(0)

    def blank(self) -> Self:
        """Return a model of the same estimator and pool that has learned none of its rows."""
        return type(self)(self.given, self.pool)

    def copy(self) -> Self:
        """Return a model that later answers do not change."""
        twin = type(self).__new__(type(self))
        twin.__dict__ = {**self.__dict__, "estimator": copy.deepcopy(self.estimator)}
        return twin

    def start(self, classes: NDArray[Any]) -> None:
        """Begin with these classes; the model must be blank."""
        self._classes = classes
        if self.warm and not np.isin(classes, self.estimator.classes_).all():
            unknown = classes[~np.isin(classes, self.estimator.classes_)].tolist()
            raise ValueError(
                f"the estimator was fitted with the classes {self.estimator.classes_.tolist()} and "
                f"cannot learn the new labels {unknown}; pass an unfitted estimator."
            )

    def learn(self, rows: Ints, y: NDArray[Any]) -> None:
        """Learn rows of the pool."""
        classes = None if self.warm else self._classes
        estimator = copy.deepcopy(self.estimator)  # what fails half-way is thrown away
        estimator.partial_fit(self.pool.take_given(rows), y, classes=classes)
        self.estimator = estimator
        self.ready = True

    def finish(self) -> None:
        """Finish the model, if the estimator supports it."""

    def scores(self, rows: Ints) -> Float:
        """Return the decision values of rows of the pool."""
        found: Float = self.estimator.decision_function(self.pool.take_given(rows))
        return found

    def all_scores(self) -> Float:
        """Return the decision values of the whole pool."""
        return np.concatenate([self.scores(part) for part in _parts(self.pool.n)])

    @property
    def delta(self) -> float:
        """Remaining violation of the optimality conditions, which widens the margin."""
        return 0.0

    def support_counts(self) -> NDArray[np.int32] | None:
        """Return the number of support vectors of each class, None if not counted."""
        return getattr(self.estimator, "n_support_", None)


class OwnModel(Model):
    """An estimator of this package: rows are checked once, and scores of the pool are cached."""

    _kept: Scores | None = None
    _feed: PoolFeed | None = None

    def start(self, classes: NDArray[Any]) -> None:
        """Begin; gamma and precision are chosen from rows spread over the pool."""
        super().start(classes)
        pool = self.pool
        if not self.warm:
            self.estimator._start(pool.spread(SAMPLE), classes)
        elif pool.features != self.estimator.n_features_in_:
            raise ValueError(_width(self.estimator, pool))
        if self.estimator.kernel == "precomputed" and (self.warm or pool.n != pool.features):
            raise ValueError(
                "kernel='precomputed' needs an unfitted estimator and the square matrix of kernel "
                f"values as X_pool, got {'a fitted one and ' if self.warm else ''}{pool.n} rows "
                f"and {pool.features} columns."
            )
        # A model that was there before keeps its ids: rows of the pool get new ones.
        self._first = self.estimator._engine.native.next_id if self.warm else 0
        self._feed = self._make_feed() if pool.in_memory else None

    def copy(self) -> Self:
        """Return a model that later answers do not change."""
        twin = type(self).__new__(type(self))
        own = {"estimator": self.estimator._snapshot(), "_kept": copy.copy(self._kept)}
        twin.__dict__ = {**self.__dict__, **own}
        return twin

    def __getstate__(self) -> dict[str, Any]:
        # What the core looks at is rebuilt.
        state = {**self.__dict__, "_kept": self.kept_state}
        state["_feed"] = self._feed is not None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept, had_feed = state.pop("_kept"), state.pop("_feed")
        self.__dict__.update(state)
        if had_feed:
            self._feed = self._make_feed()
        if kept is not None:
            self.restore_kept(kept)

    def _make_feed(self) -> PoolFeed:
        """Convert the whole pool to the form in which the model reads it."""
        model, ids = self.estimator, self._ids(np.arange(self.pool.n, dtype=np.int64))
        rows = self.pool.rows
        check_range(model._engine.plan, rows)
        batch = model._engine.batch(model._augmented(rows, ids))
        model._check_batch(batch)
        return PoolFeed(batch, ids)

    def _ids(self, rows: Ints) -> Ints:
        return rows + self._first

    def learn(self, rows: Ints, y: NDArray[Any]) -> None:
        """Learn rows of the pool, which were checked when it was created."""
        if self._feed is not None:
            self.estimator._teach_from(self._feed, rows, y)
        else:
            self.estimator._teach(self.pool.take(rows), y, self._ids(rows))
        self.ready = True

    def finish(self) -> None:
        """Finish the model."""
        if callable(getattr(self.estimator, "finish", None)) and self.ready:
            self.estimator.finish()

    def scores(self, rows: Ints) -> Float:
        """Return the decision values of rows of the pool."""
        if self._feed is None:
            found: Float = self.estimator._score(self.pool.take(rows))
        else:
            engine = self.estimator._engine
            found = engine.native.decision_of(self._feed.batch, np.ascontiguousarray(rows))
            if engine.given_bias is not None:
                found = found + (engine.bias - engine.native.bias())
        return self._shaped(found)

    def all_scores(self) -> Float:
        """Return the decision values of the whole pool, brought up to date."""
        if self._feed is None:
            return super().all_scores()
        # An estimator that was put back after an error has another engine.
        if self._kept is None or self._kept.engine is not self.estimator._engine:
            self._kept = Scores(self.estimator._engine, self._feed.batch, self._find)
        return self._shaped(self._kept.values())

    def _shaped(self, found: Float) -> Float:
        shaped: Float = self.estimator._shaped(found)
        return shaped

    def restore_kept(self, state: dict[str, Any]) -> None:
        """Restore cached scores, if they are those of the model."""
        fresh = self.all_scores()
        assert self._kept is not None
        self._kept.restore(state)
        if not np.allclose(self.all_scores(), fresh, rtol=1e-6, atol=1e-6):
            raise ValueError("its scores of the pool are not those of the model")

    @property
    def kept_state(self) -> dict[str, Any] | None:
        """State of the cached scores, if there are any."""
        return None if self._kept is None else self._kept.state()

    def _find(self, ids: Ints) -> Any | None:
        """Return the features of members that are rows of the pool."""
        strange = ids[0] < self._first or self.estimator._engine.function is not None
        return None if strange else self.pool.take(ids - self._first)

    @property
    def delta(self) -> float:
        """Remaining violation of the optimality conditions, which widens the margin."""
        return float(self.estimator._engine.delta)

    def support_counts(self) -> NDArray[np.int32] | None:
        """Return the number of support vectors of each class."""
        counts: NDArray[np.int32] = self.estimator.n_support_
        return counts


def _parts(n: int) -> list[Ints]:
    return [np.arange(k, min(k + READ, n), dtype=np.int64) for k in range(0, n, READ)]
