"""Base classes of stopping rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


class Verdict(NamedTuple):
    """Result of a stopping rule, which can be used as a condition.

    Parameters
    ----------
    stop : bool
        Whether to stop.
    reason : str
        Explanation of the decision in one sentence.

    See Also
    --------
    ActiveLearner.should_stop : Evaluate the stopping rule of a learner.

    Examples
    --------
    >>> from marginwise.active import Verdict
    >>> verdict = Verdict(False, "3 of 100 labels were given.")
    >>> print("stop" if verdict else "continue:", verdict)
    continue: 3 of 100 labels were given.
    """

    stop: bool
    reason: str

    def __bool__(self) -> bool:
        return self.stop

    def __str__(self) -> str:
        return self.reason


class Progressing(Protocol):
    """Protocol of the learner attributes that a rule may use."""

    @property
    def history_(self) -> Sequence[dict[str, Any]]:
        """One entry per label."""

    @property
    def classes_(self) -> NDArray[Any]:
        """Known labels, sorted."""

    @property
    def support_counts_(self) -> list[Any]:
        """Number of support vectors after each label; 0 without a model, None if not counted."""

    @property
    def n_pool_(self) -> int:
        """Number of rows in the pool."""

    @property
    def n_unseen_(self) -> int:
        """Number of rows that were neither taught nor skipped."""

    @property
    def has_model_(self) -> bool:
        """Whether rows can be scored."""

    def decision_values(self, rows: Any = None) -> Float:
        """Return the decision values of rows."""

    def sample_unseen(self, size: int) -> NDArray[np.int64]:
        """Return a random sample of unseen rows."""

    def candidate_values(self) -> Float:
        """Return the decision values of the candidates of the next query."""

    def changed_predictions(self, labels: int | None = None) -> Changed | None:
        """Compare predictions with those of the model at half as many labels."""


class Changed(NamedTuple):
    """Changes of predictions between two models.

    Parameters
    ----------
    before, labels : int
        Numbers of labels of the earlier and the later model.
    share : float
        Fraction of the sampled rows whose prediction changed.
    rare : float
        Fraction of the sampled rows that are not predicted as the most common label.
    """

    before: int
    labels: int
    share: float
    rare: float


@dataclass(frozen=True)
class StoppingRule:
    """Base class of the stopping rules.

    Rules can be combined: ``a | b`` is met if at least one rule is met, ``a & b`` if all rules are
    met. A subclass implements `check`, which returns the result of `answer`. It may use the
    attributes `classes_`, `has_model_`, `history_`, `n_pool_`, `n_unseen_` and `support_counts_` of
    the learner, and its methods `candidate_values`, `changed_predictions`, `decision_values` and
    `sample_unseen`. All of them except `changed_predictions` also exist if the rule is the
    parameter `stop` of :class:`marginwise.OnlineSVC`.

    Attributes
    ----------
    reason : str
        Explanation of the last decision of `check` in one sentence.
    draws_rows : bool
        Whether the rule needs labels of rows that are drawn at random. Such rules override
        `wants_audit`, and `OnlineSVC` does not support them.

    See Also
    --------
    ActiveLearner : Pool-based active learner.
    MarginExhausted : Stop when no unseen row lies inside the margin.
    SupportVectorPlateau : Stop when the number of support vectors is stable.
    MaxLabels : Stop after a number of labels.

    Examples
    --------
    >>> from marginwise.active import MarginExhausted, MaxLabels
    >>> MarginExhausted() | MaxLabels(500)
    AnyOf(rules=(MarginExhausted(margin=1.0, top=0.001, confidence=0.95, exact_below=20000),
          MaxLabels(labels=500)))
    """

    reason: str = field(default="", init=False, compare=False, repr=False)

    def check(self, learner: Progressing) -> bool:
        """Return whether to stop, and store the explanation in `reason`.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.

        Returns
        -------
        stop : bool
            Whether to stop.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no method check(learner), which decides when to stop. "
            "Define it, or use another rule, such as MaxLabels(100)."
        )

    def wants_audit(self, learner: Progressing, pending: int) -> int:
        """Return how many of the next queries must be drawn at random.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.
        pending : int
            Number of random rows that were queried and not answered yet.

        Returns
        -------
        rows : int
            Number of rows.
        """
        return 0

    @property
    def draws_rows(self) -> bool:
        """Whether the rule needs the labels of rows that are drawn at random."""
        return type(self).wants_audit is not StoppingRule.wants_audit

    def values(self) -> dict[str, Any]:
        """Return the parameters of the rule.

        Returns
        -------
        values : dict
            Parameter names and values.
        """
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    def answer(self, stop: bool, reason: str) -> bool:
        """Store the reason and return the decision.

        Parameters
        ----------
        stop : bool
            Whether to stop.
        reason : str
            Explanation of the decision in one sentence.

        Returns
        -------
        stop : bool
            The argument `stop`.
        """
        # Rules are frozen, but the reason is not a part of their value.
        object.__setattr__(self, "reason", reason)
        return stop

    def __or__(self, other: StoppingRule) -> AnyOf:
        return AnyOf((*_parts(self, AnyOf), *_parts(other, AnyOf)))

    def __and__(self, other: StoppingRule) -> AllOf:
        return AllOf((*_parts(self, AllOf), *_parts(other, AllOf)))


