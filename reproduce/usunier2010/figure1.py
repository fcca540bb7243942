"""Figure 1: the duality lemma with a single example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Values, judged

POINTS = 61
ROUNDING = 1e-9


def cases(quick: bool) -> dict[str, Case]:
    return {"free": {"C": 1.5, "seeds": 1}, "at bound": {"C": 0.7, "seeds": 1}}


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    """Evaluate both sides of lemma 1 for x = 1, y = 1, where w(α) = α."""
    import numpy as np

    C = case["C"]
    alpha = np.linspace(0, C, POINTS)
    g = 1 - alpha
    primal = alpha**2 / 2 + C * np.maximum(g, 0)
    dual = alpha - alpha**2 / 2
    best = min(1.0, C)
    step = np.clip(alpha + g, 0, C) - alpha  # eq. 3
    gain = step * (g - step / 2)  # Δ of lemma 1
    bound = C * (np.sqrt(2 * gain) + gain / C)
    return {
        "alpha": alpha,
        "gap": primal - dual,
        "bound": bound,
        "primal": primal - (best**2 / 2 + C * max(0.0, 1 - best)),
    }


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES

    titles = {
        "free": "free support vector, C = 1.5",
        "at bound": "support vector at bound, C = 0.7",
    }
    shown = {"gap": "gap", "bound": "bound of lemma 1", "primal": "primal suboptimality"}
    for axes, (case, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for k, (name, label) in enumerate(shown.items()):
            at, height = results.curve(case, "alpha"), results.curve(case, name)
            axes.plot(at, height, LINES[k], color=COLOURS[k], label=label)
        axes.set(title=title, xlabel="α")
    figure.axes[0].legend()


def claims(results: Results) -> list[Claim]:
    names = ("gap", "bound", "primal")
    points = [
        point
        for case in results.cases
        for point in zip(*(results.curve(case, name) for name in names), strict=True)
    ]
    excess = [gap - bound for gap, bound, _ in points]
    optimal = [bound - gap for gap, bound, primal in points if primal < ROUNDING]
    below = all(primal <= gap + ROUNDING for gap, _, primal in points)
    return [
        Claim(
            "The gap, and with it the primal suboptimality, never exceeds the bound of lemma 1.",
            "section 3, lemma 1, figure 1",
            judged(max(excess) < ROUNDING and below if points else None),
            "proved",
            f"largest gap − bound over the curves: {max(excess):.1g}" if points else "–",
        ),
        Claim(
            "The bound is exact where the coefficient has reached its optimum.",
            "section 3, figure 1",
            judged(len(optimal) >= 2 and max(optimal) < ROUNDING if points else None),
            "exact at α = C",
            f"bound − gap at the optimum: {max(optimal):.1g} (free and at bound)"
            if optimal
            else "–",
        ),
    ]


EXPERIMENT = Experiment(
    "usunier2010",
    "Figure 1",
    "The duality lemma with a single example",
    "One example, x = 1 and y = 1, without a kernel: the duality gap, the bound of lemma 1 and the "
    "primal suboptimality as functions of α, evaluated from the formulas.",
    cases=cases,
    run=run,
    draw=draw,
    size=(9, 3.4),
    claims=claims,
)
