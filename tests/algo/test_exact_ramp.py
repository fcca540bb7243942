"""OnlineSVM^R [wang2009] worked by hand on two to four points, and the fixed point it promises.

Unsigned alpha, g = 1 - y f. V are the examples with g <= 2, that is y f >= -1; alpha solves the SVM
over V and is 0 elsewhere. Coefficients that are compared are signed: y alpha.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from marginwise import ExactRampSVC
from marginwise._engine.engine import Engine
from tests.algo.test_gap import coefficients, feed, suspects
from tests.algo.test_tracking import optimum
from tests.support import blobs, kernel_values, rings

E = np.eye(4)  # orthogonal unit vectors: with the linear kernel, K is the identity
LEAST_GAIN = 1e-5  # of the dual, below which no step is made


def learner(**params: Any) -> ExactRampSVC:
    return ExactRampSVC(**{"kernel": "linear", "C": 10.0, **params})


# -- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [+1, -1])
def test_one_example(y: int) -> None:
    # x = 2, K = 4: alpha = 1/4, w = y/2; objective |w|^2 / 2 = 1/8.
    model = feed(learner(), (2.0, y))
    assert coefficients(model) == {0: y / 4}
    assert model.decision_function([[2.0]]).tolist() == [y]
    assert model.ramp_objective() == 1 / 8


def test_example_far_off_is_held_with_no_weight() -> None:
    # w = 1. x = 2, y = -1: g = 3 > 2. Objective 1/2 + C min(2, 3).
    model = feed(learner(), (1.0, +1), (2.0, -1))
    assert coefficients(model) == {0: 1.0, 1: 0.0}
    assert model.ramp_objective() == 20.5


def test_example_beyond_the_margin_is_held_with_no_weight() -> None:
    model = feed(learner(), (1.0, +1), (3.0, +1))
    assert coefficients(model) == {0: 1.0, 1: 0.0}
    assert model.ramp_objective() == 0.5


def test_at_the_end_of_the_ramp_an_example_is_learned() -> None:
    # w = 1. x = 1, y = -1: g = 2, still on the ramp: alpha_1 = 2, w = -1, g_0 = 2. In turn:
    # alpha_0 = 3, alpha_1 = 4, ..., alpha_0 = 9, alpha_1 = 10 = C, w = -1; then alpha_0 = 10 = C,
    # w = 0, g = (1, 1), and neither can move.
    model = feed(learner(), (1.0, +1), (1.0, -1))
    assert coefficients(model) == {0: 10.0, 1: -10.0}
    assert model.decision_function([[1.0]]).tolist() == [0.0]
    assert model.ramp_objective() == 20.0


def test_examples_enter_and_leave_v() -> None:
    # All of y = +1, C = (1, 1/4, 1, 1).
    model = learner(C=1.0)
    model.partial_fit([[-1.0]], [1], classes=[-1, 1])  # alpha_0 = 1, w = -1
    model.partial_fit([[2.0]], [1], sample_weight=[0.25])  # f = -2, g = 3: not in V
    assert coefficients(model) == {0: 1.0, 1: 0.0}
    assert suspects(model) == [(1, 1, -2.0)]
    # x = 1/2: f = -1/2, g = 3/2, K = 1/4: alpha_2 = 1 = C, w = -1/2. Now g_1 = 1 + 1 = 2: example 1
    # enters V, alpha_1 = 1/4 = C, w = 0. All g are 1 and all are at C.
    model.partial_fit([[0.5]], [1])
    assert coefficients(model) == {0: 1.0, 1: 0.25, 2: 1.0}
    assert suspects(model) == []
    # x = -1: g = 1, alpha_3 = 1, w = -1: g_1 = 3, example 1 leaves V, w = -3/2. The two at -1 have
    # g = -1/2: one of them gives up 1/2 (which of them is open), w = -1, g = 0 for both.
    model.partial_fit([[-1.0]], [1])
    alpha = coefficients(model)
    assert (alpha[1], alpha[2], alpha[0] + alpha[3]) == (0.0, 1.0, 1.5)
    assert {alpha[0], alpha[3]} == {0.5, 1.0}
    assert suspects(model) == [(1, 1, -2.0)], "found although it was not visited again"
    # |w|^2 / 2 + 1/4 * 2 (the ramp's height) + 1 * 3/2
    assert model.ramp_objective() == 0.5 + 0.5 + 1.5


@pytest.mark.parametrize(("max_idle", "kept"), [(0, [0]), (1, [0, 1]), (2, [0, 1, 3]), (3, None)])
def test_idle_examples_that_are_nearest_are_kept(max_idle: int, kept: list[int] | None) -> None:
    # w = 1: |f| = 2, 4 and 3. Those misclassified and those beyond the margin count alike.
    model = feed(learner(max_idle=max_idle), (1.0, +1), (2.0, -1), (4.0, +1), (-3.0, -1))
    assert list(coefficients(model)) == (kept or [0, 1, 2, 3])
    assert suspects(model) == [(1, -1, -2.0)], "stored or not"


def test_wants_what_lies_in_the_margin() -> None:
    model = feed(learner(), (1.0, +1))  # f(x) = x
    asked = model.wants([[-1.5], [-1.0], [0.0], [0.5], [1.0], [1.25]])
    assert asked.dtype == bool
    assert asked.tolist() == [False, True, True, True, True, False]


def test_three_classes_are_three_problems() -> None:
    model = learner()
    for k in range(3):
        model.partial_fit(E[k : k + 1], [k], classes=[0, 1, 2])
    assert model.dual_coef_.tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    np.testing.assert_array_equal(model.ramp_objective(), [1.5, 1.5, 1.5])


# -- the fixed point ------------------------------------------------------------------------------


def assert_settled(model: ExactRampSVC, X: np.ndarray, y: np.ndarray, tol: float) -> None:
    """V = { y f >= -1 }, alpha optimal over V, and 0 outside it."""
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0]
    g = 1 - y * model.decision_function(X)
    alpha = y * alpha
    C, near = model.C, 1e-4  # decision values are of kernel values in single precision
    assert np.all(alpha >= 0)
    assert np.all(alpha <= C)
    assert np.all(alpha[g > 2 + near] == 0), "outside V there is weight"
    step = np.clip(alpha + g, 0, C) - alpha  # K(x, x) = 1
    gain = step * (g - step / 2)
    violation = np.where(g > 0, g * (alpha < C), -g * (alpha > 0))
    settled = (violation <= tol + near) | (gain <= LEAST_GAIN + near * np.abs(step))
    assert settled[g < 2 - near].all(), "in V there is a violation"


@pytest.mark.parametrize("C", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_fixed_point_after_every_example(C: float, noise: float, seed: int) -> None:
    X, y = rings(100, seed, noise=noise)
    signs = np.where(y, 1.0, -1.0)
    model = ExactRampSVC(gamma=1.0, C=C)
    for k in range(100):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        assert_settled(model, X[: k + 1], signs[: k + 1], model.tol)
        assert sorted(model.ids_.tolist()) == list(range(k + 1)), "without max_idle all are held"


# V as the procedure finds it may come and go for ever: where violations that are left alone are
# larger than what a round gains, and where the kernel is no inner product.
ENDLESS: dict[str, tuple[dict[str, Any], list[Any], list[int]]] = {
    "sigmoid": (
        {"kernel": "sigmoid", "gamma": 1.0, "C": 4.0},
        [[1.125, 0.875], [0.375, 0.625], [0.375, -0.875]],
        [0, 1, 0],
    ),
    "coarse tol": (
        {"gamma": 1.0, "C": 1.0, "tol": 0.3},
        [
            [x]
            for x in (1.25, -0.25, -0.75, -0.75, 0.25, 0.25, 0.25, -1.25, -1.75, 0.75, -1.25, 1.25)
        ],
        [0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1],
    ),
    "default tol": ({"gamma": 1.0, "C": 0.5}, *(values.tolist() for values in rings(100, 0, 0.4))),
}
ENDS = """
import numpy as np, sys, warnings
from tests.algo.test_exact_ramp import ENDLESS, ExactRampSVC

