"""When to stop asking. A rule answers yes or no and says why in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginwise.active.scores import closeness, pool_size_for

Float = NDArray[np.float64]


class Progressing(Protocol):
    """What a rule may look at: an active learner."""

    @property
    def history_(self) -> Sequence[dict[str, Any]]:
        """One dict a label."""

    @property
    def support_counts_(self) -> list[Any]:
        """Support vectors after each label, 0 without a model, None where they are not counted."""

    @property
    def n_pool_(self) -> int:
        """Rows of the pool."""

    @property
    def n_unseen_(self) -> int:
        """Rows that were neither taught nor skipped."""

    @property
    def has_model_(self) -> bool:
        """Whether rows can be scored."""

    def decision_values(self, rows: Any = None) -> Float:
        """Return the decision values of rows."""

    def sample_unseen(self, size: int) -> NDArray[np.int64]:
        """Return some unseen rows."""

    def candidate_values(self) -> Float:
        """Return the decision values of the rows among which the next is chosen."""


@dataclass(frozen=True)
class StoppingRule:
    """Base of the rules. Combine them by ``a | b``, one is enough, and ``a & b``, all must hold."""

    reason: str = field(default="", init=False, compare=False, repr=False)

    def check(self, learner: Progressing) -> bool:
        """Return whether to stop, and put the sentence that says why, or why not, in `reason`.

        Parameters
        ----------
        learner
            The active learner.
        """
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        """Return what the rule was made with."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    def answer(self, stop: bool, reason: str) -> bool:
        """Keep the reason and return `stop`: what `check` ends with.

        Parameters
        ----------
        stop
            Whether to stop.
        reason
            Why, or why not, in one sentence.
        """
        # Rules are values: what they last said is no part of them.
        object.__setattr__(self, "reason", reason)
        return stop

    def __or__(self, other: StoppingRule) -> AnyOf:
        return AnyOf((*_parts(self, AnyOf), *_parts(other, AnyOf)))

    def __and__(self, other: StoppingRule) -> AllOf:
        return AllOf((*_parts(self, AllOf), *_parts(other, AllOf)))


def _parts(rule: StoppingRule, kind: type[_Combination]) -> tuple[StoppingRule, ...]:
    """Return the rules of a combination of that kind, else the rule itself."""
    return rule.rules if isinstance(rule, kind) else (rule,)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


@dataclass(frozen=True)
class MarginExhausted(StoppingRule):
    """Stop when no unseen row lies within the margin [ertekin2007, section 3.4].

    Such rows are the ones that would become support vectors. A pool of up to `exact_below` unseen
    rows is looked at as a whole, and the answer is exact. Of a larger one so many are sampled that,
    where none of them lies within the margin, fewer than the share `top` of all do, with the
    stated confidence.

    Parameters
    ----------
    margin
        A row is within the margin if |f| (or half the lead of the best class) is less than this.
    top
        The share of rows within the margin that may go unnoticed in a large pool.
    confidence
        Probability that they are indeed fewer when the rule says so.
    exact_below
        Unseen rows up to which all are looked at.
    """

    margin: float = 1.0
    top: float = 0.001
    confidence: float = 0.95
    exact_below: int = 20_000

    def __post_init__(self) -> None:
        _require(self.margin > 0, f"margin must be above 0, got {self.margin!r}.")
        _require(self.exact_below >= 0, f"exact_below must be 0 or more, got {self.exact_below!r}.")
        pool_size_for(self.top, self.confidence)  # checks both

    def check(self, learner: Progressing) -> bool:
        """Return whether the margin is exhausted."""
        if not learner.has_model_:
            return self.answer(False, "there is no model yet, and so no margin.")
        # The rows drawn for the next question are scored anyway.
        inside = np.count_nonzero(closeness(learner.candidate_values()) < self.margin)
        if inside:
            return self.answer(False, f"of the rows just looked at {inside} lie within the margin.")
        unseen = learner.n_unseen_
        exact = unseen <= self.exact_below
        size = unseen if exact else min(unseen, pool_size_for(self.top, self.confidence))
        rows = learner.sample_unseen(size)
        inside = np.count_nonzero(closeness(learner.decision_values(rows)) < self.margin)
        if inside:
            return self.answer(False, f"of {size:,} unseen rows {inside:,} lie within the margin.")
        if exact:
            return self.answer(True, f"none of the {size:,} unseen rows lies within the margin.")
        return self.answer(
            True,
            f"none of {size:,} sampled rows lies within the margin: with a confidence of "
            f"{self.confidence:.0%}, less than {self.top:.2%} of the {unseen:,} unseen rows do.",
        )


