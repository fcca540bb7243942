"""A model that was stored and read back is the same model, and goes on in the same way.

Every way to store a model, for every kind of model: predictions are equal bit for bit, and
learning on after reading back equals never having stopped.
"""

import copy
import io
import json
import os
import pickle
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons

from marginwise import OnlineSVC, load, save
from marginwise._files import format as file_format
from marginwise._files.format import FORMAT
from marginwise._files.values import decode, encode, read_npy, write_npy

GOLDEN = Path(__file__).parents[1] / "golden" / "models"


# -- models ------------------------------------------------------------------------------------


@dataclass
class Stream:
    """Rows in two halves; the model is stored between them."""

    X: Any
    y: Any
    params: dict[str, Any]
    weights: Any = None

    def half(self, k: int) -> dict[str, Any]:
        n = len(self.y) // 2
        part = slice(0, n) if k == 0 else slice(n, 2 * n)
        rows = self.X.iloc[part] if hasattr(self.X, "iloc") else self.X[part]
        weights = None if self.weights is None else self.weights[part]
        return {"X": rows, "y": self.y[part], "sample_weight": weights}

    def begun(self) -> OnlineSVC:
        return OnlineSVC(**self.params).partial_fit(**self.half(0), classes=np.unique(self.y))


def moons(**params: Any) -> Stream:
    X, y = make_moons(400, noise=0.3, random_state=0)
    return Stream(X, y, {"C": 10, "gamma": 2.0, "random_state": 0, **params})


def blobs(**params: Any) -> Stream:
    X, y = make_blobs(400, n_features=3, centers=4, cluster_std=3.0, random_state=1)
    return Stream(X, y, {"C": 5, "random_state": 1, **params})


def with_strings() -> Stream:
    stream = blobs()
    stream.y = np.array(["bee", "ant", "wasp", "fly"])[stream.y]
    return stream


def with_objects() -> Stream:
    stream = blobs(class_weight={"ä b": 2.0, "": 0.5, "c": 1, "d": np.float32(3)})
    stream.y = np.array(["ä b", "", "c", "d"], dtype=object)[stream.y]
    return stream


def with_frame() -> Stream:
    stream = moons()
    stream.X = pd.DataFrame(stream.X, columns=["height", "größe"])
    stream.y = np.where(stream.y, "yes", "no")
    return stream


def with_bools() -> Stream:
    stream = moons()
    stream.y = stream.y.astype(bool)
    return stream


def with_lists(columns: int, density: float) -> Stream:
    rng = np.random.RandomState(2)
    X = sp.random(400, columns, density=density, format="csr", random_state=rng)
    y = (X @ rng.randn(columns) + 0.05 * rng.randn(400) > 0).astype(int)
    return Stream(X, y, {"kernel": "linear", "C": 10, "random_state": 0})


def with_weights() -> Stream:
    stream = blobs(class_weight={0: 1.0, 1: 2.0, 2: 0.5, 3: 4.0})
    stream.weights = np.random.RandomState(3).uniform(0.1, 3.0, size=len(stream.y))
    return stream


def with_single_precision() -> Stream:
    stream = moons()
    stream.X = stream.X.astype(np.float32)
    return stream


def with_a_matrix() -> Stream:
    stream = moons(kernel="precomputed")
    stream.X = np.exp(-2.0 * ((stream.X[:, None] - stream.X) ** 2).sum(axis=2))
    return stream


STREAMS = {
    "binary": moons,
    "several classes": blobs,
    "strings": with_strings,
    "objects and weights of classes": with_objects,
    "data frame": with_frame,
    "bools": with_bools,
    "many columns": lambda: with_lists(3000, 0.01),
    "few columns": lambda: with_lists(10, 0.5),
    "float32": with_single_precision,
    "double precision": lambda: Stream(
        moons().X + 1e4, moons().y, {"kernel": "linear", "C": 0.1, "random_state": 0}
    ),
    "precomputed": with_a_matrix,
    "weights": with_weights,
    "finishing now and then": lambda: moons(finish_every=90),
    "by gap": lambda: blobs(reprocess="gap", reprocess_when="each", kernel="poly", degree=2),
    "until delta": lambda: moons(delta_max=0.5, kernel="sigmoid", gamma=0.1),
    "tanimoto": lambda: Stream(np.abs(blobs().X), blobs().y, {"kernel": "tanimoto"}),
    "cosine": lambda: blobs(kernel="cosine"),
}


@pytest.fixture(params=STREAMS)
def stream(request: pytest.FixtureRequest) -> Stream:
    return STREAMS[request.param]()


# -- ways to store -----------------------------------------------------------------------------


