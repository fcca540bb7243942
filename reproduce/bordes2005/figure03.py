"""Figure 3: training time as a function of the number of support vectors."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure01 import TEXT
from reproduce.experiment import Claim, Experiment, Results, Table, judged

SHOWN = ("SVM solution", "LASVM×1")


def points(results: Results, name: str) -> list[tuple[float, float]]:
    """Return support vectors and CPU seconds of each digit."""
    paths = (("support_vectors",), ("fit", "cpu"))
    found = [[results.mean(f"{d}, {name}", *path) for path in paths] for d in range(10)]
    return sorted((a, b) for a, b in found if a is not None and b is not None)


def correlation(results: Results, name: str) -> float | None:
    """Return Pearson's correlation of time and support vectors."""
    from statistics import correlation as pearson

    found = points(results, name)
    return pearson(*zip(*found, strict=True)) if len(found) > 2 else None


def tables(results: Results) -> list[Table]:
    rows = [
        [name, "linear" if name in SHOWN else "–", f"{value:.2f}"]
        for name in SHOWN
        if (value := correlation(results, name)) is not None
    ]
    return [Table(["", "paper", "correlation here"], rows)]


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
    found = [correlation(results, name) for name in SHOWN]
    known = [value for value in found if value is not None]
    return [
        Claim(
            "Training time depends linearly on the number of support vectors.",
            "section 3.3, figure 3",
            judged(min(known) >= 0.9 if len(known) == 2 else None),
            "points on a line, for LIBSVM and LASVM×1",
            "correlation " + " and ".join(f"{value:.2f}" for value in known) if known else "–",
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
