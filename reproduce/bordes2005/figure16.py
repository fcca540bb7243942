"""Figure 16: active learning with LASVM steps and with retraining, on Reuters and USPS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.bordes2005.lasvm import SETS, data_set
from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, minus, ratio

PAPER_SECONDS = {"retrain, all": 917, "LASVM, all": 99, "LASVM, 50": 9.6}
WAYS = {
    "LASVM, 50": "LASVM ACTIVE 50",
    "LASVM, all": "LASVM ACTIVE ALL",
    "retrain, 50": "RETRAIN ACTIVE 50",
    "retrain, all": "RETRAIN ACTIVE ALL",
    "LASVM, random": "RANDOM",
}
FIRST, LABELS, POINTS = 10, 500, 20  # labels given at random, and in all


def cases(quick: bool) -> dict[str, Case]:
    return {
        f"{name}: {way}": {**SETS[name], "set": name, "way": way, "labels": 40 if quick else LABELS}
        for name in ("Reuters", "USPS")
        for way in WAYS
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from time import process_time

    import numpy as np
    import sklearn.svm  # noqa: F401  (so that no learner is charged for the import)

    import marginwise  # noqa: F401
    from reproduce.measures import error, redrawn, steps

    split = data_set(case["set"], data, seed, quick)
    split = redrawn(split, seed) if case["set"] == "Reuters" else split
    rng = np.random.default_rng(seed)
    learner, asked = case["way"].split(", ")
    known = first_rows(split.y, rng)
    pool = np.setdiff1d(np.arange(len(split.y)), known)
    marks, seconds = set(steps(case["labels"], POINTS, start=FIRST)), 0.0
    found: dict[str, list[float]] = {"labels": [], "error": [], "cpu": []}
    model, new = None, known
    while True:
        start = process_time()
        model = taught(model, learner, split, known, new, case)
        seconds += process_time() - start
        if len(known) in marks:
            found["labels"].append(len(known))
            found["error"].append(error(model, split.X_test, split.y_test))
            found["cpu"].append(seconds)
        if len(known) >= case["labels"]:
            return found
        start = process_time()
        new = np.array([question(model, split.X, pool, asked, rng)])
        seconds += process_time() - start
        known, pool = np.append(known, new), pool[pool != new[0]]


def first_rows(y: Any, rng: Any) -> Any:
    """Draw the first rows, some of either class."""
    import numpy as np

    order = rng.permutation(len(y))
    some = [order[y[order] == label][: FIRST // 2] for label in np.unique(y)]
    return np.concatenate(some)


def taught(model: Any, learner: str, split: Any, known: Any, new: Any, case: Case) -> Any:
    """Learn the new rows by LASVM steps, or all known rows from the start."""
    import numpy as np

    from marginwise import OnlineSVC

    params = {"C": case["C"], "gamma": case["gamma"]}
    if learner == "retrain":
        from sklearn.svm import SVC

        return SVC(**params).fit(split.X[known], split.y[known])
    model = model or OnlineSVC(**params, reprocess_when="each")
    return model.partial_fit(split.X[new], split.y[new], classes=np.unique(split.y))


def question(model: Any, X: Any, pool: Any, asked: str, rng: Any) -> int:
    """Return the row nearest to the boundary, of 50 or of all; or a random one."""
    import numpy as np

    if asked == "random":
        return int(rng.choice(pool))
    rows = pool if asked == "all" else rng.choice(pool, min(50, len(pool)), replace=False)
    return int(rows[np.argmin(np.abs(model.decision_function(X[rows])))])


def last(results: Results, name: str, way: str, what: str) -> float | None:
    """Return the end of the mean curve."""
    return next(iter(results.curve(f"{name}: {way}", what)[-1:]), None)


def tables(results: Results) -> list[Table]:
    rows = []
    for name in ("Reuters", "USPS"):
        for way, label in WAYS.items():
            theirs = PAPER_SECONDS.get(way) if name == "Reuters" else None
            whole, ours = (last(results, name, w, "cpu") for w in ("retrain, all", way))
            rows.append(
                [
                    f"{name}, {label}",
                    cell(last(results, name, way, "error")),
                    cell(theirs, "{:g}"),
                    cell(ours),
                    cell(ratio(917, theirs), "{:.0f} ×"),
                    cell(ratio(whole, ours), "{:.1f} ×"),
                ]
            )
    header = ["500 labels", "error, %", "seconds: paper", "CPU here", "speed-up: paper", "here"]
    return [Table(header, rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    for axes, name in zip(figure.subplots(1, 2), ("USPS", "Reuters"), strict=True):
        named = {f"{name}: {way}": label for way, label in WAYS.items()}
        curves(axes, results, named, "labels", "error")
        axes.set(title=name, xlabel="labels", ylabel="test error, %", yscale="log", xscale="log")
    if results:
        figure.axes[0].legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    sets = ("Reuters", "USPS")
    gaps = [
        minus(last(results, n, "LASVM, 50", "error"), last(results, n, "retrain, all", "error"))
        for n in sets
    ]
    ahead = [
        minus(last(results, n, "LASVM, random", "error"), last(results, n, "LASVM, 50", "error"))
        for n in sets
    ]
    speed = ratio(*(last(results, sets[0], w, "cpu") for w in ("retrain, all", "LASVM, 50")))
    known = None not in (*gaps, *ahead, speed)
    return [
        Claim(
            "LASVM steps on 50 sampled rows lose no accuracy against retraining on all rows.",
            "section 4.5, figure 16",
            judged(max(gaps) <= 0.3 if known else None),
            "curves on top of each other at 500 labels",
            f"{gaps[0]:+.2f} points (Reuters), {gaps[1]:+.2f} (USPS)" if known else "–",
        ),
        Claim(
            "Active learning is superior to random selection.",
            "section 4.5, figure 16",
            judged(min(ahead) > 0 if known else None),
            "all active curves below the random one",
            f"{ahead[0]:.2f} points better (Reuters), {ahead[1]:.2f} (USPS)" if known else "–",
        ),
        Claim(
            "LASVM steps on 50 sampled rows are far faster than retraining on all rows.",
            "section 4.5",
            judged(speed >= 10 if known else None),
            "96 times (917 s against 9.6 s)",
            f"{speed:.0f} times" if known else "–",
        ),
    ]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 16",
    "Active learning on Reuters and USPS",
    "500 labels, ten of them at random, five of each class. Training and test rows are pooled and "
    "divided by seed. Errors are those of the online model, without the finishing step. Retraining "
    "fits scikit-learn's SVC from the start; the paper's solver continues from the last solution. "
    "Parameters are those of figure 8.",
    cases=cases,
    run=run,
    seeds=3,
    tables=tables,
    draw=draw,
    size=(9, 3.8),
    claims=claims,
)
