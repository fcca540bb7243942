"""`labels`: export, import and describe the labels in a store."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np

from marginwise.cli.commands import Subcommands
from marginwise.cli.group import Refused, main
from marginwise.cli.labelled import check_apart
from marginwise.cli.options import force_option
from marginwise.cli.output import Console, check_free, table, with_console, write_blocks
from marginwise.label.agreement import agreements
from marginwise.label.events import Answers
from marginwise.label.exchange import FORMATS
from marginwise.label.formats import NAMES, Context, format_of, shown_time
from marginwise.label.opening import kept_if_used
from marginwise.label.records import import_records, records_of
from marginwise.label.reopening import fields_of, items_of, remember, request_of
from marginwise.label.store import LabelStore

PAUSE = 600.0  # seconds between two answers that count as a pause

format_option = click.option(
    "--format",
    "named",
    type=click.Choice(NAMES),
    help=("File format.  [default: determined by the suffix]"),
)
positive_option = click.option(
    "--positive", metavar="LABEL", help='Label that corresponds to "included" in ASReview.'
)
text_option = click.option(
    "--text-column",
    metavar="COLUMNS",
    callback=lambda _context, _option, value: tuple(filter(None, (value or "").split(","))),
    help="Text columns of ITEMS, separated by commas, as passed to `label`.  [default: columns "
    "that `label` used, or that look like text]",
)


@main.group(cls=Subcommands)
def labels() -> None:
    """Export, import or describe the labels in a store.

    A store is the file that `marginwise label` writes, labels.db by default.
    """


# -- export ----------------------------------------------------------------------------------------


@labels.command(
    example=[
        "marginwise labels export labels.db labels.csv",
        "marginwise labels export labels.db tasks.json --items messages.csv",
        "marginwise labels export labels.db screened.csv --format asreview --positive spam",
    ]
)
@click.argument("store")
@click.argument("out")
@format_option
@click.option(
    "--annotator",
    metavar="NAME",
    help=(
        "Export only the answers of this annotator.  [default: the most recent answer to each item]"
    ),
)
@click.option("--each", is_flag=True, help="Write one row per item and annotator.")
@click.option(
    "--items",
    metavar="ITEMS",
    help="File or folder of the items, whose columns are added.  [default: the items of `label` "
    "for the formats of Label Studio and ASReview, none for others]",
)
@text_option
@positive_option
@force_option
@with_console
def export(
    store: str,
    out: str,
    named: str | None,
    annotator: str | None,
    each: bool,
    items: str | None,
    text_column: tuple[str, ...],
    positive: str | None,
    force: bool,
    console: Console,
) -> None:
    """Write the labels in STORE to a file.

    The suffix of OUT determines the format: .csv, .jsonl, or .json for Label Studio; --format
    asreview writes CSV for ASReview. CSV and JSON Lines files contain the id of each item, its
    label, annotator and time, notes and flags. With --items, they also contain the columns of the
    items.
    """
    console.check_output(out)
    check_free(out, force)
    check_apart(store, out)
    name = named or format_of(out)
    chosen = FORMATS[name]
    with LabelStore.open(store, readonly=True) as opened:
        answers = Answers(opened.events())
        wanted = items is not None or chosen.needs_items
        context = context_of(opened, items, positive, text_column, with_items=wanted)
    records = records_of(answers, annotator, each or (chosen.every and annotator is None))
    write_blocks(out, chosen.write(records, context))
    report = {"out": out, "format": name, "records": len(records)}
    console.give_beside(out, report, f"{out}: {len(records):,} records, format {name}")


def context_of(
    store: LabelStore,
    items: str | None,
    positive: str | None,
    texts: tuple[str, ...] = (),
    *,
    with_items: bool,
) -> Context:
    """Return the information about a store and its items that formats need."""
    meta = store.meta()
    names = json.loads(meta.get("labels", "[]"))
    if not names:
        names = sorted({event.label for event in store.events() if event.label is not None})
    if positive is None and names and "find" in meta.get("goal", ""):
        positive = names[0]
    if not with_items:
        return Context(labels=names, positive=positive)
    request = request_of(store, items, texts)
    found = items_of(store, request)
    return Context(fields_of(found, request), found.kind, names, positive)


# -- import ----------------------------------------------------------------------------------------


@labels.command(
    "import",
    example=[
        "marginwise labels import labels.db labels.csv",
        "marginwise labels import labels.db tasks.json --items messages.csv",
    ],
)
@click.argument("store")
@click.argument("file")
@format_option
@click.option(
    "--annotator",
    metavar="NAME",
    default="import",
    show_default=True,
    help="Annotator of the labels, if FILE does not state it.",
)
@click.option(
    "--items",
    metavar="ITEMS",
    help="File or folder of the items, whose columns identify rows without an id.  [default: the "
    "items of `label`]",
)
@text_option
@positive_option
@with_console
def bring(
    store: str,
    file: str,
    named: str | None,
    annotator: str,
    items: str | None,
    text_column: tuple[str, ...],
    positive: str | None,
    console: Console,
) -> None:
    """Add the labels in FILE to STORE.

    STORE is created if it does not exist. FILE has one of the formats of `labels export`. Answers
    that STORE already contains are not added again, and answers that the annotator has changed
    since are not restored. If a label cannot be added, none is added.
    """
    text = _read(file)
    name = named or format_of(file, text)
    with kept_if_used(Path(store)), LabelStore.open(store) as opened:
        context = importing(opened, items, positive, text_column)
        records = list(FORMATS[name].read(text, file, context))
        if not records:
            raise Refused(f"{file} has no labels; expected at least one answer, flag or note.")
        done = import_records(opened, records, annotator)
        if items is not None:
            remember(opened, request_of(opened, items, text_column))
    report = {"store": store, "format": name, "records": len(records), **vars(done)}
    lines = (
        f"{store}: {done.added:,} events added; of {len(records):,} records, {done.same:,} were "
        f"known and {done.older:,} are older than the stored answers"
    )
    console.give(report, lines)


def importing(
    store: LabelStore, items: str | None, positive: str | None, texts: tuple[str, ...] = ()
) -> Context:
    """Return the information that formats need; without items if they cannot be opened."""
    try:
        return context_of(store, items, positive, texts, with_items=True)
    except (ValueError, OSError, ImportError):
        if items is not None:
            raise
        return context_of(store, None, positive, with_items=False)


def _read(file: str) -> str:
    try:
        with click.open_file(file, "rb") as handle:
            content: bytes = handle.read()
            return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(
            f"{file} is not UTF-8 text: byte {error.start + 1} cannot be read. Save it as UTF-8."
        ) from error


# -- info ------------------------------------------------------------------------------------------


@labels.command(example=["marginwise labels info labels.db"])
@click.argument("store")
@with_console
def info(store: str, console: Console) -> None:
    """Describe STORE: labels, annotators, agreement and labelling time."""
    describe_store(store, console)


def describe_store(store: str, console: Console) -> None:
    """Print a description of a store."""
    with LabelStore.open(store, readonly=True) as opened:
        report = described(opened)
    console.give(report, lines_of(report))


def described(store: LabelStore) -> dict[str, Any]:
    """Describe the content of a store."""
    events, meta, items = store.events(), store.meta(), store.items
    answers = Answers(events)
    counted = answers.effective()
    touched = answers.touched()
    names = dict.fromkeys(json.loads(meta.get("labels", "[]")), 0)
    return {
        "store": str(store.path),
        "items": None if items is None else {"name": items.name, "count": items.count},
        "created": meta.get("created"),
        "goal": meta.get("goal", "").strip('"') or None,
        "events": len(events),
        "labels": names | Counter(event.label for event in counted if event.label is not None),
        "skipped": sum(event.kind == "skip" for event in counted),
        "flagged": sum(answers.flagged(item) for item in touched),
        "notes": sum(bool(answers.note(item)) for item in touched),
        "first": shown_time(min((event.time for event in events), default=None)),
        "last": shown_time(max((event.time for event in events), default=None)),
        "annotators": {name: work_of(answers, name) for name in answers.annotators()},
        "agreement": [vars(pair) for pair in agreements(answers)],
    }


def work_of(answers: Answers, annotator: str) -> dict[str, Any]:
    """Return the numbers of answers of an annotator, and their speed without imported answers."""
    own = answers.effective(annotator)
    seconds = [event.duration for event in own if event.duration is not None]
    times = sorted(event.time for event in own if event.purpose != "import")
    pauses = np.diff(times)
    hours = float(pauses[pauses < PAUSE].sum()) / 3600
    return {
        "labels": sum(event.kind == "label" for event in own),
        "skips": sum(event.kind == "skip" for event in own),
        "seconds": float(np.median(seconds)) if seconds else None,
        "per_hour": round(float((pauses < PAUSE).sum()) / hours, 1) if hours > 0 else None,
    }


def lines_of(report: dict[str, Any]) -> list[str]:
    """Return a report as lines of text."""
    items = report["items"]
    lines = [f"store: {report['store']}"]
    if items is not None:
        lines.append(f"items: {items['name']}, {items['count']:,}")
    lines += [
        f"events: {report['events']:,}, from {report['first'] or '-'} to {report['last'] or '-'}",
        f"skipped: {report['skipped']:,}, flagged: {report['flagged']:,}, "
        f"with notes: {report['notes']:,}",
        "",
        *table(("label", "items"), list(report["labels"].items())),
        "",
    ]
    people = [
        (name, *("-" if value is None else f"{value:g}" for value in work.values()))
        for name, work in report["annotators"].items()
    ]
    lines += table(("annotator", "labels", "skips", "seconds (median)", "per hour"), people)
    for pair in report["agreement"]:
        kappa = "not defined" if pair["kappa"] is None else f"{pair['kappa']:.3f}"
        lines.append(
            f"{pair['one']} and {pair['two']}: {pair['items']:,} items labelled by both, "
            f"{pair['agree']:.1%} alike, Cohen's kappa {kappa}"
        )
    return lines
