"""The estimate of relevant items that are still unseen, and the rule that stops by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from marginwise import ActiveLearner, OnlineSVC
from marginwise.active import STRATEGIES, ErrorAudit, TargetRecall
from marginwise.active.recall import (
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


@pytest.mark.slow
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


# -- with a learner -------------------------------------------------------------------------------


def rare(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 1.3).astype(int)


def searched(n: int = 300, seed: int = 0, **options: Any) -> tuple[ActiveLearner, np.ndarray]:
    X, y = rare(n, seed)
    given = {"strategy": "largest_positive", "random_state": seed, **options}
    learner = ActiveLearner(OnlineSVC(C=10, gamma=0.5), X, **given)
    first = [int(np.flatnonzero(y == label)[0]) for label in (0, 1)]
    return learner.teach(first, y[first]), y


def purposes(learner: ActiveLearner) -> list[str]:
    return [step["purpose"] for step in learner.history_ if step["asked"]]


def test_one_question_in_ten_is_drawn_at_random() -> None:
    learner, y = searched()
    learner.run(lambda row: y[row], max_labels=60)
    assert purposes(learner) == (["strategy"] * 9 + ["audit"]) * 6
    learner.run(lambda row: y[row], max_labels=60, batch=20)
    assert 10 <= purposes(learner).count("audit") <= 12


def test_the_default_disturbs_a_search_less_than_an_audit() -> None:
    """The audits of a model take whole blocks of questions, which find few positives."""
    found = {}
    for stop in ("auto", "audit"):
        learner, y = searched(600, stop=stop)
        learner.run(y.__getitem__, max_labels=130)
        found[stop] = purposes(learner).count("audit")
    assert found["auto"] == 13 < found["audit"]


def test_the_rule_stops_when_the_target_is_reached() -> None:
    learner, y = searched(stop=TargetRecall(0.6))
    learner.run(lambda row: y[row])
    verdict = learner.should_stop()
    assert verdict
    assert "relevant items were found" in verdict.reason
    assert learner.n_unseen_ > 0
    assert sum(step["label"] for step in learner.history_) >= 0.6 * y.sum()
    assert not searched(stop=TargetRecall(0.6))[0].should_stop()


def test_rows_taught_without_a_question_are_no_draws() -> None:
    learner, y = searched()
    rows = np.flatnonzero(y == 0)[1:101]
    learner.teach(rows, y[rows])
    assert "1 relevant item was found, and 0 to 198 of" in learner.should_stop().reason


def test_a_replay_without_scores_asks_the_same_question() -> None:
    learner, y = searched()
    learner.run(lambda row: y[row], max_labels=69)
    steps = learner.history_
    other, _ = searched()
    rows, labels, whys = ([s[key] for s in steps] for key in ("row", "label", "purpose"))
    other.replay(rows, labels, whys)
    assert other.should_stop() == learner.should_stop()
    assert other.ask(1).tolist() == learner.ask(1).tolist()


def rule_of(learner: ActiveLearner) -> type:
    """Return the class of the rule, by what it answers."""
    learner._verdict = None
    reason = learner.should_stop().reason
    return TargetRecall if "relevant item" in reason or "no model" in reason else ErrorAudit


@pytest.mark.parametrize("strategy", [*STRATEGIES, np.negative])
@pytest.mark.parametrize("stop", ["auto", "audit"])
def test_auto_is_the_rule_of_what_the_strategy_looks_for(strategy: Any, stop: str) -> None:
    learner, _ = searched(strategy=strategy, stop=stop)
    finds = strategy == "largest_positive" and stop == "auto"
    assert rule_of(learner) is (TargetRecall if finds else ErrorAudit)
    learner.strategy = "largest_positive" if strategy == "active" else "active"
    finds = strategy == "active" and stop == "auto"
    assert rule_of(learner) is (TargetRecall if finds else ErrorAudit)


def test_with_three_classes_there_is_no_positive_one() -> None:
    learner, y = searched()
    row = int(np.flatnonzero(y == 0)[1])
    learner.teach(row, 2)
    assert rule_of(learner) is ErrorAudit
    learner.undo()
    assert rule_of(learner) is TargetRecall
    learner.stop = TargetRecall()
    learner.teach(row, 2)
    with pytest.raises(ValueError, match=r"second of two classes, but there are 3: \[0, 1, 2\]"):
        learner.should_stop()


@pytest.mark.parametrize("recall", [0, 1, -0.5, 2])
def test_parameters(recall: float) -> None:
    with pytest.raises(ValueError, match="recall must be between 0 and 1"):
        TargetRecall(recall)


@pytest.mark.slow
def test_the_bound_of_a_search_by_a_model_holds() -> None:
    held = []
    for seed in range(20):
        learner, y = searched(200, seed, stop=TargetRecall(0.8))
        learner.run(y.__getitem__)
        held.append(sum(step["label"] for step in learner.history_) >= 0.8 * y.sum())
    assert sum(held) >= 17  # with a probability of 95 % each, fewer have one of 1.6 %
