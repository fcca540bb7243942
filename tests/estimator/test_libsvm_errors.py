"""Bad LIBSVM files, models that cannot be written, and what `from_svc` refuses."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

from marginwise import (
    CompressedSVC,
    ExactOneClassSVM,
    GapSVC,
    OnlineSVC,
    OnlineSVCCV,
)
from marginwise.data import DataError
from marginwise.exchange import from_libsvm, to_libsvm
from tests.support import blobs, rings

GOOD = """svm_type c_svc
kernel_type polynomial
degree 2
gamma 0.5
coef0 1
nr_class 2
total_sv 3
rho 0.25
label 1 -1
nr_sv 1 2
SV
1 1:0.5 3:-2
-0.25 2:1
-0.75 1:-1 2:0.5
"""
PAIRS = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 3
total_sv 3
rho 0.5 0.25 -1
label 5 7 9
nr_sv 1 1 1
SV
1 0.5 1:1
-1 0.75 2:1
-0.5 -0.75 1:1 2:1
"""

# What is replaced by what, and the line and the words of the message.
CHANGES = [
    ("svm_type c_svc", "svm_type epsilon_svr", 1, "epsilon_svr is a model for regression"),
    ("svm_type c_svc", "svm_type nu_svr", 1, "nu_svr is a model for regression"),
    ("svm_type c_svc", "svm_type x", 1, "expected svm_type to be one of c_svc, nu_svc, one_class"),
    ("svm_type c_svc", "svm_type", 1, "expected 'svm_type' and a type of model"),
    ("svm_type c_svc\n", "", 10, "expected the entry 'svm_type' before SV"),
    ("kernel_type polynomial", "kernel_type precomputed", 2, "the kernel is 'precomputed'"),
    ("kernel_type polynomial", "kernel_type cosine", 2, "one of linear, polynomial, rbf, sigmoid"),
    ("kernel_type polynomial", "kernel polynomial", 2, "expected one of svm_type, kernel_type"),
    ("degree 2", "degree 0", 3, "expected a degree from 1 to 1000, got 0"),
    ("degree 2", "degree 2.5", 3, "expected 'degree' and an integer, got '2.5'"),
    ("degree 2", "degree 99999999999", 3, "expected 'degree' and an integer"),
    ("gamma 0.5", "gamma -0.5", 4, "expected gamma above 0, got -0.5"),
    ("gamma 0.5", "gamma nan", 4, "expected 'gamma' and a number, got 'nan'"),
    ("gamma 0.5", "gamma 0.5 0.5", 4, "expected 'gamma' and a number"),
    ("gamma 0.5\n", "", 10, "expected the entry 'gamma' before SV"),
    ("coef0 1", "coef0 1_0", 5, "expected 'coef0' and a number, got '1_0'"),
    ("coef0 1", "degree 2", 5, "expected each entry once, got 'degree' again"),
    ("nr_class 2", "nr_class 1", 6, "expected nr_class to be 2 or more, got 1"),
    ("nr_class 2", "nr_class 3", 8, "expected rho to have 3 numbers, got 1"),
    ("total_sv 3", "total_sv 0", 7, "expected total_sv to be 1 or more, got 0"),
    ("total_sv 3", "total_sv 4", 10, "expected 2 counts that add up to total_sv, 4, got 1 2"),
    ("rho 0.25", "rho", 8, "expected 'rho' and a number for each pair of classes"),
    ("rho 0.25", "rho inf", 8, "expected 'rho'"),
    ("label 1 -1", "label 1", 9, "expected 2 different labels, got 1"),
    ("label 1 -1", "label 1 1", 9, "expected 2 different labels, got 1"),
    ("label 1 -1", "label 1 x", 9, "expected 'label' and an integer for each class"),
    ("nr_sv 1 2", "nr_sv 4 -1", 10, "expected 2 counts that add up to total_sv, 3"),
    ("SV\n", "SV 3\n", 11, "or SV alone, got 'SV 3'"),
    ("SV\n1 ", "1 ", 11, "expected one of svm_type"),
    ("-0.75 1:-1 2:0.5\n", "", 14, "expected 3 support vectors after SV, as total_sv says, got 2"),
    ("2:0.5\n", "2:0.5\n1 1:1\n", 15, "expected 3 support vectors after SV"),
    ("-0.25 2:1", "-0.25 2", 13, "expected index:value, got '2'"),
    ("-0.25 2:1", "-0.25 2:", 13, "expected index:value, got '2:'"),
    ("-0.25 2:1", "-0.25 2:x", 13, "expected index:value, got '2:x'"),
    ("-0.25 2:1", "-0.25 2:1:1", 13, "expected index:value, got '2:1:1'"),
    ("-0.25 2:1", "-0.25 2.0:1", 13, "expected index:value, got '2.0:1'"),
    ("-0.25 2:1", "-0.25 1_2:1", 13, "expected index:value, got '1_2:1'"),
    ("-0.25 2:1", "-0.25 2:inf", 13, "expected"),
    ("-0.25 2:1", "-0.25 2:1e999", 13, "expected"),
    ("-0.25 2:1", "nan 2:1", 13, "expected"),
    ("-0.25 2:1", "x 2:1", 13, "expected 1 coefficient, got 'x'"),
    ("-0.25 2:1", "2:1", 13, "expected 1 coefficient, got '2:1'"),
    ("-0.25 2:1", "", 13, "expected 1 coefficient"),
    ("-0.25 2:1", "-0.25 0:1", 13, "expected indices from 1, got 0"),
    ("-0.25 2:1", "-0.25 -2:1", 13, "expected"),
    ("-0.25 2:1", "-0.25 2:1 1:1", 13, "expected indices in ascending order, each once"),
    ("-0.25 2:1", "-0.25 2:1 2:1", 13, "expected indices in ascending order, each once"),
    ("-0.25 2:1", "-0.25 100000000:1", 13, "pass n_features if there are so many"),
    ("-0.25 2:1", "-0.25 " + "9" * 5000 + ":1", 13, "expected"),
    ("-0.25 2:1", "-0.25 2:1e200", 12, "features are too large"),
    ("-0.25 2:1", "-0.25 2:\x00", 13, "expected index:value"),
    ("coef0 1", "coef0 1é", 5, "expected plain ASCII text"),
    ("-0.25 2:1", "-0.25 2:١", 13, "expected plain ASCII text"),
]


