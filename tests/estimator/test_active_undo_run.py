"""Taking answers back, and the loop with an oracle.

A failure means that an answer is lost, or that a learner is not what its answers make it.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from marginwise import OnlineSVC
from marginwise.active import STRATEGIES, ActiveLearner, MarginExhausted, MaxLabels
from tests.active_support import (
    Source,
    assert_same_learner,
    assert_unchanged,
    begun,
    pool,
    snapshot,
)

# -- undo -----------------------------------------------------------------------------------------

STEPS: dict[str, Any] = {
    "teach": lambda learner, y, free: learner.teach(free[0], y[free[0]]),
    "teach what was asked": lambda learner, y, free: learner.teach(learner.ask(), 1),
    "batch": lambda learner, y, free: learner.teach(free[:3], y[free[:3]]),
    "skip": lambda learner, y, free: learner.skip(free[:2]),
    "new class": lambda learner, y, free: learner.teach(free[0], 7),
    "batch with new classes": lambda learner, y, free: learner.teach(free[:3], [8, 0, 9]),
    "run": lambda learner, y, free: learner.run(lambda row: int(y[row]), 1),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_undo_gives_back_the_very_learner(step: str, strategy: str) -> None:
    X, y = pool()
    learner = begun(X, y, strategy=strategy)
    before = snapshot(learner)
    STEPS[step](learner, y, np.flatnonzero(learner._pool.status == 0))
    rows = learner._log[-1].rows or learner._log[-2].rows
    assert learner.undo() == rows
    assert_unchanged(before, learner, f"undo after {step}")


@pytest.mark.parametrize("estimator", [OnlineSVC(), SGDClassifier(random_state=0)], ids=type)
@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
def test_undo_step_by_step_to_the_beginning(estimator: Any, classes: Any) -> None:
    """Classes that were met later are unknown again, and so is the model."""
    X, y = pool(classes=3)
    learner = ActiveLearner(estimator, X, classes=classes, random_state=0)
    states = [snapshot(learner)]
    for rows in ([0], [4, 5], [1], [6], [2], [7, 8]):
        learner.teach(rows, y[rows])
        states.append(snapshot(learner))
    for before in states[-2::-1]:
        assert learner.undo()
        assert_unchanged(before, learner, f"undo to {before['counts']['taught']} labels")
    assert learner.undo() == []
    assert_unchanged(states[0], learner, "undo of nothing")


def test_undo_back_to_no_class_forgets_the_kind_of_labels() -> None:
    X, _ = pool()
    learner = ActiveLearner(OnlineSVC(), X).teach([0, 1], ["a", "b"])
    learner.undo()
    learner.teach([0, 1], [3, 4])
    assert learner.classes_.tolist() == [3, 4]


def test_undo_of_a_fitted_estimator_ends_with_it() -> None:
    X, y = pool(90)
    warm = OnlineSVC(C=10, random_state=0).fit(X[:30], y[:30])
    learner = ActiveLearner(warm, X[30:], strategy="near_boundary", random_state=0)
    before = snapshot(learner)
    learner.teach([1, 2, 3], y[31:34]).teach(9, y[39])
    assert (learner.undo(), learner.undo()) == ([9], [1, 2, 3])
    assert_unchanged(before, learner, "undo of all")
    assert np.array_equal(before["values"], warm.decision_function(X[30:]))


def test_a_changed_answer_is_as_if_it_had_been_given_at_once() -> None:
    X, y = pool()
    wrong, right = begun(X, y), begun(X, y)
    wrong.teach(40, 1 - y[40])
    wrong.undo()
    wrong.teach(40, y[40])
    right.teach(40, y[40])
    assert_same_learner(wrong, right, "the wrong answer left a trace")


def test_undo_of_a_run_takes_back_its_last_answer() -> None:
    X, y = pool()
    learner = begun(X, y)
    learner.run(lambda row: y[row], 5)
    last = learner.history_[-1]["row"]
    assert learner.undo() == [last]
    assert len(learner.history_) == 14


def test_undo_of_finishing_alone() -> None:
    """A fitted estimator can be settled before anything was taught; that is no answer."""
    X, y = pool(90)
    fitted = OnlineSVC(C=10, gamma=1.0).partial_fit(X[:40], y[:40], classes=[0, 1])
    learner = ActiveLearner(fitted, X[40:], random_state=0).finish()
    values, events = learner.estimator_.decision_function(X), len(learner._log)
    assert learner.undo() == []
    if len(learner._log) < events:
        values = fitted.decision_function(X)
    found = learner.estimator_.decision_function(X)
    assert np.array_equal(found, values), "the model is not what the log says"


def test_no_answer_is_lost_when_undo_fails() -> None:
    """The rows are read again for the model without the last answer, and that may go wrong."""
    X, y = pool()
    source = Source(X)
    learner = ActiveLearner(OnlineSVC(), source, random_state=0)
    for row in range(10):
        learner.teach(row, y[row])
    before = snapshot(learner)
    source.fails = lambda rows: rows.tolist() == [5]
    with pytest.raises(OSError, match="disk is gone"):
        learner.undo()
    source.fails = lambda rows: False
    assert_unchanged(before, learner, "undo that failed")


# -- run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 4, 7])
def test_run_asks_for_as_many_labels_as_it_may(batch: int) -> None:
    X, y = pool()
    asked: list[int] = []

    def oracle(row: int) -> int:
        assert type(row) is int
        asked.append(row)
        return y[row]

    learner = ActiveLearner(OnlineSVC(), X, random_state=0)
    assert learner.run(oracle, max_labels=10, batch=batch) is learner
    assert [step["row"] for step in learner.history_] == asked
    assert learner.counts_ == {"taught": 10, "skipped": 0, "unasked": 0}
    learner.run(oracle, max_labels=3, batch=batch)
    assert len(learner.history_) == 13, "max_labels counts the labels of this call"


def test_run_is_ask_and_teach_and_finish() -> None:
    X, y = pool()
    one, other = begun(X, y, 2), begun(X, y, 2)
    one.run(lambda row: y[row], 20)
    for _ in range(20):
        row = other.ask()
        other.teach(row, y[row])
    rows = [[step["row"] for step in learner.history_] for learner in (one, other)]
    assert rows[0] == rows[1]
    values = other.estimator_.finish().decision_function(X)
    assert np.array_equal(one.estimator_.decision_function(X), values), "it is not finished"


def test_run_passes_over_rows_without_a_label() -> None:
    X, y = pool()
    learner = ActiveLearner(OnlineSVC(), X, random_state=0)
    learner.run(lambda row: None if row % 3 == 0 else y[row], max_labels=12, batch=5)
    counts = learner.counts_
    assert counts["taught"] == 12
    assert counts["skipped"] > 0
    assert all(step["row"] % 3 for step in learner.history_)
    learner.run(lambda row: None if row % 3 == 0 else y[row])
    assert learner.counts_ == {"taught": 40, "skipped": 20, "unasked": 0}
    assert learner.should_stop().reason == "all 60 rows of the pool were taught or skipped."


def test_run_with_nothing_but_skips() -> None:
    X, _ = pool(10)
    learner = ActiveLearner(OnlineSVC(), X, random_state=0).run(lambda row: None)
    assert learner.counts_ == {"taught": 0, "skipped": 10, "unasked": 0}
    assert not learner.has_model_


def test_run_stops_where_the_rule_says() -> None:
    X, y = pool()
    learner = ActiveLearner(OnlineSVC(), X, stop=MaxLabels(7), random_state=0)
    learner.run(lambda row: y[row], max_labels=50)
    assert len(learner.history_) == 7
    learner = ActiveLearner(
        OnlineSVC(C=10, gamma=0.5), X, stop=MarginExhausted(margin=0.01), random_state=0
    )
    learner.run(lambda row: y[row])
    assert learner.n_unseen_ > 0, "the rule was not met before the pool was exhausted"
    unseen = np.flatnonzero(learner._pool.status == 0)
    assert learner.should_stop() or (np.abs(learner.decision_values(unseen)) < 0.01).any()


def test_a_run_goes_on_by_another_rule() -> None:
    X, y = pool()
    learner = ActiveLearner(OnlineSVC(), X, stop=MaxLabels(7), random_state=0)
    learner.run(lambda row: y[row])
    learner.stop = MaxLabels(12)
    assert not learner.should_stop(), "the verdict is that of a rule which is gone"
    learner.run(lambda row: y[row])
    assert len(learner.history_) == 12


def test_a_run_that_stopped_has_stopped_after_loading(tmp_path: Path) -> None:
    X, y = pool()
    for seed in range(6):
        learner = ActiveLearner(
            OnlineSVC(C=10, gamma=1.0), X, stop=MarginExhausted(), random_state=seed
        ).run(lambda row: y[row])
        learner.save(tmp_path / "learner.mwz")
        loaded = ActiveLearner.load(tmp_path / "learner.mwz", X)
        assert loaded.should_stop() == learner.should_stop()


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_was_taught_stays_taught_when_the_oracle_raises(
    batch: int, k: int, error: Any
) -> None:
    X, y = pool()
    asked: list[int] = []

    def oracle(row: int) -> int:
        asked.append(row)
        if len(asked) == k:
            raise error("no more")
        return y[row]

    learner = ActiveLearner(OnlineSVC(), X, random_state=0)
    with pytest.raises(error, match="no more"):
        learner.run(oracle, batch=batch)
    assert [step["row"] for step in learner.history_] == asked[:-1]
    assert learner.n_unseen_ == 60 - k + 1
    same = ActiveLearner(OnlineSVC(), X, random_state=0)
    for row in asked[:-1]:
        same._scores_asked[row] = learner._scores_asked[row]
        same.teach(row, y[row])
    assert_same_learner(learner, same, "an oracle that raised left a trace")
    learner.run(lambda row: y[row], 5)
    assert len(learner.history_) == k + 4, "it cannot go on"


@pytest.mark.parametrize("label", [np.nan, b"yes", 1 + 2j])
def test_an_oracle_that_gives_no_label(label: Any) -> None:
    X, y = pool()
    learner = begun(X, y)
    before = snapshot(learner)
    with pytest.raises(ValueError, match=f"the label of row {before['next'][0]} is"):
        learner.run(lambda row: label)
    assert_unchanged(before, learner, "a bad answer of an oracle")


def test_run_of_an_exhausted_pool_does_nothing() -> None:
    X, y = pool(10)
    learner = ActiveLearner(OnlineSVC(), X, random_state=0).run(lambda row: y[row])
    events = len(learner._log)
    learner.run(lambda row: pytest.fail("an exhausted pool was asked about"))
    assert len(learner._log) == events
    assert len(learner.history_) == 10


def test_run_is_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    X, y = pool()
    ActiveLearner(OnlineSVC(verbose=1), X, verbose=1, random_state=0).run(lambda row: y[row], 20)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", np.nan])
def test_run_checks_its_numbers(value: Any) -> None:
    X, y = pool()
    learner = begun(X, y)
    before = snapshot(learner)
    with pytest.raises(ValueError, match="max_labels must be an integer of at least 1"):
        learner.run(lambda row: y[row], value)
    with pytest.raises(ValueError, match="batch must be an integer of at least 1"):
        learner.run(lambda row: y[row], batch=value)
    assert_unchanged(before, learner, "a bad number")


@pytest.mark.parametrize("labels", [[], [None, None]])
def test_replay_of_no_labels(labels: list[None]) -> None:
    learner = begun(*pool()).replay(list(range(len(labels))), labels)
    assert learner.counts_ == {"taught": 0, "skipped": len(labels), "unasked": 0}


def test_a_pickled_learner_compares_models_from_before_it_was_pickled() -> None:
    X, y = pool(100)
    learner = begun(X, y, 40)
    twin = pickle.loads(pickle.dumps(learner))
    for row in learner.sample_unseen(24).tolist():
        learner.teach(row, y[row])
        twin.teach(row, y[row])
    assert twin.changed_predictions() == learner.changed_predictions()
    assert learner.changed_predictions() is not None
