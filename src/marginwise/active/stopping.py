"""When to stop asking. A rule decides whether to stop and explains why in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from marginwise.active.scores import closeness, pool_size_for

Float = NDArray[np.float64]


class Verdict(NamedTuple):
    """Whether to stop, and why; true or false as a condition.

    Parameters
    ----------
    stop : bool
        Whether to stop.
    reason : str
        Why, or why not, in one sentence.

    See Also
    --------
    ActiveLearner.should_stop : Returns a verdict.

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
    """The part of an active learner that a rule may use."""

    @property
    def history_(self) -> Sequence[dict[str, Any]]:
        """One entry per label."""

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
        """Return some unseen rows."""

    def candidate_values(self) -> Float:
        """Return the decision values of the rows among which the next is chosen."""


@dataclass(frozen=True)
class StoppingRule:
    """Base class of the stopping rules.

    Rules are combined with ``a | b``, which is met if one of them is, and ``a & b``, which is met
    if all are. A subclass implements `check` and ends it with `answer`.

    Attributes
    ----------
    reason : str
        Why the last `check` decided to stop, or not to, in one sentence.

    See Also
    --------
    ActiveLearner : Evaluates a rule after each answer.
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
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        """Return the parameters of the rule.

        Returns
        -------
        values : dict
            Parameter names and values.
        """
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    def answer(self, stop: bool, reason: str) -> bool:
        """Store the reason and return `stop`; the last statement of `check`.

        Parameters
        ----------
        stop : bool
            Whether to stop.
        reason : str
            Why, or why not, in one sentence.

        Returns
        -------
        stop : bool
            The argument `stop`.
        """
        # Rules are values: the last reason is not part of them.
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
    """Stop when no unseen row lies inside the margin.

    Rows inside the margin are those that would become support vectors [ertekin2007]_. If at most
    `exact_below` rows are unseen, all of them are checked and the answer is exact. Otherwise, rows
    are sampled: if none of them lies inside the margin, the fraction of rows that do is below `top`
    with the given confidence.

    Parameters
    ----------
    margin : float, default=1.0
        A row is inside the margin if abs(f), or half the lead of the best class, is less than this.
    top : float, default=0.001
        Fraction of the rows inside the margin that may go unnoticed in a large pool.
    confidence : float, default=0.95
        Probability that the fraction is indeed smaller when the rule stops.
    exact_below : int, default=20_000
        Number of unseen rows up to which all are checked.

    See Also
    --------
    SupportVectorPlateau : Stop when the number of support vectors is stable.
    pool_size_for : Size of the sample.

    References
    ----------
    .. [ertekin2007] S. Ertekin, J. Huang, L. Bottou and C. L. Giles, "Learning on the Border:
       Active Learning in Imbalanced Data Classification", CIKM, 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> from marginwise.active import ActiveLearner, MarginExhausted
    >>> X, y = make_moons(500, random_state=0)
    >>> learner = ActiveLearner(OnlineSVC(C=10, gamma=1.0), X, stop=MarginExhausted(),
    ...                         random_state=0)
    >>> learner.run(lambda row: y[row]).should_stop().stop
    True
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
        """Return whether no unseen row lies inside the margin.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.

        Returns
        -------
        stop : bool
            Whether to stop.
        """
        if not learner.has_model_:
            return self.answer(False, "there is no model yet, hence no margin.")
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
    """Stop when the number of support vectors is stable.

    See [ertekin2007]_, section 3.4.

    Parameters
    ----------
    window : float, default=100
        Number of labels over which the number of support vectors is observed or, if less than 1,
        this fraction of the pool. A longer window also discovers rows outside the margin of an
        early model, because rows just outside the margin are asked about in the meantime.
    tolerance : float, default=0.01
        Largest change within the window, relative to the number of support vectors.

    See Also
    --------
    MarginExhausted : Stop when no unseen row lies inside the margin.

    References
    ----------
    .. [ertekin2007] S. Ertekin, J. Huang, L. Bottou and C. L. Giles, "Learning on the Border:
       Active Learning in Imbalanced Data Classification", CIKM, 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> from marginwise.active import ActiveLearner, SupportVectorPlateau
    >>> X, y = make_moons(500, random_state=0)
    >>> rule = SupportVectorPlateau(window=20)
    >>> learner = ActiveLearner(OnlineSVC(C=10, gamma=1.0), X, stop=rule, random_state=0)
    >>> len(learner.run(lambda row: y[row]).history_) < 250
    True
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
        """Return whether the number of support vectors is stable.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.

        Returns
        -------
        stop : bool
            Whether to stop.
        """
        share = 0 < self.window < 1
        window = max(1, round(self.window * learner.n_pool_)) if share else int(self.window)
        counts = learner.support_counts_[-window - 1 :]
        if counts and counts[-1] is None:
            raise ValueError(
                "SupportVectorPlateau needs an estimator that counts its support vectors in "
                "n_support_, which this one does not; use MarginExhausted or MaxLabels."
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
    labels : int
        Number of labels.

    See Also
    --------
    MarginExhausted : Stop when no unseen row lies inside the margin.
    AnyOf : Stop when one of several rules is met.

    Examples
    --------
    >>> from marginwise import OnlineSVC
    >>> from marginwise.active import ActiveLearner, MaxLabels
    >>> learner = ActiveLearner(OnlineSVC(), [[0.0], [1.0], [2.0]], stop=MaxLabels(2))
    >>> print(learner.teach([0, 2], ["low", "high"]).should_stop())
    2 of 2 labels were given.
    """

    labels: int

    def __post_init__(self) -> None:
        _require(self.labels >= 1, f"labels must be 1 or more, got {self.labels!r}.")

    def check(self, learner: Progressing) -> bool:
        """Return whether the number of labels has been reached.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.

        Returns
        -------
        stop : bool
            Whether to stop.
        """
        have = len(learner.history_)
        return self.answer(have >= self.labels, f"{have:,} of {self.labels:,} labels were given.")


@dataclass(frozen=True)
class _Combination(StoppingRule):
    rules: tuple[StoppingRule, ...]

    def __post_init__(self) -> None:
        _require(len(self.rules) > 0, "rules is empty; pass one stopping rule or more.")
        rules: tuple[Any, ...] = self.rules
        bad = [rule for rule in rules if not isinstance(rule, StoppingRule)]
        if bad:
            raise TypeError(f"rules must be stopping rules such as MaxLabels(100), got {bad[0]!r}.")


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
        """Return whether one of the rules is met.

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


RULES: dict[str, type[StoppingRule]] = {
    kind.__name__: kind for kind in (MarginExhausted, SupportVectorPlateau, MaxLabels, AnyOf, AllOf)
}
