"""Kernel functions over objects that are not arrays: strings, graphs, sequences."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
    _objects,
    save,
)

KINDS = [OnlineSVC, ExactSVC, GapSVC, TrackingSVC, ExactRampSVC, KernelPerceptron]


def words(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Words of mostly a and b, or mostly c and d, with a first letter that all share."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(["ab", "cd"], size=n)
    letters = {"ab": "aaabbbcd", "cd": "abcccddd"}
    rows = ["x" + "".join(rng.choice(list(letters[y]), size=rng.integers(3, 9))) for y in labels]
    return rows, labels.tolist()


def counts(rows: Any) -> np.ndarray:
    return np.array([[row.count(letter) for letter in "abcdx"] for row in rows], dtype=np.float64)


def of_strings(A: Any, B: Any) -> np.ndarray:
    assert A.ndim == B.ndim == 1
    assert all(type(a) is str for a in A)
    return of_counts(counts(A), counts(B))


def of_counts(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    distances = ((A[:, None] - B[None]) ** 2).sum(axis=2)
    return np.exp(-0.1 * distances)


def assert_same_as_counts(model: Any, rows: list[str], y: list[str]) -> None:
    """The model should be that of the rows' counts, to the bit."""
    X = counts(rows)
    other = clone(model).set_params(kernel=of_counts).fit(X, y)
    assert np.array_equal(model.decision_function(rows), other.decision_function(X))
    assert model.predict(rows).tolist() == other.predict(X).tolist()
    assert np.array_equal(model.support_, other.support_)
    assert model.support_vectors_.tolist() == [rows[k] for k in model.support_]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_of_strings(kind: type, seed: int) -> None:
    rows, y = words(80, seed)
    options = {} if kind is ExactSVC else {"random_state": 0}
    model = kind(kernel=of_strings, C=2.0, **options).fit(rows, y)
    assert_same_as_counts(model, rows, y)
    assert model.score(rows, y) > 0.7


SHAPES: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "objects": lambda rows: np.array(rows, dtype=object),
    "strings": np.array,
    "series": pd.Series,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_any_sequence_will_do(shape: str, seed: int) -> None:
    rows, y = words(40, seed)
    model = OnlineSVC(kernel=of_strings, random_state=0).fit(SHAPES[shape](rows), y)
    assert_same_as_counts(model, rows, y)
    assert model.predict(SHAPES[shape](rows[:7])).tolist() == model.predict(rows)[:7].tolist()


def test_sequences_of_different_lengths() -> None:
    def overlap(A: Any, B: Any) -> np.ndarray:
        return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])

    rows = [[1, 2], [1, 2, 3], [7, 8, 9, 10], [8, 9]]
    model = ExactSVC(kernel=overlap).fit(rows, [0, 0, 1, 1])
    assert model.predict([[2, 3], [9, 10]]).tolist() == [0, 1]  # of one length, and still objects


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_strings(kind: type, seed: int) -> None:
    rows, y = words(60, seed)
    whole, parts, single = (kind(kernel=of_strings) for _ in range(3))
    for model in (whole, parts, single):
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
    whole.partial_fit(rows, y, classes=["ab", "cd"])
    parts.partial_fit(rows[:10], y[:10], classes=["ab", "cd"]).partial_fit(rows[10:], y[10:])
    single.partial_fit(rows[:10], y[:10], classes=["ab", "cd"])
    for row, label in zip(rows[10:20], y[10:20], strict=True):
        single.learn_one(row, label)
    single.learn_many(rows[20:], y[20:])
    for model in (parts, single):
        assert np.array_equal(model.decision_function(rows), whole.decision_function(rows))


def test_a_sphere_around_strings(seed: int) -> None:
    rows, _ = words(60, seed)
    model = ExactOneClassSVM(kernel=of_strings, nu=0.2).fit(rows)
    other = ExactOneClassSVM(kernel=of_counts, nu=0.2).fit(counts(rows))
    assert np.array_equal(model.decision_function(rows), other.decision_function(counts(rows)))
    model.partial_fit(["xabab"])
    assert model.forget([60]).predict(rows).tolist() == other.predict(counts(rows)).tolist()


