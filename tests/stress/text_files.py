"""Text files: data files whose bytes were changed, of each format that can be read.

Invariant: reading raises an error that begins with ``file:line: `` and names what was expected, or
returns valid rows. Nothing else is raised, nothing hangs or crashes, and memory stays bounded. All
ways to read a file refuse it, or all return the same rows.

A further format is one entry of `FORMATS`.
"""

from __future__ import annotations

import gzip
import re
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginwise.data import DataError, SvmlightSource
from tests.stress.harness import Options, Outcome
from tests.stress.table_formats import TABLE_WORDS, WRITERS, names_place, read_any

LIMIT = 30.0
BATCH = 2500
SLOW = 5.0  # seconds for a file of a few kilobytes
MOST_MEMORY = 2**30  # bytes
VARIANTS = 6  # good files of each format


@dataclass(frozen=True)
class Format:
    """What the attack needs to know of a format.

    Attributes
    ----------
    write
        Returns the content of a good file.
    read
        Reads a file in all ways there are. Raises an AssertionError if they disagree or return
        what is not valid.
    words
        Bytes that mutations insert: what the format is made of, and what is close to it.
    pack
        Applied to the content after it was changed, such as a compression.
    refuses
        Whether an exception is how a file is to be refused.
    """

    write: Callable[[np.random.Generator], bytes]
    read: Callable[[Path], None]
    words: tuple[bytes, ...]
    pack: Callable[[bytes], bytes] = bytes
    refuses: Callable[[Exception, Path], bool] = lambda error, path: (
        isinstance(error, DataError) and names_line(error, path)
    )


def names_line(error: Exception, path: Path) -> bool:
    """Whether a message begins with the file and a line of it, and is a sentence."""
    return re.match(rf"{re.escape(str(path))}:[1-9]\d*: \S.*\.$", str(error), re.DOTALL) is not None


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    name = list(FORMATS)[case % len(FORMATS)]
    format_ = FORMATS[name]
    content = format_.pack(mutated(good(name, int(rng.integers(VARIANTS))), format_.words, rng))
    outcome = Outcome()
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder, "file")
        path.write_bytes(content)
        before, began = _peak(), time.monotonic()
        try:
            format_.read(path)
            outcome.count(f"{name} read")
        except Exception as error:
            if isinstance(error, AssertionError) or not format_.refuses(error, path):
                raise
            outcome.count(f"{name} refused")
    seconds, grown = time.monotonic() - began, _peak() - before
    if seconds > SLOW:
        outcome.violate(f"{name}: {seconds:.1f} s for {len(content)} bytes")
    if grown > MOST_MEMORY:
        outcome.violate(f"{name}: {grown / 2**20:.0f} MB for {len(content)} bytes")
    return outcome


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@cache
def good(name: str, variant: int) -> bytes:
    """The content of a good file, which must be readable."""
    format_ = FORMATS[name]
    content = format_.write(np.random.default_rng([9, variant]))
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder, "good")
        path.write_bytes(format_.pack(content))
        try:
            format_.read(path)
        except ValueError as error:
            raise AssertionError(f"a good file of {name} is refused: {error}") from error
    return content


# -- mutating ----------------------------------------------------------------------------------


def mutated(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    """Change one to four places of a file."""
    for _ in range(int(rng.integers(1, 5))):
        way = WAYS[int(rng.integers(len(WAYS)))]
        content = way(content, words, rng)
    return content


def _place(content: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(content) + 1))


def _range(content: bytes, rng: np.random.Generator) -> slice:
    start = _place(content, rng)
    return slice(start, start + int(rng.geometric(0.1)))


def _flip(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    if not content:
        return content
    at = int(rng.integers(len(content)))
    return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]


