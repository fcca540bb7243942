"""Figure 15: error and support vectors with clean and noisy labels, on MNIST."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure13 import TEXT
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
    errors = results.curve("noisy, active", "error")
    vectors = results.curve("noisy, active", "support_vectors")
    if not errors or exact["error"] is None or exact["support_vectors"] is None:
        holds, ours = None, "–"
    else:
        best = min(range(len(errors)), key=errors.__getitem__)
        off = errors[best] / exact["error"], vectors[best] / exact["support_vectors"]
        holds = all(abs(share - 1) <= 0.1 for share in off)
        ours = f"{off[0]:.2f} times the error, {off[1]:.2f} times the support vectors"
    return [
        Claim(
            "With noisy labels, ACTIVE reaches the error and the support vectors of the SVM "
            "solution of clean labels.",
            "section 4.4, figure 15",
            judged(holds),
            "the same error and number",
            ours,
            "" if holds else "With C = 1000, mislabelled rows near the boundary are fitted.",
        )
    ]


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
