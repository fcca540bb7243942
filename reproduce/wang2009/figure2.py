"""Figure 2: support vectors of the hinge and the ramp loss on Gauss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, mean_cell, ratio
from reproduce.wang2009.learners import ASVM, IDSVM, RAMP, SLACK
from reproduce.wang2009.sets import SETS

ROWS, SHOWN, GRID = 1000, 150, 40
SPAN = 3.5  # of the standardized attributes that are drawn


def cases(quick: bool) -> dict[str, Case]:
    return {learner: {"learner": learner} for learner in (IDSVM, RAMP, ASVM)}


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    """Learn, and keep what the picture needs: some support vectors and f on a grid."""
    import numpy as np

    from reproduce.wang2009.learners import LEARN

    gauss = SETS["gauss"]
    split = gauss.load(data, seed, quick=quick)
    split.X, split.y = split.X[:ROWS], split.y[:ROWS]
    model, _ = LEARN[case["learner"]](gauss, split)
    support = np.asarray(model.support_)
    margins = (2 * split.y[support] - 1) * model.decision_function(split.X[support])
    axis = np.linspace(-SPAN, SPAN, GRID)
    f = model.decision_function(np.array([[x, y] for y in axis for x in axis]))
    return {
        "support_vectors": len(support),
        "inside": float(np.mean(np.abs(margins) <= 1 + SLACK)),
        "points": np.round(split.X[support[:SHOWN]], 3),
        "labels": split.y[support[:SHOWN]],
        "grid": np.round(np.reshape(f, (GRID, GRID)), 2),
    }


def tables(results: Results) -> list[Table]:
    rows = [
        [
            case,
            mean_cell(results, case, "support_vectors", form="{:,.0f}"),
            f"{100 * (results.mean(case, 'inside') or 0):.1f}",
        ]
        for case in results.cases
    ]
    return [Table(["", "support vectors", "of which |f| ≤ 1, %"], rows)]


def draw(results: Results, figure: Any) -> None:
    import numpy as np

    from reproduce.drawing import COLOURS, MARKERS

    axis = np.linspace(-SPAN, SPAN, GRID)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, case in zip(panels, (IDSVM, RAMP, ASVM), strict=True):
        if case not in results:
            continue
        first = results.runs[case][0]
        f = np.array(first["grid"])
        axes.contour(axis, axis, f, [-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"])
        points, labels = np.array(first["points"]), np.array(first["labels"])
        for label in (0, 1):
            some = points[labels == label]
            axes.plot(some[:, 0], some[:, 1], MARKERS[label], color=COLOURS[label], ms=3)
        axes.set(title=f"{case}: {first['support_vectors']:,} support vectors")
        axes.set(xlim=(-SPAN, SPAN), ylim=(-SPAN, SPAN))


def claims(results: Results) -> list[Claim]:
    share = {case: results.mean(case, "inside") for case in (IDSVM, RAMP, ASVM)}
    size = {case: results.mean(case, "support_vectors") for case in (IDSVM, RAMP, ASVM)}
    known = None not in share.values()
    least = min((share[case] or 0 for case in (RAMP, ASVM)), default=0)
    factors = {case: ratio(size[IDSVM], size[case]) for case in (RAMP, ASVM)}
    place = "section IV.B, figure 2"
    return [
        Claim(
            "All support vectors of the ramp loss lie inside the margins, whereas those of IDSVM "
            "are widely distributed.",
            place,
            judged(least > 0.99 and (share[IDSVM] or 0) < 0.9 if known else None),
            "all inside; IDSVM also has noisy examples outside",
            "inside the margins: "
            + ", ".join(f"{case} {100 * (value or 0):.1f} %" for case, value in share.items()),
        ),
        Claim(
            "The models of both ramp loss learners are much sparser than that of IDSVM.",
            place,
            judged(min(f or 0 for f in factors.values()) >= 2 if known else None),
            "“much sparser”",
            ", ".join(f"{case} {cell(f, '{:.1f}')} times" for case, f in factors.items())
            + " fewer support vectors",
        ),
    ]


EXPERIMENT = Experiment(
    "wang2009",
    "Figure 2",
    "Support vectors on Gauss",
    f"The first {ROWS:,} rows of Gauss (see table 1), learned by the incremental hinge SVM and by "
    f"both ramp loss SVMs; up to {SHOWN} support vectors of each are drawn, with the boundary and "
    "the margins.",
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(10, 3.6),
    claims=claims,
)