def written(folder: Path, text: str) -> Path:
    path = folder / "bad.model"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(("old", "new", "line", "words"), CHANGES)
def test_bad_lines_are_named(old: str, new: str, line: int, words: str, tmp_path: Path) -> None:
    assert GOOD.count(old) == 1
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(DataError) as caught:
        from_libsvm(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "svm_type c_svc\n", "\x00" * 100, "PK\x03\x04"])
def test_other_content_is_refused(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=re.escape(f"{path}:")):
        from_libsvm(path)


def test_good_files_are_read(tmp_path: Path) -> None:
    model = from_libsvm(written(tmp_path, GOOD))
    assert isinstance(model, OnlineSVC)
    # K((1, 0, 0), v) = (v_1 / 2 + 1)^2 is 1.5625, 1 and 0.25.
    assert model.decision_function([[1.0, 0.0, 0.0]])[0] == pytest.approx(
        1.5625 - 0.25 * 1 - 0.75 * 0.25 - 0.25, abs=1e-6
    )
    model = from_libsvm(written(tmp_path, PAIRS))
    assert model.classes_.tolist() == [5, 7, 9]


def test_coefficients_of_other_models_only_predict(tmp_path: Path) -> None:
    for old, new in (("-0.25 2:1", "0.25 2:1"), ("-0.25 2:1", "-0.5 2:1")):
        path = written(tmp_path, GOOD.replace(old, new))
        model = from_libsvm(path)
        assert isinstance(model, CompressedSVC)
        assert np.isfinite(model.decision_function(np.eye(3))).all()
        with pytest.raises(DataError, match="Leave C out for a model that predicts only"):
            from_libsvm(path, C=1.0)


