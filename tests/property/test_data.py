"""How rows are cut into blocks, chunks and files changes neither the rows nor the encoder."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from marginwise import OnlineSVC
from marginwise.data import (
    ArraySource,
    DataError,
    TableEncoder,
    TableSource,
    TransformedSource,
    open_source,
)
from marginwise.data.array_files import PIECE
from tests.oracle.test_data_oracle import KINDS, dense, frame, written
from tests.support import assert_untouched, blobs

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
within_test = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
CELLS = st.text(st.sampled_from('ab,"\n\r ;é'), max_size=6)


def cut(n: int, sizes: list[int]) -> list[slice]:
    """Slices of these sizes, again and again, over n rows."""
    ends = [0]
    while ends[-1] < n:
        ends.append(ends[-1] + sizes[len(ends) % len(sizes)])
    return [slice(a, b) for a, b in pairwise(ends)]


def assert_same_encoder(one: TableEncoder, other: TableEncoder) -> None:
    assert one.kinds_ == other.kinds_
    assert one.categories_ == other.categories_
    assert one.missing_ == other.missing_
    assert one.sparse_ == other.sparse_
    np.testing.assert_allclose(one.mean_, other.mean_, rtol=1e-12)
    np.testing.assert_allclose(one.scale_, other.scale_, rtol=1e-12)
    for a, b in zip(one.vectorizers_, other.vectorizers_, strict=True):
        assert a.vocabulary_ == b.vocabulary_
        np.testing.assert_array_equal(a.idf_, b.idf_)


@given(sizes=st.lists(st.integers(5, 90), min_size=1, max_size=4), most=st.integers(5, 300))
def test_any_chunks_fit_the_same_encoder(sizes: list[int], most: int) -> None:
    table = pa.Table.from_pandas(frame(200).drop(columns="label"))
    whole = TableEncoder(max_categories=most).fit(table)
    parts = TableEncoder(max_categories=most)
    for rows in cut(200, sizes):
        parts.partial_fit(table[rows])
    assert_same_encoder(whole, parts)
    np.testing.assert_allclose(
        dense(whole.transform(table)), dense(parts.transform(table)), atol=1e-6
    )


@pytest.mark.parametrize("first", [0, 1])
def test_columns_without_values_at_first_are_filled(first: int) -> None:
    halves = [{"a": [None, None], "b": [1.0, 2.0]}, {"a": ["x", "y"], "b": [3.0, 5.0]}]
    parts = TableEncoder()
    for half in (halves[first], halves[1 - first]):
        parts.partial_fit(half)
    whole = TableEncoder().fit({"a": [None, None, "x", "y"], "b": [1.0, 2.0, 3.0, 5.0]})
    assert_same_encoder(whole, parts)
    assert parts.missing_ == [True]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@within_test
@given(rows=st.integers(1, 400), start=st.integers(0, 260))
def test_any_chunks_hold_the_same_rows(kind: str, rows: int, start: int, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}.data"
    if not path.exists():
        written(frame(250), kind, tmp_path)
    source = open_source(path, encoder=None)
    table, y = source.load()
    chunks = list(source.chunks(rows, start))
    assert [len(labels) for _, labels in chunks[:-1]] == [rows] * (len(chunks) - 1)
    joined = [row for X, _ in chunks for row in X.to_pylist()]
    assert joined == table.to_pylist()[start:]
    assert [label for _, labels in chunks for label in labels] == y[start:].tolist()


@within_test
@given(
    cells=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=40),
    end=st.sampled_from(["\n", "\r\n"]),
    block=st.integers(1, 8),
    piece=st.integers(1, 40),
)
def test_any_csv_text_is_cut_between_rows(
    cells: list[tuple[str, str]],
    end: str,
    block: int,
    piece: int,
    tmp_path: Path,
) -> None:
    """Rows are those of the csv module, wherever reading was interrupted."""
    out = io.StringIO(newline="")
    returns = any("\r" in cell for pair in cells for cell in pair)  # which need quotes
    writer = csv.writer(
        out, lineterminator=end, quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
    )
    writer.writerow(["a", "b", "y"])
    writer.writerows([a, b, k % 2] for k, (a, b) in enumerate(cells))
    path = tmp_path / "x.csv"
    path.write_bytes(out.getvalue().encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("marginwise.data.text_file.BLOCK_ROWS", block)
        patch.setattr("marginwise.data.text_file.PIECE", piece)
        source = TableSource(path, encoder=None)
        table, y = source.load()
        assert source.block == block
        backwards, _ = source.read(np.arange(len(cells))[::-1])
    expected = [tuple(cell.strip() or None for cell in pair) for pair in cells]
    assert list(zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True)) == expected
    assert y.tolist() == [k % 2 for k in range(len(cells))]
    assert backwards.to_pylist() == table.to_pylist()[::-1]


@within_test
@given(
    values=st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=30),
    piece=st.integers(1, 30),
)
def test_any_json_text_is_cut_between_rows(values: list[Any], piece: int, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    values = [None if v is None else v.encode("utf-8", "ignore").decode() for v in values]
    lines = [json.dumps({"v": v, "y": k}, ensure_ascii=k % 2 == 0) for k, v in enumerate(values)]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("marginwise.data.text_file.PIECE", piece)
        patch.setattr("marginwise.data.text_file.BLOCK_ROWS", 3)
        table, y = TableSource(path, encoder=None, label="y").load()
    assert table["v"].to_pylist() == values
    assert y.tolist() == list(range(len(values)))


@given(ids=st.lists(st.integers(0, 29), min_size=1, max_size=50))
def test_rows_are_read_in_the_order_asked(ids: list[int]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(2, size=30)
    scaler = StandardScaler(with_mean=False).fit(X)
    source = TransformedSource(ArraySource(sp.csr_array(X), y), [scaler])
    some, labels = source.read(np.array(ids, dtype=np.int64))
    np.testing.assert_allclose(some.toarray(), (X / X.std(axis=0))[ids])
    assert labels.tolist() == y[ids].tolist()
    table = TableSource({"a": X[:, 0], "b": X[:, 1], "y": y}, encoder=TableEncoder(scale=False))
    np.testing.assert_array_equal(table.read(np.array(ids, dtype=np.int64))[0], X[ids].astype("f4"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_fingerprint_changes_with_the_content(kind: str, tmp_path: Path) -> None:
    for k in (1, 2, 3):
        (tmp_path / str(k)).mkdir()
    same, again = (open_source(written(frame(80), kind, tmp_path / k)) for k in "12")
    changed = frame(80)
    changed.loc[40, "count"] = 8 - changed.loc[40, "count"]
    other = open_source(written(changed, kind, tmp_path / "3"))
    assert same.fingerprint() == again.fingerprint()
    assert same.fingerprint() != other.fingerprint()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sources_are_pickled_and_read_by_several_threads(kind: str, tmp_path: Path) -> None:
    source = open_source(written(frame(250), kind, tmp_path))
    X, y = source.load()
    source.read(np.array([200, 3]))
    copy = pickle.loads(pickle.dumps(source))
    rng = np.random.default_rng(0)
    asked = [rng.permutation(250)[:60] for _ in range(16)]
    with ThreadPoolExecutor(4) as pool:
        for ids, (some, labels) in zip(asked, pool.map(copy.read, asked), strict=True):
            np.testing.assert_array_equal(dense(some), dense(X)[ids])
            assert labels.tolist() == y[ids].tolist()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "json", "parquet", "arrow", "arrow stream"])
def test_threads_may_be_the_first_readers_of_a_source(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, scans, conclude = stored(kind, tmp_path), [], TableSource._conclude
    X, y = open_source(path).load()
    source, ids, start = open_source(path), np.array([200, 3, 77]), threading.Barrier(4)

    def counted(source: TableSource, profile: Any) -> None:
        scans.append(profile)
        conclude(source, profile)

    def first(_: int) -> Any:
        start.wait()
        return source.read(ids)

    monkeypatch.setattr(TableSource, "_conclude", counted)
    with ThreadPoolExecutor(4) as pool:
        for some, labels in pool.map(first, range(4)):
            np.testing.assert_array_equal(dense(some), dense(X)[ids])
            assert labels.tolist() == y[ids].tolist()
    assert len(scans) == 1


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", ["csv.gz", "arrow stream"])
def test_reads_after_an_interruption(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if rows can only be read forwards."""
    source = open_source(stored(kind, tmp_path))
    X, _ = source.load()
    source.read(np.array([3]))

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("marginwise.data.text_file.TextFile._block", interrupt)
        patch.setattr("marginwise.data.arrow_file.ArrowTable._block", interrupt)
        with pytest.raises(KeyboardInterrupt):
            source.read(np.array([249]))
    np.testing.assert_array_equal(dense(source.read(np.array([249]))[0]), dense(X)[[249]])


