"""Figure 4: CPU time against the number of rows, linear kernel, ten digits."""

from __future__ import annotations

import math
from typing import Any

from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.laskov2006 import scaling
from reproduce.laskov2006.scaling import (
    DESIGN,
    DIGITS,
    EXACT,
    LABELS,
    MAIN,
    NAIVE,
    WATCHING,
    name_of,
)
from reproduce.rows import cell

KERNEL = "linear"
TEXT = (
    scaling.TEXT + "The four implementations learn the same rows in the same order, row by row. "
    "Times are CPU seconds of one thread, because the computer was shared. Algorithms 1 and 4 in "
    "NumPy stand for the paper's naive implementations, algorithms 1 and 3 in NumPy for its "
    "storage design, and ExactSVC for its C++ program; by default ExactSVC does not watch rows "
    "far from the margin. The paper goes up to 10,000 rows for all digits; here the digit 8 goes "
    "up to 5,000 and the others to 3,000."
)


def rows_of(results: Results, kernel: str) -> list[list[str]]:
    found = []
    for digit in DIGITS:
        for n in scaling.sizes_of(results, kernel, digit):
            case = name_of(kernel, digit, n)
            times = [cell(results.mean(case, way, "fit", "cpu")) for way in LABELS]
            vectors = cell(results.mean(case, "exact", "support_vectors"), "{:,.0f}")
            found.append([f"{digit}, {n:,} rows", vectors, *times])
    return found


def tables_of(results: Results, kernel: str) -> list[Table]:
    return [Table(["", "support vectors", *LABELS.values()], rows_of(results, kernel), "Seconds")]


def draw_digits(results: Results, figure: Any, kernel: str) -> None:
    """Draw one panel per digit, in order."""
    from reproduce.drawing import COLOURS, LINES, MARKERS

    panels = figure.subplots(2, 5, sharex=True, sharey=True)
    for axes, digit in zip(panels.flat, sorted(DIGITS), strict=True):
        sizes = scaling.sizes_of(results, kernel, digit)
        for k, (way, label) in enumerate(LABELS.items()):
            times = [scaling.seconds(results, kernel, digit, n, way) for n in sizes]
            style = f"{LINES[k]}{MARKERS[k]}"
            axes.plot(sizes, times, style, color=COLOURS[k], ms=3, label=label)
        axes.set(title=f"digit {digit}", xscale="log", yscale="log")
    figure.supxlabel("rows")
    figure.supylabel("CPU seconds")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)


def exponent(results: Results, kernel: str, way: str) -> float | None:
    """Return the slope of the logarithm of seconds per iteration over that of the rows."""
    sizes = scaling.sizes_of(results, kernel, MAIN)
    if len(sizes) < 2:
        return None
    ends = []
    for n in (sizes[0], sizes[-1]):
        count = results.mean(name_of(kernel, MAIN, n), way, "iterations")
        ends.append((scaling.seconds(results, kernel, MAIN, n, way) or 0) / (count or 1))
    return math.log(ends[1] / ends[0]) / math.log(sizes[-1] / sizes[0])


def claims(results: Results) -> list[Claim]:
    slopes = {kernel: exponent(results, kernel, NAIVE) for kernel in ("linear", "rbf", "poly")}
    known = [slope for slope in slopes.values() if slope is not None]
    fastest = [
        (scaling.seconds(results, kernel, digit, n, slow) or 0)
        / (scaling.seconds(results, kernel, digit, n, way) or 1)
        for kernel in ("linear", "rbf")
        for digit in DIGITS
        for n in scaling.sizes_of(results, kernel, digit)
        for slow in (NAIVE, DESIGN)
        for way in (WATCHING, EXACT)
    ]
    return [
        Claim(
            "The time of a minor iteration is at most quadratic in the number of examples learned.",
            "section 1 (result 1) and section 5",
            judged(max(known) <= 2.1 if known else None),
            "quadratic",
            "exponents of the naive version between the smallest and the largest set: "
            + ", ".join(f"{kernel} {slope:.1f}" for kernel, slope in slopes.items() if slope)
            if known
            else "–",
        ),
        Claim(
            "The C++ implementation is significantly faster than both interpreted ones.",
            "section 5.4, figures 4 and 5",
            judged(min(fastest) >= 2 if fastest else None),
            "“significantly outperforms”",
            f"{min(fastest):.1f} to {max(fastest):.0f} times faster, over all digits and sizes"
            if fastest
            else "–",
        ),
    ]


EXPERIMENT = Experiment(
    "laskov2006",
    "Figure 4",
    "Time against the number of rows, linear kernel",
    TEXT,
    files=("mnist.npz",),
    version=2,
    cases=scaling.cases,
    run=scaling.run,
    tables=lambda results: tables_of(results, KERNEL),
    draw=lambda results, figure: draw_digits(results, figure, KERNEL),
    size=(10, 5),
    claims=claims,
)
