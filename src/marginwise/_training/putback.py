"""Selection as in the papers: pools are random samples, and rows that are not learned are returned.

It ends when a stopping rule is met or after a given number of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, Labels
from marginwise._core import ENOUGH_INSIDE, MOST_SAMPLED
from marginwise._training.loop import NOTHING, ArrayFeed, EveryRow, Step, Trainer

LOOK = 16  # number of learned rows between two checks of a stopping rule


class PutBack:
    """Learns the best row of each sample until a stopping rule, which inspects this object, is met.

    Parameters
    ----------
    trainer : Trainer
        Learns the rows.
    feed : ArrayFeed
        The rows.
    labels : ndarray of int32
        Index of the class of each row.
    classes : ndarray
        Labels of the classes.
    rule : {"random", "gradient", "active", "autoactive"}
        Selection rule.
    size : int or None
        Number of rows per sample; None uses all unseen rows.
    stop : int or object
        Number of rows to learn, or a stopping rule.
    shaped : callable
        Converts decision values of binary problems to the shape that rules expect.
    rng : RandomState
        Draws the samples.
    """

    def __init__(
        self,
        trainer: Trainer,
        feed: ArrayFeed,
        labels: Labels,
        classes: NDArray[Any],
        rule: str,
        size: int | None,
        stop: Any,
        shaped: Callable[[Float], Float],
        rng: np.random.RandomState,
    ) -> None:
        self._trainer, self._feed, self._labels = trainer, feed, labels
        self._started = time.perf_counter()
        self._rule, self._size, self._stop, self._shaped = rule, size, stop, shaped
        self._rng = rng
        self._unseen = np.arange(len(labels), dtype=np.int64)  # unordered; learned rows are removed
        self._candidates = np.empty(0)
        self.classes_ = classes
        self.history_: list[dict[str, Any]] = []  # one entry per learned row, as in ActiveLearner
        self.support_counts_: list[Any] = []

    def learn(self, seeds: int) -> None:
        """Learn some rows of each class, then the best row of each sample until the rule is met."""
        self._trainer.train(self._feed, self._steps(seeds), EveryRow(), total=len(self._labels))

    # -- what a rule may look at ---------------------------------------------------------------

    @property
    def n_pool_(self) -> int:
        """Number of rows."""
        return len(self._labels)

    @property
    def n_unseen_(self) -> int:
        """Number of rows that were not learned."""
        return len(self._unseen)

    @property
    def has_model_(self) -> bool:
        """Whether rows can be scored."""
        return bool(np.isfinite(self._trainer.engine.native.delta()).all())

    def decision_values(self, rows: Any = None) -> Float:
        """Return the decision values of rows, by default of all."""
        rows = np.arange(self.n_pool_) if rows is None else rows
        native = self._trainer.engine.native
        return self._shaped(native.decision_of(self._feed.batch, np.ascontiguousarray(rows)))

    def sample_unseen(self, size: int) -> Ints:
        """Return some unseen rows, at random."""
        if size >= len(self._unseen):
            return self._unseen.copy()
        places = self._rng.randint(len(self._unseen), size=size)
        return self._unseen[np.unique(places)]

    def candidate_values(self) -> Float:
        """Return the decision values of the last sample."""
        return self._candidates

    def changed_predictions(self, labels: int | None = None) -> NoReturn:
        """Raise an error, because `fit` has no earlier model to compare with."""
        raise ValueError(
            f"stop={self._stop!r} compares the predictions with those of an earlier model, but fit "
            "stores no earlier model. Use ActiveLearner with this rule, or another rule, such as "
            "SupportVectorPlateau()."
        )

    # -- parts ---------------------------------------------------------------------------------

    def _steps(self, seeds: int) -> Iterator[Step]:
        order = self._trainer.order(self.n_pool_, self._rng)
        first = np.zeros(self.n_pool_, dtype=bool)
        for label in range(int(self._labels.max()) + 1):
            first[np.flatnonzero(self._labels[order] == label)[: max(seeds, 1)]] = True
        yield Step(self._take(order[first], None, "given"))
        while len(self._unseen) and not self._is_met():
            row, score = self._best()
            yield Step(self._take(np.array([row], dtype=np.int64), score, "strategy"))
        if self._trainer.finish_at_end:
            yield Step(NOTHING, finish=True)

    def _take(self, rows: Ints, score: Any, purpose: str) -> Ints:
        """Record rows to learn, and the number of support vectors when the rule is checked."""
        self._unseen = self._unseen[~np.isin(self._unseen, rows)]
        if not self.history_ or (self.n_pool_ - self.n_unseen_) % LOOK == 0:
            self._supports = len(self._trainer.engine.native.coefficients()[0])
        self.support_counts_ += [self._supports] * len(rows)
        labels = self.classes_[self._labels[rows]].tolist()
        self.history_ += [
            {
                "row": row,
                "label": label,
                "asked": purpose != "given",
                "purpose": purpose,
                "score": score,
                "predicted": None,
                "support_vectors": self._supports,
                "seconds": time.perf_counter() - self._started,
            }
            for row, label in zip(rows.tolist(), labels, strict=True)
        ]
        return rows

    def _is_met(self) -> bool:
        learned = len(self.history_)
        if isinstance(self._stop, Integral):
            return learned >= int(self._stop)
        return learned % LOOK == 0 and bool(self._stop.check(self))

    def _best(self) -> tuple[int, Any]:
        """Return the best row of a sample, or any if none lies within the margin; its score."""
        if not self.has_model_ or self._rule == "random":
            return int(self.sample_unseen(1)[0]), None
        most = MOST_SAMPLED if self._rule == "autoactive" else self._size or self.n_pool_
        rows = self._rng.permutation(self.sample_unseen(most))
        self._candidates = self.decision_values(rows)
        distance = self._distances(self._candidates, rows)
        margin = 1 + max(self._trainer.engine.delta, 0.0) / 2
        if self._rule == "autoactive":
            inside = np.flatnonzero(distance < margin)
            if len(inside) >= ENOUGH_INSIDE:
                distance = distance[: inside[ENOUGH_INSIDE - 1] + 1]
        place = 0 if distance.min() >= margin else int(distance.argmin())
        return int(rows[place]), self._candidates[place].tolist()

    def _distances(self, f: Float, rows: Ints) -> Float:
        """Return what selection minimizes: y f(x), |f(x)|, or half the lead of the best class."""
        by_label = self._rule == "gradient"
        if f.ndim == 1:
            return np.where(self._labels[rows] == 1, f, -f) if by_label else np.abs(f)
        own = f[np.arange(len(rows)), self._labels[rows]]
        ordered = np.sort(f, axis=1)
        if not by_label:
            lead: Float = (ordered[:, -1] - ordered[:, -2]) / 2
            return lead
        rest = np.where(own == ordered[:, -1], ordered[:, -2], ordered[:, -1])
        behind: Float = (own - rest) / 2
        return behind
