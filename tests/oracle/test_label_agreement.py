"""Agreement of annotators against scikit-learn, and the share of items that they have in common."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from marginwise.label import Answers, Event
from marginwise.label.agreement import Agreement, agreements, cohen_kappa, is_shared, share_of


@pytest.mark.parametrize("seed", range(10))
def test_kappa_is_that_of_scikit_learn(seed: int) -> None:
    state = np.random.RandomState(seed)
    one = state.choice(["a", "b", "c"], 40)
    two = np.where(state.rand(40) < 0.6, one, state.choice(["a", "b", "d"], 40))
    pairs = list(zip(one.tolist(), two.tolist(), strict=True))
    assert cohen_kappa(pairs) == pytest.approx(cohen_kappa_score(one, two), abs=1e-12)


def test_kappa_of_hand_worked_cases() -> None:
    assert cohen_kappa([]) is None
    assert cohen_kappa([("a", "a")] * 5) is None  # a single label: chance always agrees
    assert cohen_kappa([("a", "b")] * 5) == 0.0  # chance never agrees, nor do they
    assert cohen_kappa([("a", "a"), ("b", "b")]) == 1.0
    assert cohen_kappa([("a", "b"), ("b", "a")]) == -1.0


def replayed(*given: tuple[str, str, str | None]) -> Answers:
    """Return the answers of (annotator, item, label), where None is a skip."""
    return Answers(
        Event(kind="label" if label else "skip", item=item, annotator=who, label=label, seq=seq)
        for seq, (who, item, label) in enumerate(given, start=1)
    )


def test_only_items_that_both_labelled_count() -> None:
    answers = replayed(
        ("ann", "1", "x"),
        ("ann", "2", "y"),
        ("ann", "3", "y"),
        ("bob", "1", "y"),
        ("bob", "1", "x"),  # a change
        ("bob", "2", "x"),
        ("bob", "3", None),
        ("eve", "9", "x"),
    )
    assert agreements(answers) == [Agreement("ann", "bob", 2, 0.5, 0.0)]
    assert agreements(replayed(("ann", "1", "x"), ("bob", "2", "x"))) == []
    assert agreements(Answers()) == []


def test_three_annotators_are_compared_in_pairs() -> None:
    answers = replayed(*((who, item, item) for who in ("ann", "bob", "eve") for item in "xy"))
    assert [(found.one, found.two, found.kappa) for found in agreements(answers)] == [
        ("ann", "bob", 1.0),
        ("ann", "eve", 1.0),
        ("bob", "eve", 1.0),
    ]


def test_the_share_is_a_function_of_the_item_alone() -> None:
    items = [f"item {number}" for number in range(20_000)]
    chosen = {item for item in items if is_shared(item, 0.1, seed=0)}
    assert abs(len(chosen) - 2000) < 5 * np.sqrt(20_000 * 0.1 * 0.9)
    assert chosen == {item for item in reversed(items) if is_shared(item, 0.1, seed=0)}
    assert chosen < {item for item in items if is_shared(item, 0.2, seed=0)}
    assert chosen != {item for item in items if is_shared(item, 0.1, seed=1)}
    other = {item for item in items if share_of(0, "holdout", item) < 0.1}
    assert abs(len(chosen & other) - 200) < 5 * np.sqrt(200)
    assert not any(is_shared(item, 0.0, seed=0) for item in items)
    assert all(is_shared(item, 1.0, seed=0) for item in items)


def test_the_share_is_the_same_on_every_machine() -> None:
    chosen = [number for number in range(50) if is_shared(str(number), 0.1, seed=0)]
    assert chosen == CHOSEN


CHOSEN = [6, 21, 24, 41, 48]