@dataclass(frozen=True)
class SupportVectorPlateau(StoppingRule):
    """Stop when the number of support vectors has come to rest [ertekin2007, section 3.4].

    Parameters
    ----------
    window
        Labels over which the number is watched, or, below 1, their share of the pool. A longer
        window finds what lies beyond the margin of an early model: rows are then asked about that
        are outside but near.
    tolerance
        Largest change within the window, as a share of the number.
    """

    window: float = 100
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        _require(
            0 < self.window < 1 or (self.window >= 1 and float(self.window).is_integer()),
            f"window must be a number of labels, or a share of the pool, got {self.window!r}.",
        )
        _require(self.tolerance >= 0, f"tolerance must be 0 or more, got {self.tolerance!r}.")

    def check(self, learner: Progressing) -> bool:
        """Return whether the number of support vectors has come to rest."""
        share = 0 < self.window < 1
        window = max(1, round(self.window * learner.n_pool_)) if share else int(self.window)
        counts = learner.support_counts_[-window - 1 :]
        if counts and counts[-1] is None:
            raise ValueError(
                "SupportVectorPlateau needs an estimator that counts its support vectors in "
                "n_support_; this one does not."
            )
        if len(counts) <= window or not counts[0]:
            return self.answer(False, f"fewer than {window:,} labels were learned by a model.")
        change = max(counts) - min(counts)
        said = f"{counts[-1]:,} support vectors, which moved by {change:,} in {window:,} labels"
        if change > self.tolerance * counts[-1]:
            return self.answer(False, f"there are {said}, more than {self.tolerance:.1%}.")
        return self.answer(True, f"there are {said}, no more than {self.tolerance:.1%}.")


@dataclass(frozen=True)
class MaxLabels(StoppingRule):
    """Stop after a number of labels.

    Parameters
    ----------
    labels
        The number.
    """

    labels: int

    def __post_init__(self) -> None:
        _require(self.labels >= 1, f"labels must be 1 or more, got {self.labels!r}.")

    def check(self, learner: Progressing) -> bool:
        """Return whether so many labels were given."""
        have = len(learner.history_)
        return self.answer(have >= self.labels, f"{have:,} of {self.labels:,} labels were given.")


@dataclass(frozen=True)
class _Combination(StoppingRule):
    rules: tuple[StoppingRule, ...]

    def __post_init__(self) -> None:
        _require(len(self.rules) > 0, "a combination needs one rule or more.")
        rules: tuple[Any, ...] = self.rules
        bad = [rule for rule in rules if not isinstance(rule, StoppingRule)]
        if bad:
            raise TypeError(f"{bad[0]!r} is no stopping rule.")


@dataclass(frozen=True)
class AnyOf(_Combination):
    """Stop when one of the rules says so.

    Parameters
    ----------
    rules
        The rules.
    """

    def check(self, learner: Progressing) -> bool:
        """Return whether one of the rules is met."""
        for rule in self.rules:
            if rule.check(learner):
                return self.answer(True, rule.reason)
        return self.answer(False, "no rule is met: " + " ".join(rule.reason for rule in self.rules))


@dataclass(frozen=True)
class AllOf(_Combination):
    """Stop when all of the rules say so.

    Parameters
    ----------
    rules
        The rules.
    """

    def check(self, learner: Progressing) -> bool:
        """Return whether all of the rules are met."""
        for rule in self.rules:
            if not rule.check(learner):
                return self.answer(False, rule.reason)
        return self.answer(True, " ".join(rule.reason for rule in self.rules))


RULES: dict[str, type[StoppingRule]] = {
    kind.__name__: kind for kind in (MarginExhausted, SupportVectorPlateau, MaxLabels, AnyOf, AllOf)
}
