"""Rows of svmlight files do not depend on how they are read, stored or compressed."""

from __future__ import annotations

import gzip
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

from marginwise import OnlineSVC
from marginwise.data import SvmlightSource, _bytes, write_svmlight
from tests.support import Rows

BLOCK = SvmlightSource.block


def generated(n: int, seed: int, labels: Sequence[float] = (-1, 1)) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = sp.random(n, 30, density=0.1, random_state=seed, format="csr", dtype=np.float32)
    return sp.csr_array(X), rng.choice(labels, size=n)


def compressed(path: Path, kind: str) -> Path:
    target = path.with_suffix("." + kind)
    if kind == "gz":
        target.write_bytes(gzip.compress(path.read_bytes(), 1))
    else:
        pa = pytest.importorskip("pyarrow")
        with pa.CompressedOutputStream(str(target), "zstd") as out:
            out.write(path.read_bytes())
    return target


def assert_same(found: tuple[Any, Any], expected: tuple[Any, Any], why: object = "") -> None:
    assert found[0].shape == expected[0].shape, why
    assert found[0].dtype == np.float32
    assert found[0].has_canonical_format
    found[0].check_format()
    np.testing.assert_array_equal(found[0].toarray(), expected[0].toarray(), err_msg=str(why))
    np.testing.assert_array_equal(found[1], expected[1], err_msg=str(why))
    assert found[1].dtype == expected[1].dtype, why


@pytest.fixture(scope="module")
def rows() -> tuple[Any, np.ndarray]:
    return generated(3 * BLOCK + 100, 0)


@pytest.fixture(scope="module", params=["plain", "gz", "zst", "two", "mixed"])
def source(
    request: pytest.FixtureRequest, rows: Any, tmp_path_factory: pytest.TempPathFactory
) -> SvmlightSource:
    """The same rows in one file or two, plain or compressed."""
    folder = tmp_path_factory.mktemp("rows")
    X, y = rows
    if request.param in ("plain", "gz", "zst"):
        path = folder / "rows.svm"
        write_svmlight(X, y, path)
        if request.param != "plain":
            path = compressed(path, request.param)
        return SvmlightSource(path, zero_based=False, n_features=30)
    cut = BLOCK + 77
    paths = [folder / "first.svm", folder / "second.svm"]
    write_svmlight(X[:cut], y[:cut], paths[0])
    write_svmlight(X[cut:], y[cut:], paths[1])
    if request.param == "mixed":
        paths[1] = compressed(paths[1], "gz")
    return SvmlightSource(paths, zero_based=False, n_features=30)


def test_what_the_first_pass_finds(source: SvmlightSource, rows: Any) -> None:
    assert len(source) == len(rows[1])
    np.testing.assert_array_equal(source.classes, [-1, 1])
    assert source.classes.dtype == np.int64
    assert source.n_features == 30
    assert source.feature_names is None
    assert source.random_access == all(path.endswith(".svm") for path in source.paths)


def test_all_rows_at_once(source: SvmlightSource, rows: Any) -> None:
    assert_same(source.load(), rows)


@pytest.mark.parametrize("size", [1, 7, 999, BLOCK, 5000, 10**6])
def test_any_chunk_size_gives_the_same_rows(source: SvmlightSource, rows: Any, size: int) -> None:
    X, y = rows
    start = len(y) - 200 * size if size < 10 else 0
    at = start
    for chunk in source.chunks(size, start):
        assert_same(chunk, (X[at : at + size], y[at : at + size]), at)
        at += chunk[0].shape[0]
    assert at == len(y)


def test_rows_in_any_order(source: SvmlightSource, rows: Any, seed: int) -> None:
    X, y = rows
    rng, n = np.random.default_rng(seed), len(y)
    blocks = rng.permutation(np.arange(0, n, BLOCK))
    for first in blocks:
        ids = np.arange(first, min(first + BLOCK, n))
        assert_same(source.read(ids), (X[ids], y[ids]), first)
    for size in (0, 1, 2, 50, 300):
        ids = rng.integers(n, size=size)  # with repetitions
        assert_same(source.read(ids), (X[ids], y[ids]), ids)
    ids = np.arange(n - 1, n - 200, -3)
    assert_same(source.read(ids), (X[ids], y[ids]), "backwards")


def test_threads_read_at_the_same_time(source: SvmlightSource, rows: Any) -> None:
    X, y = rows
    together = threading.Barrier(4)

    def read(thread: int) -> None:
        rng = np.random.default_rng(thread)
        together.wait()
        for _ in range(5):
            ids = int(rng.integers(len(y) - 300)) + np.arange(300)
            assert_same(source.read(ids), (X[ids], y[ids]), ids)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))


def test_a_pickled_source_reads_on(source: SvmlightSource, rows: Any) -> None:
    ids = np.arange(BLOCK - 5, BLOCK + 5)
    source.read(ids)
    copy = pickle.loads(pickle.dumps(source))
    assert copy._index is not None
    assert_same(copy.read(ids), (rows[0][ids], rows[1][ids]))
    assert copy.fingerprint() == source.fingerprint()


def test_an_index_is_taken_over(source: SvmlightSource, rows: Any) -> None:
    other = SvmlightSource(source.paths, zero_based=False, n_features=30, index=source.index)
    assert other.index is source.index
    ids = np.array([len(rows[1]) - 1])
    assert_same(other.read(ids), (rows[0][ids], rows[1][ids]))


