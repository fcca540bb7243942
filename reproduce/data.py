"""Convert public originals to the data files that the scripts read, and check these files.

python -m reproduce.data                          list the files and the sources of their originals
python -m reproduce.data --originals FOLDER       convert the originals in FOLDER
python -m reproduce.data --originals FOLDER --download    first download missing originals
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import os
import sys
import tarfile
import urllib.request
import zlib
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))  # so that the file also runs by its path

from reproduce.converters import OPENERS, Arrays, Records, found  # noqa: E402
from reproduce.pipes import until_closed  # noqa: E402
from reproduce.sources import BY_FILE, SOURCES, UNTRIED, Original, Source  # noqa: E402

# Exceptions that reading a damaged original can raise.
DAMAGE: tuple[type[Exception], ...] = (OSError, ValueError, TypeError, LookupError, EOFError)
DAMAGE += (zlib.error, csv.Error, tarfile.TarError)

# -- content -------------------------------------------------------------------------------------


def digest(content: Mapping[str, Any] | Records, without: Iterable[str] = ()) -> str:
    """Return the SHA-256 of arrays by name, or of records, independent of their compression."""
    total = hashlib.sha256()
    if isinstance(content, list):
        for record in content:
            total.update(json.dumps(record, sort_keys=True).encode() + b"\n")
        return total.hexdigest()
    for name in sorted(set(content) - set(without)):
        array = np.ascontiguousarray(content[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()


class DamagedError(ValueError):
    """A data file cannot be read."""


def read(path: Path) -> Arrays | Records:
    """Read a data file; raise DamagedError if it is truncated or damaged."""
    try:
        return _read(path)
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error, UnpicklingError) as error:
        raise DamagedError(str(error) or type(error).__name__) from error


def _read(path: Path) -> Arrays | Records:
    if path.name.endswith(".jsonl.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    if not is_zipfile(path):
        raise BadZipFile("it is not a .npz archive")
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def write(path: Path, content: Arrays | Records) -> None:
    """Write a data file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        if isinstance(content, list):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                for record in content:
                    packed.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        else:
            np.savez_compressed(file, **content)
    os.replace(partial, path)


def judge(source: Source, content: Arrays | Records) -> str:
    """Compare content with the file in use: verified, another sample, or different."""
    if digest(content) == source.digest:
        return "verified"
    if source.sampled and digest(content, source.sampled) == source.fixed:
        return "another sample"
    return "different"


def state(source: Source, folder: Path | None) -> str:
    """Return the state of a file in the data folder."""
    if folder is None or not (folder / source.file).is_file():
        return "missing"
    try:
        return judge(source, read(folder / source.file))
    except DamagedError as error:
        return f"unreadable ({error})"


# -- originals -----------------------------------------------------------------------------------


def lacking(source: Source, originals: Path) -> list[Original]:
    """Return the originals of a file that are not in the folder."""
    if source.originals[0].name == "reuters21578.tar.gz" and list(originals.glob("reut2-*.sgm")):
        return []
    return [one for one in source.originals if found(originals, one.name) is None]


def check_original(original: Original, path: Path) -> None:
    """Raise ValueError if an original does not have its known checksum."""
    data = path.read_bytes()
    if original.sha256 and path.name == original.name:
        _same(path, original.sha256, hashlib.sha256(data).hexdigest())
    if original.md5:
        plain = OPENERS[path.suffix if path.suffix in OPENERS else ""](path)
        _same(path, original.md5, hashlib.md5(plain, usedforsecurity=False).hexdigest())


def _same(path: Path, expected: str, actual: str) -> None:
    if actual != expected:
        raise ValueError(f"{path} has checksum {actual}, expected {expected}: download it again.")


def download(original: Original, originals: Path) -> None:
    """Download an original, and check its length and checksum."""
    if original.page:
        raise ValueError(f"{original.name} has to be downloaded by hand from {original.url}.")
    path = originals / original.name
    partial = path.with_name(path.name + ".partial")
    originals.mkdir(parents=True, exist_ok=True)
    print(f"downloading {original.url}")
    try:
        with urllib.request.urlopen(original.url, timeout=60) as answer:
            data = answer.read()
            expected = answer.headers.get("Content-Length")
    except (OSError, HTTPException) as error:
        raise ConnectionError(
            f"{original.url} cannot be downloaded: {error}. Without a network, copy the file to "
            f"{path} from elsewhere."
        ) from error
    if expected is not None and int(expected) != len(data):
        raise ValueError(f"{original.url} sent {len(data)} of {expected} bytes: try again.")
    partial.write_bytes(data)
    os.replace(partial, path)
    try:
        check_original(original, path)
    except DAMAGE:
        path.unlink()  # so that the next attempt downloads it again
        raise


def convert(source: Source, originals: Path, folder: Path) -> str:
    """Make one data file, and compare it with the file in use."""
    for original in source.originals:
        path = found(originals, original.name)
        if path is not None:
            check_original(original, path)
    content = source.convert(originals)
    write(folder / source.file, content)
    return judge(source, content)


