"""Connections to label stores: validation of files, and readable messages for SQLite errors."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from marginwise.label.schema import APPLICATION_ID, VERSION

PATIENCE = 30.0  # seconds to wait for other writing processes


class StoreError(ValueError):
    """A file that cannot be used as a label store; the message begins with its path."""


def connect(path: Path, *, create: bool, readonly: bool) -> sqlite3.Connection:
    """Return a connection to a store; a new store does not have tables yet.

    Files that are not label stores are rejected before anything is written to them.
    """
    _check_place(path, create and not readonly)
    with explained(path):
        connection = _connect_to(path, "ro" if readonly else "rwc" if create else "rw")
        try:
            _check_content(connection, path, readonly)
            if not readonly:
                _make_durable(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def read_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema version, 0 without tables. Raise if the file is not a store."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION_ID and (application, version, tables) != (0, 0, 0):
        raise StoreError(
            f"{path}: is an SQLite database of another program, not a label store; it is left as "
            "it is. Give the name of a label store, or a new name."
        )
    if version > VERSION:
        raise StoreError(
            f"{path}: is a label store of version {version}, made by a newer marginwise; this one "
            f"knows versions up to {VERSION}. Upgrade marginwise."
        )
    return version


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Convert SQLite errors to a StoreError that names the file and suggests a solution."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {_advice(error, path)}") from error


@contextlib.contextmanager
def kept_if_used(path: Path) -> Iterator[None]:
    """Remove a store that a failed command created, unless it has events."""
    existed = path.exists()
    try:
        yield
    except BaseException:
        if not existed:
            _remove_unused(path)
        raise


def _remove_unused(path: Path) -> None:
    try:
        with contextlib.closing(_connect_to(path, "ro")) as connection:
            ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
            used = connection.execute("SELECT count(*) FROM event").fetchone()[0]
    except sqlite3.Error:  # the table is missing or incomplete
        return
    if ours and not used:
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _check_place(path: Path, create: bool) -> None:
    if path.is_dir():
        raise StoreError(f"{path}: is a directory; give the name of a file.")
    if path.exists():
        if not path.is_file():
            raise StoreError(f"{path}: is not a regular file; give the name of a label store.")
    elif not create:
        raise StoreError(
            f"{path}: does not exist; give the name of a label store, which `marginwise label` "
            "makes."
        )
    elif not path.absolute().parent.is_dir():
        raise StoreError(
            f"{path}: cannot be created, because there is no directory "
            f"{path.absolute().parent}. Create it."
        )


def _connect_to(path: Path, mode: str) -> sqlite3.Connection:
    """Connect to a file; in read-only folders, treat it as immutable."""
    name = urllib.parse.quote(str(path.absolute()))
    immutable = ""
    if mode == "ro" and not os.access(path.absolute().parent, os.W_OK):
        log = path.with_name(path.name + "-wal")
        immutable = "" if log.exists() and log.stat().st_size else "&immutable=1"
    return sqlite3.connect(
        f"file:{name}?mode={mode}{immutable}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,
    )


def _check_content(connection: sqlite3.Connection, path: Path, readonly: bool) -> None:
    """Raise unless the file is empty or an undamaged store."""
    if read_version(connection, path) == 0 and readonly:
        raise StoreError(f"{path}: is empty, not a label store; give the name of one.")
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(f"database disk image is malformed: {found}")


def _make_durable(connection: sqlite3.Connection) -> None:
    """Enable the write-ahead log, and synchronize with the disk after every transaction."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:  # the timeout does not apply here
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = FULL")


_ADVICE = {  # by a substring of the SQLite message
    "file is not a database": "is not a label store; it is left as it is. Give the name of a label "
    "store, or a new name.",
    "malformed": "is damaged ({error}). Restore it from a copy, or save what can be read by "
    "`sqlite3 FILE .recover`.",
    "no such": "is not a complete label store ({error}). Restore it from a copy.",
    "full": "cannot be written, because the disk is full; the last answer was not stored. Free "
    "some space, and answer again.",
    "locked": "is in use by another process, which did not finish writing within "
    f"{PATIENCE:g} seconds. End that process, or try again later.",
    "readonly": "cannot be written: the file or its folder is read-only. Change its permissions, "
    "or copy it to another place.",
    "unable to open": "cannot be opened: no permission to read or write the file or its folder "
    "{folder}. Change permissions, or give another place.",
    "closed": "has been closed; open it again.",
    "I/O": "cannot be read or written ({error}). Check the disk.",
}


def _advice(error: sqlite3.Error, path: Path) -> str:
    text = str(error)
    found = next((advice for part, advice in _ADVICE.items() if part in text), "{error}.")
    return found.format(error=text, folder=path.absolute().parent)
