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
NEAR = 0.05  # points of error: five of the 10,000 test rows
TEXT = (
    "Digit 8 of MNIST against the others, C = 1000. γ = 0.005 holds for pixels from -1 to 1; for "
    "pixels from 0 to 1 it is 0.02. Each point is learned from the start and finished. The SVM "
    'solution of clean labels is that of `OnlineSVC(epochs="converge")`. With label noise, a '
    "tenth of the training labels is flipped; these curves end at 8,000 examples, because C = 1000 "
    "makes training slow. One seed; the paper averages five runs."
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
    random, gradient, active = (results.curve(f"clean, {name}", "error") for name in WAYS)
    apart = [abs(a - b) for a, b in zip(gradient, active, strict=False)]
    behind = [r - max(a, b) for r, a, b in zip(random, gradient, active, strict=False)]
    known = bool(apart and behind)
    goal = random[-1] + NEAR if random else 0.0
    seconds = [time_to(results, f"clean, {name}", goal) for name in WAYS]
    reached = None not in seconds
    return [
        Claim(
            "GRADIENT and ACTIVE perform similarly on this relatively clean data set: everywhere, "
            "they differ by less than a fifth of their lead over RANDOM.",
            "section 4.4, figure 13",
            judged(all(a < b / 5 for a, b in zip(apart, behind, strict=True)) if known else None),
            "“perform similarly”",
            f"up to {max(apart):.2f} points apart; at least {min(behind):.2f} points ahead of "
            "RANDOM after as many examples"
            if known
            else "–",
        ),
        Claim(
            "GRADIENT and ACTIVE require about as much computing time as RANDOM for a similar test "
            f"error: up to {NEAR} points above that of a RANDOM pass, in half to twice the time.",
            "section 4.4, figure 13",
            judged(
                all(0.5 <= seconds[k] / seconds[0] <= 2 for k in (1, 2))
                if reached
                else (False if known else None)
            ),
            "“about as much computing time as RANDOM example selection”",
            ", ".join(
                f"{label} {at:.1f} s" for label, at in zip(WAYS.values(), seconds, strict=True)
            )
            if reached
            else "–",
        ),
    ]


def time_to(results: Results, case: str, goal: float) -> float | None:
    """Return the CPU seconds of the first point of a curve with an error up to a goal."""
    pairs = zip(results.curve(case, "error"), results.curve(case, "cpu"), strict=True)
    return next((seconds for error, seconds in pairs if error <= goal + 1e-9), None)


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
