"""`predict --dask`: files of predictions, made by the workers of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from marginwise.cli.group import Refused, described
from marginwise.cli.options import was_given
from marginwise.cli.output import STANDARD, Console
from marginwise.cli.reading import Layout, load_model

if TYPE_CHECKING:
    from marginwise.dask import ScoringReport

EVERY = 5.0  # seconds between two reports of progress


@dataclass(frozen=True)
class Request:
    """What is to be scored, and where.

    Parameters
    ----------
    address : str
        Address of a scheduler, or "local".
    model, data, out : str
        The file of the model, the data, and the folder of the outputs.
    layout : Layout
        Where the features are.
    threads : int
        Threads of each task.
    force : bool
        Whether files are replaced that no earlier run has written.
    scores, proba : bool
        Whether decision values and probabilities are written.
    """

    address: str
    model: str
    data: str
    out: str
    layout: Layout
    threads: int
    force: bool
    scores: bool
    proba: bool


def score_on_dask(request: Request, console: Console) -> None:
    """Score files on a cluster, and report how far it is."""
    from marginwise.dask import ScoringError, connected, predict_files

    if STANDARD in (request.data, request.out):
        raise click.UsageError("--dask reads files and writes to a folder: give DATA and OUT.")
    console.head()
    given = {**vars(request.layout), "scores": request.scores, "proba": request.proba}
    model, threads = load_model(request.model), request.threads if was_given("threads") else 1
    with connected(request.address) as client:
        try:
            report = predict_files(
                model,
                request.data,
                request.out,
                client=client,
                n_jobs=threads,
                force=request.force,
                progress=_reporting(console),
                **given,
            )
        except ScoringError as error:
            for message in list(error.report.failed.values())[1:]:
                click.echo(f"marginwise: error: {message}", err=True)
            raise Refused(described(error)) from error
    console.say(_summary(report, len(report.written) + len(report.skipped)))


def _reporting(console: Console) -> Callable[[ScoringReport, int], None]:
    """Return what reports progress from time to time."""
    shown = [time.monotonic()]

    def show(report: ScoringReport, total: int) -> None:
        if time.monotonic() - shown[0] > EVERY:
            shown[0] = time.monotonic()
            console.say(_summary(report, total))

    return show


def _summary(report: ScoringReport, total: int) -> str:
    done = len(report.written) + len(report.skipped) + len(report.failed)
    rate = report.rows / max(report.seconds, 1e-9)
    skipped = f" ({len(report.skipped)} of them complete before)" if report.skipped else ""
    return f"{done} of {total} files{skipped}, {report.rows:,} rows, {rate:,.0f} rows/s"
