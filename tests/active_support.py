"""What the tests of active learning share: pools, sources, and looking at a learner as a whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin

from marginwise import OnlineSVC
from marginwise.active import ActiveLearner
from tests.support import assert_same_model, binary_values, differences, rings


def pool(n: int = 60, seed: int = 0, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose first ones are of different classes, and their labels as integers."""
    X, y = rings(n, seed)
    if classes > 2:
        y = y + (X[:, 0] > 0.5) * (classes - 2)
    first = [int(np.flatnonzero(y == label)[0]) for label in np.unique(y)]
    order = np.concatenate([first, np.setdiff1d(np.arange(n), first)])
    return np.ascontiguousarray(X[order]), y[order]


def begun(X: Any, y: np.ndarray, labels: int = 10, **options: Any) -> ActiveLearner:
    """A learner that was taught some labels one at a time, some of them asked for."""
    options = {"estimator": OnlineSVC(C=10), "random_state": 0, "stop": None, **options}
    learner = ActiveLearner(options.pop("estimator"), X, **options)
    for row in range(2):
        learner.teach(row, y[row])
    while len(learner.history_) < labels:
        row = learner.ask()
        learner.teach(row, y[row])
    return learner


def values_of(model: Any, X: Any) -> np.ndarray:
    """Values that strategies go by: decision values; for pairs of classes, the least of each."""
    engine = getattr(model, "_engine", None)
    if engine is None or not engine.plan.pairs:
        return model.decision_function(X)
    f, classes = binary_values(model, X), len(model.classes_)
    pairs = list(itertools.combinations(range(classes), 2))
    ahead = [
        [f[:, c] if pair[1] == label else -f[:, c] for c, pair in enumerate(pairs) if label in pair]
        for label in range(classes)
    ]
    return np.column_stack([np.min(columns, axis=0) for columns in ahead])


def snapshot(learner: ActiveLearner) -> dict[str, Any]:
    """All that a user can see of a learner: answers, counts, the model's values, the question."""
    values = np.empty(0)
    if learner.has_model_:
        rows = learner._pool.take(np.arange(learner._pool.n))
        values = learner.estimator_.decision_function(rows)
    return {
        "log": [(event.kind, list(event.rows), list(event.labels)) for event in learner._log],
        "history": [dict(step) for step in learner.history_],
        "status": learner._pool.status.tolist(),
        "counts": learner.counts_,
        "unseen": learner.n_unseen_,
        "classes": learner.classes_.tolist(),
        "has_model": learner.has_model_,
        "values": values.tolist(),
        "next": [learner.ask()] if learner.n_unseen_ else [],
        "next five": learner.ask(5).tolist(),
    }


def assert_unchanged(before: dict[str, Any], learner: ActiveLearner, why: str) -> None:
    """The learner is what it was when the snapshot was taken, to the last bit."""
    found = differences(before, snapshot(learner), "learner")
    assert not found, f"{why}: " + "; ".join(found)[:2000]


def assert_same_learner(one: ActiveLearner, other: ActiveLearner, why: str) -> None:
    """Two learners know, are and ask the same; only the times of answers may differ."""
    states = [snapshot(one), snapshot(other)]
    for state in states:
        for step in state["history"]:
            del step["seconds"]
    found = differences(*states, "learner")
    assert not found, f"{why}: " + "; ".join(found)[:2000]
    if one.has_model_ and isinstance(one.estimator_, OnlineSVC):
        assert_same_model(one.estimator_, other.estimator_, why)


class Source:
    """Rows that are read on demand; `fails` may tell of rows that cannot be read."""

    def __init__(self, X: Any, y: Any = None) -> None:
        self.X, self.y = X, y
        self.fails: Callable[[np.ndarray], bool] = lambda rows: False
        self.most = 0  # rows of the largest read

    def __len__(self) -> int:
        return self.X.shape[0]

    def read(self, rows: np.ndarray) -> Any:
        if self.fails(rows):
            raise OSError("the disk is gone")
        self.most = max(self.most, len(rows))
        X = self.X[rows]
        return X if self.y is None else (X, self.y[rows])


class Given(ClassifierMixin, BaseEstimator):
    """A fitted "model" whose decision values are what stands in the rows, and stay so."""

    def __init__(self, columns: int = 1) -> None:
        self.columns = columns
        self.classes_ = np.arange(max(columns, 2))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> Given:
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Given:
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        return X[:, 0] if self.columns == 1 else X[:, : self.columns]
