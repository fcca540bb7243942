"""What `continue` does: an interrupted run to its end, or more rows for a model."""

from __future__ import annotations

from typing import Any

import click

from marginwise.cli.group import Refused
from marginwise.cli.jobs import job_of
from marginwise.cli.output import Console, check_free
from marginwise.cli.reading import Layout, load_model, open_for, split_model
from marginwise.cli.recipes import shown
from marginwise.cli.training import assembled, described, learn_with_checkpoint, prepare
from marginwise.progress import Progress

Result = tuple[Any, dict[str, Any], str]  # a model, a report, and where the model is to be written


def resumed(checkpoint: str, model: str | None, force: bool, console: Console) -> Result:
    """Continue a run of `train` from its checkpoint."""
    job, steps = job_of(checkpoint)
    out = model or job.model
    check_free(out, force)
    prepared = prepare(job, steps)
    try:
        estimator = job.recipe.make(console)
    except click.UsageError as error:  # which was not the user's
        raise Refused(f"{checkpoint} cannot be continued: {error.message}") from error
    console.say(shown(estimator))
    learn_with_checkpoint(estimator, prepared, job, console)
    return assembled(steps, estimator), described(estimator), out


def updated(
    path: str, data: str, out: str, force: bool, layout: Layout, console: Console
) -> Result:
    """Learn the rows of a file with a model that exists."""
    check_free(out, force)
    model = load_model(path)
    _, estimator = split_model(model)
    if not hasattr(estimator, "partial_fit"):
        raise Refused(f"{path} holds a {type(estimator).__name__}, which cannot learn more rows.")
    source = open_for(model, data, layout, labelled=hasattr(estimator, "classes_"))
    rows = 0
    with Progress(len(source), console.verbose) as progress:
        for X, y in source.chunks():
            estimator.partial_fit(X) if y is None else estimator.partial_fit(X, y)
            progress.learned(X.shape[0], len(estimator.ids_), 0.0)
            rows += X.shape[0]
    if getattr(estimator, "finish_at_end", False):
        estimator.finish()
    return model, {**described(estimator), "rows": rows}, out
