"""Figure 4: the number of steps K against the mean normalised gap."""

from __future__ import annotations

from typing import Any

from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.rows import cell
from reproduce.usunier2010.tracking import case_name, power_law

STEPS = (5, 10, 15, 20, 30, 50, 75, 100)
EXPONENT = 1.5  # halfway between the laws 1 / ε and 1 / ε²


def points(results: Results) -> list[tuple[int, float]]:
    """Return K and the mean gap of Algorithm 1."""
    means = {K: results.mean(case_name(1, K), "gap") for K in STEPS}
    return [(K, mean) for K, mean in means.items() if mean is not None]


def tables(results: Results) -> list[Table]:
    rows = [[str(K), cell(gap, "{:.4f}"), cell(K * gap)] for K, gap in points(results)]
    return [Table(["K", "mean gap", "K × gap"], rows)]


def draw(results: Results, figure: Any) -> None:
    import numpy as np

    from reproduce.drawing import COLOURS, LINES

    found = points(results)
    if not found:
        return
    K, gaps = np.array(found, dtype=np.float64).T
    axes = figure.subplots()
    axes.plot(gaps, K, "o", color=COLOURS[0], label="Algorithm 1")
    span = np.geomspace(gaps.min(), gaps.max(), 50)
    for power, label in ((1, "K ∝ 1 / gap"), (2, "K ∝ 1 / gap² (corollary 4)")):
        law = np.exp(np.mean(np.log(K) + power * np.log(gaps))) / span**power
        axes.plot(span, law, LINES[power], color="0.35", label=label)
    axes.set(xlabel="mean of duality gap / (C t)", ylabel="K", xscale="log", yscale="log")
    axes.legend()


def claims(results: Results) -> list[Claim]:
    law = power_law(points(results))
    return [
        Claim(
            "In practice, K depends on the mean gap ε rather like 1/ε than like 1/ε² as in "
            "corollary 4.",
            "section 6.1, figure 4",
            judged(None if law is None else law[1] <= EXPONENT),
            "exponent 1",
            "–"
            if law is None
            else f"exponent {law[1]:.2f}, fitted to {len(points(results))} values of K",
        )
    ]


EXPERIMENT = Experiment(
    "usunier2010",
    "Figure 4",
    "Steps per example against the gap",
    "Algorithm 1 on Adult with eight values of K, as in figure 2; the two laws are drawn through "
    "the centre of the points.",
    shares="figure2",
    tables=tables,
    draw=draw,
    size=(5.5, 3.8),
    claims=claims,
)
