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
    gradient, active, random, clean = (
        at_best(results, case)
        for case in ("noisy, gradient", "noisy, active", "noisy, random", "clean, active")
    )
    chaotic = None if gradient is None or random is None else gradient > random
    undisturbed = None if active is None or clean is None else active - clean <= 0.1
    return [
        Claim(
            "GRADIENT keeps selecting mislabelled examples.",
            "section 4.4, figure 14",
            judged(chaotic),
            "a chaotic curve, far above RANDOM",
            f"errors at best {gradient:.2f} %, RANDOM {random:.2f} %" if gradient else "–",
        ),
        Claim(
            "ACTIVE is undisturbed by the label noise.",
            "section 4.4, figure 14",
            judged(undisturbed),
            "as without noise",
            f"errors at best {active:.2f} %, without noise {clean:.2f} %" if active else "–",
            "" if undisturbed else "With C = 1000, mislabelled rows near the boundary are fitted.",
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
