"""Figure 5: support vectors of the ten MNIST classifiers."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure01 import TEXT, by_digit, draw_bars, mean
from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.rows import ratio


def tables(results: Results) -> list[Table]:
    return by_digit(results, "{:,.0f}", "support_vectors")


def draw(results: Results, figure: Any) -> None:
    draw_bars(results, figure, "support vectors", "support_vectors")


def claims(results: Results) -> list[Claim]:
    exact = mean(results, "SVM solution", "support_vectors")
    one, two = (
        ratio(mean(results, name, "support_vectors"), exact) for name in ("LASVM×1", "LASVM×2")
    )
    known = one is not None and two is not None
    return [
        Claim(
            "One epoch gathers most support vectors of the solution, the second most of the rest.",
            "section 3.3, figure 5",
            judged(0.8 <= one < 1 and abs(two - 1) <= (1 - one) / 2 if known else None),
            "“gathers most of the support vectors”; the second “captures most of the missing”",
            f"{one:.3f} and {two:.3f} times as many as the solution" if known else "–",
            "We compare numbers; whether the same examples are support vectors is not stored.",
        )
    ]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 5",
    "Support vectors of the ten MNIST classifiers",
    TEXT,
    shares="figure01",
    tables=tables,
    draw=draw,
    size=(9, 3.6),
    claims=claims,
)
