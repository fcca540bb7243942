"""Figure 4: support vectors and g-means in three folds, with the early stopping points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.ertekin2007.figure2 import last, tables
from reproduce.experiment import Case, Claim, Experiment, Results, Values, judged
from reproduce.rows import ABSENT

NAME = "money-fx"
FOLDS = 3
LABELS = 2500


def cases(quick: bool) -> dict[str, Case]:
    from reproduce.ertekin2007 import sets

    files = (sets.SETS[NAME].file,)
    return {
        f"fold {k + 1}": {"labels": 100 if quick else LABELS, "files": files} for k in range(FOLDS)
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from sklearn.model_selection import StratifiedKFold

    from benchmarks.datasets import Split
    from reproduce.ertekin2007 import sets
    from reproduce.ertekin2007.curves import active_curve

    one = sets.SETS[NAME]
    whole = one.load(data, seed, quick=quick)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(whole.y, whole.y)
    train, held = list(folds)[int(case["name"].split()[1]) - 1]
    split = Split(whole.X[train], whole.y[train], whole.X[held], whole.y[held])
    return active_curve(split, one, seed, "active", case["labels"])


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, curves

    found = {case: case for case in results.cases}
    what = {"support_vectors": "support vectors", "g_mean": "g-means, %"}
    for axes, (path, label) in zip(figure.subplots(1, 2), what.items(), strict=True):
        curves(axes, results, found, "learned", path)
        for k, case in enumerate(found):
            stopped = results.mean(case, "stopped")
            if stopped is not None:
                axes.axvline(stopped, color=COLOURS[k], linewidth=1)
        axes.set(xlabel="labels", ylabel=label)
    figure.axes[0].legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    stops = [s for case in results.cases if (s := results.mean(case, "stopped")) is not None]
    change = []
    for case in results.cases:
        stop, end = results.mean(case, "stopped"), last(results, case, "g_mean")
        if stop is None or end is None:
            continue
        before = [
            g
            for n, g in zip(
                results.curve(case, "learned"), results.curve(case, "g_mean"), strict=True
            )
            if n >= stop
        ]
        change.append(max(abs(g - end) for g in before))
    complete = len(stops) == FOLDS
    return [
        Claim(
            "The early stopping points of the folds are about equal (within 25 %), and g-means "
            "hardly changes after them (by less than 1 point).",
            "section 3.4, figure 4",
            judged(max(stops) < 1.25 * min(stops) and max(change) < 1 if complete else None),
            "“approximately equal in all three folds” (CiteSeer, COMM)",
            f"stops after {', '.join(f'{s:,.0f}' for s in stops)} labels; g-means then changes by "
            f"at most {max(change):.2f} points"
            if complete
            else ABSENT,
        )
    ]


EXPERIMENT = Experiment(
    "ertekin2007",
    "Figure 4",
    "Early stopping in three folds",
    "Cross-validation on training rows: two thirds are learned actively, the last third is scored. "
    "The paper uses the category COMM of CiteSeer, which is not available; this is money-fx of "
    f"Reuters, up to {LABELS:,} labels. Vertical lines are early stopping points. One seed.",
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(9, 3.4),
    claims=claims,
)
