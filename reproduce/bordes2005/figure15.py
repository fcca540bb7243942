"""Figure 15: error and support vectors with clean and noisy labels, on MNIST."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure13 import TEXT
from reproduce.bordes2005.figure14 import FITTED
from reproduce.bordes2005.selection import ends
from reproduce.experiment import Claim, Experiment, Results, Table, judged

ACTIVE = {"clean, active": "ACTIVE, clean", "noisy, active": "ACTIVE, noisy"}
SHOWN = {"clean, random": "RANDOM, clean", "noisy, random": "RANDOM, noisy", **ACTIVE}


def tables(results: Results) -> list[Table]:
    return [ends(results, {**SHOWN, "clean, solution": "SVM solution, clean"})]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    axes = figure.subplots()
    curves(axes, results, SHOWN, "support_vectors", "error", marks=True)
    error, vectors = (results.mean("clean, solution", n) for n in ("error", "support_vectors"))
    if error is not None:
        axes.plot([vectors], [error], "*", color="black", ms=10, label="SVM solution, clean")
    axes.set(xscale="log", yscale="log", xlabel="support vectors", ylabel="test error, %")
    axes.legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    exact = {n: results.mean("clean, solution", n) for n in ("error", "support_vectors")}
    found = []
    for case, labels in (("clean, active", "clean"), ("noisy, active", "noisy")):
        off = _nearest(results, case, exact)
        holds = all(abs(share - 1) <= 0.1 for share in off) if off else None
        found.append(
            Claim(
                f"With {labels} labels, ACTIVE reaches the error and the number of support vectors "
                "of the SVM solution of clean labels, both within 10 %.",
                "section 4.4, figure 15",
                judged(holds),
                "“regardless of the noise conditions”",
                f"{off[0]:.2f} times the error, {off[1]:.2f} times the support vectors"
                if off
                else "–",
                FITTED if holds is False else "",
            )
        )
    return found


def _nearest(results: Results, case: str, exact: dict[str, float | None]) -> list[float]:
    """Return the error and the number, relative to the solution's, where both come nearest."""
    if None in exact.values():
        return []
    columns = [[value / exact[n] for value in results.curve(case, n)] for n in exact]
    return min(
        map(list, zip(*columns, strict=True)),
        key=lambda point: max(abs(share - 1) for share in point),
        default=[],
    )


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 15",
    "Error and support vectors with label noise, on MNIST",
    TEXT,
    shares="figure13",
    tables=tables,
    draw=draw,
    size=(6, 3.8),
    claims=claims,
)
