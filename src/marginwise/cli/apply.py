"""`predict` and `test`: commands that use a model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from marginwise.cli.group import Refused, main
from marginwise.cli.options import force_option, threads_option
from marginwise.cli.output import Console, check_free, table, with_console, write_blocks
from marginwise.cli.reading import (
    Layout,
    check_inputs,
    layout_options,
    load_model,
    open_for,
    split_model,
)
from marginwise.cli.scoring import Request, score_on_dask
from marginwise.data.modelled import drop_names
from marginwise.data.predictions import column_names, csv_rows, csv_text, predicted

EVERY = 5.0  # seconds between two reports of progress

Chunks = Iterator[tuple[Any, Any]]  # features and labels of consecutive chunks


@main.command(
    example=[
        "marginwise predict model.mwz new.csv labels.txt",
        "marginwise predict model.mwz new.csv --scores > scores.csv",
        "marginwise predict --dask local:2 model.mwz 'data/*.parquet' predicted/",
    ]
)
@click.argument("model")
@click.argument("data")
@click.argument("out", default="-")
@click.option("--scores", is_flag=True, help="Also write decision values.")
@click.option(
    "--proba",
    is_flag=True,
    help=("Also write probabilities. Requires a model trained with --calibration."),
)
@click.option(
    "--dask",
    "address",
    metavar="ADDRESS",
    help="Score on the Dask cluster with this scheduler address, such as tcp://host:8786, or on "
    "new workers of this machine: local, or local:2 for two workers. OUT is a folder.",
)
@layout_options
@threads_option
@force_option
@click.option("--quiet", "-q", is_flag=True, help="Print only the predictions.")
def predict(
    model: str,
    data: str,
    out: str,
    address: str | None,
    force: bool,
    quiet: bool,
    threads: int,
    layout: Layout,
    **wanted: bool,
) -> None:
    """Predict the labels of DATA and write them to OUT or standard output.

    Labels are written one per line. With --scores or --proba, the output is CSV with a header. Rows
    are read and predicted in chunks, so memory consumption does not depend on the size of DATA. OUT
    is created only when it is complete. Labels in DATA are ignored.

    With --dask, DATA is a file, a folder or a quoted pattern. Each file is one task, and one output
    file per input file is written to the folder OUT: Parquet for Parquet and Arrow files, CSV for
    others. The outputs have a column label and the columns of --scores and --proba. Workers must
    have access to the same files. Files that cannot be read are reported, and the others are
    scored. A repeated command skips outputs that are complete and were made by the same model from
    the same data. Tasks use one thread unless --threads is given.
    """
    if address is not None:
        request = Request(address, model, data, out, layout, threads, force, **wanted)
        score_on_dask(request, Console(quiet))
        return
    check_inputs(model, data)
    check_free(out, force)
    console = Console(quiet)
    console.head()
    fitted, estimator = loaded(model, threads)
    if wanted["proba"] and getattr(estimator, "calibration", None) is None:
        raise Refused(
            f"{model} has no probabilities, because it was trained without calibration. Train it "
            "with --calibration sigmoid, or use --scores."
        )
    check_lines(estimator, wanted)
    source = open_for(fitted, data, layout, labelled=False)
    drop_names(fitted)
    with Counted(console) as counted:
        write_blocks(out, predictions(estimator, counted.rows(source), **wanted))


def check_lines(estimator: Any, wanted: dict[str, bool]) -> None:
    """Raise if labels cannot be written one per line."""
    for label in map(str, getattr(estimator, "classes_", [])):
        if len(label.splitlines()) > 1 and not any(wanted.values()):
            raise Refused(
                f"the label {label!r} has line breaks, so labels cannot be written one per line; "
                "use --scores, which writes CSV."
            )


class Counted:
    """Counter of processed rows, which reports their number and rate every few seconds.

    Parameters
    ----------
    console : Console
        Console to report to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows = 0
        self._began = self._shown = time.monotonic()

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._show()

    def rows(self, source: Any) -> Chunks:
        """Yield the chunks of a source, and count their rows."""
        for X, y in source.chunks():
            yield X, y
            self._rows += X.shape[0]
            if time.monotonic() - self._shown > EVERY:
                self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        rate = self._rows / max(self._shown - self._began, 1e-9)
        self._console.say(f"{self._rows:,} rows, {rate:,.0f} rows/s")


def loaded(path: str, threads: int) -> tuple[Any, Any]:
    """Return the model in a file, and its estimator with the given number of threads."""
    model = load_model(path)
    _, estimator = split_model(model)
    return model, estimator.set_params(n_jobs=threads)


def predictions(estimator: Any, chunks: Chunks, scores: bool, proba: bool) -> Iterator[str]:
    """Yield the lines of the output, chunk by chunk."""
    if scores or proba:
        yield csv_text([["label", *column_names(estimator, scores, proba)]])
    for X, _ in chunks:
        labels, numbers = predicted(estimator, X, scores, proba)
        if scores or proba:
            yield csv_rows(labels, numbers)
        else:
            yield "".join(f"{label}\n" for label in labels.tolist())


@main.command(
    example=["marginwise test model.mwz test.csv", "marginwise test model.mwz test.csv --json"]
)
@click.argument("model")
@click.argument("data")
@layout_options
@threads_option
@with_console
def test(model: str, data: str, threads: int, console: Console, layout: Layout) -> None:
    """Evaluate MODEL on the labelled rows of DATA.

    Prints the error and the confusion matrix, with one row per true label.
    """
    check_inputs(model, data)
    console.head()
    fitted, estimator = loaded(model, threads)
    source = open_for(fitted, data, layout, labelled=True)
    drop_names(fitted)
    with Counted(console) as counted:
        classes, confusion = confused(estimator, counted.rows(source))
    rows = int(confusion.sum())
    wrong = rows - int(np.trace(confusion))
    report = {"error": wrong / rows, "rows": rows, "classes": classes, "confusion": confusion}
    counts = [[label, *row] for label, row in zip(classes, confusion.tolist(), strict=True)]
    lines = [" ".join(line.splitlines()) for line in table(["true", *map(str, classes)], counts)]
    verdict = f"error {100 * wrong / rows:.3f} %: {wrong:,} of {rows:,} rows"
    console.give(report, [*lines, verdict])


def confused(estimator: Any, chunks: Chunks) -> tuple[list[Any], Any]:
    """Return all labels, and the confusion matrix."""
    counts: dict[tuple[Any, Any], int] = {}
    for X, y in chunks:
        pairs = zip(y.tolist(), estimator.predict(X).tolist(), strict=True)
        for pair in pairs:
            counts[pair] = counts.get(pair, 0) + 1
    if not counts:
        raise Refused("the data have no rows. Pass a file with rows to test on.")
    known = estimator.classes_.tolist() if hasattr(estimator, "classes_") else [-1, 1]
    classes = sorted({*known, *(label for label, _ in counts)})
    place = {label: k for k, label in enumerate(classes)}
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    for (label, given), count in counts.items():
        confusion[place[label], place[given]] = count
    return classes, confusion
