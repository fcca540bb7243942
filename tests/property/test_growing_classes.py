"""Classes that were not announced: a problem starts from the members held when one appears."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from marginwise import GapSVC, OnlineSVC, load, save
from marginwise._estimator.base import change
from tests.support import assert_same_model, blobs

DIGITS, NAMES = load_digits(return_X_y=True)
DIGITS = DIGITS / 16
CODES = ["ovr", "ovo"]


def learner(**kw: Any) -> OnlineSVC:
    return OnlineSVC(**{"C": 10, "gamma": 0.2, "random_state": 0, **kw})


def stream(late: int, n: int = 1200) -> np.ndarray:
    """Return an order of rows in which a class first appears after half of the stream."""
    rng = np.random.default_rng(late)
    rows = rng.permutation(n)
    first = rows[: n // 2][NAMES[rows[: n // 2]] != late]
    return np.concatenate([first, rng.permutation(np.setdiff1d(rows, first))])


@pytest.mark.parametrize("multiclass", CODES)
@pytest.mark.parametrize("late", [0, 4, 9])
def test_a_late_class_is_learned_as_if_it_had_been_announced(multiclass: str, late: int) -> None:
    """Within half a point of a model that knew all classes from the start."""
    rows = stream(late)
    known = learner(multiclass=multiclass).partial_fit(DIGITS[rows], NAMES[rows], classes=range(10))
    open_ended = learner(multiclass=multiclass)
    for part in np.array_split(rows, 13):
        open_ended.partial_fit(DIGITS[part], NAMES[part])
        open_ended._engine.native.check(1e-4)
    assert open_ended.classes_.tolist() == list(range(10))
    scores = [m.finish().score(DIGITS[1200:], NAMES[1200:]) for m in (known, open_ended)]
    assert scores[1] > scores[0] - 0.005


@pytest.mark.parametrize("multiclass", CODES)
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_the_model_does_not_depend_on_cuts(multiclass: str, form: str) -> None:
    A, b = blobs(300, 5, 5)
    rows: Any = sp.csr_array(A) if form == "csr" else A
    whole = learner(multiclass=multiclass).partial_fit(rows, b)
    for cuts in ([1], [1, 2, 3, 7, 150], [299]):
        other = learner(multiclass=multiclass)
        for first, end in zip([0, *cuts], [*cuts, 300], strict=True):
            other.partial_fit(rows[first:end], b[first:end])
        assert_same_model(whole, other, f"cut at {cuts}")


@pytest.mark.slow
@pytest.mark.parametrize("multiclass", CODES)
@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_classes_may_come_in_any_order(multiclass: str, order: tuple[str, ...]) -> None:
    """A class that sorts before those met swaps sides in the problem there was."""
    A, b = blobs(240, 6, 3)
    names = np.array(list("abc"))[b]
    rows = np.concatenate([np.flatnonzero(names == name)[:40] for name in order])
    rest = np.setdiff1d(np.arange(240), rows)
    model = learner(multiclass=multiclass, gamma=0.5)
    for row in rows:
        model.partial_fit(A[row : row + 1], names[row : row + 1])
    model._engine.native.check(1e-4)
    assert model.classes_.tolist() == ["a", "b", "c"]
    model.partial_fit(A[rest], names[rest]).finish()
    assert model.score(A, names) > 0.9


def test_what_was_learned_of_two_classes_stays() -> None:
    """At the moment a third class appears, the first two are separated as before."""
    A, b = blobs(200, 7, 2)
    model = learner().partial_fit(A, b)
    before = model.decision_function(A)
    change(model, OnlineSVC._grow_classes, np.array([5]))
    f = model._engine.decision(A)
    assert np.allclose(f[:, 1], before, atol=1e-6)
    assert np.allclose(f[:, 0], -before, atol=1e-6)
    model._engine.native.check(1e-5)


def test_what_dropped_members_left_behind_swaps_sides_too() -> None:
    """What a member inherited is no contribution of its own, whose bound is its cost."""
    A, b = blobs(400, 7, 2)
    model = learner(budget=30, multiclass="ovr").partial_fit(A, b)
    before = model._engine.state()["inherited"]
    assert np.abs(before).max() > 1
    change(model, OnlineSVC._grow_classes, np.array([5]))
    state = model._engine.state()
    np.testing.assert_array_equal(state["inherited"][:2], np.vstack([-before[0], before[0]]))
    own = np.abs(state["alpha"] - state["inherited"])[:2]
    assert (own <= state["costs"] * (1 + 1e-9) + 1e-9).all()


def test_announced_classes_are_all_there_are() -> None:
    A, b = blobs(60, 8, 3)
    closed = learner().partial_fit(A, b, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="unknown labels: 7"):
        closed.partial_fit(A[:1], [7])
    with pytest.raises(ValueError, match="classes must be passed"):
        GapSVC().partial_fit(A, b)
    with pytest.raises(ValueError, match="differs from the classes of the model"):
        closed.partial_fit(A[:1], b[:1], classes=[0, 1, 7])
    balanced = learner(class_weight="balanced").fit(A, b)
    with pytest.raises(ValueError, match="unknown labels: 7"):
        balanced.partial_fit(A[:1], [7])
    with pytest.raises(ValueError, match="balanced"):
        balanced.partial_fit(A[:1], [7], classes=[0, 1, 2, 7])
    assert balanced.classes_.tolist() == [0, 1, 2]


def test_more_classes_may_be_announced_later() -> None:
    """Also to a model that `fit` started: naming them is what adds them."""
    A, b = blobs(120, 11, 3)
    model = learner().fit(A[b < 2], b[b < 2])
    model.partial_fit(A[b == 2], b[b == 2], classes=[0, 1, 2]).finish()
    assert model.score(A, b) > 0.7
    with pytest.raises(ValueError, match="unknown labels: 3"):
        model.partial_fit(A[:1], [3])


def test_one_class_is_predicted_until_there_is_another(tmp_path: Any) -> None:
    A, b = blobs(60, 9, 3)
    model = learner().partial_fit(A[:5], np.full(5, "x"))
    assert set(model.predict(A)) == {"x"}
    save(model, tmp_path / "one.mwz")
    for again in (load(tmp_path / "one.mwz"), pickle.loads(pickle.dumps(model))):
        again.learn_one(A[7], "w")
        again.learn_many(A[8:60], np.array(["w", "x", "y"])[b[8:60]])
        assert again.classes_.tolist() == ["w", "x", "y"]
        assert again.score(A[8:], np.array(["w", "x", "y"])[b[8:]]) > 0.8


def test_a_fitted_model_learns_a_new_class_with_replay_and_budget() -> None:
    rows = np.flatnonzero(NAMES[:1200] < 9)
    new = np.flatnonzero(NAMES[:1200] == 9)
    for kw in ({"replay": 300}, {"budget": 400, "multiclass": "ovr"}):
        model = learner(**kw).fit(DIGITS[rows], NAMES[rows])
        model.partial_fit(DIGITS[new], NAMES[new], classes=range(10)).finish()
        assert model.score(DIGITS[1200:], NAMES[1200:]) > 0.93, kw


def test_class_weights_may_name_classes_to_come() -> None:
    A, b = blobs(60, 10, 3)
    model = learner(class_weight={2: 3.0}).partial_fit(A[b < 2], b[b < 2])
    model.partial_fit(A[b == 2], b[b == 2])
    assert model._costs.tolist() == [10.0, 10.0, 30.0]


def test_labels_of_another_type_are_refused() -> None:
    """Numbers and names in one array would turn the numbers into names."""
    A, b = blobs(20, 12, 2)
    model = learner().partial_fit(A, b)
    for call in (lambda: model.partial_fit(A[:1], ["a"]), lambda: model.learn_one(A[0], "a")):
        with pytest.raises(ValueError, match="whose type differs"):
            call()
    assert model.classes_.tolist() == [0, 1]
