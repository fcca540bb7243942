"""
All classifiers on one noisy data set
=====================================

::

    python examples/choosing.py [--seeds 3] [--rows 5000] [--picture choosing.png]

Which classifier copes best with wrong labels? Each seed draws two half-moons and flips a fifth of
the training labels. Each estimator uses the C with the lowest mean error on validation rows, whose
labels are also noisy. The test rows have their true labels. Except for gamma=1, other parameters
keep their defaults. The figure plots test error against the number of support vectors.

This page shows ``python examples/choosing.py --seeds 1 --rows 800``.
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
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from marginwise import ExactRampSVC, ExactSVC, GapSVC, KernelPerceptron, OnlineSVC, TrackingSVC

PICTURE = Path(sys.argv[0]).resolve().parent / "output" / "choosing.png"
FLIPPED = 0.2  # fraction of the labels
VALIDATION, TEST = 2000, 10_000  # rows
GAMMA = 1.0
COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class Data(NamedTuple):
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_validation: NDArray[np.float64]
    y_validation: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


@dataclass
class Contestant:
    """An estimator with its parameters, and its style in the figure."""

    name: str
    make: Callable[..., Any]
    settings: dict[str, Any]
    colour: str
    marker: str
    costs: tuple[float, ...] = COSTS


@dataclass
class Outcome:
    """Results of a contestant with its best C, one value per seed."""

    contestant: Contestant
    C: float
    errors: NDArray[np.float64]
    support_vectors: NDArray[np.float64]

    def quartiles(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the quartiles of the support vectors and of the errors."""
        wanted = (25, 50, 75)
        return np.percentile(self.support_vectors, wanted), np.percentile(self.errors, wanted)


ONLINE, GAP, TRACKING, RAMP, PERCEPTRON = "#0072B2", "#D55E00", "#009E73", "#AA3377", "#777777"
CONTESTANTS = (
    Contestant("SVC", SVC, {}, "black", "*"),
    Contestant("ExactSVC", ExactSVC, {}, "black", "+"),
    Contestant("OnlineSVC", OnlineSVC, {}, ONLINE, "o"),
    Contestant('OnlineSVC, selection="active"', OnlineSVC, {"selection": "active"}, ONLINE, "D"),
    Contestant('GapSVC, loss="hinge"', GapSVC, {}, GAP, "o"),
    Contestant('GapSVC, loss="ramp"', GapSVC, {"loss": "ramp"}, GAP, "s"),
    Contestant('GapSVC, loss="filter"', GapSVC, {"loss": "filter"}, GAP, "^"),
    Contestant("TrackingSVC", TrackingSVC, {}, TRACKING, "o"),
    Contestant("TrackingSVC, steps=100", TrackingSVC, {"steps": 100}, TRACKING, "s"),
    Contestant("ExactRampSVC", ExactRampSVC, {}, RAMP, "o"),
    # C only scales the decision values of a perceptron, so one value is enough.
    Contestant("KernelPerceptron", KernelPerceptron, {}, PERCEPTRON, "o", (1.0,)),
    Contestant(
        "KernelPerceptron, budget=100", KernelPerceptron, {"budget": 100}, PERCEPTRON, "v", (1.0,)
    ),
    Contestant(
        "KernelPerceptron, average=True", KernelPerceptron, {"average": True}, PERCEPTRON, "s",
        (1.0,),
    ),
    Contestant(
        'KernelPerceptron, update="pa", average=True', KernelPerceptron,
        {"update": "pa", "average": True}, PERCEPTRON, "^",
    ),
)  # fmt: skip


# %%
# Runs
# ----
def moons(seed: int, rows: int) -> Data:
    known = rows + VALIDATION
    X, truth = make_moons(known + TEST, noise=0.2, random_state=seed)
    flipped = np.random.default_rng(seed).random(known) < FLIPPED
    y = np.where(flipped, 1 - truth[:known], truth[:known])
    return Data(X[:rows], y[:rows], X[rows:known], y[rows:], X[known:], truth[known:])


