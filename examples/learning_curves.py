"""
Learning curves of active learning
==================================

::

    python examples/learning_curves.py [--seeds 10] [--labels 400] [--picture curves.png]

How many labels does active learning save? Three strategies choose the next row to label, on
scikit-learn's digits and on generated data with a rare class, which has one row in fifty and
overlaps with the other class. All runs of a seed share the pool, the test rows and the first
labels; only the choice of the next row differs.

This page shows ``python examples/learning_curves.py --seeds 3 --labels 200``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from marginwise import OnlineSVC
from marginwise.active import ActiveLearner
from marginwise.active.plot import learning_curves
from marginwise.metrics import prbep_score

PICTURE = Path(sys.argv[0]).resolve().parent / "output" / "learning_curves.png"
STRATEGIES = ("random", "active", "autoactive")
RARE = 0.02  # fraction of rows in the rare class

Run = tuple[list[int], list[float]]


class Data(NamedTuple):
    X: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y: NDArray[np.int64]
    y_test: NDArray[np.int64]


@dataclass
class Task:
    """Data set, model and measure of an experiment."""

    title: str
    data: Callable[[int], Data]
    model: OnlineSVC
    start: int  # labels given per class
    sizes: list[int]  # numbers of labels at which the model is measured
    measure: Callable[[Any, Data], float]
    ylabel: str
    higher_is_better: bool


# %%
# Data
# ----
def digits(seed: int) -> Data:
    X, y = load_digits(return_X_y=True)
    return Data(*train_test_split(X / 16, y, test_size=0.4, stratify=y, random_state=seed))


def rare(seed: int, rows: int = 20_000, features: int = 8) -> Data:
    """Draw a large cluster, and a small one three standard deviations away along one feature."""
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < RARE).astype(np.int64)
    X = rng.normal(size=(rows, features)) * np.where(y, 0.7, 1.0)[:, None]
    X[:, 0] += 3.0 * y
    return Data(*train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed))


def percent_wrong(model: Any, data: Data) -> float:
    return 100 * float(np.mean(model.predict(data.X_test) != data.y_test))


def break_even(model: Any, data: Data) -> float:
    return 100 * prbep_score(data.y_test, model.decision_function(data.X_test))


def tasks(most: int) -> list[Task]:
    sizes = [10, 15, 20, 30, 40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 350, 400]
    sizes = [size for size in sizes if size <= most]
    return [
        Task(
            "Handwritten digits, ten classes", digits, OnlineSVC(C=10, gamma=0.25), 1, sizes,
            percent_wrong, "test error, % (logarithmic)", False,
        ),
        Task(
            f"A rare class, {RARE:.0%} of the rows", rare, OnlineSVC(C=10, gamma=0.05), 5, sizes,
            break_even, "precision = recall, %", True,
        ),
    ]  # fmt: skip


# %%
# Runs
# ----
def one_run(task: Task, data: Data, strategy: str, seed: int) -> Run:
    """Measure a learner repeatedly as it asks for labels."""
    learner = ActiveLearner(task.model, data.X, strategy=strategy, stop=None, random_state=seed)
    given = [np.flatnonzero(data.y == label)[: task.start] for label in np.unique(data.y)]
    first = np.concatenate(given)
    learner.teach(first, data.y[first])
    values = []
    for size in task.sizes:
        if size > len(learner.history_):
            learner.run(lambda row: data.y[row], max_labels=size - len(learner.history_))
        values.append(task.measure(learner.estimator_, data))
    return task.sizes, values


def all_runs(task: Task, seeds: int) -> tuple[dict[str, list[Run]], float]:
    """Return the runs of each strategy, and the median result with all labels."""
    runs: dict[str, list[Run]] = {strategy: [] for strategy in STRATEGIES}
    whole = []
    for seed in range(seeds):
        print(f"  {task.title}: seed {seed + 1} of {seeds}", file=sys.stderr, flush=True)
        data = task.data(seed)
        for strategy in STRATEGIES:
            runs[strategy].append(one_run(task, data, strategy, seed))
        model = OnlineSVC(**{**task.model.get_params(), "random_state": seed})
        whole.append(task.measure(model.fit(data.X, data.y), data))
    return runs, float(np.median(whole))


def table(task: Task, runs: dict[str, list[Run]], whole: float) -> str:
    header = "".join(f"{name:>12}" for name in ("labels", *STRATEGIES))
    lines = [f"\n{task.title}: median of {task.ylabel.partition(' (')[0]}", header]
    for k, size in enumerate(task.sizes):
        medians = [np.median([values[k] for _, values in runs[name]]) for name in STRATEGIES]
        lines.append(f"{size:>12}" + "".join(f"{value:>12.1f}" for value in medians))
    lines.append(f"{'all':>12}{whole:>12.1f}")
    return "\n".join(lines)


# %%
# Main program
# ------------
def draw_whole(axes: Any, task: Task, whole: float) -> None:
    """Draw the result with all labels, and set the title and the axes."""
    axes.axhline(whole, color="0.35", linewidth=1, linestyle="dotted", zorder=1)
    axes.annotate(
        f"with all {len(task.data(0).y):,} labels", (1, whole), xycoords=("axes fraction", "data"),
        xytext=(-4, 4 if task.higher_is_better else -4), textcoords="offset points", ha="right",
        va="bottom" if task.higher_is_better else "top", color="0.25",
        bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1},
    )  # fmt: skip
    axes.set(title=task.title, xlim=(0, None))
    if task.higher_is_better:
        axes.set_ylim(None, whole + 5)
        return
    axes.set_yscale("log")
    axes.set_ylim(0.5 * whole, None)
    axes.set_yticks([1, 2, 5, 10, 20, 40], minor=False)
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")


def draw(path: Path, done: list[tuple[Task, dict[str, list[Run]], float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, row = plt.subplots(1, len(done), figsize=(11, 4.4), layout="constrained")
    for axes, (task, runs, whole) in zip(row, done, strict=True):
        learning_curves(runs, ax=axes, ylabel=task.ylabel)
        draw_whole(axes, task, whole)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description="Learning curves of three strategies.")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each strategy")
    parser.add_argument("--labels", type=int, default=400, help="labels at the end of a run")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="PNG file to write")
    options = parser.parse_args()
    done = []
    for task in tasks(options.labels):
        runs, whole = all_runs(task, options.seeds)
        print(table(task, runs, whole), flush=True)
        done.append((task, runs, whole))
    draw(options.picture, done)
    print(f"\npicture: {os.path.relpath(options.picture)}")


# %%
# Output
# ------
if __name__ == "__main__":
    main()
