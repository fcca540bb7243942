"""Figure 3: the normalised duality gap with random and with active selection."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from reproduce.experiment import Claim, Experiment, Results, judged
from reproduce.rows import cell
from reproduce.usunier2010.tracking import case_name, draw_gaps, quarter

TEACHERS = {case_name(1, 10): "random", case_name(1, 10, "active"): "active, pools of 50"}


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES

    draw_gaps(figure.subplots(), results, TEACHERS, lambda k: {"color": COLOURS[k], "ls": LINES[k]})


def claims(results: Results) -> list[Claim]:
    active = case_name(1, 10, "active")
    means = [mean for k in (1, 2, 3, 4) if (mean := quarter(results, active, k)) is not None]
    return [
        Claim(
            "With active selection the gap does not grow; it decreases regularly.",
            "section 6.1, figure 3",
            judged(all(b < a for a, b in pairwise(means)) if means else None),
            "decreases regularly",
            f"means of the four quarters: {', '.join(cell(one, '{:.3f}') for one in means)}"
            if means
            else "–",
        )
    ]


EXPERIMENT = Experiment(
    "usunier2010",
    "Figure 3",
    "The duality gap under two teachers",
    "Algorithm 1 with K = 10 on Adult, as in figure 2. The active teacher presents, of 50 unseen "
    "examples, the one nearest to the decision boundary.",
    shares="figure2",
    draw=draw,
    size=(6, 3.6),
    claims=claims,
)
