"""Estimates of the number of relevant items that are still unseen when items are ranked.

In a search for relevant items, the items with the highest scores are shown first, and one question
in ten is about an item that is drawn at random from all unseen items. The estimate relies on the
random questions, because relevant items that the model does not recognise yet do not have high
scores.

The number V of relevant unseen items has a lower and an upper bound. Both use binomial proportions
and the method of Clopper and Pearson, which is conservative for draws without replacement:

1. *Upper bound, from recent draws.* The later half of the random questions were drawn from the
   items that were unseen at that time. As long as the ranking finds relevant items faster than
   random draws would, the proportion of relevant items among the unseen items decreases. An upper
   bound on the proportion at the time of these draws is then also an upper bound on the current
   proportion.
2. *Lower bound, from the sample.* Random questions follow one random order of all items. If the
   last random question is at position m of that order, the first m items have all been seen,
   either at random or by rank. These m items are therefore a random sample of all items. A lower
   bound on the proportion of relevant items in the sample bounds the total number of relevant
   items, and subtracting the found ones bounds V. The sample excludes the first random hit: all
   questions before it are random and only few after it, so the sample size depends on it.

The first bound relies on the stated assumption, which may fail while the model is poor. It becomes
small after random questions have found nothing for a long time, which is the time to stop. Each
bound holds at a given time; repeated looks increase the probability of seeing a wrong one.

The estimate itself is the sum of the probabilities of all unseen items. The probabilities come from
a sigmoid of decision values, fitted to the answers and to the values of the items before they were
learned. An estimate outside the bounds is moved to the nearer bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from marginwise._arrays import Float
from marginwise.active.answers import AUDIT, STRATEGY
from marginwise.active.verdict import Progressing, StoppingRule, require
from marginwise.calibration import Sigmoid

RANDOM_EVERY = 10  # one in this many questions is drawn at random
ERROR = 0.05  # probability that the true number is outside the bounds
GOAL = 0.95  # recall at which to stop
LATEST = 300  # most recent answers, to which the sigmoid is fitted
LEAST_FITTED = 10


def binomial_bounds(hits: int, draws: int, error: float = ERROR) -> tuple[float, float]:
    """Return the Clopper-Pearson bounds of a proportion.

    Parameters
    ----------
    hits, draws : int
        Number of hits, and number of draws.
    error : float, default=0.05
        Probability that the proportion is outside the bounds, half of it on each side.
    """
    low = 0.0 if hits == 0 else float(beta.ppf(error / 2, hits, draws - hits + 1))
    high = 1.0 if hits == draws else float(beta.ppf(1 - error / 2, hits + 1, draws - hits))
    return low, high


@dataclass(frozen=True)
class Evidence:
    """Evidence about the relevant items of a search.

    Parameters
    ----------
    items, seen, found : int
        Numbers of all items, of answered items, and of relevant items among the answered ones.
    sample, sample_found : int
        Size of the random sample of all items, and number of relevant items in it.
    draws : sequence of bool
        Whether each random question found a relevant item, in chronological order.
    expected : float or None
        Sum of the probabilities of all unseen items; None without a model.
    """

    items: int
    seen: int
    found: int
    sample: int
    sample_found: int
    draws: Sequence[bool]
    expected: float | None = None


@dataclass(frozen=True)
class Estimate:
    """Number of relevant unseen items, and recall.

    Parameters
    ----------
    unseen, unseen_low, unseen_high : float
        Number of relevant unseen items, and its bounds.
    recall, low, high : float or None
        Fraction of the relevant items that were found, and its bounds; None without relevant items.
    """

    unseen: float
    unseen_low: float
    unseen_high: float
    recall: float | None
    low: float | None
    high: float | None


def estimate(evidence: Evidence) -> Estimate:
    """Return the estimate and its bounds, as described in the module docstring.

    Parameters
    ----------
    evidence : Evidence
        Evidence about the relevant items.

    Returns
    -------
    estimate : Estimate
        Each bound holds with a probability of at least 97.5 % at a given time.
    """
    unseen = evidence.items - evidence.seen
    low, high = 0, unseen
    recent = list(evidence.draws)[len(evidence.draws) // 2 :]
    if recent:
        high = math.floor(unseen * binomial_bounds(sum(recent), len(recent))[1])
    if evidence.sample:
        least, _ = binomial_bounds(evidence.sample_found, evidence.sample)
        low = max(0, math.ceil(least * evidence.items - 1e-9) - evidence.found)
    low = min(low, high)
    guess = evidence.expected if evidence.expected is not None else (low + high) / 2
    left = float(np.clip(guess, low, high))
    bounds = [_recall(evidence.found, number) for number in (left, high, low)]
    return Estimate(left, float(low), float(high), *bounds)


def _recall(found: int, left: float) -> float | None:
    return found / (found + left) if found + left > 0 else None


def expected_relevant(values: Float, relevant: Sequence[bool], unseen: Float) -> float | None:
    """Return the expected number of relevant unseen items.

    Parameters
    ----------
    values : ndarray of shape (n_answers,)
        Scores of the answered items before they were learned.
    relevant : sequence of bool
        Whether the answered items are relevant.
    unseen : ndarray of shape (n_unseen,)
        Scores of the unseen items.

    Returns
    -------
    expected : float or None
        Expected number; None if there are too few relevant or irrelevant answers.
    """
    target = np.asarray(relevant, dtype=np.float64)[-LATEST:]
    given = np.asarray(values, dtype=np.float64)[-LATEST:]
    if len(given) < LEAST_FITTED or not 0 < target.sum() < len(target):
        return None
    # Platt's targets keep the slope finite if the scores separate the classes.
    positive, negative = target.sum(), len(target) - target.sum()
    soft = np.where(target > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    curve = Sigmoid.fit(given, soft, np.ones_like(given), shifted=True)
    return float(curve(np.asarray(unseen, dtype=np.float64)).sum())


def verdict(found: Estimate, evidence: Evidence, goal: float = GOAL) -> tuple[bool, str]:
    """Return whether to stop, and why, in one sentence."""
    unseen = evidence.items - evidence.seen
    if unseen == 0:
        return True, f"all {evidence.items:,} items were seen."
    if not evidence.found or found.low is None or found.high is None:
        return False, "no relevant item was found yet."
    numbers = (
        f"{evidence.found:,} relevant {'item was' if evidence.found == 1 else 'items were'} found, "
        f"and {found.unseen_low:,.0f} to {found.unseen_high:,.0f} of the {unseen:,} unseen items "
        f"may be relevant: with a confidence of {1 - ERROR:.0%}, recall is"
    )
    if found.low >= goal:
        return True, f"{numbers} at least {found.low:.1%}."
    return False, f"{numbers} {found.low:.0%} to {found.high:.0%}."


@dataclass(frozen=True)
class TargetRecall(StoppingRule):
    """Stop when most rows of the positive class were found.

    One question in ten is drawn at random from the unseen rows, once there is a model. These rows
    bound the number of unseen positives, and the rule stops when the recall, the fraction of all
    positives that were found, reaches its target with 95 % confidence. The bound assumes that the
    strategy finds positives faster than random draws would, and that rows added by `extend` are
    like the others. It requires many random rows: if positives are rare, the rule asks about nearly
    the whole pool. To stop earlier without a bound, use another rule, or the argument `max_labels`
    of `run`.

    The positive class is the second of two classes, as for the strategy "largest_positive".

    Parameters
    ----------
    recall : float, default=0.95
        Target recall.

    See Also
    --------
    ErrorAudit : Stop when further labels change little, and bound the error.
    MaxLabels : Stop after a number of labels.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import ActiveLearner, OnlineSVC
    >>> from marginwise.active import TargetRecall
    >>> X, y = make_moons((900, 100), noise=0.1, random_state=0)
    >>> learner = ActiveLearner(OnlineSVC(C=10, gamma=1.0), X, strategy="largest_positive",
    ...                         stop=TargetRecall(0.8), random_state=0)
    >>> learner.run(lambda row: y[row]).should_stop().stop
    True
    """

    recall: float = GOAL

    def __post_init__(self) -> None:
        require(
            0 < self.recall < 1,
            f"recall must be between 0 and 1, both excluded, got {self.recall!r}.",
        )

    def check(self, learner: Progressing) -> bool:
        """Return whether the lower bound of the recall has reached the target.

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
        classes = learner.classes_.tolist()
        if len(classes) > 2:
            raise ValueError(
                f"TargetRecall counts the rows of the second of two classes, but there are "
                f"{len(classes)}: {classes!r:.100}. Use ErrorAudit or MaxLabels, or teach two "
                "labels, such as 0 for irrelevant and 1 for relevant rows."
            )
        hits = [step["label"] == classes[1] for step in learner.history_]
        draws = [step["purpose"] == AUDIT for step in learner.history_]
        evidence = Evidence(
            items=len(hits) + learner.n_unseen_,
            seen=len(hits),
            found=sum(hits),
            sample=0,  # the draws do not follow one order
            sample_found=0,
            draws=[hit for hit, drawn in zip(hits, draws, strict=True) if drawn],
        )
        return self.answer(*verdict(estimate(evidence), evidence, self.recall))

    def wants_audit(self, learner: Progressing, pending: int) -> int:
        """Return how many of the next questions must be drawn at random.

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
        counts = learner.support_counts_
        begun = next((k for k, count in enumerate(counts) if count != 0), len(counts))
        purposes = [step["purpose"] for step in learner.history_[begun + 1 :]]
        due = purposes.count(STRATEGY) // (RANDOM_EVERY - 1)
        return max(0, due - purposes.count(AUDIT) - pending)
