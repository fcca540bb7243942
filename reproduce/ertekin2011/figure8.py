"""Figure 8: training times of the four machines on all data sets."""

from __future__ import annotations

from typing import Any

from reproduce.ertekin2011.printed import COLUMNS, METHODS, printed
from reproduce.experiment import Claim, Experiment, Results, judged
from reproduce.rows import ABSENT, ratio

LARGE, SMALL = ("adult", "mnist-8"), ("banana", "reuters", "usps-0", "usps-0-noise")


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import bars

    names = [name for name in COLUMNS if name in results]
    axes = figure.subplots()
    ours = {m: [results.median(name, m, "seconds") for name in names] for m in METHODS}
    theirs = {m: [printed("seconds", m, name) for name in names] for m in METHODS}
    bars(axes, names, ours, **theirs)
    axes.set(yscale="log", ylabel="seconds")
    axes.legend(fontsize=7, ncols=5)


def claims(results: Results) -> list[Claim]:
    gains = {
        name: ratio(results.median(name, "FULL", "seconds"), results.median(name, "I", "seconds"))
        for name in COLUMNS
    }
    known = {name: gain for name, gain in gains.items() if gain is not None}
    holds = None
    if len(known) == len(COLUMNS):
        holds = min(known[n] for n in LARGE) > max(known[n] for n in SMALL)
    theirs = {n: printed("seconds", "FULL", n) / printed("seconds", "I", n) for n in COLUMNS}
    said = ", ".join(f"{name} {gain:.1f}" for name, gain in known.items())
    return [
        Claim(
            "The speed-up of training becomes more evident on larger data sets.",
            "section 8, figure 8",
            judged(holds),
            "FULL over I: " + ", ".join(f"{name} {gain:.1f}" for name, gain in theirs.items()),
            f"FULL over I: {said}" if said else ABSENT,
        )
    ]


EXPERIMENT = Experiment(
    "ertekin2011",
    "Figure 8",
    "Training times",
    "The runs are those of table 3; medians over the seeds, crosses are the paper's. Its seconds "
    "are those of another machine: compare ratios.",
    shares="table3",
    draw=draw,
    size=(9, 3.6),
    claims=claims,
)