def percent_wrong(model: Any, X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    return 100 * float(np.mean(model.predict(X) != y))


def one_run(contestant: Contestant, C: float, data: Data, seed: int) -> tuple[float, float, int]:
    """Return the error on validation rows and on test rows, and the number of support vectors."""
    model = contestant.make(C=C, gamma=GAMMA, **contestant.settings)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    model.fit(data.X, data.y)
    validated = percent_wrong(model, data.X_validation, data.y_validation)
    return validated, percent_wrong(model, data.X_test, data.y_test), len(model.support_)


def outcome(contestant: Contestant, sets: list[Data]) -> Outcome:
    """Run a contestant with every C and return the results for the best C."""
    print(f"  {contestant.name}", file=sys.stderr, flush=True)
    runs = {
        C: np.array([one_run(contestant, C, data, seed) for seed, data in enumerate(sets)])
        for C in contestant.costs
    }
    best = min(runs, key=lambda C: runs[C][:, 0].mean())
    return Outcome(contestant, best, runs[best][:, 1], runs[best][:, 2])


def table(outcomes: list[Outcome]) -> str:
    lines = [f"{'':45}{'C':>5}{'error, %':>11}{'worst':>8}{'support vectors':>18}"]
    for done in outcomes:
        (_, vectors, _), (_, error, _) = done.quartiles()
        C = f"{done.C:g}" if len(done.contestant.costs) > 1 else "any"
        lines.append(
            f"{done.contestant.name:45}{C:>5}{error:>11.2f}{done.errors.max():>8.2f}{vectors:>18,.0f}"
        )
    return "\n".join(lines)


# %%
# Main program
# ------------
def draw_outcome(axes: Any, done: Outcome, top: float) -> Any:
    """Draw one contestant; at the upper edge, with its error, if the error exceeds `top`."""
    (fewest, vectors, most), (least, error, worst) = done.quartiles()
    reference = done.contestant.make is SVC  # drawn hollow, so that it hides no other marker
    style = {
        "color": done.contestant.colour, "marker": done.contestant.marker, "linestyle": "none",
        "markersize": 15 if reference else 8, "label": done.contestant.name,
        "markerfacecolor": "none" if reference else done.contestant.colour,
    }  # fmt: skip
    if error <= top:
        across, along = [[vectors - fewest], [most - vectors]], [[error - least], [worst - error]]
        return axes.errorbar([vectors], [error], along, across, **style, elinewidth=1)
    axes.annotate(
        f"{error:.0f} %", (vectors, top), xytext=(9, 0), textcoords="offset points", va="center",
        color=done.contestant.colour,
    )  # fmt: skip
    return axes.plot([vectors], [top], **style, clip_on=False)[0]


def draw(path: Path, outcomes: list[Outcome], rows: int) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    top = 1.35 * float(np.median([np.median(done.errors) for done in outcomes]))
    figure, axes = plt.subplots(figsize=(10, 4.6), layout="constrained")
    handles = [draw_outcome(axes, done, top) for done in outcomes]
    axes.set_title(f"Two half-moons, {rows:,} rows, {FLIPPED:.0%} of the labels flipped", pad=16)
    axes.set(xscale="log", xlabel="support vectors (logarithmic)", ylabel="test error, %")
    axes.set_ylim(None, top)
    low, high = axes.get_xlim()
    ticks = [n for n in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if low <= n <= high]
    axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axes.minorticks_off()
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description="Error and support vectors of every classifier.")
    parser.add_argument("--seeds", type=int, default=3, help="number of data sets")
    parser.add_argument("--rows", type=int, default=5000, help="training rows per data set")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="PNG file to write")
    options = parser.parse_args()
    sets = [moons(seed, options.rows) for seed in range(options.seeds)]
    outcomes = [outcome(contestant, sets) for contestant in CONTESTANTS]
    print(f"medians over {options.seeds} sets of {options.rows:,} rows\n")
    print(table(outcomes))
    draw(options.picture, outcomes, options.rows)
    print(f"\npicture: {os.path.relpath(options.picture)}")


# %%
# Output
# ------
if __name__ == "__main__":
    main()
