"""Lines of a removal log and their chain of hashes.

Each line is a JSON object followed by a newline. ``previous`` is the SHA-256 of the previous line,
and ``sha256`` is that of the line itself without this field. This reveals any altered line,
including the last one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marginwise.removal.receipt import Receipt, refuse_constant

FIRST = "0" * 64  # replaces the hash of the previous line in the first line
EVENTS = ("removed", "begun", "done", "abandoned")
KEYS = {"line", "previous", "time", "event", "closes", "model", "receipt", "sha256"}


class RemovalLogError(ValueError):
    """Error raised if a removal log is damaged or was altered."""


@dataclass(frozen=True)
class LogEntry:
    """Entry of a removal log.

    Parameters
    ----------
    line : int
        Number of the line, from 1.
    time : str
        Time at which the line was written, in UTC (ISO 8601).
    event : str
        "removed" for a removal that was logged afterwards, "begun" before a removal replaces a
        model file, and "done" or "abandoned" for its outcome.
    closes : int or None
        Number of the line with the removal that was completed or abandoned.
    model : str or None
        Name of the model file, without folders.
    receipt : Receipt or None
        Receipt of the removal.
    digest : str
        SHA-256 of the line, which is repeated in the next line.

    See Also
    --------
    RemovalLog.entries : Read all entries of a log.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginwise import ExactSVC
    >>> from marginwise.removal import RemovalLog, remove
    >>> model = ExactSVC(gamma=1.0).fit([[-1.0], [1.0], [2.0]], [0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     entry = RemovalLog(os.path.join(folder, "log.jsonl")).append(remove(model, ids=[2]))
    >>> entry.line, entry.event, entry.receipt.rows_removed
    (1, 'removed', 1)
    """

    line: int
    time: str
    event: str
    closes: int | None
    model: str | None
    receipt: Receipt | None
    digest: str


def new_line(
    entries: list[LogEntry],
    event: str,
    receipt: Receipt | None,
    model: str | None,
    closes: int | None,
) -> tuple[LogEntry, bytes]:
    """Return the next entry, and its line without newline."""
    content: dict[str, Any] = {
        "line": len(entries) + 1,
        "previous": entries[-1].digest if entries else FIRST,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "event": event,
        "closes": closes,
        "model": model,
        "receipt": None if receipt is None else json.loads(receipt.to_json()),
    }
    content["sha256"] = _own_hash(content)
    line = json.dumps(content, allow_nan=False).encode()
    return _entry(content, line), line


def split(content: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete lines of a log, and the rest after the last newline."""
    *whole, torn = content.split(b"\n")
    return whole, torn


def chained(path: str, lines: list[bytes]) -> list[LogEntry]:
    """Return the entries of complete lines; raise an error that names the first altered line."""
    entries: list[LogEntry] = []
    broken: list[int] = []  # lines that do not match the previous line
    fault = None
    for number, line in enumerate(lines, start=1):
        content = _read(line)
        fault = _fault(content, number)
        if content is None or fault:
            break
        if content["previous"] != (entries[-1].digest if entries else FIRST):
            broken.append(number)
        entries.append(_entry(content, line))
    if broken:
        # If the next line does not match either, or this is the first line, this line was altered.
        # Otherwise, the previous line was altered.
        first = broken[0]
        altered = first if first == 1 or first + 1 in broken else first - 1
        raise _altered(path, altered, f"line {first} does not carry the hash of the line before")
    if fault:
        raise _altered(path, len(entries) + 1, fault)
    return entries


def unfinished(entries: list[LogEntry]) -> list[LogEntry]:
    """Return the removals that were begun but neither done nor abandoned."""
    closed = {entry.closes for entry in entries}
    return [entry for entry in entries if entry.event == "begun" and entry.line not in closed]


def torn_line(path: str, lines: int, torn: bytes) -> RemovalLogError:
    """Return the error for a log whose last line is incomplete."""
    return RemovalLogError(
        f"{path}: line {lines + 1} is torn: {len(torn)} bytes follow the last complete line, "
        "because a write was interrupted. Call repair to remove them."
    )


def _altered(path: str, line: int, why: str) -> RemovalLogError:
    return RemovalLogError(
        f"{path}: line {line} was altered: {why}. Compare the log with a backup; do not append to "
        "it."
    )


def _fault(content: dict[str, Any] | None, number: int) -> str | None:
    if content is None:
        return "its content does not have the hash that it carries"
    if content["line"] != number:
        return f"it is numbered {content['line']!r:.20}, so lines were inserted or removed"
    return None


def _read(line: bytes) -> dict[str, Any] | None:
    """Return the content of a line; None if it is invalid or was altered."""
    try:
        content = json.loads(line, parse_constant=refuse_constant)
        if not isinstance(content, dict) or content.keys() != KEYS:
            return None
        if content["sha256"] != _own_hash(content) or not _is_of_an_event(content):
            return None
        if content["receipt"] is not None:
            Receipt.from_dict(content["receipt"])
    except (ValueError, TypeError, RecursionError):
        return None
    return content


def _is_of_an_event(content: dict[str, Any]) -> bool:
    """Return whether a line has the fields of its event; a valid hash does not guarantee this."""
    texts = isinstance(content["time"], str) and isinstance(content["model"], str | None)
    if not texts or type(content["line"]) is not int:
        return False
    if content["event"] in ("removed", "begun"):
        return content["receipt"] is not None and content["closes"] is None
    closing = content["event"] in EVENTS and content["receipt"] is None
    return closing and type(content["closes"]) is int


def _own_hash(content: dict[str, Any]) -> str:
    said = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _entry(content: dict[str, Any], line: bytes) -> LogEntry:
    receipt = content["receipt"]
    return LogEntry(
        line=content["line"],
        time=content["time"],
        event=content["event"],
        closes=content["closes"],
        model=content["model"],
        receipt=None if receipt is None else Receipt.from_dict(receipt),
        digest=hashlib.sha256(line).hexdigest(),
    )
