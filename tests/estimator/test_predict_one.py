"""`predict_one` and `predict_many` agree with `predict`, and refuse what is not a row."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
)
from marginwise._estimator.pairs import votes
from tests.support import assert_untouched, blobs, sparse_rows

X, Y = blobs(240, 0, 4, d=5)
MODELS: dict[str, Any] = {
    "two classes": OnlineSVC(gamma=0.5, random_state=0).fit(X, Y > 1),
    "pairs": OnlineSVC(gamma=0.5, multiclass="ovo", random_state=0).fit(X, Y),
    "one against the rest": OnlineSVC(gamma=0.5, multiclass="ovr", random_state=0).fit(X, Y),
    "strings": OnlineSVC(gamma=0.5, random_state=0).fit(X, np.array(["a", "b", "c", "d"])[Y]),
    "calibrated": OnlineSVC(gamma=0.5, calibration="sigmoid", random_state=0).fit(X, Y),
    "calibrated, two classes": ExactSVC(gamma=0.5, calibration="isotonic").fit(X, Y > 1),
    "weighted": OnlineSVC(
        gamma=0.5, calibration="sigmoid", class_weight={0: 9.0}, random_state=0
    ).fit(X, Y),
    "linear": GapSVC(kernel="linear", center=True, random_state=0).fit(X, Y),
    "averaged": TrackingSVC(gamma=0.5, random_state=0).fit(X, Y),
    "perceptron": KernelPerceptron(gamma=0.5, random_state=0).fit(X, Y),
    "ramp": ExactRampSVC(gamma=0.5).fit(X, Y),
    "sphere": ExactOneClassSVM(gamma=0.5, nu=0.3).fit(X),
    "precomputed": OnlineSVC(kernel="precomputed", random_state=0).fit(X @ X.T, Y),
    "sparse": OnlineSVC(gamma=0.5, random_state=0).fit(
        sparse_rows(240, 200, 0.02, np.random.default_rng(0)), Y
    ),
}
MODELS["compressed"] = MODELS["two classes"].compress(X, Y > 1, max_vectors=8)


def rows_for(name: str) -> np.ndarray:
    if name == "precomputed":
        return (X + 0.1) @ X.T
    if name == "sparse":
        return sparse_rows(60, 200, 0.02, np.random.default_rng(1)).toarray()
    return X + 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_labels_are_those_of_predict(name: str, dtype: Any) -> None:
    model, rows = MODELS[name], rows_for(name).astype(dtype)
    before = model.__getstate__()
    expected = model.predict(rows)
    many = model.predict_many(rows)
    assert many.dtype == expected.dtype
    assert many.tolist() == expected.tolist()
    assert [model.predict_one(x) for x in rows[:40]] == expected[:40].tolist()
    assert model.predict_one(rows[0].tolist()) == expected[0]
    assert_untouched(before, model, "predict_one")


def test_labels_have_the_type_of_the_classes() -> None:
    assert isinstance(MODELS["strings"].predict_one(X[0]), np.str_)
    assert isinstance(MODELS["pairs"].predict_one(X[0]), np.int64)
    assert MODELS["sphere"].predict_one(X[0]) in (-1, 1)


@pytest.mark.parametrize("problems", [3, 10, 45])
def test_votes_of_one_row_are_those_of_many_to_the_bit(problems: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(50, problems)) * rng.choice([0.0, 1e-9, 1.0, 3.0], size=(50, problems))
    together = votes(f)
    apart = np.concatenate([votes(f[k : k + 1]) for k in range(len(f))])
    assert np.array_equal(together, apart)


def test_integers_and_objects_are_numbers_too() -> None:
    model = MODELS["two classes"]
    whole = np.round(X[:5]).astype(np.int64)
    assert model.predict_many(whole).tolist() == model.predict(whole).tolist()
    assert model.predict_many(whole.astype(object)).tolist() == model.predict(whole).tolist()
    assert model.predict_many(X[:5].astype(">f8")).tolist() == model.predict(X[:5]).tolist()
    assert model.predict_many(X[:10:2]).tolist() == model.predict(X[:10:2]).tolist()
    assert len(model.predict_many(X[:0])) == 0


def test_rows_that_are_objects() -> None:
    words = ["a", "bb", "ccc", "dddd"] * 3

    def kernel(A: Any, B: Any) -> np.ndarray:
        return np.array([[np.exp(-abs(len(a) - len(b))) for b in B] for a in A])

    model = OnlineSVC(kernel=kernel, random_state=0).fit(words, [0, 0, 1, 1] * 3)
    assert model.predict_one("aaaaa") == model.predict(["aaaaa"])[0]
    assert model.predict_many(words).tolist() == model.predict(words).tolist()


@pytest.mark.parametrize("name", ["two classes", "pairs", "sphere", "compressed"])
def test_what_is_not_a_row_is_refused(name: str) -> None:
    model = MODELS[name]
    for wrong in (X[0, :4], X[:2], 3.0, []):
        with pytest.raises(ValueError, match="expected dense rows of 5 features"):
            model.predict_one(wrong)
    with pytest.raises(ValueError, match="expected dense rows of 5 features"):
        model.predict_many(X[0])
    with pytest.raises(ValueError, match="expected dense rows of 5 features"):
        model.predict_many(sp.csr_array(X))
    with pytest.raises(ValueError, match="rows must be numeric"):
        model.predict_one(["a"] * 5)
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="at row 0, column 2; every feature must be a finite"):
            model.predict_one([0.0, 0.0, value, 0.0, 0.0])


@pytest.mark.parametrize("kind", [OnlineSVC, ExactOneClassSVM])
def test_models_that_are_not_fitted_say_so(kind: Any) -> None:
    with pytest.raises(NotFittedError):
        kind().predict_one(X[0])
    with pytest.raises(NotFittedError):
        kind().predict_many(X)
    with pytest.raises(NotFittedError, match="empty"):
        type(MODELS["compressed"])().predict_one(X[0])


def test_readers_see_whole_models_while_another_thread_refits() -> None:
    """Labels and coefficients of two fits are never mixed: the classes do not overlap."""
    one, two = np.array([0, 1])[Y % 2], np.array([10, 11, 12])[Y % 3]
    model = OnlineSVC(gamma=0.5, random_state=0).fit(X, one)
    allowed = [set(OnlineSVC(gamma=0.5, random_state=0).fit(X, y).predict(X)) for y in (one, two)]
    stop, wrong = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            found = set(model.predict_many(X).tolist())
            if not any(found <= labels for labels in allowed):
                wrong.append(found)
            model.predict_one(X[0])

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(20):
        model.fit(X, two if k % 2 else one)
    stop.set()
    reader.join()
    assert not wrong
