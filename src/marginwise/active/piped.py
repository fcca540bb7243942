"""Model wrapper for pipelines.

The transformers are fitted to the whole pool once, because a pool has many rows and few labels, and
the last step learns the transformed rows. If a step requires labels, such as feature selection or a
resampler, the whole pipeline is fitted again to all answers instead.
"""

from __future__ import annotations

import copy
import re
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from marginwise._arrays import Float, Ints, spread_rows
from marginwise._estimator.streams import SAMPLE
from marginwise.active.models import Model, Part, is_fitted, seeded
from marginwise.active.pool import Pool, unchanged_on_error


class LabelsNeededError(ValueError):
    """Error raised if a transformer cannot be fitted without labels."""


def check_steps(pipeline: Pipeline) -> None:
    """Raise if a step before the last requires labels."""
    for name, step in pipeline.steps[:-1]:
        if step is not None and not isinstance(step, str) and _needs_labels(step):
            raise LabelsNeededError(f"the step {name!r} needs labels")


def _needs_labels(step: Any) -> bool:
    if hasattr(step, "fit_resample"):
        return True
    parts = [step]
    if hasattr(step, "get_params"):
        parts += [part for part in step.get_params(deep=True).values() if hasattr(part, "fit")]
    return any(bool(get_tags(part).target_tags.required) for part in parts)


# Messages of transformers without a tag, such as SelectKBest, which usually needs labels.
NEEDS_LABELS = re.compile(r"requires y|argument: 'y'|y=None|y is None")


class Transformed:
    """Source of transformed rows of a pool that is not in memory."""

    def __init__(self, pool: Pool, transformer: Any) -> None:
        self._pool, self._transformer = pool, transformer

    def __len__(self) -> int:
        return self._pool.n

    def read(self, rows: Ints) -> Any:
        """Return the features of some rows."""
        given = self._pool.take_given(rows)
        return given if self._transformer is None else self._transformer.transform(given)


class PipedModel(Model):
    """Pipeline whose transformers are fitted to the pool.

    Parameters
    ----------
    estimator : Pipeline
        Pipeline. If it is fitted, its transformers remain unchanged.
    pool : Pool
        Rows before transformation.
    seed : int, default=0
        Replacement for ``random_state=None``.
    before : PipedModel, default=None
        Another model of the same pipeline. Its transformers are reused if they were fitted with the
        same seed and rows.
    """

    def __init__(
        self, estimator: Pipeline, pool: Pool, seed: int = 0, before: PipedModel | None = None
    ) -> None:
        check_steps(estimator)
        self.given, self.pool = estimator, pool
        self._key = seed, pool.first
        self._transformer: Any = None
        if before is not None and before._key == self._key:
            self._transformer, inner = before._transformer, before.inner.blank(seed)
        else:
            self._transformer = self._fitted_transformer(seed)
            inner = self._make_inner(seed)
        self.inner: Model = inner

    def _fitted_transformer(self, seed: int) -> Any:
        pipeline = copy.deepcopy(self.given)
        if len(pipeline.steps) == 1:
            return None
        transformer = pipeline[:-1]
        if is_fitted(pipeline.steps[-1][1]):
            return transformer
        most = self.pool.first if self.pool.in_memory else SAMPLE
        rows = self.pool.take_given(spread_rows(self.pool.first, most))
        try:
            return seeded(transformer, seed).fit(rows)
        except (TypeError, ValueError) as error:
            if NEEDS_LABELS.search(str(error)):
                raise LabelsNeededError(str(error)) from error
            raise

    def _make_inner(self, seed: int) -> Model:
        from marginwise.active.choose import model_for  # circular import

        pool = self.pool
        if not pool.in_memory:
            rows: Any = Transformed(pool, self._transformer)
        else:
            rows = self._transform(np.arange(pool.n, dtype=np.int64))
        last = self.given.steps[-1][1]
        inner_pool = Pool(rows)
        inner_pool.first = pool.first
        return model_for(last, inner_pool).blank(seed)

    def _transform(self, rows: Ints) -> Any:
        given = self.pool.take_given(rows)
        return given if self._transformer is None else self._transformer.transform(given)

    def _now(self) -> Model:
        """Return the model of the last step, after adding new rows to its pool."""
        pool, n = self.inner.pool, self.inner.pool.n
        if n < self.pool.n and self.pool.in_memory:
            more = self._transform(np.arange(n, self.pool.n, dtype=np.int64))
            pool.__dict__.update(pool.extended(more).__dict__)
        elif n < self.pool.n:
            more = Pool(Transformed(self.pool, self._transformer))
            more.first = pool.first
            pool.__dict__.update(more.__dict__)
        return self.inner

    def admit(self) -> None:
        """Transform rows that were added to the pool."""
        with unchanged_on_error(self.inner.pool):
            self._now().admit()

    # -- model interface -------------------------------------------------------------------------

    @property
    def warm(self) -> bool:  # type: ignore[override]
        """Whether the last step was passed fitted."""
        return self.inner.warm

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether rows can be scored."""
        return self.inner.ready

    @property
    def estimator(self) -> Any:
        """The pipeline with its current steps."""
        return self.fitted()

    def fitted(self) -> Any:
        """Return the pipeline, trained on all answers."""
        whole = copy.copy(self.given)
        front = [] if self._transformer is None else self._transformer.steps
        whole.steps = [*front, (self.given.steps[-1][0], self.inner.fitted())]
        return whole

    def blank(self, seed: int) -> Self:
        """Return a model of the same pipeline and pool without answers."""
        return type(self)(self.given, self.pool, seed, self)

    def copy(self, cached: Model | None = None) -> Self:
        """Return an independent copy of the model."""
        twin = type(self).__new__(type(self))
        inner = cached.inner if isinstance(cached, PipedModel) else None
        twin.__dict__ = {**self.__dict__, "inner": self.inner.copy(inner)}
        return twin

    def start(self, classes: NDArray[Any]) -> None:
        """Begin training with the given classes."""
        self._now().start(classes)

    def learn(self, parts: list[Part], later: bool = False) -> list[int | None]:
        """Learn rows of the pool."""
        return self._now().learn(parts, later)

    def finish(self) -> None:
        """Finish the last step, if it supports it."""
        self.inner.finish()

    def scores(self, rows: Ints) -> Float:
        """Return the decision values of rows of the pool."""
        return self._now().scores(rows)

    def all_scores(self) -> Float:
        """Return the decision values of the whole pool."""
        return self._now().all_scores()

    def predict(self, rows: Ints) -> NDArray[Any]:
        """Return predicted labels of rows of the pool."""
        return self._now().predict(rows)

    @property
    def has_features(self) -> bool:
        """Whether `features` returns numeric features."""
        return self.inner.has_features

    def features(self, rows: Ints) -> Any:
        """Return rows after transformation."""
        return self._now().features(rows)

    @property
    def delta(self) -> float:
        """Remaining violation of the optimality conditions, which widens the margin."""
        return self.inner.delta

    def support(self) -> int | None:
        """Return the number of support vectors, or None if it is unknown."""
        return self.inner.support()