def by_file(model: OnlineSVC, folder: Path) -> OnlineSVC:
    save(model, folder / "m.mwz")
    return load(folder / "m.mwz")


def by_pickle(model: OnlineSVC, folder: Path) -> OnlineSVC:
    return pickle.loads(pickle.dumps(model))


def by_joblib(model: OnlineSVC, folder: Path) -> OnlineSVC:
    joblib.dump(model, folder / "m.joblib")
    return joblib.load(folder / "m.joblib")


def by_skops(model: OnlineSVC, folder: Path) -> OnlineSVC:
    data = skops.io.dumps(model)
    trusted = skops.io.get_untrusted_types(data=data)
    assert set(trusted) <= {"marginwise.online.OnlineSVC"}
    return skops.io.loads(data, trusted=trusted)


def by_deepcopy(model: OnlineSVC, folder: Path) -> OnlineSVC:
    return copy.deepcopy(model)


WAYS = [by_file, by_pickle, by_joblib, by_skops, by_deepcopy]


@pytest.mark.slow
@pytest.mark.parametrize("stored", WAYS)
def test_predicts_the_same(stream: Stream, stored: Any, tmp_path: Path) -> None:
    model = stream.begun()
    again = stored(model, tmp_path)
    given = stream.half(1)["X"]
    np.testing.assert_array_equal(again.decision_function(given), model.decision_function(given))
    np.testing.assert_array_equal(again.predict(given), model.predict(given))
    assert again.predict(given).dtype == model.predict(given).dtype


@pytest.mark.slow
@pytest.mark.parametrize("stored", WAYS)
def test_goes_on_as_if_never_stopped(stream: Stream, stored: Any, tmp_path: Path) -> None:
    if stored is by_skops and stream.y.dtype == bool:
        pytest.skip("skops reads all bools that are keys of a dict as True")
    model = stream.begun()
    again = stored(model, tmp_path)
    for one in (model, again):
        one.partial_fit(**stream.half(1))
        one._engine.native.check(1e-3)
    assert_same_state(again, model)
    assert_same_state(again.finish(), model.finish())
    given = stream.half(0)["X"]
    np.testing.assert_array_equal(again.decision_function(given), model.decision_function(given))


def assert_same_state(a: OnlineSVC, b: OnlineSVC) -> None:
    """Compare all but what depends on time and on what is in the cache."""
    first, second = a.__getstate__(), b.__getstate__()
    one, two = first.pop("_machine"), second.pop("_machine")
    assert one.keys() == two.keys()
    for name in set(one) - {"plan", "rank", "counters"}:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    np.testing.assert_array_equal(one["rank"] >= 0, two["rank"] >= 0)
    np.testing.assert_array_equal(
        np.argsort(one["rank"], kind="stable"), np.argsort(two["rank"], kind="stable")
    )
    np.testing.assert_array_equal(one["counters"][1:5], two["counters"][1:5])
    assert one["plan"] == two["plan"]
    np.testing.assert_equal(plain(first), plain(second))


def plain(state: dict[str, Any]) -> dict[str, Any]:
    random = state["random_state"]
    if isinstance(random, np.random.RandomState):
        return {**state, "random_state": random.get_state(legacy=False)}
    return state


@pytest.mark.parametrize("stored", WAYS)
def test_examples_that_left_and_came_back(stored: Any, tmp_path: Path) -> None:
    """An example may be a member twice: held, and dropped before but not yet compacted away."""
    rng = np.random.RandomState(36)
    X = rng.randn(400, 2)
    y = (X[:, 0] + 0.5 * rng.randn(400) > 0).astype(int)
    model = OnlineSVC(C=100, gamma=0.5, reprocess=3).partial_fit(X, y, classes=[0, 1])
    for _ in range(20):
        order = rng.permutation(400)
        model.partial_fit(X[order], y[order], ids=order)
        ids = model.__getstate__()["_machine"]["ids"]
        twice = [k for k in model.ids_ if np.count_nonzero(ids == k) > 1]
        if twice:
            break
    assert twice
    again = stored(model, tmp_path)
    again._engine.native.check(1e-3)
    for one in (model, again):
        one.partial_fit(X, y, ids=np.arange(400))
    assert_same_state(again.finish(), model.finish())


# -- model files -------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", WAYS)
def test_random_state_goes_on(stored: Any, tmp_path: Path) -> None:
    random = np.random.RandomState(5)
    random.standard_normal(3)  # an odd number: the fourth is already drawn
    X, y = moons().X, moons().y
    model = OnlineSVC(random_state=random).fit(X, y)
    again = stored(model, tmp_path)
    assert again.random_state is not random
    assert_same_state(again.fit(X, y), model.fit(X, y))
    assert again.random_state.standard_normal() == random.standard_normal()