# -- messages ------------------------------------------------------------------------------------


def missing(files: Iterable[str], folder: Path) -> str:
    """Return a message on the files that the folder lacks and how to get them; empty if none."""
    absent = sorted({file for file in files if not (Path(folder) / file).is_file()})
    if not absent:
        return ""
    text = [f"The data folder {folder} lacks {', '.join(absent)}."]
    for source in (BY_FILE[file] for file in absent if file in BY_FILE):
        text += ["", *describe(source)]
    unknown = [file for file in absent if file not in BY_FILE]
    if unknown:
        text += ["", f"There is no recipe for {', '.join(unknown)}."]
    names = " ".join(BY_FILE[file].name for file in absent if file in BY_FILE)
    if names:
        text += [
            "",
            "Download these originals to one folder, and convert them with",
            f"  python -m reproduce.data --originals FOLDER --data {folder} --only {names}",
            "Option --download also downloads them.",
        ]
    return "\n".join(text)


def describe(source: Source) -> list[str]:
    """Return lines that describe a file and the sources of its originals."""
    text = [f"{source.file}: {source.content}. Licence: {source.licence}."]
    text += [f"  {one.name} from {one.url}" for one in source.originals]
    return [*text, *([f"  {source.note}"] if source.note else [])]


def listing(sources: Iterable[Source], folder: Path | None) -> str:
    """Return a table of the files and the sources of their originals."""
    rows = [("file", "state", "originals")]
    for source in sources:
        first, *others = [f"{one.name}  {one.url}" for one in source.originals]
        rows.append((source.file, state(source, folder), first))
        rows += [("", "", other) for other in others]
        rows.append(("", "", f"licence: {source.licence}"))
        rows += [("", "", source.note)] if source.note else []
    widths = [max(len(row[k]) for row in rows) for k in range(2)]
    return "\n".join(f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in rows)


# -- the command ---------------------------------------------------------------------------------


def data_folder(given: Path | None) -> Path | None:
    """Return the folder of the data files: the named one, or the default if it exists."""
    named = given or os.environ.get("MARGINWISE_DATA")
    if named:
        return Path(named)
    default = REPOSITORY.parent / "shared" / "data"
    return default if default.is_dir() else None


def arguments(given: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--list", action="store_true", help="list the files (the default without --originals)")
    add("--only", nargs="+", metavar="NAME", help="only these files, for example mnist a9a")
    add("--originals", type=Path, metavar="FOLDER", help="folder of the originals")
    add("--data", type=Path, metavar="FOLDER", help="data folder (default: $MARGINWISE_DATA)")
    add("--download", action="store_true", help="download missing originals")
    add("--force", action="store_true", help="make existing files again")
    return parser.parse_args(given)


def chosen(names: list[str] | None) -> list[Source]:
    """Return the named sources; names may omit file extensions and folders."""
    if not names:
        return list(SOURCES)
    known = {key: one for one in SOURCES for key in (one.file, one.name, Path(one.name).name)}
    unknown = [name for name in names if name not in known]
    if unknown:
        short = ", ".join(Path(one.name).name for one in SOURCES)
        sys.exit(f"There is no data file {', '.join(unknown)}; expected {short}.")
    return [known[name] for name in dict.fromkeys(names)]


def make(source: Source, folder: Path, options: argparse.Namespace) -> str:
    """Make one file as the options require, and return the outcome."""
    if (folder / source.file).is_file() and not options.force:
        return f"exists ({state(source, folder)}); --force makes it again"
    try:
        if options.download:
            for original in lacking(source, options.originals):
                download(original, options.originals)
        absent = lacking(source, options.originals)
        if absent:
            return f"skipped: the originals lack {', '.join(one.name for one in absent)}"
        return convert(source, options.originals, folder)
    except DAMAGE as error:
        names = ", ".join(one.name for one in source.originals)
        return f"failed: {names}: {type(error).__name__}: {error}"


def main(given: list[str] | None = None) -> int:
    """Run the command; the exit status is 1 if a conversion fails or its result is different."""
    options = arguments(given)
    sources, folder = chosen(options.only), data_folder(options.data)
    if options.list or options.originals is None:
        if options.download:
            sys.exit("--download needs --originals FOLDER, where the downloads are stored.")
        print(f"{listing(sources, folder)}\n\n{UNTRIED}")
        return 0
    if folder is None:
        sys.exit("Name the folder to write to with --data or in MARGINWISE_DATA.")
    if not options.download and not options.originals.is_dir():
        sys.exit(f"{options.originals} is not a folder; --originals names that of the originals.")
    bad = False
    for source in sources:
        outcome = make(source, folder, options)
        bad |= outcome.startswith(("failed", "different", "exists (unreadable"))
        print(f"{source.file}: {outcome}")
        if outcome in ("different", "another sample") and source.note:
            print(f"  {source.note}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(until_closed(main))
