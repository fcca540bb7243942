"""How many relevant items are found, and how many may be left, where items are ranked.

With the goal "find", the items that the model scores highest are shown first, and one question in
ten is about an item that is drawn at random from all that are unseen. The random ones carry the
estimate, because what the model has not learned to recognise is not among its high scores.

The number V of relevant items among the unseen is bounded from both sides by binomial proportions,
by the method of Clopper and Pearson, which is conservative for draws without replacement:

1. *From above, by recent draws.* The later half of the random questions were drawn from the items
   that were unseen at that time. As long as ranking takes relevant items out of the unseen faster
   than chance would, the share of relevant items among the unseen falls, and an upper bound of the
   share that these draws show is one of the share now.
2. *From below, by the sample.* Random questions follow one random order of all items. When the last
   of them was asked at place m of that order, all of its first m items have been seen, whether they
   were asked at random or by rank. So these m are a random sample of all items. A lower bound of
   the share of relevant items in it bounds the number of all relevant items, and V is what of them
   was not found. The first random hit is left out of the sample: until then all questions are
   random and from then on few, so that the size of the sample depends on it.

The first bound rests on the assumption that it states, which may fail while the model is poor. It
becomes small when random questions find nothing for a long time, which is what to wait for before
stopping. Bounds hold at a given time; who looks at them often sees a wrong one more often.

The estimate itself is the sum of the probabilities of all unseen items, by a sigmoid of decision
values that is fitted to the answers and the values that items had before they were learned. Where
it lies outside the bounds, it is moved to the nearer one.
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
GOAL = 0.95  # recall from which to stop
LATEST = 300  # answers that probabilities are fitted to
LEAST_FITTED = 10


def binomial_bounds(hits: int, draws: int, error: float = ERROR) -> tuple[float, float]:
    """Return bounds of a proportion by Clopper and Pearson.

    Parameters
    ----------
    hits, draws : int
        How many of how many draws were hits.
    error : float, default=0.05
        Probability that the proportion is outside; half of it on each side.
    """
    low = 0.0 if hits == 0 else float(beta.ppf(error / 2, hits, draws - hits + 1))
    high = 1.0 if hits == draws else float(beta.ppf(1 - error / 2, hits + 1, draws - hits))
    return low, high


@dataclass(frozen=True)
class Evidence:
    """What is known of a search.

    Parameters
    ----------
    items, seen, found : int
        Numbers of all items, of those with an answer, and of the relevant ones among these.
    sample, sample_found : int
        Size of the random sample of all items, and number of relevant ones in it.
    draws : sequence of bool
        Whether each random question found a relevant item, in the order of asking.
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
    """How many relevant items are unseen, and the recall.

    Parameters
    ----------
    unseen, unseen_low, unseen_high : float
        Number of relevant items that are unseen, and its bounds.
    recall, low, high : float or None
        Share of the relevant items that were found; None if there is none.
    """

    unseen: float
    unseen_low: float
    unseen_high: float
    recall: float | None
    low: float | None
    high: float | None


def estimate(evidence: Evidence) -> Estimate:
    """Return the estimate and its bounds; see the module.

    Parameters
    ----------
    evidence : Evidence
        What is known.

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
    """Return how many relevant items are expected among unseen ones.

    Parameters
    ----------
    values : ndarray of shape (n_answers,)
        Scores that answered items had before they were learned.
    relevant : sequence of bool
        Whether they are relevant.
    unseen : ndarray of shape (n_unseen,)
        Scores of the unseen items.

    Returns
    -------
    expected : float or None
        None if there are too few answers of either kind.
    """
    target = np.asarray(relevant, dtype=np.float64)[-LATEST:]
    given = np.asarray(values, dtype=np.float64)[-LATEST:]
    if len(given) < LEAST_FITTED or not 0 < target.sum() < len(target):
        return None
    # As Platt does, so that slopes stay finite where scores separate the classes.
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
