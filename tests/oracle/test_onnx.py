"""ONNX models compute what the models that they were made from do, run by onnxruntime."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from marginwise import (
    ExactOneClassSVM,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    OnlineSVCCV,
    TrackingSVC,
)
from marginwise.exchange import to_onnx
from tests.exchange_support import assert_agree
from tests.support import blobs, kernel_values, rings, sparse_rows

ort = pytest.importorskip("onnxruntime", reason="onnxruntime runs the models")

KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto")
DTYPES = ("float32", "float64")


def run(model: Any, X: Any, **options: Any) -> dict[str, np.ndarray]:
    """Convert a model, and return the outputs for some rows."""
    dtype = options.get("dtype", "float32")
    return run_proto(to_onnx(model, **options), np.asarray(X, dtype=dtype))


def run_proto(proto: Any, X: Any) -> dict[str, np.ndarray]:
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    content = proto.SerializeToString()
    session = ort.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    fed = X if isinstance(X, dict) else {session.get_inputs()[0].name: X}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, fed), strict=True))


def assert_same(model: Any, X: Any, **options: Any) -> None:
    """The outputs are those of the model: labels, values, probabilities."""
    found = run(model, X, **options)
    dtype = options.get("dtype", "float32")
    rows = np.asarray(X, dtype=dtype)
    decision = model.decision_function(rows)
    assert found["decision"].dtype == dtype
    assert found["decision"].shape == decision.shape
    assert_agree(model, rows, found["label"], found["decision"])
    has_probabilities = getattr(model, "calibration", None) is not None
    assert ("probabilities" in found) == has_probabilities
    if has_probabilities:
        expected = model.predict_proba(rows)
        assert np.abs(found["probabilities"] - expected).max() < 1e-3


def positive_blobs(n: int, seed: int, classes: int = 3, d: int = 6) -> tuple[Any, Any]:
    """Rows that every kernel separates, none of which is near the boundary by chance."""
    X, y = blobs(n, seed, classes, d)
    return np.abs(X + 4.0) / 4, y


# -- kernels, classes and types ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel(kernel: str, classes: int, dtype: str, seed: int) -> None:
    X, y = positive_blobs(300, seed, classes)
    model = OnlineSVC(
        kernel=kernel, C=0.5, gamma=0.4, coef0=0.3, degree=3, random_state=0, multiclass="ovr"
    )
    model.fit(X[:200], y[:200])
    assert_same(model, X[200:], dtype=dtype)


@pytest.mark.parametrize("kernel", KERNELS)
def test_double_precision_is_that_of_the_formula(kernel: str, seed: int) -> None:
    X, y = positive_blobs(300, seed, 2)
    model = ExactSVC(kernel=kernel, C=2.0, gamma=0.1, coef0=0.3, degree=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the sigmoid is not definite
        model.fit(X[:200], y[:200])
    K = kernel_values(kernel, X[200:], model.support_vectors_, 0.1, 0.3, 2)
    f = K @ model.dual_coef_[0] + model.intercept_[0]
    if kernel == "linear":
        f = X[200:] @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(run(model, X[200:], dtype="float64")["decision"], f, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_degrees_of_the_polynomial(degree: int, seed: int) -> None:
    X, y = blobs(300, seed, classes=2)
    model = OnlineSVC(kernel="poly", degree=degree, gamma=0.3, coef0=1.0, random_state=0)
    assert_same(model.fit(X[:200], y[:200]), X[200:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "tanimoto"])
def test_votes_of_pairs(kernel: str, dtype: str, seed: int) -> None:
    X, y = positive_blobs(400, seed, classes=5)
    model = OnlineSVC(kernel=kernel, gamma=0.2, multiclass="ovo", random_state=0)
    assert_same(model.fit(X[:300], y[:300]), X[300:], dtype=dtype)


def test_ties_of_votes_go_to_the_first_class() -> None:
    """All decision values are 0 at the origin of three linear pairs that are symmetric."""
    X = np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])
    model = OnlineSVC(kernel="linear", multiclass="ovo", random_state=0).fit(X, [3, 5, 7])
    found = run(model, np.zeros((1, 2)), dtype="float64")
    decision = model.decision_function(np.zeros((1, 2)))
    assert found["label"].tolist() == model.predict(np.zeros((1, 2))).tolist()
    assert np.allclose(found["decision"], decision)


@pytest.mark.parametrize(
    "model",
    [
        ExactSVC(C=2.0, gamma=0.5),
        GapSVC(C=2.0, gamma=0.5, random_state=0),
        TrackingSVC(C=2.0, gamma=0.5, random_state=0),
        KernelPerceptron(gamma=0.5, average=True, random_state=0),
        OnlineSVCCV(Cs=[1.0], gammas=[0.5], cv=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_classifier(model: Any, seed: int) -> None:
    X, y = blobs(300, seed)
    assert_same(model.fit(X[:200], y[:200]), X[200:])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_compressed_models(kernel: str, seed: int) -> None:
    X, y = blobs(400, seed)
    model = OnlineSVC(kernel=kernel, gamma=0.5, coef0=1.0, random_state=0).fit(X[:300], y[:300])
    assert_same(model.compress(X[:300], y[:300], max_vectors=15), X[300:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_spheres(kernel: str, dtype: str, seed: int) -> None:
    X = np.abs(np.random.default_rng(seed).normal(size=(250, 3)) + 2).astype(np.float32)
    model = ExactOneClassSVM(kernel=kernel, nu=0.2, gamma=0.3, coef0=0.1, degree=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the sigmoid is not definite
        model.fit(X[:150])
    assert_same(model, X, dtype=dtype)  # with rows that are on the sphere


def test_labels_of_every_type(seed: int) -> None:
    X, y = blobs(200, seed)
    for names in (
        np.array(["ä", "b", "c"]),
        np.array(["x", "yy", "z"], dtype=object),
        np.array([-3, 0, 2**40]),
        np.array([1.0, 2.0, -7.0]),
    ):
        model = OnlineSVC(gamma=0.5, random_state=0).fit(X, names[y])
        assert run(model, X)["label"].tolist() == model.predict(X).tolist()
    model = OnlineSVC(gamma=0.5, random_state=0).fit(X, y == 0)
    assert run(model, X)["label"].tolist() == model.predict(X).tolist()


def test_sparse_and_centred_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = sparse_rows(300, 60, 0.03, rng)
    y = np.asarray(X.sum(axis=1)).ravel() > 0.9
    for kernel in ("rbf", "linear", "tanimoto", "cosine"):  # with rows of zeros among them
        model = OnlineSVC(kernel=kernel, gamma=1.0, random_state=0).fit(sp.csr_array(X), y)
        assert_same(model, X.toarray())
    dense = rng.normal(size=(200, 4)) + np.array([5, 0, -3, 2])
    for kernel in ("linear", "poly"):
        model = KernelPerceptron(kernel=kernel, center=True, coef0=1.0, random_state=0)
        assert_same(model.fit(dense, dense[:, 0] > 5), dense)


@pytest.mark.parametrize("kernel", KERNELS)
def test_models_without_support_vectors_have_their_intercept(kernel: str) -> None:
    X, _ = blobs(20, 0)
    model = OnlineSVC(kernel=kernel, gamma=1.0)
    model.partial_fit(X[:1], [0], classes=[0, 1, 2])
    assert len(model.support_) == 0, "the case would not be one"
    found = run(model, X)
    assert np.allclose(found["decision"], model.decision_function(X))
    assert found["label"].tolist() == model.predict(X).tolist()


# -- precision -----------------------------------------------------------------------------------


def test_offsets_and_scales_do_not_cost_digits(seed: int) -> None:
    """Features with a large offset, for which plain float32 norms would lose everything."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    moved = (1000.0 + X).astype(np.float32)
    model = OnlineSVC(C=5.0, gamma=0.2, random_state=0).fit(moved[:200], y[:200])
    assert_same(model, moved[200:])


