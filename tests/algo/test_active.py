"""Active learning worked by hand: a failure means that a rule is not what its page says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from marginwise import OnlineSVC
from marginwise.active import (
    ActiveLearner,
    AllOf,
    AnyOf,
    MarginExhausted,
    MaxLabels,
    StoppingRule,
    SupportVectorPlateau,
    closeness,
    pool_size_for,
)
from marginwise.active.batch import different_rows
from marginwise.active.scores import autoactive_size, by_function, disagreement, least_positive
from tests.active_support import begun, pool

# -- scores ---------------------------------------------------------------------------------------


def test_closeness_is_the_distance_from_the_boundary() -> None:
    assert closeness(np.array([-2.0, 0.5, 0.0])).tolist() == [2.0, 0.5, 0.0]
    # Half the lead of the best over the second, wherever they stand.
    several = np.array([[3.0, 1.0, -1.0], [-1.0, 1.0, 3.0], [0.0, 0.0, -5.0], [-3.0, -2.0, -9.0]])
    assert closeness(several).tolist() == [1.0, 1.0, 0.0, 0.5]


def test_closeness_of_two_columns_agrees_with_one() -> None:
    f = np.array([-2.5, 0.25, 1.0])
    assert closeness(np.column_stack([-f, f])).tolist() == closeness(f).tolist()


def test_least_positive_puts_the_surest_positive_first() -> None:
    assert np.argmin(least_positive(np.array([-3.0, 2.0, 1.0]))) == 1
    # Largest values 1, 4 and 2, whatever their class.
    several = np.array([[1.0, -1.0, 0.0], [-9.0, -9.0, 4.0], [0.0, 2.0, 0.0]])
    assert least_positive(several).tolist() == [-1.0, -4.0, -2.0]


def test_disagreement_of_two_classes_is_y_f() -> None:
    # Class 1 is the positive one: y f = 0.5, then -0.5 for class 0; without a label |f| = 0.2.
    values = disagreement(np.array([0.5, 0.5, -0.2]), np.array([1, 0, -1]))
    assert values.tolist() == [0.5, -0.5, 0.2]


def test_disagreement_of_several_classes_is_half_the_lead_of_the_noted_one() -> None:
    scores = np.tile([2.0, 0.0, 1.0], (4, 1))
    # Noted 0: (2 - 1) / 2. Noted 1: (0 - 2) / 2. Noted 2: (1 - 2) / 2. None: closeness, 1/2.
    values = disagreement(scores, np.array([0, 1, 2, -1]))
    assert values.tolist() == [0.5, -1.0, -0.5, 0.5]
    assert scores.tolist() == [[2.0, 0.0, 1.0]] * 4, "the scores given were changed"


def test_autoactive_samples_until_five_are_inside() -> None:
    scores = np.array([0.0, 9.0, 0.9, -0.9, 9.0, 0.5, 9.0, 0.1, 0.2, 9.0])
    assert autoactive_size(scores, 0.0) == 8, "the fifth row inside is the eighth"
    # 1 + 0.5 / 2 = 1.25: now 1.2 is inside, and a value of 1.25 is not.
    scores = np.array([1.2, 1.25, 1.2, -1.2, 1.2, 1.2, 1.2])
    assert autoactive_size(scores, 0.5) == 6
    assert autoactive_size(scores, 0.0) == len(scores), "too few inside: all that were sampled"
    assert autoactive_size(scores, -np.inf) == len(scores), "no pair yet: the margin is 1"
    several = np.zeros((6, 3))
    assert autoactive_size(several, 0.0) == 5


def test_a_function_is_asked_for_its_largest_value() -> None:
    values = by_function(lambda scores: scores)(np.array([1.0, 5.0, -2.0]))
    assert values.argmin() == 1


# -- how many to sample ---------------------------------------------------------------------------


def test_fifty_nine() -> None:
    """0.95^58 = 0.0510 > 0.05 >= 0.95^59 = 0.0485."""
    assert pool_size_for(0.05, 0.95) == 59
    assert pool_size_for() == 59


@pytest.mark.parametrize(
    ("top", "confidence", "size"),
    [
        (0.5, 0.5, 1),
        (0.5, 0.25, 1),
        (0.5, 0.9, 4),  # 1/8 > 0.1 >= 1/16
        (0.01, 0.99, 459),  # 0.99^458 = 0.01002, 0.99^459 = 0.00992
        (0.5, 0.75, 2),  # (1/2)^2 = 1/4, just enough
        (0.25, 0.578125, 3),  # (3/4)^3 = 27/64 = 1 - 37/64, just enough; all are exact in binary
        (0.5, 1 - 2**-29, 29),
        (1e-9, 0.95, 2995732273),
    ],
)
def test_the_smallest_size_that_is_enough(top: float, confidence: float, size: int) -> None:
    """(1 - top)^n <= 1 - confidence for this n and no smaller one."""
    assert pool_size_for(top, confidence) == size


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, np.nan, np.inf])
def test_shares_are_between_0_and_1(value: float) -> None:
    with pytest.raises(ValueError, match="top must be between 0 and 1"):
        pool_size_for(top=value)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        pool_size_for(confidence=value)


# -- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32])
def test_near_duplicates_give_way_to_the_first(form: Any) -> None:
    # Squared distances: 0.25 of the third and fourth; 90.25, 100 three times, 110.25 twice and 400
    # twice of the others that differ. The median is 100; up to a tenth of 10 two rows are as one.
    X = form(np.array([[0.0], [0.0], [10.0], [10.5], [20.0]]))
    assert different_rows(X, 5).tolist() == [0, 2, 4]
    assert different_rows(X, 2).tolist() == [0, 2]
    assert different_rows(X[[3, 2, 1, 0]], 4).tolist() == [0, 2], "the best are not kept"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equal_rows_are_one(form: Any) -> None:
    assert different_rows(form(np.full((4, 3), 0.1)), 3).tolist() == [0]
    assert different_rows(form(np.zeros((3, 2))), 3).tolist() == [0]
    assert different_rows(form(np.array([[1.0, 2.0]])), 3).tolist() == [0]
    assert different_rows(form(np.array([[0.0], [1e-6]])), 2).tolist() == [0, 1], "units matter"


# -- stopping -------------------------------------------------------------------------------------


class Tiny:
    """As much of a learner as rules look at: values of unseen rows, and a history."""

    def __init__(self, values: Any = (), counts: Any = (), has_model: bool = True) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.history_: list[dict[str, Any]] = [{"support_vectors": count} for count in counts]
        self.support_counts_ = list(counts)
        self.n_unseen_ = len(self.values)
        self.n_pool_ = 30
        self.has_model_ = has_model
        self.candidates = np.empty(0)
        self.looked_at = 0

    def sample_unseen(self, size: int) -> np.ndarray:
        return np.arange(size)

    def decision_values(self, rows: Any = None) -> np.ndarray:
        self.looked_at = len(rows)
        return self.values[rows]

    def candidate_values(self) -> np.ndarray:
        return self.candidates


def test_margin_exhausted_looks_at_every_row_of_a_small_pool() -> None:
    rule = MarginExhausted()
    # |f| = 2, 3, 1: a row on the margin is not within it.
    assert rule.check(Tiny([2.0, -3.0, 1.0]))
    assert rule.reason == "none of the 3 unseen rows lies inside the margin."
    assert not rule.check(Tiny([2.0, -0.99, 1.0]))
    assert rule.reason == "1 of 3 unseen rows lie inside the margin."
    assert MarginExhausted(margin=0.5).check(Tiny([2.0, -0.99, 1.0]))
    # Half the leads are 1 and 1/2.
    assert not rule.check(Tiny([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))


def test_margin_exhausted_needs_a_model() -> None:
    rule = MarginExhausted()
    assert not rule.check(Tiny([5.0], has_model=False))
    assert "no model" in rule.reason


def test_margin_exhausted_samples_a_large_pool() -> None:
    # (1 - 1/4)^n <= 1 - 3/4 first for n = 5: (3/4)^4 = 0.316, (3/4)^5 = 0.237.
    rule = MarginExhausted(top=0.25, confidence=0.75, exact_below=9)
    values = np.full(10, 2.0)
    values[9] = 0.0  # not among the first five
    learner = Tiny(values)
    assert rule.check(learner)
    assert learner.looked_at == 5
    assert rule.reason == (
        "none of 5 sampled rows lies inside the margin: with a confidence of 75%, less than "
        "25.00% of the 10 unseen rows do."
    )
    smaller = Tiny(values[1:])
    assert not rule.check(smaller), "nine rows are few enough for all to be looked at"
    assert smaller.looked_at == 9


def test_margin_exhausted_uses_the_rows_that_were_scored_for_the_question() -> None:
    learner = Tiny([2.0, 2.0])
    learner.candidates = np.array([3.0, 0.5])
    rule = MarginExhausted()
    assert not rule.check(learner)
    assert learner.looked_at == 0, "rows were scored that need not be"
    assert "1 of the last candidates lie inside the margin" in rule.reason


def test_margin_of_two_points_on_a_line() -> None:
    # f(x) = x: rows -1 and 1 become the support vectors, alpha = 1/2 each. Of the unseen rows
    # 3 and -2 are beyond the margin, 0.5 is within.
    X = np.array([[-1.0], [1.0], [3.0], [-2.0], [0.5]])
    learner = ActiveLearner(
        OnlineSVC(kernel="linear"), X, stop=MarginExhausted(), strategy="near_boundary"
    )
    learner.teach([0, 1], ["no", "yes"])
    np.testing.assert_allclose(learner.decision_values(), [-1, 1, 3, -2, 0.5], rtol=1e-6)
    assert learner.ask() == 4
    assert not learner.should_stop()
    learner.skip(4)
    assert learner.should_stop()
    assert learner.should_stop().reason == "none of the 2 unseen rows lies inside the margin."


@pytest.mark.parametrize(
    ("counts", "stop"),
    [
        ([5, 10, 10, 11], False),  # moved by 6, more than a tenth of 11
        ([5, 10, 10, 11, 11], True),  # the last four: moved by 1, a tenth of 11 is 1.1
        ([9, 10, 10, 10], True),  # moved by 1, a tenth of 10: the limit belongs to it
        ([11, 11, 11], False),  # three labels have but two steps between them
        ([0, 0, 11, 11, 11], False),  # labels before there was a model do not count
        ([0, 11, 11, 11, 11], True),
        ([], False),
    ],
)
@pytest.mark.parametrize("window", [3, 0.1])
def test_plateau_of_three_labels(counts: list[int], stop: bool, window: float) -> None:
    """Three labels, or a tenth of a pool of thirty."""
    rule = SupportVectorPlateau(window=window, tolerance=0.1)
    assert rule.check(Tiny(counts=counts)) is stop
    if len(counts) > 3 and counts[0]:
        moved = max(counts[-4:]) - min(counts[-4:])
        assert rule.reason == (
            f"over the last 3 labels, the number of support vectors, now {counts[-1]}, changed by "
            f"{moved}, which is {'at most' if stop else 'more than'} 10.0% of it."
        )


def test_plateau_needs_counts() -> None:
    with pytest.raises(ValueError, match="needs an estimator that counts its support vectors"):
        SupportVectorPlateau(window=1).check(Tiny(counts=[None, None]))


def test_one_large_batch_is_no_plateau() -> None:
    """From none to all in one call: the number was looked at once and has not come to rest."""
    X, y = pool(60)
    learner = ActiveLearner(OnlineSVC(C=10), X, stop=SupportVectorPlateau(window=10))
    learner.teach(np.arange(20), y[:20])
    assert not learner.should_stop(), learner.should_stop().reason


def test_plateau_of_a_real_learner() -> None:
    X, y = pool(60)
    learner = begun(X, y, 30, stop=SupportVectorPlateau(window=5, tolerance=100.0))
    assert learner.should_stop(), "a tolerance of everything is not enough"
    counts = [step["support_vectors"] for step in learner.history_]
    assert counts[-1] == learner.estimator_.n_support_.sum()


def test_max_labels() -> None:
    rule = MaxLabels(3)
    assert [rule.check(Tiny(counts=[1] * have)) for have in (2, 3, 4)] == [False, True, True]
    rule.check(Tiny(counts=[1] * 2))
    assert rule.reason == "2 of 3 labels were given."
    rule.check(Tiny(counts=[1] * 4))
    assert rule.reason == "4 labels were given, more than the limit of 3."


def test_one_is_enough_or_all_must_hold() -> None:
    labels, margin = MaxLabels(2), MarginExhausted()
    either, both = labels | margin, labels & margin
    assert either == AnyOf((labels, margin))
    assert both == AllOf((labels, margin))
    inside, outside = [0.5], [2.0]
    cases = [([], inside, 0), ([1, 1], inside, 1), ([], outside, 1), ([1, 1], outside, 2)]
    for counts, values, met in cases:
        learner = Tiny(values, counts)
        assert either.check(learner) is (met >= 1)
        assert both.check(learner) is (met == 2)


def test_combinations_give_the_reasons_of_their_parts() -> None:
    labels, margin = MaxLabels(2), MarginExhausted()
    learner = Tiny([0.5], [1, 1])
    rule = margin | labels
    assert rule.check(learner)
    assert rule.reason == "2 of 2 labels were given.", "the rule that is met is the reason"
    rule = labels & margin
    assert not rule.check(learner)
    assert rule.reason == "1 of 1 unseen rows lie inside the margin.", "what lacks is the reason"
    nested = (MaxLabels(5) & margin) | (MaxLabels(9) | labels)
    assert nested.check(learner)
    assert nested.reason == "2 of 2 labels were given."
    none = MaxLabels(5) | MaxLabels(6)
    assert not none.check(learner)
    assert "2 of 5" in none.reason
    assert "2 of 6" in none.reason


def test_rules_are_values() -> None:
    """What a rule last said is no part of it: learners may share rules."""
    rule, same = MaxLabels(2), MaxLabels(2)
    rule.check(Tiny(counts=[1, 1]))
    assert rule == same
    assert hash(rule) == hash(same)
    assert repr(rule) == "MaxLabels(labels=2)"
    with pytest.raises(AttributeError):
        rule.labels = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MarginExhausted(margin=0.0), "margin must be above 0"),
        (lambda: MarginExhausted(margin=np.nan), "margin must be above 0"),
        (lambda: MarginExhausted(top=0.0), "top must be between"),
        (lambda: MarginExhausted(confidence=1.0), "confidence must be between"),
        (lambda: MarginExhausted(exact_below=-1), "exact_below must be 0 or more"),
        (lambda: SupportVectorPlateau(window=0), "window must be"),
        (lambda: SupportVectorPlateau(window=-3), "window must be"),
        (lambda: SupportVectorPlateau(window=np.nan), "window must be"),
        (lambda: SupportVectorPlateau(window=np.inf), "window must be"),
        (lambda: SupportVectorPlateau(window=2.5), "window must be"),
        (lambda: SupportVectorPlateau(tolerance=-0.1), "tolerance must be 0 or more"),
        (lambda: MaxLabels(0), "labels must be 1 or more"),
        (lambda: AnyOf(()), "pass one stopping rule or more"),
    ],
)
def test_rules_check_what_they_are_given(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("other", [3, None, "rule", MarginExhausted])
def test_only_rules_combine(other: Any) -> None:
    with pytest.raises(TypeError, match="rules must be stopping rules"):
        MaxLabels(1) | other
    with pytest.raises(TypeError, match="rules must be stopping rules"):
        MaxLabels(1) & other


def test_a_rule_of_ones_own() -> None:
    class Never(StoppingRule):
        def check(self, learner: Any) -> bool:
            return self.answer(False, "never.")

    assert not (Never() & MaxLabels(1)).check(Tiny(counts=[1]))
    assert (Never() | MaxLabels(1)).check(Tiny(counts=[1]))
