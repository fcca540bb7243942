"""LIBSVM model files, both ways: files of LIBSVM itself, and what LIBSVM makes of ours."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC, OneClassSVM

from marginwise import (
    CompressedSVC,
    ExactOneClassSVM,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
)
from marginwise._estimator.pairs import votes
from marginwise.exchange import from_libsvm, to_libsvm
from tests.support import binary_values, blobs, kernel_values, rings

try:
    from libsvm import svmutil
except ImportError:
    svmutil = None

GOLDEN = Path(__file__).parents[1] / "golden" / "libsvm"
WITH_PROBABILITIES = ("probabilities",)
ONE_CLASS = ("one_class", "one_class_linear")
OURS = {"polynomial": "poly"}

needs_libsvm = pytest.mark.skipif(svmutil is None, reason="libsvm-official is not installed")


def largest_difference(found: Any, expected: Any) -> float:
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))


# -- LIBSVM in plain NumPy ---------------------------------------------------------------------


def read_plainly(path: Path) -> tuple[dict[str, list[str]], np.ndarray, np.ndarray]:
    """The header of a file that is right, its coefficients and its support vectors."""
    head, body = path.read_text().split("SV\n")
    header = {line.split()[0]: line.split()[1:] for line in head.splitlines()}
    lines = [line.split() for line in body.splitlines()]
    columns = max(len(header.get("label", [])) - 1, 1)
    coefficients = np.array([[float(token) for token in line[:columns]] for line in lines])
    entries = [dict(token.split(":") for token in line[columns:]) for line in lines]
    X = np.zeros((len(lines), max(int(index) for entry in entries for index in entry)))
    for row, entry in zip(X, entries, strict=True):
        for index, value in entry.items():
            row[int(index) - 1] = float(value)
    return header, coefficients, X


def values_plainly(path: Path, X: np.ndarray, *, sizes: bool = False) -> np.ndarray:
    """Decision values by the formula of LIBSVM, of each pair of labels in the order of the file.

    With `sizes`, the sizes of the terms are added up instead.
    """
    header, coefficients, vectors = read_plainly(path)
    (name,) = header["kernel_type"]
    parameters = {key: float(header[key][0]) for key in ("gamma", "coef0") if key in header}
    degree = int(header.get("degree", ["3"])[0])
    K = kernel_values(OURS.get(name, name), X, vectors, degree=degree, **parameters)
    rho = [float(value) for value in header["rho"]]
    if sizes:
        K, coefficients, rho = np.abs(K), np.abs(coefficients), [-abs(value) for value in rho]
    if "label" not in header:
        return K @ coefficients - rho
    ends = np.cumsum([0, *map(int, header["nr_sv"])])
    columns = []
    for i, j in itertools.combinations(range(len(header["label"])), 2):
        first, second = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        f = K[:, first] @ coefficients[first, j - 1] + K[:, second] @ coefficients[second, i]
        columns.append(f - rho[len(columns)])
    return np.column_stack(columns)


def values_of(model: Any, X: Any, labels: list[int]) -> np.ndarray:
    """Decision values of our model for pairs of labels in another order."""
    found, classes = binary_values(model, X), model.classes_.tolist()
    pairs = {pair: c for c, pair in enumerate(itertools.combinations(classes, 2))}
    columns = [
        found[:, pairs[b, a]] if a > b else -found[:, pairs[a, b]]
        for a, b in itertools.combinations(labels, 2)
    ]
    return np.column_stack(columns)


def by_libsvm(path: Path, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What LIBSVM predicts by a file: labels, and decision values."""
    rows = [{j + 1: value for j, value in enumerate(row)} for row in X.tolist()]
    model = svmutil.svm_load_model(str(path))
    assert model is not None
    labels, _, values = svmutil.svm_predict([], rows, model, "-q")
    return np.array(labels), np.array(values)


# -- files of LIBSVM ---------------------------------------------------------------------------


