"""Figure 8: ratio of negative to positive support vectors in active learning and at random."""

from __future__ import annotations

from typing import Any

from reproduce.experiment import Claim, Experiment, Results, judged
from reproduce.rows import ABSENT

NAME = "grain"


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, curves, level

    axes = figure.subplots()
    found = {f"{NAME}, pool": "AL", f"{NAME}, random": "RS"}
    curves(axes, results, found, "learned", "ratio")
    level(axes, 16.9, "ratio of the training data", COLOURS[6])
    axes.set(xlabel="examples learned", ylabel="SV− / SV+", title=NAME)
    axes.legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    al, rs = (results.curve(f"{NAME}, {way}", "ratio") for way in ("pool", "random"))
    return [
        Claim(
            "AL reaches early the ratio of support vectors that RS reaches at the end.",
            "section 6, figure 8",
            judged(abs(al[-1] / rs[-1] - 1) < 0.2 if al and rs else None),
            "AL saturates after 2,000 of 7,770 examples at the ratio that RS reaches at the end",
            f"{al[-1]:.1f} after 3,000 examples; RS {rs[-1]:.1f} after all"
            if al and rs
            else ABSENT,
        ),
        Claim(
            "Support vectors are more balanced in AL than in RS during learning.",
            "section 6, figure 8",
            judged(al[len(al) // 2] < rs[len(rs) // 2] if al and rs else None),
            "read from the figure: RS first approaches the ratio of the data",
            f"half-way along the curves {al[len(al) // 2]:.1f} against {rs[len(rs) // 2]:.1f}; "
            f"RS at most {max(rs):.1f}"
            if al and rs
            else ABSENT,
        ),
    ]


EXPERIMENT = Experiment(
    "ertekin2007",
    "Figure 8",
    "Support vector ratios of AL and RS",
    "The runs are those of figure 2 on grain; the paper does not name its data set.",
    shares="figure2",
    draw=draw,
    size=(5, 3.4),
    claims=claims,
)
