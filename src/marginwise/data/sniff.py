"""Recognition of file formats by content."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import BinaryIO

from marginwise.data.columns import need_arrow
from marginwise.data.errors import DataError

HEAD = 1 << 16  # bytes to examine
LINES = 20
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow stream",
}
FOREIGN = {
    b"BZh": "is compressed by bzip2",
    b"\xfd7zXZ": "is compressed by xz",
    b"\x89HDF": "is an HDF5 file",
    b"FEA1": "is a Feather file of version 1",
    b"SQLite format 3": "is an SQLite database",
    b"%PDF": "is a PDF document",
    b"\xff\xfe": "is UTF-16 text, to be converted to UTF-8, for instance with iconv",
    b"\xfe\xff": "is UTF-16 text, to be converted to UTF-8, for instance with iconv",
}
EXPECTED = (
    "expected svmlight text, CSV, JSON lines (each plain, gz or zst), Parquet, Arrow, .npy or .npz"
)
JSON_ARRAY = re.compile(rb"\s*\[\s*[{\[]")
SVMLIGHT = re.compile(rb"[^\s,;\"]+[ \t]+(qid:)?\d+:\S")
HEADER = re.compile(rb"^[^:]*[,;|\t][^:]*$")
# Errors raised for damaged compressed data.
DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; compressed content is decompressed."""
    start = _first_bytes(path)
    if start.startswith(GZIP):
        return gzip.open(path)  # type: ignore[return-value]
    if start == ZSTD:
        return need_arrow().input_stream(str(path), compression="zstd")  # type: ignore[no-any-return]
    return path.open("rb")


def is_compressed(path: Path) -> bool:
    """Return whether the content of a file is compressed."""
    start = _first_bytes(path)
    return start.startswith(GZIP) or start == ZSTD


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def read_some(file: BinaryIO, size: int, path: Path, line: int = 1) -> bytes:
    """Read bytes; raise DataError if compressed data is damaged.

    Parameters
    ----------
    file : file
        The file.
    size : int
        Number of bytes to read.
    path : Path
        Path of the file, for messages.
    line : int, default=1
        Number of the current line, for messages.
    """
    try:
        return file.read(size)
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the disk, not of the content
        raise DataError(
            f"{path}:{line}: the compressed data is truncated or damaged ({error}); expected a "
            "complete gz or zst file. Copy or download it again."
        ) from error


def kind_of(path: Path) -> str:
    """Return the format of a file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    kind : {"npy", "npz", "parquet", "arrow", "arrow stream", "svmlight", "json", "csv"}
        Format of the content.
    """
    with open_bytes(path) as file:
        head = read_some(file, HEAD, path)
    if not head:
        raise DataError(f"{path}:1: the file is empty; {EXPECTED}.")
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return kind
    for magic, fault in FOREIGN.items():
        if head.startswith(magic):
            raise DataError(f"{path}:1: the file {fault}; {EXPECTED}.")
    if b"\0" in head:
        raise DataError(f"{path}:1: the file is not text, and its format is unknown; {EXPECTED}.")
    if JSON_ARRAY.match(head):
        raise DataError(f"{path}:1: the file is a JSON array; expected a JSON object per line.")
    return _kind_of_text(head.removeprefix(b"\xef\xbb\xbf"))


def _kind_of_text(head: bytes) -> str:
    lines = [line.strip() for line in head.splitlines()[:LINES]]
    lines = [line for line in lines if line and not line.startswith(b"#")]
    if lines and lines[0].startswith(b"{"):
        return "json"
    if lines and HEADER.search(lines[0]) and not SVMLIGHT.match(lines[0]):
        return "csv"  # of which a value such as a time of day may resemble a feature
    return "svmlight" if any(SVMLIGHT.match(line) for line in lines) else "csv"
