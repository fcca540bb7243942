"""Figure 13: ways to select examples, digit 8 of MNIST. Figures 14 and 15 add label noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.bordes2005.lasvm import MNIST_C, MNIST_GAMMA, NOISE, digit
from reproduce.bordes2005.selection import curve, ends, solution
from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged

WAYS = {"random": "RANDOM", "gradient": "GRADIENT", "active": "ACTIVE"}
COUNTS = [500, 1000, 2000, 3000, 5000, 8000]
PARAMS = {"C": MNIST_C, "gamma": MNIST_GAMMA}
TEXT = (
    "Digit 8 of MNIST against the others, C = 1000. γ = 0.005 holds for pixels from -1 to 1; for "
    "pixels from 0 to 1 it is 0.02. Each point is learned from the start and finished. The SVM "
    'solution of clean labels is that of `OnlineSVC(epochs="converge")`. Label noise turns over a '
    "tenth of the training labels; curves with it end at 8,000 examples, where C = 1000 makes "
    "training slow."
)


def cases(quick: bool) -> dict[str, Case]:
    found: dict[str, Case] = {"clean, solution": {}}
    for labels in ("clean", "noisy"):
        for name in WAYS:
            counts = [100, 400] if quick else COUNTS
            if name == "random" and labels == "clean" and not quick:
                counts = [*COUNTS, 15000, 30000, 60000]
            found[f"{labels}, {name}"] = {"counts": counts}
    return found


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.measures import noisy

    labels, _, name = case["name"].partition(", ")
    split = digit(data, 8, quick)
    if name == "solution":
        return solution(split, seed, PARAMS)
    if labels == "noisy":
        split.y = noisy(split.y, NOISE, seed)
    return curve(case["counts"], name, split, seed, PARAMS)


def named(labels: str) -> dict[str, str]:
    """Return cases and labels of the clean or the noisy runs."""
    return {f"{labels}, {name}": label for name, label in WAYS.items()}


def draw_pair(results: Results, figure: Any, labels: str) -> None:
    """Draw errors against examples and against time."""
    from reproduce.drawing import curves, level

    left, right = figure.subplots(1, 2, sharey=True)
    curves(left, results, named(labels), "examples", "error", marks=True)
    curves(right, results, named(labels), "cpu", "error", marks=True)
    for axes, label in ((left, "examples learned"), (right, "CPU seconds")):
        level(axes, results.mean("clean, solution", "error"), "SVM solution, clean labels")
        axes.set(xscale="log", yscale="log", xlabel=label)
    left.set_ylabel("test error, %")
    left.legend(fontsize=7)


def tables(results: Results) -> list[Table]:
    return [ends(results, {**named("clean"), "clean, solution": "SVM solution"})]


def draw(results: Results, figure: Any) -> None:
    draw_pair(results, figure, "clean")


def claims(results: Results) -> list[Claim]:
    last = [results.curve(f"clean, {name}", "error")[-1:] for name in ("gradient", "active")]
    known = all(last)
    return [
        Claim(
            "GRADIENT and ACTIVE perform similarly on this relatively clean data set.",
            "section 4.4, figure 13",
            judged(abs(last[0][0] - last[1][0]) <= 0.1 if known else None),
            "curves on top of each other",
            f"{last[0][0]:.2f} and {last[1][0]:.2f} % after {COUNTS[-1]:,} examples"
            if known
            else "–",
        )
    ]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 13",
    "Ways to select examples, on MNIST",
    TEXT,
    files=("mnist.npz",),
    cases=cases,
    run=run,
    seeds=1,
    tables=tables,
    draw=draw,
    size=(9, 3.8),
    claims=claims,
)
