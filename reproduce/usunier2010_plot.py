"""Figures 2 to 4 of [usunier2010] in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from usunier2010_setups import FIGURE2, FIGURE3, FIGURE4, Setup, fit, gap
from works import Results

from marginwise.active.plot import COLOURS, STROKES

SHOWN = (10, 20)  # K of figure 2, as in the paper
YLABEL = "duality gap / (C t)"


def draw(results: Results, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    setups = [setup for setup in FIGURE2 if setup.K in SHOWN]
    for setup in setups:
        colour, stroke = COLOURS[2 - setup.algorithm], STROKES[SHOWN.index(setup.K)]
        draw_curve(left, results, setup, setup.name, color=colour, linestyle=stroke)
    finish(left, "Fig. 2: the gap stays level")
    for k, setup in enumerate(FIGURE3):
        draw_curve(middle, results, setup, setup.teacher, color=COLOURS[k], linestyle=STROKES[k])
    finish(middle, f"Fig. 3: {FIGURE3[0].name}, two teachers")
    draw_steps(right, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def draw_curve(ax: Any, results: Results, setup: Setup, label: str, **style: Any) -> None:
    """Draw the mean over the seeds."""
    curve = np.mean(results.take(setup.name, "curve"), axis=0)
    rows = results.take(setup.name, "rows")[0]
    seen = (np.arange(len(curve)) + 0.5) * rows / len(curve)
    ax.plot(seen, curve, linewidth=1.5, label=label, **style)


def finish(ax: Any, title: str) -> None:
    ax.set(title=title, xlabel="examples seen, t", ylabel=YLABEL, xlim=(0, None), ylim=(0, None))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)


def draw_steps(ax: Any, results: Results) -> None:
    """Draw K against the mean gap, and the two laws through the middle of the points."""
    gaps = np.array([gap(setup)(results) for setup in FIGURE4], dtype=np.float64)
    K = np.array([setup.K for setup in FIGURE4], dtype=np.float64)
    found = fit(results)
    ax.plot(gaps, K, "o", color=COLOURS[0], label="algorithm 1")
    span = np.geomspace(gaps.min(), gaps.max(), 50)
    for power, stroke in ((1, "solid"), (2, "dashed")):
        law = np.exp(np.mean(np.log(K) + power * np.log(gaps))) / span**power
        name = "K ~ 1 / gap (p = 1)" if power == 1 else "K ~ 1 / gap² (corollary 4)"
        ax.plot(span, law, color="0.35", linestyle=stroke, linewidth=1, label=name)
    said = "" if found is None else f", p = {found[1]:.2f} in K ~ gap⁻ᵖ"
    ax.set(title=f"Fig. 4: steps for a gap{said}", xlabel=f"mean of {YLABEL}", ylabel="K")
    ax.set(xscale="log", yscale="log")
    ax.grid(alpha=0.25, which="both")
    ax.legend(frameon=False)