def golden(name: str) -> tuple[Any, dict[str, np.ndarray]]:
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    path = GOLDEN / f"{name}.model"
    if name in WITH_PROBABILITIES:
        with pytest.warns(UserWarning, match="probA and probB"):
            model = from_libsvm(path, n_features=3)
    else:
        model = from_libsvm(path, n_features=3)
    return model, {key: np.array(value) for key, value in expected.items()}


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.model")))
def test_files_of_libsvm_predict_as_there(name: str) -> None:
    model, expected = golden(name)
    assert isinstance(model, CompressedSVC if name in ONE_CLASS else OnlineSVC)
    header, _, _ = read_plainly(GOLDEN / f"{name}.model")
    labels = [int(label) for label in header.get("label", ["1", "-1"])]
    found = values_of(model, expected["X"], labels)
    terms = values_plainly(GOLDEN / f"{name}.model", expected["X"], sizes=True)
    assert np.abs(found - expected["values"]).max() < 1e-6 * terms.max()
    if name != "one_class_linear":  # where terms cancel
        assert largest_difference(found, expected["values"]) < 1e-6
    decided = np.abs(expected["values"]).min(axis=1) > 1e-4
    if len(labels) > 2:
        decided &= votes(binary_values(model, expected["X"])).max(axis=1) > len(labels) - 1.5
    assert decided.sum() > 60
    np.testing.assert_array_equal(
        model.predict(expected["X"])[decided], expected["labels"][decided]
    )
    if name not in ONE_CLASS:
        model._engine.native.check(1e-4)


@pytest.mark.parametrize("name", ["binary", "nu_svc", "poly", "five_classes"])
def test_training_continues_from_a_file(name: str) -> None:
    model, rows = golden(name)
    X, y = rows["X"], rows["y"]
    # In the file they were given without ids: all rows are new, and the vectors are there twice.
    before = model.dual_objective()
    model.partial_fit(X, y).finish()
    model._engine.native.check(1e-4)
    assert (np.asarray(model.dual_objective()) >= np.asarray(before) - 1e-6).all()
    assert model.score(X, y) > 0.75


def test_c_is_the_largest_coefficient_unless_it_is_given() -> None:
    model, _ = golden("binary")
    assert model.C == 2.0
    assert from_libsvm(GOLDEN / "binary.model", C=5.0).C == 5.0
    weighted = from_libsvm(GOLDEN / "weights.model", C=2.0, class_weight={1: 3.0})
    state = weighted._engine.state()
    bounds = np.array([2.0, 6.0])[state["labels"]]
    np.testing.assert_allclose(state["costs"], bounds)
    at_bound = np.abs(state["alpha"][0]) == state["costs"]
    assert min(np.bincount(state["labels"][at_bound])) > 0
    assert weighted._engine.delta < 1e-2  # without the weights, those of class -1 could rise
    assert from_libsvm(GOLDEN / "weights.model", C=6.0)._engine.delta > 0.1


def test_headers_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """Entries in another order, 6 digits, windows' ends of lines and no last newline."""
    head, body = (GOLDEN / "five_classes.model").read_text().split("SV\n")
    lines = sorted(head.splitlines(), reverse=True)
    path = tmp_path / "model"
    path.write_bytes("\r\n".join([*lines, "SV", *body.splitlines()]).rstrip().encode())
    X = np.random.default_rng(0).normal(size=(20, 3))
    found = binary_values(from_libsvm(path, n_features=3), X)
    expected = binary_values(from_libsvm(GOLDEN / "five_classes.model", n_features=3), X)
    np.testing.assert_array_equal(found, expected)


@needs_libsvm
@pytest.mark.parametrize("options", ["-c 10 -g 0.5", "-t 0", "-t 1 -g 1 -r 1"])
def test_files_written_now_by_libsvm_are_read(options: str, tmp_path: Path) -> None:
    X, y = blobs(200, seed=3, classes=4, d=3)
    rows = [{j + 1: value for j, value in enumerate(row)} for row in X.tolist()]
    path = tmp_path / "model"
    svmutil.svm_save_model(str(path), svmutil.svm_train(y.tolist(), rows, f"{options} -q"))
    _, values = by_libsvm(path, X)
    labels = [int(label) for label in read_plainly(path)[0]["label"]]
    model = from_libsvm(path)
    terms = values_plainly(path, X, sizes=True).max()
    assert np.abs(values_of(model, X, labels) - values).max() < 1e-6 * terms
    model._engine.native.check(1e-4)


# -- our files ---------------------------------------------------------------------------------

BINARY: dict[str, Any] = {
    "rbf": OnlineSVC(C=10.0, gamma=1.0),
    "linear": OnlineSVC(kernel="linear"),
    "poly": OnlineSVC(kernel="poly", gamma=0.5, coef0=1.0, degree=2),
    "sigmoid": OnlineSVC(kernel="sigmoid", gamma=0.1, coef0=-0.2),
    "budget": OnlineSVC(C=10.0, gamma=1.0, budget=20, random_state=0),
    "gap": GapSVC(C=10.0, gamma=1.0, random_state=0),
    "gap centred": GapSVC(kernel="linear", center=True, random_state=0),
    "tracking": TrackingSVC(gamma=1.0, random_state=0),
    "exact": ExactSVC(gamma=1.0),
    "perceptron": KernelPerceptron(gamma=1.0, average=True, random_state=0),
}


