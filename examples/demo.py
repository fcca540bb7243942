"""
OnlineSVC and SVC on two data sets
==================================

::

    make demo
    python examples/demo.py [--rows 50000] [--picture demo.png]

How much faster is OnlineSVC than SVC, and how do the errors compare? Both learn the handwritten
digits of scikit-learn and the noisy checkerboard of [wang2009]: 4 × 4 squares with 15 % of the
training labels flipped, and test rows without noise. The tables compare time, error and support
vectors. The figure shows the decision boundary of OnlineSVC, and the test error against the seconds
of training.

This page shows ``python examples/demo.py --rows 6000``.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from marginwise import OnlineSVC

PICTURE = Path(sys.argv[0]).resolve().parent / "output" / "demo.png"
SIDE = np.sqrt(12)  # side of the board, so that both features have a standard deviation of 1
FLIPPED = 0.15
SEED = 0

DIGITS: dict[str, Any] = {"C": 10.0, "gamma": 0.001}
# Of 13 pairs tried, the one with the lowest error of SVC on another sample of 6,000 rows.
BOARD: dict[str, Any] = {"C": 0.3, "gamma": 20.0}
SVC_CACHE = 1000  # megabytes; SVC is faster with more than its default of 200


class Data(NamedTuple):
    X: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y: NDArray[np.int64]
    y_test: NDArray[np.int64]


@dataclass
class Outcome:
    """Results of one estimator on one data set."""

    name: str
    seconds: float
    error: float
    support_vectors: int
    kernel_evaluations: int | None
    model: Any


# %%
# Data
# ----
def checkerboard(
    n: int, *, flipped: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points on a 4 × 4 checkerboard of mean 0 and deviation 1; flip some of the labels."""
    rng = np.random.default_rng(seed)
    unit = rng.random((n, 2))
    y = np.floor(4 * unit).sum(axis=1).astype(np.int64) % 2
    wrong = rng.random(n) < flipped
    return (unit - 0.5) * SIDE, np.where(wrong, 1 - y, y)


def board(rows: int) -> Data:
    X, y = checkerboard(rows, flipped=FLIPPED, seed=SEED)
    X_test, y_test = checkerboard(3000, flipped=0.0, seed=SEED + 1)
    return Data(X, X_test, y, y_test)


def digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return Data(*train_test_split(X, y, test_size=0.3, stratify=y, random_state=SEED))


# %%
# Comparison
# ----------
@contextmanager
def ticking(what: str) -> Iterator[None]:
    """Print the current step; on a terminal, with the seconds elapsed."""
    done = threading.Event()
    start = time.perf_counter()

    def tick() -> None:
        while not done.wait(1.0):
            seconds = time.perf_counter() - start
            print(f"\r  {what}, {seconds:.0f} s", end="", file=sys.stderr, flush=True)

    if not sys.stderr.isatty():
        print(f"  {what}", file=sys.stderr, flush=True)
        yield
        return
    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        seconds = time.perf_counter() - start
        print(f"\r  {what}, {seconds:.1f} s", file=sys.stderr, flush=True)


def percent_wrong(model: Any, data: Data) -> float:
    return 100 * float(np.mean(model.predict(data.X_test) != data.y_test))


def contest(name: str, model: Any, data: Data) -> Outcome:
    """Fit and test one estimator."""
    with ticking(f"{name} learns {len(data.y):,} rows"):
        start = time.perf_counter()
        model.fit(data.X, data.y)
        seconds = time.perf_counter() - start
    evaluations = getattr(model, "stats_", {}).get("kernel_evaluations")
    error = percent_wrong(model, data)
    return Outcome(name, seconds, error, len(model.support_), evaluations, model)


