"""Tables of numbers are encoded together as they are column by column, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise import OnlineSVC, save
from marginwise.cli import main
from marginwise.data import TableEncoder
from marginwise.data.matrix import ROWS, ColumnMatrix

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from tests.support import runner  # noqa: E402


def numbers(n: int, seed: int) -> dict[str, Any]:
    """Return columns of all types of numbers, some with missing values."""
    rng = np.random.default_rng(seed)
    holes = rng.random(n) < 0.1
    return {
        "single": pa.array(rng.normal(3, 2, n).astype(np.float32)),
        "double": pa.array(rng.normal(size=n) * 1e9),
        "small": pa.array(rng.integers(-5, 100, n).astype(np.int8)),
        "large": pa.array(rng.integers(-(2**62), 2**62, n)),
        "unsigned": pa.array(rng.integers(0, 2**63, n).astype(np.uint64) * 2),
        "half": pa.array(rng.normal(size=n).astype(np.float16)),
        "null": pa.array(rng.normal(size=n), mask=holes),
        "null integer": pa.array(rng.integers(0, 9, n), mask=~holes),
        "nan": pa.array(np.where(holes, np.nan, rng.normal(size=n))),
    }


def by_column(encoder: TableEncoder, table: Any) -> np.ndarray:
    return np.ascontiguousarray(np.hstack(encoder._parts(table)), dtype=np.float32)


@pytest.mark.parametrize("n", [1, 7, ROWS, 2 * ROWS + 5])
@pytest.mark.parametrize("scale", [True, False])
def test_columns_together_are_columns_one_by_one(n: int, scale: bool, seed: int) -> None:
    columns = numbers(3000, seed)
    encoder = TableEncoder(numeric=list(columns), scale=scale).fit(pa.table(columns))
    table = pa.table(numbers(n, seed + 1))
    chunked = pa.concat_tables([table.slice(0, n // 3), table.slice(n // 3)])
    for some in (table, chunked, table.slice(n // 2)):
        together = encoder._all_numbers(some)
        assert together is not None
        assert together.flags.c_contiguous
        assert together.dtype == np.float32
        assert np.array_equal(together, by_column(encoder, some))
        assert np.array_equal(together, encoder.transform(some))


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_a_value_out_of_range_is_found_where_it_is(value: float) -> None:
    table = pa.table({"a": np.arange(5.0), "b": np.arange(5.0)})
    encoder = TableEncoder().fit(table)
    bad = pa.table({"a": np.arange(5.0), "b": [0.0, 1.0, 2.0, value, 4.0]})
    assert encoder._all_numbers(bad) is None
    with pytest.raises(ValueError, match="row 3, column 'b'"):
        encoder.transform(bad)


def test_other_tables_are_encoded_column_by_column() -> None:
    encoder = TableEncoder().fit({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    assert encoder._all_numbers(pa.table({"a": [1.0], "b": ["x"]})) is None
    plain = TableEncoder().fit({"a": [1.0, 2.0, 3.0]})
    assert plain._all_numbers(pa.table({"a": ["2"]})) is None
    with pytest.raises(ValueError, match="column 'a' is missing"):
        plain.transform({"b": [1.0]})


def test_the_precision_of_a_matrix() -> None:
    single = pa.table({"a": pa.array([1.5, 2.5], pa.float32()), "b": pa.array([1, 2], pa.int16())})
    assert ColumnMatrix(["b", "a"], finite=True).transform(single).dtype == np.float32
    assert ColumnMatrix(["b", "a"], finite=True).transform(single).tolist() == [[1, 1.5], [2, 2.5]]
    double = pa.table({"a": [0.1], "b": [True]})
    assert ColumnMatrix(["a", "b"], finite=True).transform(double).tolist() == [[0.1, 1.0]]
    with pytest.raises(ValueError, match="column 'a' has the type string"):
        ColumnMatrix(["a"], finite=True).transform(pa.table({"a": ["1"]}))
    with pytest.raises(ValueError, match="row 1, column 'a': the value is missing"):
        ColumnMatrix(["a"], finite=True).transform(pa.table({"a": [1.0, None]}))


def test_commands_read_tables_for_models_of_data_frames(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(150, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    model = OnlineSVC(gamma=0.5).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    save(model, tmp_path / "m.mwz")
    path = tmp_path / "d.parquet"
    parquet.write_table(pa.table({"b": X[:, 1], "label": y, "a": X[:, 0]}), path)
    done = runner().invoke(main, ["predict", "-q", str(tmp_path / "m.mwz"), str(path)])
    assert done.exit_code == 0, done.output
    assert done.output.split() == model.predict(pd.DataFrame(X, columns=["a", "b"])).tolist()
    done = runner().invoke(main, ["test", "-q", str(tmp_path / "m.mwz"), str(path)])
    assert done.exit_code == 0, done.output
    assert "of 150 rows" in done.output
