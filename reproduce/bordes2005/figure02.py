"""Figure 2: training times of the ten MNIST classifiers."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.figure01 import METHODS, TEXT, by_digit, draw_bars, mean
from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.rows import ratio


def tables(results: Results) -> list[Table]:
    return by_digit(results, "{:.1f}", "fit", "cpu")


def draw(results: Results, figure: Any) -> None:
    draw_bars(results, figure, "CPU seconds", "fit", "cpu")


def claims(results: Results) -> list[Claim]:
    known = [mean(results, name, "fit", "cpu") for name in METHODS]
    solution, one, two, single, ten = known
    share, twice = ratio(solution, one), ratio(solution, two)
    complete = None not in known
    return [
        Claim(
            "LASVM×1 trains at least three times faster than the solver of the SVM problem.",
            "section 3.3, figure 2",
            judged(None if share is None else share >= 3),
            "about 3 times faster than LIBSVM",
            "–" if share is None else f"{share:.1f} times faster than our own converging solver",
            "Our converging solver takes the place of LIBSVM; it shares the code of LASVM.",
        ),
        Claim(
            "LASVM×2 usually trains faster than the solver of the SVM problem.",
            "section 3.3, figure 2",
            judged(None if twice is None else twice > 1),
            "“usually runs faster than LIBSVM”; 1.4 times over all digits (figure 4)",
            "–" if twice is None else f"{twice:.1f} times faster than our own converging solver",
            "This is a weak test, because our converging solver starts with a pass of LASVM.",
        ),
        Claim(
            "One epoch of the averaged perceptron is fast, but ten take longer than LASVM×1.",
            "section 3.3, figure 2",
            judged(single < one < ten if complete else None),
            "“very good” computing times after one epoch, “no longer competitive” after ten",
            f"mean over digits {single:.1f} s and {ten:.1f} s, LASVM×1 {one:.1f} s"
            if complete
            else "–",
        ),
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
