"""Figure 3: a toy problem whose classes are invariant under small rotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, mean_cell

POINTS, ANGLE, POSITIONS = 8, 40.0, 41  # points of a class; degrees; positions of an orbit
GRID, SPAN = 60, 1.4
C, GAMMA = 1000.0, 4.0
POINT, ORBIT, SELECTED = "points", "orbits", "selected"
LABELS = {
    POINT: "(a) points alone",
    ORBIT: "(c) all positions",
    SELECTED: "(d) selected positions",
}


def cases(quick: bool) -> dict[str, Case]:
    return {way: {"way": way, "points": POINTS, "angle": ANGLE} for way in LABELS}


def drawn(seed: int) -> tuple[Any, Any]:
    """Draw two classes that differ in their distance from the origin."""
    import numpy as np

    rng = np.random.default_rng(seed)
    radius = np.concatenate([rng.uniform(0.25, 0.65, POINTS), rng.uniform(0.75, 1.15, POINTS)])
    angle = rng.uniform(0, 2 * np.pi, 2 * POINTS)
    X = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return X, np.repeat([0, 1], POINTS)


def orbits(X: Any, positions: int) -> Any:
    """Rotate each point to evenly spaced positions; all positions of a point are adjacent."""
    import numpy as np

    angles = np.radians(np.linspace(-ANGLE, ANGLE, positions))
    turn = np.array([[np.cos(angles), np.sin(angles)], [-np.sin(angles), np.cos(angles)]])
    return np.einsum("nk,kjp->npj", X, turn).reshape(-1, 2)


def learned(way: str, X: Any, y: Any, seed: int) -> tuple[Any, Any, Any]:
    """Learn, and return the model with its rows and labels."""
    import numpy as np

    from marginwise import OnlineSVC

    given = {"C": C, "gamma": GAMMA, "random_state": seed}
    if way == POINT:
        return OnlineSVC(**given, epochs=20).fit(X, y), X, y
    rows, labels = orbits(X, POSITIONS), np.repeat(y, POSITIONS)
    if way == ORBIT:
        return OnlineSVC(**given, epochs=20).fit(rows, labels), rows, labels
    order = np.random.default_rng(seed).permutation(len(labels))
    kept, model = list(range(POSITIONS // 2, len(rows), POSITIONS)), OnlineSVC(**given, epochs=20)
    model.fit(rows[kept], labels[kept])
    for pool in np.array_split(order, len(order) // 50):
        margin = np.abs(model.decision_function(rows[pool]))
        nearest = int(pool[np.argmin(margin)])
        if margin.min() < 1 and nearest not in kept:
            kept.append(nearest)
            model = OnlineSVC(**given, epochs=20).fit(rows[kept], labels[kept])
    return model, rows[kept], labels[kept]


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    import numpy as np

    X, y = drawn(seed)
    model, rows, labels = learned(case["way"], X, y, seed)
    fine = orbits(X, 10 * POSITIONS)
    axis = np.linspace(-SPAN, SPAN, GRID)
    f = model.decision_function(np.array([[a, b] for b in axis for a in axis]))
    support = np.asarray(model.support_)
    return {
        "error": 100 * float(np.mean(model.predict(fine) != np.repeat(y, 10 * POSITIONS))),
        "rows": len(rows),
        "support_vectors": len(support),
        "points": np.round(X, 3),
        "classes": y,
        "chosen": np.round(rows[support], 3),
        "chosen_classes": labels[support],
        "grid": np.round(np.reshape(f, (GRID, GRID)), 2),
    }


def tables(results: Results) -> list[Table]:
    rows = [
        [
            LABELS[case],
            mean_cell(results, case, "rows", form="{:.0f}"),
            mean_cell(results, case, "support_vectors", form="{:.1f}"),
            mean_cell(results, case, "error"),
            cell(agreement(results, case), "{:.1f}"),
        ]
        for case in results.cases
    ]
    header = ["learned", "rows", "support vectors", "wrong positions, %"]
    return [Table([*header, "agrees with (c) in the plane, %"], rows)]


def agreement(results: Results, case: str) -> float | None:
    """Return in how much of the plane a model decides as that of all positions, in %."""
    import numpy as np

    both = results.paired(case, ORBIT)
    pairs = zip(both.values(case, "grid"), both.values(ORBIT, "grid"), strict=True)
    same = [np.mean((np.array(one) > 0) == (np.array(other) > 0)) for one, other in pairs]
    return 100 * float(np.mean(same)) if same else None


def draw(results: Results, figure: Any) -> None:
    import numpy as np

    from reproduce.drawing import COLOURS, MARKERS

    axis, arc = np.linspace(-SPAN, SPAN, GRID), POSITIONS
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    shown = {POINT: panels[0], ORBIT: panels[2], SELECTED: panels[3]}
    for case in results.cases:
        first, axes = results.runs[case][0], shown[case]
        points, classes = np.array(first["points"]), np.array(first["classes"])
        axes.contour(axis, axis, np.array(first["grid"]), [0], colors="0.2")
        for k in (0, 1):
            style = {"color": COLOURS[k], "linestyle": "none", "marker": MARKERS[k], "ms": 4}
            axes.plot(*points[classes == k].T, **style)
            arcs = orbits(points[classes == k], arc).reshape(-1, arc, 2)
            for line in arcs if case != POINT else []:
                axes.plot(*line.T, color=COLOURS[k], linewidth=1, alpha=0.5)
            for line in arcs if case == POINT else []:
                panels[1].plot(*line.T, color=COLOURS[k], linewidth=1)
        if case != POINT:
            ring = {"markerfacecolor": "none", "markeredgecolor": "black", "ms": 7}
            axes.plot(*np.array(first["chosen"]).T, linestyle="none", marker="o", **ring)
        axes.set(title=LABELS[case], xlim=(-SPAN, SPAN), ylim=(-SPAN, SPAN), aspect="equal")
    panels[1].set(title="(b) orbits", aspect="equal")


def claims(results: Results) -> list[Claim]:
    wrong = {case: results.mean(case, "error") for case in LABELS}
    rows = {case: results.mean(case, "rows") for case in LABELS}
    same, known = agreement(results, SELECTED), len(results.cases) == len(LABELS)
    return [
        Claim(
            "A boundary learned from the points alone misclassifies some of their rotations.",
            "section 3.1, figure 3 (a)",
            judged((wrong[POINT] or 0) > 1 if known else None),
            "drawn",
            f"{cell(wrong[POINT])} % of the positions; {cell(wrong[ORBIT])} % after learning all",
        ),
        Claim(
            "A few well-chosen positions of each orbit are enough for the invariant boundary.",
            "section 3.1, figure 3 (d)",
            judged(
                (wrong[SELECTED] or 0) < 0.5 and (rows[SELECTED] or 0) < 0.1 * (rows[ORBIT] or 0)
                if known
                else None
            ),
            "drawn",
            f"{cell(rows[SELECTED], '{:.0f}')} of {cell(rows[ORBIT], '{:.0f}')} rows: "
            f"{cell(wrong[SELECTED])} % of the positions are wrong; same decision as after "
            f"learning all in {cell(same, '{:.1f}')} % of the plane",
        ),
    ]


EXPERIMENT = Experiment(
    "loosli2007",
    "Figure 3",
    "A toy problem with rotations",
    f"{POINTS} points of each of two classes in the plane, and their rotations around the origin "
    f"by up to {ANGLE:g} degrees, {POSITIONS} positions each (the orbits). The paper prints no "
    "data; our classes differ in their distance from the origin. RBF kernel, C = 1000, γ = 4. (a) "
    "learns the points alone, (c) all positions, and (d) the points and, of every 50 random "
    "positions, the nearest to the current boundary if it lies inside the margin. Wrong positions "
    "are counted on ten times finer orbits. Circles mark support vectors. Five seeds; the picture "
    "shows the first.",
    cases=cases,
    run=run,
    seeds=5,
    tables=tables,
    draw=draw,
    size=(12, 3.4),
    claims=claims,
)
