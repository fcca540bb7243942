"""Stopping rules: exhausted margin, stable support vectors, label budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginwise.active.audit import ErrorAudit
from marginwise.active.recall import TargetRecall
from marginwise.active.scores import closeness, pool_size_for
from marginwise.active.verdict import AllOf, AnyOf, Progressing, StoppingRule, require


@dataclass(frozen=True)
class MarginExhausted(StoppingRule):
    """Stop when no unseen row lies inside the margin.

    Only rows inside the margin would become support vectors [ertekin2007]_. If at most
    `exact_below` rows are unseen, the rule checks all of them and is exact. Otherwise, it checks a
    sample: if no sampled row lies inside the margin, the fraction of unseen rows inside the margin
    is below `top` with the given confidence.

    Parameters
    ----------
    margin : float, default=1.0
        A row is inside the margin if its distance from the boundary (see :func:`closeness`) is less
        than this value.
    top : float, default=0.001
        Fraction of the unseen rows that may lie inside the margin undetected in a large pool.
    confidence : float, default=0.95
        Probability that the fraction is smaller than `top` when the rule stops.
    exact_below : int, default=20_000
        Maximum number of unseen rows for which all rows are checked.

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
        require(self.margin > 0, f"margin must be above 0, got {self.margin!r}.")
        require(self.exact_below >= 0, f"exact_below must be 0 or more, got {self.exact_below!r}.")
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
            return self.answer(False, "there is no model yet.")
        # Check the candidates of the next query first, because they are scored anyway.
        inside = np.count_nonzero(closeness(learner.candidate_values()) < self.margin)
        if inside:
            return self.answer(False, f"{inside} of the last candidates lie inside the margin.")
        unseen = learner.n_unseen_
        exact = unseen <= self.exact_below
        size = unseen if exact else min(unseen, pool_size_for(self.top, self.confidence))
        rows = learner.sample_unseen(size)
        inside = np.count_nonzero(closeness(learner.decision_values(rows)) < self.margin)
        if inside:
            return self.answer(False, f"{inside:,} of {size:,} unseen rows lie inside the margin.")
        if exact:
            return self.answer(True, f"none of the {size:,} unseen rows lies inside the margin.")
        return self.answer(
            True,
            f"none of {size:,} sampled rows lies inside the margin: with a confidence of "
            f"{self.confidence:.0%}, less than {self.top:.2%} of the {unseen:,} unseen rows do.",
        )


@dataclass(frozen=True)
class SupportVectorPlateau(StoppingRule):
    """Stop when the number of support vectors is stable.

    See [ertekin2007]_, section 3.4.

    Parameters
    ----------
    window : float, default=100
        Number of labels over which the number of support vectors is observed or, if less than 1, a
        fraction of the pool. With a longer window, the learner also queries rows just outside the
        margin of an early model, and may discover new regions there.
    tolerance : float, default=0.01
        Largest accepted change within the window, relative to the number of support vectors.

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
        require(
            0 < self.window < 1 or (self.window >= 1 and float(self.window).is_integer()),
            f"window must be a number of labels, or a share of the pool, got {self.window!r}.",
        )
        require(self.tolerance >= 0, f"tolerance must be 0 or more, got {self.tolerance!r}.")

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
                "n_support_, which this estimator does not have. Use MarginExhausted or MaxLabels."
            )
        if len(counts) <= window or not counts[0]:
            return self.answer(False, f"fewer than {window:,} labels were learned by a model.")
        change = max(counts) - min(counts)
        stop = change <= self.tolerance * counts[-1]
        return self.answer(
            stop,
            f"over the last {window:,} labels, the number of support vectors, now {counts[-1]:,}, "
            f"changed by {change:,}, which is {'at most' if stop else 'more than'} "
            f"{self.tolerance:.1%} of it.",
        )


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
        require(self.labels >= 1, f"labels must be 1 or more, got {self.labels!r}.")

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
        if have > self.labels:  # in batches, or between two checks of `fit`
            return self.answer(
                True, f"{have:,} labels were given, more than the limit of {self.labels:,}."
            )
        return self.answer(have == self.labels, f"{have:,} of {self.labels:,} labels were given.")


RULES: dict[str, type[StoppingRule]] = {
    kind.__name__: kind
    for kind in (
        ErrorAudit,
        TargetRecall,
        MarginExhausted,
        SupportVectorPlateau,
        MaxLabels,
        AnyOf,
        AllOf,
    )
}
