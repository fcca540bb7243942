"""Simulation of active learning on labelled rows, to measure how many labels are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginwise._files.disk import replace_file
from marginwise._plot import COLOURS, new_axes
from marginwise.active import ActiveLearner, MarginExhausted, SupportVectorPlateau
from marginwise.cli.output import Console
from marginwise.cli.tuning import sampled
from marginwise.progress import Progress

RULES: dict[str, Any] = {"margin": MarginExhausted, "plateau": SupportVectorPlateau}


@dataclass(frozen=True)
class Simulation:
    """Settings of a simulation.

    Parameters
    ----------
    pool_size : int
        Parameter of ActiveLearner.
    max_labels, step : int
        Maximum number of labels, and number of labels between measurements.
    target_error : float or None
        Error at which to stop.
    rule : str or None
        Stopping rule.
    holdout : float
        Fraction of the rows held out to measure the error; 0 does not measure the error.
    target_recall : float or None
        Fraction of the positive rows at which to stop.
    """

    pool_size: int
    max_labels: int
    step: int
    target_error: float | None
    rule: str | None
    holdout: float
    target_recall: float | None = None


class Point(NamedTuple):
    """Measurement after a number of labels.

    The error is NaN without held-out rows, and the recall is NaN without a positive class.
    """

    labels: int
    error: float
    recall: float
    support_vectors: int


@dataclass(frozen=True)
class Replay:
    """One run of active learning.

    Parameters
    ----------
    strategy, seed
        Query strategy and random seed.
    curve : list of Point
        Measurements after every few labels.
    needed : int or None
        Number of labels that reached the target; None if there is no target or it was not reached.
    reason : str
        Reason why the run ended.
    """

    strategy: str
    seed: int
    curve: list[Point]
    needed: int | None
    reason: str


@dataclass(frozen=True)
class Rows:
    """Labelled rows of a simulation.

    Parameters
    ----------
    X, y : array or CSR matrix, ndarray
        Features and labels.
    positive : object
        Label to find; None if recall is not measured.
    """

    X: Any
    y: NDArray[Any]
    positive: Any = None

    def recall(self, pool: NDArray[Any], asked: Sequence[int]) -> NDArray[Any]:
        """Return the fraction of the positive rows of the pool found after each question."""
        wanted = self.y[pool] == self.positive
        return np.asarray(np.cumsum(wanted[list(asked)]) / max(wanted.sum(), 1))


def replayed(
    rows: Rows, estimator: Any, simulation: Simulation, strategy: str, seed: int, console: Console
) -> Replay:
    """Request labels one by one; return the measurements after every few labels."""
    y = rows.y
    order = sampled(y, len(y), seed)
    held, pool = np.split(order, [_held_rows(simulation, len(y))])
    learner = ActiveLearner(
        estimator,
        rows.X[pool],
        strategy=strategy,
        pool_size=simulation.pool_size,
        stop=None if simulation.rule is None else RULES[simulation.rule](),
        classes=np.unique(y),
        random_state=seed,
    )
    curve: list[Point] = []
    most = min(simulation.max_labels, len(pool))
    with Progress(most, console.verbose, unit="label") as progress:
        while (asked := learner.counts_["taught"]) < most and not learner.should_stop():
            learner.run(lambda row: y[pool[row]], max_labels=min(simulation.step, most - asked))
            progress.count(learner.counts_["taught"] - asked)
            curve.append(_measured(learner, rows, pool, held))
            if (needed := _needed(learner, rows, pool, curve[-1], simulation)) is not None:
                return Replay(strategy, seed, curve, needed, _success(needed, curve, simulation))
    return Replay(strategy, seed, curve, None, _failure(learner, simulation))


def _held_rows(simulation: Simulation, n: int) -> int:
    held = max(1, round(simulation.holdout * n)) if simulation.holdout else 0
    if held >= n:
        raise ValueError(
            f"--holdout {simulation.holdout:g} sets aside all {n} rows, and none is left to ask "
            "about; give a smaller fraction, or more rows."
        )
    return held


def _measured(learner: Any, rows: Rows, pool: NDArray[Any], held: NDArray[Any]) -> Point:
    error = recall = math.nan
    if len(held):
        ready = learner.has_model_
        error = 1 - learner.estimator_.score(rows.X[held], rows.y[held]) if ready else 1.0
    if rows.positive is not None:
        recall = float(rows.recall(pool, _asked(learner))[-1])
    return Point(learner.counts_["taught"], error, recall, learner.support_counts_[-1] or 0)


def _asked(learner: Any) -> list[int]:
    return [int(entry["row"]) for entry in learner.history_]


def _needed(
    learner: Any, rows: Rows, pool: NDArray[Any], point: Point, simulation: Simulation
) -> int | None:
    """Return the number of labels that reached the target, or None."""
    error, recall = simulation.target_error, simulation.target_recall
    if error is not None and point.error <= error:
        return point.labels
    if recall is not None and point.recall >= recall:  # reached at or before this measurement
        return int(np.argmax(rows.recall(pool, _asked(learner)) >= recall)) + 1
    return None


def _success(needed: int, curve: list[Point], simulation: Simulation) -> str:
    if simulation.target_error is not None:
        return f"{needed} labels reach an error of {curve[-1].error:.4f}."
    return f"{needed} labels reach a recall of {simulation.target_recall:g}."


def _failure(learner: Any, simulation: Simulation) -> str:
    stop = learner.should_stop()
    reason = stop.reason if stop else f"the limit of {simulation.max_labels} labels was reached."
    if simulation.target_error is not None:
        return f"an error of {simulation.target_error:g} was not reached: {reason}"
    if simulation.target_recall is not None:
        return f"a recall of {simulation.target_recall:g} was not reached: {reason}"
    return str(reason)


# -- several runs ----------------------------------------------------------------------------------


def shown(value: float) -> str:
    """Return a measurement as text; empty if there is none."""
    return "" if math.isnan(value) else f"{value:.4f}"


def needed_of(replays: Sequence[Replay]) -> dict[str, Any]:
    """Return how many labels the runs of one strategy needed, and their final measurements."""
    needed = sorted(replay.needed for replay in replays if replay.needed is not None)
    ends = [replay.curve[-1] for replay in replays]
    # Runs that did not reach the target count as having needed more labels than all others.
    middle = (len(replays) - 1) // 2
    return {
        "seeds": len(replays),
        "reached": len(needed),
        "median": needed[middle] if middle < len(needed) else None,
        "least": needed[0] if needed else None,
        "most": needed[-1] if len(needed) == len(replays) else None,
        "error": float(np.mean([end.error for end in ends])),
        "recall": float(np.mean([end.recall for end in ends])),
    }


def mean_curve(replays: Sequence[Replay]) -> list[Point]:
    """Return the mean of the runs at each number of labels at which all runs were measured."""
    found = []
    for points in zip(*(replay.curve for replay in replays), strict=False):
        error, recall, support = (float(np.mean([p[k] for p in points])) for k in (1, 2, 3))
        found.append(Point(points[0].labels, error, recall, round(support)))
    return found


def curve_lines(replays: Sequence[Replay]) -> list[str]:
    """Return all measurements of all runs as lines of CSV."""
    lines = ["strategy,seed,labels,error,recall,support_vectors\n"]
    for run in replays:
        for labels, error, recall, support in run.curve:
            values = (run.strategy, run.seed, labels, shown_exactly(error), shown_exactly(recall))
            lines.append(f"{','.join(map(str, values))},{support}\n")
    return lines


def shown_exactly(value: float) -> str:
    """Return a measurement as text for a file; empty if there is none."""
    return "" if math.isnan(value) else f"{value:.6g}"


def draw(replays: Sequence[Replay], simulation: Simulation, path: str) -> None:
    """Write a PNG with the curves of all runs, one colour per strategy."""
    ax = new_axes()
    import matplotlib.pyplot as plt  # new_axes has checked that it is installed

    figure: Any = ax.figure
    what = "recall" if simulation.target_recall is not None else "error"
    strategies = list(dict.fromkeys(replay.strategy for replay in replays))
    for number, strategy in enumerate(strategies):
        own = [replay for replay in replays if replay.strategy == strategy]
        colour = COLOURS[number % len(COLOURS)]
        for k, replay in enumerate(own):
            x = [point.labels for point in replay.curve]
            y = [getattr(point, what) for point in replay.curve]
            ax.plot(x, y, color=colour, alpha=0.6, lw=1.2, label=strategy if k == 0 else None)
    target = simulation.target_recall if what == "recall" else simulation.target_error
    if target is not None:
        ax.axhline(target, color="grey", lw=1, ls="--")
    ax.set(xlabel="labels", ylabel=what, ylim=(0, None))
    ax.legend(frameon=False)

    def write(handle: BinaryIO) -> None:
        figure.savefig(handle, format="png", dpi=150)

    try:
        replace_file(path, write)
    finally:
        plt.close(figure)
