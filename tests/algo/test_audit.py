"""ErrorAudit on histories made by hand, and how often what it states is true.

A failure means that the rule stops for another reason than it gives, or states too much.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from marginwise import ActiveLearner, OnlineSVC
from marginwise.active import ErrorAudit, MaxLabels
from marginwise.active.marks import FIRST, RUNGS, rung
from marginwise.active.verdict import Changed
from tests.active_support import pool


class Told:
    """A learner of which only what a rule looks at is known."""

    n_pool_, n_unseen_, has_model_ = 5000, 3800, True

    def __init__(self, history: list[dict[str, Any]], share: float, rare: float = 0.5) -> None:
        self.history_ = history
        self.share, self.rare = share, rare

    def changed_predictions(self, labels: int | None = None) -> Changed | None:
        n = len(self.history_) if labels is None else labels
        return Changed(n // 2, n, self.share, self.rare) if n >= 32 else None


def steps(n: int, purpose: str = "strategy", wrong: int = 0, rare: int = 0) -> list[dict[str, Any]]:
    """Labels, of which the first are wrong or, where right, of the rare class."""
    return [
        {
            "row": k,
            "label": int(k < rare),
            "purpose": purpose,
            "predicted": int((k < rare) != (k < wrong)) if purpose == "audit" else None,
        }
        for k in range(n)
    ]


def test_the_bound_is_that_of_the_binomial_distribution() -> None:
    """With one error of 59, 59 p (1 - p)^58 + (1 - p)^59 is 2.5 %: half of 5 % for audit 1."""
    (audit,) = ErrorAudit().audits(steps(100) + steps(59, "audit", wrong=1, rare=8))
    assert (audit.number, audit.end, audit.rows, audit.errors, audit.constant) == (1, 159, 59, 1, 8)
    assert binom.cdf(1, 59, audit.bound) == pytest.approx(0.025)
    both = ErrorAudit(rows=10, confidence=0.9).audits(steps(20, "audit"))
    assert both[0].bound == pytest.approx(1 - 0.05 ** (1 / 10))
    assert both[1].bound == pytest.approx(1 - (0.1 / 6) ** (1 / 10))
    assert ErrorAudit(rows=5).audits(steps(5, "audit", wrong=5))[0].bound == 1


def test_an_audit_begins_when_few_predictions_change() -> None:
    rule = ErrorAudit()
    assert rule.wants_audit(Told(steps(63), 0.0), 0) == 0, "there are too few labels"
    assert rule.wants_audit(Told(steps(64), 0.021), 0) == 0, "too many predictions change"
    assert rule.wants_audit(Told(steps(64), 0.02), 0) == 59
    assert rule.wants_audit(Told(steps(64), 0.02, rare=0.05), 0) == 0, "a class is rare"
    assert rule.wants_audit(Told(steps(64), 0.01, rare=0.05), 0) == 59
    assert rule.wants_audit(Told(steps(256), 0.05), 0) == 59, "it shows how large the error is"
    begun = steps(64) + steps(20, "audit")
    assert rule.wants_audit(Told(begun, 0.5), 0) == 39, "an audit that has begun ends"
    assert rule.wants_audit(Told(begun, 0.5), 9) == 30, "some of its rows are being labelled"
    assert rule.wants_audit(Told(begun, 0.5), 39) == 0
    assert (rule & MaxLabels(9)).wants_audit(Told(begun, 0.5), 0) == 39


def test_it_stops_when_predictions_still_change_little() -> None:
    rule = ErrorAudit()
    told = Told(steps(64) + steps(59, "audit", wrong=2, rare=8), 0.01)
    assert rule.check(told)
    bound = rule.audits(told.history_)[0].bound
    assert rule.reason == (
        "of 59 rows drawn at random, the model predicted 57 correctly: with 95% confidence, its "
        f"error on rows like them is below {bound:.1%}. From 61 labels to 123, 1.00% of the "
        "predictions changed, so further labels would change little."
    )
    assert rule.wants_audit(told, 0) == 0, "it has stopped; there is nothing to audit"
    told.share = 0.03
    assert not rule.check(told)
    assert "an audit begins when it is 2.00% or less" in rule.reason


def test_changes_are_small_beside_a_large_error() -> None:
    """6 errors of 59 are 10 %, and a third of that is 3.4 %."""
    told = Told(steps(256) + steps(59, "audit", wrong=6, rare=25), 0.034)
    assert not ErrorAudit().check(Told(told.history_, 0.0345))
    assert not ErrorAudit().check(Told(steps(256) + steps(59, "audit", rare=25), 0.034))
    assert ErrorAudit().check(Told(told.history_, 0.0335))


def test_a_model_no_better_than_a_constant_answer_continues() -> None:
    """Until the third audit: there may be nothing to learn."""
    history: list[dict[str, Any]] = steps(64)
    for number in range(1, 4):
        history = history + steps(59, "audit", wrong=4, rare=4)
        assert ErrorAudit().check(Told(history, 0.0)) == (number == 3)
        history = history + steps(9)
    assert ErrorAudit().wants_audit(Told(steps(64) + steps(59, "audit") + steps(1), 0.0), 0) == 59


def test_a_target_is_audited_at_each_doubling() -> None:
    rule = ErrorAudit(target=0.07)
    assert rule.wants_audit(Told(steps(64), 0.5), 0) == 59
    first = steps(64) + steps(59, "audit", wrong=3)
    assert not rule.check(Told(first, 0.5))
    assert rule.wants_audit(Told(first + steps(122), 0.5), 0) == 0
    assert rule.wants_audit(Told(first + steps(123), 0.5), 0) == 59
    assert rule.check(Told(steps(64) + steps(59, "audit"), 0.5)), "0 of 59: below 6.1 %"
    assert rule.reason.endswith("is below 6.1%. This reaches the target of 7.00%.")


def test_the_ladder_doubles_in_four_rungs() -> None:
    assert rung(FIRST - 1) == 0
    assert rung(FIRST) == 1
    assert [rung(FIRST * 2**k) for k in range(6)] == [1 + RUNGS * k for k in range(6)]
    assert rung(math.ceil(FIRST * 2**0.25)) == 2


def test_a_model_is_compared_with_one_of_half_as_many_labels() -> None:
    """After 70 labels: the rungs are 16, 20, 23, 27, 32, 39, 46, 54 and 64."""
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(int)
    learner = ActiveLearner(OnlineSVC(), X, stop=None, random_state=0)
    for row in range(70):
        learner.teach(row, y[row])
    changed = learner.changed_predictions()
    assert changed is not None
    assert (changed.before, changed.labels) == (32, 64)
    earlier = learner.changed_predictions(60)
    assert earlier is not None
    assert (earlier.before, earlier.labels) == (27, 54)
    assert learner.changed_predictions(31) is None


@pytest.mark.parametrize(
    "bad", [{"target": 0}, {"change": 1}, {"confidence": 1.0}, {"rows": 0}, {"target": -0.1}]
)
def test_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        ErrorAudit(**bad)


# -- with a learner -------------------------------------------------------------------------------


def audited(seed: int, **options: Any) -> tuple[ActiveLearner, np.ndarray]:
    X, y = pool(400, seed)
    rule = ErrorAudit(rows=20)
    learner = ActiveLearner(OnlineSVC(C=10), X, stop=rule, random_state=seed, **options)
    return learner, y


def test_rows_of_an_audit_are_predicted_before_they_are_learned() -> None:
    learner, y = audited(0)
    found = []
    while not learner.should_stop():
        row = learner.ask()
        before = learner.estimator_.predict(learner.pool_rows(row))[0] if learner.has_model_ else -1
        learner.teach(row, y[row])
        step = learner.history_[-1]
        if step["purpose"] == "audit":
            assert step["predicted"] == before
            found.append(row)
        else:
            assert step["predicted"] is None
    assert len(found) == 20
    assert "of 20 rows drawn at random" in learner.should_stop().reason


def test_a_batch_has_rows_of_an_audit_first() -> None:
    learner, y = audited(0)
    while "begins" in learner.should_stop().reason or "too few" in learner.should_stop().reason:
        row = learner.ask()
        learner.teach(row, y[row])
    rows = learner.ask(30)
    learner.teach(rows, y[rows])
    left = 20 - sum(s["purpose"] == "audit" for s in learner.history_[:-30])
    assert [s["purpose"] for s in learner.history_[-30:]] == ["audit"] * left + ["strategy"] * (
        30 - left
    )


def test_prefetched_questions_are_one_audit() -> None:
    """Two rows are always on their way; an audit has 20 rows even so."""
    learner, y = audited(1)
    queue = [learner.ask()]
    for _ in range(2):
        queue.append(learner.ask(exclude=queue))
    while not learner.should_stop():
        row = queue.pop(0)
        learner.teach(row, y[row])
        queue.append(learner.ask(exclude=queue))
    assert len(set(queue)) == 3
    assert sum(step["purpose"] == "audit" for step in learner.history_) % 20 == 0


def test_undo_pickles_and_replays_keep_the_audit() -> None:
    learner, y = audited(2)
    learner.run(lambda row: y[row])
    verdict = learner.should_stop()
    assert pickle.loads(pickle.dumps(learner)).should_stop() == verdict
    history = learner.history_
    other, _ = audited(2)
    other.replay(
        *zip(*[(s["row"], s["label"]) for s in history], strict=True),
        [s["purpose"] for s in history],
    )
    assert other.should_stop() == verdict
    assert [s["predicted"] for s in other.history_] == [s["predicted"] for s in history]
    last = other.history_[-1]["row"]
    other.undo()
    assert not other.should_stop()
    other.teach(last, y[last], purpose="audit")
    assert other.should_stop() == verdict


def test_what_is_stated_is_true() -> None:
    """All audits of a run hold together with a probability of 80 % or more."""
    runs, held = 60, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        error = float(rng.uniform(0.02, 0.3))
        history: list[dict[str, Any]] = []
        for _ in range(4):
            history += steps(30, "audit", wrong=int(rng.binomial(30, error)))
        audits = ErrorAudit(rows=30, confidence=0.8).audits(history)
        held += all(error <= audit.bound for audit in audits)
    assert held >= binom.ppf(0.001, runs, 0.8)


def test_a_bad_purpose_is_refused() -> None:
    learner, y = audited(0)
    with pytest.raises(ValueError, match="purpose must be one of 'strategy', 'audit', 'given'"):
        learner.teach(0, y[0], purpose="luck")
    assert learner.counts_["taught"] == 0


def test_a_model_that_is_accepted_although_it_is_not_better_than_a_constant_answer() -> None:
    rule = ErrorAudit()
    history = steps(64) + 3 * steps(59, "audit", wrong=1, rare=1)
    assert not rule.check(Told(history[:-59], 0.0))
    assert rule.check(Told(history, 0.0))
    assert "A constant prediction would have been correct for 58 of these rows." in rule.reason
    assert rule.check(Told(steps(64) + steps(59, "audit", rare=9), 0.0))
    assert "constant" not in rule.reason


@pytest.mark.parametrize(("labels", "limit"), [(255, "2.00%"), (256, "5.00%")])
def test_the_limit_that_is_announced_is_the_one_that_counts(labels: int, limit: str) -> None:
    rule = ErrorAudit()
    assert not rule.check(Told(steps(labels), 0.4))
    assert f"an audit begins when it is {limit} or less" in rule.reason
    for share in (0.02, 0.04, 0.06):
        begins = rule.wants_audit(Told(steps(labels), share), 0) > 0
        assert begins == (100 * share <= float(limit[:-1]))
