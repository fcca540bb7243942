"""Calls of `train`, and their storage in the notes of checkpoints."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from marginwise import OnlineSVC, load, save
from marginwise._training.checkpoint import read_note
from marginwise.cli.group import Refused
from marginwise.cli.output import STANDARD
from marginwise.cli.reading import Columns, Layout, Steps
from marginwise.cli.recipes import CLASSIFIERS, SCALES, Recipe
from marginwise.cli.tuning import Tuning


@dataclass(frozen=True)
class Job:
    """A call of `train`.

    Parameters
    ----------
    data, model : str
        Paths of the data and of the model.
    layout, recipe, tuning, columns
        Location of the labels, estimator, selection of C and gamma, and use of the columns.
    stream : bool
        Whether to learn in chunks even if all rows fit in memory.
    checkpoint : str or None
        File from which an interrupted run can be resumed.
    every : float
        Seconds between writes of the checkpoint.
    """

    data: str
    model: str
    layout: Layout
    recipe: Recipe
    tuning: Tuning = field(default_factory=Tuning)
    columns: Columns = field(default_factory=Columns)
    stream: bool = False
    checkpoint: str | None = None
    every: float = 60.0


def note_of(job: Job, steps: Steps) -> dict[str, Any]:
    """Return the note that a checkpoint stores about a job: the call, and the fitted steps."""
    model = job.model if job.model == STANDARD else os.path.abspath(job.model)
    placed = replace(job, data=os.path.abspath(job.data), model=model)
    note = {"command": "train", "job": json.dumps(asdict(placed))}
    return {**note, "steps": _as_bytes(steps)} if steps else note


def job_of(checkpoint: str) -> tuple[Job, Steps]:
    """Return the job in a checkpoint, and its fitted steps."""
    note = read_note(checkpoint)
    try:
        parts = json.loads(note["job"])
        kinds = {"layout": Layout, "recipe": Recipe, "tuning": Tuning, "columns": Columns}
        made = {name: kind(**parts.pop(name)) for name, kind in kinds.items()}
        job = Job(**{**parts, **made, "checkpoint": checkpoint})
        _check(job)
        steps = _from_bytes(note["steps"]) if "steps" in note else []
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Refused(
            f"{checkpoint} is not a checkpoint of the command train; continue it in Python, by the "
            "same call of learn_from."
        ) from error
    return job, steps


def _check(job: Job) -> None:
    """Raise unless a job from a file has valid values."""
    layout, recipe, columns = job.layout, job.recipe, job.columns
    every: Any = job.every
    names = (layout.missing, columns.numeric, columns.categorical, columns.text, columns.drop)
    rules = (
        all(isinstance(text, str) for text in (job.data, job.model)),
        all(isinstance(text, str | None) for text in (layout.label, columns.groups)),
        all(isinstance(flag, bool) for flag in (job.stream, layout.zero_based, layout.header)),
        isinstance(every, int | float) and 0 <= every < float("inf"),
        all(isinstance(some, list) for some in names),
        all(isinstance(name, str) for some in names for name in some),
        recipe.estimator in CLASSIFIERS and recipe.scale in SCALES,
        isinstance(recipe.parameters, dict),
        type(recipe.seed) is int and 0 <= recipe.seed < 2**32,
        type(recipe.threads) is int and recipe.threads != 0 and abs(recipe.threads) < 2**31,
        columns.unseen in ("ignore", "error"),
        columns.decimal in ("auto", ".", ","),
    )
    if not all(rules):
        raise ValueError("the note is not of a command")


def _as_bytes(steps: Steps) -> Any:
    """Return fitted transformers as the bytes of a model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.mwz"
        save(Pipeline([*steps, ("model", OnlineSVC())]), path)
        return np.frombuffer(path.read_bytes(), dtype=np.uint8)


def _from_bytes(content: Any) -> Steps:
    if not isinstance(content, np.ndarray) or content.dtype != np.uint8:
        raise TypeError("the steps are not the bytes of a file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.mwz"
        path.write_bytes(content.tobytes())
        return list(load(path).steps[:-1])
