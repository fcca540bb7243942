"""Bad svmlight files and arguments: errors that name the file, the line and what was expected."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise.data import DataError, SvmlightSource, _bytes, write_svmlight

GOOD = "# header\n1 1:1 2:2\n\n-1 3:1\n"
BAD = {
    "x 1:1": "column 1: expected a number as label, got 'x'; a row is written as label index:value",
    "nan 1:1": "column 1: expected a number as label, got 'nan'",
    "inf 1:1": "column 1: expected a number as label, got 'inf'",
    "1e400 1:1": "column 1: the label '1e400' is too large",
    "3:1 4:2": "column 1: expected a label, got '3:1'; each row begins with its label",
    "1,2 4:2": "column 1: expected one label, got '1,2'; rows with several labels",
    "1 0:1": "column 3: index 0 in a one-based file; expected 1 or more. Pass zero_based=True",
    "1 2:1 2:1": "column 7: index 2 follows 2; expected ascending indices",
    "1 3:1 2:1": "column 7: index 2 follows 3; expected ascending indices",
    "1 2147483648:1": "column 3: the index in '2147483648:1' is too large",
    "1 785:1": "column 3: index 785 is beyond n_features=784; expected at most 784",
    "1 a:1": "column 3: expected index:value, got 'a:1'",
    "1 -1:1": "column 3: expected index:value, got '-1:1'",
    "1 1.5:1": "column 4: expected ':' after the index in '1.5:1'",
    "1 12": "column 5: expected ':' after the index in '12'",
    "1 1:1 2:": "column 9: expected a finite number as value, got ''",
    "1 1:x": "column 5: expected a finite number as value, got 'x'",
    "1 1:nan": "column 5: expected a finite number as value, got 'nan'; leave features out",
    "1 1:-inf": "column 5: expected a finite number as value, got '-inf'",
    "1 1:1e39": "column 5: the value '1e39' is outside the range of float32",
    "1 1:0x10": "column 5: expected a finite number as value, got '0x10'",
    "1 1:1;2:2": "column 5: expected a finite number as value, got '1;2:2'",
    "1 qid:a 1:1": "column 3: expected an integer as query id, got 'qid:a'",
    "a,b\xe9c": "column 1: expected a number as label, got 'a,b\\xe9c'",
}


def written(folder: Path, content: str | bytes, name: str = "rows.svm") -> Path:
    path = folder / name
    path.write_bytes(content.encode("latin-1") if isinstance(content, str) else content)
    return path


def read_all(source: SvmlightSource) -> None:
    source.read(np.arange(len(source)))


def read_chunks(source: SvmlightSource) -> None:
    for _ in source.chunks(1):
        pass


@pytest.mark.parametrize("read", [SvmlightSource.load, read_all, read_chunks])
@pytest.mark.parametrize("line", BAD)
def test_errors_name_file_and_line(line: str, read: Any, tmp_path: Path) -> None:
    for content in (GOOD + line + "\n1 1:1\n", GOOD + line):
        path = written(tmp_path, content)
        with pytest.raises(DataError) as caught:
            read(SvmlightSource(path, zero_based=False, n_features=784))
        assert str(caught.value).startswith(f"{path}:5: {BAD[line]}")
        assert str(caught.value).endswith(".")


@pytest.mark.parametrize("read", [SvmlightSource.load, read_all, read_chunks])
def test_errors_in_a_later_file_and_block(read: Any, tmp_path: Path) -> None:
    first = written(tmp_path, GOOD, "first.svm")
    rows = "1 1:1\n" * 9000
    second = written(tmp_path, rows + "1 1:x\n" + rows, "second.svm")
    packed = written(tmp_path, gzip.compress(second.read_bytes(), 1), "second.gz")
    for path in (second, packed):
        with pytest.raises(DataError) as caught:
            read(SvmlightSource([first, path], zero_based="auto"))
        assert str(caught.value).startswith(f"{path}:9001: column 5: expected a finite number")


def test_rows_before_an_error_can_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1\n" * 9000 + "1 1:x\n")
    source = SvmlightSource(path, zero_based=False)
    assert source.read([0, 8999])[0].shape == (2, 1)
    for _ in range(2):
        with pytest.raises(DataError, match="9001: column 5"):
            source.read([8999, 9000])
    assert source.read([8998])[0].nnz == 1


def test_an_index_that_auto_finds_to_be_beyond(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1\n1 3:1\n1 0:1\n")
    for read in (SvmlightSource.load, read_all):
        with pytest.raises(DataError) as caught:
            read(SvmlightSource(path, zero_based="auto", n_features=3))
        assert str(caught.value).startswith(f"{path}:2: index 3 is beyond n_features=3; expected")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"# only\n\n  # comments", gzip.compress(b"", mtime=0)]
)
def test_files_without_rows(content: bytes, tmp_path: Path) -> None:
    good, path = written(tmp_path, GOOD), written(tmp_path, content, "empty.svm")
    for paths in (path, [good, path], [path, good]):
        for read in (SvmlightSource.load, len):
            with pytest.raises(DataError) as caught:
                read(SvmlightSource(paths, zero_based=False))
            assert str(caught.value).startswith(f"{path}:")
            assert "the file has no rows; expected lines such as" in str(caught.value)


def test_rows_without_features(tmp_path: Path) -> None:
    path = written(tmp_path, "1\n-1\n")
    for read in (SvmlightSource.load, len):
        with pytest.raises(DataError, match="no row has a feature; expected index:value"):
            read(SvmlightSource(path, zero_based=False))
    X, y = SvmlightSource(path, zero_based=False, n_features=3).load()
    assert X.shape == (2, 3)
    assert y.tolist() == [1, -1]


@pytest.mark.parametrize("cut", [3, 12, 500, -1])
def test_truncated_gzip_files(cut: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"1 1:{x!r}\n" for x in rng.random(40_000).tolist())
    path = written(tmp_path, gzip.compress(rows.encode(), 1)[:cut], "rows.gz")
    for read in (SvmlightSource.load, len):
        with pytest.raises(DataError) as caught:
            read(SvmlightSource(path, zero_based=False))
        place, _, what = str(caught.value).partition(": ")
        assert place.rpartition(":")[0] == str(path)
        assert int(place.rpartition(":")[2]) >= (1 if cut > 0 else 39_000)
        assert what.startswith("the gzip data end too early or are damaged (Compressed file ended")


def test_damaged_compressed_files(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    rows = GOOD.encode() * 1000
    good = gzip.compress(rows)
    zst = tmp_path / "good.zst"
    with pa.CompressedOutputStream(str(zst), "zstd") as out:
        out.write(rows)
    packed = zst.read_bytes()
    for content in (
        good[:40] + bytes(10) + good[50:],
        good + b"more",
        good[:-8] + bytes(8),
        packed[:-9],
        packed[:3] + b"\xfd" + b"\xff" * 20,
        packed + b"more",
    ):
        with pytest.raises(DataError, match=r"^.*bad:\d+: the (gzip|Zstandard) data end too early"):
            SvmlightSource(written(tmp_path, content, "bad"), zero_based=False).load()


def test_zstandard_without_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    path = written(tmp_path, b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(ImportError, match=r"run pip install '.*\[tables\]'.*, or decompress"):
        SvmlightSource(path, zero_based=False).load()


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        SvmlightSource(tmp_path / "absent.svm", zero_based=False)
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        SvmlightSource(tmp_path, zero_based=False)
    path = written(tmp_path, GOOD)
    path.chmod(0)
    if not os.access(path, os.R_OK):
        with pytest.raises(PermissionError, match="rows"):
            SvmlightSource(path, zero_based=False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_pipes_are_read_only_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    source = SvmlightSource(tmp_path / "pipe", zero_based=False)
    assert not source.random_access
    for use in (len, SvmlightSource.fingerprint):
        with pytest.raises(ValueError, match=r"pipe is not a regular file .* call load"):
            use(source)


def test_files_that_change_after_the_first_pass(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD * 3000)
    source = SvmlightSource(path, zero_based=False)
    assert len(source) == 6000
    written(tmp_path, GOOD * 2000)
    with pytest.raises(DataError, match="the file has changed since it was opened: its size was"):
        source.read([5000])
    again = SvmlightSource(path, zero_based=False, index=source.index)
    with pytest.raises(DataError, match="the file has changed since its rows were counted"):
        again.read([5000])
    written(tmp_path, "#" * (len(GOOD) * 3000 - 1) + "\n")
    again = SvmlightSource(path, zero_based=False, index=source.index)
    with pytest.raises(DataError, match="the file has fewer rows than were counted"):
        again.read([0])


def test_lines_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bytes, "LONGEST_LINE", 2**20)
    path = written(tmp_path, GOOD + "1 1:" + "0" * 2**21)
    with pytest.raises(DataError, match=r":5: the line is longer than 1,048,576 bytes; expected"):
        SvmlightSource(path, zero_based=False).load()


def test_more_labels_than_classes(tmp_path: Path) -> None:
    numbers = np.arange(2**16 + 1).astype("S")
    path = written(tmp_path, b" 1:1\n".join(numbers.tolist()))
    source = SvmlightSource(path, zero_based=False)
    assert len(source) == 2**16 + 1
    with pytest.raises(DataError, match="there are more than 65,536 distinct labels"):
        _ = source.classes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": []}, "path is an empty sequence"),
        ({"zero_based": None}, 'zero_based must be True, False or "auto", got None'),
        ({"zero_based": 1}, 'zero_based must be True, False or "auto", got 1'),
        ({"n_features": 0}, "n_features must be None or an integer from 1 to 2147483647, got 0"),
        ({"n_features": 2.5}, "n_features must be None or an integer"),
        ({"n_features": True}, "n_features must be None or an integer"),
    ],
)
def test_arguments_of_sources(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    with pytest.raises(ValueError, match=message):
        SvmlightSource(**{"path": path, "zero_based": False, **arguments})


def test_arguments_of_reading(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    source = SvmlightSource(path, zero_based=False)
    with pytest.raises(ValueError, match=r"ids\[1\] is 2, which is outside this source; .* 0 to 1"):
        source.read([0, 2])
    with pytest.raises(ValueError, match=r"ids\[0\] is -1"):
        source.read([-1])
    with pytest.raises(ValueError, match="ids must be a sequence of integers, got float64"):
        source.read([0.5])
    with pytest.raises(ValueError, match="rows must be an integer of at least 1, got 0"):
        source.chunks(0)
    with pytest.raises(ValueError, match="start must be an integer of at least 0, got -1"):
        source.chunks(1, -1)
    assert list(source.chunks(1, 2)) == []
    with pytest.raises(ValueError, match="index is of 1 files, but path names 2"):
        SvmlightSource([path, path], zero_based=False, index=source.index)
    for other in ({"zero_based": True}, {"zero_based": False, "n_features": 2}):
        with pytest.raises(ValueError, match="index is of a source with zero_based=False and 3 f"):
            SvmlightSource(path, **other, index=source.index)
    wider = SvmlightSource(path, zero_based="auto", n_features=5, index=source.index)
    assert wider.read([1])[0].shape == (1, 5)


def test_arguments_of_writing(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    with pytest.raises(ValueError, match="y must have one number per row of X, which has 2"):
        write_svmlight([[1.0], [2.0]], [1], path)
    with pytest.raises(ValueError, match="y must have one number per row of X, which has 1"):
        write_svmlight([[1.0]], ["a"], path)
    for X in ([[np.nan]], [[1e39]]):
        with pytest.raises(ValueError, match="NaN or outside the range of float32"):
            write_svmlight(X, [1], path)
    assert not path.exists()
