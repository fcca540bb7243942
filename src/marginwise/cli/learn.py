"""`train`, `tune` and `continue`: commands that learn."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from marginwise.cli.continuing import resumed, targets, updated
from marginwise.cli.group import Refused, main
from marginwise.cli.jobs import Job
from marginwise.cli.labelled import check_apart, is_store, prepare_store
from marginwise.cli.options import Duration, force_option, threads_option
from marginwise.cli.output import (
    STANDARD,
    Console,
    check_free,
    plain,
    save_model,
    table,
    with_console,
    write_blocks,
)
from marginwise.cli.reading import Layout, column_options, layout_options, placed
from marginwise.cli.recipes import CLASSIFIERS, recipe_options
from marginwise.cli.training import check_job, prepare, trained, tuned
from marginwise.cli.tuning import report_of, table_of, tuning_options


@main.command(
    example=[
        "marginwise train train.csv model.mwz",
        "marginwise train train.svm linear.mwz -t 0 -c 10",
    ]
)
@click.argument("data")
@click.argument("model")
@layout_options
@column_options
@tuning_options(all_of_them=False)
@click.option("--stream", is_flag=True, help="Learn in chunks even if all rows fit in memory.")
@click.option(
    "--items",
    metavar="ITEMS",
    help="File of the items if DATA is a label store.  [default: the items of `label`]",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    help=("Checkpoint file from which `continue` resumes an interrupted run."),
)
@click.option(
    "--every",
    type=Duration(),
    default="60s",
    show_default=True,
    help="Time between writes of the checkpoint, such as 90, 60s, 10m or 1h.",
)
@force_option
@recipe_options()
@with_console
def train(
    data: str, model: str, items: str | None, force: bool, console: Console, **given: Any
) -> None:
    """Train a model on DATA and write it to the file MODEL.

    DATA is a file, a pattern such as 'part-*.csv', a folder of Parquet files, or - for standard
    input. Supported formats are CSV, JSON Lines and svmlight (plain, gz or zst), Parquet, Arrow,
    .npz and .npy. The format is recognised by the content.

    Columns of tables are encoded: numbers are standardised, categories are one-hot encoded, and
    texts are converted to TF-IDF features. C and gamma are selected by cross-validation if neither
    is given. MODEL includes the preprocessing.

    DATA may also be a label store written by `marginwise label`. The model is then trained on the
    labelled items, and its error is estimated on answers to questions that were drawn at random.
    """
    job = Job(data, model, **given)
    check_job(job)
    console.check_output(model)
    for path in (model, job.checkpoint):
        check_free(path, force)
    console.head()
    if job.checkpoint is not None:
        Path(job.checkpoint).unlink(missing_ok=True)  # remove the checkpoint of another run
    job = replace(job, data=placed(data))
    stored = is_store(job.data)
    if items is not None and not stored:
        raise click.UsageError(
            f"--items requires a label store, but {data} is not one. Leave out --items."
        )
    if stored:
        check_apart(job.data, model)
    preparing = partial(prepare_store, items=items) if stored else None
    fitted, report = trained(job, console, preparing)
    save_model(fitted, model)
    finish(console, model, report)


@main.command(example=["marginwise tune train.csv --Cs 1,10,100 --gammas 3"])
@click.argument("data")
@layout_options
@column_options
@tuning_options(all_of_them=True)
@click.option("--out", metavar="FILE", help="JSON file to write the results to.")
@force_option
@recipe_options(CLASSIFIERS, without=("C", "gamma"))
@with_console
def tune(data: str, out: str | None, force: bool, console: Console, **given: Any) -> None:
    """Select C and gamma for DATA by cross-validation and print all scores."""
    console.check_output(out)
    check_free(out, force)
    console.head()
    job = Job(data, "", **given)
    search = tuned(prepare(job), job, console)
    if search is None:
        raise Refused(
            f"{data} cannot be split into folds; expected at least two classes with two rows each."
        )
    found = {"C": search.C_, "gamma": search.gamma, **report_of(search)}
    pairs = table_of(search)
    if out is not None:
        write_blocks(out, [json.dumps(plain({**found, "pairs": pairs}), indent=1) + "\n"])
    keys = list(pairs[0])
    lines = table(keys, [[f"{pair[key]:.6g}" for key in keys] for pair in pairs])
    console.give({**found, "pairs": pairs}, [*lines, summary(found)] if out != STANDARD else [])


@main.command(
    "continue",
    example=[
        "marginwise train train.csv model.mwz --checkpoint run.ckpt --every 60s",
        "marginwise continue run.ckpt --force",
        "marginwise continue model.mwz more.csv newer.mwz",
    ],
)
@click.argument("start")
@click.argument("paths", nargs=-1)
@layout_options
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Column of DATA with the group of each row.  [default: the one of train]",
)
@threads_option
@force_option
@with_console
def resume(
    start: str,
    paths: tuple[str, ...],
    groups: str | None,
    threads: int,
    force: bool,
    console: Console,
    layout: Layout,
) -> None:
    """Resume an interrupted run, or train a model on more rows.

    `continue CHECKPOINT [MODEL]` resumes an interrupted `train` with the same data and options. The
    resulting model is identical, bit for bit, to that of an uninterrupted run.

    `continue MODEL DATA [OUT]` learns the rows of DATA with partial_fit and writes the model to
    OUT, or back to MODEL with --force.
    """
    out, data = targets(start, paths)
    if data is None and groups is not None:
        raise click.UsageError(f"{start} is a checkpoint: --groups is for new rows of a model.")
    console.check_output(out)
    check_free(out, force)
    console.head()
    if data is None:
        fitted, report = resumed(start, threads, console)
    else:
        fitted, report = updated(start, data, layout, groups, threads, console)
    save_model(fitted, out)
    finish(console, out, report)


def finish(console: Console, path: str, report: dict[str, Any]) -> None:
    """Report that a model was written."""
    console.give_beside(path, {"model": path, **report}, f"{path}: {summary(report)}")


def summary(report: dict[str, Any]) -> str:
    """Return a summary of a model as one line."""
    words = [f"{name}={report[name]:g}" for name in ("C", "gamma") if report.get(name) is not None]
    if "support_vectors" in report:
        words.append(f"{report['support_vectors']:,} support vectors")
    if "cv_error" in report:
        words.append(f"cross-validated error {100 * report['cv_error']:.2f} %")
    if report.get("error") is not None:
        bounds = f"{100 * report['error_low']:.2f} to {100 * report['error_high']:.2f} %"
        rows = f"{report['error_rows']:,} answers drawn at random"
        words.append(f"error {100 * report['error']:.2f} % (95 % interval {bounds}, {rows})")
    elif "error" in report:
        words.append("error not estimated")
    return ", ".join(words)
