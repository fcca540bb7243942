"""Model wrapper for classifiers without `partial_fit`."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints
from marginwise.active.models import Model, Part, is_fitted
from marginwise.active.pool import Pool


class RefitModel(Model):
    """Classifier that is fitted from scratch whenever answers change.

    Parameters
    ----------
    estimator : estimator
        Unfitted classifier.
    pool : Pool
        The rows.
    seed : int, default=0
        Replacement for ``random_state=None``, so that equal answers give equal models.
    """

    def __init__(self, estimator: Any, pool: Pool, seed: int = 0) -> None:
        if is_fitted(estimator):
            raise ValueError(
                f"this {type(estimator).__name__} is fitted and has no partial_fit, so it cannot "
                "continue to learn; pass an unfitted one, such as sklearn.base.clone(estimator)."
            )
        super().__init__(estimator, pool, seed)
        self._seed = seed
        self._learned: tuple[Part, ...] = ()
        self._stale = False

    def copy(self, cached: Model | None = None) -> Self:
        """Return an independent copy of the model, fitted on demand."""
        twin = type(self).__new__(type(self))
        twin.__dict__ = dict(self.__dict__)
        if cached is not self:
            twin.estimator, twin._stale = None, True
        return twin

    def start(self, classes: NDArray[Any]) -> None:
        """Begin training with the given classes."""
        self._classes = classes

    def learn(self, parts: list[Part], later: bool = False) -> list[int | None]:
        """Learn rows of the pool; with `later`, the fit is postponed."""
        twin = self.copy()
        twin._learned = (*self._learned, *parts)
        twin.ready = len(np.unique(np.concatenate([y for _, y in twin._learned]))) > 1
        if twin.ready and not later:
            twin.fitted()
        self.__dict__ = twin.__dict__
        return [None] * len(parts)

    def fitted(self) -> Any:
        """Return the estimator, fitted to all answers."""
        if self._stale:
            estimator = self._fresh(self._seed)
            if self.ready:
                rows = np.concatenate([rows for rows, _ in self._learned])
                y = np.concatenate([y for _, y in self._learned])
                estimator.fit(self.pool.take_given(rows), y)
            self.estimator, self._stale = estimator, False
        return self.estimator

    def scores(self, rows: Ints) -> Float:
        """Return the decision values of rows of the pool."""
        self.fitted()
        return super().scores(rows)

    def support(self) -> int | None:
        """Return None, because support vectors of refitted models are not counted."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "given": copy.deepcopy(self.given)}
