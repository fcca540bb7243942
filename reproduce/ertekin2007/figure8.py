"""Figure 8: ratio of negative to positive support vectors in active learning and at random."""

from __future__ import annotations

from typing import Any

from reproduce.ertekin2007.figure5 import value_at
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
    counts, rows = (results.curve(f"{NAME}, {way}", "learned") for way in ("pool", "random"))
    known = bool(al and rs)
    near = [known and abs(ratio / rs[-1] - 1) <= 0.1 for ratio in al]
    since = next((counts[k] for k in range(len(near)) if all(near[k:])), None)
    pairs = [
        (ratio, other)
        for count, ratio in zip(counts, al, strict=True)
        if (other := value_at(results, f"{NAME}, random", "ratio", count)) is not None
    ]
    fewer = sum(ratio < other for ratio, other in pairs)
    return [
        Claim(
            "AL reaches the ratio of support vectors that RS reaches at the end with less than "
            "half of the examples (within 10 %).",
            "section 6, figure 8",
            judged(since is not None and since < rows[-1] / 2 if known else None),
            "after 2,000 of 7,770 examples",
            f"after {since:,.0f} of {rows[-1]:,.0f} examples; {al[-1]:.1f} at the end of AL's "
            f"curve, {rs[-1]:.1f} at the end of RS's"
            if known and since is not None
            else ABSENT,
        ),
        Claim(
            "Support vectors are more balanced in AL than in RS during learning.",
            "section 6, figure 8",
            judged(fewer == len(pairs) if pairs else None),
            "“the support vectors in AL are more balanced than RS during learning”",
            f"at {fewer} of {len(pairs)} points; ratio at most {max(al):.1f} in AL, {max(rs):.1f} "
            "in RS"
            if known and pairs
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