@pytest.mark.parametrize("offset", [0.0, 50.0])
@pytest.mark.parametrize("name", BINARY)
def test_two_classes_are_written_for_libsvm(name: str, offset: float, tmp_path: Path) -> None:
    if offset and name in ("poly", "sigmoid"):
        pytest.skip("kernels of x.y have no meaning so far from the origin")
    X, y = blobs(300, seed=4, classes=2)
    X, y = X + offset, np.where(y > 0, 3, -5)
    model = BINARY[name].fit(X[:200], y[:200])
    (path,) = to_libsvm(model, tmp_path / "model")
    header, _, _ = read_plainly(path)
    assert header["label"] == ["3", "-5"]  # the first label is the positive one
    f = model.decision_function(X)
    terms = values_plainly(path, X, sizes=True).max()
    values = values_plainly(path, X)[:, 0]
    assert np.abs(values - f).max() < 3e-6 * terms
    assert np.abs(from_libsvm(path).decision_function(X) - values).max() < 1e-6 * terms
    if svmutil is not None:
        labels, there = by_libsvm(path, X)
        np.testing.assert_allclose(there[:, 0], values, atol=1e-9)
        clear = np.abs(f) > 1e-4
        np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])


def test_digits_are_enough_to_read_back_the_same_numbers(tmp_path: Path) -> None:
    X, y = rings(200, seed=5, noise=0.1)
    model = ExactSVC(gamma=1.0).fit(X, y)  # in double precision
    (path,) = to_libsvm(model, tmp_path / "model")
    header, coefficients, vectors = read_plainly(path)
    rows = model.support_vectors_[np.argsort(-y[model.support_], kind="stable")]
    alpha = model.dual_coef_[0][np.argsort(-y[model.support_], kind="stable")]
    np.testing.assert_array_equal(vectors, rows)
    np.testing.assert_array_equal(coefficients[:, 0], alpha)
    assert float(header["rho"][0]) == -model.intercept_[0]


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_pairs_of_classes_are_one_file(sparse: bool, names: bool, tmp_path: Path) -> None:
    X, y = blobs(300, seed=6, classes=4, d=40 if sparse else 3)
    rows: Any = sp.csr_array(np.where(np.abs(X) > 2.3, X, 0.0)) if sparse else X
    dense = rows.toarray() if sparse else X
    labels = np.array(["ant", "bee", "cat", "dog"])[y] if names else np.array([-7, 0, 2, 9])[y]
    model = OnlineSVC(C=3.0, gamma=0.2, multiclass="ovo").fit(rows[:200], labels[:200])
    written = to_libsvm(model, tmp_path / "model")
    assert [path.name for path in written] == ["model"] + ["model.json"] * names
    found = values_plainly(written[0], dense)
    assert largest_difference(-found, binary_values(model, rows)) < 1e-5
    again = from_libsvm(written[-1])
    assert again.n_features_in_ == X.shape[1]
    assert again.multiclass == "ovo"
    np.testing.assert_array_equal(again.classes_, model.classes_)
    assert largest_difference(binary_values(again, rows), binary_values(model, rows)) < 1e-5
    again._engine.native.check(1e-4)
    if svmutil is not None:
        assert largest_difference(by_libsvm(written[0], dense)[1], found) < 1e-9


@pytest.mark.parametrize("kind", ["budget", "compressed"])
def test_vectors_that_count_in_pairs_of_others_have_lines_there(kind: str, tmp_path: Path) -> None:
    X, y = blobs(300, seed=7, classes=4)
    model: Any = OnlineSVC(
        C=3.0,
        gamma=0.5,
        multiclass="ovo",
        budget=30 if kind == "budget" else None,
        random_state=0,
    ).fit(X, y)
    if kind == "compressed":
        model = model.compress(max_vectors=15)
    (path,) = to_libsvm(model, tmp_path / "model")
    assert largest_difference(-values_plainly(path, X), binary_values(model, X)) < 1e-5
    assert largest_difference(binary_values(from_libsvm(path), X), binary_values(model, X)) < 1e-5


