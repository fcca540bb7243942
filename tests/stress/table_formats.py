"""Formats of tables and arrays for the attack on data files: `text_files` reads changed ones."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow import feather, parquet

from marginwise.data import DataError, open_source

LEVELS = ("red", "blue", 'the "old" one', "a, b", "two\nlines", "é")


def table_of(rng: np.random.Generator) -> dict[str, list[Any]]:
    """A few rows with columns of all kinds."""
    n = int(rng.integers(3, 40))
    words = [" ".join(rng.choice([f"w{k}" for k in range(20)], 4)) for _ in range(n)]
    return {
        "size": [None if rng.random() < 0.1 else float(x) for x in rng.normal(size=n).round(3)],
        "count": rng.integers(0, 5, n).tolist(),
        "color": rng.choice(LEVELS, n).tolist(),
        "when": [f"2024-01-{day:02d}" for day in rng.integers(1, 29, n).tolist()],
        "note": words,
        "y": ["yes", "no", *rng.choice(["yes", "no"], n - 2).tolist()],
    }


def csv_file(rng: np.random.Generator) -> bytes:
    """Return the table as CSV."""
    table, out = table_of(rng), io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=rng.choice(["\n", "\r\n"]))
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return out.getvalue().encode()


def json_file(rng: np.random.Generator) -> bytes:
    """Return the table as JSON lines, with vectors."""
    table = table_of(rng)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    lines = [json.dumps(row | {"v": rng.normal(size=2).tolist()}) for row in rows]
    return ("\n".join(lines) + "\n").encode()


def parquet_file(rng: np.random.Generator) -> bytes:
    """Return the table as Parquet, in several row groups."""
    out = io.BytesIO()
    codec = rng.choice(["snappy", "none", "zstd"])
    parquet.write_table(pa.table(table_of(rng)), out, row_group_size=10, compression=codec)
    return out.getvalue()


def arrow_file(rng: np.random.Generator) -> bytes:
    """Return the table as an Arrow file."""
    out = io.BytesIO()
    codec = rng.choice(["lz4", "uncompressed"])
    feather.write_feather(pa.table(table_of(rng)), out, compression=codec, chunksize=10)
    return out.getvalue()


def npz_file(rng: np.random.Generator) -> bytes:
    """Return dense or sparse arrays, with or without compression."""
    X, out = rng.normal(size=(12, 3)), io.BytesIO()
    csr = sp.csr_array(X)
    sparse = {"X_data": csr.data, "X_indices": csr.indices, "X_indptr": csr.indptr}
    arrays = {"X": X} if rng.random() < 0.5 else sparse | {"X_shape": csr.shape}
    write = np.savez if rng.random() < 0.5 else np.savez_compressed
    write(out, **arrays, y=np.arange(12) % 3)
    return out.getvalue()


def npy_file(rng: np.random.Generator) -> bytes:
    """Return an array with labels in its last column."""
    out = io.BytesIO()
    np.save(out, np.c_[rng.normal(size=(12, 3)), np.arange(12) % 2])
    return out.getvalue()


def read_any(path: Path) -> None:
    """Open a file, and read it as a whole, by ids and in chunks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that became identifiers
        source = open_source(path)
        _ = source.classes
        X, y = source.load()
        n = len(source)
        assert X.shape == (n, source.n_features)
        assert len(y) == n > 0
        assert np.isin(y, source.classes).all()
        backwards = np.arange(n)[::-1]
        assert_same((X, y), _turned(source.read(backwards)))
        assert_same((X, y), _joined(list(source.chunks(7))))


def _turned(rows: tuple[Any, Any]) -> tuple[Any, Any]:
    return rows[0][::-1], rows[1][::-1]


def _joined(chunks: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    parts = [X for X, _ in chunks]
    X = sp.vstack(parts).tocsr() if sp.issparse(parts[0]) else np.concatenate(parts)
    return X, np.concatenate([y for _, y in chunks])


def assert_same(one: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    (X, y), (Z, labels) = one, other
    np.testing.assert_array_equal(_dense(X), _dense(Z))
    assert y.tolist() == labels.tolist()


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def names_place(error: Exception, path: Path) -> bool:
    """Whether a DataError begins with the file, and the line if the file is text."""
    pattern = rf"{re.escape(str(path))}(:[1-9]\d*)?: \S.*\.$"
    return isinstance(error, DataError) and re.match(pattern, str(error), re.DOTALL) is not None


TABLE_WORDS = (
    *(b",", b'"', b'""', b",,", b";", b"\n,", b'"\n', b"size", b"y", b"x" * 50, b"n/a", b"#"),
    *(b"{", b"}", b"[", b"]", b":", b'"y": null', b'{"y": "no"}\n', b"[1, 2]", b"null", b"\\u00e9"),
    *(b"2024-02-30", b"1 1:1\n", b"PAR1", b"ARROW1", b"\x93NUMPY", b"\\ud800", b"1e999", b"\xc3"),
)
WRITERS: dict[str, Callable[[np.random.Generator], bytes]] = {
    "csv": csv_file,
    "json lines": json_file,
    "parquet": parquet_file,
    "arrow": arrow_file,
    "npz": npz_file,
    "npy": npy_file,
}
