"""`active`, `simulate` and `bench`: the cost of learning, in labels and in seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from marginwise._core import cpu
from marginwise.active import STRATEGIES
from marginwise.cli.group import Refused, main
from marginwise.cli.jobs import Job
from marginwise.cli.label import estimator_for
from marginwise.cli.labelled import item_options, labelled_items
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
from marginwise.cli.replaying import (
    RULES,
    Point,
    Replay,
    Rows,
    Simulation,
    curve_lines,
    draw,
    mean_curve,
    needed_of,
    replayed,
    shown,
)
from marginwise.cli.training import prepare
from marginwise.label.features import make_features
from marginwise.label.reopening import Request

COUNT = click.IntRange(1)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
HELD = 0.25  # default fraction of the rows held out to measure the error
LIMIT = 500  # default maximum number of labels of a run without a target recall
SHOWN = 12  # maximum number of rows of a printed curve


def _option(name: str, kind: Any, text: str, default: Any = None) -> click.Option:
    return click.Option(
        name.split(), type=kind, default=default, show_default=default is not None, help=text
    )


def _asking(step: int) -> list[click.Option]:
    """Return the common options of `active` and `simulate`."""
    return [
        _option("--pool-size", COUNT, "Number of rows sampled per query.", 59),
        _option("--step", COUNT, "Number of labels between measurements.", step),
        _option("--target-error", click.FloatRange(0, 1), "Stop at this error."),
        _option(
            "--stop rule", click.Choice(list(RULES)), "Stopping rule that may end a run earlier."
        ),
    ]


simulation_options = packed(
    "simulation",
    Simulation,
    [
        *_asking(25),
        _option("--max-labels", COUNT, "Maximum number of labels.", LIMIT),
        _option("--holdout", SHARE, "Fraction of the rows held out to measure the error.", HELD),
    ],
)


@main.command(example=["marginwise active train.csv --max-labels 100 --target-error 0.05"])
@click.argument("data")
@layout_options
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="active",
    show_default=True,
    help="Query strategy.",
)
@simulation_options
@click.option(
    "--out", metavar="FILE", help=("CSV file to write the curve to; - for standard output.")
)
@force_option
@recipe_options(CLASSIFIERS, without=("pool_size", "selection", "stop"))
@with_console
def active(
    data: str,
    layout: Layout,
    strategy: str,
    simulation: Simulation,
    recipe: Recipe,
    out: str | None,
    force: bool,
    console: Console,
) -> None:
    """Simulate active learning on labelled DATA.

    The command treats the rows as an unlabelled pool, requests labels one by one and measures the
    error on held-out rows after every few labels. Use `simulate` to compare strategies and seeds.
    """
    console.check_output(out)
    check_free(out, force)
    console.head()
    prepared = prepare(Job(data, "", layout, recipe))
    if prepared.arrays is None:
        raise Refused(f"{data} does not fit in memory, which a pool requires. Use a part of it.")
    rows = Rows(*prepared.arrays)
    estimator = recipe.make(Console(quiet=True))
    run = replayed(rows, estimator, simulation, strategy, recipe.seed, console)
    curve = [(point.labels, point.error, point.support_vectors) for point in run.curve]
    if out is not None:
        points = (f"{labels},{error:.6g},{support}\n" for labels, error, support in curve)
        write_blocks(out, ["labels,error,support_vectors\n", *points])
    shown_rows = [(labels, f"{error:.4f}", support) for labels, error, support in curve]
    lines = [*table(("labels", "error", "support vectors"), shown_rows), run.reason]
    report = {"labels": curve[-1][0], "error": curve[-1][1], "reason": run.reason, "curve": curve}
    console.give(report, [] if out == STANDARD else lines)


# -- several strategies and seeds ------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Settings of a comparison of strategies.

    Parameters
    ----------
    simulation : Simulation
        Settings of each run.
    strategies : sequence of str
        Query strategies.
    seeds : int
        Number of runs per strategy.
    positive : str or None
        Label whose recall is measured.
    """

    simulation: Simulation
    strategies: tuple[str, ...]
    seeds: int
    positive: str | None


def _compared(
    strategy: tuple[str, ...],
    seeds: int,
    positive: str | None,
    target_recall: float | None,
    max_labels: int | None,
    holdout: float | None,
    **given: Any,
) -> Comparison:
    if target_recall is not None and given["target_error"] is not None:
        raise click.UsageError("pass either --target-error or --target-recall.")
    if (target_recall is None) != (positive is None):
        raise click.UsageError(
            "--target-recall and --positive must be used together. Pass the recall to reach and "
            "the label to find."
        )
    finding = target_recall is not None
    simulation = Simulation(
        max_labels=max_labels or (sys.maxsize if finding else LIMIT),
        holdout=(0.0 if finding else HELD) if holdout is None else holdout,
        target_recall=target_recall,
        **given,
    )
    usual = "largest_positive" if finding else "active"
    return Comparison(simulation, strategy or (usual,), seeds, positive)


comparison_options = packed(
    "comparison",
    _compared,
    [
        click.Option(
            ["--strategy"],
            type=click.Choice(STRATEGIES),
            multiple=True,
            help="Query strategy; may be repeated to compare strategies.  [default: active, or "
            "largest_positive with --target-recall]",
        ),
        _option(
            "--seeds",
            COUNT,
            "Number of runs per strategy, with consecutive seeds starting at --seed.",
            5,
        ),
        *_asking(10),
        _option(
            "--target-recall",
            click.FloatRange(0, 1, min_open=True),
            "Fraction of the rows with the label --positive to find.",
        ),
        click.Option(["--positive"], metavar="LABEL", help="Label to find."),
        _option(
            "--max-labels",
            COUNT,
            f"Maximum number of labels.  [default: {LIMIT}, or all with --target-recall]",
        ),
        _option(
            "--holdout",
            SHARE,
            f"Fraction of the rows held out to measure the error.  [default: {HELD}, or none with "
            "--target-recall]",
        ),
    ],
)