def test_weights_and_forgetting(seed: int) -> None:
    rows, y = words(60, seed)
    weights = np.r_[np.zeros(20), np.ones(40)]
    rest = ExactSVC(kernel=of_strings).fit(rows[20:], y[20:])
    weighted = ExactSVC(kernel=of_strings).fit(rows, y, sample_weight=weights)
    forgetful = ExactSVC(kernel=of_strings).fit(rows, y).forget(range(20))
    for model in (weighted, forgetful):
        assert np.allclose(model.decision_function(rows), rest.decision_function(rows), atol=1e-9)


def test_pickling_and_folds(seed: int) -> None:
    rows, y = words(80, seed)
    model = OnlineSVC(kernel=of_strings, random_state=0).fit(rows, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(rows), model.decision_function(rows))
    assert again.support_vectors_.tolist() == model.support_vectors_.tolist()
    more, labels = words(20, seed + 1)
    for one in (model, again):
        one.partial_fit(more, labels)
    assert np.array_equal(again.decision_function(rows), model.decision_function(rows))
    assert cross_val_score(clone(model), rows, y, cv=3).mean() > 0.6


def test_no_files(seed: int, tmp_path: Path) -> None:
    rows, y = words(30, seed)
    with pytest.raises(ValueError, match="kernel"):
        save(OnlineSVC(kernel=of_strings).fit(rows, y), tmp_path / "model.mwz")


# -- what is refused ------------------------------------------------------------------------------


def test_rows_of_another_kind(seed: int) -> None:
    rows, y = words(30, seed)
    of_objects = OnlineSVC(kernel=of_strings).fit(rows, y)
    of_numbers = OnlineSVC(kernel=of_counts).fit(counts(rows), y)
    with pytest.raises(ValueError, match="fitted with a sequence of objects"):
        of_objects.predict(counts(rows))
    with pytest.raises(ValueError, match="fitted with rows of 5 numbers"):
        of_numbers.predict(rows)
    assert of_numbers.set_params(kernel=of_strings).fit(rows, y).predict(rows[:1]) == y[:1]
    assert of_numbers.set_params(kernel=of_counts).fit(counts(rows), y).n_features_in_ == 5


def test_native_kernels_need_numbers(seed: int) -> None:
    rows, y = words(30, seed)
    with pytest.raises(ValueError, match="could not convert string to float"):
        OnlineSVC().fit(rows, y)


def test_a_failing_kernel_leaves_the_model(seed: int) -> None:
    rows, y = words(40, seed)
    model = OnlineSVC(kernel=of_words, random_state=0).fit(rows, y)
    before = model.decision_function(rows)
    with pytest.raises(AttributeError):
        model.partial_fit([7, 8], ["ab", "cd"])
    with pytest.raises(ValueError, match="unknown labels"):
        model.partial_fit(rows[:1], ["ef"])
    assert np.array_equal(model.decision_function(rows), before)


# -- memory ---------------------------------------------------------------------------------------


class Word(str):
    __slots__ = ("__weakref__",)


def of_words(A: Any, B: Any) -> np.ndarray:
    return of_counts(counts(A), counts(B))


def test_objects_are_freed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that were only predicted, or that the model dropped, do not stay."""
    monkeypatch.setattr(_objects, "SLACK", 20)
    rows, y = words(600, seed)
    model = KernelPerceptron(kernel=of_words, budget=5, random_state=0)
    alive: list[weakref.ref[Any]] = []
    for k in range(0, 600, 10):
        batch = [Word(row) for row in rows[k : k + 10]]
        alive += [weakref.ref(word) for word in batch]
        model.partial_fit(batch, y[k : k + 10], classes=["ab", "cd"])
        model.predict([Word(row) for row in rows[:50]])
    del batch
    gc.collect()
    learned = sum(word() is not None for word in alive)
    assert learned < 200, f"{learned} of 600 objects are held by a model of 5 support vectors"
    assert len(model._objects._lent) <= 50
    assert len(pickle.loads(pickle.dumps(model))._objects) <= model.stats_["members"] + 1


def test_threads_predict_objects_of_their_own(seed: int) -> None:
    rows, y = words(60, seed)
    model = OnlineSVC(kernel=of_strings, random_state=0).fit(rows, y)
    expected = model.decision_function(rows)
    agree: list[bool] = []

    def predict(first: int) -> None:
        for _ in range(5):
            part = model.decision_function(rows[first : first + 20])
            agree.append(np.array_equal(part, expected[first : first + 20]))

    threads = [threading.Thread(target=predict, args=(20 * k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads
    gc.collect()
    assert agree == [True] * 15
    assert len(model._objects._lent) <= 60
