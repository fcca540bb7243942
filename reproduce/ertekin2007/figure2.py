"""Figure 2: PRBEP and g-means of random sampling, full search and pools of 59 examples."""

from __future__ import annotations

import statistics
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
    whole, end = gaps(results, 0), gaps(results, LABELS)
    late = gaps(results, 500)
    place = "section 3.2, figure 2"
    return [
        Claim(
            "Pools of 59 examples predict as well as full search along the whole curve: PRBEP and "
            "g-means are at most 1 point lower on average.",
            place,
            judged(min(whole) > -1 if whole else None),
            "“as good prediction performance”",
            f"mean differences {min(whole):+.2f} to {max(whole):+.2f} points; "
            f"{min(late):+.2f} to {max(late):+.2f} from 500 labels on"
            if whole and late
            else ABSENT,
            "With few labels, the g-means of both jump by many points along the curve, "
            "so a single seed decides little.",
        ),
        Claim(
            "Pools of 59 examples predict as well as full search once the curves are flat: after "
            f"{LABELS:,} labels, PRBEP and g-means are at most 1 point lower.",
            place,
            judged(min(end) > -1 if end else None),
            "“similar prediction performance”",
            f"differences {min(end):+.2f} to {max(end):+.2f} points" if end else ABSENT,
            "On grain, 0.67 points of PRBEP are one of the 149 positive test rows.",
        ),
    ]


def gaps(results: Results, low: int) -> list[float]:
    """Return mean differences of pools from full search, by set and measure, from a count on."""
    found = []
    for name in SETS:
        for what in ("prbep", "g_mean"):
            pool, full = (
                dict(
                    zip(
                        results.curve(f"{name}, {way}", "learned"),
                        results.curve(f"{name}, {way}", what),
                        strict=True,
                    )
                )
                for way in ("pool", "full")
            )
            shared = [pool[at] - full[at] for at in pool if at in full and at >= low]
            found += [statistics.fmean(shared)] if shared else []
    return found


EXPERIMENT = Experiment(
    "ertekin2007",
    "Figure 2",
    "Pools of 59 examples and full search",
    "Scores on the test rows as examples are learned: from pools of 59, from the whole pool and at "
    f"random. Active learning continues until {LABELS:,} labels, random sampling (RS) to the last "
    "example. Models along the curve are not finished. One seed; the paper averages several runs.",
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(10, 5),
    claims=claims,
)
