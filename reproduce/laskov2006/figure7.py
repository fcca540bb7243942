"""Figure 7: how many times faster than the naive implementation, RBF kernel."""

from __future__ import annotations

from reproduce.experiment import Experiment
from reproduce.laskov2006 import figure6, scaling

KERNEL = "rbf"

EXPERIMENT = Experiment(
    "laskov2006",
    "Figure 7",
    "Times faster than the naive implementation, RBF kernel",
    scaling.TEXT + "The CPU seconds of figure 5 as ratios, as in figure 6.",
    shares="figure4",
    tables=lambda results: figure6.tables_of(results, KERNEL),
    draw=lambda results, figure: figure6.draw_speedups(results, figure, KERNEL),
    size=(10, 3.6),
    claims=lambda results: figure6.claims_of(results, KERNEL, "7"),
)
