"""The model of a session: a function of the answers that count, in their order."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from marginwise._arrays import Float, Ints
from marginwise.active import ActiveLearner, StoppingRule

Taught = list[tuple[int, str | None]]  # items by row, with a label, or None for a skip

REFINED = 64  # best rows of a ranking that are scored again, exactly


def share_of(seed: int, purpose: str, item: str) -> float:
    """Return a number from 0 to 1 that depends on an item, a purpose and a seed alone."""
    digest = hashlib.blake2b(f"{seed} {purpose} {item}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


class LabelModel:
    """An active learner over the items that are not held out, driven by lists of answers.

    The learner that has been taught a list of answers one by one is the same as one that was
    rebuilt from that list, and asks the same questions. So a session that was killed continues as
    if it had not been.

    Parameters
    ----------
    X : {ndarray, CSR array} of shape (n_items, n_features)
        Features of all items.
    pool : ndarray of shape (n_pool,)
        Rows of the items that may be learned, in order.
    estimator : estimator
        What learns.
    labels : sequence of str
        All labels.
    strategy : str
        Which item to ask about; see `ActiveLearner`.
    seed : int
        Seed of the sampling.
    stop : StoppingRule or None
        Rule that decides when to stop.
    """

    def __init__(
        self,
        X: Any,
        pool: Ints,
        *,
        estimator: Any,
        labels: Sequence[str],
        strategy: str,
        seed: int,
        stop: StoppingRule | None,
    ) -> None:
        self._X, self._pool = X, pool
        self._place = np.full(X.shape[0], -1, dtype=np.int64)
        self._place[pool] = np.arange(len(pool))
        self._options: dict[str, Any] = {
            "strategy": strategy,
            "stop": stop,
            "classes": list(labels),
            "random_state": seed,
        }
        self._estimator = estimator
        self._rows = X if len(pool) == X.shape[0] else X[pool]
        self.taught: Taught = []
        self.learner = self._fresh()

    def _fresh(self) -> ActiveLearner:
        return ActiveLearner(self._estimator, self._rows, **self._options)

    @property
    def version(self) -> int:
        """Number of labels that the model has learned."""
        return len(self.learner.history_)

    @property
    def ready(self) -> bool:
        """Whether items can be scored."""
        return self.learner.has_model_

    @property
    def classes(self) -> list[str]:
        """Labels in the order of decision values."""
        found: list[str] = self.learner.classes_.tolist()
        return found

    def holds(self, row: int) -> bool:
        """Return whether an item may be learned."""
        return bool(self._place[row] >= 0)

    # -- answers -----------------------------------------------------------------------------------

    def learn(self, row: int, label: str | None) -> None:
        """Learn the answer of an item that has none yet."""
        place = int(self._place[row])
        if label is None:
            self.learner.skip(place)
        else:
            self.learner.teach(place, label)
        self.taught.append((row, label))

    def learn_all(self, answers: Taught) -> None:
        """Learn many labels at once, before all others."""
        rows = self._place[np.array([row for row, _ in answers], dtype=np.int64)]
        self.learner.teach(rows, [label for _, label in answers])
        self.taught += answers

    def become(self, answers: Taught, first: int = 0) -> None:
        """Be the model of these answers.

        Parameters
        ----------
        answers : list of (row, label or None)
            All answers that count, in order.
        first : int, default=0
            How many of them are learned at once, before the others.
        """
        same = answers[: len(self.taught)] == self.taught and (self.taught or not first)
        if not same:
            self.learner, self.taught = self._fresh(), []
            if first:
                self.learn_all(answers[:first])
        for row, label in answers[len(self.taught) :]:
            self.learn(row, label)

    # -- questions ---------------------------------------------------------------------------------

    def ask(self, without: Collection[int]) -> int | None:
        """Return the item to ask about next that is not one of some rows; None if there is none."""
        for n in range(1, len(without) + 2):
            places = np.atleast_1d(self.learner.ask(n if n > 1 else None))
            for row in self._pool[places].tolist():
                if row not in without:
                    return int(row)
        left = [row for row in self.unseen().tolist() if row not in without]
        return left[0] if left else None

    def best(self, label: str, without: Collection[int]) -> int | None:
        """Return the unseen item that the model gives the highest score for a label.

        Scores of the whole pool are kept up to date by sums, whose last bits depend on when they
        were computed; so the best of them are scored again.
        """
        unseen = self.unseen()
        unseen = unseen[~np.isin(unseen, list(without))]
        if not len(unseen):
            return None
        rough = self.scores(label)[unseen]
        top = unseen[np.argsort(-rough, kind="stable")[:REFINED]]
        top.sort()
        exact = self._of(label, self.values(top))
        return int(top[exact.argmax()])

    def unseen(self) -> Ints:
        """Return the items that were neither labelled nor skipped."""
        seen = np.array([row for row, _ in self.taught], dtype=np.int64)
        return np.setdiff1d(self._pool, seen, assume_unique=True)

    # -- scores ------------------------------------------------------------------------------------

    def values(self, rows: Ints) -> Float:
        """Return the decision values of items, held-out ones included."""
        estimator = self.learner.estimator_
        found: Float = estimator.decision_function(self._X[rows])
        return found

    def scores(self, label: str) -> Float:
        """Return how much the model is for a label, for all items; -inf for held-out ones."""
        found = np.full(self._X.shape[0], -np.inf)
        found[self._pool] = self._of(label, self.learner.decision_values())
        return found

    def _of(self, label: str, values: Float) -> Float:
        place = self.classes.index(label)
        if values.ndim == 1:
            return values if place == 1 else -values
        column: Float = values[:, place]
        return column

    def predict(self, rows: Ints) -> list[str]:
        """Return the labels that the model gives to items."""
        return [self.named(value) for value in self.values(rows).tolist()]

    def named(self, value: Any) -> str:
        """Return the label that a decision value, or several of them, stands for."""
        if isinstance(value, list):
            return self.classes[int(np.argmax(value))]
        return self.classes[int(value > 0)]
