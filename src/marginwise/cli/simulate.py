"""`active` and `bench`: what learning costs, in labels and in seconds."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from marginwise._core import cpu
from marginwise.active import STRATEGIES, ActiveLearner, MarginExhausted, SupportVectorPlateau
from marginwise.cli.group import Refused, main
from marginwise.cli.jobs import Job
from marginwise.cli.options import force_option, seed_option
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

Curve = list[tuple[int, float, int]]  # labels, error, support vectors


@main.command(example=["marginwise active train.csv --max-labels 100 --target-error 0.05"])
@click.argument("data")
@layout_options
@click.option(
    "--strategy",
    type=click.Choice(list(STRATEGIES)),
    default="active",
    show_default=True,
    help="Which row to ask about.",
)
@click.option(
    "--pool-size", type=COUNT, default=59, show_default=True, help="Rows sampled per question."
)
@click.option(
    "--max-labels", type=COUNT, default=500, show_default=True, help="Labels to ask for at most."
)
@click.option(
    "--step", type=COUNT, default=25, show_default=True, help="Labels between two measurements."
)
@click.option("--target-error", type=click.FloatRange(0, 1), help="Stop at this error.")
@click.option("--stop", "rule", type=click.Choice(list(RULES)), help="Rule that may stop earlier.")
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.25,
    show_default=True,
    help="Share of the rows on which the error is measured.",
)
@click.option("--out", metavar="FILE", help="CSV file for the curve; - for standard output.")
@force_option
@recipe_options(CLASSIFIERS, without=("pool_size", "selection", "stop"))
@with_console
def active(
    data: str,
    layout: Layout,
    recipe: Recipe,
    out: str | None,
    force: bool,
    console: Console,
    **how: Any,
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
    curve, reason = simulated(*prepared.arrays, recipe, console, **how)
    if out is not None:
        points = (f"{labels},{error:.6g},{support}\n" for labels, error, support in curve)
        write_blocks(out, ["labels,error,support_vectors\n", *points])
    rows = [(labels, f"{error:.4f}", support) for labels, error, support in curve]
    lines = [*table(("labels", "error", "support vectors"), rows), reason]
    report = {"labels": curve[-1][0], "error": curve[-1][1], "reason": reason, "curve": curve}
    console.give(report, [] if out == STANDARD else lines)


def simulated(
    X: Any,
    y: Any,
    recipe: Recipe,
    console: Console,
    *,
    strategy: str,
    pool_size: int,
    max_labels: int,
    step: int,
    target_error: float | None,
    rule: str | None,
    holdout: float,
) -> tuple[Curve, str]:
    """Ask for labels; return the error after every few of them, and why it ended."""
    order = sampled(y, len(y), recipe.seed)
    held, pool = np.split(order, [max(1, round(holdout * len(y)))])
    learner = ActiveLearner(
        recipe.make(Console(quiet=True)),
        X[pool],
        strategy=strategy,
        pool_size=pool_size,
        stop=None if rule is None else RULES[rule](),
        classes=np.unique(y),
        random_state=recipe.seed,
    )
    curve: Curve = []
    with Progress(min(max_labels, len(pool)), console.verbose, unit="label") as progress:
        while (asked := learner.counts_["taught"]) < max_labels and not learner.should_stop():
            learner.run(lambda row: y[pool[row]], max_labels=min(step, max_labels - asked))
            progress.count(learner.counts_["taught"] - asked)
            error = 1 - learner.estimator_.score(X[held], y[held]) if learner.has_model_ else 1.0
            curve.append((learner.counts_["taught"], error, learner.support_counts_[-1] or 0))
            if target_error is not None and error <= target_error:
                return curve, f"{curve[-1][0]} labels reach an error of {error:.4f}."
    stop = learner.should_stop()
    reason = stop.reason if stop else f"the limit of {max_labels} labels was reached."
    if target_error is not None:
        reason = f"an error of {target_error:g} was not reached: {reason}"
    return curve, reason


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