@pytest.mark.parametrize("size", [1, 16, 100, 1000])
def test_rows_do_not_depend_on_the_buffer(
    size: int, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows[0][:300], rows[1][:300]
    write_svmlight(X, y, tmp_path / "rows.svm")
    with (tmp_path / "rows.svm").open("ab") as file:
        file.write(b"1 30:4")  # without a line end
    monkeypatch.setattr(_bytes, "SLICE", size)
    source = SvmlightSource(tmp_path / "rows.svm", zero_based=False)
    last = sp.csr_array(([4.0], ([0], [29])), shape=(1, 30), dtype=np.float32)
    expected = sp.csr_array(sp.vstack([X, last])), np.append(y, 1)
    assert_same(source.load(), expected)
    assert_same(source.read(np.arange(301)), expected)


@given(
    X=hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 6), st.integers(1, 5)),
        elements={"allow_nan": False, "allow_infinity": False},
    ),
    labels=st.sampled_from([(-1, 1), (0, 1, 2), (0.5, -2.25), (2**53, -(2**53))]),
    zero_based=st.booleans(),
    data=st.data(),
)
def test_what_is_written_is_read(X: Any, labels: Any, zero_based: bool, data: Any) -> None:
    y = np.array(data.draw(st.lists(st.sampled_from(labels), min_size=len(X), max_size=len(X))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.svm")
        write_svmlight(X, y, path, zero_based=zero_based)
        source = SvmlightSource(path, zero_based=zero_based, n_features=X.shape[1])
        expected = sp.csr_array(X), y
        assert_same(source.load(), expected)
        assert_same(source.read(range(len(X))), expected)
        np.testing.assert_array_equal(source.classes, np.unique(y))


def test_whether_files_are_zero_based_is_decided_once(tmp_path: Path) -> None:
    # Index 0 occurs in the last row of the second file only.
    first, second = tmp_path / "first.svm", tmp_path / "second.svm"
    first.write_text("1 1:1\n" * 5000)
    second.write_text("1 2:2\n-1 0:3\n")
    source = SvmlightSource([first, second], zero_based="auto")
    assert source.index.zero_based
    assert source.n_features == source.load()[0].shape[1] == 3
    np.testing.assert_array_equal(source.read([0])[0].toarray(), [[0, 1, 0]])
    np.testing.assert_array_equal(source.load()[0][[0, 5001]].toarray(), [[0, 1, 0], [3, 0, 0]])
    alone = SvmlightSource(first, zero_based="auto")
    assert not alone.index.zero_based
    np.testing.assert_array_equal(next(alone.chunks(2))[0].toarray(), [[1], [1]])
    np.testing.assert_array_equal(alone.load()[0][:2].toarray(), [[1], [1]])


def test_one_fractional_label_makes_all_of_them_floats(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n" * 5000 + "1.5 1:1\n")
    source = SvmlightSource(path, zero_based=False)
    assert source.classes.tolist() == [1.0, 1.5]
    for y in (source.read([0])[1], next(source.chunks(10))[1], source.load()[1]):
        assert y.dtype == np.float64


def test_the_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    X, y = generated(2000, 1)
    path, other = tmp_path / "rows.svm", tmp_path / "other.svm"
    write_svmlight(X, y, path)
    other.write_bytes(path.read_bytes())
    source = SvmlightSource(path, zero_based=False)
    assert source.fingerprint() == SvmlightSource(other, zero_based=False).fingerprint()
    assert source.fingerprint() != SvmlightSource(path, zero_based=True).fingerprint()
    text = other.read_bytes()
    for changed in (b"2" + text[1:], text[:-1] + b" ", text + b"\n"):
        other.write_bytes(changed)
        assert source.fingerprint() != SvmlightSource(other, zero_based=False).fingerprint()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_pipes_are_loaded(rows: Any, tmp_path: Path) -> None:
    write_svmlight(*rows, tmp_path / "rows.svm")
    content = gzip.compress((tmp_path / "rows.svm").read_bytes(), 1)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(content))
    writer.start()
    found = SvmlightSource(tmp_path / "pipe", zero_based=False, n_features=30).load()
    writer.join()
    assert_same(found, rows)


def test_models_learn_from_files(tmp_path: Path) -> None:
    X, y = generated(600, 2)
    write_svmlight(X, y, tmp_path / "rows.svm")
    new = OnlineSVC(C=2.0, gamma=0.5, random_state=0)
    source = SvmlightSource(tmp_path / "rows.svm", zero_based=False)
    learned = clone(new).learn_from(source).decision_function(X)
    in_memory: Any = Rows(X, y)
    in_memory.block, in_memory.random_access = source.block, True
    np.testing.assert_array_equal(learned, clone(new).learn_from(in_memory).decision_function(X))


@pytest.mark.skipif(sys.platform != "linux", reason="measures peak memory with /proc")
def test_passes_take_constant_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "rows.svm"
    with path.open("w") as file:
        for k in range(40):
            file.write(f"{k % 2} 1:0.25 3:{k} 700:1e-3\n" * 5000)
    tracemalloc.start()
    try:
        source = SvmlightSource(path, zero_based=False)
        assert len(source) == 200_000
        for X, y in source.chunks(1000):
            assert X.shape[0] == len(y) == 1000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20, f"{peak / 2**20:.1f} MB for a file of {path.stat().st_size >> 20} MB"
