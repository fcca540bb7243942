"""Implementation of `continue`: resume an interrupted run, or train a model on more rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from marginwise.cli.contents import is_checkpoint
from marginwise.cli.group import Refused
from marginwise.cli.jobs import job_of
from marginwise.cli.output import STANDARD, Console
from marginwise.cli.reading import (
    Layout,
    Steps,
    check_inputs,
    groups_of,
    load_model,
    open_for,
    placed,
    split_model,
)
from marginwise.cli.recipes import shown
from marginwise.cli.training import assembled, described, learn_with_checkpoint, prepare
from marginwise.data.modelled import completed
from marginwise.progress import Progress

Result = tuple[Any, dict[str, Any]]  # a model and a report


def targets(start: str, paths: tuple[str, ...]) -> tuple[str, str | None]:
    """Return the destination of the model, and the data to learn (None for a checkpoint)."""
    if is_checkpoint(placed(start)):
        if start == STANDARD:
            raise click.UsageError("a checkpoint is a file, not standard input: give its name.")
        if len(paths) > 1:
            raise click.UsageError(f"{start} is a checkpoint: expected CHECKPOINT [MODEL].")
        return paths[0] if paths else job_of(start)[0].model, None
    if not 1 <= len(paths) <= 2:
        raise click.UsageError(f"{start} is not a checkpoint: expected MODEL DATA [OUT].")
    check_inputs(start, paths[0])
    return paths[1] if len(paths) == 2 else start, paths[0]


def resumed(checkpoint: str, threads: int, console: Console) -> Result:
    """Resume a run of `train` from its checkpoint."""
    job, steps = job_of(checkpoint)
    try:
        job.recipe.make(console)
    except click.UsageError as error:  # caused by the file, not by the usage
        raise Refused(f"{checkpoint} cannot be continued: {error.message}") from error
    estimator = replace(job.recipe, threads=threads).make(console)
    prepared = prepare(job, steps)
    console.say(shown(estimator))
    learn_with_checkpoint(estimator, prepared, job, console)
    return assembled(steps, estimator), {"rows": len(prepared), **described(estimator)}


def updated(
    path: str, data: str, layout: Layout, groups: str | None, threads: int, console: Console
) -> Result:
    """Train an existing model on the rows of a file."""
    model = load_model(path)
    steps, estimator = split_model(model)
    if not hasattr(estimator, "partial_fit"):
        raise Refused(f"{path} holds a {type(estimator).__name__}, which cannot learn more rows.")
    estimator.set_params(n_jobs=threads)
    data = placed(data)
    layout = completed(layout, steps[0][1] if steps else None, data)
    source = open_for(model, data, layout, labelled=hasattr(estimator, "classes_"))
    column = groups or _group_column(steps, estimator, path)
    names = None if column is None else groups_of(data, layout, column)
    rows = 0
    with Progress(len(source), console.verbose) as progress:
        for X, y in source.chunks():
            given = {} if names is None else {"groups": names[rows : rows + X.shape[0]]}
            given |= {} if y is None else {"y": y}
            estimator.partial_fit(X, **given)
            progress.learned(X.shape[0], len(estimator.ids_), 0.0)
            rows += X.shape[0]
    if getattr(estimator, "finish_at_end", False):
        estimator.finish()
    return assembled(steps, estimator), {"rows": rows, **described(estimator)}


def _group_column(steps: Steps, estimator: Any, path: str) -> str | None:
    """Return the column of the groups that `train` stored; None for a model without groups."""
    if not hasattr(estimator, "groups_"):
        return None
    dropped = getattr(steps[0][1], "drop", None) if steps else None
    if not dropped:
        raise Refused(
            f"{path} stores the groups of its rows, so that `forget` can remove them; expected a "
            "group for each new row. Name the column by --groups."
        )
    return str(dropped[-1])  # `train` appends it to the columns of --drop
