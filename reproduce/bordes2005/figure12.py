"""Figure 12: error against support vectors, on Adult."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure11 import TEXT
from reproduce.bordes2005.selection import LABELS
from reproduce.experiment import Claim, Experiment, Results, Table, judged

NEAR = 0.1  # points above the solution's error


def first_near(results: Results, case: str) -> tuple[float, float, float] | None:
    """Return examples, support vectors and error where a curve first comes near the solution."""
    exact = results.mean("solution", "error")
    columns = (results.curve(case, name) for name in ("examples", "support_vectors", "error"))
    for at, vectors, error in zip(*columns, strict=True):
        if exact is not None and error <= exact + NEAR:
            return at, vectors, error
    return None


def tables(results: Results) -> list[Table]:
    results = results.paired(*LABELS, "solution")
    rows = []
    for case, label in LABELS.items():
        found = first_near(results, case)
        cells = [f"{v:,.0f}" for v in found[:2]] + [f"{found[2]:.2f}"] if found else ["–"] * 3
        rows.append([label, "2,500" if case == "autoactive" else "–", *cells])
    header = ["", "support vectors: paper", "examples here", "support vectors here", "error, %"]
    return [Table(header, rows, f"Where the error first is within {NEAR} points of the solution's")]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import PAPER, curves

    results = results.paired(*LABELS, "solution")
    axes = figure.subplots()
    curves(axes, results, LABELS, "support_vectors", "error", marks=True)
    error, vectors = (results.mean("solution", name) for name in ("error", "support_vectors"))
    if error is not None:
        axes.plot([vectors], [error], "*", color="black", ms=10, label="SVM solution")
    axes.plot([2500, 11278], [14.9, 14.9], **PAPER, label="paper: AUTOACTIVE, LIBSVM")
    axes.set(xscale="log", xlabel="support vectors", ylabel="test error, %", ylim=(14, 22))
    axes.legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    results = results.paired(*LABELS, "solution")
    found, exact = first_near(results, "autoactive"), results.mean("solution", "support_vectors")
    ours = "–"
    if results and exact:
        ours = f"not within {NEAR} points up to the last point"
        if found:
            ours = f"{found[1]:,.0f} instead of {exact:,.0f}, within {NEAR} points of its error"
    return [
        Claim(
            "AUTOACTIVE reaches the accuracy of the SVM solution with far fewer support vectors.",
            "section 4.4, figure 12",
            judged(found is not None and found[1] < exact / 2 if results and exact else None),
            "2,500 instead of 11,278",
            ours,
        )
    ]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 12",
    "Error and support vectors, on Adult",
    TEXT,
    shares="figure11",
    tables=tables,
    draw=draw,
    size=(6, 3.8),
    claims=claims,
)