def _parts(rule: StoppingRule, kind: type[_Combination]) -> tuple[StoppingRule, ...]:
    """Return the rules of a combination of the given kind, or the rule itself."""
    return rule.rules if isinstance(rule, kind) else (rule,)


def require(holds: bool, message: str) -> None:
    """Raise a ValueError with the given message unless a condition holds."""
    if not holds:
        raise ValueError(message)


@dataclass(frozen=True)
class _Combination(StoppingRule):
    rules: tuple[StoppingRule, ...]

    def __post_init__(self) -> None:
        require(len(self.rules) > 0, "rules is empty; pass one stopping rule or more.")
        rules: tuple[Any, ...] = self.rules
        bad = [rule for rule in rules if not isinstance(rule, StoppingRule)]
        if bad:
            raise TypeError(f"rules must be stopping rules such as MaxLabels(100), got {bad[0]!r}.")

    def wants_audit(self, learner: Progressing, pending: int) -> int:
        """Return how many of the next queries must be drawn at random.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.
        pending : int
            Number of random rows that were queried and not answered yet.

        Returns
        -------
        rows : int
            Largest number among the rules.
        """
        return max(rule.wants_audit(learner, pending) for rule in self.rules)

    @property
    def draws_rows(self) -> bool:
        """Whether a rule needs the labels of rows that are drawn at random."""
        return any(rule.draws_rows for rule in self.rules)


@dataclass(frozen=True)
class AnyOf(_Combination):
    """Stop when at least one of several rules is met.

    Parameters
    ----------
    rules : tuple of StoppingRule
        Rules to combine. ``a | b`` is the same as ``AnyOf((a, b))``.

    See Also
    --------
    AllOf : Stop when all of several rules are met.

    Examples
    --------
    >>> from marginwise.active import AnyOf, MarginExhausted, MaxLabels
    >>> AnyOf((MarginExhausted(), MaxLabels(500))) == MarginExhausted() | MaxLabels(500)
    True
    """

    def check(self, learner: Progressing) -> bool:
        """Return whether at least one of the rules is met.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.

        Returns
        -------
        stop : bool
            Whether to stop.
        """
        for rule in self.rules:
            if rule.check(learner):
                return self.answer(True, rule.reason)
        return self.answer(False, "no rule is met: " + " ".join(rule.reason for rule in self.rules))


@dataclass(frozen=True)
class AllOf(_Combination):
    """Stop when all of several rules are met.

    Parameters
    ----------
    rules : tuple of StoppingRule
        Rules to combine. ``a & b`` is the same as ``AllOf((a, b))``.

    See Also
    --------
    AnyOf : Stop when at least one of several rules is met.

    Examples
    --------
    >>> from marginwise.active import AllOf, MarginExhausted, SupportVectorPlateau
    >>> rule = AllOf((MarginExhausted(), SupportVectorPlateau()))
    >>> rule == MarginExhausted() & SupportVectorPlateau()
    True
    """

    def check(self, learner: Progressing) -> bool:
        """Return whether all rules are met.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.

        Returns
        -------
        stop : bool
            Whether to stop.
        """
        for rule in self.rules:
            if not rule.check(learner):
                return self.answer(False, rule.reason)
        return self.answer(True, " ".join(rule.reason for rule in self.rules))
