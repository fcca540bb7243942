"""Figure 3: training time as a function of the number of support vectors."""

from __future__ import annotations

import math
import statistics
from typing import Any

from reproduce.bordes2005.figure01 import TEXT
from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.rows import cell

SHOWN = ("SVM solution", "LASVM×1")


def points(results: Results, name: str) -> list[tuple[float, float]]:
    """Return support vectors and CPU seconds of each digit."""
    paths = (("support_vectors",), ("fit", "cpu"))
    found = [[results.mean(f"{d}, {name}", *path) for path in paths] for d in range(10)]
    return sorted((a, b) for a, b in found if a is not None and b is not None)


def correlation(results: Results, name: str) -> float | None:
    """Return Pearson's correlation of time and support vectors."""
    found = points(results, name)
    return statistics.correlation(*zip(*found, strict=True)) if len(found) > 2 else None


def exponent(results: Results, name: str) -> float | None:
    """Return the power of the support vectors with which time grows, 1 if it is linear."""
    found = points(results, name)
    logs = [[math.log(value) for value in axis] for axis in zip(*found, strict=True)]
    return statistics.linear_regression(*logs).slope if len(found) > 2 else None


def tables(results: Results) -> list[Table]:
    rows = [
        [name, "linear", f"{value:.2f}", cell(exponent(results, name))]
        for name in SHOWN
        if (value := correlation(results, name)) is not None
    ]
    return [Table(["", "paper", "correlation here", "exponent here"], rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, MARKERS

    axes = figure.subplots()
    for k, name in enumerate(SHOWN):
        found = points(results, name)
        if found:
            at, seconds = zip(*found, strict=True)
            axes.plot(at, seconds, MARKERS[k], color=COLOURS[k], label=name)
    axes.set(xlabel="support vectors", ylabel="CPU seconds", xlim=(0, None), ylim=(0, None))
    axes.legend()


def claims(results: Results) -> list[Claim]:
    found = [power for name in SHOWN if (power := exponent(results, name)) is not None]
    lines = [value for name in SHOWN if (value := correlation(results, name)) is not None]
    known = len(found) == len(lines) == len(SHOWN)
    linear = known and max(abs(power - 1) for power in found) <= 0.25 and min(lines) >= 0.95
    return [
        Claim(
            "Training time depends linearly on the number of support vectors: its exponent is "
            "within 0.25 of 1, and the correlation is at least 0.95.",
            "section 3.3, figure 3",
            judged(linear if known else None),
            "“Both LIBSVM and LASVM×1 show a linear dependency”",
            f"exponents {found[0]:.2f} (SVM solution) and {found[1]:.2f} (LASVM×1), correlations "
            f"{lines[0]:.2f} and {lines[1]:.2f}"
            if known
            else "–",
        )
    ]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 3",
    "Training time and support vectors",
    TEXT,
    shares="figure01",
    tables=tables,
    draw=draw,
    size=(5, 3.6),
    claims=claims,
)
