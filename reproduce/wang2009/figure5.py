"""Figure 5: bounding the number of idle examples, m."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, ratio
from reproduce.wang2009.sets import SETS

SHOWN = {"gauss": "Gauss", "ncheckerboard": "NCheckerboard"}
BOUNDS = {"m = 0": 0, "m = 100": 100, "m = 1000": 1000, "all": None}
STOPS = [200, 500, 1000, 2000, 3000, 4000]
QUICK_STOPS = [50, 150]
NEGLIGIBLE, SMALL = 0.3, 1.0  # points of accuracy


def cases(quick: bool) -> dict[str, Case]:
    return {
        f"{name}, {bound}": {"set": name, "max_idle": m}
        for name in SHOWN
        for bound, m in BOUNDS.items()
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.wang2009.learners import new_ramp
    from reproduce.wang2009.streams import every_row, follow

    chosen = SETS[case["set"]]
    split = chosen.load(data, seed, quick=quick)
    model = new_ramp(chosen, split, max_idle=case["max_idle"])
    return follow(model, split, QUICK_STOPS if quick else STOPS, every_row(model, split))


def last(results: Results, case: str, field: str) -> float | None:
    curve = results.curve(case, field)
    return curve[-1] if curve else None


def lost(results: Results, name: str, m: int) -> list[float]:
    """Return by how many points a bound lowers the accuracy, along the stream."""
    cases = (f"{name}, all", f"{name}, m = {m}")
    both = results.paired(*cases)
    full, bounded = (both.curve(case, "accuracy") for case in cases)
    return [a - b for a, b in zip(full, bounded, strict=True)]


def shares(results: Results, m: int, field: str) -> list[float]:
    """Return a cost with a bound over that without one, at the end of the stream, per set."""
    found = []
    for name in SHOWN:
        cases = (f"{name}, m = {m}", f"{name}, all")
        both = results.paired(*cases)
        value = ratio(*(last(both, case, field) for case in cases))
        found += [] if value is None else [value]
    return found


def listed(values: list[float]) -> str:
    return " and ".join(f"{value:.2f}" for value in values)


def tables(results: Results) -> list[Table]:
    rows = [
        [
            case,
            cell(last(results, case, "accuracy")),
            cell(last(results, case, "seconds"), "{:.1f}"),
            cell((last(results, case, "kernel_evaluations") or 0) / 1e6, "{:.1f}"),
        ]
        for case in results.cases
    ]
    header = ["at the end of the stream", "accuracy, %", "seconds", "kernel evaluations, M"]
    return [Table(header, rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    panels = figure.subplots(2, 2, sharex=True)
    for row, (name, title) in zip(panels, SHOWN.items(), strict=True):
        labels = {f"{name}, {bound}": bound for bound in BOUNDS}
        curves(row[0], results, labels, "size", "seconds")
        curves(row[1], results, labels, "size", "accuracy")
        row[0].set(title=title, ylabel="seconds")
        row[1].set(title=title, ylabel="accuracy, %")
    for axes in panels[1]:
        axes.set(xlabel="rows of the stream")
    panels[0][0].legend()


def claims(results: Results) -> list[Claim]:
    losses = {m: [lost(results, name, m) for name in SHOWN] for m in (0, 100, 1000)}
    if not all(curve for curves in losses.values() for curve in curves):
        return []
    mean = {m: [statistics.fmean(curve) for curve in curves] for m, curves in losses.items()}
    end = {m: [curve[-1] for curve in curves] for m, curves in losses.items()}
    cost = {m: shares(results, m, "kernel_evaluations") for m in losses}
    time = {m: shares(results, m, "seconds") for m in losses}
    sets = " and ".join(SHOWN.values())
    falls = [cost[0][k] < cost[100][k] < cost[1000][k] < 1 for k in range(len(SHOWN))]
    shrinks = all(curve[-1] < max(curve) for curve in losses[100])
    place = "section IV.D, figure 5"
    return [
        Claim(
            "The smaller m is, the less computation is needed.",
            place,
            judged(all(falls)),
            "the cost decreases with m",
            f"times the kernel evaluations without a bound ({sets}): "
            + "; ".join(f"m = {m}: {listed(values)}" for m, values in cost.items()),
        ),
        Claim(
            "With m = 0 the loss of accuracy is significant.",
            place,
            judged(min(mean[0]) > NEGLIGIBLE),
            "significant",
            f"points lost, mean over the stream: {listed(mean[0])} ({sets}); "
            f"at its end: {listed(end[0])}",
        ),
        Claim(
            "With m = 100 the loss of accuracy is small and decreases along the stream, and the "
            "savings in time are significant.",
            place,
            judged(shrinks and max(end[100]) <= SMALL and max(time[100]) <= 0.75),
            "a small loss, significant savings",
            f"points lost, largest: {listed([max(curve) for curve in losses[100]])} ({sets}); at "
            f"the end of the stream: {listed(end[100])}; {listed(time[100])} times the seconds",
        ),
        Claim(
            "With m = 1000 the loss of accuracy is negligible, and the savings are still "
            "significant.",
            place,
            judged(max(*mean[1000], *end[1000]) < NEGLIGIBLE and max(cost[1000]) <= 0.8),
            "negligible; significant",
            f"points lost at the end of the stream: {listed(end[1000])} ({sets}); "
            f"{listed(cost[1000])} times the kernel evaluations and {listed(time[1000])} times the "
            "seconds",
        ),
    ]


EXPERIMENT = Experiment(
    "wang2009",
    "Figure 5",
    "Bounding the number of idle examples",
    "`max_idle` is m, the number of examples with zero coefficient that are kept. The first 4,000 "
    "rows of Gauss and of NCheckerboard (see table 1).",
    cases=cases,
    run=run,
    seeds=10,
    tables=tables,
    draw=draw,
    size=(9, 5.6),
    claims=claims,
)
