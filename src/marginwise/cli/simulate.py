"""`active` and `bench`: what learning costs, in labels and in seconds."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from marginwise._core import cpu
from marginwise.active import STRATEGIES, ActiveLearner, MarginExhausted, SupportVectorPlateau
from marginwise.cli.group import main
from marginwise.cli.options import (
    SectionedCommand,
    data_options,
    estimator_options,
    learning_options,
    make_estimator,
)
from marginwise.cli.output import Console, check_free, table, versions, with_console, write_blocks
from marginwise.cli.reading import open_training, whole
from marginwise.cli.training import scaler_for

POOLED = ("OnlineSVC", "GapSVC", "TrackingSVC", "ExactSVC", "ExactRampSVC", "KernelPerceptron")
RULES = {"margin": MarginExhausted, "plateau": SupportVectorPlateau, "none": lambda: None}


@main.command(cls=SectionedCommand)
@click.argument("data")
@data_options
@click.option("--strategy", type=click.Choice(list(STRATEGIES)), default="active", show_default=True)
@click.option("--pool-size", type=click.IntRange(1), default=59, show_default=True,
              help="Rows sampled for a question.")
@click.option("--max-labels", type=click.IntRange(1), default=500, show_default=True,
              help="Labels to ask for at most.")
@click.option("--step", type=click.IntRange(1), default=25, show_default=True,
              help="Labels between two measurements of the error.")
@click.option("--target-error", type=click.FloatRange(0, 1), help="Stop when this error is reached.")
@click.option("--stop", "rule", type=click.Choice(list(RULES)), default="none", show_default=True,
              help="Rule that may stop earlier.")
@click.option("--holdout", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.25,
              show_default=True, help="Share of the rows on which the error is measured.")
@click.option("--out", help="CSV file for the curve; - for standard output.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@learning_options(POOLED)
@estimator_options(POOLED, without=("pool_size", "selection", "stop"))
@with_console
def active(data: str, out: str | None, force: bool, console: Console, **given: Any) -> None:
    """Simulate active learning on DATA, whose labels are known.

    Labels are asked for one by one, as of a pool without labels, and the error on rows that are
    held out is measured after every few labels.

    \b
    Example:
      marginwise active train.csv --max-labels 100 --target-error 0.1
    """
    check_free(out, force)
    console.head()
    curve, reason = simulated(data, console, **given)
    if out is not None:
        write_blocks(out, ["labels,error,support_vectors\n", *("%d,%.6g,%d\n" % row for row in curve)])
    labels, error, support = curve[-1]
    report = {"labels": labels, "error": error, "support_vectors": support, "reason": reason}
    rows = [(count, f"{share:.4f}", vectors) for count, share, vectors in curve]
    lines = [*table(("labels", "error", "support vectors"), rows), reason]
    console.give({**report, "curve": curve}, [] if out == "-" else lines)
