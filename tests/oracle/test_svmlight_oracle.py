"""The native reader of svmlight text beside scikit-learn's: the same values, to the bit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from marginwise.data import SvmlightSource, write_svmlight


def assert_same_as_sklearn(path: Path, zero_based: Any, n_features: int | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # values below float32 become 0
        expected, labels = load_svmlight_file(
            str(path), zero_based=zero_based, n_features=n_features
        )
    X, y = SvmlightSource(path, zero_based=zero_based, n_features=n_features).load()
    assert X.shape == expected.shape
    assert X.data.dtype == np.float32
    np.testing.assert_array_equal(X.indptr, expected.indptr)
    np.testing.assert_array_equal(X.indices, expected.indices)
    with np.errstate(under="ignore"):
        single = expected.data.astype(np.float32)
    np.testing.assert_array_equal(X.data.view(np.int32), single.view(np.int32))
    np.testing.assert_array_equal(y, labels)


def number(rng: np.random.Generator) -> str:
    """A number as programs write it, or as an adversary does."""
    x = float(rng.normal() * 10.0 ** rng.integers(-12, 12))
    forms = ["%d", "%.1f", "%.3f", "%.6g", "%.9g", "%.16g", "%.17g", "%.8e", "%.25f", "%.30e"]
    shown = str(rng.choice(forms)) % x
    match int(rng.integers(8)):
        case 0:
            return shown.replace("e", "E")
        case 1:
            return "+" + shown if x > 0 else shown
        case 2:
            return shown.replace("0.", ".") if shown.startswith(("0.", "-0.")) else shown
        case 3 if shown.lstrip("-").isdigit():
            return shown + "."
        case 4:  # the middle between two floats, or next to it
            a = np.float32(x)
            return repr((float(a) + float(np.nextafter(a, np.float32(np.inf)))) / 2) + (
                "" if rng.random() < 0.5 else "00000000000000001"
            )
    return shown


def odd_rows(rng: np.random.Generator, n: int, base: int) -> str:
    """Rows with all that the format allows."""
    lines = []
    for _ in range(n):
        if rng.random() < 0.1:
            lines.append(str(rng.choice(["", "   ", "# 1 2:3", "\t# comment: 5:5"])))
        indices = base + np.unique(
            rng.integers(0, 10 ** int(rng.integers(1, 8)), size=rng.poisson(6))
        )
        tokens = [f"{index}:{number(rng)}" for index in indices]
        if rng.random() < 0.2:
            tokens.insert(0, f"qid:{rng.integers(100)}")
        tokens.insert(0, str(rng.choice(["1", "-1", "+1", "0", "2.5", "1e1", "-3."])))
        blank = str(rng.choice([" ", "  ", "\t", " \t "]))
        line = blank.join(tokens) + str(rng.choice(["", " ", "# end", " # 7:7", "\t"]))
        lines.append(str(rng.choice(["", " "])) + line + str(rng.choice(["", "\r"])))
    return "\n".join(lines) + str(rng.choice(["", "\n", "\n\n"]))


@pytest.mark.parametrize("zero_based", [True, False, "auto"])
def test_odd_formatting_is_read_as_scikit_learn_reads_it(
    zero_based: Any, seed: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    for round_ in range(15):
        path = tmp_path / f"{round_}.svm"
        base = 0 if zero_based is True or (zero_based == "auto" and round_ % 2) else 1
        path.write_text(odd_rows(rng, 60, base), newline="")
        assert_same_as_sklearn(path, zero_based)


def test_files_that_scikit_learn_writes(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "rows.svm"
    for density, zero_based in ((0.05, True), (0.3, False), (1.0, "auto")):
        X = sp.random(200, 50, density=density, random_state=seed, format="csr")
        X.data = rng.normal(size=X.nnz) * 10.0 ** rng.integers(-30, 30, size=X.nnz)
        y = rng.integers(3, size=200) if density < 1 else rng.normal(size=200)
        query = rng.integers(5, size=200)
        dump_svmlight_file(
            X, y, str(path), zero_based=zero_based is True, query_id=query, comment="a header"
        )
        assert_same_as_sklearn(path, zero_based, n_features=50)


def test_scikit_learn_reads_what_is_written(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    X = sp.random(50, 20, density=0.3, random_state=seed, format="csr", dtype=np.float32)
    X.data *= 10.0 ** rng.integers(-30, 30, size=X.nnz).astype(np.float32)
    y = rng.normal(size=50)
    write_svmlight(X, y, tmp_path / "rows.svm")
    found, labels = load_svmlight_file(str(tmp_path / "rows.svm"), n_features=20, zero_based=False)
    np.testing.assert_array_equal(found.toarray().astype(np.float32), X.toarray())
    np.testing.assert_array_equal(labels, y)


def test_values_at_the_limits_of_float32(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    values = ["3.4028235e38", "-3.4028235677973362e38", "1e-45", "7.0064923216240853e-46"]
    values += ["7.0064923216240862e-46", "1e-400", "-0.0", "0", "16777217", "9007199254740993"]
    path.write_text("1 " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(values)) + "\n")
    assert_same_as_sklearn(path, False)
