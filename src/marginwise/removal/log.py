"""RemovalLog: append-only file of receipts with chained hashes.

The chain of hashes cannot reveal lines missing from the end. To detect this, store the value of
`head` elsewhere.

Each line is written by one system call, and the file is flushed to disk before `append` returns. If
the machine crashes in between, an incomplete line may remain. Such a torn line is reported, and it
is removed only on request.
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

FAR = 1 << 40  # offset of the byte that is locked on Windows, beyond the content


class RemovalLog:
    """Append-only log of removals with chained hashes.

    Every line contains the SHA-256 of the previous line. Iterating over a log yields the receipts
    of all completed removals, oldest first.

    Parameters
    ----------
    path : str or path-like
        Path of the log file. The file is created with the first entry; its folder must exist.

    See Also
    --------
    remove_from_file : Remove rows from a model file and log the removal.
    Receipt : Receipt of a removal.

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
        """Append a receipt and flush the log to disk.

        Parameters
        ----------
        receipt : Receipt
            Receipt of a removal.

        Returns
        -------
        entry : LogEntry
            Entry that was written.

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
        """Read all entries and verify the chain of hashes.

        Returns
        -------
        entries : list of LogEntry
            Entries in order. Empty if the file does not exist.

        Raises
        ------
        RemovalLogError
            If a line was altered or is torn.
        """
        whole, torn = split(self._content())
        if torn:  # another process may be writing the line
            with _locked(self.path):
                whole, torn = split(self._content())
        return _checked(self.path, whole, torn)

    def check(self, head: str | None = None) -> None:
        """Verify that no line was altered, inserted or removed.

        Parameters
        ----------
        head : str, default=None
            Earlier value of `head`, which must be the hash of one of the lines. With None, lines
            missing from the end are not detected.

        Raises
        ------
        RemovalLogError
            If the log was altered. The message names the first altered line.
        """
        entries = self.entries()
        if head not in (None, FIRST, *(entry.digest for entry in entries)):
            raise RemovalLogError(
                f"{self.path}: no line has the hash {head!s:.16}... that the log ended with "
                "before: lines were removed from its end or replaced. Compare it with a backup."
            )

    @property
    def head(self) -> str:
        """SHA-256 of the last line, or 64 zeros for an empty log."""
        entries = self.entries()
        return entries[-1].digest if entries else FIRST

    def unfinished(self) -> list[LogEntry]:
        """Return removals that were neither completed nor abandoned.

        Returns
        -------
        entries : list of LogEntry
            Entries with the event "begun" of calls of `remove_from_file` that were interrupted or
            are still running.
        """
        return unfinished(self.entries())

    def repair(self) -> int:
        """Remove an incomplete last line left by an interrupted write.

        Returns
        -------
        removed : int
            Number of bytes that were removed; 0 if the last line is complete.

        Raises
        ------
        RemovalLogError
            If a complete line was altered, which cannot be repaired.
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
        """Lock the log and return a writer.

        Returns
        -------
        writer : context manager of LogWriter
            Context manager that waits for other writers and raises RemovalLogError if the log was
            altered.
        """
        with _locked(self.path) as descriptor:
            entries = _checked(self.path, *split(self._content()))
            yield LogWriter(descriptor, entries)


class LogWriter:
    """Writer of lines to a locked log."""

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
        """Write a line and flush it to disk."""
        entry, line = new_line(self.entries, event, receipt, model, closes)
        self._write(line + b"\n")
        self.entries.append(entry)
        return entry

    def _write(self, data: bytes) -> None:
        """Write all bytes, or none if an error occurs."""
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # partial write: a signal, or an almost full disk
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
    """Open or create a file for appending, and lock it, waiting for other processes."""
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
        os.close(descriptor)  # also unlocks the file


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Flush the directory entry of a file that was created or replaced to disk."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
