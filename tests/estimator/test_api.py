"""The public names of OnlineSVC: parameters, methods, attributes, and the inputs they take."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import marginwise
from marginwise import ExactOneClassSVM, ExactSVC, KernelPerceptron, OnlineSVC
from tests.support import assert_same_model, assert_untouched, blobs, core_state, essence, rings

DEFAULTS = {
    "C": 1.0,
    "kernel": "rbf",
    "gamma": "scale",
    "degree": 3,
    "coef0": 0.0,
    "tol": 1e-3,
    "epochs": 1,
    "selection": "random",
    "pool_size": 50,
    "stop": None,
    "reprocess": 1,
    "reprocess_when": "processed",
    "finish_at_end": True,
    "finish_every": None,
    "delta_max": None,
    "replay": 0,
    "budget": None,
    "multiclass": "auto",
    "calibration": None,
    "cache_size": "auto",
    "class_weight": None,
    "shuffle": True,
    "n_jobs": None,
    "random_state": None,
    "verbose": 0,
}


@pytest.fixture
def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return rings(120, seed, noise=0.1)


@pytest.fixture
def model(data: tuple[np.ndarray, np.ndarray]) -> OnlineSVC:
    return OnlineSVC(C=5.0, gamma=1.0, random_state=0).fit(*data)


# -- parameters -----------------------------------------------------------------------------------


def test_parameters_and_their_defaults() -> None:
    signature = inspect.signature(OnlineSVC)
    assert {name: p.default for name, p in signature.parameters.items()} == DEFAULTS
    assert all(p.kind is p.KEYWORD_ONLY for p in signature.parameters.values())
    assert OnlineSVC().get_params() == DEFAULTS


def test_parameters_are_stored_as_given() -> None:
    given = {name: object() for name in DEFAULTS}
    model = OnlineSVC(**given)
    assert all(model.get_params()[name] is value for name, value in given.items())
    assert vars(model) == given, "__init__ must do nothing but store"


def test_finishing_at_the_end_and_at_any_time(data: tuple[np.ndarray, np.ndarray]) -> None:
    model = OnlineSVC(gamma=1.0, C=5.0)
    assert model.get_params()["finish_at_end"] is True
    assert model.set_params(finish_at_end=False).get_params()["finish_at_end"] is False
    assert clone(model).get_params()["finish_at_end"] is False
    assert repr(model) == "OnlineSVC(C=5.0, finish_at_end=False, gamma=1.0)"
    model.fit(*data)
    unfinished = model._engine.delta
    assert unfinished > model.tol, "finish_at_end=False must leave the model unfinished"
    assert model.finish() is model
    assert model._engine.delta <= model.tol
    assert model.get_params()["finish_at_end"] is False
    assert clone(OnlineSVC()).fit(*data)._engine.delta <= 1e-3
    assert pickle.loads(pickle.dumps(model)).get_params()["finish_at_end"] is False


def test_clone_and_repr() -> None:
    model = OnlineSVC(C=3, kernel="poly", class_weight={0: 2.0})
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "OnlineSVC(C=3, class_weight={0: 2.0}, kernel='poly')"
    assert is_classifier(model)


def test_parameters_change_what_they_say(data: tuple[np.ndarray, np.ndarray]) -> None:
    """No parameter is accepted and then ignored."""
    base: dict[str, Any] = {"C": 5.0, "gamma": 1.0, "random_state": 0}
    plain = essence(OnlineSVC(**base).fit(*data))
    changes = [
        {"C": 1.0}, {"kernel": "linear"}, {"gamma": 0.1}, {"tol": 0.1},
        {"reprocess": 0, "finish_at_end": False}, {"finish_at_end": False}, {"finish_every": 5},
        {"delta_max": 0.01, "finish_at_end": False}, {"class_weight": {0: 3.0}},
        {"reprocess": "gap", "finish_at_end": False},
    ]  # fmt: skip
    for change in changes:
        changed = essence(OnlineSVC(**{**base, **change}).fit(*data))
        assert any(not np.array_equal(plain[name], changed[name]) for name in plain), (
            f"{change} changed nothing"
        )
    rough = {**base, "reprocess": 0, "finish_at_end": False}  # so few rows are solved as a whole
    for change in ({"shuffle": False}, {"random_state": 1}):
        one, other = (essence(OnlineSVC(**{**rough, **c}).fit(*data)) for c in ({}, change))
        assert any(not np.array_equal(one[name], other[name]) for name in one), f"{change}"
    once, thrice = (essence(OnlineSVC(**rough, epochs=n).fit(*data)) for n in (1, 3))
    assert any(not np.array_equal(once[name], thrice[name]) for name in once)
    poly = {"kernel": "poly", "C": 1.0, "gamma": 1.0, "random_state": 0}
    one = OnlineSVC(**poly, degree=2).fit(*data).decision_function(data[0])
    for other in ({"degree": 3}, {"degree": 2, "coef0": 1.0}):
        two = OnlineSVC(**poly, **other).fit(*data).decision_function(data[0])
        assert not np.allclose(one, two), f"{other} changed nothing"


# -- attributes -----------------------------------------------------------------------------------


def test_attributes_of_a_binary_model(
    model: OnlineSVC, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    n = len(model.support_)
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 2
    assert model.support_.dtype == np.int64
    assert model.dual_coef_.shape == (1, n)
    assert model.dual_coef_.dtype == np.float64
    assert np.all(model.dual_coef_ != 0)
    assert model.intercept_.shape == (1,)
    assert model.n_support_.tolist() == np.bincount(y[model.support_], minlength=2).tolist()
    assert model.n_support_.sum() == n
    assert model.support_vectors_.shape == (n, 2)
    np.testing.assert_allclose(model.support_vectors_, X[model.support_], rtol=1e-6, atol=1e-6)
    assert set(model.support_) <= set(model.ids_)
    assert np.all(np.sign(model.dual_coef_[0]) == np.where(y[model.support_] == 1, 1, -1))
    assert not hasattr(model, "feature_names_in_")


def test_attributes_of_three_classes(seed: int) -> None:
    X, y = blobs(150, seed)
    model = OnlineSVC(gamma=0.5, random_state=0).fit(X, y)
    n = len(model.support_)
    assert model.dual_coef_.shape == (3, n)
    assert model.intercept_.shape == (3,)
    assert model.n_support_.tolist() == np.bincount(y[model.support_], minlength=3).tolist()
    assert model.decision_function(X).shape == (150, 3)
    assert np.array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    assert model.dual_objective().shape == (3,)
    assert np.all((model.dual_coef_ != 0).any(axis=0))


def test_support_holds_row_numbers(data: tuple[np.ndarray, np.ndarray]) -> None:
    """Also where rows of weight zero were left out, and where rows came in random order."""
    X, y = data
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    model = OnlineSVC(C=5.0, gamma=1.0, random_state=3).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.support_vectors_, X[model.support_], rtol=1e-6, atol=1e-6)
    assert not np.any(model.support_ % 3 == 0)
    model.partial_fit(X[:5] + 0.1, 1 - y[:5])
    assert set(model.ids_) <= set(range(len(y) + 5))


def test_the_model_is_what_its_attributes_say(model: OnlineSVC) -> None:
    Z, _ = rings(50, 99)
    square = ((Z[:, None] - model.support_vectors_[None]) ** 2).sum(axis=2)
    expected = np.exp(-square) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(Z), expected, atol=1e-4)


def test_stats(model: OnlineSVC) -> None:
    stats = model.stats_
    counters = (
        "kernel_evaluations", "process", "reprocess", "inserted", "removed", "cache_hits",
        "cache_misses", "members", "member_bytes",
    )  # fmt: skip
    assert all(isinstance(stats[name], int) and stats[name] >= 0 for name in counters)
    seconds = [name for name in stats if name.endswith("_seconds")]
    assert {"learn_seconds", "finish_seconds", "product_seconds"} <= set(seconds)
    assert all(isinstance(stats[name], float) and stats[name] >= 0 for name in seconds)
    assert stats["inserted"] - stats["removed"] == len(model.ids_)
    assert stats["precision"] in ("single", "double")
    assert stats["cpu"] in marginwise._core.cpu_choices()
    before = stats["process"]
    stats["process"] = -1
    assert model.stats_["process"] == before, "stats_ is a copy"


@pytest.mark.parametrize(
    "name",
    ["support_", "support_vectors_", "dual_coef_", "intercept_", "n_support_", "ids_", "stats_"],
)
def test_attributes_before_fit(name: str) -> None:
    with pytest.raises((NotFittedError, AttributeError)):
        getattr(OnlineSVC(), name)
    assert not hasattr(OnlineSVC(), "classes_")


def test_a_model_of_nobody(data: tuple[np.ndarray, np.ndarray]) -> None:
    """A model may hold examples without a support vector: the shapes are those of none."""
    X, _ = data
    model = OnlineSVC(gamma=1.0).partial_fit(X[:3], [1, 1, 1], classes=[0, 1])
    assert model.support_.shape == (0,)
    assert model.dual_coef_.shape == (1, 0)
    assert model.support_vectors_.shape == (0, 2)
    assert model.n_support_.tolist() == [0, 0]
    assert model.ids_.tolist() == [0, 1, 2]
    assert model.dual_objective() == 0.0


# -- learning -------------------------------------------------------------------------------------


def test_fit_starts_from_nothing(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    params: dict[str, Any] = {"C": 5.0, "gamma": 1.0, "random_state": 0}
    once = OnlineSVC(**params).fit(X, y)
    again = OnlineSVC(**params).fit(X[:50] * 3, 1 - y[:50]).fit(X, y)
    assert_same_model(once, again, "a second fit")
    wider = again.fit(np.hstack([X, X]), np.where(y, "b", "a"))
    assert wider.n_features_in_ == 4
    assert wider.classes_.tolist() == ["a", "b"]


def test_partial_fit_goes_on_after_fit(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = OnlineSVC(C=5.0, gamma=1.0, random_state=0).fit(X[:80], y[:80])
    before = model.dual_objective()
    assert model.partial_fit(X[80:], y[80:]) is model
    assert model.dual_objective() >= before
    assert model.ids_.max() >= 80, "new rows are counted on"


def test_learn_one_and_learn_many(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    names = np.where(y, "yes", "no")
    model = OnlineSVC(C=5.0, gamma=1.0).partial_fit(X[:1], names[:1], classes=["no", "yes"])
    assert model.learn_one(X[1], names[1]) is model
    assert model.learn_one(X[2].tolist(), str(names[2])) is model
    assert model.learn_many(X[3:], names[3:]) is model
    whole = OnlineSVC(C=5.0, gamma=1.0).partial_fit(X, names, classes=["no", "yes"])
    assert_same_model(whole, model, "learn_one and learn_many against partial_fit")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, bool])
def test_learn_many_takes_any_numbers(dtype: type) -> None:
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=dtype)
    y = [0, 1, 1, 0]
    one = OnlineSVC(gamma=1.0).partial_fit(X, y, classes=[0, 1])
    other = OnlineSVC(gamma=1.0).partial_fit(X[:1], y[:1], classes=[0, 1])
    other.learn_many(X[1:3], y[1:3]).learn_one(X[3], y[3])
    assert_same_model(one, other, f"learn_many of {dtype.__name__}")


def test_learn_many_of_a_view(data: tuple[np.ndarray, np.ndarray]) -> None:
    """Columns of a wider array, every second row, Fortran order."""
    X, y = data
    wide = np.asfortranarray(np.repeat(X, 2, axis=0))
    one = OnlineSVC(gamma=1.0).partial_fit(X, y, classes=[0, 1])
    other = OnlineSVC(gamma=1.0).partial_fit(X[:1], y[:1], classes=[0, 1])
    assert_same_model(one, other.learn_many(wide[2::2], y[1:].tolist()), "a view")


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "unsorted"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_learn_many_of_sparse_rows(
    data: tuple[np.ndarray, np.ndarray], form: str, dtype: type
) -> None:
    X, y = np.round(3 * data[0]).astype(dtype), data[1]
    rows = sp.csr_matrix(X).asformat("csr" if form == "unsorted" else form)
    if form == "unsorted":
        rows = sp.csr_matrix(X[:, ::-1])
        rows = sp.csr_matrix((rows.data, X.shape[1] - 1 - rows.indices, rows.indptr), X.shape)
    one = OnlineSVC(gamma=1.0).partial_fit(sp.csr_matrix(X), y, classes=[0, 1])
    other = OnlineSVC(gamma=1.0).partial_fit(sp.csr_matrix(X[:1]), y[:1], classes=[0, 1])
    other.learn_many(rows.tocsr()[1:9].asformat(rows.format), y[1:9])
    other.learn_many(rows.tocsr()[9:].asformat(rows.format), y[9:])
    assert_same_model(one, other, f"learn_many of {form} of {dtype.__name__}")


def test_ids_name_the_examples(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    ids = np.arange(len(y)) * 7 + 1000
    model = OnlineSVC(C=5.0, gamma=1.0).partial_fit(X, y, classes=[0, 1], ids=ids.tolist())
    assert set(model.support_) <= set(ids)
    rows = (model.support_ - 1000) // 7
    np.testing.assert_allclose(model.support_vectors_, X[rows], rtol=1e-6, atol=1e-6)
    for dtype in (np.int32, np.uint8):
        few = OnlineSVC(gamma=1.0).partial_fit(
            X[:9], y[:9], classes=[0, 1], ids=np.arange(9, dtype=dtype)
        )
        assert few.ids_.dtype == np.int64


def test_zero_weights_drop_out(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    weights = np.where(np.arange(len(y)) < 40, 0.0, 1.0)
    part = OnlineSVC(C=5.0, gamma=1.0).partial_fit(X, y, classes=[0, 1], sample_weight=weights)
    rest = OnlineSVC(C=5.0, gamma=1.0).partial_fit(
        X[40:], y[40:], classes=[0, 1], ids=np.arange(40, len(y))
    )
    assert_same_model(part, rest, "rows of weight zero")


def test_a_scalar_weight_counts_for_all(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    one = OnlineSVC(C=1.0, gamma=1.0, random_state=0).fit(X, y, sample_weight=2.0)
    other = OnlineSVC(C=2.0, gamma=1.0, random_state=0).fit(X, y)
    assert_same_model(one, other, "weight 2 against twice C")


def test_class_weights(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    by_class = OnlineSVC(gamma=1.0, class_weight={1: 3.0}, random_state=0).fit(X, y)
    by_row = OnlineSVC(gamma=1.0, random_state=0).fit(X, y, sample_weight=np.where(y, 3.0, 1.0))
    assert_same_model(by_class, by_row, "class weights against the same weights by row")
    names = np.where(y, "rare", "usual")
    balanced = OnlineSVC(gamma=1.0, class_weight="balanced", random_state=0).fit(X, names)
    expected = {"rare": 0.5 * len(y) / y.sum(), "usual": 0.5 * len(y) / (len(y) - y.sum())}
    given = OnlineSVC(gamma=1.0, class_weight=expected, random_state=0).fit(X, names)
    assert_same_model(balanced, given, "balanced against its definition")
    streamed = OnlineSVC(gamma=1.0, class_weight=expected)
    streamed.partial_fit(X, names, classes=["rare", "usual"]).learn_one(X[0], "rare")
    assert set(np.round(core_state(streamed)["costs"], 9)) <= {
        round(v, 9) for v in expected.values()
    }


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([3, 8], dtype=np.uint8),
        np.array([0.0, 1.0]),
    ],
    ids=["str", "object", "bool", "signs", "uint8", "float"],
)
def test_labels_of_any_kind(labels: np.ndarray, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = OnlineSVC(C=5.0, gamma=1.0, random_state=0).fit(X, labels[y])
    plain = OnlineSVC(C=5.0, gamma=1.0, random_state=0).fit(X, y)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert np.array_equal(predicted, labels[plain.predict(X)])
    assert model.score(X, labels[y]) == plain.score(X, y)
    assert model.duality_gap(X, labels[y]) == plain.duality_gap(X, y)
    model.learn_one(X[0], labels[0]).learn_many(X[:2], labels[y[:2]].tolist())
    model.partial_fit(X[:3], labels[y[:3]].tolist())
    assert model._engine.native.next_id == len(y) + 6


def test_classes_may_be_named_in_any_order(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = OnlineSVC(gamma=1.0).partial_fit(X, y, classes=[1, 0, 1])
    assert model.classes_.tolist() == [0, 1]
    model.partial_fit(X, y, classes=(1, 0))


def test_a_class_that_never_comes(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = OnlineSVC(gamma=1.0).partial_fit(X, y, classes=[0, 1, 2]).finish()
    assert model.decision_function(X).shape == (120, 3)
    assert set(model.predict(X)) == {0, 1}, "a class without examples is never predicted"
    assert model.n_support_[2] == 0


# -- inputs ---------------------------------------------------------------------------------------


def forms_of(X: np.ndarray, folder: Path) -> dict[str, Any]:
    np.save(folder / "X.npy", X)
    csr = sp.csr_array(X)
    wide = sp.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)))
    n, d = X.shape
    backwards = np.concatenate([np.arange(d)[::-1]] * n)
    unsorted = sp.csr_array((X[:, ::-1].ravel(), backwards, np.arange(n + 1) * d), shape=X.shape)
    halves = sp.csr_array(
        (np.repeat(X.ravel() / 2, 2), np.repeat(np.tile(np.arange(d), n), 2),
         np.arange(n + 1) * 2 * d), shape=X.shape,
    )  # fmt: skip
    read_only = X.copy()
    read_only.flags.writeable = False
    assert wide.indices.dtype == np.int64
    assert not unsorted.has_sorted_indices
    assert not halves.has_canonical_format
    return {
        "list": X.tolist(),
        "Fortran order": np.asfortranarray(X),
        "every second row": np.repeat(X, 2, axis=0)[::2],
        "byte-swapped": X.astype(X.dtype.newbyteorder()),
        "read-only": read_only,
        "memmap": np.load(folder / "X.npy", mmap_mode="r"),
        "data frame": pd.DataFrame(X),
        "CSR array": csr,
        "CSR matrix": sp.csr_matrix(X),
        "CSR with int64 indices": wide,
        "unsorted CSR": unsorted,
        "CSR with entries in two halves": halves,
        "CSC": sp.csc_array(X),
        "coordinates": sp.coo_array(X),
    }


def test_every_form_of_input_is_the_same_data(tmp_path: Path, seed: int) -> None:
    """In eighths, so that nothing is rounded; poly, so that nothing is centred."""
    X, y = rings(80, seed)
    X = np.round(X * 8) / 8 + 4.0
    params: dict[str, Any] = {"kernel": "poly", "gamma": 0.125, "coef0": 1.0, "degree": 2}
    plain = OnlineSVC(**params, random_state=0).fit(X, y)
    reference = plain.decision_function(X)
    for name, form in forms_of(X, tmp_path).items():
        model = OnlineSVC(**params, random_state=0).fit(form, y)
        assert_same_model(plain, model, f"learned from {name}")
        assert np.array_equal(model.decision_function(form), reference), f"asked with {name}"
        streamed = OnlineSVC(**params).partial_fit(form, y, classes=[0, 1])
        expected = OnlineSVC(**params).partial_fit(X, y, classes=[0, 1])
        assert_same_model(expected, streamed, f"partial_fit of {name}")


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.float16, np.float32, bool])
def test_every_type_of_number(dtype: type) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 5)).astype(dtype)
    y = (X[:, 0].astype(int) ^ X[:, 1].astype(int)).astype(int)
    plain = OnlineSVC(gamma=0.5, random_state=0).fit(X.astype(np.float64), y)
    model = OnlineSVC(gamma=0.5, random_state=0).fit(X, y)
    assert_same_model(plain, model, dtype.__name__)
    assert model.score(X, y) == 1.0


def test_data_frames_and_feature_names(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    frame = pd.DataFrame(X, columns=["height", "width"])
    labels = pd.Series(np.where(y, "big", "small"))
    model = OnlineSVC(gamma=1.0, random_state=0).fit(frame, labels)
    assert model.feature_names_in_.tolist() == ["height", "width"]
    assert set(model.predict(frame)) == {"big", "small"}
    model.partial_fit(frame, labels)
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    turned = frame[["width", "height"]]
    for call in (
        lambda: model.predict(turned),
        lambda: model.partial_fit(turned, labels),
        lambda: model.decision_function(frame.rename(columns={"width": "depth"})),
    ):
        with pytest.raises(ValueError, match="feature names"):
            call()
        assert_untouched(before, model, "after the wrong feature names")
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


def test_a_frame_of_mixed_numbers() -> None:
    frame = pd.DataFrame({"a": [0, 1, 0, 1], "b": [0.5, 0.25, 0.0, 1.0], "c": [True, False] * 2})
    model = OnlineSVC(kernel="linear").fit(frame, [0, 1, 0, 1])
    assert model.predict(frame).tolist() == [0, 1, 0, 1]


def test_read_only_memmaps_of_everything(tmp_path: Path, seed: int) -> None:
    X, y = rings(100, seed)
    names = {"X": X, "y": y, "w": np.ones(100), "ids": np.arange(100)}
    for name, array in names.items():
        np.save(tmp_path / f"{name}.npy", array)
    maps = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in names}
    model = OnlineSVC(gamma=1.0)
    model.partial_fit(
        maps["X"], maps["y"], classes=[0, 1], sample_weight=maps["w"], ids=maps["ids"]
    )
    model.learn_many(maps["X"], maps["y"])
    assert model.score(maps["X"], maps["y"]) > 0.8


def test_precomputed_in_pieces(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    plain = OnlineSVC(C=5.0, kernel="precomputed").partial_fit(K, y, classes=[0, 1])
    pieces = OnlineSVC(C=5.0, kernel="precomputed")
    for a, b in ((0, 30), (30, 31), (31, 120)):
        pieces.partial_fit(K[a:b], y[a:b], classes=[0, 1], ids=np.arange(a, b))
    assert plain.ids_.tolist() == pieces.ids_.tolist()
    assert np.array_equal(plain.dual_coef_, pieces.dual_coef_)
    one = OnlineSVC(C=5.0, kernel="precomputed").partial_fit(K[:1], y[:1], classes=[0, 1])
    for k in range(1, 120):
        one.learn_one(K[k], y[k])
    assert np.array_equal(plain.decision_function(K), one.decision_function(K))
    assert plain.support_vectors_.shape == (0, 0)


def test_a_callable_is_given_blocks(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        shapes.append((A.shape, B.shape))
        assert A.flags.c_contiguous
        assert A.dtype == np.float64
        A[...], B[...] = A.copy(), B.copy()  # they are the kernel's to write on
        return A @ B.T

    model = OnlineSVC(kernel=kernel, random_state=0).fit(X, y)
    shapes.clear()
    values = model.decision_function(X)
    assert max(a[0] for a, _ in shapes) == 120, "a block of rows, never pairs"
    np.testing.assert_allclose(
        values,
        X @ (model.support_vectors_.T @ model.dual_coef_[0]) + model.intercept_[0],
        atol=1e-4,
    )
    sparse = OnlineSVC(kernel=kernel, random_state=0).fit(sp.csr_array(X), y)
    assert_same_model(model, sparse, "CSR rows for a callable")


def test_a_callable_is_called_for_many_values_at_a_time() -> None:
    """A call costs as much as thousands of values; row by row, there would be 5,000 of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    y = np.digitize(X[:, 0] * X[:, 1] + rng.normal(scale=0.3, size=1200), [-0.4, 0.4])
    sizes: list[int] = []

    def laplacian(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        sizes.append(len(A) * len(B))
        return np.exp(-0.3 * np.abs(A[:, None] - B).sum(axis=2))

    OnlineSVC(C=10, kernel=laplacian, random_state=0).fit(X, y)
    assert len(sizes) < 1000
    assert np.mean(sizes) > 5000


# -- with the rest of scikit-learn ----------------------------------------------------------------


def test_grid_search(data: tuple[np.ndarray, np.ndarray]) -> None:
    grid = {"C": [0.01, 10.0], "gamma": [1e-4, 1.0], "finish_at_end": [True, False]}
    search = GridSearchCV(OnlineSVC(random_state=0), grid, cv=3).fit(*data)
    assert search.best_params_["gamma"] == 1.0
    assert search.best_score_ > 0.65
    assert isinstance(search.best_estimator_, OnlineSVC)


def test_pipeline_and_cross_validation(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    pipeline = make_pipeline(StandardScaler(), OnlineSVC(C=10.0, gamma=1.0, random_state=0))
    scores = cross_val_score(pipeline, X * [1.0, 1000.0], y, cv=4)
    assert scores.mean() > 0.65
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    pairwise = cross_val_score(OnlineSVC(C=10.0, kernel="precomputed", random_state=0), K, y, cv=4)
    assert pairwise.mean() > 0.65


def test_one_vs_one_and_parallel_folds(seed: int) -> None:
    X, y = blobs(150, seed)
    pairs = OneVsOneClassifier(OnlineSVC(gamma=0.5, random_state=0)).fit(X, y)
    assert pairs.score(X, y) > 0.7
    with joblib.parallel_backend("threading", n_jobs=2):
        scores = cross_val_score(OnlineSVC(gamma=0.5, random_state=0), X, y, cv=3, n_jobs=2)
    alone = cross_val_score(OnlineSVC(gamma=0.5, random_state=0), X, y, cv=3)
    assert np.array_equal(scores, alone), "models that learn in two threads disturb each other"


# -- terminal, signals, exit ----------------------------------------------------------------------


def script(body: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start a Python in which NumPy, OnlineSVC and a generator `rng` are at hand."""
    prelude = """
        import pickle, signal, sys, time
        import numpy as np
        from marginwise import OnlineSVC
        rng = np.random.default_rng(0)
    """
    code = textwrap.dedent(prelude) + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options},
    )


def run(body: str, *arguments: str) -> tuple[str, str]:
    with script(body, *arguments) as process:
        return process.communicate(timeout=120)


INTERRUPTED = """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    X = rng.normal(size=(3000, 20))
    y = (rng.random(3000) < 0.5).astype(int)
    model = OnlineSVC(C=1e4, gamma=0.01, n_jobs={n_jobs}, random_state=0)
    {start}
    before = pickle.dumps(model) if hasattr(model, "classes_") else None
    print("learning", flush=True)
    try:
        {call}
        print("never interrupted", flush=True)
    except KeyboardInterrupt:
        print("answered", flush=True)
        print(before == (pickle.dumps(model) if hasattr(model, "classes_") else None), flush=True)
        model.partial_fit(X[:10], y[:10], classes=[0, 1], ids=np.arange(10))
        model._engine.native.check(1e-3)
        print(bool(np.isfinite(model.decision_function(X[:50])).all()), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize(
    ("n_jobs", "start", "call"),
    [
        (1, "", "model.set_params(epochs=10**6, finish_at_end=False).fit(X, y)"),
        (2, "", "model.set_params(epochs=10**6, finish_at_end=False).fit(X, y)"),
        (
            1,
            "model.set_params(reprocess=0, tol=1e-9).partial_fit(X, y, classes=[0, 1])",
            "model.finish()",
        ),
    ],
    ids=["fit", "fit with two threads", "finish"],
)
def test_ctrl_c_is_answered_within_a_second(n_jobs: int, start: str, call: str) -> None:
    with script(INTERRUPTED.format(n_jobs=n_jobs, start=start, call=call)) as process:
        try:
            assert process.stdout.readline() == "learning\n", process.stderr.read()
            time.sleep(1.0)
            assert process.poll() is None, "it ended before it could be interrupted"
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            line = process.stdout.readline()
            took = time.monotonic() - sent
            rest, errors = process.stdout.read(), process.stderr.read()
        finally:
            process.kill()
    assert line == "answered\n", f"{line!r} {errors}"
    assert took < 1.0, f"Ctrl-C was answered after {took:.2f} s"
    assert rest.split() == ["True", "True"], f"the model is not usable any more: {rest} {errors}"


LEARN_ALOUD = """
    X = rng.normal(size=(3000, 5))
    y = (X[:, 0] > 0).astype(int)
    model = OnlineSVC(verbose=int(sys.argv[1]), random_state=0).fit(X, y)
    model.partial_fit(X, y).finish()
    print(len(model.ids_) > 0)
"""


@pytest.mark.slow
def test_lines_are_written_without_a_terminal() -> None:
    assert run(LEARN_ALOUD, "0") == ("True\n", "")
    printed, shown = run(LEARN_ALOUD, "1")
    assert printed == "True\n"
    fit, more, finish = shown.splitlines()
    for line in (fit, more):
        for part in ("marginwise: 3000 of 3000 rows", "rows/s", "members", "violation"):
            assert part in line, f"a line should show {part!r}: {shown!r}"
    assert finish.startswith("marginwise: all rows")


def on_a_terminal(verbose: str) -> str:
    """What a script writes to stderr where that is a pseudo-terminal."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 120))
    with script(LEARN_ALOUD, verbose, stderr=slave) as process:
        os.close(slave)
        seen = b""
        try:
            while part := os.read(master, 65536):
                seen += part
        except OSError:  # the other end was closed
            pass
        out, _ = process.communicate(timeout=120)
    os.close(master)
    assert out == "True\n"
    return seen.decode()


@pytest.mark.slow
def test_a_progress_bar_is_shown_on_a_terminal() -> None:
    shown = on_a_terminal("1")
    for part in ("100%", "example", "members", "δ"):
        assert part in shown, f"the bar should show {part!r}: {shown!r}"


@pytest.mark.slow
def test_no_progress_bar_unless_asked_for() -> None:
    assert on_a_terminal("0") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", ["'rbf'", "lambda A, B: A @ B.T", "'precomputed'"], ids=["rbf", "callable", "matrix"]
)
def test_a_script_ends_in_silence(kernel: str) -> None:
    """A model that lives until the interpreter ends leaves no complaint about leaks."""
    body = f"""
        X = rng.normal(size=(30, 30))
        X = X @ X.T
        model = OnlineSVC(kernel={kernel}).fit(X, np.arange(30) % 2)
        print("done")
    """
    assert run(body) == ("done\n", "")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_model_survives_a_fork() -> None:
    """No thread outlives a call, so worker processes may be forked at any time."""
    body = """
        import os
        X = rng.normal(size=(600, 5))
        y = (X[:, 0] > 0).astype(int)
        model = OnlineSVC(n_jobs=2, random_state=0).fit(X, y)
        child = os.fork()
        if child == 0:
            model.partial_fit(X, y)
            os._exit(0 if np.isfinite(model.decision_function(X)).all() else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(body) == ("0\n", "")


@pytest.mark.parametrize("kind", [ExactSVC, ExactOneClassSVM, KernelPerceptron], ids=str)
def test_only_parameters_of_its_own_are_attributes(kind: Any) -> None:
    """Whether an estimator selects or finishes can be seen from its attributes."""
    for name in ("selection", "pool_size", "finish_at_end", "finish_every", "tol"):
        assert hasattr(kind(), name) == (name in kind().get_params())
