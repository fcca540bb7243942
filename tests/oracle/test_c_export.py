"""C source that is compiled predicts what the model that it was made from does."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from marginwise import ExactOneClassSVM, ExactSVC, KernelPerceptron, OnlineSVC
from marginwise.data import TableEncoder
from marginwise.exchange import to_c
from tests.exchange_support import assert_agree
from tests.support import blobs

COMPILER = shutil.which("cc")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-shared", "-fPIC"]
KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto")
TYPES = {"float": (np.float32, ctypes.c_float), "double": (np.float64, ctypes.c_double)}
PROGRAM = """
#include "{name}.h"
int label(const {real} *x) {{ return {name}_predict(x); }}
void values(const {real} *x, {real} *out) {{ {name}_decision(x, out); }}
"""

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def compiled(model: Any, folder: Path, name: str = "model", dtype: str = "float") -> Any:
    to_c(model, folder / f"{name}.h", name=name, dtype=dtype)
    (folder / "use.c").write_text(PROGRAM.format(name=name, real=dtype))
    library = folder / "use.so"
    subprocess.run(
        [str(COMPILER), *FLAGS, "-o", str(library), str(folder / "use.c"), "-lm"], check=True
    )
    return ctypes.CDLL(str(library))


def assert_same(model: Any, X: Any, folder: Path, dtype: str = "float") -> None:
    library = compiled(model, folder, dtype=dtype)
    real, c_real = TYPES[dtype]
    rows = np.ascontiguousarray(X, dtype=real)
    decision = model.decision_function(rows)
    out = np.zeros((len(rows), 1 if decision.ndim == 1 else decision.shape[1]), dtype=real)
    labels = []
    for row, values in zip(rows, out, strict=True):
        pointers = [a.ctypes.data_as(ctypes.POINTER(c_real)) for a in (row, values)]
        labels.append(library.label(pointers[0]))
        library.values(*pointers)
    last = model[-1] if hasattr(model, "named_steps") else model
    classes = getattr(last, "classes_", None)
    assert_agree(model, rows, labels if classes is None else classes[labels], out)


def positive_blobs(n: int, seed: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs(n, seed, classes, d=4)
    return (np.abs(X + 4) / 4).astype(np.float32), y


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel(kernel: str, dtype: str, seed: int, tmp_path: Path) -> None:
    X, y = positive_blobs(300, seed, 3)
    X[0] = 0  # where the cosine is 0, and the tanimoto kernel of two such rows is 1
    model = OnlineSVC(
        kernel=kernel, C=2.0, gamma=0.7, coef0=0.3, multiclass="ovr", random_state=0
    ).fit(X[:200], y[:200])
    assert_same(model, X, tmp_path, dtype)


def test_two_classes_and_pairs(seed: int, tmp_path: Path) -> None:
    for classes in (2, 4):
        X, y = positive_blobs(300, seed, classes)
        model = OnlineSVC(gamma=0.7, multiclass="ovo", random_state=0).fit(X[:200], y[:200])
        folder = tmp_path / str(classes)
        folder.mkdir()
        assert_same(model, X, folder)


@pytest.mark.parametrize("kernel", KERNELS)
def test_spheres(kernel: str, seed: int, tmp_path: Path) -> None:
    X, _ = positive_blobs(120, seed, 2)
    model = ExactOneClassSVM(kernel=kernel, nu=0.2, gamma=0.7, coef0=0.1, degree=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the sigmoid is not definite
        model.fit(X[:80])
    assert_same(model, X, tmp_path)


def test_compressed_and_centred_models(seed: int, tmp_path: Path) -> None:
    X, y = positive_blobs(300, seed, 3)
    model = OnlineSVC(gamma=0.7, random_state=0).fit(X, y)
    assert_same(model.compress(X, y, max_vectors=12), X, tmp_path)
    (tmp_path / "centred").mkdir()
    centred = KernelPerceptron(kernel="poly", center=True, coef0=1.0, random_state=0)
    assert_same(centred.fit(X + np.float32(5), y), X + np.float32(5), tmp_path / "centred")


@pytest.mark.parametrize(
    "scalers",
    [
        [StandardScaler()],
        [StandardScaler(with_mean=False), MinMaxScaler((-1, 2))],
        [MaxAbsScaler(), RobustScaler(), "passthrough"],
        [StandardScaler(with_std=False)],
    ],
    ids=["standard", "two", "robust", "mean"],
)
def test_scalers_are_folded_in(scalers: list[Any], seed: int, tmp_path: Path) -> None:
    X, y = positive_blobs(300, seed, 3)
    X = X * np.array([1, 10, 100, 0.1], dtype=np.float32) + np.float32(2)
    model = make_pipeline(*scalers, OnlineSVC(gamma=0.2, random_state=0))
    assert_same(model.fit(X[:200], y[:200]), X, tmp_path)


def test_tables_of_numbers_are_folded_in(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="tables are read with pyarrow")
    X, y = positive_blobs(200, seed, 3)
    names = ["age", "size */ in mm", "paid", "d"]
    table = {name: X[:, k].astype(np.float64) * 10**k for k, name in enumerate(names)}
    model = make_pipeline(TableEncoder(), OnlineSVC(gamma=0.2, random_state=0)).fit(table, y)
    library = compiled(model, tmp_path)
    assert "size ?? in mm, paid" in (tmp_path / "model.h").read_text()
    rows = np.column_stack(list(table.values())).astype(np.float32)
    pointers = [row.ctypes.data_as(ctypes.POINTER(ctypes.c_float)) for row in rows]
    assert [library.label(x) for x in pointers] == model.predict(table).tolist()


def test_labels_are_an_array(tmp_path: Path) -> None:
    X, y = positive_blobs(60, 0, 3)
    strings = np.array(["plain", 'with "quotes" \\', "Größe??="])[y]
    library = compiled(OnlineSVC(gamma=1.0, random_state=0).fit(X, strings), tmp_path, "named")
    assert library is not None
    program = tmp_path / "show.c"
    program.write_text(
        '#include <stdio.h>\n#include "named.h"\n'
        "int main(void) { for (int c = 0; c < NAMED_CLASSES; ++c) puts(named_classes[c]);"
        " return 0; }\n"
    )
    subprocess.run(
        [str(COMPILER), "-std=c99", "-Werror", "-o", str(tmp_path / "show"), str(program), "-lm"],
        check=True,
    )
    shown = subprocess.run([str(tmp_path / "show")], check=True, capture_output=True).stdout
    assert shown.decode("utf-8").splitlines() == sorted(set(strings.tolist()))
    numbers = to_c(OnlineSVC(gamma=1.0, random_state=0).fit(X, y * 10 - 7))
    assert "static const long long model_classes[] = {-7LL, 3LL, 13LL};" in numbers


def test_numbers_are_read_back_as_they_are() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [[1e-8, 1.0, 1e6]]
    model = ExactSVC(gamma=1e-3).fit(X, X[:, 1] > 0)
    source = to_c(model, dtype="double")
    table = re.search(r"model_vectors\[\d+\]\[3\] = \{(.*?)\n\};", source, re.DOTALL)
    assert table is not None
    numbers = [float(text) for text in re.findall(r"[-+.\de]+", table[1])]
    assert np.allclose(np.reshape(numbers, (-1, 3)), model.support_vectors_, rtol=1e-15, atol=0)
