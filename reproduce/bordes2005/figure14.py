"""Figure 14: ways to select examples when a tenth of the labels is wrong, on MNIST."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure13 import TEXT, draw_pair, named
from reproduce.bordes2005.lasvm import at_best
from reproduce.bordes2005.selection import ends
from reproduce.experiment import Claim, Experiment, Results, Table, judged

FITTED = "Probably because C = 1000 fits the mislabelled examples that lie near the boundary."


def tables(results: Results) -> list[Table]:
    return [ends(results, {**named("noisy"), "clean, solution": "SVM solution, clean labels"})]


def draw(results: Results, figure: Any) -> None:
    draw_pair(results, figure, "noisy")


def claims(results: Results) -> list[Claim]:
    gradient, active, random, clean = (
        at_best(results, case)
        for case in ("noisy, gradient", "noisy, active", "noisy, random", "clean, active")
    )
    misled = None if gradient is None or random is None else gradient > 2 * random
    undisturbed = None if active is None or clean is None else active - clean <= 0.1
    return [
        Claim(
            "With label noise, GRADIENT fails because it keeps selecting mislabelled examples: its "
            "error is more than twice that of RANDOM.",
            "section 4.4, figure 14",
            judged(misled),
            "“very chaotic convergence”",
            f"errors at best {gradient:.2f} %, RANDOM {random:.2f} %"
            if gradient and random
            else "–",
            "We judge by the error; which of the selected examples are mislabelled is not stored.",
        ),
        Claim(
            "ACTIVE is undisturbed by the label noise.",
            "section 4.4, figure 14",
            judged(undisturbed),
            "“obviously undisturbed by the label noise”",
            f"errors at best {active:.2f} %, without noise {clean:.2f} %"
            if active and clean
            else "–",
            "" if undisturbed else FITTED,
        ),
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