def test_narrow_kernels_are_computed_in_double(seed: int) -> None:
    X, y = rings(300, seed)
    X = X.astype(np.float32)
    model = OnlineSVC(C=5.0, gamma=2000.0, random_state=0).fit(X[:200], y[:200])
    near = X[:200] + np.float32(1e-3)
    assert_same(model, near)


# -- integers ------------------------------------------------------------------------------------


def pictures(n: int, seed: int, offset: float, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 8-bit levels, of which some columns are empty, and a label that depends on them."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 256, size=(n, 400)) * (rng.random((n, 400)) < 0.3)
    levels[:, ::10] = 0
    y = levels[:, :80].sum(axis=1) > levels[:, 320:].sum(axis=1)
    return (offset + unit * levels).astype(np.float32), y.astype(int)


@pytest.mark.slow
@pytest.mark.parametrize(("offset", "unit"), [(0.0, 1 / 255), (-1.0, 2 / 255), (0.0, 1.0)])
def test_pictures_are_multiplied_as_integers(offset: float, unit: float, seed: int) -> None:
    X, y = pictures(2400, seed, offset, unit)
    gamma = 0.02 / (255 * unit) ** 2
    model = OnlineSVC(C=10.0, gamma=gamma, random_state=0).fit(X[:2000], y[:2000])
    assert len(model.support_) * X.shape[1] > 1 << 18, "the case would not be one"
    kinds = {node.op_type for node in to_onnx(model).graph.node}
    assert "If" in kinds
    assert "If" not in {node.op_type for node in to_onnx(model, integers=False).graph.node}
    assert_same(model, X[2000:])  # on the grid
    between = X[2000:] + np.float32(unit / 3)
    assert_same(model, between)
    beyond = X[2000:].copy()
    beyond[0, 1] = offset + 300 * unit
    assert_same(model, beyond)
    assert_same(model, X[2000:2001])
    assert len(run(model, X[:0])["label"]) == 0


# -- probabilities -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    ("classes", "multiclass"), [(2, "auto"), (3, "ovr"), (3, "ovo"), (10, "ovo")]
)
def test_probabilities(calibration: str, classes: int, multiclass: str, seed: int) -> None:
    X, y = blobs(700, seed, classes, d=4)
    model = OnlineSVC(
        C=2.0, gamma=0.3, calibration=calibration, multiclass=multiclass, random_state=0
    )
    model.fit(X[:500], y[:500])
    assert_same(model, X[500:], dtype="float64")
    probabilities = run(model, X[500:])["probabilities"]
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert np.abs(probabilities - model.predict_proba(X[500:].astype(np.float32))).max() < 5e-3


def test_class_weights_decide_instead_of_probabilities(seed: int) -> None:
    X, y = blobs(600, seed, 3)
    model = OnlineSVC(gamma=0.3, calibration="sigmoid", class_weight={0: 20.0}, random_state=0)
    model.fit(X[:300], y[:300])
    most_probable = model.classes_[model.predict_proba(X[300:]).argmax(axis=1)]
    assert (most_probable != model.predict(X[300:])).any(), "the case would not be one"
    assert_same(model, X[300:], dtype="float64")


# -- files ---------------------------------------------------------------------------------------


def test_files_hold_the_model(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    X, y = rings(100, 0)
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, y)
    path = tmp_path / "model.onnx"
    returned = to_onnx(model, path)
    assert onnx.load(str(path)) == returned
    assert {node.domain for node in returned.graph.node} == {""}, "plain operators only"
    assert [entry.domain for entry in returned.opset_import] == [""]
    assert list(tmp_path.iterdir()) == [path]
