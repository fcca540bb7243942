"""Formats for the export and import of labels: detection of the format, CSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marginwise.data import DataError
from marginwise.label.events import LAST
from marginwise.label.records import Record

SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "label-studio"}
NAMES = ("csv", "jsonl", "label-studio", "asreview")
OWN = ("item", "label", "kind", "annotator", "time", "duration", "flagged", "note")

Fields = Mapping[str, Mapping[str, Any]]  # columns of each item, by its id
Row = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """Information about the items that formats need in addition to the records.

    Parameters
    ----------
    fields : mapping or None
        The columns of each item by id, in the order of the items; None if they are unknown.
    kind : {"text", "image", "table"}
        Kind of the items.
    labels : sequence of str
        Permitted labels; empty if they are unknown.
    positive : str or None
        The label that corresponds to "included" in ASReview.
    """

    fields: Fields | None = None
    kind: str = "text"
    labels: Sequence[str] = ()
    positive: str | None = None
    _index: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = field(default_factory=dict)

    def item_of(self, given: Any, columns: Mapping[str, Any], where: str) -> str:
        """Return the given id of an item, or the id of the item with the same columns."""
        if given not in (None, ""):
            if self.fields is not None and str(given) not in self.fields:
                raise DataError(
                    f"{where}: there is no item {given!r} among the items; expected one of their "
                    "ids. Give the items that the labels are of."
                )
            return str(given)
        if self.fields is None:
            raise DataError(
                f"{where}: the id of the item is missing; expected it in 'item'. Give the items by "
                "--items to find it by their columns."
            )
        return self._found(columns, where)

    def _found(self, columns: Mapping[str, Any], where: str) -> str:
        assert self.fields is not None
        first: Mapping[str, Any] = next(iter(self.fields.values()), {})
        names = tuple(name for name in first if name in columns)
        if not names:
            raise DataError(
                f"{where}: no column is one of the items: it has {', '.join(columns)}, and the "
                f"items have {', '.join(first)}. Add a column 'item' with their ids."
            )
        if names not in self._index:
            found: dict[tuple[str, ...], list[str]] = {}
            for item, values in self.fields.items():
                found.setdefault(_comparable(values, names), []).append(item)
            self._index[names] = found
        matching = self._index[names].get(_comparable(columns, names), [])
        if len(matching) != 1:
            many = "several items have" if matching else "no item has"
            raise DataError(
                f"{where}: {many} the same {', '.join(names)}; expected exactly one. Add a column "
                "'item' with the ids."
            )
        return matching[0]


def _comparable(values: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple("" if values[name] is None else str(values[name]).strip() for name in names)


@dataclass(frozen=True)
class Format:
    """Reader and writer of a format.

    Parameters
    ----------
    write : callable
        Converts records to text.
    read : callable
        Parses the records in a text.
    needs_items : bool
        Whether writing needs the columns of the items.
    every : bool
        Whether the format supports the answers of several annotators to an item.
    """

    write: Callable[[Sequence[Record], Context], Iterator[str]]
    read: Callable[[str, str, Context], Iterator[Record]]
    needs_items: bool = False
    every: bool = False


def format_of(path: str, text: str | None = None) -> str:
    """Return the name of the format of a file, from its suffix and the columns of its text, if any.

    Raises
    ------
    ValueError
        If no format has the suffix.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: the format is not known by the suffix {suffix!r}; expected "
            f"{', '.join(SUFFIXES)}. Name it by --format: {', '.join(NAMES)}."
        )
    if suffix == ".csv" and text is not None:
        header = next(csv.reader([text.removeprefix("\ufeff").split("\n", 1)[0]]), [])
        names = {name.strip().lower() for name in header}
        if names & {"included", "asreview_label"} and "kind" not in names:
            return "asreview"
    return SUFFIXES[suffix]


# -- times -----------------------------------------------------------------------------------------


