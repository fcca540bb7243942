"""Removing customers from models of four points, with the arithmetic written out."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from marginwise import ExactOneClassSVM, ExactSVC
from marginwise.removal import Receipt, model_digest, remove
from marginwise.removal.digest import _ordered
from marginwise.removal.solution import largest_violation
from tests.support import held

TIGHT: dict[str, Any] = {"rel": 1e-12, "abs": 1e-12}
POINTS = [[0.0], [1.0], [3.0], [4.0]]
LABELS = [-1, -1, 1, 1]
CUSTOMERS = ["bob", "ann", "ann", "bob"]


def line() -> Any:
    return ExactSVC(kernel="linear", C=10.0).fit(POINTS, LABELS, groups=CUSTOMERS)


def test_forgetting_a_customer_widens_the_margin() -> None:
    # The nearest points of the classes are d apart: w = 2 / d, and alpha = 2 / d^2 for both.
    # With ann, d = 2 between 1 and 3: w = 1, alpha = 1/2, and f(2) = 0 gives b = -2.
    model = line()
    assert held(model) == pytest.approx({0: 0.0, 1: -0.5, 2: 0.5, 3: 0.0}, **TIGHT)
    assert model.intercept_ == pytest.approx([-2.0], **TIGHT)
    # Without her, d = 4 between 0 and 4: w = 1/2, alpha = 1/8, and b = -1.
    model.forget(groups=["ann"])
    assert held(model) == pytest.approx({0: -0.125, 3: 0.125}, **TIGHT)
    assert model.intercept_ == pytest.approx([-1.0], **TIGHT)
    # W = 2 alpha - w^2 / 2 = 1/4 - 1/8.
    assert model.dual_objective() == pytest.approx(0.125, **TIGHT)
    assert model.groups_.tolist() == ["bob", "bob"]


def test_the_receipt_of_a_customer() -> None:
    model, never = line(), ExactSVC(kernel="linear", C=10.0)
    digest = model_digest(model)
    receipt = remove(model, groups=["ann"], salt="pepper", compare=True)
    assert (receipt.by, receipt.rows_removed, receipt.rows_left) == ("groups", 2, 2)
    assert (receipt.support_vectors_before, receipt.support_vectors_after) == (2, 2)
    assert receipt.group_hashes == (hashlib.sha256(b"pepperann").hexdigest(),)
    rows = [hashlib.sha256(word).hexdigest() for word in (b"pepper1", b"pepper2")]
    assert receipt.row_hashes == tuple(sorted(rows))
    assert receipt.salt is None
    assert receipt.covers("ann", salt="pepper")
    assert not receipt.covers("bob", salt="pepper")
    assert (receipt.digest_before, receipt.digest_after) == (digest, model_digest(model))
    assert receipt.violation <= 1e-12
    assert receipt.dependents == {}
    assert receipt.comparison is not None
    assert receipt.comparison["decision_difference"] <= 1e-12
    assert receipt.comparison["objective_difference"] <= 1e-12
    never.fit([POINTS[0], POINTS[3]], [-1, 1])
    assert model.decision_function(POINTS) == pytest.approx(
        never.decision_function(POINTS), **TIGHT
    )


def test_the_receipt_states_gamma_and_class_weights() -> None:
    # Of 0, 1, 3 and 4 the variance is (4 + 1 + 1 + 4) / 4 = 5/2, so gamma = 2/5 in one dimension.
    # Without 4 it is (16 + 1 + 25) / 9 / 3 = 14/9, so gamma = 9/14.
    # Balanced weights are n / (2 n_c): 1 and 1 of two and two, 3/4 and 3/2 of two and one.
    model = ExactSVC(class_weight="balanced").fit(POINTS, LABELS, groups=[1, 1, 1, 2])
    receipt = remove(model, groups=[2])
    assert receipt.dependents["gamma"] == pytest.approx({"before": 0.4, "after": 9 / 14}, **TIGHT)
    assert receipt.dependents["class_weights"]["before"] == pytest.approx([1.0, 1.0], **TIGHT)
    assert receipt.dependents["class_weights"]["after"] == pytest.approx([0.75, 1.5], **TIGHT)
    assert receipt.dependents["class_weights"]["classes"] == ["-1", "1"]


def test_the_last_customer_leaves_an_empty_model() -> None:
    model = line()
    remove(model, groups=["ann"])
    receipt = remove(model, groups=["bob"], compare=True)
    assert (receipt.rows_left, receipt.support_vectors_after) == (0, 0)
    assert receipt.violation == 0.0
    assert model.is_empty_
    assert model.groups_.tolist() == []
    model.partial_fit([[0.0], [2.0]], [-1, 1], groups=[7, 8])  # of another kind, in a new life
    assert model.groups_.tolist() == [7, 8]
    assert held(model) == pytest.approx({4: -0.5, 5: 0.5}, **TIGHT)


def test_a_sphere_without_a_customer() -> None:
    # C = 1/2: two coefficients of 1/2, those of the outermost. Without 8, these are 0 and 2.
    model = ExactOneClassSVM(kernel="linear", C=0.5)
    model.partial_fit([[0.0], [2.0], [8.0]], groups=["in", "in", "out"])
    assert held(model) == pytest.approx({0: 0.5, 1: 0.0, 2: 0.5}, **TIGHT)
    receipt = remove(model, groups=["out"], compare=True)
    assert held(model) == pytest.approx({0: 0.5, 1: 0.5}, **TIGHT)
    assert receipt.violation <= 1e-12
    assert receipt.comparison is not None
    assert receipt.comparison["decision_difference"] <= 1e-12


def test_coefficients_that_are_not_the_solution_violate_its_conditions() -> None:
    # alpha of 0 and 4 is 1/8. With 1/10 instead, w = 2/5: the gradient y - w x is -1 and -3/5, and
    # b = -4/5 between the two. So f(0) = -4/5 and f(4) = 4/5, each 1/5 short of the margin.
    model = line().forget(groups=["ann"])
    assert largest_violation(model) <= 1e-12
    state = model._engine.state()
    state["alpha"] *= 0.8
    state["g"][0, [0, 3]] = [-1.0, -0.6]
    model._engine._restore(state)
    assert model.decision_function([[0.0], [4.0]]) == pytest.approx([-0.8, 0.8], **TIGHT)
    assert largest_violation(model) == pytest.approx(0.2, **TIGHT)


def test_receipts_survive_json() -> None:
    receipt = remove(line(), ids=[1, 2], compare=True)
    again = Receipt.from_json(receipt.to_json())
    assert again == receipt
    assert [again.covers(row) for row in range(4)] == [False, True, True, False]
    assert receipt.group_hashes == ()


def test_a_digest_sees_the_order_of_places_and_not_their_numbers() -> None:
    """Gaps that closed places have left are no part of a model; -1 is a row without a place."""
    rank = np.array([[5, -1, 2], [0, 1, -1]])
    assert _ordered(rank).tolist() == [[1, -1, 0], [0, 1, -1]]
