"""Figure 1: gap between primal and dual of LASVM-G, per training example."""

from __future__ import annotations

from typing import Any

from reproduce.experiment import Claim, Experiment, Results, judged


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    axes = figure.subplots()
    curves(axes, results, {"G": "LASVM-G"}, "learned", "gap", marks=True)
    axes.set(xlabel="examples learned", ylabel="(J − G) / examples", title="Adult")


def claims(results: Results) -> list[Claim]:
    gap = results.curve("G", "gap")
    if not gap:
        return []
    return [
        Claim(
            "The gap per training example becomes smaller as more examples are learned.",
            "section 4.3, figure 1",
            judged(gap[-1] < gap[0]),
            "read from the figure",
            f"{gap[0]:.3g} after a twelfth of Adult, {gap[-1]:.3g} at the end",
        )
    ]


EXPERIMENT = Experiment(
    "ertekin2011",
    "Figure 1",
    "Gap between primal and dual",
    "The runs are those of figure 2. The gap is that over all examples seen so far, divided by "
    "their number. The paper does not name its data set.",
    shares="figure2",
    draw=draw,
    size=(5, 3.4),
    claims=claims,
)