def test_bounds_below_a_coefficient_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    with pytest.raises(DataError, match=r"expected coefficients up to C=0\.9"):
        from_libsvm(path, C=0.9)
    with pytest.raises(DataError, match="got 1"):
        from_libsvm(path, C=1.0, class_weight={1: 0.5})
    model = from_libsvm(path, class_weight={1: 0.5, -1: 1.0})
    assert model.C == 2.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"C": 0.0}, "C must be None or a number above 0"),
        ({"C": "1"}, "C must be"),
        ({"class_weight": "balanced"}, "class_weight must be None or a dict"),
        ({"class_weight": {3: 1.0}}, "are not in class_weight"),
        ({"n_features": 0}, "n_features must be None or an integer"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        from_libsvm(written(tmp_path, GOOD), **arguments)


def test_number_of_features_may_be_given(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert from_libsvm(path).n_features_in_ == 3
    assert from_libsvm(path, n_features=7).n_features_in_ == 7
    with pytest.raises(DataError, match=r"bad.model:12: expected indices up to 2, got 3"):
        from_libsvm(path, n_features=2)


def test_files_that_would_take_much_memory_are_refused(tmp_path: Path) -> None:
    classes, pairs = 1200, 1200 * 1199 // 2
    head = [f"nr_class {classes}", f"total_sv {classes}", "rho " + "0 " * pairs]
    head += ["label " + " ".join(map(str, range(classes))), "nr_sv " + "1 " * classes, "SV"]
    body = ["0 " * (classes - 1) + "1:1"] * classes
    text = "\n".join(["svm_type c_svc", "kernel_type linear", *head, *body])
    with pytest.raises(DataError, match=r"bad.model:8: .* are too many"):
        from_libsvm(written(tmp_path, text))


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        from_libsvm(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        from_libsvm(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="a FIFO"):
        from_libsvm(tmp_path / "fifo")


# -- manifests ---------------------------------------------------------------------------------


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    X, y = blobs(60, seed=1)
    model = OnlineSVC(gamma=0.5, multiclass="ovr").fit(X, np.array(["a", "b", "c"])[y])
    return to_libsvm(model, tmp_path / "model")[-1]


def set_first(said: dict[str, Any], key: str, value: Any) -> None:
    said["files"][0][key] = value


MANIFESTS: list[tuple[Any, str]] = [
    (lambda said: said.update(format="x"), "expected the format 'marginwise-libsvm', got 'x'"),
    (lambda said: said.update(version=2), "expected version 1, got 2"),
    (lambda said: said.update(multiclass="x"), "expected 'multiclass' to be one of ovr, ovo"),
    (lambda said: said.update(n_features=0), "expected 'n_features' to be an integer from 1"),
    (lambda said: said.update(n_features=1.5), "expected 'n_features' to be an integer from 1"),
    (lambda said: said.update(n_features=1), "expected indices up to 1, got 2"),
    (lambda said: said.update(classes=["a", "b"]), "expected 'files' to be a list of 2"),
    (lambda said: said.update(classes=["a", "c", "b"]), "expected 'classes' in order"),
    (lambda said: said.update(classes=["a", "b", 3]), "two labels of one type or more"),
    (lambda said: said.update(classes=[[], [1], [2]]), "different strings or finite numbers"),
    (lambda said: said.update(classes=[1, 2, 2**70]), "numbers of 64 bits"),
    (lambda said: said.update(files={}), "expected 'files' to be a list of 3"),
    (lambda said: said["files"].__setitem__(0, 1), "expected 'file' to be the name"),
    (lambda said: set_first(said, "file", "../model.0"), "expected 'file' to be the name"),
    (lambda said: set_first(said, "file", "model.1"), "describes by sha256"),
    (lambda said: set_first(said, "sha256", None), "describes by sha256"),
    (lambda said: set_first(said, "ids", []), "expected 'ids' to be a list of"),
    (lambda said: said["files"][0]["ids"].__setitem__(0, -1), "different integers from 0"),
    (lambda said: said["files"][0]["ids"].__setitem__(0, 55.5), "different integers from 0"),
    (
        lambda said: said["files"][0]["ids"].__setitem__(0, said["files"][0]["ids"][1]),
        "different integers from 0",
    ),
    (lambda said: said["files"][0]["ids"].reverse(), "to be the same in all files"),
    (lambda said: set_first(said, "n_support", [1, 1, 1]), "expected 'n_support' of file 0"),
]


@pytest.mark.parametrize(("change", "words"), MANIFESTS)
def test_bad_manifests_are_refused(change: Any, words: str, manifest: Path) -> None:
    said = json.loads(manifest.read_text())
    change(said)
    manifest.write_text(json.dumps(said))
    with pytest.raises(DataError, match=rf"^{re.escape(str(manifest.parent))}/[\w.]+:\d+: ") as e:
        from_libsvm(manifest)
    assert words in str(e.value)


def test_manifests_that_are_not_json_are_refused(manifest: Path) -> None:
    text = manifest.read_text()
    for content, line in ((text[:-20], text[:-20].count("\n") + 1), ("{" * 9000, 1)):
        manifest.write_text(content)
        with pytest.raises(DataError, match=rf"model.json:{line}: expected JSON"):
            from_libsvm(manifest)


def test_stale_parts_are_noticed(manifest: Path) -> None:
    part = manifest.parent / "model.1"
    part.write_text(part.read_text().replace("rho ", "rho 1"))
    with pytest.raises(DataError, match=r"model.1:1: expected the content that .* by sha256"):
        from_libsvm(manifest)
    part.unlink()
    with pytest.raises(FileNotFoundError):
        from_libsvm(manifest)
    with pytest.raises(ValueError, match=r"n_features=5, but .* has 2 features"):
        from_libsvm(manifest, n_features=5)


# -- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (OnlineSVC(kernel="cosine"), "is 'cosine', which LIBSVM does not have"),
        (OnlineSVC(kernel="tanimoto"), "is 'tanimoto', which LIBSVM does not have"),
        (OnlineSVC(kernel=lambda A, B: A @ B.T), "is a function or precomputed"),
        (GapSVC(kernel="poly", center=True, coef0=1.0), "LIBSVM does not centre features"),
        (ExactOneClassSVM(kernel="linear"), "depends on K(x, x)"),
    ],
)
def test_models_without_a_form_there_are_refused(model: Any, words: str, tmp_path: Path) -> None:
    X, y = rings(60, seed=2)
    model.fit(np.abs(X), y)
    with pytest.raises(ValueError, match=re.escape(words)):
        to_libsvm(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_other_objects_and_models_without_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="estimators of this package, got SVC"):
        to_libsvm(SVC(), tmp_path / "model")
    with pytest.raises(ValueError, match="not fitted"):
        to_libsvm(OnlineSVC(), tmp_path / "model")
    one = OnlineSVC(gamma=1.0).partial_fit([[0.0], [1.0]], [3, 3])
    with pytest.raises(ValueError, match="no support vectors of two classes yet"):
        to_libsvm(one, tmp_path / "model")
    X, y = rings(60, seed=3)
    model = OnlineSVC(gamma=1.0).fit(X, y)
    with pytest.raises(FileNotFoundError, match="No such directory"):
        to_libsvm(model, tmp_path / "absent" / "model")


def test_existing_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: Any) -> None:
    X, y = rings(60, seed=4)
    model = OnlineSVC(gamma=1.0).fit(X, y)
    path = tmp_path / "model"
    path.write_text("before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        to_libsvm(model, path)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["model"]


# -- from_svc ----------------------------------------------------------------------------------


def test_only_fitted_svcs_are_continued() -> None:
    X, y = rings(60, seed=5)
    for other in (LinearSVC().fit(X, y), NuSVC(nu=0.2).fit(X, y), SVR().fit(X, y), "SVC"):
        with pytest.raises(
            TypeError, match=f"a fitted sklearn.svm.SVC, got {type(other).__name__}"
        ):
            OnlineSVC.from_svc(other, X, y)
    with pytest.raises(
        NotFittedError, match="this SVC is not fitted: it has no attribute support_"
    ):
        OnlineSVC.from_svc(SVC(), X, y)
    with pytest.raises(TypeError, match=r"Use OnlineSVC\.from_svc"):
        OnlineSVCCV.from_svc(SVC().fit(X, y), X, y)


def test_other_kernels_are_refused() -> None:
    X, y = rings(60, seed=6)
    for kernel in ("precomputed", np.dot):
        svc = SVC(kernel=lambda A, B: A @ B.T) if callable(kernel) else SVC(kernel=kernel)
        svc.fit(X @ X.T if kernel == "precomputed" else X, y)
        with pytest.raises(ValueError, match="supports the kernels linear, rbf, poly, sigmoid"):
            OnlineSVC.from_svc(svc, X, y)


def test_other_rows_are_refused() -> None:
    X, y = rings(80, seed=7, noise=0.1)
    svc = SVC(gamma=1.0).fit(X, y)
    changed = X.copy()
    changed[svc.support_[3], 1] += 0.01
    labels = y.copy()
    labels[svc.support_[2]] = 1 - labels[svc.support_[2]]
    for rows, target, words in (
        (X[:-1], y[:-1], "was fitted to 80 rows of 2 features, got X of shape (79, 2)"),
        (X[:, :1], y, "was fitted to 80 rows of 2 features, got X of shape (80, 1)"),
        (X[::-1], y[::-1], "differs from the corresponding support vector of the SVC"),
        (changed, y, f"row {svc.support_[3]} of X differs from the corresponding support vector"),
        (X, labels, "y differs from the labels that the SVC was fitted to"),
        (X, y + 1, "y has the classes [1, 2], but the SVC was fitted with [0, 1]"),
        (X, y[:-1], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            OnlineSVC.from_svc(svc, rows, target)
