"""The verbs of an active learner: ask, teach, skip, undo, run, should_stop.

A failure means that a user who works with the learner is told, asked or given something wrong.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import PassiveAggressiveClassifier, Perceptron, SGDClassifier

from marginwise import OnlineSVC
from marginwise.active import (
    STRATEGIES,
    ActiveLearner,
    ErrorAudit,
    MarginExhausted,
    MaxLabels,
    SupportVectorPlateau,
    Verdict,
)
from tests.active_support import (
    assert_same_learner,
    assert_unchanged,
    begun,
    pool,
    snapshot,
    values_of,
)
from tests.support import assert_same_model, assert_untouched

FUNCTIONS = {"function": lambda scores: -np.abs(scores) if scores.ndim == 1 else scores.min(axis=1)}
EVERY = [*STRATEGIES, "function"]


def named(strategy: str) -> Any:
    return FUNCTIONS.get(strategy, strategy)


# -- asking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", EVERY)
@pytest.mark.parametrize("classes", [2, 3])
def test_asking_changes_nothing(strategy: str, classes: int) -> None:
    X, y = pool(classes=classes)
    learner = begun(X, y, strategy=named(strategy))
    first = learner.ask()
    assert type(first) is int
    assert 0 <= first < len(X)
    several = learner.ask(4)
    assert isinstance(several, np.ndarray)
    assert len(set(several.tolist())) == 4
    assert learner.ask(1).tolist() == [first]
    assert learner.ask() == first, "asking twice gives another question"
    assert learner.ask(4).tolist() == several.tolist()


@pytest.mark.parametrize("strategy", EVERY)
def test_no_row_is_asked_about_twice(strategy: str) -> None:
    X, y = pool(30)
    learner = ActiveLearner(OnlineSVC(), X, strategy=named(strategy), random_state=0)
    asked = []
    while learner.n_unseen_:
        asked.append(learner.ask())
        learner.skip(asked[-1]) if len(asked) % 4 == 0 else learner.teach(asked[-1], y[asked[-1]])
    assert sorted(asked) == list(range(30))
    assert learner.counts_ == {"taught": 23, "skipped": 7, "unasked": 0}


def test_the_seed_decides() -> None:
    X, y = pool(300)
    rows = [begun(X, y, pool_size=9, random_state=s).ask(3).tolist() for s in (1, 1, 2)]
    assert rows[0] == rows[1], "the same seed asks differently"
    assert rows[0] != rows[2], "the seed is not used"


# -- labels ---------------------------------------------------------------------------------------

KINDS: dict[str, list[Any]] = {
    "int": [3, -1],
    "str": ["no", "yes"],
    "unicode": ["", "größe"],
    "bool": [False, True],
    "float": [0.5, 2.0],
    "numpy int": [np.int8(3), np.uint64(7)],
    "numpy str": [np.str_("a"), np.str_("bcd")],
    "numpy bool": [np.bool_(True), np.bool_(False)],
    "numpy float": [np.float32(0.5), np.float64(1)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_as_they_come(kind: str) -> None:
    X, y = pool()
    names = KINDS[kind]
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    learner = ActiveLearner(OnlineSVC(C=10), X, random_state=0)
    for row in range(12):
        learner.teach(row, names[y[row]])
    assert learner.classes_.tolist() == sorted(plain)
    told = [step["label"] for step in learner.history_]
    assert told == [plain[label] for label in y[:12]]
    assert all(type(label) is type(plain[0]) for label in told), "labels are no plain values"
    assert set(learner.estimator_.predict(X).tolist()) == set(plain)


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, pd.Categorical])
def test_several_labels_at_once(form: Any) -> None:
    X, y = pool()
    words = np.array(["no", "yes"])[y[:8]]
    one = ActiveLearner(OnlineSVC(), X, random_state=0).teach(np.arange(8), form(words.tolist()))
    other = ActiveLearner(OnlineSVC(), X, random_state=0).teach(list(range(8)), words)
    assert_same_learner(one, other, "labels in another container give another learner")


def test_one_class_for_long() -> None:
    X, y = pool()
    rows = np.flatnonzero(y == 0)[:9]
    learner = ActiveLearner(OnlineSVC(), X, stop=MarginExhausted(), random_state=0)
    assert learner.ask() == learner.ask()
    for row in rows:
        learner.teach(row, "common")
        assert not learner.has_model_
        assert learner.ask() not in [step["row"] for step in learner.history_]
        assert "no model" in learner.should_stop().reason
    assert learner.classes_.tolist() == ["common"]
    assert [step["support_vectors"] for step in learner.history_] == [0] * 9
    rare = int(np.flatnonzero(y == 1)[0])
    learner.teach(rare, "rare")
    whole = ActiveLearner(OnlineSVC(), X, classes=["common", "rare"], random_state=0)
    whole.teach([*rows, rare], ["common"] * 9 + ["rare"])
    assert_same_model(learner.estimator_, whole.estimator_, "labels before the model were lost")


def test_a_class_that_comes_late() -> None:
    X, y = pool(classes=3)
    rows = np.concatenate([np.flatnonzero(y < 2)[:20], np.flatnonzero(y == 2)[:5]])
    late = ActiveLearner(OnlineSVC(C=10), X, random_state=0)
    known = ActiveLearner(OnlineSVC(C=10), X, classes=[0, 1, 2], random_state=0)
    for row in rows:
        late.teach(row, y[row])
        known.teach(row, y[row])
    assert late.classes_.tolist() == [0, 1, 2]
    assert late.decision_values().shape == (60, 3)
    assert_same_model(late.estimator_, known.estimator_, "a late class gives another model")


@pytest.mark.parametrize("estimator", [OnlineSVC(), SGDClassifier(random_state=0)], ids=type)
def test_one_class_is_no_reason_to_stop(estimator: Any) -> None:
    """With `classes` a model exists after one label; it is as sure of all rows, and knows nothing.

    A learner that stops here stops before the second class was ever seen.
    """
    X, y = pool()
    learner = ActiveLearner(
        estimator, X, classes=[0, 1], stop=MarginExhausted(), random_state=0
    ).teach(0, y[0])
    assert not learner.should_stop(), learner.should_stop().reason


# -- estimators -----------------------------------------------------------------------------------


def test_a_fitted_estimator_is_gone_on_with() -> None:
    X, y = pool(90)
    warm = OnlineSVC(C=10, random_state=0).fit(X[:30], y[:30])
    before = warm.__getstate__()
    learner = ActiveLearner(warm, X[30:], strategy="near_boundary", random_state=0)
    assert learner.has_model_
    assert learner.classes_.tolist() == [0, 1]
    nearest = np.abs(warm.decision_function(X[30:])).argmin()
    assert learner.ask() == nearest
    learner.teach([5, 6, 7], y[35:38])
    assert_untouched(before, warm, "the estimator given was changed")
    values = warm.partial_fit(X[35:38], y[35:38]).decision_function(X)
    assert np.array_equal(learner.estimator_.decision_function(X), values), "partial_fit differs"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*PassiveAggressiveClassifier:FutureWarning")
@pytest.mark.parametrize("kind", [SGDClassifier, Perceptron, PassiveAggressiveClassifier])
@pytest.mark.parametrize("strategy", EVERY)
def test_estimators_of_others(kind: Any, strategy: str) -> None:
    X, y = pool(classes=3)
    words = np.array(["a", "b", "c"])[y]
    given = kind(random_state=0)
    learner = ActiveLearner(
        given, X, strategy=named(strategy), classes=["a", "b", "c"], random_state=0
    )
    alone = kind(random_state=0)
    for _ in range(15):
        row = learner.ask()
        learner.teach(row, words[row])
        alone.partial_fit(X[[row]], words[[row]], classes=["a", "b", "c"])
    values = alone.decision_function(X)
    assert np.array_equal(learner.estimator_.decision_function(X), values)
    assert np.array_equal(learner.decision_values(), values)
    assert not hasattr(given, "coef_"), "the estimator given was changed"
    assert learner.history_[-1]["support_vectors"] is None


def test_the_estimator_given_is_left_alone_and_leaves_alone() -> None:
    """The learner works with a copy: what happens to the estimator later is no concern of it."""
    X, y = pool()
    given = OnlineSVC(C=10)
    learner = begun(X, y, estimator=given)
    assert not hasattr(given, "_engine"), "the estimator given was fitted"
    before = snapshot(learner)
    learner.teach(before["next"], y[before["next"]])
    given.set_params(C=0.001, gamma=9.0).fit(X, 1 - y)
    learner.undo()
    assert learner.estimator_.C == 10
    assert_unchanged(before, learner, "a later change of the estimator reached the learner")


def test_plateau_needs_an_estimator_with_support_vectors() -> None:
    X, y = pool()
    learner = begun(X, y, estimator=SGDClassifier(random_state=0), stop=SupportVectorPlateau(3))
    with pytest.raises(ValueError, match="n_support_"):
        learner.should_stop()


def test_support_vectors_are_rows_of_the_pool() -> None:
    X, y = pool()
    learner = begun(X, y, 30)
    taught = {step["row"] for step in learner.history_}
    support = learner.estimator_.support_
    assert set(support.tolist()) <= taught
    np.testing.assert_allclose(learner.estimator_.support_vectors_, X[support], rtol=1e-5)


# -- history and counts ---------------------------------------------------------------------------


def test_rows_that_were_never_asked_about_are_counted() -> None:
    X, y = pool()
    learner = ActiveLearner(OnlineSVC(), X, random_state=0)
    asked = learner.ask()
    other = (asked + 1) % 60
    learner.teach(other, y[other])
    learner.teach(asked, y[asked])
    assert [step["asked"] for step in learner.history_] == [False, True]
    assert learner.counts_ == {"taught": 2, "skipped": 0, "unasked": 1}
    skipped = int(np.flatnonzero(learner._pool.status == 0)[0])
    learner.skip(skipped).teach(skipped, y[skipped])
    assert learner.counts_ == {"taught": 3, "skipped": 0, "unasked": 2}


@pytest.mark.parametrize(("classes", "multiclass"), [(2, "auto"), (3, "ovr"), (3, "ovo")])
def test_history_tells_the_score_at_the_time_of_asking(classes: int, multiclass: str) -> None:
    X, y = pool(classes=classes)
    model = OnlineSVC(C=10, multiclass=multiclass)
    learner = begun(X, y, 15, estimator=model, classes=np.arange(classes))
    row = learner.ask()
    score = values_of(learner.estimator_, X[[row]])[0]
    learner.teach(row, y[row])
    step = learner.history_[-1]
    assert (step["row"], step["label"], step["asked"]) == (row, y[row], True)
    assert type(step["score"]) is (float if classes == 2 else list)
    np.testing.assert_allclose(step["score"], score, rtol=1e-9)
    assert step["support_vectors"] == learner.estimator_.n_support_.sum()
    assert learner.history_[0]["score"] is None, "there was no model to score the first row"


def test_seconds_do_not_go_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    X, y = pool()
    learner = ActiveLearner(OnlineSVC(), X, random_state=0)
    for row in range(5):
        clock[0] += 10
        learner.teach(row, y[row])
    assert [step["seconds"] for step in learner.history_] == [10, 20, 30, 40, 50]
    learner.undo()
    clock[0] += 10
    learner.teach(4, y[4])
    times = [step["seconds"] for step in learner.history_]
    assert times == sorted(times), f"after undo time starts anew: {times}"
    learner.save(tmp_path / "learner.mwz")
    loaded = ActiveLearner.load(tmp_path / "learner.mwz", X)
    clock[0] += 10
    loaded.teach(5, y[5])
    times = [step["seconds"] for step in loaded.history_]
    assert times == sorted(times), f"after loading time starts anew: {times}"


# -- stopping -------------------------------------------------------------------------------------


def test_verdicts_are_conditions_with_reasons() -> None:
    X, y = pool()
    learner = ActiveLearner(OnlineSVC(), X, stop=None, random_state=0)
    stop, reason = learner.should_stop()
    assert not stop
    assert "60 rows are unseen" in reason
    learner = ActiveLearner(OnlineSVC(), X, random_state=0)
    assert learner.stop == "auto"
    assert learner.should_stop().reason == "only 0 labels were given, too few to compare models."
    learner = begun(X, y, 10, stop=MarginExhausted() | MaxLabels(10))
    verdict = learner.should_stop()
    assert isinstance(verdict, Verdict)
    assert verdict
    assert str(verdict) == verdict.reason == "10 of 10 labels were given."
    learner.teach(np.flatnonzero(learner._pool.status == 0), y[learner._pool.status == 0])
    assert learner.should_stop().reason == "all 60 rows of the pool were taught or skipped."


@pytest.mark.parametrize("value", ["foo", 5, MaxLabels, np.array([1, 2]), np.array("auto")])
def test_a_rule_is_checked_when_it_is_set(value: Any) -> None:
    X, y = pool()
    learner = begun(X, y, 20, stop="auto")
    with pytest.raises(TypeError, match=r"stop must be a stopping rule, .* got"):
        learner.stop = value
    assert learner.stop == "auto"
    learner.stop = "audit"
    assert learner.stop == ErrorAudit()
    assert learner.should_stop().reason.startswith("only ")


# -- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_go_on_alike(copied: Any, strategy: str) -> None:
    X, y = pool()
    learner = begun(X, y, strategy=strategy, stop=MarginExhausted())
    learner.should_stop()
    twin = copied(learner)
    for _ in range(5):
        assert_same_learner(learner, twin, "a copy differs")
        row = learner.ask()
        learner.teach(row, y[row])
        assert len(twin.history_) == len(learner.history_) - 1, "the copy is no copy"
        twin.teach(row, y[row])
