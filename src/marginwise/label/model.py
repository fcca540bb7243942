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
FORESEEN = 300  # held-out items whose labels are predicted now and then,
EVERY = 10  # which is after so many labels


def share_of(seed: int, purpose: str, item: str) -> float:
    """Return a number from 0 to 1 that depends on an item, a purpose and a seed alone.

    It is below a share if `agreement.in_share` is true.
    """
    digest = hashlib.blake2b(f"{purpose}:{seed}:{item}".encode(), digest_size=8).digest()
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
    held : ndarray of shape (n_held,)
        Rows of the items that are never learned, in the order in which they are asked about.
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

    Attributes
    ----------
    learner : ActiveLearner
        The learner, whose rows are those of `pool`.
    pool, held : ndarray
        Rows of the items that may be learned, and of those that are held out.
    taught : list of (int, str or None)
        Rows and their answers, in the order in which they were learned.
    foreseen : list of (int, list of str)
        After some numbers of labels, what the model predicted for the first held-out items.
    """

    def __init__(
        self,
        X: Any,
        held: Ints,
        *,
        estimator: Any,
        labels: Sequence[str],
        strategy: str,
        seed: int,
        stop: StoppingRule | None,
    ) -> None:
        pool = np.setdiff1d(np.arange(X.shape[0], dtype=np.int64), held)
        if not len(pool):
            raise ValueError("all items are held out; choose a smaller --holdout.")
        self._X, self.pool, self.held = X, pool, held
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
        self.foreseen: list[tuple[int, list[str]]] = []
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

    def holds(self, rows: Any) -> Any:
        """Return whether an item, or each of several, may be learned."""
        return self._place[rows] >= 0

    # -- answers -----------------------------------------------------------------------------------

    def learn(self, row: int, label: str | None) -> None:
        """Learn the answer of an item that has none yet, unless it is held out."""
        place = int(self._place[row])
        if place < 0:
            return
        if label is None:
            self.learner.skip(place)
        else:
            self.learner.teach(place, label)
        self.taught.append((row, label))
        if len(self.held) and self.ready and self.version % EVERY == 0 and label is not None:
            self.foreseen.append((self.version, self.predict(self.held[:FORESEEN])))

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
            self.learner, self.taught, self.foreseen = self._fresh(), [], []
            if first:
                self.learn_all(answers[:first])
        for row, label in answers[len(self.taught) :]:
            self.learn(row, label)

    # -- questions ---------------------------------------------------------------------------------

    def ask(self, without: Collection[int]) -> int | None:
        """Return the item to ask about next that is not one of some rows; None if there is none."""
        for n in range(1, len(without) + 2):
            places = np.atleast_1d(self.learner.ask(n if n > 1 else None))
            for row in self.pool[places].tolist():
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
        exact = self.toward(label, self.values(top))
        return int(top[exact.argmax()])

    def unseen(self) -> Ints:
        """Return the items that were neither labelled nor skipped."""
        seen = np.array([row for row, _ in self.taught], dtype=np.int64)
        return np.setdiff1d(self.pool, seen, assume_unique=True)

    # -- scores ------------------------------------------------------------------------------------

    def values(self, rows: Ints) -> Float:
        """Return the decision values of items, held-out ones included."""
        estimator = self.learner.estimator_
        found: Float = estimator.decision_function(self._X[rows])
        return found

    def scores(self, label: str) -> Float:
        """Return how much the model is for a label, for all items; -inf for held-out ones."""
        found = np.full(self._X.shape[0], -np.inf)
        found[self.pool] = self.toward(label, self.learner.decision_values())
        return found

    def toward(self, label: str, values: Float) -> Float:
        """Return how much decision values are for a label."""
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
