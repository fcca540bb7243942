"""Figure 5: bounding the number of idle examples, m."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, minus, ratio
from reproduce.wang2009.sets import SETS

SHOWN = {"gauss": "Gauss", "ncheckerboard": "NCheckerboard"}
BOUNDS = {"m = 0": 0, "m = 100": 100, "m = 1000": 1000, "all": None}
STOPS = [200, 500, 1000, 2000, 3000, 4000]
QUICK_STOPS = [50, 150]


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
    found = {}
    for name, title in SHOWN.items():
        full = last(results, f"{name}, all", "accuracy")
        for m in (0, 100, 1000):
            found[title, m] = minus(full, last(results, f"{name}, m = {m}", "accuracy"))
    cost = [
        saved
        for name in SHOWN
        if (
            saved := ratio(
                last(results, f"{name}, m = 100", "kernel_evaluations"),
                last(results, f"{name}, all", "kernel_evaluations"),
            )
        )
    ]
    known = all(loss is not None for loss in found.values())
    shown = "; ".join(f"{title}, m = {m}: {cell(loss)}" for (title, m), loss in found.items())
    place = "section IV.D, figure 5"
    return [
        Claim(
            "With m = 0 the loss of accuracy is significant.",
            place,
            judged(max(found[title, 0] for title in SHOWN.values()) > 1 if known else None),
            "significant",
            f"points lost: {shown}",
        ),
        Claim(
            "With m = 1000 the loss of accuracy is negligible.",
            place,
            judged(max(found[title, 1000] for title in SHOWN.values()) < 0.3 if known else None),
            "negligible",
            f"points lost: {shown}",
        ),
        Claim(
            "A bound on idle examples saves computation.",
            place,
            judged(max(cost) < 1 if cost else None),
            "cost decreases with m",
            "m = 100 takes "
            + " and ".join(f"{value:.2f}" for value in cost)
            + " times the kernel evaluations",
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
    seeds=2,
    tables=tables,
    draw=draw,
    size=(9, 5.6),
    claims=claims,
)
