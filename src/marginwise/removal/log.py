"""`RemovalLog`: an append-only file of receipts, in which every line carries the hash of the last.

What the chain of hashes cannot show is that lines are missing from its end: for that, keep the
value of `head` elsewhere.

A line is written by one call, and the file is flushed to the disk before `append` returns. If the
machine stops in between, a part of a line may remain: a torn line, which is reported, and removed
only on request.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from marginwise.removal.chain import (
    FIRST,
    LogEntry,
    RemovalLogError,
    chained,
    new_line,
    split,
    torn_line,
    unfinished,
)
from marginwise.removal.receipt import Receipt

if sys.platform != "win32":
    import fcntl
else:
    import msvcrt

FAR = 1 << 40  # where Windows locks a byte, beyond what is read


class RemovalLog:
    """Append-only log of removals, in which every line carries the SHA-256 of the previous one.

    Iterating over a log gives the receipts of all removals that took place, oldest first.

    Parameters
    ----------
    path : str or path-like
        File of the log, which is created with the first line. Its folder must exist.

    See Also
    --------
    remove_from_file : Removes rows from a model file and logs it.
    Receipt : What is logged.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginwise import ExactSVC
    >>> from marginwise.removal import RemovalLog, remove
    >>> model = ExactSVC(gamma=1.0).fit([[-1.0], [1.0], [2.0]], [0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = RemovalLog(os.path.join(folder, "removals.jsonl"))
    ...     entry = log.append(remove(model, ids=[2]))
    ...     log.check()
    ...     [receipt.rows_removed for receipt in log]
    [1]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __repr__(self) -> str:
        return f"RemovalLog({self.path!r})"

    def __iter__(self) -> Iterator[Receipt]:
        entries = list(self.entries())
        done = {entry.closes for entry in entries if entry.event == "done"}
        for entry in entries:
            took_place = entry.event == "removed" or (entry.event == "begun" and entry.line in done)
            if took_place and entry.receipt is not None:
                yield entry.receipt

    def append(self, receipt: Receipt) -> LogEntry:
        """Write a receipt to the end of the log, and wait until it is on the disk.

        Parameters
        ----------
        receipt : Receipt
            Receipt of a removal.

        Returns
        -------
        entry : LogEntry
            The line that was written.

        Raises
        ------
        RemovalLogError
            If the last line is torn or was altered.
        """
        if not isinstance(receipt, Receipt):
            raise TypeError(f"receipt is a {type(receipt).__name__}; expected a Receipt.")
        with self.writing() as writer:
            return writer.write("removed", receipt=receipt)

    def entries(self) -> list[LogEntry]:
        """Read all lines, and check the chain.

        Returns
        -------
        entries : list of LogEntry
            The lines in order; none if there is no file.

        Raises
        ------
        RemovalLogError
            If a line was altered or is torn.
        """
        whole, torn = split(self._content())
        if torn:  # it may be a line that another process is about to complete
            with _locked(self.path):
                whole, torn = split(self._content())
        return _checked(self.path, whole, torn)

    def check(self, head: str | None = None) -> None:
        """Check that no line was altered, inserted or removed.

        Parameters
        ----------
        head : str, default=None
            Value of `head` at an earlier time, which must be the hash of one of the lines. Without
            it, lines that are missing from the end cannot be noticed.

        Raises
        ------
        RemovalLogError
            If the log does not hold; the message names the first line that was altered.
        """
        entries = self.entries()
        if head not in (None, FIRST, *(entry.digest for entry in entries)):
            raise RemovalLogError(
                f"{self.path}: no line has the hash {head!s:.16}... that the log ended with "
                "before: lines were removed from its end or replaced. Compare it with a backup."
            )

    @property
    def head(self) -> str:
        """SHA-256 of the last line; 64 zeros for an empty log. Keep it elsewhere for `check`."""
        entries = self.entries()
        return entries[-1].digest if entries else FIRST

    def unfinished(self) -> list[LogEntry]:
        """Return removals that were begun and neither done nor abandoned.

        Returns
        -------
        entries : list of LogEntry
            Lines with the event "begun": `remove_from_file` was stopped, or is at work.
        """
        return unfinished(self.entries())

    def repair(self) -> int:
        """Remove a torn last line, which an interrupted write left behind.

        Returns
        -------
        removed : int
            Number of bytes that were removed; 0 if the last line is complete.

        Raises
        ------
        RemovalLogError
            If a complete line was altered, which is not repaired.
        """
        if not os.path.exists(self.path):
            return 0
        with _locked(self.path) as descriptor:
            content = self._content()
            whole, torn = split(content)
            chained(self.path, whole)
            if torn:
                os.ftruncate(descriptor, len(content) - len(torn))
                os.fsync(descriptor)
            return len(torn)

    def _content(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    @contextlib.contextmanager
    def writing(self) -> Iterator[LogWriter]:
        """Return what writes lines, while no other process can.

        Returns
        -------
        writer : context manager of LogWriter
            Waits for other writers, and raises RemovalLogError if the log does not hold.
        """
        with _locked(self.path) as descriptor:
            entries = _checked(self.path, *split(self._content()))
            yield LogWriter(descriptor, entries)


class LogWriter:
    """Writes lines to a log that is locked."""

    def __init__(self, descriptor: int, entries: list[LogEntry]) -> None:
        self._descriptor = descriptor
        self.entries = entries

    def write(
        self,
        event: str,
        *,
        receipt: Receipt | None = None,
        model: str | None = None,
        closes: int | None = None,
    ) -> LogEntry:
        """Write a line, and wait until it is on the disk."""
        entry, line = new_line(self.entries, event, receipt, model, closes)
        self._write(line + b"\n")
        self.entries.append(entry)
        return entry

    def _write(self, data: bytes) -> None:
        """Write all bytes or none, as far as it is up to this process."""
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # a signal, or a disk that is almost full
                written += os.write(self._descriptor, data[written:])
            os.fsync(self._descriptor)
        except BaseException:
            os.ftruncate(self._descriptor, size)
            raise


def _checked(path: str, whole: list[bytes], torn: bytes) -> list[LogEntry]:
    entries = chained(path, whole)
    if torn:
        raise torn_line(path, len(whole), torn)
    return entries


@contextlib.contextmanager
def _locked(path: str) -> Iterator[int]:
    """Open a file for appending, create it if needed, and wait until no one else has locked it."""
    new = not os.path.exists(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        if new:
            sync_folder(path)
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            os.lseek(descriptor, FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        yield descriptor
    finally:
        os.close(descriptor)  # which unlocks it


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until the name of a file that was created or replaced is on the disk."""
    if sys.platform == "win32":  # where folders cannot be opened
        return
    folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
