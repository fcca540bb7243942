"""How rows are cut into blocks, chunks and files changes neither the rows nor the encoder."""

from __future__ import annotations

import csv
import io
import json
import pickle
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

from marginwise.data import ArraySource, TableEncoder, TableSource, TransformedSource, open_source
from tests.oracle.test_data_oracle import KINDS, dense, frame, written

pa = pytest.importorskip("pyarrow")
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


def test_encoders_are_cloned_without_what_they_learned() -> None:
    encoder = TableEncoder(drop=["note"], max_categories=7).fit(frame(50))
    copy = clone(encoder)
    assert copy.get_params() == encoder.get_params()
    assert not hasattr(copy, "kinds_")