def contests(data: Data, params: dict[str, Any]) -> list[Outcome]:
    """Fit OnlineSVC with one pass, OnlineSVC until it converges, and SVC to the same rows."""
    converging = OnlineSVC(**params, epochs="converge", random_state=SEED)
    return [
        contest("OnlineSVC", OnlineSVC(**params, random_state=SEED), data),
        contest("OnlineSVC, converge", converging, data),
        contest("SVC", SVC(**params, cache_size=SVC_CACHE), data),
    ]


def table(title: str, outcomes: list[Outcome]) -> str:
    columns = "{:<20}{:>10}{:>10}{:>17}{:>21}"
    header = columns.format("", "seconds", "error, %", "support vectors", "kernel evaluations")
    lines = [f"\n{title}", header]
    for o in outcomes:
        known = "–" if o.kernel_evaluations is None else f"{o.kernel_evaluations:,}"
        cells = (o.name, f"{o.seconds:.2f}", f"{o.error:.2f}", f"{o.support_vectors:,}", known)
        lines.append(columns.format(*cells))
    return "\n".join(lines)


# %%
# Error as the data arrive
# ------------------------
class Step(NamedTuple):
    """Number of examples learned, seconds of training, and the error after them."""

    examples: int
    seconds: float
    error: float


def sizes_up_to(rows: int) -> list[int]:
    steps = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
    return [size for size in steps if size < rows] + [rows]


def online_steps(data: Data) -> list[Step]:
    """Learn the stream once with partial_fit, and finish the model before each test."""
    model = OnlineSVC(**BOARD, random_state=SEED)
    steps, seen, seconds = [], 0, 0.0
    for size in sizes_up_to(len(data.y)):
        start = time.perf_counter()
        model.partial_fit(data.X[seen:size], data.y[seen:size], classes=[0, 1]).finish()
        seconds += time.perf_counter() - start
        steps.append(Step(size, seconds, percent_wrong(model, data)))
        seen = size
    return steps


def svc_steps(data: Data, whole: Outcome, most: int = 10_000) -> list[Step]:
    """Fit SVC from scratch to the first rows of the stream; the fit to all rows exists already."""
    steps = []
    for size in [size for size in sizes_up_to(len(data.y))[:-1] if size <= most]:
        start = time.perf_counter()
        model = SVC(**BOARD, cache_size=SVC_CACHE).fit(data.X[:size], data.y[:size])
        seconds = time.perf_counter() - start
        steps.append(Step(size, seconds, percent_wrong(model, data)))
    return [*steps, Step(len(data.y), whole.seconds, whole.error)]


# %%
# Picture
# -------
# Colours that colour-blind readers can distinguish [Okabe and Ito].
ZERO, ONE = "#E69F00", "#0072B2"
ZERO_TINT, ONE_TINT = "#FBEBCB", "#CFE3F1"
INK = {ZERO: "#8A5F00", ONE: "#004F7C"}  # darker, for text


