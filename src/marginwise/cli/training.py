"""The steps of `train`: prepare the data, select parameters, learn, and assemble the model."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from marginwise._training.checkpoint import LastCheckpointError
from marginwise._warn import warn
from marginwise.cli.estimate import described_search, estimated_error, scoring
from marginwise.cli.group import Refused, current_stopping
from marginwise.cli.jobs import Job, note_of
from marginwise.cli.output import STANDARD, Console
from marginwise.cli.reading import (
    Steps,
    after,
    check_classes,
    encoder_of,
    fits_in_memory,
    groups_of,
    open_data,
)
from marginwise.cli.recipes import shown
from marginwise.cli.scaling import Scaling, ranges_of
from marginwise.cli.tuning import chosen, report_of, sampled, searched
from marginwise.data import DataError


@dataclass
class Prepared:
    """Rows that a model can learn, and the fitted transformers that computed them.

    Parameters
    ----------
    source : object
        Source of features and labels, after all steps.
    steps : list of (str, transformer)
        Steps, which become a part of the model file.
    arrays : tuple or None
        All features and labels, if they fit in memory.
    scaling : Scaling or None
        How features without names are scaled; None for tables and steps that were given.
    drawn : ndarray of bool or None
        Whether each row was drawn at random; None if there is no such distinction.
    """

    source: Any
    steps: Steps
    arrays: tuple[Any, Any] | None = None
    scaling: Scaling | None = None
    drawn: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.source) if self.arrays is None else self.arrays[0].shape[0]

    def sample(self, rows: int, seed: int) -> tuple[Any, Any, Any]:
        """Return features and labels of some rows, in random order, and which were drawn."""
        X, y = self.arrays or self._read_some(rows, seed)
        some = sampled(y, rows, seed)
        return X[some], y[some], None if self.drawn is None else self.drawn[some]

    def _read_some(self, rows: int, seed: int) -> tuple[Any, Any]:
        order = np.random.RandomState(seed).permutation(len(self.source))
        X, y = self.source.read(np.sort(order[:rows]))
        return X, y


def check_job(job: Job) -> None:
    """Raise UsageError for incompatible options, before any data are read."""
    model, name = job.recipe.make(Console(quiet=True)), job.recipe.estimator
    if job.columns.groups is not None:
        if not hasattr(model, "forget"):
            raise click.UsageError(
                f"{name} does not store groups. Use --estimator ExactSVC with --groups."
            )
        if job.stream or job.checkpoint is not None:
            raise click.UsageError(
                "--groups is not available with --stream and --checkpoint: it needs all rows in "
                "memory."
            )
    if job.checkpoint is not None:
        if job.checkpoint == STANDARD:
            raise click.UsageError("a checkpoint is a file, not standard output: give its name.")
        if job.data == STANDARD:
            raise click.UsageError(
                "--checkpoint is not supported with standard input, which cannot be read again. "
                "Pass a file."
            )
        if not job.recipe.classifies:
            raise click.UsageError(f"{name} does not support checkpoints. Leave out --checkpoint.")


def trained(
    job: Job, console: Console, preparing: Callable[[Job], Prepared] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Run a call of `train`; return the model and a report.

    `preparing` opens data that are not a file of rows.
    """
    clock = Clock()
    prepared = (preparing or prepare)(job)
    clock.note("read")
    if prepared.scaling is not None:
        console.say(f"features are {prepared.scaling.why}")
    search = tuned(prepared, job, console)
    clock.note("tune")
    recipe = replace(job.recipe, parameters={**job.recipe.parameters, **chosen(search, job.recipe)})
    model = recipe.make(console)
    console.say(shown(model))
    learn(model, prepared, replace(job, recipe=recipe), console)
    clock.note("fit")
    found = {} if search is None else report_of(search)
    if prepared.drawn is not None and job.tuning.is_due(job.recipe):
        assert prepared.arrays is not None
        found = estimated_error(*prepared.arrays, prepared.drawn, job, console)
        clock.note("estimate")
    scaling = {} if prepared.scaling is None else {"scaling": prepared.scaling.why}
    about = {"rows": len(prepared), **described(model), **scaling, **found}
    report = {**about, "seconds": clock.seconds}
    return assembled(prepared.steps, model), report


