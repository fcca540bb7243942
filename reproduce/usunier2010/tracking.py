"""What the figures share: the setups, learning with two kinds of teachers, means over a pass."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from reproduce.experiment import Results

POOL_SIZE = 50  # unseen examples among which the active teacher chooses


def case_name(algorithm: int, K: int, teacher: str = "random") -> str:
    """Return the name of a setup."""
    return f"algorithm {algorithm}, K={K}{'' if teacher == 'random' else f', {teacher}'}"


def new_model(setup: dict[str, Any], seed: int, **parameters: Any) -> Any:
    """Return a TrackingSVC for a setup."""
    from marginwise import TrackingSVC

    return TrackingSVC(
        steps=setup["K"], process=setup["algorithm"] == 2, random_state=seed, **parameters
    )


def active_learner(model: Any, X: Any, seed: int) -> Any:
    """Return a learner whose teacher picks the example nearest to the boundary in a pool of 50."""
    from marginwise.active import ActiveLearner

    return ActiveLearner(
        model, X, strategy="active", pool_size=POOL_SIZE, stop=None, random_state=seed
    )


def quarter(results: Results, case: str, number: int) -> float | None:
    """Return the mean gap over a quarter of the pass, counted from 1."""
    found = results.values(case, "quarters")
    return statistics.fmean(means[number - 1] for means in found) if found else None


def unevenness(results: Results, case: str) -> float | None:
    """Return the largest mean of a quarter of the pass over the smallest."""
    means = [quarter(results, case, number) for number in (1, 2, 3, 4)]
    known = [mean for mean in means if mean is not None]
    return max(known) / min(known) if known else None


def fluctuation(results: Results, case: str) -> float | None:
    """Return the standard deviation of the gap along the pass, without its first tenth."""
    curves = results.values(case, "curve")
    found = [statistics.stdev(curve[len(curve) // 10 :]) for curve in curves if len(curve) > 2]
    return statistics.fmean(found) if found else None


def power_law(points: list[tuple[int, float]]) -> tuple[float, float] | None:
    """Return c and p of K = c / gap^p, by least squares of the logarithms."""
    if len(points) < 2:
        return None
    import numpy as np

    K, gaps = np.log(np.array(points, dtype=np.float64)).T
    slope, constant = np.polyfit(gaps, K, 1)
    return float(np.exp(constant)), float(-slope)


def curve_of(results: Results, case: str) -> tuple[list[float], list[float]]:
    """Return the examples seen and the mean gap along a pass."""
    curve = results.curve(case, "curve")
    rows = results.mean(case, "rows") or 0.0
    return [(k + 0.5) * rows / len(curve) for k in range(len(curve))], curve


def draw_gaps(
    axes: Any, results: Results, cases: dict[str, str], style: Callable[[int], dict[str, Any]]
) -> None:
    """Draw the gap along the pass for some cases; `cases` maps names to labels."""
    for k, (case, label) in enumerate(cases.items()):
        if case in results:
            axes.plot(*curve_of(results, case), label=label, linewidth=1.3, **style(k))
    axes.set(xlabel="examples seen, t", ylabel="duality gap / (C t)")
    axes.set(xlim=(0, None), ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if axes.has_data():
        axes.legend(fontsize=8)
