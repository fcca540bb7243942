"""Figure 9: the size of the model while it learns 8,100,000 examples."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.rows import cell

CASES = {"pixels, 134": "pixels", "directions, 134": "directions of strokes"}
# The second stage ends at 300,000 examples; from then on the model is finished after the first
# chunk of 16,384 examples that completes 600,000.
STAGE, STEP = 300_000, 37 * 16_384


def largest(results: Results, case: str) -> tuple[float, float] | None:
    """Return after how many million examples the model was largest, and its size."""
    at, held = (results.curve(case, "outline", name) for name in ("examples", "members"))
    if not held:
        return None
    top = max(range(len(held)), key=lambda k: held[k])
    return at[top] / 1e6, held[top]


def removed(results: Results, case: str) -> list[float]:
    """Return the shares of the members that finishing steps removed."""
    at, held = (results.curve(case, "outline", name) for name in ("examples", "members"))
    points = list(zip(at, held, strict=True))
    return [
        1 - after / before
        for (_, before), (end, after) in pairwise(points)
        if end > STAGE and (end - STAGE) % STEP == 0
    ]


def tables(results: Results) -> list[Table]:
    rows = []
    for case, label in CASES.items():
        top, drops = largest(results, case), removed(results, case)
        if top is not None:
            share = f"{100 * min(drops):.0f} to {100 * max(drops):.0f}" if drops else "–"
            end = cell(results.mean(case, "members"), "{:,.0f}")
            rows.append([label, f"{top[1]:,.0f}", f"{top[0]:.1f}", str(len(drops)), share, end])
    header = ["", "largest size", "after, million examples", "finishing steps", "removed, %"]
    return [Table([*header, "size at the end"], rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES, level

    left, right = figure.subplots(1, 2)
    for k, (case, label) in enumerate(CASES.items()):
        at, held = (results.curve(case, "outline", name) for name in ("examples", "members"))
        style = {"color": COLOURS[k], "label": label}
        left.plot([x / 1e6 for x in at], [m / 1000 for m in held], LINES[k], **style)
        at, errors = (results.curve(case, "curve", name) for name in ("examples", "error"))
        right.plot([x / 1e6 for x in at], errors, LINES[k], marker="o", ms=3, **style)
    left.set(xlabel="examples, millions", ylabel="members, thousands", ylim=(0, None))
    level(right, 0.67, "paper, at the end")
    right.set(xlabel="examples, millions", ylabel="test error, %", ylim=(0, None))
    for axes in (left, right):
        if axes.has_data():
            axes.legend(fontsize=7, loc="lower right")


def claims(results: Results) -> list[Claim]:
    top, end = largest(results, "pixels, 134"), results.mean("pixels, 134", "members")
    drops = removed(results, "pixels, 134")
    place = "section 4.3, figure 9"
    return [
        Claim(
            "The number of support vectors eventually decreases slowly: after 5 to 6 million "
            "examples without finishing steps, and earlier with them.",
            place,
            judged(None if top is None else top[0] < 6.5),
            "from 5 to 6 million examples on; earlier with finishing steps",
            f"with finishing steps, largest after {cell(top and top[0], '{:.1f}')} of 8.1 million "
            f"examples, before such a step ({cell(top and top[1], '{:,.0f}')}); "
            f"{cell(end, '{:,.0f}')} at the end",
            "We count the members of all ten classes together, and variants inside the margins "
            "keep arriving, so that the model still grows from one finishing step to the next, "
            "although ever more slowly.",
        ),
        Claim(
            "Each finishing step reduces the number of support vectors.",
            place,
            judged(min(drops) > 0 if drops else None),
            "a gap at each finishing step",
            f"{len(drops)} steps removed {100 * min(drops):.0f} to {100 * max(drops):.0f} % of the "
            "members"
            if drops
            else "–",
        ),
    ]


EXPERIMENT = Experiment(
    "loosli2007",
    "Figure 9",
    "The size of the model over time",
    "The runs of table 2 with 134 variants: members after each chunk of 16,384 examples, and the "
    "test error. Members are examples that are support vectors of one class or several; those that "
    "no longer are remain for a while, and their removal causes the small steps of the curve. A "
    "finishing step takes place every 600,000 examples. The paper shows one binary classifier. "
    "Measured on 2026-11-16.",
    shares="table2",
    tables=tables,
    draw=draw,
    size=(9, 3.4),
    claims=claims,
)
