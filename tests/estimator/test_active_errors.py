"""What an active learner refuses, and that it is then what it was before.

A failure means an unclear message, or worse: answers or a model that are lost by a mistake.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from marginwise import OnlineSVC, OnlineSVCCV
from marginwise.active import STRATEGIES, ActiveLearner, MarginExhausted, PoolExhaustedError
from tests.active_support import Source, assert_unchanged, begun, pool, snapshot

X, Y = pool()
WORDS = np.array(["no", "yes"])[Y]


def refused(learner: ActiveLearner, error: Any, match: str, call: Any) -> None:
    """The call raises, and the learner is as before."""
    before = snapshot(learner)
    with pytest.raises(error, match=match):
        call(learner)
    assert_unchanged(before, learner, "an error left a trace")


# -- making a learner -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"strategy": "best"}, ValueError, r"strategy must be 'random', .*'largest_positive' or a"),
        ({"strategy": None}, ValueError, "strategy must be"),
        ({"pool_size": 0}, ValueError, "pool_size must be an integer of at least 1 or None, got 0"),
        ({"pool_size": 2.0}, ValueError, "pool_size must be"),
        ({"pool_size": True}, ValueError, "pool_size must be"),
        ({"stop": MarginExhausted}, TypeError, "stop must be a stopping rule"),
        ({"stop": lambda learner: True}, TypeError, "stop must be a stopping rule"),
        ({"classes": ["a"]}, ValueError, r"classes must contain at least two classes, got \['a'\]"),
        ({"classes": [1, 1]}, ValueError, "at least two classes"),
        ({"classes": ["a", 1]}, TypeError, "all strings or all numbers"),
        ({"classes": ["a", None]}, (TypeError, ValueError), "classes|labels"),
        ({"classes": [1.0, np.nan]}, ValueError, "classes|finite"),
        ({"y_pool": [1, 2, 3]}, ValueError, r"y_pool must have one entry for each of the 60 rows"),
        ({"random_state": "seed"}, ValueError, "seed"),
    ],
)
def test_options(options: dict[str, Any], error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        ActiveLearner(OnlineSVC(), X, **options)


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (StandardScaler(), "StandardScaler has no decision_function and no predict_proba"),
        (None, "NoneType has no fit and no partial_fit"),
        (OnlineSVC, "is a class, not an instance"),
    ],
)
def test_estimators_that_cannot_do_it(estimator: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        ActiveLearner(estimator, X)


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (OnlineSVC(C=-1.0), "C must be a number above 0"),
        (OnlineSVC(kernel="none"), "kernel must be"),
        (OnlineSVC(class_weight="balanced"), "balanced"),
        (OnlineSVCCV(), "Pass an OnlineSVC with given C and gamma, or a fitted estimator"),
    ],
)
def test_bad_parameters_are_found_before_labels_are_paid_for(estimator: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ActiveLearner(estimator, X)


@pytest.mark.parametrize("estimator", [OnlineSVC(), SGDClassifier(random_state=0)], ids=type)
def test_a_fitted_estimator_of_other_width_or_classes(estimator: Any) -> None:
    estimator = clone(estimator).fit(X, Y)
    with pytest.raises(ValueError, match=r"fitted with 2|expecting 2"):
        ActiveLearner(estimator, X[:, :1])
    with pytest.raises(ValueError, match=r"cannot learn the new labels \[2\]"):
        ActiveLearner(estimator, X, classes=[0, 1, 2])


# -- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["active", "near_boundary"])
def test_teaching_a_row_twice(strategy: str) -> None:
    learner = begun(X, WORDS, strategy=strategy)
    match = "row 0 was already taught as 'no'. Call correct"
    refused(learner, ValueError, match, lambda it: it.teach(0, "yes"))
    free = int(np.flatnonzero(learner._pool.status == 0)[0])
    refused(
        learner,
        ValueError,
        "row 1 was already taught",
        lambda it: it.teach([free, 1], ["no", "no"]),
    )
    refused(learner, ValueError, "row 0 was already taught or skipped", lambda it: it.skip(0))
    twice = f"rows contains row {free} twice"
    refused(learner, ValueError, twice, lambda it: it.teach([free, free], ["no", "yes"]))
    refused(learner, ValueError, twice, lambda it: it.skip([free, free]))


@pytest.mark.parametrize("verb", ["teach", "skip"])
@pytest.mark.parametrize(
    ("rows", "error", "match"),
    [
        (60, IndexError, "row 60 is outside the pool; its rows are numbered 0 to 59"),
        (-1, IndexError, "row -1 is outside the pool"),
        ([59, 10**12], IndexError, "row 1000000000000 is outside"),
        (np.uint64(2**63), IndexError, "is outside the pool"),
        (1.0, TypeError, "rows must be an integer"),
        (True, TypeError, "rows must be an integer"),
        ("1", TypeError, "rows must be an integer"),
        (None, TypeError, "rows must be an integer"),
        ([[50, 51]], TypeError, "rows must be an integer"),
        ([], ValueError, "rows is empty"),
    ],
)
def test_rows_that_are_none(verb: str, rows: Any, error: Any, match: str) -> None:
    learner = begun(X, WORDS)
    labels = ["no"] * max(np.size(rows), 1)
    call = (lambda it: it.teach(rows, labels)) if verb == "teach" else (lambda it: it.skip(rows))
    refused(learner, error, match, call)


# -- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "error", "match"),
    [
        (None, ValueError, r"the label of row \d+ is None; .* Use skip\(\)"),
        (np.nan, ValueError, r"the label of row \d+ is nan"),
        (np.inf, ValueError, r"the label of row \d+ is inf"),
        (b"no", ValueError, "expected a string or a finite number"),
        (1 + 2j, ValueError, "expected a string or a finite number"),
        (["no", "yes"], ValueError, "got 2 labels for 1 rows"),
        ([], ValueError, "got 0 labels for 1 rows"),
        ([["no"]], ValueError, "expected a string or a finite number"),
        (3, TypeError, "labels must be all strings or all numbers"),
        (True, TypeError, "labels must be all strings or all numbers"),
    ],
)
def test_labels_that_are_none(label: Any, error: Any, match: str) -> None:
    learner = begun(X, WORDS)
    row = learner.ask()
    refused(learner, error, match, lambda it: it.teach(row, label))


@pytest.mark.parametrize(
    ("labels", "error", "match"),
    [
        (["no", np.nan], ValueError, "nan"),
        (["no", None], ValueError, "None"),
        (["no", 1], TypeError, "all strings or all numbers"),
        ([1, "no"], TypeError, "all strings or all numbers"),
        (np.array(["no", 1], dtype=object), TypeError, "all strings or all numbers, got .*1"),
        ("no", ValueError, "got 1 labels for 2 rows"),
    ],
)
@pytest.mark.parametrize("fresh", [True, False])
def test_lists_with_labels_that_are_none(labels: Any, error: Any, match: str, fresh: bool) -> None:
    """NumPy makes words of all of them: 1 would become "1", and a missing label "nan"."""
    learner = ActiveLearner(OnlineSVC(), X) if fresh else begun(X, WORDS)
    rows = np.flatnonzero(learner._pool.status == 0)[:2]
    refused(learner, error, match, lambda it: it.teach(rows, labels))


@pytest.mark.parametrize("taught", [0, 1, 10])
def test_an_unknown_label_where_classes_were_given(taught: int) -> None:
    learner = ActiveLearner(OnlineSVC(), X, classes=["no", "yes"], random_state=0)
    for row in range(taught):
        learner.teach(row, WORDS[row])
    match = r"label 'maybe' is not one of the classes \['no', 'yes'\]"
    refused(learner, ValueError, match, lambda it: it.teach(40, "maybe"))
    refused(learner, ValueError, match, lambda it: it.teach([40, 41], ["no", "maybe"]))
    refused(learner, ValueError, "label 1 is not one of", lambda it: it.teach(40, 1))


@pytest.mark.parametrize("strategy", ["active", "near_boundary"])
@pytest.mark.parametrize("estimator", [OnlineSVC(), SGDClassifier(random_state=0)], ids=type)
def test_a_new_label_for_an_estimator_that_cannot_learn_it(estimator: Any, strategy: str) -> None:
    """What was taught before must still be in the model."""
    learner = ActiveLearner(clone(estimator).fit(X[:30], Y[:30]), X[30:], strategy=strategy)
    learner.teach([1, 2, 3], Y[31:34])
    match = r"fitted with the classes \[0, 1\] and cannot learn the new labels \[7\]"
    refused(learner, ValueError, match, lambda it: it.teach(5, 7))
    free = int(np.flatnonzero(learner._pool.status == 0)[0])
    learner.teach(free, Y[30 + free])
    whole = learner.estimator_.decision_function(X[30:])
    np.testing.assert_allclose(learner.decision_values(), whole, atol=1e-9)


# -- errors while a model is built anew ------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["active", "near_boundary"])
def test_a_new_class_without_a_weight(strategy: str) -> None:
    """Class 2 has none while 9, which has one, is not there."""
    weights = {0: 1.0, 1: 5.0, 9: 2.0}
    learner = begun(X, Y, estimator=OnlineSVC(class_weight=weights), strategy=strategy)
    row = learner.ask()
    refused(learner, ValueError, "class_weight", lambda it: it.teach(row, 2))
    learner.teach(row, 1)


def test_a_new_class_that_the_estimator_does_not_take() -> None:
    """SGDClassifier refuses 0.5 as a label, but only once it is asked to learn it."""
    learner = begun(X, Y, estimator=SGDClassifier(random_state=0))
    row = learner.ask()
    refused(learner, ValueError, "Unknown label type", lambda it: it.teach(row, 0.5))
    learner.teach(row, 1)


@pytest.mark.parametrize("label", [0, 7])
def test_a_source_that_fails(label: int) -> None:
    source = Source(X)
    learner = begun(source, Y)
    row = learner.ask()
    before = snapshot(learner)
    source.fails = lambda rows: row in rows
    with pytest.raises(OSError, match="disk is gone"):
        learner.teach(row, label)
    source.fails = lambda rows: False
    assert_unchanged(before, learner, "a source that failed")


class Flaky:
    """An RBF kernel that fails at a given call, counted by all copies together."""

    calls = 0
    last = 10**9

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        Flaky.calls += 1
        if Flaky.calls > Flaky.last:
            raise RuntimeError("no kernel value")
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("strategy", ["active", "near_boundary"])
def test_a_kernel_that_fails_while_rows_are_learned(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever call fails: the questions after it are those of the model, not of a torn one."""
    learner = begun(X, Y, 8, estimator=OnlineSVC(kernel=Flaky(), C=10), strategy=strategy)
    rows = np.flatnonzero(learner._pool.status == 0)[:4]
    failed = 0
    for allowed in range(60):
        before = snapshot(learner)
        learner.decision_values()
        monkeypatch.setattr(Flaky, "calls", 0)
        monkeypatch.setattr(Flaky, "last", allowed)
        try:
            learner.teach(rows, Y[rows])
        except RuntimeError:
            failed += 1
            monkeypatch.setattr(Flaky, "last", 10**9)
            assert_unchanged(before, learner, f"the kernel failed after {allowed} calls")
        else:
            break
    monkeypatch.setattr(Flaky, "last", 10**9)
    assert failed > 2
    assert len(learner.history_) == 12
    values = learner.estimator_.decision_function(X)
    np.testing.assert_allclose(learner.decision_values(), values, atol=1e-9)


