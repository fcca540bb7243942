"""Estimates of the number of relevant items that are still unseen when items are ranked.

With the goal "find", the items with the highest scores are shown first, and one question in ten is
about an item that is drawn at random from all unseen items. The estimate relies on the random
questions, because relevant items that the model does not recognise yet do not have high scores.

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
from marginwise.calibration import Sigmoid

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


def verdict(found: Estimate, evidence: Evidence) -> tuple[bool, str]:
    """Return whether to stop, and why, in one sentence."""
    unseen = evidence.items - evidence.seen
    if unseen == 0:
        return True, f"all {evidence.items:,} items were seen."
    if not evidence.found or found.low is None or found.high is None:
        return False, "no relevant item was found yet."
    numbers = (
        f"{evidence.found:,} relevant items were found, and {found.unseen_low:,.0f} to "
        f"{found.unseen_high:,.0f} of the {unseen:,} unseen items may be relevant: with a "
        f"confidence of {1 - ERROR:.0%}, recall is"
    )
    if found.low >= GOAL:
        return True, f"{numbers} at least {found.low:.1%}."
    return False, f"{numbers} {found.low:.0%} to {found.high:.0%}."