@pytest.mark.parametrize("names", [False, True])
def test_one_vs_rest_is_a_file_per_class_and_a_manifest(names: bool, tmp_path: Path) -> None:
    X, y = blobs(400, seed=8, classes=4)
    X[10], y[10] = X[11], y[11]  # a row twice, with two ids
    labels = np.array(["ant", "bee", "cat", "dog"])[y] if names else y
    model = OnlineSVC(C=3.0, gamma=0.5, multiclass="ovr").fit(X[:200], labels[:200])
    written = to_libsvm(model, tmp_path / "model")
    assert [path.name for path in written] == [*(f"model.{k}" for k in range(4)), "model.json"]
    for k, path in enumerate(written[:-1]):
        found = values_plainly(path, X)[:, 0]
        assert largest_difference(found, model.decision_function(X)[:, k]) < 1e-5
    again = from_libsvm(written[-1], C=3.0)
    again._engine.native.check(1e-4)
    assert again.multiclass == "ovr"
    np.testing.assert_array_equal(again.support_, np.sort(model.support_))
    np.testing.assert_array_equal(again.n_support_, model.n_support_)
    assert largest_difference(again.decision_function(X), model.decision_function(X)) < 1e-5
    for one in (model, again):
        for _ in range(3):
            one.partial_fit(X, labels, ids=np.arange(400)).finish()
    np.testing.assert_allclose(again.dual_objective(), model.dual_objective(), rtol=1e-3)


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_one_class_is_written_for_libsvm(nu: float, tmp_path: Path) -> None:
    X = np.random.default_rng(9).normal(size=(200, 3))
    model = ExactOneClassSVM(nu=nu, gamma=0.5).fit(X)
    (path,) = to_libsvm(model, tmp_path / "model")
    f = model.decision_function(X)
    np.testing.assert_allclose(values_plainly(path, X)[:, 0], f, atol=1e-9)
    reference = OneClassSVM(nu=nu, gamma=0.5, tol=1e-8).fit(X).decision_function(X)
    np.testing.assert_allclose(values_plainly(path, X)[:, 0], reference, atol=1e-4)
    fixed = from_libsvm(path)
    assert isinstance(fixed, CompressedSVC)
    assert largest_difference(fixed.decision_function(X), f) < 1e-6
    clear = np.abs(f) > 1e-4
    np.testing.assert_array_equal(fixed.predict(X)[clear], model.predict(X)[clear])
    if svmutil is not None:
        np.testing.assert_allclose(by_libsvm(path, X)[1][:, 0], f, atol=1e-9)


def test_one_class_file_is_continued_from_its_vectors() -> None:
    """The support vectors alone have the solution of all rows, if their bound is the same."""
    X = np.random.default_rng(10).normal(size=(300, 2))
    whole = ExactOneClassSVM(nu=0.2, gamma=0.5).fit(X)
    total = whole.dual_coef_.sum()
    alone = ExactOneClassSVM(C=1 / total, gamma=0.5).fit(whole.support_vectors_)
    np.testing.assert_allclose(
        alone.decision_function(X) * total, whole.decision_function(X), atol=1e-6
    )


def test_models_that_were_continued_are_written(tmp_path: Path) -> None:
    X, y = blobs(200, seed=11, classes=2)
    svc = SVC(C=0.01, gamma=0.5).fit(X, y)  # no coefficient is free: the bias is the given one
    (path,) = to_libsvm(OnlineSVC.from_svc(svc, X, y), tmp_path / "model")
    assert largest_difference(values_plainly(path, X)[:, 0], svc.decision_function(X)) < 1e-6


def test_features_that_are_zero_are_counted(tmp_path: Path) -> None:
    X, y = blobs(100, seed=12, classes=2)
    wide = np.hstack([X, np.zeros((100, 3))])
    model = OnlineSVC(gamma=0.5).fit(wide, y)
    (path,) = to_libsvm(model, tmp_path / "model")
    assert from_libsvm(path).n_features_in_ == 5


def test_labels_that_are_not_integers_are_in_a_manifest(tmp_path: Path) -> None:
    X, y = blobs(100, seed=13, classes=2)
    for labels in ([False, True], ["no", "yes"], [0, 2**40]):
        model = OnlineSVC(gamma=0.5).fit(X, np.array(labels)[y])
        *_, path = to_libsvm(model, tmp_path / "model")
        assert path.name == "model.json"
        again = from_libsvm(path)
        assert again.classes_.tolist() == labels
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    (path,) = to_libsvm(OnlineSVC(gamma=0.5).fit(X, np.array([-1.0, 1.0])[y]), tmp_path / "model")
    assert from_libsvm(path).classes_.tolist() == [-1, 1]