def shown_time(seconds: float | None) -> str:
    """Return a time in ISO 8601 format, with microseconds; empty for None."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def read_time(value: Any, where: str) -> float | None:
    """Parse a time, ISO 8601 or a number, as seconds since 1970; None if it is empty."""
    if value in (None, ""):
        return None
    try:
        if isinstance(value, int | float):
            seconds = float(value)
        else:
            stated = datetime.fromisoformat(str(value).strip())
            seconds = (stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LAST:
        raise DataError(
            f"{where}: {value!r} is not a time since 1970; expected one such as "
            "2026-01-31T12:00:00Z, or seconds."
        )
    return seconds


# -- rows of CSV and JSON lines --------------------------------------------------------------------


def row_of(record: Record, context: Context) -> Row:
    """Return a record as a flat row, followed by the columns of the item."""
    row: Row = {
        "item": record.item,
        "label": record.label,
        "kind": record.kind,
        "annotator": record.annotator,
        "time": shown_time(record.time),
        "duration": record.duration,
        "flagged": record.flagged,
        "note": record.note,
    }
    if context.fields is not None:
        columns = context.fields.get(record.item, {})
        row |= {f"item_{key}" if key in OWN else key: value for key, value in columns.items()}
    return row


def record_of(row: Row, where: str, context: Context) -> Record | None:
    """Return the record of a row; None if the row has no answer, flag or note."""
    label = _text(row.get("label"))
    kind = _text(row.get("kind")) or ("label" if label else "")
    flagged, note = _truth(row.get("flagged"), where), _text(row.get("note"))
    if not (kind or flagged or note):
        return None
    if kind not in ("", "label", "skip") or (kind == "label") != bool(label):
        raise DataError(
            f"{where}: the kind {kind!r} does not go with the label {label!r}; expected label with "
            "a label, skip without, or neither."
        )
    columns = {key.removeprefix("item_"): value for key, value in row.items() if key not in OWN}
    return Record(
        item=context.item_of(row.get("item"), columns, where),
        annotator=_text(row.get("annotator")) or None,
        kind=kind,
        label=label or None,
        time=read_time(row.get("time"), where),
        duration=read_duration(row.get("duration"), where),
        flagged=flagged,
        note=note,
        where=where,
    )


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _truth(value: Any, where: str) -> bool:
    text = _text(value).strip().lower()
    if text not in ("", "true", "false", "1", "0", "yes", "no"):
        raise DataError(f"{where}: flagged is {value!r}; expected true or false.")
    return text in ("true", "1", "yes")


def read_duration(value: Any, where: str) -> float | None:
    """Return a duration in seconds; None if it is empty."""
    if value in (None, ""):
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise DataError(f"{where}: the duration {value!r} is not a number of seconds.")
    return seconds


# -- CSV -------------------------------------------------------------------------------------------


def csv_lines(rows: Iterable[Row], names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of CSV: the names of the columns, then the rows."""
    yield _csv_line(names)
    for row in rows:
        yield _csv_line([row.get(name) for name in names])


def _csv_line(values: Sequence[Any]) -> str:
    buffer = io.StringIO()
    shown = [str(value).lower() if isinstance(value, bool) else value for value in values]
    csv.writer(buffer, lineterminator="\r\n").writerow(shown)  # quotes \r and \n in values
    return buffer.getvalue().removesuffix("\r\n") + "\n"


def csv_rows(text: str, path: str, needed: Sequence[str]) -> Iterator[tuple[Row, str]]:
    """Yield the rows of CSV and their locations; raise if a column is missing."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
        names = list(reader.fieldnames or ())
        if not names:
            raise DataError(f"{path}: the file is empty; expected the names of the columns.")
        for name in needed:
            if name not in names:
                raise DataError(
                    f"{path}: column {name!r} is missing; the file has {', '.join(names)}."
                )
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                raise DataError(f"{where}: expected {len(names)} values, as in the first line.")
            yield row, where
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}.") from error
    finally:
        csv.field_size_limit(before)


def _write_csv(records: Sequence[Record], context: Context) -> Iterator[str]:
    rows = [row_of(record, context) for record in records]
    names = dict.fromkeys([*OWN, *(name for row in rows for name in row)])
    return csv_lines(rows, list(names))


def _read_csv(text: str, path: str, context: Context) -> Iterator[Record]:
    for row, where in csv_rows(text, path, ["label"]):
        record = record_of(row, where, context)
        if record is not None:
            yield record


# -- JSON lines ------------------------------------------------------------------------------------


def _write_jsonl(records: Sequence[Record], context: Context) -> Iterator[str]:
    for record in records:
        yield json.dumps(row_of(record, context), ensure_ascii=False, default=str) + "\n"


def _read_jsonl(text: str, path: str, context: Context) -> Iterator[Record]:
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        row = parsed_json(line, where)
        if not isinstance(row, dict):
            raise DataError(f"{where}: expected a JSON object, got {line:.40}.")
        if "label" not in row and "kind" not in row:
            raise DataError(
                f"{where}: the key 'label' is missing; the object has {', '.join(row)}."
            )
        record = record_of(row, where, context)
        if record is not None:
            yield record


def parsed_json(text: str, where: str) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: this is not JSON ({error}).") from error


CSV = Format(_write_csv, _read_csv)
JSON_LINES = Format(_write_jsonl, _read_jsonl)