# -- asking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", [3]])
def test_how_many_to_ask(n: Any) -> None:
    refused(begun(X, Y), ValueError, "n must be an integer of at least 1", lambda it: it.ask(n))


def test_values_without_a_model() -> None:
    learner = ActiveLearner(OnlineSVC(), X).teach(0, "no")
    refused(learner, ValueError, "labels of two classes first", lambda it: it.decision_values())


@pytest.mark.parametrize("rows", [[60], [-1], np.array([0, 600])])
@pytest.mark.parametrize("estimator", [OnlineSVC(), SGDClassifier(random_state=0)], ids=type)
def test_values_of_rows_outside_the_pool(estimator: Any, rows: Any) -> None:
    learner = begun(X, Y, estimator=estimator)
    with pytest.raises((IndexError, ValueError), match=r"outside|out of bounds"):
        learner.decision_values(rows)


@pytest.mark.parametrize("strategy", [*STRATEGIES, lambda scores: scores])
@pytest.mark.parametrize("estimator", [OnlineSVC(), SGDClassifier(random_state=0)], ids=type)
@pytest.mark.parametrize("form", [np.asarray, Source])
def test_asking_an_exhausted_pool(strategy: Any, estimator: Any, form: Any) -> None:
    learner = ActiveLearner(estimator, form(X[:12]), strategy=strategy, random_state=0)
    learner.teach(np.arange(10), Y[:10]).skip([10, 11])
    with pytest.raises(PoolExhaustedError, match=r"all 12 rows .* extend\(X_new\) adds rows"):
        learner.ask()
    for n in (1, 3):
        rows = learner.ask(n)
        assert isinstance(rows, np.ndarray)
        assert (rows.shape, rows.dtype) == ((0,), np.int64)
    assert learner.should_stop()
    assert learner.should_stop().reason == "all 12 rows of the pool were taught or skipped."


