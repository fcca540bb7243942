"""`active` and `bench`: what learning costs, in labels and in seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from marginwise._core import cpu
from marginwise.active import STRATEGIES, ActiveLearner, MarginExhausted, SupportVectorPlateau
from marginwise.cli.group import Refused, main
from marginwise.cli.jobs import Job
from marginwise.cli.options import force_option, packed, seed_option
from marginwise.cli.output import (
    STANDARD,
    Console,
    check_free,
    table,
    versions,
    with_console,
    write_blocks,
)
from marginwise.cli.reading import Layout, layout_options
from marginwise.cli.recipes import CLASSIFIERS, Recipe, recipe_options
from marginwise.cli.training import prepare
from marginwise.cli.tuning import sampled
from marginwise.progress import Progress

RULES: dict[str, Any] = {"margin": MarginExhausted, "plateau": SupportVectorPlateau}
COUNT = click.IntRange(1)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)

Curve = list[tuple[int, float, int]]  # labels, error, support vectors


@dataclass(frozen=True)
class Simulation:
    """How labels are asked for.

    Parameters
    ----------
    strategy, pool_size : str, int
        The parameters of ActiveLearner.
    max_labels, step : int
        How many labels to ask for at most, and between two measurements of the error.
    target_error : float or None
        Error at which to stop.
    rule : str or None
        Stopping rule.
    holdout : float
        Share of the rows on which the error is measured.
    """

    strategy: str
    pool_size: int
    max_labels: int
    step: int
    target_error: float | None
    rule: str | None
    holdout: float


def _option(name: str, kind: Any, text: str, default: Any = None) -> click.Option:
    return click.Option(
        name.split(), type=kind, default=default, show_default=default is not None, help=text
    )


simulation_options = packed(
    "simulation",
    Simulation,
    [
        _option("--strategy", click.Choice(list(STRATEGIES)), "Which row to ask about.", "active"),
        _option("--pool-size", COUNT, "Rows sampled per question.", 59),
        _option("--max-labels", COUNT, "Labels to ask for at most.", 500),
        _option("--step", COUNT, "Labels between two measurements.", 25),
        _option("--target-error", click.FloatRange(0, 1), "Error at which to stop."),
        _option("--stop rule", click.Choice(list(RULES)), "Rule that may stop earlier."),
        _option("--holdout", SHARE, "Share of the rows on which the error is measured.", 0.25),
    ],
)


@main.command(example=["marginwise active train.csv --max-labels 100 --target-error 0.05"])
@click.argument("data")
@layout_options
@simulation_options
@click.option("--out", metavar="FILE", help="CSV file for the curve; - for standard output.")
@force_option
@recipe_options(CLASSIFIERS, without=("pool_size", "selection", "stop"))
@with_console
def active(
    data: str,
    layout: Layout,
    simulation: Simulation,
    recipe: Recipe,
    out: str | None,
    force: bool,
    console: Console,
) -> None:
    """Simulate active learning on DATA, whose labels are known.

    Labels are asked for one by one, as of a pool without labels, and the error on rows that are
    held out is measured after every few labels.
    """
    console.check_output(out)
    check_free(out, force)
    console.head()
    prepared = prepare(Job(data, "", layout, recipe))
    if prepared.arrays is None:
        raise Refused(f"{data} does not fit in memory, which a pool must; take a part of it.")
    curve, reason = simulated(*prepared.arrays, recipe, simulation, console)
    if out is not None:
        points = (f"{labels},{error:.6g},{support}\n" for labels, error, support in curve)
        write_blocks(out, ["labels,error,support_vectors\n", *points])
    rows = [(labels, f"{error:.4f}", support) for labels, error, support in curve]
    lines = [*table(("labels", "error", "support vectors"), rows), reason]
    report = {"labels": curve[-1][0], "error": curve[-1][1], "reason": reason, "curve": curve}
    console.give(report, [] if out == STANDARD else lines)


def simulated(
    X: Any, y: Any, recipe: Recipe, simulation: Simulation, console: Console
) -> tuple[Curve, str]:
    """Ask for labels; return the error after every few of them, and why it ended."""
    order = sampled(y, len(y), recipe.seed)
    held, pool = np.split(order, [max(1, round(simulation.holdout * len(y)))])
    learner = ActiveLearner(
        recipe.make(Console(quiet=True)),
        X[pool],
        strategy=simulation.strategy,
        pool_size=simulation.pool_size,
        stop=None if simulation.rule is None else RULES[simulation.rule](),
        classes=np.unique(y),
        random_state=recipe.seed,
    )
    curve: Curve = []
    most, target = simulation.max_labels, simulation.target_error
    with Progress(min(most, len(pool)), console.verbose, unit="label") as progress:
        while (asked := learner.counts_["taught"]) < most and not learner.should_stop():
            learner.run(lambda row: y[pool[row]], max_labels=min(simulation.step, most - asked))
            progress.count(learner.counts_["taught"] - asked)
            error = 1 - learner.estimator_.score(X[held], y[held]) if learner.has_model_ else 1.0
            curve.append((learner.counts_["taught"], error, learner.support_counts_[-1] or 0))
            if target is not None and error <= target:
                return curve, f"{curve[-1][0]} labels reach an error of {error:.4f}."
    stop = learner.should_stop()
    reason = stop.reason if stop else f"the limit of {most} labels was reached."
    return curve, reason if target is None else f"an error of {target:g} was not reached: {reason}"


@main.command(example=["marginwise bench --rows 5000"])
@click.option(
    "--rows", type=click.IntRange(100), default=20_000, show_default=True, help="Rows to learn."
)
@click.option(
    "--features", type=click.IntRange(8), default=50, show_default=True, help="Features per row."
)
@click.option(
    "--classes", type=click.IntRange(2, 20), default=2, show_default=True, help="Classes."
)
@seed_option
@click.option("--threads", type=int, default=1, show_default=True, help="Number of threads.")
@with_console
def bench(console: Console, threads: int, seed: int, **sizes: int) -> None:
    """Measure how fast this machine learns and predicts generated rows."""
    console.head()
    recipe = Recipe(parameters={"C": 1.0}, seed=seed, threads=threads)
    report = {**sizes, **timed(recipe, console, **sizes), "threads": threads, "cpu": cpu()}
    report["versions"] = versions(("numpy", "scipy", "scikit-learn"))
    rows = [
        (name, f"{report[name]['seconds']:.3f}", f"{report[name]['rows_per_second']:,.0f}")
        for name in ("fit", "predict")
    ]
    lines = [*table(("", "seconds", "rows/s"), rows), f"{cpu()}, threads: {threads}"]
    console.give(report, lines)


def timed(
    recipe: Recipe, console: Console, *, rows: int, features: int, classes: int
) -> dict[str, Any]:
    """Return how long it takes to learn so many rows, and to predict as many others."""
    from sklearn.datasets import make_classification  # which takes time to import

    X, y = make_classification(
        2 * rows,
        features,
        n_informative=min(features, 8),
        n_redundant=0,
        n_classes=classes,
        random_state=recipe.seed,
    )
    X = X.astype(np.float32)
    model = recipe.make(console)
    began = time.perf_counter()
    model.fit(X[:rows], y[:rows])
    fitted = time.perf_counter()
    error = 1 - model.score(X[rows:], y[rows:])
    seconds = {"fit": fitted - began, "predict": time.perf_counter() - fitted}
    spent = {k: {"seconds": s, "rows_per_second": rows / s} for k, s in seconds.items()}
    return {**spent, "error": error, "support_vectors": len(model.support_)}
