"""Figure 2: PRBEP and g-means of random sampling, full search and pools of 59 examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import ABSENT, cell

SETS = ("grain", "ship", "usps-0")
WAYS = {"pool": "AL, pools of 59", "full": "AL, full search", "random": "RS"}
LABELS = 3000


def cases(quick: bool) -> dict[str, Case]:
    from reproduce.ertekin2007 import sets

    return {
        f"{name}, {way}": {"labels": 200 if quick else LABELS, "files": (sets.SETS[name].file,)}
        for name in SETS
        for way in WAYS
        if not quick or name == "usps-0"
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.ertekin2007 import sets
    from reproduce.ertekin2007.curves import active_curve, random_curve
    from reproduce.ertekin2007.methods import classifier

    name, way = case["name"].split(", ")
    one = sets.SETS[name]
    split = one.load(data, seed, quick=quick)
    if way == "random":
        return random_curve(classifier(one, seed), split.X, split.y, split, seed)
    strategy = "active" if way == "pool" else "near_boundary"
    return active_curve(split, one, seed, strategy, case["labels"])


def last(results: Results, case: str, name: str) -> float | None:
    """Return the end of a curve."""
    curve = results.curve(case, name)
    return curve[-1] if curve else None


def tables(results: Results) -> list[Table]:
    rows = [
        [
            case,
            cell(last(results, case, "learned"), "{:,.0f}"),
            cell(last(results, case, "prbep")),
            cell(last(results, case, "g_mean")),
            cell(results.mean(case, "stopped"), "{:,.0f}"),
        ]
        for case in results.cases
    ]
    return [Table(["", "examples", "PRBEP, %", "g-means, %", "early stopping at"], rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    grid = figure.subplots(2, len(SETS), sharex="col")
    for row, (what, label) in enumerate({"prbep": "PRBEP, %", "g_mean": "g-means, %"}.items()):
        for axes, name in zip(grid[row], SETS, strict=True):
            found = {f"{name}, {way}": text for way, text in WAYS.items()}
            curves(axes, results, found, "learned", what)
            axes.set(ylabel=label, title=name if row == 0 else "", xscale="log")
            axes.set_xlabel("examples learned" if row else "")
    if grid[0][0].lines:
        grid[0][0].legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    gaps = []
    for name in SETS:
        for what in ("prbep", "g_mean"):
            pool, full = (last(results, f"{name}, {way}", what) for way in ("pool", "full"))
            if pool is not None and full is not None:
                gaps.append(pool - full)
    return [
        Claim(
            "Pools of 59 examples predict as well as full search.",
            "section 3.2, figure 2",
            judged(min(gaps) > -1 if gaps else None),
            "the curves coincide",
            f"after {LABELS:,} labels, PRBEP and g-means differ by {min(gaps):+.2f} to "
            f"{max(gaps):+.2f} points"
            if gaps
            else ABSENT,
            "On grain, 0.67 points of PRBEP are one of the 149 positive test rows.",
        )
    ]


EXPERIMENT = Experiment(
    "ertekin2007",
    "Figure 2",
    "Pools of 59 examples and full search",
    "Scores on the test rows as examples are learned: from pools of 59, from the whole pool and at "
    f"random. Active learning goes on until {LABELS:,} labels, random sampling (RS) to the last "
    "example. Models along the curve are not finished. One seed; the paper averages several runs.",
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(10, 5),
    claims=claims,
)