@pytest.mark.parametrize("random_state", [None, 7, np.int64(7), np.random.RandomState(7)])
def test_parameters_come_back(random_state: Any, tmp_path: Path) -> None:
    weights = {0: 1.5, np.int64(1): np.float64(2), 2: 3}
    params = {"C": np.float32(0.1), "class_weight": weights, "random_state": random_state}
    model = OnlineSVC(**params, verbose=True, cache_size=10, n_jobs=-1, delta_max=0.25)
    again = by_file(model, tmp_path)
    assert not hasattr(again, "classes_")
    assert plain(again.get_params()).keys() == model.get_params().keys()
    np.testing.assert_equal(plain(again.get_params()), plain(model.get_params()))
    for name, value in model.get_params().items():
        assert type(getattr(again, name)) is type(getattr(model, name))
        if isinstance(value, dict):
            returned = getattr(again, name)
            assert [*map(type, returned)] == [*map(type, value)]
            assert [*map(type, returned.values())] == [*map(type, value.values())]


@pytest.mark.parametrize("stored", [by_file, by_pickle])
def test_clone_of_a_stored_model_is_unfitted_and_equal(stored: Any, tmp_path: Path) -> None:
    again = clone(stored(blobs().begun(), tmp_path))
    assert again.get_params() == OnlineSVC(**blobs().params).get_params()
    assert not hasattr(again, "classes_")


def test_feature_names_come_back(tmp_path: Path) -> None:
    stream = with_frame()
    again = by_file(stream.begun(), tmp_path)
    assert again.feature_names_in_.tolist() == ["height", "größe"]
    assert again.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(stream.X.rename(columns={"height": "width"}))


def test_files_of_one_model_are_equal_bytes(tmp_path: Path) -> None:
    model = blobs().begun()
    save(model, tmp_path / "a.mwz")
    save(model, tmp_path / "b.mwz")
    assert (tmp_path / "a.mwz").read_bytes() == (tmp_path / "b.mwz").read_bytes()


def test_paths_may_be_strings(tmp_path: Path) -> None:
    model = moons().begun()
    save(model, str(tmp_path / "m.mwz"))
    assert_same_state(load(str(tmp_path / "m.mwz")), model)


def test_members_are_plain_numpy_files(tmp_path: Path) -> None:
    model = moons().begun()
    save(model, tmp_path / "m.mwz")
    with zipfile.ZipFile(tmp_path / "m.mwz") as archive:
        document = json.loads(archive.read("model.json"))
        alpha = np.load(io.BytesIO(archive.read("_machine.alpha.npy")), allow_pickle=False)
    assert (document["format"], document["class"]) == (FORMAT, "OnlineSVC")
    np.testing.assert_array_equal(alpha, model.__getstate__()["_machine"]["alpha"])


def test_files_beyond_the_old_limit_of_zip(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 2000)
    model = moons().begun()
    again = by_file(model, tmp_path)
    assert b"PK\x06\x07" in (tmp_path / "m.mwz").read_bytes()[-42:]
    assert_same_state(again, model)


