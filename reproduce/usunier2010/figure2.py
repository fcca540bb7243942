"""Figure 2: the normalised duality gap during a pass over Adult, for both algorithms."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, mean_cell, ratio
from reproduce.usunier2010.tracking import (
    active_learner,
    case_name,
    draw_gaps,
    fluctuation,
    new_model,
    quarter,
    unevenness,
)

STEPS = (5, 10, 20, 50)  # K of figure 2
MORE_STEPS = (15, 30, 75, 100)  # and of figure 4
C, GAMMA = 1.0, 0.005
QUICK_ROWS, POINTS = 600, 100
FLAT, LEVEL = 1.25, 1.25  # allowed ratios of mean gaps


def cases(quick: bool) -> dict[str, Case]:
    pairs = [(1, K) for K in STEPS] + [(2, K) for K in STEPS] + [(1, K) for K in MORE_STEPS]
    pairs = [(1, 5), (2, 5)] if quick else pairs
    found: dict[str, Case] = {
        case_name(algorithm, K): {"algorithm": algorithm, "K": K, "teacher": "random"}
        for algorithm, K in pairs
    }
    active = {"algorithm": 1, "K": 10, "teacher": "active"}
    return {**found, case_name(1, 10, "active"): active}


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    """Go once over the rows in the order of the teacher; note the gap after each of them."""
    import numpy as np

    from reproduce.measures import error, load, timed

    split = load("a9a", data, seed=seed, quick=quick, form="csr64")
    X, y = (split.X[:QUICK_ROWS], split.y[:QUICK_ROWS]) if quick else (split.X, split.y)
    model = new_model(case, seed, C=C, gamma=GAMMA, record=True)
    if case["teacher"] == "random":
        model, seconds = timed(lambda: model.fit(X, y))
    else:
        learner = active_learner(model, X, seed)
        model, seconds = timed(lambda: learner.run(lambda row: y[row]).estimator_)
    gaps = np.ravel(model.history_["gap"]) / (C * np.arange(1, len(y) + 1))
    return {
        "gap": gaps.mean(),
        "quarters": [part.mean() for part in np.array_split(gaps, 4)],
        "curve": [part.mean() for part in np.array_split(gaps, min(POINTS, len(gaps)))],
        "rows": len(gaps),
        "bound": float(model.bound_),
        "error": error(model, split.X_test, split.y_test),
        "support_vectors": len(model.support_),
        "kernel_evaluations": int(model.stats_["kernel_evaluations"]),
        "fit": seconds,
    }


def tables(results: Results) -> list[Table]:
    rows = [
        [
            case,
            mean_cell(results, case, "gap", form="{:.4f}"),
            mean_cell(results, case, "bound", form="{:.3f}"),
            *(cell(quarter(results, case, number), "{:.4f}") for number in (1, 2, 3, 4)),
            mean_cell(results, case, "error"),
            str(results.seeds(case)),
        ]
        for case in results.cases
    ]
    header = ["", "mean gap", "bound", "quarter 1", "2", "3", "4", "error, %", "seeds"]
    return [Table(header, rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES

    for axes, shown in zip(figure.subplots(1, 2), ((5, 10), (20, 50)), strict=True):
        names = {case_name(a, K): f"Algorithm {a}, K = {K}" for K in shown for a in (1, 2)}
        draw_gaps(axes, results, names, lambda k: {"color": COLOURS[k % 2], "ls": LINES[k // 2]})


def claims(results: Results) -> list[Claim]:
    levels = [u for K in STEPS for a in (1, 2) if (u := unevenness(results, case_name(a, K)))]
    over = [
        r
        for case in results.cases
        if (r := ratio(results.mean(case, "gap"), results.mean(case, "bound")))
    ]
    fast = gap_ratio(results, case_name(2, 10), case_name(1, 20))
    better = [r for K in STEPS if (r := gap_ratio(results, case_name(2, K), case_name(1, K)))]
    place = "section 6.1, figure 2"
    return [
        Claim(
            "The normalised gap keeps a constant value on average during the whole pass.",
            place,
            judged(max(levels) <= FLAT if levels else None),
            "level curves",
            "the means of the four quarters of a pass differ by a factor of at most "
            f"{max(levels):.2f}"
            if levels
            else "–",
        ),
        influence(results),
        Claim(
            "The mean gap stays below the bound of theorems 2 and 3.",
            "section 4, theorems 2 and 3",
            judged(max(over) <= 1 if over else None),
            "proved for the expected gap",
            f"gap / bound is at most {max(over):.2f}" if over else "–",
        ),
        Claim(
            "Algorithm 2 with K = 10 performs nearly as well as Algorithm 1 with K = 20.",
            place,
            judged(None if fast is None else fast <= LEVEL),
            "nearly the same gap",
            f"better: {cell(fast)} times the gap of Algorithm 1"
            if fast and fast < 1
            else f"{cell(fast)} times the gap of Algorithm 1",
        ),
        Claim(
            "With the same K, Algorithm 2 performs significantly better than Algorithm 1.",
            "section 4.3",
            judged(max(better) < 0.8 if len(better) == len(STEPS) else None),
            "“significantly better”",
            f"{min(better):.2f} to {max(better):.2f} times the gap" if better else "–",
        ),
    ]


def gap_ratio(results: Results, one: str, other: str) -> float | None:
    """Return the mean gap of a setup over that of another one."""
    both = results.paired(one, other)
    return ratio(both.mean(one, "gap"), both.mean(other, "gap"))


def influence(results: Results) -> Claim:
    """Return the claim about K: its gaps and their fluctuations."""
    names = {a: [case_name(a, K) for K in STEPS] for a in (1, 2)}
    gaps = {a: [results.mean(case, "gap") or 0.0 for case in names[a]] for a in names}
    waves = {a: [fluctuation(results, case) or 0.0 for case in names[a]] for a in names}
    known = all(value > 0 for a in names for value in (*gaps[a], *waves[a]))
    falls = [b < a for values in (*gaps.values(), *waves.values()) for a, b in pairwise(values)]
    return Claim(
        "A larger K decreases the mean of the gap and its fluctuations.",
        "section 6.1, figure 2",
        judged(all(falls) if known else None),
        "both decrease",
        f"K = {STEPS[0]} to {STEPS[-1]}: "
        + "; ".join(
            f"Algorithm {a} mean {gaps[a][0]:.4f} to {gaps[a][-1]:.4f}, standard deviation along "
            f"the pass {waves[a][0]:.4f} to {waves[a][-1]:.4f}"
            for a in names
        )
        if known
        else "–",
    )


EXPERIMENT = Experiment(
    "usunier2010",
    "Figure 2",
    "The duality gap during a pass over Adult",
    "Adult (a9a, 32,561 rows), C = 1, γ = 0.005: the duality gap after each example, divided by C "
    "and by the number of examples seen, for Algorithms 1 and 2 and several K. The order of the "
    "rows is shuffled by seed. The paper averages ten runs; the last column of the table gives the "
    "number of ours.",
    files=("a9a.npz",),
    cases=cases,
    run=run,
    seeds=10,
    tables=tables,
    draw=draw,
    size=(10, 3.6),
    claims=claims,
)
