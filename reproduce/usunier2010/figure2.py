"""Figure 2: the normalised duality gap during a pass over Adult, for both algorithms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, mean_cell, ratio
from reproduce.usunier2010.tracking import (
    active_learner,
    case_name,
    draw_gaps,
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
    fast = ratio(results.mean(case_name(2, 10), "gap"), results.mean(case_name(1, 20), "gap"))
    place = "section 6.1, figure 2"
    return [
        Claim(
            "The normalised gap keeps a constant value on average during the whole pass.",
            place,
            judged(max(levels) <= FLAT if levels else None),
            "level curves",
            f"means of quarters 2 to 4 differ by a factor of at most {max(levels):.2f}"
            if levels
            else "–",
        ),
        Claim(
            "The mean gap stays below the bound of theorems 2 and 3.",
            "section 4, theorems 2 and 3",
            judged(max(over) <= 1 if over else None),
            "proved",
            f"gap / bound is at most {max(over):.2f}" if over else "–",
        ),
        Claim(
            "Algorithm 2 with K = 10 performs nearly as well as Algorithm 1 with K = 20.",
            place,
            judged(None if fast is None else fast <= LEVEL),
            "nearly the same gap",
            f"{cell(fast)} times the gap of Algorithm 1",
        ),
    ]


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
