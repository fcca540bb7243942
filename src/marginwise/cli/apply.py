"""`predict` and `test`: commands that use a model."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from marginwise import load
from marginwise.cli.group import Refused, main
from marginwise.cli.options import force_option
from marginwise.cli.output import Console, check_free, table, with_console, write_blocks
from marginwise.cli.reading import Layout, layout_options, open_for, split_model


@main.command(
    example=[
        "marginwise predict model.mwz new.csv labels.txt",
        "marginwise predict model.mwz new.csv --scores > scores.csv",
    ]
)
@click.argument("model")
@click.argument("data")
@click.argument("out", default="-")
@click.option("--scores", is_flag=True, help="Write decision values, too.")
@click.option("--proba", is_flag=True, help="Write probabilities, too; see --calibration of train.")
@layout_options
@force_option
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but the predictions.")
def predict(
    model: str,
    data: str,
    out: str,
    force: bool,
    quiet: bool,
    layout: Layout,
    scores: bool,
    proba: bool,
) -> None:
    """Predict the labels of DATA with MODEL, and write them to OUT or standard output.

    Labels are written one per line. With --scores or --proba, the output is CSV with a header. Rows
    are read and predicted in chunks, so that memory does not grow with DATA, and OUT appears when
    it is complete. Labels in DATA are ignored.
    """
    check_free(out, force)
    fitted = load(model)
    _, estimator = split_model(fitted)
    if proba and getattr(estimator, "calibration", None) is None:
        raise Refused(
            f"{model} has no probabilities: it was trained without calibration. Train it with "
            "--calibration sigmoid, or use --scores."
        )
    source = open_for(fitted, data, layout, labelled=False)
    write_blocks(out, predictions(estimator, source, scores, proba))


def predictions(estimator: Any, source: Any, scores: bool, proba: bool) -> Iterator[str]:
    """Give the lines of the output, chunk by chunk."""
    if scores or proba:
        yield _csv([["label", *_columns(estimator, scores, proba)]])
    for X, _ in source.chunks():
        labels = estimator.predict(X)
        if not (scores or proba):
            yield "".join(f"{label}\n" for label in labels.tolist())
            continue
        parts = [estimator.decision_function(X)] if scores else []
        parts += [estimator.predict_proba(X)] if proba else []
        numbers = np.column_stack(parts).tolist()
        rows = zip(labels.tolist(), numbers, strict=True)
        yield _csv([label, *(f"{value:.9g}" for value in row)] for label, row in rows)


def _columns(estimator: Any, scores: bool, proba: bool) -> list[str]:
    classes = estimator.classes_.tolist() if hasattr(estimator, "classes_") else []
    names = ["score"] if len(classes) <= 2 else [f"score_{name}" for name in classes]
    return (names if scores else []) + ([f"p_{name}" for name in classes] if proba else [])


def _csv(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@main.command(
    example=["marginwise test model.mwz test.csv", "marginwise test model.mwz test.csv --json"]
)
@click.argument("model")
@click.argument("data")
@layout_options
@with_console
def test(model: str, data: str, console: Console, layout: Layout) -> None:
    """Compare the predictions of MODEL with the labels of DATA.

    Prints the error and the confusion matrix, with a row for each true label.
    """
    fitted = load(model)
    _, estimator = split_model(fitted)
    source = open_for(fitted, data, layout, labelled=True)
    classes, confusion = confused(estimator, source)
    rows = int(confusion.sum())
    wrong = rows - int(np.trace(confusion))
    report = {"error": wrong / rows, "rows": rows, "classes": classes, "confusion": confusion}
    counts = [[label, *row] for label, row in zip(classes, confusion.tolist(), strict=True)]
    lines = table(["true", *map(str, classes)], counts)
    verdict = f"error {100 * wrong / rows:.3f} %: {wrong:,} of {rows:,} rows"
    console.give(report, [*lines, verdict])


def confused(estimator: Any, source: Any) -> tuple[list[Any], Any]:
    """Return all labels, and how often each is predicted as which."""
    counts: dict[tuple[Any, Any], int] = {}
    for X, y in source.chunks():
        pairs = zip(y.tolist(), estimator.predict(X).tolist(), strict=True)
        for pair in pairs:
            counts[pair] = counts.get(pair, 0) + 1
    if not counts:
        raise Refused("the data have no rows; give a file with rows to test on.")
    known = estimator.classes_.tolist() if hasattr(estimator, "classes_") else [-1, 1]
    classes = sorted({*known, *(label for label, _ in counts)})
    place = {label: k for k, label in enumerate(classes)}
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    for (label, said), count in counts.items():
        confusion[place[label], place[said]] = count
    return classes, confusion
