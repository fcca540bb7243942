"""Records of answers for export and import."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from marginwise.data import DataError
from marginwise.label.events import ON, Answers, Event
from marginwise.label.store import LabelStore


@dataclass(frozen=True)
class Record:
    """Answer, flag and note of an item.

    Parameters
    ----------
    item : str
        Id of the item.
    annotator : str or None
        Name of the annotator; None if a file does not include it.
    kind : {"label", "skip", ""}
        Kind of the answer; empty for an item that has only a flag or a note.
    label : str or None
        The label.
    time : float or None
        Time of the answer, in seconds since 1970; None if a file does not include it.
    duration : float or None
        Number of seconds that the item was shown.
    flagged : bool
        Whether the item is flagged.
    note : str
        The note; empty if there is none.
    where : str
        Location in a file, for messages.
    """

    item: str
    annotator: str | None = None
    kind: str = ""
    label: str | None = None
    time: float | None = None
    duration: float | None = None
    flagged: bool = False
    note: str = ""
    where: str = ""


@dataclass(frozen=True)
class Imported:
    """Result of an import.

    Parameters
    ----------
    added : int
        Number of events that were stored.
    same : int
        Number of records that were already stored.
    older : int
        Number of records that are older than the stored answer of the same annotator.
    """

    added: int
    same: int
    older: int


# -- export ----------------------------------------------------------------------------------------


def records_of(answers: Answers, annotator: str | None = None, each: bool = False) -> list[Record]:
    """Return the records of all items that have an answer, a flag or a note.

    Parameters
    ----------
    answers : Answers
        The current state.
    annotator : str or None
        Name of the annotator. None means the most recent answer to each item.
    each : bool
        Whether to return one record per annotator of an item.
    """
    if annotator is not None and annotator not in answers.annotators():
        known = ", ".join(answers.annotators()) or "none"
        raise ValueError(f"there is no annotator {annotator!r}; the store has {known}.")
    names: Sequence[str | None] = answers.annotators() if each else [None]
    if annotator is not None:
        names = [annotator]
    every = (_record(answers, item, name) for item in answers.touched() for name in names)
    return [record for record in every if record is not None]


def _record(answers: Answers, item: str, annotator: str | None) -> Record | None:
    answer = answers.newest("answer", item, annotator)
    others = [answers.newest(what, item, annotator) for what in ("flag", "note")]
    last = answer or max(filter(None, others), key=lambda event: event.seq, default=None)
    flagged, note = answers.flagged(item, annotator), answers.note(item, annotator)
    if last is None or not (answer or flagged or note):
        return None
    return Record(
        item=item,
        annotator=last.annotator,
        kind="" if answer is None else answer.kind,
        label=last.label,
        time=last.time,
        duration=last.duration,
        flagged=flagged,
        note=note,
    )


# -- import ----------------------------------------------------------------------------------------


def import_records(store: LabelStore, records: Iterable[Record], annotator: str) -> Imported:
    """Store the differences between records and the current state of a store.

    A second import of the same records changes nothing, even if items were answered in between.
    An imported answer does not replace a later one of the same annotator.

    Parameters
    ----------
    store : LabelStore
        The store.
    records : iterable of Record
        Records to store.
    annotator : str
        Name of the annotator for records without one.
    """
    answers = Answers(store.events())
    keys = {event.key for event in store.events()}
    known = json.loads(store.meta().get("labels", "[]"))
    events: dict[str, Event] = {}
    same = older = 0
    named = (replace(record, annotator=record.annotator or annotator) for record in records)
    for record in sorted(named, key=lambda record: record.time or 0.0):
        _check_label(record, known)
        if _is_older(record, answers):
            older += 1
            continue
        new = {event.key: event for event in _events(record, answers) if event.key not in keys}
        events |= new
        same += not new
    store.append_all(events.values())
    return Imported(len(events), same, older)


def _is_older(record: Record, answers: Answers) -> bool:
    """Return whether the annotator has since given another answer."""
    current = answers.answer(record.item, record.annotator)
    if current is None or record.time is None or not record.kind:
        return False
    differs = (current.kind, current.label) != (record.kind, record.label)
    return differs and record.time < current.event.time


def _check_label(record: Record, known: Sequence[str]) -> None:
    if record.kind == "label" and known and record.label not in known:
        raise DataError(
            f"{record.where}: the label {record.label!r} is unknown; expected one of "
            f"{', '.join(known)}. Correct the label."
        )


def _events(record: Record, answers: Answers) -> list[Event]:
    """Return the events that change the current state to that of a record."""
    item, who, found = record.item, str(record.annotator), []
    if record.kind:
        current = answers.answer(item, who)
        if current is None or (current.kind, current.label) != (record.kind, record.label):
            found.append(_event(record, record.kind, label=record.label, duration=record.duration))
    if record.flagged and not answers.flagged(item, who):
        found.append(_event(record, "flag", text=ON))
    if record.note and answers.note(item, who) != record.note:
        found.append(_event(record, "note", text=record.note))
    return found


def _event(record: Record, kind: str, **given: Any) -> Event:
    """Return an event whose key is derived from its content, so that it is stored only once."""
    value = given.get("label") or given.get("text")
    content = json.dumps([kind, record.item, record.annotator, value, record.time])
    digest = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    return Event(
        kind=kind,
        item=record.item,
        annotator=str(record.annotator),
        time=time.time() if record.time is None else record.time,
        key=f"import-{digest}",
        purpose="import",
        **given,
    )
