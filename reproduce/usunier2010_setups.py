"""What usunier2010.py runs, and what its figures must show."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

import common  # noqa: F401  (makes the modules of the benchmarks known)
import numpy as np
from works import Check, Results, Work

FLAT = 1.25  # of the means over the last three quarters: the largest over the smallest
LEVEL = 1.25


class Setup(NamedTuple):
    """Algorithm 1 or 2, K steps an example, and who chooses the examples."""

    algorithm: int
    K: int
    teacher: str = "random"

    @property
    def name(self) -> str:
        chosen = "" if self.teacher == "random" else f", {self.teacher}"
        return f"algorithm {self.algorithm}, K={self.K}{chosen}"


FIGURE2 = [Setup(algorithm, K) for K in (5, 10, 20, 50) for algorithm in (1, 2)]
FIGURE3 = [Setup(1, 10), Setup(1, 10, "active")]
FIGURE4 = [Setup(1, K) for K in (5, 10, 15, 20, 30, 50, 75, 100)]
SETUPS = {setup.name: setup for setup in [*FIGURE2, *FIGURE3, *FIGURE4]}

Figure = Callable[[Results], float | None]


# -- figures ---------------------------------------------------------------------------------------


def quarter(results: Results, setup: Setup, number: int) -> float | None:
    """Return the mean gap over a quarter of the pass, counted from 1."""
    found = results.take(setup.name, "quarters")
    return statistics.fmean(quarters[number - 1] for quarters in found) if found else None


def unevenness(setup: Setup) -> Figure:
    """Compare the last three quarters: the largest mean over the smallest."""

    def measure(results: Results) -> float | None:
        means = [quarter(results, setup, number) for number in (2, 3, 4)]
        known = [mean for mean in means if mean is not None]
        return max(known) / min(known) if known else None

    return measure


def ratio(one: Figure, other: Figure) -> Figure:
    def measure(results: Results) -> float | None:
        ours, theirs = one(results), other(results)
        return ours / theirs if ours and theirs else None

    return measure


def gap(setup: Setup) -> Figure:
    return lambda results: results.mean(setup.name, "gap")


def bound(setup: Setup) -> Figure:
    return lambda results: results.mean(setup.name, "bound")


def fit(results: Results) -> tuple[float, float] | None:
    """Return c and p of K = c / gap^p, by least squares of the logarithms."""
    points = [(setup.K, mean) for setup in FIGURE4 if (mean := gap(setup)(results))]
    if len(points) < 2:
        return None
    K, gaps = np.log(np.array(points)).T
    slope, constant = np.polyfit(gaps, K, 1)
    return float(np.exp(constant)), float(-slope)


def exponent(results: Results) -> float | None:
    found = fit(results)
    return None if found is None else found[1]


# -- what they must show ---------------------------------------------------------------------------


def checks() -> list[Check]:
    slow, fast = Setup(1, 20), Setup(2, 10)
    _, active = FIGURE3
    return [
        *(
            Check(
                f"{one.name}: quarters 2 to 4, max over min", unevenness(one), "≤", FLAT, "{:.2f}"
            )
            for one in FIGURE2
        ),
        *(
            Check(f"{one.name}: gap over bound", ratio(gap(one), bound(one)), "≤", 1.0, "{:.3f}")
            for one in SETUPS.values()
        ),
        Check(
            f"gap of {fast.name} over that of {slow.name}",
            ratio(gap(fast), gap(slow)),
            "≤",
            LEVEL,
            "{:.2f}",
        ),
        Check(
            f"{active.name}: quarter 4 over quarter 2",
            ratio(
                lambda results: quarter(results, active, 4),
                lambda results: quarter(results, active, 2),
            ),
            "≤",
            1.0,
            "{:.2f}",
        ),
        Check("p of K ~ 1 / gap^p (figure: 1, corollary 4: 2)", exponent, "≤", 1.5, "{:.2f}"),
    ]


WORK = Work("adult", "a9a, 32,561 rows, C=1, γ=0.005", [], checks())
