"""Labels of Label Studio and ASReview, and the table of all formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marginwise.data import DataError
from marginwise.label.formats import (
    CSV,
    JSON_LINES,
    Context,
    Format,
    Row,
    csv_lines,
    csv_rows,
    parsed_json,
    read_duration,
    read_time,
    shown_time,
)
from marginwise.label.records import Record

CONTROL = "label"  # name of the Choices tag in the labelling configuration of Label Studio
POSITIVE = ("1", "yes", "true", "included", "include", "relevant", "positive")
INCLUDED = ("asreview_label", "included", "label_included", "included_label", "final_included")


# -- Label Studio ----------------------------------------------------------------------------------
#
# The data of a task are the columns of an item. Each annotation has one choice. Label Studio
# expects annotators to be its own users, which may not exist, so their names are stored in the
# metadata of the task.


def _write_tasks(records: Sequence[Record], context: Context) -> Iterator[str]:
    by_item: dict[str, list[Record]] = {}
    for record in records:
        by_item.setdefault(record.item, []).append(record)
    mark = "[\n"
    for number, (item, own) in enumerate(by_item.items(), start=1):
        yield mark + json.dumps(_task(number, item, own, context), ensure_ascii=False, default=str)
        mark = ",\n"
    yield "[]\n" if not by_item else "\n]\n"


def _task(number: int, item: str, own: Sequence[Record], context: Context) -> dict[str, Any]:
    answered = [record for record in own if record.kind]
    meta: dict[str, Any] = {"item": item, "annotators": [record.annotator for record in answered]}
    notes = {record.annotator: record.note for record in own if record.note}
    flags = [record.annotator for record in own if record.flagged]
    return {
        "id": number,
        "data": dict((context.fields or {}).get(item, {})),
        "meta": meta | ({"notes": notes} if notes else {}) | ({"flags": flags} if flags else {}),
        "annotations": [_annotation(record, context) for record in answered],
    }


def _annotation(record: Record, context: Context) -> dict[str, Any]:
    choice = {
        "id": record.item[:10],
        "from_name": CONTROL,
        "to_name": context.kind,
        "type": "choices",
        "value": {"choices": [record.label]},
    }
    made: dict[str, Any] = {
        "result": [choice] if record.kind == "label" else [],
        "was_cancelled": record.kind == "skip",
        "ground_truth": False,
        "created_at": shown_time(record.time),
        "updated_at": shown_time(record.time),
    }
    return made if record.duration is None else made | {"lead_time": record.duration}


def _read_tasks(text: str, path: str, context: Context) -> Iterator[Record]:
    tasks = parsed_json(text, path)
    if not isinstance(tasks, list):
        raise DataError(f"{path}: expected a list of tasks, as Label Studio exports them as JSON.")
    for number, task in enumerate(tasks, start=1):
        where = f"{path}: task {number}"
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise DataError(f"{where}: expected an object with 'data' and 'annotations'.")
        yield from _records_of_task(task, where, context)


def _records_of_task(task: dict[str, Any], where: str, context: Context) -> Iterator[Record]:
    stated = task.get("meta")
    meta: dict[str, Any] = stated if isinstance(stated, dict) else {}
    data, annotations = task["data"], task.get("annotations") or []
    notes, flags = meta.get("notes") or {}, meta.get("flags") or []
    if not (annotations or notes or flags):
        return
    item = context.item_of(meta.get("item") or data.get("item"), data, where)
    names = [_annotator(made, k, meta, where) for k, made in enumerate(annotations)]
    for made, name in zip(annotations, names, strict=True):
        label = _choice(made, where)
        if label is None and not made.get("was_cancelled"):
            continue
        yield Record(
            item=item,
            annotator=name,
            kind="skip" if label is None else "label",
            label=label,
            time=read_time(made.get("updated_at") or made.get("created_at"), where),
            duration=read_duration(made.get("lead_time"), where),
            where=where,
        )
    for name in dict.fromkeys([*notes, *flags]):
        note = str(notes.get(name, ""))
        yield Record(item, name, time=None, flagged=name in flags, note=note, where=where)


def _annotator(made: Any, k: int, meta: dict[str, Any], where: str) -> str | None:
    """Return the annotator of an annotation: the exported name, or the user of Label Studio."""
    if not isinstance(made, dict):
        raise DataError(f"{where}: expected an object for each annotation.")
    names, user = meta.get("annotators") or [], made.get("completed_by")
    if k < len(names) and isinstance(names[k], str):
        return str(names[k])
    if isinstance(user, dict):
        user = user.get("email") or user.get("id")
    return None if user is None else str(user)


def _choice(made: dict[str, Any], where: str) -> str | None:
    """Return the choice of an annotation; None if the task was skipped or has no choice."""
    results = made.get("result") or []
    chosen = [
        choice
        for result in results
        if isinstance(result, dict) and result.get("type") == "choices"
        for choice in result.get("value", {}).get("choices", [])
    ]
    if made.get("was_cancelled") or not chosen:
        return None
    if len(chosen) > 1:
        raise DataError(
            f"{where}: an annotation has the choices {', '.join(map(str, chosen))}; expected one. "
            "Use single choices."
        )
    return str(chosen[0])


# -- ASReview --------------------------------------------------------------------------------------


def _write_asreview(records: Sequence[Record], context: Context) -> Iterator[str]:
    """Yield all items; those without a label can still be screened in ASReview."""
    positive = positive_label(context)
    own = {record.item: record for record in records}
    rows = [
        _screened(item, columns, own.get(item), positive)
        for item, columns in (context.fields or {}).items()
    ]
    names = dict.fromkeys(["title", "abstract", *(name for row in rows for name in row)])
    return csv_lines(rows, list(names))


def _screened(item: str, columns: Mapping[str, Any], record: Record | None, positive: str) -> Row:
    row = {key: value for key, value in columns.items() if key.lower() not in INCLUDED}
    if "abstract" not in row:
        row = {"abstract": row.pop("text", None), **row}
    labelled = record is not None and record.kind == "label"
    row["included"] = int(record.label == positive) if record and labelled else None
    row["item"] = item
    row["annotator"] = record.annotator if record else None
    row["time"] = shown_time(record.time) if record else None
    row["note"] = record.note if record else None
    return row


def _read_asreview(text: str, path: str, context: Context) -> Iterator[Record]:
    positive = positive_label(context)
    negative = next((label for label in context.labels if label != positive), "0")
    meaning = {"1": positive, "0": negative, "yes": positive, "no": negative}
    name = ""
    for row, where in csv_rows(text, path, []):
        name = name or _label_column(row, path)
        value = str(row[name]).strip().lower().removesuffix(".0")
        if value == "" and not row.get("note"):
            continue
        if value not in ("", *meaning):
            raise DataError(f"{where}: {name} is {row[name]!r}; expected 1, 0 or nothing.")
        yield Record(
            item=context.item_of(row.get("item"), _columns(row, context), where),
            annotator=row.get("annotator") or None,
            kind="label" if value else "",
            label=meaning.get(value),
            time=read_time(row.get("time"), where),
            note=row.get("note") or row.get("asreview_note") or "",
            where=where,
        )


def _label_column(row: Row, path: str) -> str:
    for name in (*INCLUDED, "label"):
        if name in row:
            return name
    raise DataError(
        f"{path}: column 'included' is missing; the file has {', '.join(row)}. ASReview writes "
        "'asreview_label' or 'included'."
    )


def _columns(row: Row, context: Context) -> Row:
    """Return the columns of a row, renamed to the columns of the items."""
    first: Mapping[str, Any] = next(iter((context.fields or {}).values()), {})
    renamed = {"text": row["abstract"]} if "text" in first and row.get("abstract") else {}
    kept = ("item", "annotator", "time", "note", *INCLUDED)
    return {key: value for key, value in row.items() if key not in kept} | renamed


def positive_label(context: Context) -> str:
    """Return the label that corresponds to "included"; raise if it cannot be determined."""
    if context.positive is not None:
        if context.labels and context.positive not in context.labels:
            raise ValueError(
                f"--positive is {context.positive!r}, which is not a label; expected one of "
                f"{', '.join(context.labels)}."
            )
        return context.positive
    if len(context.labels) > 2:
        raise ValueError(
            f"ASReview knows two labels, but there are {len(context.labels)}: "
            f"{', '.join(context.labels)}. Name the one that means included by --positive."
        )
    found = [label for label in context.labels if label.lower() in POSITIVE]
    if len(found) == 1 or not context.labels:
        return found[0] if found else "1"
    raise ValueError(
        f"which of the labels {', '.join(context.labels)} means included is not known; name it by "
        "--positive."
    )


FORMATS = {
    "csv": CSV,
    "jsonl": JSON_LINES,
    "label-studio": Format(_write_tasks, _read_tasks, needs_items=True, every=True),
    "asreview": Format(_write_asreview, _read_asreview, needs_items=True),
}
