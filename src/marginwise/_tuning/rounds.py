"""Rounds of a search: pairs of C and gamma, fitted and scored on all folds."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _num_samples

from marginwise._arrays import Float, Ints, Labels
from marginwise._tuning.folds import Fold
from marginwise._tuning.shared import Scored

FACTOR = 3  # halving divides the number of pairs and multiplies the number of rows by this
LEAST_ROWS = 200  # of a round of halving


class Models(Protocol):
    """Protocol: fits models on folds."""

    folds: list[Fold]

    def scored(
        self, wanted: Mapping[float, Float]
    ) -> Generator[tuple[float, Scored], None, None]: ...


class HeldOut(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier passed to scikit-learn's scorers; it knows the scores of one fold's rows."""

    def __init__(
        self, classes: NDArray[Any], scores: Float, probabilities: Callable[[], Float]
    ) -> None:
        self.classes = classes
        self.scores = scores
        self.probabilities = probabilities

    @property
    def classes_(self) -> NDArray[Any]:
        """All classes."""
        return self.classes

    def decision_function(self, X: Any) -> Float:
        """Return the scores of the held-out rows."""
        if _num_samples(X) != len(self.scores):
            raise ValueError(
                f"scoring passes {_num_samples(X)} rows to the model, but a search scores the "
                f"{len(self.scores)} rows that a fold holds out. Pass all rows that scoring was "
                "given, or use GridSearchCV."
            )
        return self.scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted classes."""
        return predicted(self.classes, self.decision_function(X))

    def predict_proba(self, X: Any) -> Float:
        """Return the calibrated probabilities."""
        return self.probabilities()

    def __sklearn_is_fitted__(self) -> bool:
        return True


def predicted(classes: NDArray[Any], scores: Float) -> NDArray[Any]:
    """Return the classes that scores predict."""
    best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
    labels: NDArray[Any] = classes[best.astype(np.intp)]
    return labels


@dataclass
class Round:
    """Results of the pairs of one round on each fold.

    Pairs are in the order of scikit-learn's `ParameterGrid`: by C, then by gamma.
    """

    C: Float
    gamma: Float
    rows: int  # number of rows that were used
    scores: Float  # of shape (pairs, folds)
    fit_seconds: Float
    score_seconds: Float
    oof: Float = field(default_factory=lambda: np.empty((0, 0)))  # f(x) of the best pair
    violation: float = 0.0  # the largest remaining one of all models

    @property
    def means(self) -> Float:
        """The mean score of each pair."""
        return mean_scores(self.scores)

    @property
    def best(self) -> int:
        """Pair with the largest mean score; the first one in case of ties."""
        return int(np.argmax(self.means))


def mean_scores(scores: Float) -> Float:
    """Return the mean of each row of scores, minus infinity if one of them is NaN."""
    means = scores.mean(axis=1)
    return np.where(np.isnan(means), -np.inf, means)


def run_round(
    models: Models,
    pairs: list[tuple[float, float]],
    rows: int,
    score: Callable[[Float, Fold], float],
    advance: Callable[[int], None],
) -> Round:
    """Fit and score models for pairs of C and gamma on all folds."""
    wanted: dict[float, Float] = {}
    for gamma in sorted({gamma for _, gamma in pairs}):
        wanted[gamma] = np.array(sorted(C for C, g in pairs if g == gamma))
    place = {pair: k for k, pair in enumerate(pairs)}
    folds = len(models.folds)
    C, gammas = np.array(pairs).T
    result = Round(C, gammas, rows, *np.zeros((3, len(pairs), folds)))
    keeper = _Keeper(models.folds, rows)
    with closing(models.scored(wanted)) as found:  # ends its threads in any case
        for gamma, scored in found:
            own = [place[C, gamma] for C in wanted[gamma].tolist()]
            fold = models.folds[scored.fold]
            result.scores[own, scored.fold] = [score(f, fold) for f in scored.decision]
            result.fit_seconds[own, scored.fold] = scored.fit_seconds
            result.score_seconds[own, scored.fold] = scored.score_seconds
            result.violation = max(result.violation, scored.violation)
            keeper.add(scored)
            advance(len(own))
            if scored.fold == folds - 1:
                keeper.keep(own, mean_scores(result.scores[own]))
    result.oof = keeper.best
    return result


class _Keeper:
    """Stores the out-of-fold decision values of the best pair so far."""

    def __init__(self, folds: list[Fold], rows: int) -> None:
        self.folds, self.rows = folds, rows
        self.best = np.empty((0, 0))
        self._rank = -math.inf, -math.inf
        self._now: list[Float] = []

    def add(self, scored: Scored) -> None:
        """Add the values of the next fold, for the values of C of one gamma."""
        if not self._now:
            self._now = [np.zeros((self.rows, scored.decision.shape[2])) for _ in scored.decision]
        for total, f in zip(self._now, scored.decision, strict=True):
            total[self.folds[scored.fold].test] += f

    def keep(self, own: list[int], means: Float) -> None:
        """Compare the pairs of a gamma, whose folds are complete, with the best pair."""
        k = int(np.argmax(means))
        rank = float(means[k]), -own[k]
        if rank > self._rank:
            held = np.zeros(self.rows)
            for fold in self.folds:
                held[fold.test] += 1
            with np.errstate(invalid="ignore"):
                self.best = self._now[k] / held[:, None]  # NaN if a row was never held out
            self._rank = rank
        self._now = []


def rounds_of(pairs: int, rows: int, least: int) -> list[int]:
    """Return the number of rows of each round of halving; the last round has all rows."""
    count = 1 + math.floor(math.log(pairs) / math.log(FACTOR) + 1e-9)
    sizes = [rows // FACTOR**k for k in range(count)]
    return [size for size in reversed(sizes) if size >= least] or [rows]


def pairs_in_all(pairs: int, rounds: int) -> int:
    """Return the number of pairs, summed over all rounds."""
    total = 0
    for _ in range(rounds):
        total, pairs = total + pairs, math.ceil(pairs / FACTOR)
    return total


def survivors(result: Round) -> list[tuple[float, float]]:
    """Return the best third of the pairs of a round, in order."""
    count = math.ceil(len(result.C) / FACTOR)
    ranked = np.argsort(-result.means, kind="stable")
    best = np.sort(ranked[:count])
    return list(zip(result.C[best].tolist(), result.gamma[best].tolist(), strict=True))


def some_rows(labels: Labels, count: int, least: int, rng: np.random.RandomState) -> Ints:
    """Draw a stratified sample, ascending, with at least `least` rows per class if possible."""
    if count >= len(labels):
        return np.arange(len(labels))
    order = rng.permutation(len(labels))
    ranks = np.empty(len(labels))
    for label in np.unique(labels):
        own = order[labels[order] == label]
        ranks[own] = (np.arange(len(own)) + 0.5) / len(own)
        ranks[own[:least]] = 0.0
    chosen: Ints = np.sort(np.argsort(ranks, kind="stable")[:count])
    return chosen