class Clock:
    """Seconds spent in each part of a job."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def note(self, part: str) -> None:
        """Store the seconds since the end of the previous part."""
        now = time.perf_counter()
        self.seconds[part], self._last = round(now - self._last, 3), now


# -- preparing -------------------------------------------------------------------------------------


def prepare(job: Job, steps: Steps | None = None) -> Prepared:
    """Open the data, and fit the transformers, unless fitted ones are given."""
    fitted = dict(steps or []).get("encoder")
    encoder = fitted or job.columns.encoder(scale=job.recipe.scale != "none")
    labelled = job.recipe.classifies
    source = open_data(job.data, job.layout, encoder=encoder, labelled=labelled)
    keeps = not job.stream and job.checkpoint is None and fits_in_memory(source)
    arrays = source.load() if keeps else None
    if labelled:
        y = None if arrays is None else arrays[1]
        check_classes(source.classes if y is None else np.unique(y), job.data)
    if encoder_of(source) is not None:
        return Prepared(source, [("encoder", encoder_of(source))], arrays)
    scaling = None
    if steps is None:
        scaling = scaling_of(source, arrays, job)
        steps = scaling_steps(scaling)
    return Prepared(after(steps, source), steps, applied(steps, arrays), scaling)


def scaling_of(source: Any, arrays: tuple[Any, Any] | None, job: Job) -> Scaling:
    """Choose how columns without names are scaled."""
    recipe, rule = job.recipe, job.recipe.scale
    if rule == "none":  # no need to read the rows
        return Scaling(None, "not scaled, because of --scale none")
    # A numeric gamma refers to the unscaled values in the file.
    if rule == "auto" and is_number(recipe.parameters.get("gamma")):
        return Scaling(None, "not scaled, because --gamma is a number")
    chunks = (X for X, _ in source.chunks()) if arrays is None else [arrays[0]]
    try:
        return ranges_of(chunks).choose(rule)
    except DataError:
        raise
    except ValueError as error:
        raise Refused(f"{job.data}: {error}") from error


def scaling_steps(scaling: Scaling) -> Steps:
    """Return the step that scales columns without names, if any."""
    return [] if scaling.scaler is None else [("scaler", scaling.scaler)]


def is_number(value: Any) -> bool:
    """Return whether a parameter was given as a number."""
    return isinstance(value, int | float)


def applied(steps: Steps, arrays: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
    """Apply fitted steps to arrays."""
    if arrays is None:
        return None
    X, y = arrays
    for _, step in steps:
        X = step.transform(X)
    return X, y


# -- learning --------------------------------------------------------------------------------------


def tuned(prepared: Prepared, job: Job, console: Console) -> Any:
    """Return the finished search for C and gamma, or None if there is none."""
    if not job.tuning.is_due(job.recipe):
        return None
    X, y, drawn = prepared.sample(job.tuning.rows, job.recipe.seed)
    if drawn is not None:
        console.say(f"selecting C and gamma on {described_search(drawn, job.tuning)}")
    elif len(y) < len(prepared):
        console.say(f"selecting C and gamma on {len(y):,} of {len(prepared):,} rows")
    return searched(X, y, job.recipe, job.tuning, console, scoring(drawn, job.tuning))


def learn(model: Any, prepared: Prepared, job: Job, console: Console) -> None:
    """Learn all rows, at once or chunk by chunk."""
    if prepared.arrays is not None:
        fit(model, *prepared.arrays, job)
    elif job.columns.groups is not None:
        raise Refused(
            f"{job.data} does not fit in memory, which --groups requires. Use a part of it."
        )
    elif not job.recipe.classifies:
        for X, _ in prepared.source.chunks():
            model.partial_fit(X)
    elif job.checkpoint is None:
        model.learn_from(prepared.source)
    else:
        learn_with_checkpoint(model, prepared, job, console)


def fit(model: Any, X: Any, y: Any, job: Job) -> None:
    """Fit a model to rows in memory, with their groups, if any."""
    more = {}
    if job.columns.groups is not None:
        more["groups"] = groups_of(job.data, job.layout, job.columns.groups)
    model.fit(X, y, **more) if job.recipe.classifies else model.fit(X, **more)


def learn_with_checkpoint(model: Any, prepared: Prepared, job: Job, console: Console) -> None:
    """Learn chunk by chunk; on SIGINT or SIGTERM, write the checkpoint and stop."""
    stopping = current_stopping()
    with stopping.deferred(), keeping(job):
        model.learn_from(
            prepared.source,
            checkpoint=job.checkpoint,
            checkpoint_minutes=job.every / 60,
            callback=lambda _, moment: stopping.asked,
            note=note_of(job, prepared.steps),
        )
    if stopping.asked:
        assert job.checkpoint is not None
        if os.path.exists(job.checkpoint):
            console.say(f"stopped; marginwise continue {job.checkpoint} continues from here")
        raise KeyboardInterrupt


@contextlib.contextmanager
def keeping(job: Job) -> Iterator[None]:
    """Warn if the last checkpoint cannot be written, because the model is complete."""
    try:
        yield
    except LastCheckpointError as error:
        warn(
            f"the last checkpoint {job.checkpoint} could not be written: {error.__cause__}. The "
            f"model is complete and is written to {job.model}.",
            RuntimeWarning,
        )


def assembled(steps: Steps, model: Any) -> Any:
    """Return a pipeline of the steps and the model, or the model if there are no steps.

    Files do not depend on the number of threads, or on whether progress is shown.
    """
    model.set_params(n_jobs=None, verbose=0)
    return Pipeline([*steps, ("model", model)]) if steps else model


def described(model: Any) -> dict[str, Any]:
    """Describe a fitted estimator."""
    found = {"estimator": type(model).__name__, "features": int(model.n_features_in_)}
    if hasattr(model, "classes_"):
        found["classes"] = model.classes_.tolist()
    parameters = {"C": model.C, "kernel": model.kernel, "gamma": getattr(model, "gamma_", None)}
    return {**found, **parameters, "support_vectors": len(model.support_)}