def test_encoders_are_cloned_without_what_they_learned() -> None:
    encoder = TableEncoder(drop=["note"], max_categories=7).fit(frame(50))
    copy = clone(encoder)
    assert copy.get_params() == encoder.get_params()
    assert not hasattr(copy, "kinds_")


# -- arrays in files -----------------------------------------------------------------------------


@within_test
@given(
    dtype=st.sampled_from(["f4", ">f8", "i2", "?"]),
    fortran=st.booleans(),
    form=st.sampled_from(["npy", "npz"]),
    label=st.sampled_from([None, 0, 1, -1]),
    ids=st.lists(st.integers(0, 199), max_size=60),
    piece=st.sampled_from([1, 100, 1000, PIECE]),
    gap=st.sampled_from([0, 50, 400]),
)
def test_arrays_in_files_are_read_as_they_are(
    dtype: str,
    fortran: bool,
    form: str,
    label: int | None,
    ids: list[int],
    piece: int,
    gap: int,
    tmp_path: Path,
) -> None:
    """Rows are those of the array, whatever is read at once."""
    stored = (np.random.default_rng(0).normal(size=(200, 5)) * 9).round().astype(dtype)
    stored = np.asarray(stored, order="F" if fortran else "C")
    label = label if form == "npy" else None
    (np.save if form == "npy" else save_archive)(tmp_path / f"x.{form}", stored)
    source = ArraySource(tmp_path / f"x.{form}", label, labelled=label is not None)
    X = stored if label is None else np.delete(stored, label, axis=1)
    assert source.block == (None if label == 1 else 4096)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("marginwise.data.array_files.PIECE", piece)
        patch.setattr("marginwise.data.array_files.GAP", gap)
        some, labels = source.read(np.array(ids, dtype=np.int64))
        chunks = [rows for rows, _ in source.chunks(70, 30)]
        whole = source.load()[0]
    parts = [(chunk, X[k : k + 70]) for chunk, k in zip(chunks, (30, 100, 170), strict=True)]
    for found, expected in ((some, X[ids]), (whole, X), *parts):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == stored.dtype
        assert found.flags.writeable
    if label is not None:
        np.testing.assert_array_equal(labels, stored[ids, label])


