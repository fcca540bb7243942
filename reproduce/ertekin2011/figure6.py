"""Figure 6: support vectors of the four machines as more examples are learned."""

from __future__ import annotations

from typing import Any

from reproduce.ertekin2011 import figure4
from reproduce.experiment import Experiment, Results


def draw(results: Results, figure: Any) -> None:
    figure4.draw(results, figure, "support_vectors", "support vectors")


EXPERIMENT = Experiment(
    "ertekin2011",
    "Figure 6",
    "Support vectors along the training",
    "The runs are those of figure 4. The claims are judged with table 3.",
    shares="figure4",
    draw=draw,
    size=(10, 5.4),
)
