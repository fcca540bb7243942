"""What all learners do with the rest of the package: active learning, sources, several classes."""

from __future__ import annotations

import numpy as np
import pytest

from marginwise import ExactRampSVC, GapSVC, KernelPerceptron, TrackingSVC
from marginwise.active import ActiveLearner
from tests.support import Rows, rings

LEARNERS = {
    "gap": GapSVC(C=10.0, gamma=1.0, random_state=0),
    "gap, ramp": GapSVC(C=10.0, gamma=1.0, loss="ramp", random_state=0),
    "tracking": TrackingSVC(C=1.0, gamma=1.0, random_state=0),
    "exact ramp": ExactRampSVC(C=1.0, gamma=1.0, random_state=0),
    "perceptron": KernelPerceptron(gamma=1.0, update="pa", random_state=0),
}
over_learners = pytest.mark.parametrize("name", sorted(LEARNERS))


@over_learners
@pytest.mark.parametrize("strategy", ["active", "near_boundary"])
def test_an_active_learner_may_hold_any_of_them(name: str, strategy: str) -> None:
    """Sixty labels, asked for by the model itself, teach what four hundred do."""
    X, y = rings(400, seed=1)
    learner = ActiveLearner(LEARNERS[name], X, strategy=strategy, random_state=0)
    learner.run(lambda row: y[row], max_labels=60)
    assert len(learner.history_) == 60
    assert learner.estimator_.score(X, y) > 0.9


@over_learners
def test_an_answer_can_be_taken_back(name: str) -> None:
    """undo() leaves the model of the answers before."""
    X, y = rings(200, seed=2)
    learner = ActiveLearner(LEARNERS[name], X, random_state=0)
    learner.run(lambda row: y[row], max_labels=20)
    before = learner.estimator_.decision_function(X)
    row = learner.ask()
    learner.teach(row, y[row])
    learner.undo()
    np.testing.assert_array_equal(learner.estimator_.decision_function(X), before)


@over_learners
def test_a_source_is_learned_like_its_rows(name: str) -> None:
    """learn_from(source) in the order of the rows is partial_fit of the rows."""
    X, y = rings(300, seed=3)
    params = {**LEARNERS[name].get_params(), "shuffle": False}
    read = type(LEARNERS[name])(**params).learn_from(Rows(X, y))
    given = type(LEARNERS[name])(**params).fit(X, y)
    np.testing.assert_allclose(read.decision_function(X), given.decision_function(X), atol=1e-5)


@over_learners
def test_three_classes_are_three_problems(name: str) -> None:
    """Each column of a three-class model is the two-class model of one class against the rest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LEARNERS[name]
    params = {**model.get_params(), "shuffle": False}
    whole = type(model)(**params).fit(X, y).decision_function(X)
    for c in range(3):
        alone = type(model)(**params).fit(X, y == c).decision_function(X)
        np.testing.assert_allclose(whole[:, c], alone, atol=1e-4)
