"""Bad data: messages name the file, the line or row, the column, and what was expected."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from marginwise import OnlineSVC
from marginwise.data import (
    ArraySource,
    DataError,
    IteratorStream,
    StreamPipeline,
    TableEncoder,
    TableSource,
    TransformedSource,
    load_dataset,
    open_source,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
GOOD = "a,b,y\n1,x,0\n2,z,1\n3,x,0\n"


def use(source: Any) -> None:
    """Make the first pass, and read all rows."""
    _ = source.classes
    source.load()


def raises(message: str) -> Any:
    return pytest.raises(DataError, match=f"^{re.escape(message)}")


# -- text ----------------------------------------------------------------------------------------

CSV = {
    "more values": ("a,b,y\n1,x,0\n1,x,0,7\n", "{f}:3: expected 3 values as in the header, got 4."),
    "fewer values": (
        'a,b,y\n1,"p\nq",0\n\n1,0\n',
        "{f}:5: expected 3 values as in the header, got 2.",
    ),
    "names twice": (
        "a,b,a\n1,2,3\n",
        "{f}:1: the header has the name 'a' twice, in columns 1 and 3; expected distinct names.",
    ),
    "no header": ("1.5,b\n2.5,c\n", "{f}:1: the header has the number '1.5'; expected names"),
    "only a header": ("a,y\n", "{f}:1: the table has no rows; expected at least one."),
    "one column": (
        "a\n1\n2\n",
        "{f}:1: the table has one column, 'a'; expected features and a label",
    ),
    "one class": (
        "a,y\n1,s\n2,s\n",
        "{f}:1: column 'y' has the label 's' in all 2 rows; expected at",
    ),
    "no label": (
        "a,y\n1,s\n2,\n3,t\n",
        "{f}:3: column 'y': the label is missing; expected a class",
    ),
    "a number": (
        "a,y\n1,0\n2,1\n3,0.5\n",
        "{f}:4: column 'y': the label is the number 0.5; expected",
    ),
    "open quote": (
        GOOD + '3,"x,1\n4,x,0\n',
        "{f}:5: a quoted value begins in this line and does not",
    ),
    "infinity": (GOOD + "inf,x,1\n", "{f}:5: column 'a': inf is outside the range of float32"),
    "too large": (
        GOOD + "-1e39,x,1\n",
        "{f}:5: column 'a': -1e+39 is outside the range of float32",
    ),
    "no features": (
        "a,y\n1,0\n1,1\n",
        "{f}:1: the table has no column with features: 'a' is constant.",
    ),
    "old line ends": ("a,y\r1,2\r3,4\r", "{f}:1: the header cannot be read ("),
    "return": (GOOD + "3,x\rz,1\n", "{f}:5: expected 3 values as in the header, got 2."),
}


@pytest.mark.parametrize("case", CSV)
def test_bad_csv(case: str, tmp_path: Path) -> None:
    text, message = CSV[case]
    path = tmp_path / "x"
    path.write_bytes(text.encode())
    with raises(message.format(f=path)):
        use(open_source(path))


def test_csv_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(GOOD.encode() + "4,tim\xe9,1\n".encode("latin-1"))
    with raises(f"{path}:5: byte 6 of the line is not UTF-8 text; expected UTF-8."):
        use(open_source(path))
    path.write_bytes("a,tim\xe9,y\n1,2,3\n".encode("latin-1"))
    with raises(f"{path}:1: byte 6 of the header is not UTF-8 text"):
        use(open_source(path))
    path.write_bytes(GOOD.encode("utf-16"))
    with raises(f"{path}:1: the file is UTF-16 text, to be converted to UTF-8"):
        use(open_source(path))


def test_labels_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(GOOD)
    with raises(f"{path}:1: label column 'z' is missing; the data has 'a', 'b', 'y'."):
        open_source(path, label="z")
    encoder = open_source(path).encoder
    path.write_text("b,a\nx,1\n")
    with raises(f"{path}:1: expected the labels in the last column, but 'a' is a feature"):
        open_source(path, encoder=encoder)
    X, y = open_source(path, encoder=encoder, labelled=False).load()
    assert X.shape == (1, 3)
    assert y is None


def test_labels_outside_the_classes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(GOOD.replace(",1\n", ",2\n"))
    with raises(f"{path}:3: column 'y': the label 2 is not one of the classes [0, 1]."):
        open_source(path, classes=[0, 1]).load()
    path.write_text(GOOD.replace(",1\n", ",one\n"))
    with raises(f"{path}:3: column 'y': the label 'one' is not one of the classes [0, 1]."):
        open_source(path, classes=[0, 1]).load()


def test_values_that_the_encoder_did_not_see(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(GOOD)
    encoder = open_source(path, encoder=TableEncoder(unseen="error")).encoder
    path.write_text("a,b,y\n1,x,0\nmany,x,1\n")
    with raises(f"{path}:3: column 'a': expected a number, got 'many'."):
        open_source(path, encoder=encoder).load()
    path.write_text("a,b,y\n1,x,0\n2,other,1\n")
    with raises(f"{path}:3: column 'b': the category 'other' did not occur in fit."):
        open_source(path, encoder=encoder).load()
    encoder.unseen = "ignore"
    assert open_source(path, encoder=encoder).load()[0][1, 1:].tolist() == [0, 0]
    path.write_text("a,y\n1,0\n")
    with raises(f"{path}:1: column 'b' is missing; the data has 'a', 'y'."):
        open_source(path, encoder=encoder)


JSON = {
    "not JSON": ('{"a": 1, "y": 0}\n\n{"a": 2, "y": }\n', "{f}:3: the line is not JSON ("),
    "no object": (
        '{"a": 1, "y": 0}\n[1, 2]\n',
        "{f}:2: the line is a list; expected a JSON object",
    ),
    "mixed": (
        '{"a": 1, "y": 0}\n{"a": "x", "y": 0}\n',
        "{f}:2: column 'a': expected number as",
    ),
    "nested": (
        '{"a": {"b": 1}, "y": 0}\n',
        "{f}:1: column 'a': expected numbers, strings or lists",
    ),
    "vectors": (
        '{"a": [1, 2], "y": 0}\n{"a": [1], "y": 1}\n',
        "{f}:2: column 'a': the vector has 1 values; expected 2",
    ),
    "not UTF-8": (
        '{"a": "\xe9", "y": 0}\n',
        "{f}:1: byte 8 of the line is not UTF-8 text; expected",
    ),
    "half a character": (
        '{"a": "\\u00e9", "y": 0}\n{"a\\ud800": "x", "y": 0}\n',
        "{f}:2: the escape \\ud800 is half a character; expected",
    ),
    "no label": (
        '{"a": 1, "y": 0}\n{"a": 2}\n',
        "{f}:2: column 'y': the label is missing; expected",
    ),
    "no keys": ("{}\n{}\n", "{f}:1: the objects have no keys; expected columns."),
}


@pytest.mark.parametrize("case", JSON)
def test_bad_json_lines(case: str, tmp_path: Path) -> None:
    text, message = JSON[case]
    path = tmp_path / "x"
    path.write_bytes(text.encode("latin-1"))
    with raises(message.format(f=path)):
        use(open_source(path))


def test_keys_that_come_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marginwise.data.text_file.BLOCK_ROWS", 2)
    path = tmp_path / "x"
    path.write_text('{"a": 1, "y": 0}\n{"y": 1}\n{"a": 1, "z": 2, "y": 0}\n')
    with raises(f"{path}:3: the key 'z' did not occur in the first 2 rows; expected the same keys"):
        use(open_source(path))
    path.write_text('{"a": 1, "y": 0}\n{"a": 2, "y": 1}\n{"a": "x", "y": 0}\n')
    with raises(f"{path}:3: column 'a': the column is string here, but numeric before."):
        use(open_source(path))


@pytest.mark.parametrize("text", [GOOD * 400, '{"a": 1, "y": 0}\n{"a": 2, "y": 1}\n' * 400])
@pytest.mark.parametrize("codec", ["gz", "zst"])
def test_truncated_text(text: str, codec: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    text = text.replace("1", str(np.random.default_rng(0).random(2000).tolist()[:3])[1:5])
    whole = gzip.compress(text.encode()) if codec == "gz" else _zst(text.encode(), path)
    for size in (len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=rf"{path}:\d+: the compressed data is truncated or da"):
            use(open_source(path))


def _zst(data: bytes, path: Path) -> bytes:
    with pa.output_stream(str(path), compression="zstd") as file:
        file.write(data)
    return path.read_bytes()


# -- other files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_truncated_tables(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    table = pa.table({"a": np.arange(500.0) ** 2, "y": np.arange(500) % 2})
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
    whole = path.read_bytes()
    for size in (len(whole) - 3, len(whole) // 2, 10):
        path.write_bytes(whole[:size])
        with raises(f"{path}: the file is damaged or truncated ("):
            use(open_source(path))


def test_columns_of_no_use(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"s": [{"k": 1}, {"k": 2}], "x": [1.0, 2.0], "y": [0, 1]})
    pq.write_table(table, path)
    with raises(f"{path}: column 's' has the type struct<k: int64>; expected numbers, booleans"):
        use(open_source(path))
    dropped = open_source(path, encoder=TableEncoder(drop=["s"]))
    assert dropped.load()[0].shape == (2, 1)
    pq.write_table(table.select(["s", "y"]).rename_columns(["x", "y"]), path)
    pq.write_table(pa.table({"v": [[1.0], None], "y": [0, 1]}), path)
    with raises(f"{path}: row 1, column 'v': the vector is missing; expected one in every row."):
        use(open_source(path))
    pq.write_table(pa.table({"v": [1.0, 2.0], "y": [0, None]}), path)
    with raises(f"{path}: row 1, column 'y': the label is missing; expected a class"):
        use(open_source(path))
    pq.write_table(pa.table({"v": [1.0, 2.0], "y": [[0], [1]]}), path)
    with raises(
        f"{path}: row 0, column 'y': the label has the type list<element: int64>; expected"
    ):
        use(open_source(path))


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    one, other, third = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "3.csv"
    one.write_text(GOOD)
    other.write_text("a,c,y\n1,x,0\n")
    with raises(
        f"{other}:1: expected the columns of {one}; {one} has the column 'b', and {other} doe"
    ):
        open_source([one, other])
    third.write_text('{"a": 1, "b": "x", "y": 0}\n')
    with raises(f"{third}: the file is json, but {one} is csv; expected files of one kind."):
        open_source(str(tmp_path / "[13].csv"))
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    np.save(tmp_path / "b.npy", np.ones((3, 4)))
    with raises(f"{tmp_path / 'b.npy'}: expected 1 features as in {tmp_path / 'a.npy'}, got 3."):
        open_source([tmp_path / "a.npy", tmp_path / "b.npy"])


def test_files_of_unknown_kinds(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for content, message in {
        b"": "the file is empty; expected svmlight text, CSV",
        b"\x00\x01\x02abc": "the file is not text, and its format is unknown; expected",
        b"BZh91AY": "the file is compressed by bzip2; expected",
        b"SQLite format 3\0": "the file is an SQLite database; expected",
        b"\n\n": "the file is empty; expected a header and rows.",
    }.items():
        path.write_bytes(content)
        with raises(f"{path}:1: {message}"):
            open_source(path)
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "absent.csv")
    with pytest.raises(FileNotFoundError, match="no file matches; expected at least one"):
        open_source(tmp_path / "*.absent")
    (tmp_path / "folder").mkdir()
    with raises(f"{tmp_path / 'folder'}: the folder is empty; expected files."):
        open_source(tmp_path / "folder")
    with pytest.raises(TypeError, match="open_source cannot read int; expected a path"):
        open_source(42)


# -- arrays --------------------------------------------------------------------------------------


def saved(path: Path, **arrays: Any) -> Path:
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def test_bad_archives(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with raises(f"{path}: expected the array X or X_train, or the parts of a CSR matrix such as"):
        open_source(saved(path, A=np.eye(2)))
    with raises(f"{path}: the labels 'y' are missing; the file has 'X'."):
        open_source(saved(path, X=np.eye(2)))
    with raises(f"{path}: expected one label for each of the 2 rows, got labels of shape (3,)."):
        open_source(saved(path, X=np.eye(2), y=np.arange(3)))
    with raises(f"{path}: row 1: the label is 0.5; expected a class: a string or an integer."):
        open_source(saved(path, X=np.eye(2), y=[1.0, 0.5]))
    with raises(f"{path}: expected numbers, got values of type <U1."):
        open_source(saved(path, X=np.array([["a"]]), y=[1]))
    with raises(
        f"{path}: expected an array of rows with at least 1 column(s), got one of shape (3"
    ):
        open_source(saved(path, X=np.arange(3), y=np.arange(3)))
    with raises(f"{path}: the file is damaged or truncated (Object arrays cannot be loaded"):
        open_source(saved(path, X=np.array([[None]]), y=[1]))
    with raises(f"{path}: all 2 rows have the label [1]; expected at least two classes."):
        _ = open_source(saved(path, X=np.eye(2), y=[1, 1])).classes
    parts = {"X_data": [1.0], "X_indices": [7], "X_indptr": [0, 1], "X_shape": [1, 3], "y": [1]}
    with raises(f"{path}: the file is damaged or truncated ("):
        open_source(saved(path, **parts))
    whole = saved(path, X=np.eye(20), y=np.arange(20)).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with raises(f"{path}: the file is damaged or truncated ("):
        open_source(path)


def test_bad_arrays(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.eye(4))
    with raises(f"{path}: label column 4 is missing; the array has columns 0 to 3."):
        open_source(path, label=4)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with raises(f"{path}: the file is damaged or truncated ("):
        open_source(path)
    with pytest.raises(ValueError, match=r"ids\[1\] is 4, which is outside this source"):
        ArraySource(np.eye(4)).read([0, 4])
    with pytest.raises(DataError, match="X: row 1: the label is missing"):
        ArraySource(np.eye(2), np.array(["a", None], dtype=object))


# -- objects -------------------------------------------------------------------------------------


def test_bad_streams() -> None:
    X = np.eye(3)
    with raises("the stream: row 3: expected 3 features as before, got 2."):
        list(IteratorStream([(X, [0, 1, 0]), (X[:, :2], [0, 1, 0])]).chunks())
    with pytest.raises(TypeError, match="row 0: expected a tuple"):
        list(IteratorStream([7]).chunks())
    with raises("the stream: row 0: label column 'z' is missing; the data has 'a', 'y'."):
        list(IteratorStream([{"a": [1.0, 2.0], "y": [0, 1]}], label="z").chunks())
    tables = [{"a": [1.0, 2.0], "y": [0, 1]}, {"a": [1.0, 2.0], "y": [0, None]}]
    with raises("the stream: row 3, column 'y': the label is missing"):
        list(IteratorStream(tables).chunks())
    with pytest.raises(TypeError, match="needs a source with a length, got IteratorStream"):
        TransformedSource(IteratorStream([]), StandardScaler().fit(X))


def test_transformers_must_be_fitted() -> None:
    source = open_source((np.eye(3), [0, 1, 0]))
    with pytest.raises(NotFittedError):
        TransformedSource(source, StandardScaler())
    pipeline = StreamPipeline([("scale", StandardScaler()), ("svc", OnlineSVC())])
    with pytest.raises(NotFittedError):
        pipeline.partial_fit(np.eye(3), [0, 1, 0], classes=[0, 1])
    with pytest.raises(NotFittedError):
        pipeline.learn_from(source)
    with pytest.raises(TypeError, match="encoder must be a TableEncoder, 'auto', 'types' or None"):
        TableSource({"a": [1, 2], "y": [0, 1]}, encoder=StandardScaler())


ENCODER: dict[str, tuple[Callable[[], Any], str]] = {
    "unseen": (
        lambda: TableEncoder(unseen="x"),
        "unseen must be one of 'ignore', 'error', got 'x'",
    ),
    "number": (lambda: TableEncoder(max_categories=0), "max_categories must be an integer of at"),
    "name": (
        lambda: TableEncoder(drop="a"),
        "drop must be a list of column names or None, got 'a'",
    ),
    "absent": (lambda: TableEncoder(text=["z"]), "column 'z' is missing; the data has 'a', 'b'."),
    "twice": (
        lambda: TableEncoder(numeric=["a"], drop=["a"]),
        "column 'a' is declared as numeric and as dropped",
    ),
    "not a number": (
        lambda: TableEncoder(numeric=["b"]),
        "row 0, column 'b': expected a number, got 'x'.",
    ),
}


@pytest.mark.parametrize("case", ENCODER)
def test_bad_declarations(case: str) -> None:
    made, message = ENCODER[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        made().fit({"a": [1, 2], "b": ["x", "z"]})


def test_columns_that_change() -> None:
    encoder = TableEncoder().fit({"a": [1, 2], "b": ["x", "z"], "v": np.eye(2)})
    with pytest.raises(ValueError, match="column 'b' is missing; the data has 'a', 'v'"):
        encoder.transform({"a": [1], "v": np.eye(1)})
    with pytest.raises(ValueError, match="column 'v': the vector has 3 values; expected 2"):
        encoder.transform({"a": [1], "b": ["x"], "v": np.eye(3)[:1]})
    with pytest.raises(ValueError, match=r"row 0, column 'a': expected a number, got 'x'"):
        encoder.transform({"a": ["x"], "b": ["x"], "v": np.eye(2)[:1]})
    with pytest.raises(ValueError, match="column 'a' mixes values of several types"):
        encoder.transform({"a": [1, "x"], "b": ["x", "x"], "v": np.eye(2)})
    with pytest.raises(TypeError, match="expected a table with named columns"):
        encoder.transform(np.eye(2))
    with pytest.raises(NotFittedError):
        TableEncoder().transform({"a": [1]})
    assert encoder.transform({"v": np.eye(1, 2), "b": [None], "a": [1], "c": [3]}).shape == (1, 5)


def test_dates_are_not_numbers() -> None:
    dates = np.array(["2024-01-31", "2024-02-01"], "datetime64[us]")
    numbers = TableEncoder().fit({"a": [1, 2]})
    with pytest.raises(ValueError, match="column 'a' has dates; expected a number"):
        numbers.transform({"a": dates})
    with pytest.raises(ValueError, match="column 'a' has numbers; expected a date such as 2024"):
        TableEncoder().fit({"a": dates}).transform({"a": [1, 2]})
    with pytest.raises(ValueError, match="column 'a': the column is date here, but numeric before"):
        numbers.partial_fit({"a": dates})


def test_columns_that_are_dropped_are_named() -> None:
    names = [f"p{k}" for k in range(30)]
    with pytest.warns(
        UserWarning, match="column 'who' has too many distinct values to be categori"
    ):
        encoder = TableEncoder().fit({"who": names, "x": np.arange(30) % 7})
    assert encoder.kinds_ == ["identifier", "numeric"]
    with pytest.warns(UserWarning, match="column 'id' numbers the rows; it is dropped"):
        encoder = TableEncoder().fit({"id": np.arange(1, 31), "x": np.arange(30) % 7})
    assert encoder.get_feature_names_out().tolist() == ["x"]
    kept = TableEncoder(numeric=["id"], categorical=["who"]).fit(
        {"id": np.arange(30), "who": names}
    )
    assert kept.kinds_ == ["numeric", "categorical"]


# -- the catalogue -------------------------------------------------------------------------------


def test_data_sets_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARGINWISE_DATA", raising=False)
    with pytest.raises(
        ValueError, match="needs the folder of data sets: set MARGINWISE_DATA, pass"
    ):
        load_dataset("toy")
    saved(tmp_path / "toy.npz", X=np.eye(2), y=[0, 1])
    monkeypatch.setenv("MARGINWISE_DATA", str(tmp_path))
    assert load_dataset("toy").y_train.tolist() == [0, 1]
    with pytest.raises(FileNotFoundError, match="there is no data set 'joy'; the folder has toy"):
        load_dataset("joy")
    with pytest.raises(NotADirectoryError, match="expected a folder of data sets"):
        load_dataset("toy", data=tmp_path / "absent")
    with raises(
        f"{saved(tmp_path / 'bad.npz', A=np.eye(2))}: expected the array 'X'; the file has A"
    ):
        load_dataset("bad")


def test_chunks_that_do_not_exist(tmp_path: Path) -> None:
    text = tmp_path / "rows.csv"
    text.write_text(GOOD)
    svmlight = tmp_path / "rows.svm"
    svmlight.write_text("1 1:2\n-1 2:3\n1 1:1\n")
    parts = [tmp_path / "0.csv", tmp_path / "1.csv"]
    for part in parts:
        part.write_text(GOOD)
    sources: list[Any] = [
        ArraySource(np.eye(4), [0, 1, 0, 1]),
        open_source(text),
        open_source(svmlight),
        open_source(parts),
        IteratorStream([(np.eye(2), [0, 1])], classes=[0, 1]),
    ]
    sources.append(TransformedSource(sources[0], [StandardScaler().fit(np.eye(4))]))
    for source in sources:
        with pytest.raises(ValueError, match=r"^start must be an integer of at least 0, got -1\.$"):
            list(source.chunks(2, -1))
        with pytest.raises(ValueError, match=r"^rows must be an integer of at least 1, got 0\.$"):
            list(source.chunks(0))


def test_codes_of_levels_that_do_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "mixed.npz"
    codes = np.array([[0], [1], [-1]])
    np.savez(path, X_num=np.ones((3, 1)), X_cat=codes, color_levels=["red", "blue"], y=[0, 1, 0])
    with raises(f"{path}: row 2 of X_cat has the code -1 for color, whose levels have the codes"):
        load_dataset("mixed", data=tmp_path)


# -- labels of CSV files -------------------------------------------------------------------------

LABELS = {
    "integers": (["0", "1", "10"], [0, 1, 10]),
    "signs": (["+1", "-1"], [-1, 1]),
    "whole floats": (["1.0", "2.0"], [1, 2]),
    "leading zeros": (["01", "1", "02"], ["01", "02", "1"]),
    "one leading zero": (["10", "01"], ["01", "10"]),
    "one number in two forms": (["1", "1.0", "2"], ["1", "1.0", "2"]),
    "exponents": (["1e3", "2"], ["1e3", "2"]),
    "underscores": (["1_0", "2_0"], ["1_0", "2_0"]),
    "NA among names": (["NA", "x"], ["NA", "x"]),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_are_those_of_the_file(case: str, tmp_path: Path) -> None:
    given, expected = LABELS[case]
    path = tmp_path / "x.csv"
    rows = [f"{k},{label}" for k, label in enumerate(given * 2)]
    path.write_text("\n".join(["a,y", *rows]))
    source = open_source(path)
    assert source.classes.tolist() == expected
    assert [str(y) for y in source.load()[1].tolist()] == [
        label if label in expected else str(int(float(label))) for label in given * 2
    ]


def test_labels_that_are_missing_among_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,0\n2,1\n3,NA\n")
    with raises(f"{path}:4: column 'y': the label is 'NA', but all other labels are numbers"):
        use(open_source(path))
    path.write_text("a,y\n1,01\n2,0.5\n")
    with raises(f"{path}:3: column 'y': the label is the number 0.5"):
        use(open_source(path))


def test_labels_in_another_form_are_not_the_classes_of_a_model(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,1.0\n2,01\n")
    with raises(f"{path}:3: column 'y': the label '01' is not one of the classes [0, 1]"):
        open_source(path, classes=[0, 1]).load()
    path.write_text("a,y\n1,01\n2,1\n")
    with raises(f"{path}:3: column 'y': the label '1' is not one of the classes ['01', '02']"):
        open_source(path, classes=["01", "02"]).load()
