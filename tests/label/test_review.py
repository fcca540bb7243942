"""The estimate of relevant items that are still unseen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from marginwise.label.review import (
    Estimate,
    Evidence,
    binomial_bounds,
    estimate,
    expected_relevant,
    verdict,
)


@pytest.mark.parametrize(("hits", "draws"), [(0, 20), (1, 20), (7, 40), (40, 40)])
def test_bounds_of_a_proportion_are_those_of_the_tails(hits: int, draws: int) -> None:
    low, high = binomial_bounds(hits, draws, 0.05)
    if hits > 0:
        assert binom.sf(hits - 1, draws, low) == pytest.approx(0.025)
    if hits < draws:
        assert binom.cdf(hits, draws, high) == pytest.approx(0.025)
    assert low <= hits / draws <= high


def test_the_rule_of_three() -> None:
    # None of 100 draws: with 97.5 % less than 1 - 0.025^(1/100) = 3.62 %, of 1,000 unseen items 36.
    found = estimate(Evidence(2000, 1000, 50, 0, 0, [True] * 100 + [False] * 100, expected=10.0))
    assert found == Estimate(10.0, 0.0, 36.0, 50 / 60, 50 / 86, 1.0)


def test_the_estimate_stays_within_the_bounds() -> None:
    evidence = Evidence(2000, 1000, 50, 0, 0, [False] * 200, expected=500.0)
    assert estimate(evidence).unseen == 36


def test_a_sample_bounds_from_below() -> None:
    # 50 of 100: at least 39.8 % of all 1,000, which is 399, and 10 of them were found.
    draws = [True, False] * 20
    found = estimate(Evidence(1000, 200, 10, 100, 50, draws))
    assert found.unseen_low == 389


def test_without_draws_nothing_is_known() -> None:
    found = estimate(Evidence(100, 10, 0, 0, 0, []))
    assert (found.unseen_low, found.unseen_high) == (0, 90)
    assert verdict(found, Evidence(100, 10, 0, 0, 0, [])) == (
        False,
        "no relevant item was found yet.",
    )


def test_when_all_were_seen_there_is_nothing_left() -> None:
    evidence = Evidence(100, 100, 7, 100, 7, [False] * 50)
    found = estimate(evidence)
    assert (found.unseen, found.recall, found.low, found.high) == (0, 1, 1, 1)
    assert verdict(found, evidence) == (True, "all 100 items were seen.")


def test_expected_numbers_follow_the_probabilities() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 2, 300)
    relevant = rng.random(300) < 1 / (1 + np.exp(-values))
    unseen = rng.normal(-2, 1, 4000)
    truth = (1 / (1 + np.exp(-unseen))).sum()
    assert expected_relevant(values, relevant.tolist(), unseen) == pytest.approx(truth, rel=0.3)
    assert expected_relevant(values[:5], [True] * 5, unseen) is None


def search(rng: np.random.Generator, items: int, relevant: int, look: int) -> tuple[Evidence, int]:
    """Search by a ranking that improves as items are found; one in ten items is random."""
    truth = np.zeros(items, dtype=bool)
    truth[:relevant] = True
    order = rng.permutation(items)
    noise = rng.normal(size=items)
    seen, draws, sample = np.zeros(items, dtype=bool), [], 0
    for step in range(look):
        hits = int(truth[seen].sum())
        if hits == 0 or step % 10 == 0:
            place = int(np.flatnonzero(~seen[order])[0])
            row, sample = int(order[place]), place + 1
            draws.append(bool(truth[row]))
        else:
            score = np.where(seen, -np.inf, truth * 2.5 * hits / (hits + 10) + noise)
            row = int(score.argmax())
        seen[row] = True
    first = order[:sample]
    found = int(truth[seen].sum())
    sampled = int(truth[first].sum())
    started = any(draws)  # by a hit, which is not a fair draw
    evidence = Evidence(items, look, found, sample - started, sampled - started, draws)
    return evidence, relevant - found


@pytest.mark.parametrize("look", [60, 150, 300])
@pytest.mark.parametrize("relevant", [10, 60])
def test_the_bounds_hold(look: int, relevant: int) -> None:
    rng = np.random.default_rng(look + relevant)
    held = []
    for _ in range(200):
        evidence, left = search(rng, 600, relevant, look)
        found = estimate(evidence)
        held.append(found.unseen_low <= left <= found.unseen_high)
    # Of 200 looks, 95 % would be 190; fewer than 181 have a probability of 0.1 %.
    assert sum(held) >= 181
