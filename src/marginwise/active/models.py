"""Model interface of active learners, and classifiers with `partial_fit`.

A model is rebuilt from the log of answers when a new class appears and when answers are undone.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints
from marginwise._training.loop import READ
from marginwise.active.pool import Pool


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator has learned anything."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def width_mismatch(estimator: Any, pool: Pool) -> str:
    """Return an error message if the pool and a fitted estimator differ in width."""
    return (
        f"X_pool has {pool.features} features, but the estimator was fitted with "
        f"{estimator.n_features_in_}; pass the same columns as in fit."
    )


Part = tuple[Ints, NDArray[Any]]  # rows of the pool and their labels


class Model:
    """Any classifier with `partial_fit` and `decision_function`.

    Parameters
    ----------
    estimator : estimator
        Classifier. Training of a fitted classifier continues.
    pool : Pool
        The rows.
    seed : int, default=0
        Replacement for ``random_state=None``, so that equal answers give equal models.
    """

    def __init__(self, estimator: Any, pool: Pool, seed: int = 0) -> None:
        self.given = copy.deepcopy(estimator)
        self.pool = pool
        self.warm = is_fitted(estimator)
        self.estimator = self._fresh(seed)
        self.ready = self.warm  # whether the model can score rows
        self._classes: NDArray[Any] = np.empty(0)

    def _fresh(self, seed: int) -> Any:
        """Return a reproducible copy of the original estimator."""
        return seeded(copy.deepcopy(self.given), seed)

    def blank(self, seed: int) -> Self:
        """Return a model of the same estimator and pool without answers."""
        return type(self)(self.given, self.pool, seed)

    def copy(self, cached: Model | None = None) -> Self:
        """Return an independent copy of the model."""
        twin = type(self).__new__(type(self))
        twin.__dict__ = {**self.__dict__, "estimator": copy.deepcopy(self.estimator)}
        return twin

    def start(self, classes: NDArray[Any]) -> None:
        """Begin training with the given classes; the model must be blank."""
        self._classes = classes
        if self.warm and not np.isin(classes, self.estimator.classes_).all():
            unknown = classes[~np.isin(classes, self.estimator.classes_)].tolist()
            raise ValueError(
                f"the estimator was fitted with the classes {self.estimator.classes_.tolist()} and "
                f"cannot learn the new labels {unknown}; pass an unfitted estimator."
            )

    def learn(self, parts: list[Part], later: bool = False) -> list[int | None]:
        """Learn rows in parts; return the number of support vectors after each part.

        With `later`, a model that is refitted to all answers may postpone this until it is needed.
        """
        classes = None if self.warm else self._classes
        estimator, counts = copy.deepcopy(self.estimator), []  # discarded on errors
        for rows, y in parts:
            estimator.partial_fit(self.pool.take_given(rows), y, classes=classes)
            counts.append(count_support(estimator))
        self.estimator = estimator
        self.ready = True
        return counts

    def admit(self) -> None:
        """Prepare rows that were added to the pool; errors leave the model unchanged."""

    def fitted(self) -> Any:
        """Return the estimator, trained on all answers."""
        return self.estimator

    def finish(self) -> None:
        """Finish the model, if the estimator supports it."""

    def scores(self, rows: Ints) -> Float:
        """Return the decision values of rows of the pool."""
        X, estimator = self.pool.take_given(rows), self.estimator
        if hasattr(estimator, "decision_function"):
            found: Float = estimator.decision_function(X)
            return found
        chances: Float = estimator.predict_proba(X)
        return chances[:, 1] - 0.5 if chances.shape[1] == 2 else chances

    def all_scores(self) -> Float:
        """Return the decision values of the whole pool."""
        return np.concatenate([self.scores(part) for part in parts_of(self.pool.n)])

    @property
    def has_features(self) -> bool:
        """Whether `features` returns numeric features."""
        return not self.pool.is_raw

    def features(self, rows: Ints) -> Any:
        """Return numeric features of rows, with which near-duplicates are found."""
        return self.pool.take(rows)

    def predict(self, rows: Ints) -> NDArray[Any]:
        """Return predicted labels of rows of the pool."""
        found: NDArray[Any] = self.fitted().predict(self.pool.take_given(rows))
        return found

    @property
    def delta(self) -> float:
        """Remaining violation of the optimality conditions, which widens the margin."""
        return 0.0

    def support(self) -> int | None:
        """Return the number of support vectors, or None if it is unknown."""
        return count_support(self.estimator)


def count_support(estimator: Any) -> int | None:
    """Return the number of support vectors, or None if it is unknown."""
    counts = getattr(estimator, "n_support_", None)
    return None if counts is None else int(np.sum(counts))


def seeded(estimator: Any, seed: int) -> Any:
    """Set all parameters `random_state` of an estimator and its components that are None."""
    if not hasattr(estimator, "get_params"):
        return estimator
    unset = {
        name: seed
        for name, value in estimator.get_params(deep=True).items()
        if value is None and name.split("__")[-1] == "random_state"
    }
    return estimator.set_params(**unset) if unset else estimator


def parts_of(n: int) -> list[Ints]:
    """Split n row indices into parts that are read at a time."""
    return [np.arange(k, min(k + READ, n), dtype=np.int64) for k in range(0, n, READ)]
