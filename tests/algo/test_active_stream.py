"""Streams worked by hand: a failure means that labels are asked for that no rule wants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from marginwise import OnlineSVC
from marginwise.active import BudgetRule, MarginRule
from tests.active_support import Given


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_margin_rule_wants_what_lies_within() -> None:
    rule = MarginRule(Given())
    wanted = rule.wants(column(-1.0, -1.5, 0.0, 1.0, 1.01))
    assert wanted.tolist() == [True, False, True, True, False], "|f| <= 1, the border included"
    assert (rule.n_seen_, rule.n_asked_) == (5, 3)
    rule.wants(column(0.0, 9.0))
    assert (rule.n_seen_, rule.n_asked_) == (7, 4)
    assert MarginRule(Given(), margin=0.5).wants(column(0.5, 0.6)).tolist() == [True, False]
    # Half the leads: 1 and 3/2.
    several = MarginRule(Given(3)).wants(np.array([[2.0, 0.0, -5.0], [3.0, 0.0, 0.0]]))
    assert several.tolist() == [True, False]


@pytest.mark.parametrize("rows", [column(0, 0, 0), [[0], [0], [0]], sp.csr_array(np.eye(3))])
def test_a_model_that_cannot_score_wants_all(rows: Any) -> None:
    rule = MarginRule(OnlineSVC())
    assert rule.wants(rows).tolist() == [True, True, True]
    assert (rule.n_seen_, rule.n_asked_) == (3, 3)


def test_budget_of_a_half_is_every_other_row() -> None:
    # Earned after rows 1, 2, 3, 4: 0.5, 1, 1.5, 2. Spent 0 < 0.5; 1 = 1; 1 < 1.5; 2 = 2.
    rule = BudgetRule(Given(), budget=0.5)
    assert rule.wants(column(0, 0, 0, 0)).tolist() == [True, False, True, False]
    assert (rule.n_seen_, rule.n_asked_) == (4, 2)


def test_width_of_the_budget_rule() -> None:
    # A question: 1 * (1 - 0.1). A row that passes: 1 * (1 + 0.1 * 0.2 / 0.8) = 1.025.
    rule = BudgetRule(Given(), budget=0.2, step=0.1)
    assert rule.wants(column(0.5)).tolist() == [True]
    assert rule.width_ == pytest.approx(0.9)
    rule = BudgetRule(Given(), budget=0.2, step=0.1)
    assert rule.wants(column(5.0)).tolist() == [False]
    assert rule.width_ == pytest.approx(1.025)


@pytest.mark.parametrize("budget", [0.02, 0.1, 0.5, 0.9])
def test_the_budget_is_kept_however_rows_arrive(budget: float, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(500, 1))
    whole, pieces = BudgetRule(Given(), budget), BudgetRule(Given(), budget)
    wanted = whole.wants(values)
    asked = np.cumsum(wanted)
    assert (asked <= budget * np.arange(1, 501) + 1).all(), "more was asked than the budget allows"
    cut = [pieces.wants(part) for part in np.array_split(values, [1, 2, 50, 50, 333])]
    assert np.concatenate(cut).tolist() == wanted.tolist(), "the cutting of the stream matters"
    assert (pieces.n_seen_, pieces.n_asked_) == (500, asked[-1])
    assert pieces.width_ == whole.width_


@pytest.mark.parametrize("margin", [0.01, 1.0, 10.0])
def test_the_budget_is_spent_on_the_nearest(margin: float) -> None:
    """|f| is uniform on [0, 1], the budget a tenth: the nearest tenth is within 0.1.

    Asking blindly gives rows at 0.5 in the mean, the nearest tenth 0.05.
    """
    values = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 1))
    rule = BudgetRule(Given(), 0.1, margin=margin)
    wanted = rule.wants(values)[10_000:]
    assert wanted.mean() > 0.07, "the budget is not spent"
    assert np.abs(values[10_000:][wanted]).mean() < 0.1, "it is spent on any rows"


def test_stream_rules_check_what_they_are_given() -> None:
    for make in (MarginRule, BudgetRule):
        with pytest.raises(ValueError, match="margin must be above 0"):
            make(Given(), margin=0.0)
    for name in ("budget", "step"):
        for value in (0, 1, -0.5, np.nan):
            with pytest.raises(ValueError, match=f"{name} must be between 0 and 1"):
                BudgetRule(Given(), **{name: value})