def save_archive(path: Path, X: Any) -> None:
    np.savez(path, X=X)


def test_memory_maps_of_users_stay_maps(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(9))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    source = ArraySource(mapped)
    assert source._X is mapped
    assert source.block == 4096


# -- files that change ---------------------------------------------------------------------------

MANY = [*KINDS, "parquet large", "json", "svmlight", "svmlight.gz", "npy", "npy fortran", "npz"]


def stored(kind: str, folder: Path) -> Path:
    """Write 250 rows as a file of a kind, in several blocks if the format has blocks."""
    data, path = frame(250), folder / f"{kind}.data"
    rows = np.c_[np.random.default_rng(0).normal(size=(250, 3)), np.arange(250) % 2]
    if kind == "json":
        return written(data.drop(columns="joined"), kind, folder)
    if kind == "arrow":
        feather.write_feather(data, str(path), chunksize=70)
    elif kind.startswith("svmlight"):
        with gzip.open(path, "wt") if kind.endswith("gz") else path.open("w") as file:
            file.writelines(f"{row[3]:g} 1:{row[0]} 2:{row[1]}\n" for row in rows)
    elif kind.startswith("npy"):
        with path.open("wb") as out:
            np.save(out, np.asarray(rows, order="F" if kind.endswith("fortran") else "C"))
    elif kind == "npz":
        with path.open("wb") as out:
            np.savez(out, X=rows[:, :3], y=rows[:, 3])
    else:
        return written(data, kind, folder)
    return path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, so that small files have several."""
    monkeypatch.setattr("marginwise.data.text_file.BLOCK_ROWS", 64)
    monkeypatch.setattr("marginwise.data.text_file.PIECE", 2000)
    monkeypatch.setattr("marginwise.data.arrow_file.BLOCK_ROWS", 64)
    monkeypatch.setattr("marginwise.data._bytes.SLICE", 2000)


def change(path: Path, how: str) -> None:
    """Change a file, which keeps its size unless rows are appended or it is truncated."""
    content, status = path.read_bytes(), path.stat()
    if how == "replaced":
        path.with_suffix(".new").write_bytes(content)
        os.utime(path.with_suffix(".new"), ns=(status.st_atime_ns, status.st_mtime_ns))
        path.with_suffix(".new").replace(path)
    elif how == "modified":
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    elif how == "deleted":
        path.unlink()
    else:
        with path.open("r+b") as file:
            file.truncate(len(content) // 2 if how == "truncated" else len(content) + 5)


CHANGES = {
    "replaced": "another file has replaced it; expected the same content until all rows are read",
    "modified": r"its size is the same, but its modification time differs by \+0.001 s; expected",
    "deleted": "it no longer exists; expected the same content",
    "truncated": "its size was",
    "appended": "its size was",
}


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize("how", ["replaced", "modified", "appended", "deleted"])
def test_files_that_change_while_they_are_read(kind: str, how: str, tmp_path: Path) -> None:
    path = stored(kind, tmp_path)
    source = open_source(path)
    assert source.classes is not None
    source.read(np.array([3]))
    chunks = source.chunks(64)
    next(chunks)
    change(path, how)
    message = f"(?s)^{path}: the file has changed since it was opened: {CHANGES[how]}"
    uses = [lambda: list(chunks), lambda: source.read(np.array([249])), source.load]
    for use in (*uses, lambda: source.read(np.array([3]))):
        with pytest.raises(DataError, match=message):
            use()
    if how in ("replaced", "modified"):
        assert len(open_source(path)) == 250


TRUNCATION = """
import sys
from pathlib import Path
import numpy as np
from marginwise.data import DataError, _bytes, arrow_file, open_source, text_file
from tests.property.test_data import change, stored
text_file.BLOCK_ROWS = arrow_file.BLOCK_ROWS = 64
text_file.PIECE = _bytes.SLICE = 2000
for kind in sys.argv[2:]:
    path = stored(kind, Path(sys.argv[1]))
    source = open_source(path)
    source.classes
    chunks = source.chunks(64)
    next(chunks)
    change(path, "truncated")
    for use in (lambda: list(chunks), lambda: source.read(np.array([249])), source.load):
        try:
            use()
        except DataError as error:
            assert str(path) in str(error) and "its size was" in str(error), error
        else:
            raise AssertionError(kind)
