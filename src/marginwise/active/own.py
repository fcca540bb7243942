"""Model wrapper for estimators of this package."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints
from marginwise._engine.plan import check_range
from marginwise._engine.scores import Scores
from marginwise._estimator.streams import SAMPLE, PoolFeed
from marginwise.active.models import Model, Part, count_support, is_fitted, width_mismatch


class Rows:
    """Converted rows of a pool, which the models of a learner share.

    Parameters
    ----------
    feed : PoolFeed
        Converted rows.
    shape : tuple
        Properties of a model that determine the conversion of its rows.
    """

    def __init__(self, feed: PoolFeed, shape: tuple[Any, ...]) -> None:
        self.feed = feed
        self.shape = shape


class OwnModel(Model):
    """Estimator of this package: validates rows once and caches pool scores."""

    _kept: Scores | None = None
    _rows: Rows | None = None
    _spare: Rows | None = None  # rows of a previous model, reused if possible

    def _fresh(self, seed: int) -> Any:
        return copy.deepcopy(self.given)

    def start(self, classes: NDArray[Any]) -> None:
        """Start training; gamma and precision depend on rows spread over the pool."""
        super().start(classes)
        pool = self.pool
        if not self.warm:
            self.estimator._start(pool.spread(SAMPLE), classes)
        elif pool.features != self.estimator.n_features_in_:
            raise ValueError(width_mismatch(self.estimator, pool))
        if self.estimator.kernel == "precomputed" and (self.warm or pool.n != pool.features):
            raise ValueError(
                "kernel='precomputed' needs an unfitted estimator and the square matrix of kernel "
                f"values as X_pool, got {'a fitted one and ' if self.warm else ''}{pool.n} rows "
                f"and {pool.features} columns."
            )
        # Members of a fitted estimator keep their ids, so rows of the pool get larger ids.
        self._first = self.estimator._engine.native.next_id if self.warm else 0
        if not pool.in_memory:
            self._rows = None
        elif self._spare is not None and self._spare.shape == self._shape:
            self._rows = self._spare
        else:
            self._rows = Rows(self._make_feed(), self._shape)

    @property
    def _shape(self) -> tuple[Any, ...]:
        plan = self.estimator._engine.plan
        kind = plan.kernel, plan.sparse, plan.double, plan.features, self._first
        return *kind, plan.scale, np.asarray(plan.center).tobytes()

    def blank(self, seed: int) -> Self:
        """Return a model of the same estimator and pool without answers."""
        twin = super().blank(seed)
        twin._spare = self._rows or self._spare
        return twin

    def copy(self, cached: Model | None = None) -> Self:
        """Return an independent copy of the model."""
        twin = type(self).__new__(type(self))
        twin.__dict__ = {**self.__dict__, "_kept": None}
        if is_fitted(self.estimator):
            twin.estimator = self.estimator._snapshot()
        kept = getattr(cached, "_kept", None)
        if self.ready and kept is not None and getattr(cached, "_rows", None) is self._rows:
            # The sums may belong to other coefficients; the next call corrects the difference.
            twin._kept = copy.copy(kept)
            twin._kept.engine = twin.estimator._engine
        return twin

    def __getstate__(self) -> dict[str, Any]:
        # Rows that the core refers to are not pickled but converted again.
        state = {**self.__dict__, "_kept": self.kept_state}
        state["_rows"], state["_spare"] = self._rows is not None, None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept, had_feed = state.pop("_kept"), state.pop("_rows")
        self.__dict__.update(state)
        if had_feed:
            self._rows = Rows(self._make_feed(), self._shape)
        if kept is not None:
            self.restore_kept(kept)

    @property
    def _feed(self) -> PoolFeed | None:
        """Converted rows of the pool; None if the pool is not in memory."""
        if self._rows is not None and len(self._rows.feed.ids) < self.pool.n:
            self._rows.feed = self._make_feed()  # the pool was extended
        return None if self._rows is None else self._rows.feed

    def admit(self) -> None:
        """Convert rows that were added to the pool in memory."""
        assert self._feed is not None or self._rows is None

    def _make_feed(self) -> PoolFeed:
        """Convert the whole pool."""
        model, ids = self.estimator, self._ids(np.arange(self.pool.n, dtype=np.int64))
        rows = self.pool.rows
        check_range(model._engine.plan, rows)
        batch = model._engine.batch(model._augmented(rows, ids))
        model._check_batch(batch)
        return PoolFeed(batch, ids)

    def _ids(self, rows: Ints) -> Ints:
        return rows + self._first

    def learn(self, parts: list[Part], later: bool = False) -> list[int | None]:
        """Learn rows of the pool, which were checked when it was created."""
        counts: list[int | None] = []
        feed = self._feed
        if feed is not None:
            self.estimator._teach_from(feed, parts, counts)
        else:
            for rows, y in parts:
                self.estimator._teach(self.pool.take(rows), y, self._ids(rows))
                counts.append(count_support(self.estimator))
        self.ready = True
        return counts

    def finish(self) -> None:
        """Finish the model."""
        if callable(getattr(self.estimator, "finish", None)) and self.ready:
            self.estimator.finish()

    def scores(self, rows: Ints) -> Float:
        """Return the decision values of rows of the pool."""
        if (feed := self._feed) is None:
            found: Float = self.estimator._score(self.pool.take(rows))
        else:
            engine = self.estimator._engine
            found = engine.native.decision_of(feed.batch, np.ascontiguousarray(rows))
            if engine.given_bias is not None:
                found = found + (engine.bias - engine.native.bias())
        return self._shaped(found)

    def predict(self, rows: Ints) -> NDArray[Any]:
        """Return predicted labels of rows of the pool."""
        classes: NDArray[Any] = self.estimator.classes_
        if len(classes) > 2:
            return super().predict(rows)
        return classes[(self.scores(rows) > 0).astype(np.intp)]

    def all_scores(self) -> Float:
        """Return the decision values of the whole pool, by updating cached values."""
        if (feed := self._feed) is None:
            return super().all_scores()
        # An estimator that was restored after an error has another engine.
        kept = self._kept
        if (
            kept is None
            or kept.engine is not self.estimator._engine
            or kept.batch is not feed.batch
        ):
            self._kept = kept = Scores(self.estimator._engine, feed.batch, self._find)
        return self._shaped(kept.values())

    def _shaped(self, found: Float) -> Float:
        shaped: Float = self.estimator._shaped(found)
        return shaped

    def restore_kept(self, state: dict[str, Any]) -> None:
        """Restore cached scores; raise if they are not the scores of the model."""
        fresh = self.all_scores()
        assert self._kept is not None
        self._kept.restore(state)
        if not np.allclose(self.all_scores(), fresh, rtol=1e-6, atol=1e-6):
            raise ValueError("its scores of the pool are not those of the model")

    @property
    def kept_state(self) -> dict[str, Any] | None:
        """State of the cached scores, if there are any."""
        stale = self._feed is None or self._kept is None or self._kept.batch is not self._feed.batch
        return None if stale or self._kept is None else self._kept.state()

    def _find(self, ids: Ints) -> Any | None:
        """Return the features of members that are rows of the pool."""
        strange = ids[0] < self._first or self.estimator._engine.function is not None
        return None if strange else self.pool.take(ids - self._first)

    @property
    def delta(self) -> float:
        """Remaining violation of the optimality conditions, which widens the margin."""
        return float(self.estimator._engine.delta)
