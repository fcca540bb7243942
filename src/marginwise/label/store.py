"""Label store: an SQLite file with an append-only table of events."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from marginwise.label.events import Event
from marginwise.label.opening import StoreError, connect, explained, read_version
from marginwise.label.schema import APPLICATION_ID, MIGRATIONS, VERSION

_COLUMNS = [part.name for part in fields(Event) if part.name != "seq"]
_AS_JSON = ("score", "pending")
ACTIVE = 1800.0  # seconds for which questions remain assigned to an annotator
_SELECT = f"SELECT {', '.join([*_COLUMNS, 'seq'])} FROM event"
_INSERT = f"INSERT INTO event ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_NEWEST = """
    SELECT max(seq) FROM event AS e
    WHERE annotator = ? AND kind != 'undo' AND purpose IS NOT 'import'
    AND NOT EXISTS (SELECT 1 FROM event WHERE undone = e.seq)
"""


@dataclass(frozen=True)
class ItemSet:
    """Identity of the items of a store.

    Parameters
    ----------
    name : str
        Name of the items, for messages.
    count : int
        Number of items.
    fingerprint : str
        Hash of their ids and contents.
    """

    name: str
    count: int
    fingerprint: str


class LabelStore:
    """Append-only store of labelling events in an SQLite file.

    The events are labels, skips, undos, flags and notes. An event is on disk when `append` returns.
    Any number of processes and threads can append to one file. Use `LabelStore.open` to open a
    store.

    Parameters
    ----------
    path : Path
        The file.
    connection : sqlite3.Connection
        Connection to the file, which the store closes.
    readonly : bool
        Whether the connection is read-only.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, *, readonly: bool) -> None:
        self.path = path
        self.readonly = readonly
        self._connection = connection
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        items: ItemSet | None = None,
        create: bool = True,
        readonly: bool = False,
    ) -> LabelStore:
        """Open a store, or create it.

        Parameters
        ----------
        path : str or path-like
            The file.
        items : ItemSet or None
            Items to label. An error is raised if the store belongs to other items. A store without
            items records these.
        create : bool
            Whether to create the file if it does not exist.
        readonly : bool
            Whether to open the store read-only, which also works in read-only folders.

        Raises
        ------
        StoreError
            If the file is not a store, is damaged, has a newer version, has labels of other items,
            or cannot be opened.
        """
        target = Path(path)
        store = cls(target, connect(target, create=create, readonly=readonly), readonly=readonly)
        try:
            if not readonly:
                store._migrate()
            if items is not None:
                store.identify(items)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- events ------------------------------------------------------------------------------------

    def append(self, event: Event) -> Event:
        """Store an event; return it with its number.

        The event is on disk when the method returns. If an event with the same key exists, it is
        returned and the store does not change. An undo without a number reverts the most recent
        event of its annotator that was not imported.

        Raises
        ------
        ValueError
            If there is no event that the undo can revert.
        StoreError
            If the file cannot be written. The event is then not stored.
        """
        return self.append_all([event])[0]

    def append_all(self, events: Iterable[Event]) -> list[Event]:
        """Store several events, all or none; return them with their numbers."""
        with self._writing() as connection:
            return [self._append(connection, event) for event in events]

    def events(self, after: int = 0) -> list[Event]:
        """Return all events with numbers higher than `after`, in the order of their numbers."""
        with self._reading() as connection:
            rows = connection.execute(f"{_SELECT} WHERE seq > ? ORDER BY seq", [after]).fetchall()
            return [_from_row(row, self.path) for row in rows]

    def _append(self, connection: sqlite3.Connection, event: Event) -> Event:
        row = connection.execute(f"{_SELECT} WHERE key = ?", [event.key]).fetchone()
        if row is not None:
            return _from_row(row, self.path)
        if event.kind == "undo":
            event = self._aimed(connection, event)
        cursor = connection.execute(_INSERT, [_to_column(event, name) for name in _COLUMNS])
        if event.pending is not None:
            self._assign(connection, event.annotator, event.pending)
        return event.numbered(int(cursor.lastrowid or 0))

    def _aimed(self, connection: sqlite3.Connection, undo: Event) -> Event:
        """Return an undo with the number and the item of the event that it reverts."""
        newest = connection.execute(_NEWEST, [undo.annotator]).fetchone()[0]
        if newest is None:
            raise ValueError(f"{undo.annotator!r} has no answer, flag or note to take back.")
        if undo.undone not in (None, newest):
            raise ValueError(
                f"event {undo.undone} cannot be taken back: the newest event of "
                f"{undo.annotator!r} that is not taken back is number {newest}. Take that back "
                "first."
            )
        item = connection.execute("SELECT item FROM event WHERE seq = ?", [newest]).fetchone()[0]
        return replace(undo, undone=newest, item=item)

    # -- questions ---------------------------------------------------------------------------------

    def assign(
        self, annotator: str, after: int, choose: Callable[[set[str]], Sequence[str]]
    ) -> None:
        """Choose the questions of an annotator while no other process can change the store.

        Parameters
        ----------
        annotator : str
            Name of the annotator.
        after : int
            Number of the last event that the caller knows.
        choose : callable
            Returns the questions, as entries of `Event.pending`. It is called with the items that
            other active annotators are asked about, or that were answered after event `after`.
        """
        with self._writing() as connection:
            lists = connection.execute(
                "SELECT questions FROM assigned WHERE annotator != ? AND time > ?",
                [annotator, time.time() - ACTIVE],
            )
            taken = {item for (text,) in lists.fetchall() for item in _asked(text, self.path)}
            newer = connection.execute("SELECT item FROM event WHERE seq > ?", [after]).fetchall()
            self._assign(connection, annotator, choose(taken | {item for (item,) in newer}))

    def _assign(
        self, connection: sqlite3.Connection, annotator: str, questions: Sequence[str]
    ) -> None:
        """Replace the questions of an annotator, unless the same ones were stored recently."""
        text, now = json.dumps(questions), time.time()
        connection.execute(
            "INSERT INTO assigned VALUES (?1, ?2, ?3) ON CONFLICT (annotator) DO UPDATE "
            "SET questions = ?2, time = ?3 WHERE questions != ?2 OR time < ?4",
            [annotator, text, now, now - ACTIVE / 10],
        )

    # -- metadata ----------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        """Return the metadata of the store: items, labels and settings."""
        with self._reading() as connection:
            return dict(connection.execute("SELECT key, value FROM meta").fetchall())

    def set_meta(self, **values: str) -> None:
        """Store metadata, replacing existing values with the same names."""
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def default_meta(self, **values: str) -> dict[str, str]:
        """Store missing metadata and return the stored values.

        Processes that start at the same time all get the values of the first.
        """
        with self._writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", values.items())
            stored = dict(connection.execute("SELECT key, value FROM meta").fetchall())
            return {name: stored[name] for name in values}

    @property
    def items(self) -> ItemSet | None:
        """The items of the store; None if they are not recorded yet."""
        return _items_of(self.meta())

    def identify(self, items: ItemSet) -> None:
        """Raise if the store belongs to other items; record the items otherwise."""
        known = self.items
        if known is None and not self.readonly:
            self.default_meta(
                items=items.fingerprint, items_name=items.name, items_count=str(items.count)
            )
            known = self.items
        if known is not None and known.fingerprint != items.fingerprint:
            raise StoreError(
                f"{self.path} has labels of {known.name} ({known.count:,} items), not of "
                f"{items.name} ({items.count:,} items): the items differ. Give the items that it "
                "was made with, or another store."
            )

    # -- transactions ------------------------------------------------------------------------------

    def _migrate(self) -> None:
        with self._writing() as connection:
            version = read_version(connection, self.path)  # another process may have been faster
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    connection.execute(statement)
            if version < VERSION:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                connection.execute("INSERT OR IGNORE INTO meta VALUES ('created', ?)", [created])

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained(self.path):
            yield self._connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction that is durable on success and has no effect on failure."""
        with self._lock, explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite ends it itself if the disk is full
                    self._connection.execute("ROLLBACK")
                raise


def _items_of(meta: dict[str, str]) -> ItemSet | None:
    if "items" not in meta:
        return None
    return ItemSet(meta.get("items_name", "?"), int(meta.get("items_count", 0)), meta["items"])


def _asked(text: str, path: Path) -> list[str]:
    """Return the items of stored questions."""
    try:
        return [entry.partition(":")[0] for entry in json.loads(text)]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{path}: the table assigned has questions that marginwise did not write ({error}). "
            "Delete its rows while no server uses the file; they are only needed while servers run."
        ) from error


def _to_column(event: Event, name: str) -> Any:
    """Return a value of an event in the form that SQLite stores."""
    value = getattr(event, name)
    return json.dumps(value) if name in _AS_JSON and value is not None else value


def _from_row(row: tuple[Any, ...], path: Path) -> Event:
    values = dict(zip([*_COLUMNS, "seq"], row, strict=True))
    try:
        for name in _AS_JSON:
            if values[name] is not None:
                values[name] = json.loads(values[name])
        return Event(**values)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{path}: event {values['seq']} is not one that marginwise wrote ({error}). Restore "
            "the file from a copy."
        ) from error