"""


@pytest.mark.slow
def test_truncated_files_raise_errors(tmp_path: Path) -> None:
    """In another process, because a memory map would end it by SIGBUS."""
    run = [sys.executable, "-c", TRUNCATION, str(tmp_path), *MANY]
    subprocess.run(run, check=True, timeout=120, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize("how", ["replaced", "modified", "appended", "deleted"])
def test_models_stay_as_they_were_if_a_file_changes(how: str, tmp_path: Path) -> None:
    X, y = blobs(40_000, 0, classes=2)
    np.save(tmp_path / "x.npy", np.c_[X, y].astype("f4"))
    model = OnlineSVC(C=1, gamma=0.5, random_state=0).fit(X[:50], y[:50])
    source, before = (
        open_source(tmp_path / "x.npy"),
        pickle.loads(pickle.dumps(model)).__getstate__(),
    )

    def meddle(*_: Any) -> None:
        change(tmp_path / "x.npy", how)

    for _ in range(2):
        with pytest.raises(DataError, match=f"has changed since it was opened: {CHANGES[how]}"):
            model.learn_from(source, callback=meddle)
    assert_untouched(before, model, how)


@pytest.mark.parametrize("kind", MANY)
def test_pickled_sources_read_copies_of_their_files(kind: str, tmp_path: Path) -> None:
    """A copy on another machine has another inode and another modification time."""
    path = stored(kind, tmp_path)
    source = open_source(path)
    X, y = source.load()
    data = pickle.dumps(source)
    change(path, "replaced")
    os.utime(path)
    copy = pickle.loads(data)
    some, labels = copy.read(np.array([200, 3]))
    np.testing.assert_array_equal(dense(some), dense(X)[[200, 3]])
    assert labels.tolist() == y[[200, 3]].tolist()
    change(path, "modified")
    with pytest.raises(DataError, match="since it was opened: its size is the same"):
        copy.read(np.array([3]))


@pytest.mark.parametrize("kind", MANY)
def test_pickled_sources_refuse_files_of_other_sizes(kind: str, tmp_path: Path) -> None:
    """Of which they would read other rows, or none, at the positions that they recorded."""
    path = stored(kind, tmp_path)
    source = open_source(path)
    source.read(np.array([3]))
    copy = pickle.loads(pickle.dumps(source))
    change(path, "appended")
    for use in (lambda: copy.read(np.array([3])), copy.load, lambda: list(copy.chunks())):
        with pytest.raises(DataError, match=f"^{path}: the file has changed .* its size was"):
            use()


def test_pickled_sources_refuse_other_arrays(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((50, 4)))
    data = pickle.dumps(open_source(path, labelled=False))
    np.save(path, np.ones((50, 4), dtype=">f8"))
    with pytest.raises(DataError, match=f"{path}: the array has another shape or type than when"):
        pickle.loads(data).read(np.array([3]))
    np.save(path, np.ones((50, 4)))
    copy = pickle.loads(data)
    copy.read(np.array([3]))
    os.truncate(path, 1000)
    copy._X._identity = type(copy._X._identity)(path)  # as if it had been short before
    with pytest.raises(DataError, match=rf"{path}: row 27: the file ends at byte 1,000; expected"):
        copy.load()