# -- functions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda f: f[:-1], ValueError, r"one value for each of 50 rows, got .* shape \(49,\)"),
        (lambda f: f[:, None], ValueError, r"shape \(50, 1\)"),
        (lambda f: 0.0, ValueError, r"shape \(\)"),
        (lambda f: None, (ValueError, TypeError), "strategy|shape|float"),
        (lambda f: np.where(f > 0, f, np.nan), ValueError, "the strategy returned NaN for row"),
        (lambda f: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_functions_that_do_not_rank(function: Any, error: Any, match: str) -> None:
    learner = begun(X, Y, strategy="near_boundary")
    before = snapshot(learner)
    learner.strategy, learner.pool_size, learner._drawn = function, None, None
    with pytest.raises(error, match=match):
        learner.ask()
    with pytest.raises(error, match=match):
        learner.ask(3)
    learner.strategy, learner._drawn = "near_boundary", None
    assert_unchanged(before, learner, "a function that fails")


def test_functions_may_scribble_on_what_they_are_given() -> None:
    def turned(scores: np.ndarray) -> np.ndarray:
        scores *= -1
        return scores

    learner = begun(X, Y, strategy=turned, pool_size=None)
    lowest = int(learner.ask())
    assert [learner.ask() for _ in range(3)] == [lowest] * 3, "asking again asks differently"
    values = learner.estimator_.decision_function(X)
    assert values[lowest] == values[learner._pool.status == 0].min()


def test_functions_rank_by_their_largest_value() -> None:
    learner = begun(X, Y, strategy=lambda f: [float(v) for v in f], pool_size=None)
    values = np.where(learner._pool.status == 0, learner.estimator_.decision_function(X), -np.inf)
    assert learner.ask() == values.argmax()
    shapes: list[Any] = []
    three = begun(
        X, Y, strategy=lambda f: shapes.append(f.shape) or f[:, 0], classes=[0, 1, 2], pool_size=7
    )
    three.ask()
    assert shapes[-1] == (7, 3)
