"""Figure 2: training times of the ten MNIST classifiers."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure01 import TEXT, by_digit, draw_bars, mean
from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.rows import ratio


def tables(results: Results) -> list[Table]:
    return by_digit(results, "{:.1f}", "fit", "cpu")


def draw(results: Results, figure: Any) -> None:
    draw_bars(results, figure, "CPU seconds", "fit", "cpu")


def claims(results: Results) -> list[Claim]:
    share = ratio(*(mean(results, name, "fit", "cpu") for name in ("SVM solution", "LASVM×1")))
    return [
        Claim(
            "LASVM×1 runs about three times faster than the solver of the SVM problem.",
            "section 3.3, figure 2",
            judged(None if share is None else share >= 2),
            "about 3 times faster than LIBSVM",
            "–" if share is None else f"{share:.1f} times faster than our own converging solver",
            "The converging solver starts from LASVM and shares its code, unlike LIBSVM.",
        )
    ]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 2",
    "Training times of the ten MNIST classifiers",
    TEXT,
    shares="figure01",
    tables=tables,
    draw=draw,
    size=(9, 3.6),
    claims=claims,
)
