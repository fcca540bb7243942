"""Kernel perceptrons [bordes2005, section 2.2] worked by hand on one to four points.

f = sum alpha K. A mistake, y f <= margin, adds y C to alpha; the passive-aggressive update adds
y min(C, (m - y f) / K), m = margin or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginwise import KernelPerceptron
from tests.algo.test_gap import coefficients, feed
from tests.support import rings

E = np.eye(4)  # orthogonal unit vectors: with the linear kernel, K is the identity


def learner(**params: Any) -> KernelPerceptron:
    return KernelPerceptron(**{"kernel": "linear", **params})


# -- the perceptron -------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [+1, -1])
def test_first_example_is_a_mistake(y: int) -> None:
    model = feed(learner(), (2.0, y))
    assert coefficients(model) == {0: float(y)}
    assert model.decision_function([[2.0]]).tolist() == [4.0 * y]
    assert model.intercept_.tolist() == [0.0]


def test_only_mistakes_are_learned() -> None:
    # w = 1: f(2) = 2 is right for +1 and wrong for -1, which makes w = 1 - 2.
    model = feed(learner(), (1.0, +1), (2.0, +1), (2.0, -1))
    assert coefficients(model) == {0: 1.0, 2: -1.0}
    assert model.decision_function([[1.0]]).tolist() == [-1.0]


def test_on_the_boundary_is_a_mistake() -> None:
    assert coefficients(feed(learner(), (E[0], +1), (E[1], +1))) == {0: 1.0, 1: 1.0}


@pytest.mark.parametrize(("x", "learned"), [(0.5, True), (1.0, True), (1.5, False)])
def test_a_margin_must_be_exceeded(x: float, learned: bool) -> None:
    # w = 1, margin = 1: y f = x
    model = feed(learner(margin=1.0), (1.0, +1), (x, +1))
    assert (1 in coefficients(model)) is learned


def test_c_and_weights_are_the_size_of_a_step() -> None:
    model = learner(C=0.5, class_weight={-1: 4.0, 1: 1.0})
    model.partial_fit(E[:3], [1, -1, 1], classes=[-1, 1], sample_weight=[1.0, 2.0, 3.0])
    assert coefficients(model) == {0: 0.5, 1: -4.0, 2: 1.5}


def test_a_mistake_on_a_member_adds_to_it() -> None:
    # w = 1; x = 2, y = -1: w = -1; again x = 1, y = +1, by its id: alpha_0 = 2, w = 0; and again:
    # y f = 0 is a mistake: alpha_0 = 3, w = 1.
    model = feed(learner(), (1.0, +1), (2.0, -1))
    model.partial_fit([[1.0]], [1], ids=[0])
    assert coefficients(model) == {0: 2.0, 1: -1.0}
    model.partial_fit([[1.0]], [1], ids=[0])
    assert coefficients(model) == {0: 3.0, 1: -1.0}


def test_three_classes_are_three_problems() -> None:
    model = learner()
    for k in range(3):
        model.partial_fit(E[k : k + 1], [k], classes=[0, 1, 2])
    assert model.dual_coef_.tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert model.predict(E[:3]).tolist() == [0, 1, 2]


# -- averaged -------------------------------------------------------------------------------------


def test_average_is_over_all_examples_presented() -> None:
    # alpha is (1, 0), (1, 0) and (1, -1) after the three examples, the second no mistake.
    model = feed(learner(average=True), (E[0], +1), (2 * E[0], +1), (E[1], -1))
    assert coefficients(model) == pytest.approx({0: 1.0, 2: -1 / 3}, rel=1e-15)
    assert model.decision_function(E[:2]) == pytest.approx([1.0, -1 / 3], rel=1e-7)


def test_mistakes_are_those_of_the_last_perceptron_not_of_the_mean() -> None:
    # x = 1, +1: w = 1. x = 1, -1: mistake, w = 0, mean (1 + 0) / 2. x = 1, +1: by w = 0 a mistake,
    # by the mean none: w = 1, mean (1 + 0 + 1) / 3.
    model = feed(learner(average=True), (1.0, +1), (1.0, -1), (1.0, +1))
    assert coefficients(model) == pytest.approx({0: 1.0, 1: -2 / 3, 2: 1 / 3}, rel=1e-15)


# -- on a budget ----------------------------------------------------------------------------------


def test_budget_removes_what_is_right_without_itself() -> None:
    # x = 1, +1: w = 1. x = -1, +1: f = -1, w = 0. x = 2, -1: f = 0, w = -2, and three are too many.
    # y (f - alpha K): for 1, -2 - 1 = -3; for -1, 2 - 1 = 1; for 2, -(-4 + 4) = 0. The second goes.
    model = feed(learner(budget=2), (1.0, +1), (-1.0, +1), (2.0, -1))
    assert coefficients(model) == {0: 1.0, 2: -1.0}
    assert model.decision_function([[1.0]]).tolist() == [-1.0]


def test_the_example_just_learned_may_be_the_one_to_go() -> None:
    # margin = 3. x = 1, +1: w = 1. x = 2, +1, weight 1/2: y f = 2 <= 3, w = 2. Without itself the
    # first has y f = 2 - 1 = 1, the second 4 - 2 = 2.
    model = learner(budget=1, margin=3.0)
    model.partial_fit([[1.0]], [1], classes=[-1, 1])
    model.partial_fit([[2.0]], [1], sample_weight=[0.5])
    assert coefficients(model) == {0: 1.0}


@pytest.mark.parametrize("budget", [1, 5, 30])
@pytest.mark.parametrize("update", ["perceptron", "pa"])
def test_budget_is_never_exceeded(budget: int, update: str, seed: int) -> None:
    X, y = rings(150, seed, noise=0.2)
    model = KernelPerceptron(gamma=1.0, budget=budget, update=update, margin=0.5)
    for k in range(150):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        assert len(model.ids_) <= budget
        assert len(model.support_) <= budget
    assert len(model.ids_) == budget


def test_budget_is_of_each_problem(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(200, 2))
    model = KernelPerceptron(gamma=1.0, budget=7, random_state=seed).fit(X, np.arange(200) % 4)
    assert ((model.dual_coef_ != 0).sum(axis=1) == 7).all()


# -- passive-aggressive ---------------------------------------------------------------------------


def test_pa_closes_the_loss_of_one_example() -> None:
    # x = 2, K = 4: loss 1, alpha = 1/4, f = 1. x = 1, -1: f = 1/2, loss 3/2, alpha = -3/2, w = -1.
    model = feed(learner(update="pa", C=10.0), (2.0, +1), (1.0, -1))
    assert coefficients(model) == {0: 0.25, 1: -1.5}
    assert model.decision_function([[1.0]]).tolist() == [-1.0]


def test_pa_step_is_at_most_c() -> None:
    model = feed(learner(update="pa", C=0.125), (2.0, +1))
    assert coefficients(model) == {0: 0.125}


def test_pa_leaves_what_has_no_loss() -> None:
    # f(x) = x; y f = 1 has no loss.
    model = feed(learner(update="pa"), (1.0, +1), (1.0, +1), (2.0, +1))
    assert coefficients(model) == {0: 1.0}


def test_pa_with_a_margin() -> None:
    # margin = 1/2: loss 1/2 at first; x = 1/2, +1: y f = 1/4, loss 1/4, K = 1/4: alpha = 1.
    model = feed(learner(update="pa", margin=0.5), (1.0, +1), (0.5, +1))
    assert coefficients(model) == {0: 0.5, 1: 1.0}


@pytest.mark.parametrize("margin", [0.0, 0.5, 2.0])
def test_pa_closes_the_loss_of_the_example_just_learned(margin: float, seed: int) -> None:
    X, y = rings(100, seed, noise=0.2)
    model = KernelPerceptron(gamma=1.0, update="pa", C=1e6, margin=margin)
    for k in range(100):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        f = float(model.decision_function(X[k : k + 1])[0])
        assert (f if y[k] else -f) >= (margin or 1.0) - 1e-4


# -- what it promises -----------------------------------------------------------------------------


def test_a_separable_stream_is_separated(seed: int) -> None:
    """Novikoff: after finitely many mistakes there is none."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=200)
    X = rng.normal(size=(200, 2)) + np.where(y, 4.0, -4.0)[:, None]
    model = KernelPerceptron(kernel="linear", epochs=20, random_state=seed).fit(X, y)
    assert model.score(X, y) == 1.0
    again = KernelPerceptron(kernel="linear", epochs=40, random_state=seed).fit(X, y)
    assert again.stats_["process"] == model.stats_["process"], "it went on making mistakes"


def test_average_is_better_on_noisy_labels(seed: int) -> None:
    X, y = rings(600, seed, noise=0.2)
    X_test, y_test = rings(500, seed + 1)
    plain, averaged = (
        KernelPerceptron(gamma=1.0, average=average, random_state=seed).fit(X, y)
        for average in (False, True)
    )
    assert averaged.score(X_test, y_test) > plain.score(X_test, y_test)