def draw(path: Path, outcomes: list[Outcome], online: list[Step], svc: list[Step]) -> None:
    """Draw the model of the first outcome, and the error against time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6), layout="constrained")
    once, twice, _ = outcomes
    draw_board(left, once.model)
    draw_steps(right, online, svc)
    right.plot(
        twice.seconds, twice.error, "D", color="#009E73", markersize=9,
        label=f"{twice.name}: fit to {online[-1].examples:,}",
    )  # fmt: skip
    right.legend(loc="upper right", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_board(axes: Any, model: OnlineSVC, shown: int = 300) -> None:
    """Draw the boundary, the margin and the support vectors on the margin."""
    line = np.linspace(-SIDE / 2, SIDE / 2, 241)
    a, b = np.meshgrid(line, line)
    f = model.decision_function(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    axes.contourf(a, b, f, levels=[-1e9, 0, 1e9], colors=[ZERO_TINT, ONE_TINT])
    axes.contour(a, b, f, levels=[-1, 1], colors="0.45", linewidths=0.9, linestyles="dashed")
    axes.contour(a, b, f, levels=[0], colors="black", linewidths=1.8)
    for edge in (-SIDE / 4, 0.0, SIDE / 4):
        axes.axvline(edge, color="0.6", linewidth=0.6, linestyle="dotted")
        axes.axhline(edge, color="0.6", linewidth=0.6, linestyle="dotted")
    alpha, vectors = model.dual_coef_[0], model.support_vectors_
    free = np.flatnonzero(np.abs(alpha) < model.C * (1 - 1e-9))
    drawn = np.random.default_rng(SEED).permutation(free)[:shown]
    for sign, colour, marker, label in ((-1, ZERO, "s", 0), (1, ONE, "o", 1)):
        x = vectors[drawn[np.sign(alpha[drawn]) == sign]]
        axes.scatter(
            *x.T, s=24, c=colour, marker=marker, edgecolors="white", linewidths=0.6, zorder=3,
            label=f"support vector of class {label}, on the margin",
        )  # fmt: skip
    axes.plot([], [], color="black", linewidth=1.8, label="boundary, f(x) = 0")
    axes.plot([], [], color="0.45", linewidth=0.9, linestyle="dashed", label="margin, f(x) = ±1")
    axes.set(
        title="What OnlineSVC learned in one pass (dotted: the true squares)\n"
        f"{len(alpha) - len(free):,} support vectors inside the margin are not drawn",
        xlabel="first feature",
        ylabel="second feature",
        aspect="equal",
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=2, frameon=False)


def draw_steps(axes: Any, online: list[Step], svc: list[Step]) -> None:
    """Draw the error against the seconds of training."""
    for steps, colour, marker, name, below in (
        (online, ONE, "o", "OnlineSVC: one stream, partial_fit", True),
        (svc, ZERO, "s", "SVC: fitted from scratch to each number of examples", False),
    ):
        seconds, errors = ([getattr(s, part) for s in steps] for part in ("seconds", "error"))
        axes.plot(seconds, errors, color=colour, marker=marker, markersize=7, label=name)
        for step in [s for s in steps if s.examples in (1000, 10_000, steps[-1].examples)]:
            axes.annotate(
                f"{step.examples:,}",
                (step.seconds, step.error),
                xytext=(-6, -6) if below else (6, 6),
                textcoords="offset points",
                ha="right" if below else "left",
                va="top" if below else "bottom",
                color=INK[colour],
            )
    axes.set(
        xscale="log",
        title="Error on noise-free rows as examples arrive\n(numbers are examples learned)",
        xlabel="seconds of training (logarithmic)",
        ylabel="test error, %",
        ylim=(0, None),
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.12)
    axes.grid(alpha=0.25)


# %%
# Main program
# ------------
def shown(title: str, run: Callable[[], list[Outcome]]) -> list[Outcome]:
    print(f"\n{title}", file=sys.stderr, flush=True)
    outcomes = run()
    print(table(title, outcomes), flush=True)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare OnlineSVC with SVC on two data sets.")
    parser.add_argument("--rows", type=int, default=50_000, help="rows of the checkerboard")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="PNG file to write")
    options = parser.parse_args()
    rows = options.rows
    start = time.perf_counter()
    shown("Handwritten digits, ten classes", lambda: contests(digits(), DIGITS))
    data = board(rows)
    title = f"Noisy checkerboard, {rows:,} rows, {FLIPPED:.0%} of the labels flipped"
    outcomes = shown(title, lambda: contests(data, BOARD))
    print("\nPicture", file=sys.stderr)
    with ticking("OnlineSVC learns the rows as a stream"):
        online = online_steps(data)
    with ticking("SVC learns the first rows of it"):
        svc = svc_steps(data, outcomes[-1])
    with ticking("drawing"):
        draw(options.picture, outcomes, online, svc)
    print(f"\npicture: {os.path.relpath(options.picture)}")
    print(f"total time: {time.perf_counter() - start:.0f} s")


# %%
# Output
# ------
if __name__ == "__main__":
    main()
