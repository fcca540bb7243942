"""Labelled items: from a file for `simulate`, and from a label store for `train`."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from marginwise.cli.estimate import drawn_at_random
from marginwise.cli.group import Refused
from marginwise.cli.jobs import Job
from marginwise.cli.options import packed
from marginwise.cli.reading import MISSING, Steps, check_classes
from marginwise.cli.scaling import Scaling
from marginwise.cli.training import Prepared, applied, scaling_of, scaling_steps
from marginwise.data import DataError, open_source
from marginwise.label.events import Answers
from marginwise.label.features import make_features
from marginwise.label.item_files import Columns, open_items, prose_columns
from marginwise.label.items import Items
from marginwise.label.reopening import Request, is_table, items_of, request_of
from marginwise.label.store import LabelStore

LABELS = ("label", "included", "target", "class", "y")  # common names, in order of preference
MAGIC = b"SQLite format 3\x00"  # first bytes of a store


def _request(label: str | None, text_column: tuple[str, ...], **given: Any) -> Request:
    names = tuple(name for text in text_column for name in text.split(",") if name)
    columns = Columns(label, names, given.pop("image_column"), given.pop("missing"))
    return Request("", columns, **given)


item_options = packed(
    "request",
    _request,
    [
        click.Option(
            ["--label"],
            metavar="COLUMN",
            help=f"Label column.  [default: {', '.join(LABELS)}, or the last one]",
        ),
        click.Option(
            ["--text-column"],
            metavar="COLUMNS",
            multiple=True,
            help="Text column, or several columns separated by commas, which are joined.  "
            "[default: columns that look like text]",
        ),
        click.Option(
            ["--image-column"],
            metavar="COLUMN",
            help="Column with image paths, relative to the folder of ITEMS.",
        ),
        MISSING,
        click.Option(
            ["--features"],
            metavar="MODULE:FUNCTION",
            help="Function that receives the list of items and returns an array of features.",
        ),
    ],
)


def labelled_items(request: Request) -> Items:
    """Return the items of a file, which must all have labels, of at least two classes."""
    columns = request.columns
    label = columns.label or _label_column(request.items)
    items = open_items(request.items, replace(columns, label=label))
    bare = [row for row, name in enumerate(items.labels) if name is None]
    if bare:
        raise DataError(
            f"{request.items}: {len(bare):,} of {len(items):,} items have no label, the first of "
            f"them in row {int(items.first[bare[0]]) + 1}; expected a label for each. Label them, "
            "or leave them out."
        )
    check_classes(np.unique(np.array(items.labels)), request.items)
    return items


def _label_column(path: str) -> str:
    """Return the label column: the first with a common name, or the last column."""
    if not is_table(path):
        return "y"  # any name selects the labels of such files
    names: list[str] = list(open_source(path, labelled=False, encoder=None).feature_names)
    return next((name for name in LABELS if name in names), names[-1])


# -- stores ----------------------------------------------------------------------------------------


def is_store(path: str) -> bool:
    """Return whether a path is an SQLite file; `train` supports no other SQLite files."""
    try:
        with open(path, "rb") as handle:
            return handle.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def check_apart(store: str, out: str) -> None:
    """Raise if a result would replace the store."""
    if os.path.exists(store) and os.path.exists(out) and os.path.samefile(store, out):
        raise Refused(f"{out} is the label store, which is not replaced; give another name.")


def prepare_store(job: Job, items: str | None) -> Prepared:
    """Return the labelled items of a store as rows, and the steps that compute the rows.

    Transformers are fitted to all items, labelled or not.
    """
    if job.stream or job.checkpoint or job.columns.groups or job.layout.label:
        raise click.UsageError(
            "--stream, --checkpoint, --groups and --label are not for label stores."
        )
    with LabelStore.open(job.data, readonly=True) as store:
        request = request_of(store, items)
        found = items_of(store, request)
        answers = Answers(store.events())
    known = [event for event in answers.effective() if event.item in found]
    labelled = [event for event in known if event.label is not None]
    rows = np.array([found.row(event.item) for event in labelled], dtype=np.int64)
    y = _classes([event.label for event in labelled if event.label is not None])
    if not len(y):
        raise Refused(f"{job.data} has no labels; label some items first.")
    check_classes(np.unique(y), job.data)
    X, steps, scaling = _features(job, request, found)
    complete = len(known) == len(found)
    drawn = drawn_at_random(answers, [event.item for event in labelled], complete)
    return Prepared(None, steps, (X[rows], y), scaling, drawn)


def _classes(labels: list[str]) -> NDArray[Any]:
    """Return labels as strings, or as integers if all are integers, in the same way as tables."""
    if all(re.fullmatch("0|-?[1-9][0-9]{0,14}", label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    return np.array(labels)


def _features(job: Job, request: Request, items: Items) -> tuple[Any, Steps, Scaling | None]:
    """Return the features of all items, and the steps with which `predict` computes them."""
    if request.features is not None:
        return make_features(items, request.features).X, [], None
    if items.given is not None:
        scaling = scaling_of(None, (items.given, None), job)
        steps = scaling_steps(scaling)
        scaled = applied(steps, (items.given, None))
        assert scaled is not None
        return scaled[0], steps, scaling
    if items.kind == "image" or not is_table(request.items):
        raise Refused(
            f"{request.items}: the items are files, which `predict` cannot read; expected a table, "
            "svmlight text or an array. Give `label` a table of them, or --features."
        )
    table = _table(request, items)
    columns = job.columns
    if items.kind == "text":
        columns = replace(columns, text=tuple(table.column_names))
    encoder = columns.encoder(scale=job.recipe.scale != "none")
    missing = [*request.columns.missing, *job.layout.missing]
    encoder = encoder.set_params(missing=missing or None).fit(table)
    return encoder.transform(table), [("encoder", encoder)], None


def _table(request: Request, items: Items) -> Any:
    """Return the columns of the items from which features are computed."""
    if items.kind == "table":
        return items.table
    label = request.columns.label
    raw = open_source(request.items, labelled=False, encoder=None).load()[0]
    rest = raw if label is None else raw.drop_columns([label])
    return rest.select(list(request.columns.text) or prose_columns(rest)).take(items.first)
