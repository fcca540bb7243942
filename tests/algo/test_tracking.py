"""The tracking algorithms [usunier2010] worked by hand on one to three points; what they promise.

Signed alpha, no bias; a step brings alpha_i to clip(alpha_i + g_i / K_ii, lo, hi). With one known
example every pick is that one; after that the tests are of what holds whichever is picked.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from marginwise import TrackingSVC
from tests.algo.test_gap import coefficients, feed
from tests.oracle.test_tracking_oracle import pick, seed_of
from tests.support import blobs, kernel_values, rings

E = np.eye(4)  # orthogonal unit vectors: with the linear kernel, K is the identity


def learner(**params: Any) -> TrackingSVC:
    return TrackingSVC(**{"kernel": "linear", "C": 10.0, "random_state": 0, **params})


# -- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", [True, False])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("y", [+1, -1])
def test_one_example(process: bool, average: bool, y: int) -> None:
    # x = 2, K = 4: the first step brings alpha to y/4, where the others leave it.
    model = feed(learner(process=process, average=average, steps=3), (2.0, y))
    assert coefficients(model) == {0: y / 4}
    assert model.decision_function([[2.0]]).tolist() == [y]
    assert model.intercept_.tolist() == [0.0]


def test_step_ends_at_the_side_of_the_box() -> None:
    model = feed(learner(C=0.25), (1.0, +1))
    assert coefficients(model) == {0: 0.25}


def test_algorithm_2_learns_an_example_when_it_comes() -> None:
    # K = I: PROCESS brings alpha_1 to -1, and no step changes anything after that.
    model = feed(learner(steps=1), (E[0], +1), (E[1], -1), (E[2], -1))
    assert coefficients(model) == {0: 1.0, 1: -1.0, 2: -1.0}


@pytest.mark.parametrize("steps", [1, 4, 10])
def test_algorithm_1_learns_an_example_when_it_is_picked(steps: int) -> None:
    # K = I: alpha_1 is 0 until example 1 is first picked in round 1, then -1. Of `steps` values
    # the average has -1 from that pick on.
    model = feed(learner(process=False, steps=steps), (E[0], +1), (E[1], -1))
    picks = [pick(seed_of(model), 1, k, 2) for k in range(steps)]
    after = steps - picks.index(1) if 1 in picks else 0
    assert coefficients(model) == pytest.approx({0: 1.0, 1: -after / steps}, abs=1e-15)
    last = feed(learner(process=False, average=False, steps=steps), (E[0], +1), (E[1], -1))
    assert coefficients(last) == {0: 1.0, 1: -1.0 if 1 in picks else 0.0}


def test_average_is_output_and_not_state() -> None:
    """Averaging changes what is given out, never what is learned from there on."""
    X, y = rings(80, 0, noise=0.2)
    params: dict[str, Any] = {"gamma": 1.0, "C": 5.0, "steps": 3, "random_state": 0}
    averaged, last = (
        TrackingSVC(**params, average=average).partial_fit(X, y, classes=[0, 1])
        for average in (True, False)
    )
    assert not np.array_equal(averaged.decision_function(X), last.decision_function(X))
    assert averaged.normalised_gap_ == last.normalised_gap_


@pytest.mark.parametrize("uncovered", [{"average": False}, {"gradients": "support"}], ids=str)
def test_no_bound_where_no_theorem_holds(uncovered: dict[str, Any]) -> None:
    X, y = rings(80, 0, noise=0.2)
    model = TrackingSVC(gamma=1.0, random_state=0, **uncovered).fit(X, y)
    (name,) = uncovered
    assert not hasattr(model, "bound_")
    with pytest.raises(AttributeError, match=f"bound_ is not available with {name}=.*theorems"):
        model.bound_  # noqa: B018
    assert model.normalised_gap_ >= 0


def test_gradients_of_support_vectors_alone() -> None:
    # w = 1. x = 3 has g = -2: alpha stays 0 and it leaves, or stays where all are kept.
    assert coefficients(feed(learner(gradients="support"), (1.0, +1), (3.0, +1))) == {0: 1.0}
    assert coefficients(feed(learner(), (1.0, +1), (3.0, +1))) == {0: 1.0, 1: 0.0}


def test_bound_of_one_example() -> None:
    # x = 1, C = 10, two steps: alpha = 1, P = D = 1/2.
    # Algorithm 1: x = 1/2 / (2 * 1) = 1/4, mu = sqrt(2 / 4) + (1/4) / 10.
    # Algorithm 2: PROCESS gained all of the 1/2: mu(0) = 0.
    model = feed(learner(process=False, steps=2), (1.0, +1))
    assert model.bound_ == pytest.approx(np.sqrt(0.5) + 0.025, rel=1e-12)
    assert model.normalised_gap_ == 0.0
    assert feed(learner(steps=2), (1.0, +1)).bound_ == 0.0


def test_bound_scales_with_the_largest_kernel_value() -> None:
    # x = 2, K = 4, alpha = 1/4, w = 1/2, P = 1/8: mu(1/16) = sqrt(2 * 4 / 16) + (1/16) / 10.
    model = feed(learner(process=False, steps=2), (2.0, +1))
    assert model.bound_ == pytest.approx(np.sqrt(0.5) + 0.00625, rel=1e-12)


def test_normalised_gap_of_two_examples() -> None:
    # Steps of C = 1/2 each at the same point with opposite labels: alpha = (1/2, -1/2), w = 0 and
    # g = (1, -1), both at their sides: P = 2 * 1/2, D = 1/2 + 1/2.
    model = feed(learner(C=0.5), (1.0, +1), (1.0, -1))
    assert coefficients(model) == {0: 0.5, 1: -0.5}
    assert model.normalised_gap_ == 0.0
    # With C = 3/2: alpha_0 = 1, then alpha_1 = -3/2 (g = -2 is cut), w = -1/2, g = (3/2, -1/2).
    # Picks of 0 go to its side, 3/2; picks of 1 change nothing: w = 0, g = (1, -1), gap 0. Until
    # then P - D = (3/2 - 1) 3/2 = 3/4, and the sum of C is 3.
    model = feed(learner(C=1.5, steps=1, average=False), (1.0, +1), (1.0, -1))
    picked = pick(seed_of(model), 1, 0, 2) == 0
    assert coefficients(model) == {0: 1.5 if picked else 1.0, 1: -1.5}
    assert model.normalised_gap_ == pytest.approx(0.0 if picked else 0.25, abs=1e-12)


def test_a_fit_far_from_the_solution_warns_at_the_line_of_the_caller() -> None:
    # One step per row, and rows that contradict each other: C is too large to get anywhere.
    X, y = np.ones((40, 1)) + np.arange(40)[:, None] / 1000, np.arange(40) % 2
    with pytest.warns(ConvergenceWarning, match="normalised gap of .* Raise steps") as told:
        model = learner(kernel="rbf", gamma=0.1, C=1e6, steps=1).fit(X, y)
    assert model.normalised_gap_ > 0.4
    assert [Path(w.filename).name for w in told] == [Path(__file__).name] * len(told)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert learner(kernel="rbf", gamma=0.1, C=0.01).fit(X, y).normalised_gap_ < 0.4


def test_three_classes_are_three_problems() -> None:
    model = learner()
    for k in range(3):
        model.partial_fit(E[k : k + 1], [k], classes=[0, 1, 2])
    assert model.dual_coef_.tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert np.shape(model.bound_) == np.shape(model.normalised_gap_) == (3,)


# -- what they promise ----------------------------------------------------------------------------


def optimum(K: np.ndarray, y: np.ndarray, C: float) -> tuple[np.ndarray, float]:
    """The SVM without bias by cyclic coordinate descent: f of all rows, and the dual objective."""
    alpha, f = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(20000):
        before = alpha.copy()
        for i in range(len(y)):
            wanted = np.clip(y[i] * (alpha[i] + (y[i] - f[i]) / K[i, i]), 0, C) * y[i]
            f += (wanted - alpha[i]) * K[i]
            alpha[i] = wanted
        if np.abs(alpha - before).max() < 1e-9:
            break
    return f, float(alpha @ y - alpha @ f / 2)


@pytest.mark.parametrize(
    "params", [{}, {"process": False}, {"average": False}, {"gradients": "support"}], ids=str
)
def test_many_steps_find_the_svm_without_bias(params: dict[str, Any], seed: int) -> None:
    X, y = rings(50, seed, noise=0.1)
    K = kernel_values("rbf", X, X, gamma=1.0)
    f, best = optimum(K, np.where(y, 1.0, -1.0), 1.0)
    model = TrackingSVC(gamma=1.0, steps=3000, shuffle=False, random_state=seed, **params)
    model.fit(X, y)
    assert model.normalised_gap_ < 1e-3
    assert model.dual_objective() <= best * (1 + 1e-5)
    if "gradients" not in params:  # there it is the solution of the examples that were kept
        assert model.dual_objective() > best * (1 - 1e-3)
        np.testing.assert_allclose(model.decision_function(X), f, rtol=0, atol=0.05)


@pytest.mark.parametrize("process", [True, False])
def test_more_steps_track_more_closely(process: bool, seed: int) -> None:
    X, y = rings(300, seed, noise=0.2)
    gaps = [mean_gap(X, y, seed, steps=steps, process=process) for steps in (1, 5, 25)]
    assert gaps[0] > 1.5 * gaps[1]
    assert gaps[1] > 1.5 * gaps[2]


def mean_gap(X: np.ndarray, y: np.ndarray, seed: int, **params: Any) -> float:
    """The mean over the stream of the normalised gap after each example."""
    model = TrackingSVC(gamma=1.0, C=1.0, record=True, shuffle=False, random_state=seed, **params)
    model.fit(X, y)
    return float(np.mean(model.history_["gap"] / np.arange(1, len(y) + 1)))


def test_process_is_worth_several_steps(seed: int) -> None:
    """[usunier2010, section 6.1]: Algorithm 2 with 10 steps is about as good as 1 with 20."""
    X, y = rings(300, seed, noise=0.2)
    assert mean_gap(X, y, seed, steps=10) < mean_gap(X, y, seed, steps=10, process=False)


@pytest.mark.parametrize("process", [True, False])
@pytest.mark.parametrize("steps", [1, 10])
def test_bound_is_above_the_mean_of_what_it_bounds(process: bool, steps: int, seed: int) -> None:
    """Theorems 2 and 3, whose proofs bound the mean of the normalised gap."""
    X, y = rings(150, seed, noise=0.2)
    model = TrackingSVC(gamma=1.0, C=2.0, steps=steps, process=process, random_state=seed)
    gaps = []
    for k in range(150):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        gaps.append(model.normalised_gap_)
        assert model.bound_ >= np.mean(gaps)
    assert steps == 1 or model.bound_ < 1, "a bound above what f = 0 gives says nothing"


def test_gap_of_history_is_the_duality_gap(seed: int) -> None:
    """All examples are held, so the gap over the members is that of all rows so far."""
    X, y = rings(60, seed, noise=0.2)
    model = TrackingSVC(gamma=1.0, C=2.0, average=False, record=True, random_state=seed)
    for k in range(60):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        gap = model.duality_gap(X[: k + 1], y[: k + 1])
        assert model.history_["gap"][-1] == pytest.approx(gap, abs=1e-5)
        assert model.normalised_gap_ == pytest.approx(gap / (2.0 * (k + 1)), abs=1e-6)
    np.testing.assert_array_equal(model.history_["members"], np.arange(1, 61))


@pytest.mark.parametrize("classes", [2, 3])
def test_history_has_a_value_for_each_example(classes: int, seed: int) -> None:
    X, y = blobs(100, seed, classes)
    model = TrackingSVC(gamma=0.5, record=True, random_state=seed).fit(X, y)
    shape = (100,) if classes == 2 else (100, classes)
    assert set(model.history_) == {"gap", "members", "kernel_evaluations"}
    assert all(np.shape(values) == shape for values in model.history_.values())
    assert np.all(np.diff(model.history_["kernel_evaluations"], axis=0) >= 0)


def test_all_examples_are_kept_and_support_keeps_few(seed: int) -> None:
    X, y = rings(400, seed)
    all_, few = (
        TrackingSVC(gamma=1.0, C=10.0, gradients=gradients, random_state=seed).fit(X, y)
        for gradients in ("all", "support")
    )
    assert sorted(all_.ids_.tolist()) == list(range(400))
    assert set(few.support_.tolist()) == set(few.ids_.tolist())
    assert len(few.ids_) < 200
    assert few.score(X, y) > all_.score(X, y) - 0.05


def test_the_seed_decides_the_picks(seed: int) -> None:
    X, y = rings(100, seed, noise=0.2)
    params: dict[str, Any] = {"gamma": 1.0, "shuffle": False}
    one, same, other = (
        TrackingSVC(**params, random_state=state).fit(X, y).decision_function(X)
        for state in (seed, seed, seed + 1)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
