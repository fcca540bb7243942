"""The model of a session, which is a function of the ordered effective answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from marginwise._arrays import Float, Ints
from marginwise.active import ActiveLearner, StoppingRule, closeness
from marginwise.active.pool import UNSEEN
from marginwise.active.questions import WHOLE_POOL
from marginwise.active.scores import least_positive

# Row of the item, its label (None for a skip), and the purpose of the question.
Taught = list[tuple[int, str | None, str | None]]

REFINED = 64  # best rows of an approximate ranking, whose scores are recomputed exactly
FORESEEN = 300  # held-out items whose labels are predicted periodically
EVERY = 10  # labels between these predictions
WHY = {"random": "audit", "strategy": "strategy", "rank": "strategy"}  # ActiveLearner's purposes


class LabelModel:
    """An active learner over the items that are not held out, driven by lists of answers.

    A learner that was taught a list of answers one by one has the same state as one that was
    rebuilt from the list, and asks the same questions. A session that was killed therefore
    continues as if it had not been interrupted.

    Parameters
    ----------
    X : {ndarray, CSR array} of shape (n_items, n_features)
        Features of all items.
    held : ndarray of shape (n_held,)
        Rows of the held-out items, which are never learned, in the order of their questions.
    estimator : estimator
        Classifier to train.
    labels : sequence of str
        All labels.
    strategy : str
        Query strategy; see `ActiveLearner`.
    seed : int
        Seed of the sampling.
    stop : StoppingRule or None
        Rule that decides when to stop; None for the default of `ActiveLearner`.

    Attributes
    ----------
    learner : ActiveLearner
        The active learner over the rows in `pool`.
    pool, held : ndarray
        Rows of the items that can be learned, and of the held-out items.
    taught : list of (int, str or None, str or None)
        Rows, answers and purposes, in the order in which they were learned.
    foreseen : list of (int, list of str)
        Numbers of labels, and the predictions for the first held-out items after that many labels.
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
        options: dict[str, Any] = {
            "strategy": strategy,
            "classes": list(labels),
            "random_state": seed,
        }
        options |= {} if stop is None else {"stop": stop}
        rows = X if len(pool) == X.shape[0] else X[pool]
        self.taught: Taught = []
        self.foreseen: list[tuple[int, list[str]]] = []
        self.learner = ActiveLearner(estimator, rows, **options)

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
        """Return whether one item, or each of several, can be learned."""
        return self._place[rows] >= 0

    # -- answers -----------------------------------------------------------------------------------

    def learn(self, row: int, label: str | None, purpose: str | None) -> None:
        """Learn the first answer to an item, unless the item is held out."""
        place = int(self._place[row])
        if place < 0:
            return
        if label is None:
            self.learner.skip(place)
        else:
            self.learner.teach(place, label, purpose=WHY.get(purpose or "", "given"))
        self.taught.append((row, label, purpose))
        if label is not None and self.version % EVERY == 0:
            self._foresee()

    def become(self, answers: Taught) -> None:
        """Change the model to that of a complete, ordered list of effective answers."""
        pairs = enumerate(zip(answers, self.taught, strict=False))
        same = next((k for k, (a, b) in pairs if a != b), min(len(answers), len(self.taught)))
        labels = sum(label is not None for _, label, _ in answers[:same])
        self.foreseen = [point for point in self.foreseen if point[0] <= labels]
        if len(self.held):
            for k in range(same, len(answers)):
                labels += answers[k][1] is not None
                if answers[k][1] is not None and labels % EVERY == 0:
                    self._replay(answers[: k + 1])
                    self._foresee()
        self._replay(answers)

    def _replay(self, answers: Taught) -> None:
        rows = np.array([row for row, _, _ in answers], dtype=np.int64)
        whys = [WHY.get(purpose or "", "given") for _, _, purpose in answers]
        self.learner.replay(self._place[rows], [label for _, label, _ in answers], whys)
        self.taught = list(answers)

    def _foresee(self) -> None:
        """Record the predictions for held-out items."""
        if len(self.held) and self.ready:
            self.foreseen.append((self.version, self.predict(self.held[:FORESEEN])))

    # -- questions ---------------------------------------------------------------------------------

    def ask(
        self, without: Collection[int], audited: Collection[int] = ()
    ) -> tuple[int, str] | None:
        """Return the next item to ask about, except some rows, and the purpose of the question.

        Parameters
        ----------
        without : collection of int
            Rows to exclude.
        audited : collection of int, default=()
            Excluded rows that were drawn at random and are not answered yet.

        Returns
        -------
        question : (int, str) or None
            The row, and "random" for an audit or "strategy"; None if no row is left.
        """
        places = self._place[np.array(sorted(without), dtype=np.int64)]
        # The learner's own record would be lost in a restart.
        self.learner._audited = {int(self._place[row]) for row in audited}
        found = self.learner.ask(1, exclude=places[places >= 0])
        if not len(found):
            return None
        place = int(found[0])
        if place in self.learner._audited:
            return int(self.pool[place]), "random"
        if self.ready and self.learner.strategy in WHOLE_POOL:
            rule = closeness if self.learner.strategy == "near_boundary" else least_positive
            return self._first(rule, without), "strategy"
        return int(self.pool[place]), "strategy"

    def _first(self, rule: Callable[[Float], Float], without: Collection[int]) -> int:
        """Return the unseen item whose decision values a rule maps to the smallest number.

        The decision values of the pool are updated incrementally, so their last bits depend on
        when they were computed. The scores of the best items are therefore recomputed, which makes
        the choice a function of the answers alone.
        """
        unseen = self.unseen()
        unseen = unseen[~np.isin(unseen, list(without))]
        rough = rule(self.learner.decision_values())[self._place[unseen]]
        if len(rough) > REFINED:
            unseen = unseen[np.argpartition(rough, REFINED)[:REFINED]]
        top = np.sort(unseen)
        return int(top[rule(self.values(top)).argmin()])

    def best(self, label: str, without: Collection[int]) -> int | None:
        """Return the unseen item with the highest score for a label; None if there is none."""
        taken = sum(self._place[row] >= 0 and not self._is_seen(row) for row in without)
        if self.learner.n_unseen_ <= taken:
            return None
        return self._first(lambda values: -self.toward(label, values), without)

    def _is_seen(self, row: int) -> bool:
        return bool(self.learner._pool.status[self._place[row]] != UNSEEN)

    def unseen(self) -> Ints:
        """Return the items that were neither labelled nor skipped."""
        found: Ints = self.pool[self.learner._pool.unseen()]
        return found

    # -- scores ------------------------------------------------------------------------------------

    def values(self, rows: Ints) -> Float:
        """Return the decision values of items, including held-out ones."""
        estimator = self.learner.estimator_
        found: Float = estimator.decision_function(self._X[rows])
        return found

    def scores(self, label: str) -> Float:
        """Return the scores of all items for a label; -inf for held-out items."""
        found = np.full(self._X.shape[0], -np.inf)
        found[self.pool] = self.toward(label, self.learner.decision_values())
        return found

    def toward(self, label: str, values: Float) -> Float:
        """Return the scores for a label, given decision values."""
        place = self.classes.index(label)
        if values.ndim == 1:
            return values if place == 1 else -values
        column: Float = values[:, place]
        return column

    def predict(self, rows: Ints) -> list[str]:
        """Return the predicted labels of items."""
        return [self.named(value) for value in self.values(rows).tolist()]

    def named(self, value: Any) -> str:
        """Return the label that corresponds to the decision value, or values, of an item."""
        if isinstance(value, list):
            return self.classes[int(np.argmax(value))]
        return self.classes[int(value > 0)]
