"""Models that cannot be exported are refused by name, and files are written whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

import marginwise.exchange.c_source as c_source
import marginwise.exchange.onnx_model as onnx_model
from marginwise import CompressedSVC, ExactOneClassSVM, ExactSVC, OnlineSVC
from marginwise.data import TableEncoder
from marginwise.exchange import register_converters, to_c, to_json, to_onnx
from marginwise.exchange import snapshot as taken
from tests.support import assert_untouched, rings

X, Y = rings(80, 0)
EXPORTS = {"onnx": to_onnx, "c": to_c, "json": to_json}
each_export = pytest.mark.parametrize("name", EXPORTS)


@pytest.fixture(autouse=True)
def needs_onnx(request: pytest.FixtureRequest) -> None:
    if "onnx" in request.node.name:
        pytest.importorskip("onnx", reason="the export needs onnx")


def own_kernel(A: Any, B: Any) -> Any:
    return np.asarray(A @ B.T)


@each_export
def test_models_that_are_not_fitted(name: str) -> None:
    for model in (OnlineSVC(), ExactOneClassSVM(), CompressedSVC()):
        with pytest.raises(NotFittedError):
            EXPORTS[name](model)
    with pytest.raises(NotFittedError):
        EXPORTS[name](make_pipeline(StandardScaler(), OnlineSVC()))


@each_export
def test_kernels_that_others_do_not_have(name: str) -> None:
    with pytest.raises(ValueError, match="kernel is the Python function 'own_kernel'"):
        EXPORTS[name](OnlineSVC(kernel=own_kernel).fit(X, Y))
    with pytest.raises(ValueError, match=r"kernel='precomputed' it stores no.*linear, rbf"):
        EXPORTS[name](ExactSVC(kernel="precomputed").fit(X @ X.T, Y))


@each_export
def test_other_models(name: str) -> None:
    with pytest.raises(ValueError, match="a SVC cannot be exported; expected a fitted estimator"):
        EXPORTS[name](SVC().fit(X, Y))
    with pytest.raises(ValueError, match="NoneType cannot be exported"):
        EXPORTS[name](None)


@each_export
def test_streams_of_one_class_so_far(name: str) -> None:
    model = OnlineSVC(gamma=1.0).partial_fit(X[:3], ["a"] * 3)
    with pytest.raises(ValueError, match="the one class 'a'; an export needs two classes"):
        EXPORTS[name](model)


@each_export
def test_paths_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)
    with pytest.raises(FileNotFoundError, match="No such directory"):
        EXPORTS[name](model, tmp_path / "missing" / "model")
    with pytest.raises(OSError, match="directory"):
        EXPORTS[name](model, tmp_path)
    kept = tmp_path / "kept"
    kept.write_text("before")
    with pytest.raises(ValueError, match="cannot be exported"):
        EXPORTS[name](SVC().fit(X, Y), kept)
    assert kept.read_text() == "before"
    EXPORTS[name](model, str(kept))
    assert kept.read_bytes() != b"before"
    assert list(tmp_path.iterdir()) == [kept]


@each_export
def test_exports_leave_the_model_as_it_is(name: str) -> None:
    model = OnlineSVC(gamma=1.0, calibration="sigmoid", random_state=0).fit(X, Y)
    before = model.__getstate__()
    if name == "c":
        model = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)
        before = model.__getstate__()
    EXPORTS[name](model)
    assert_untouched(before, model, name)


def test_arguments_are_checked() -> None:
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="dtype must be one of 'float32', 'float64', got 'float'"):
        to_onnx(model, dtype="float")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="integers must be None or True or False, got 'yes'"):
        to_onnx(model, integers="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dtype must be one of 'float', 'double', got 'float32'"):
        to_c(model, dtype="float32")  # type: ignore[arg-type]
    for name in ("two words", "1st", "", "while", "ä", 3):
        with pytest.raises(ValueError, match="name must be a name of C"):
            to_c(model, name=name)  # type: ignore[arg-type]


# -- libraries that are missing ------------------------------------------------------------------


def test_onnx_is_asked_for_by_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"needs the package onnx.*\[onnx\]"):
        to_onnx(model)


def test_skl2onnx_is_asked_for_by_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = make_pipeline(StandardScaler(), OnlineSVC(gamma=1.0)).fit(X, Y)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    for call in (register_converters, lambda: to_onnx(pipeline)):
        with pytest.raises(ImportError, match=r"needs the package skl2onnx.*\[onnx\]"):
            call()


def test_c_and_json_need_no_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnx", "skl2onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None)
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)
    assert "model_predict" in to_c(model)
    assert "support_vectors" in to_json(model)


# -- what is too large, and what cannot be folded ------------------------------------------------


def test_sources_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)
    monkeypatch.setattr(c_source, "MOST_BYTES", 1 << 8)
    with pytest.raises(ValueError, match=r"would take about .* MB.*force=True"):
        to_c(model)
    assert "model_predict" in to_c(model, force=True)


def test_onnx_files_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)
    monkeypatch.setattr(onnx_model, "MOST_BYTES", 1 << 8)
    with pytest.raises(ValueError, match="files of at most 2 GB are supported"):
        to_onnx(model)


@each_export
def test_sparse_models_of_many_features(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sp.csr_array((np.ones(80), (np.arange(80), np.arange(80))), shape=(80, 5000))
    monkeypatch.setattr(taken, "MOST_VALUES", 1000)
    with pytest.raises(ValueError, match=r"support vectors of 5,000 features, too many to write"):
        EXPORTS[name](OnlineSVC(gamma=1.0, random_state=0).fit(rows, Y))
    linear = OnlineSVC(kernel="linear", random_state=0).fit(rows, Y)
    EXPORTS[name](linear)  # which has one weight per feature


@pytest.mark.parametrize("name", ["c", "json"])
def test_steps_that_are_not_scalers(name: str) -> None:
    other = make_pipeline(PolynomialFeatures(2), OnlineSVC(gamma=1.0)).fit(X, Y)
    with pytest.raises(ValueError, match="the step PolynomialFeatures, which cannot be folded"):
        EXPORTS[name](other)
    pytest.importorskip("pyarrow", reason="tables are read with pyarrow")
    table = {"age": [20.0, 30.0, 40.0, 50.0], "job": ["a", "b", "a", "b"]}
    jobs = make_pipeline(TableEncoder(), OnlineSVC(gamma=1.0)).fit(table, [0, 1, 1, 0])
    with pytest.raises(ValueError, match=r"the column 'job' of the TableEncoder is categorical"):
        EXPORTS[name](jobs)
    clipped = make_pipeline(MinMaxScaler(clip=True), OnlineSVC(gamma=1.0)).fit(X, Y)
    with pytest.raises(ValueError, match=r"MinMaxScaler\(clip=True\) cannot be folded"):
        EXPORTS[name](clipped)


def test_c_source_has_no_probabilities() -> None:
    model = OnlineSVC(gamma=1.0, calibration="sigmoid", random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"most probable class.*set_params\(calibration=None\)"):
        to_c(model)
    assert "model_predict" in to_c(model.set_params(calibration=None))


def test_numbers_beyond_floats() -> None:
    for size in (1e41, 1e-41):
        model = make_pipeline(StandardScaler(), OnlineSVC(random_state=0)).fit((X + 3) * size, Y)
        with pytest.raises(ValueError, match="does not fit into a float of C"):
            to_c(model)
        assert "model_predict" in to_c(model, dtype="double")


def test_labels_that_json_does_not_have() -> None:
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)
    model.classes_ = np.array([b"a", b"b"], dtype=object)
    with pytest.raises(ValueError, match="cannot be written as JSON; expected numbers or strings"):
        to_json(model)


@pytest.mark.parametrize("label", [2**63, 2**64 - 1])
def test_labels_beyond_integers_of_c_and_onnx(label: Any) -> None:
    X, y = rings(40, 0)
    labels = np.where(y == 1, np.array(label), np.array(5, dtype=np.array(label).dtype))
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, labels)
    for name in ("c", "onnx"):
        with pytest.raises(ValueError, match="is beyond 64-bit integers"):
            EXPORTS[name](model)


def test_the_smallest_label_of_c() -> None:
    X, y = rings(40, 0)
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, np.where(y == 1, 3, -(2**63)))
    assert "{(-9223372036854775807LL - 1), 3LL}" in to_c(model)
