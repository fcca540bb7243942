"""Figure 3: the normalised duality gap with random and with active selection."""

from __future__ import annotations

from typing import Any

from reproduce.experiment import Claim, Experiment, Results, judged
from reproduce.rows import cell, ratio
from reproduce.usunier2010.tracking import case_name, draw_gaps, quarter

TEACHERS = {case_name(1, 10): "random", case_name(1, 10, "active"): "active, pools of 50"}


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES

    draw_gaps(figure.subplots(), results, TEACHERS, lambda k: {"color": COLOURS[k], "ls": LINES[k]})


def claims(results: Results) -> list[Claim]:
    active = case_name(1, 10, "active")
    fall = ratio(quarter(results, active, 4), quarter(results, active, 2))
    return [
        Claim(
            "With active selection the gap does not grow; it decreases regularly.",
            "section 6.1, figure 3",
            judged(None if fall is None else fall <= 1),
            "a falling curve",
            f"quarter 4 has {cell(fall)} times the gap of quarter 2",
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
