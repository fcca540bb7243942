"""Figure 14: ways to select examples when a tenth of the labels is wrong, on MNIST."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure13 import TEXT, draw_pair, named
from reproduce.bordes2005.lasvm import at_best
from reproduce.bordes2005.selection import ends
from reproduce.experiment import Claim, Experiment, Results, Table, judged


def tables(results: Results) -> list[Table]:
    return [ends(results, {**named("noisy"), "clean, solution": "SVM solution, clean labels"})]


def draw(results: Results, figure: Any) -> None:
    draw_pair(results, figure, "noisy")


def claims(results: Results) -> list[Claim]:
    gradient, active = (at_best(results, f"noisy, {name}") for name in ("gradient", "active"))
    known = gradient is not None and active is not None
    return [
        Claim(
            "GRADIENT keeps selecting mislabelled examples, ACTIVE is undisturbed by them.",
            "section 4.4, figure 14",
            judged(gradient > 2 * active if known else None),
            "a chaotic curve against a smooth one",
            f"errors at best {gradient:.2f} and {active:.2f} %" if known else "–",
        )
    ]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 14",
    "Ways to select examples with label noise, on MNIST",
    TEXT,
    shares="figure13",
    tables=tables,
    draw=draw,
    size=(9, 3.8),
    claims=claims,
)