warnings.simplefilter("ignore")  # of features off their centre
params, X, y = ENDLESS[sys.argv[1]]
model = ExactRampSVC(**params).partial_fit(X, y, classes=[0, 1])
assert np.isfinite(model.decision_function(X)).all()
model._engine.native.check(1e-4)
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", ENDLESS)
def test_learning_ends(case: str) -> None:
    """In a process of its own, for a loop in the core cannot be interrupted."""
    subprocess.run(
        [sys.executable, "-c", ENDS, case],
        cwd=Path(__file__).parents[2],
        timeout=30,
        check=True,
    )


def test_step_limit_keeps_the_accuracy(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A half-solved model does not remove rows from V, so their loss cannot cascade."""
    X, y = rings(600, seed, noise=0.2)
    X_test, y_test = rings(300, seed + 1)
    params: dict[str, Any] = {"gamma": 1.0, "C": 500.0, "shuffle": False}
    solved = ExactRampSVC(**params).fit(X, y)
    monkeypatch.setattr(Engine, "most_steps", 300)
    with pytest.warns(ConvergenceWarning, match="maximum number of steps was reached") as caught:
        limited = ExactRampSVC(**params).fit(X, y)
    assert len(caught) == 1
    assert limited.score(X_test, y_test) > solved.score(X_test, y_test) - 0.05


def test_a_later_call_continues_after_the_step_limit(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    X, y = rings(200, seed, noise=0.2)
    model = ExactRampSVC(gamma=1.0, C=50.0)
    monkeypatch.setattr(Engine, "most_steps", 20)
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(X[:150], y[:150], classes=[0, 1])
    held = pickle.dumps(model)
    monkeypatch.undo()
    model = pickle.loads(held).partial_fit(X[150:], y[150:])
    assert_settled(model, X, np.where(y, 1.0, -1.0), model.tol)


def test_objective_is_that_of_all_rows(seed: int) -> None:
    X, y = rings(100, seed, noise=0.3)
    model = ExactRampSVC(gamma=1.0, C=5.0, random_state=seed).fit(X, y)
    K = kernel_values("rbf", X, X, gamma=1.0)
    alpha = np.zeros(100)
    alpha[model.support_] = model.dual_coef_[0]
    losses = np.clip(1 - np.where(y, 1.0, -1.0) * (K @ alpha), 0, 2)
    expected = alpha @ K @ alpha / 2 + 5.0 * losses.sum()
    assert model.ramp_objective() == pytest.approx(expected, rel=1e-5)


def test_without_outliers_it_is_the_svm_without_bias(seed: int) -> None:
    """Where no row has y f < -1 the ramp is the hinge."""
    X, y = rings(80, seed)
    signs = np.where(y, 1.0, -1.0)
    f, best = optimum(kernel_values("rbf", X, X, gamma=1.0), signs, 1.0)
    assert np.all(signs * f > -1), "choose other data"
    model = ExactRampSVC(gamma=1.0, tol=1e-6, shuffle=False).fit(X, y)
    assert model.dual_objective() == pytest.approx(best, rel=1e-3)
    np.testing.assert_allclose(model.decision_function(X), f, rtol=0, atol=0.05)


# -- what it promises -----------------------------------------------------------------------------


def test_support_vectors_are_on_the_ramp(seed: int) -> None:
    """None is misclassified by more than 1, so wrong labels cost no support vectors."""
    X, y = rings(300, seed, noise=0.2)
    model = ExactRampSVC(gamma=1.0, C=5.0, random_state=seed).fit(X, y)
    margins = np.where(y, 1.0, -1.0) * model.decision_function(X)
    assert margins[model.support_].min() >= -1 - 1e-3
    beyond = np.maximum(0, margins[model.support_] - 1)
    gain = np.minimum(np.abs(model.dual_coef_[0]), beyond) * beyond / 2  # at least, of a step back
    assert gain.max() <= 2 * LEAST_GAIN
    assert margins.min() < -1, "no label was wrong enough"


def test_forgetting_the_far_idle_costs_little(seed: int) -> None:
    X, y = rings(400, seed, noise=0.1)
    X_test, y_test = rings(300, seed + 1)
    whole, short = (
        ExactRampSVC(gamma=1.0, C=5.0, max_idle=max_idle, random_state=seed).fit(X, y)
        for max_idle in (None, 50)
    )
    idle = np.setdiff1d(short.ids_, short.support_)
    assert len(idle) <= 50
    assert len(whole.ids_) == 400
    assert short.score(X_test, y_test) > whole.score(X_test, y_test) - 0.03


def test_asking_only_for_what_it_wants(seed: int) -> None:
    """OnlineASVM^R: about as good with fewer labels."""
    X, y = rings(400, seed, noise=0.1)
    X_test, y_test = rings(300, seed + 1)
    all_ = ExactRampSVC(gamma=1.0, C=5.0).partial_fit(X, y, classes=[0, 1])
    model = ExactRampSVC(gamma=1.0, C=5.0).partial_fit(X[:10], y[:10], classes=[0, 1])
    asked = 10
    for k in range(10, 400):
        if model.wants(X[k : k + 1])[0]:
            model.partial_fit(X[k : k + 1], y[k : k + 1])
            asked += 1
    assert asked < 300
    assert model.score(X_test, y_test) > all_.score(X_test, y_test) - 0.05


@pytest.mark.parametrize("classes", [2, 3])
def test_wants_a_row_that_some_problem_has_in_its_margin(classes: int, seed: int) -> None:
    X, y = blobs(120, seed, classes)
    model = ExactRampSVC(gamma=0.5, C=5.0, random_state=seed).fit(X, y)
    f = model.decision_function(X).reshape(120, -1)
    np.testing.assert_array_equal(model.wants(X), (np.abs(f) <= 1).any(axis=1))
