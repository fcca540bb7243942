"""`predict --dask`: predictions for many files, computed on a cluster."""

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
    """Request to score files on a cluster.

    Parameters
    ----------
    address : str
        Address of a scheduler, or "local".
    model, data, out : str
        Model file, data, and folder of the outputs.
    layout : Layout
        Location of the features.
    threads : int
        Number of threads per task.
    force : bool
        Whether to replace files that were not written by an earlier run.
    scores, proba : bool
        Whether to write decision values and probabilities.
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
    """Score files on a cluster, and report the progress."""
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
    """Return a callback that reports the progress every few seconds."""
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