@main.command(
    example=[
        "marginwise simulate train.csv --target-error 0.1 --strategy active --strategy random",
        "marginwise simulate messages.csv --label label --target-recall 0.95 --positive spam",
    ]
)
@click.argument("items")
@item_options
@comparison_options
@click.option(
    "--out", metavar="FILE", help=("CSV file to write the curves to; - for standard output.")
)
@click.option(
    "--picture", metavar="FILE", help=("PNG file to draw the curves in; requires matplotlib.")
)
@force_option
@recipe_options(CLASSIFIERS, without=("pool_size", "selection", "stop"))
@with_console
def simulate(
    items: str,
    request: Request,
    comparison: Comparison,
    recipe: Recipe,
    out: str | None,
    picture: str | None,
    force: bool,
    console: Console,
) -> None:
    """Simulate labelling of ITEMS and report how many labels are needed.

    ITEMS is a labelled CSV, JSON Lines, Parquet, svmlight, .npy or .npz file. Texts are converted
    to TF-IDF features. Each strategy runs with several seeds. With --target-error, a run ends when
    the error on held-out items reaches the target. With --target-recall, it ends when the given
    fraction of the items with the label --positive has been found.
    """
    console.check_output(out)
    for path in (out, picture):
        check_free(path, force)
    console.head()
    rows, estimator = labelled_rows(replace(request, items=items), recipe, comparison, console)
    replays = [
        replayed(rows, estimator, comparison.simulation, strategy, recipe.seed + k, console)
        for strategy in comparison.strategies
        for k in range(comparison.seeds)
    ]
    if out is not None:
        write_blocks(out, curve_lines(replays))
    if picture is not None:
        draw(replays, comparison.simulation, picture)
    report, lines = compared(replays, comparison, len(rows.y))
    console.give(report, [] if out == STANDARD else lines)


def labelled_rows(
    request: Request, recipe: Recipe, comparison: Comparison, console: Console
) -> tuple[Rows, Any]:
    """Return items with their labels, and an estimator with suitable defaults.

    If there is a label to find, labels are booleans: whether an item has this label.
    """
    items = labelled_items(request)
    for note in items.notes:
        console.say(f"{items.name}: {note}")
    y, positive = np.array(items.labels), comparison.positive
    if positive is not None and positive not in y:
        raise Refused(
            f"{request.items}: no item has the label {positive!r} of --positive; the labels are "
            f"{', '.join(np.unique(y))}."
        )
    missing = request.columns.missing
    features = make_features(items, request.features, console.verbose, missing=missing)
    console.say(f"{items.name}: {len(items):,} items, {features.origin}")
    rows = Rows(features.X, y) if positive is None else Rows(features.X, y == positive, True)
    return rows, estimator_for(recipe, items, features)


def compared(
    replays: Sequence[Replay], comparison: Comparison, n: int
) -> tuple[dict[str, Any], list[str]]:
    """Return the results of the runs, as a report and as lines of text."""
    simulation = comparison.simulation
    by_strategy = {
        name: [replay for replay in replays if replay.strategy == name]
        for name in comparison.strategies
    }
    found = {name: needed_of(own) for name, own in by_strategy.items()}
    runs = [{"strategy": r.strategy, "seed": r.seed, "labels": r.needed} for r in replays]
    curves = {name: mean_curve(own) for name, own in by_strategy.items()}
    report = {
        "items": n,
        "target_error": simulation.target_error,
        "target_recall": simulation.target_recall,
        "strategies": found,
        "runs": runs,
        "curves": {name: [list(point) for point in curve] for name, curve in curves.items()},
    }
    if simulation.target_error is None and simulation.target_recall is None:
        return report, _curve_table(curves)
    return report, _needed_table(found, simulation, n)


def _needed_table(found: dict[str, dict[str, Any]], simulation: Simulation, n: int) -> list[str]:
    finding = simulation.target_recall is not None
    keys = ("median", "least", "most", "reached")
    rows = [
        [name, *("-" if line[key] is None else line[key] for key in keys)]
        for name, line in found.items()
    ]
    seeds = next(iter(found.values()))["seeds"]
    header = ("strategy", "labels (median)", "least", "most", f"reached (of {seeds})")
    if finding:
        title = f"labels to find {simulation.target_recall:.0%} of the positive items, of {n:,}:"
    else:
        title = f"labels to reach an error of {simulation.target_error:g}:"
    return [title, *table(header, rows)]


def _curve_table(curves: dict[str, list[Point]]) -> list[str]:
    """Return a table of the mean error by number of labels, with one column per strategy."""
    by_labels: dict[int, dict[str, str]] = {}
    for name, curve in curves.items():
        for point in curve:
            by_labels.setdefault(point.labels, {})[name] = shown(point.error)
    chosen = sorted(by_labels)
    if len(chosen) > SHOWN:
        places = np.linspace(0, len(chosen) - 1, SHOWN).round().astype(int)
        chosen = [chosen[k] for k in dict.fromkeys(places.tolist())]
    rows = [[k, *(by_labels[k].get(name, "") for name in curves)] for k in chosen]
    return table(("labels", *(f"error, {name}" for name in curves)), rows)


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
    """Measure the speed of training and prediction on generated rows."""
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
    """Measure the time to learn the given number of rows, and to predict as many other rows."""
    from sklearn.datasets import make_classification  # slow to import

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