# -- saving that fails -------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "m.mwz"
    save(moons().begun(), path)
    before = path.read_bytes()

    def full(members: Any, handle: Any) -> None:
        handle.write(b"half a file")
        raise OSError("no space left on device")

    monkeypatch.setattr(file_format, "write_members", full)
    with pytest.raises(OSError, match="no space left"):
        save(blobs().begun(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.mwz"]


def test_save_to_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        save(moons().begun(), tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        save(moons().begun(), tmp_path / "none" / "m.mwz")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.skipif(os.name == "nt", reason="no such permissions, and links need rights")
def test_save_keeps_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "m.mwz", tmp_path / "latest.mwz"
    save(moons().begun(), path)
    path.chmod(0o640)
    link.symlink_to(path)
    save(blobs().begun(), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert len(load(path).classes_) == 4


def test_a_python_kernel_cannot_be_saved(tmp_path: Path) -> None:
    model = OnlineSVC(kernel=lambda A, B: A @ B.T)
    with pytest.raises(ValueError, match="its kernel is a Python function"):
        save(model, tmp_path / "m.mwz")
    model.fit(moons().X, moons().y)
    with pytest.raises(ValueError, match="its kernel is a Python function"):
        save(model, tmp_path / "m.mwz")
    assert os.listdir(tmp_path) == []


class Child(OnlineSVC):
    pass


def marked() -> OnlineSVC:
    model = moons().begun()
    model.note = "mine"
    return model


def changed_kernel() -> OnlineSVC:
    return moons().begun().set_params(kernel="precomputed")


UNSAVABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "not an estimator": (object, "a object cannot be saved"),
    "subclass": (Child, "a Child cannot be saved"),
    "attribute of the user's": (marked, "does not know 'note'"),
    "kernel changed": (changed_kernel, "features must fit"),
    "strange attribute": (lambda: OnlineSVC(class_weight={0: object()}), "weight.0 is a object"),
    "strange key": (lambda: OnlineSVC(class_weight={(0, 1): 1.0}), "has a tuple for a key"),
    "strange array": (lambda: OnlineSVC(C=np.zeros(2, complex)), "C is an array of complex128"),
    "strange scalar": (lambda: OnlineSVC(C=np.complex128(1)), "C is a complex128"),
    "deep array": (lambda: OnlineSVC(C=np.zeros((1, 1, 1))), "C is an array of 3 dimensions"),
    "objects": (lambda: OnlineSVC(C=np.array([None])), "C holds a NoneType"),
    "infinite": (lambda: OnlineSVC(tol=float("inf")), "tol must be a number above 0, not inf"),
    "large": (lambda: OnlineSVC(random_state=2**70), "random_state must be"),
    "other generator": (
        lambda: OnlineSVC(random_state=np.random.RandomState(np.random.PCG64(0))),
        "random_state draws from PCG64",
    ),
    "wrong parameter": (lambda: OnlineSVC(C=-1.0), "C must be a number above 0"),
    "long parameter": (lambda: OnlineSVC(class_weight={"x" * 2**20: 1.0}), "parameters take"),
}


@pytest.mark.parametrize("case", UNSAVABLE)
def test_what_cannot_be_saved_says_why(case: str, tmp_path: Path) -> None:
    made, message = UNSAVABLE[case]
    with pytest.raises(ValueError, match=message):
        save(made(), tmp_path / "m.mwz")
    assert os.listdir(tmp_path) == []


# -- values ------------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.integers(0, 255).map(np.uint8),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(np.float32),
    st.booleans().map(np.bool_),
    st.text().map(np.str_),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(scalars, inner, max_size=4),
    ),
    max_leaves=12,
)


@settings(max_examples=100)
@given(values)
def test_values_come_back_with_their_types(value: Any) -> None:
    arrays: dict[str, Any] = {}
    text = json.dumps(encode(value, "value", arrays), allow_nan=False)
    again = decode(json.loads(text), arrays)
    assert repr(again) == repr(value)
    assert not arrays


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3).T,
        np.array([True, False]),
        np.array(["", "ab", "\U0001f41d"]),
        np.zeros((0, 3), dtype=np.float32),
        np.array([], dtype="<U3"),
        np.array([np.nan, -0.0, np.inf]),
        np.arange(8)[::2],
    ],
)
def test_arrays_come_back(array: Any) -> None:
    data = b"".join(write_npy(array))
    again = read_npy(memoryview(data))
    np.testing.assert_array_equal(again, array)
    np.testing.assert_array_equal(np.load(io.BytesIO(data), allow_pickle=False), array)
    assert again.dtype == array.dtype.newbyteorder("=")
    assert again.flags.writeable
    assert again.flags.c_contiguous


# -- old files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("expected", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_files_of_older_versions_load(expected: Path) -> None:
    golden = json.loads(expected.read_text(encoding="utf-8"))
    model = load(expected.with_suffix(".mwz"))
    rows = np.array(golden["rows"])
    if "columns" in golden:
        rows = pd.DataFrame(golden["rows"], columns=golden["columns"], dtype=object)
        rows = rows.astype({"age": float, "height": float, "code": int})
    decision = model.decision_function(rows)
    np.testing.assert_allclose(decision, golden["decision"], rtol=0, atol=1e-6)
    assert model.predict(rows).tolist() == golden["predicted"]
    assert hasattr(model, "predict_proba") == ("probabilities" in golden)
    if "probabilities" in golden:
        p = model.predict_proba(rows)
        np.testing.assert_allclose(p, golden["probabilities"], rtol=0, atol=1e-6)


def test_there_are_old_files() -> None:
    """A file of each format that an estimator ever had."""
    estimators = ["online", "gap", "tracking", "exact_ramp", "perceptron", "exact", "one_class"]
    expected = {"online-v1", "calibrated-v4", "compressed-v4"} | {
        f"{name}-v{k}" for name in estimators for k in (2, 3)
    }
    expected |= {
        f"{name}_sklearn_{version}-v5"
        for name in ("numbers", "texts", "columns")
        for version in ("1_6", "1_9")
    }
    for suffix in (".mwz", ".json"):
        assert expected <= {path.stem for path in GOLDEN.glob(f"*{suffix}")}