def _insert(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    at = _place(content, rng)
    return content[:at] + words[int(rng.integers(len(words)))] + content[at:]


def _replace(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    at = _range(content, rng)
    return content[: at.start] + words[int(rng.integers(len(words)))] + content[at.stop :]


def _noise(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    at = _range(content, rng)
    return content[: at.start] + rng.bytes(at.stop - at.start) + content[at.stop :]


def _delete(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    at = _range(content, rng)
    return content[: at.start] + content[at.stop :]


def _repeat(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    at = _range(content, rng)
    times = int(rng.choice([1, 2, 50]))
    return content[: at.stop] + content[at] * times + content[at.stop :]


def _move(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    at = _range(content, rng)
    rest = content[: at.start] + content[at.stop :]
    to = _place(rest, rng)
    return rest[:to] + content[at] + rest[to:]


def _truncate(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    return content[: _place(content, rng)]


def _swap_lines(content: bytes, words: tuple[bytes, ...], rng: np.random.Generator) -> bytes:
    lines = content.split(b"\n")
    a, b = rng.integers(len(lines), size=2)
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


WAYS: tuple[Callable[[bytes, tuple[bytes, ...], np.random.Generator], bytes], ...] = (
    _flip,
    _insert,
    _insert,
    _replace,
    _replace,
    _noise,
    _delete,
    _repeat,
    _move,
    _truncate,
    _swap_lines,
)


# -- numbers in text -----------------------------------------------------------------------------

NUMBERS = (
    *(b"0", b"1", b"-1", b"+1", b"2", b"00007", b"12345678", b"123456789012345678901234567890"),
    *(b"2147483647", b"2147483648", b"4294967296", b"9223372036854775808", b"-2147483649"),
    *(b"0.5", b".5", b"5.", b".", b"-", b"+", b"-.5", b"0." + b"3" * 40, b"1" + b"0" * 50),
    *(b"1e5", b"1E-5", b"1e", b"1e+", b"e5", b"1e38", b"1e39", b"-1e39", b"1e-46", b"1e308"),
    *(b"1e309", b"1e-400", b"1e99999999999", b"3.4028236e38", b"1_000", b"0x1F", b"1,5"),
    *(b"nan", b"NaN", b"inf", b"-Infinity", b"None", b"true", b"1e5e5", b"--1", b"1-1"),
)
BYTES = (b"\n", b"\r\n", b"\r", b" ", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b", b"\x1a")


# -- svmlight ------------------------------------------------------------------------------------


def _svmlight(rng: np.random.Generator) -> bytes:
    """A few rows with all that the format allows."""
    lines = []
    for r in range(int(rng.integers(2, 30))):
        indices = np.cumsum(rng.integers(1, 9, size=rng.poisson(5)))
        features = "".join(f" {k}:{rng.normal():.{rng.integers(1, 17)}g}" for k in indices)
        query = " qid:3" if rng.random() < 0.2 else ""
        lines.append(f"{rng.integers(3)}{query}{features}" + (" # end" if r % 7 == 6 else ""))
    return ("\n".join(["# rows", *lines, "1 1:1"]) + "\n").encode()


def _read_svmlight(path: Path) -> None:
    """Load a file, and read it by ids and in chunks, as one-based and by the rule "auto"."""
    errors = []
    for zero_based in (False, "auto"):
        source = SvmlightSource(path, zero_based=zero_based)
        results: list[Any] = []
        for read in (SvmlightSource.load, _by_ids, _by_chunks):
            try:
                results.append(read(source))
            except DataError as error:
                results.append(None)
                errors.append(error)
        assert all(names_line(error, path) for error in errors), f"not file:line: {errors}"
        refused = {found is None for found in results}
        assert len(refused) == 1, f"load, read, chunks: {results}, {errors}"
        if refused == {False}:
            _assert_valid_rows(results)
    if errors:
        raise errors[0]


def _by_ids(source: SvmlightSource) -> tuple[Any, Any]:
    ids = np.arange(len(source))[::-1]
    X, y = source.read(ids)
    return X[ids], y[ids]


def _by_chunks(source: SvmlightSource) -> tuple[Any, Any]:
    X, y = zip(*source.chunks(3), strict=True)
    return sp.csr_array(sp.vstack(X)), np.concatenate(y)


def _assert_valid_rows(results: list[tuple[Any, Any]]) -> None:
    expected, labels = results[0]
    assert expected.shape[0] == len(labels) > 0
    assert np.isfinite(expected.data).all()
    assert np.isfinite(labels).all()
    expected.check_format()
    assert expected.has_sorted_indices
    for X, y in results[1:]:
        assert X.shape == expected.shape
        assert y.dtype == labels.dtype
        for a, b in ((X.data, expected.data), (X.indices, expected.indices), (y, labels)):
            np.testing.assert_array_equal(a, b)


def _zstd(content: bytes) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(content)
    return bytes(sink.getvalue())


SVMLIGHT_WORDS = (
    *(*NUMBERS, *BYTES, b":", b"::", b"#", b"qid:", b" qid:1 ", b"qid:x", b"0:1", b" 1:1", b"1,2 "),
    *(b" 2147483647:1", b" 2147483648:1", b" 99999999999999999999:1", b" 7:nan", b" 8:1e39"),
)
FORMATS: dict[str, Format] = {
    "svmlight": Format(_svmlight, _read_svmlight, SVMLIGHT_WORDS),
    "svmlight inside gzip": Format(_svmlight, _read_svmlight, SVMLIGHT_WORDS, gzip.compress),
    "svmlight gzip": Format(lambda rng: gzip.compress(_svmlight(rng)), _read_svmlight, BYTES),
    "svmlight zstd": Format(lambda rng: _zstd(_svmlight(rng)), _read_svmlight, BYTES),
}
TEXT = ("csv", "json lines")
for _name, _write in WRITERS.items():
    _words = (*NUMBERS, *BYTES, *TABLE_WORDS) if _name in TEXT else (*BYTES, *TABLE_WORDS)
    FORMATS[_name] = Format(_write, read_any, _words, refuses=names_place)
for _name in TEXT:
    _words = FORMATS[_name].words
    FORMATS[f"{_name} gzip"] = Format(
        WRITERS[_name], read_any, _words, gzip.compress, refuses=names_place
    )
TOTAL = 10_000 * len(FORMATS)
