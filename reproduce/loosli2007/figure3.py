"""Figure 3: a toy problem whose classes are invariant under small rotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, mean_cell

POINTS, ANGLE, POSITIONS = (8, 14), 40.0, 41  # of a class; degrees; positions of an orbit
GRID, SPAN = 60, 1.4
C, GAMMA = 1000.0, 4.0
POINT, ORBIT, SELECTED = "points", "orbits", "selected"
LABELS = {
    POINT: "(a) points alone",
    ORBIT: "(c) all positions",
    SELECTED: "(d) selected positions",
}


def cases(quick: bool) -> dict[str, Case]:
    return {
        f"{count}, {way}": {"way": way, "points": count, "angle": ANGLE}
        for count in POINTS
        for way in LABELS
    }


def drawn(count: int, seed: int) -> tuple[Any, Any]:
    """Draw two classes that differ in their distance from the origin."""
    import numpy as np

    rng = np.random.default_rng(seed)
    radius = np.concatenate([rng.uniform(0.25, 0.65, count), rng.uniform(0.75, 1.15, count)])
    angle = rng.uniform(0, 2 * np.pi, 2 * count)
    X = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return X, np.repeat([0, 1], count)


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

    X, y = drawn(case["points"], seed)
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
            case.partition(", ")[0],
            LABELS[case.partition(", ")[2]],
            mean_cell(results, case, "rows", form="{:.0f}"),
            mean_cell(results, case, "support_vectors", form="{:.1f}"),
            mean_cell(results, case, "error"),
            cell(agreement(results, case), "{:.1f}"),
        ]
        for case in results.cases
    ]
    header = ["points", "learned", "rows", "support vectors", "wrong positions, %"]
    return [Table([*header, "agrees with (c) in the plane, %"], rows)]


def agreement(results: Results, case: str) -> float | None:
    """Return in how much of the plane a model decides as that of all positions, in %."""
    import numpy as np

    every = f"{case.partition(', ')[0]}, {ORBIT}"
    both = results.paired(case, every)
    pairs = zip(both.values(case, "grid"), both.values(every, "grid"), strict=True)
    same = [np.mean((np.array(one) > 0) == (np.array(other) > 0)) for one, other in pairs]
    return 100 * float(np.mean(same)) if same else None


def draw(results: Results, figure: Any) -> None:
    import numpy as np

    from reproduce.drawing import COLOURS, MARKERS

    axis, arc = np.linspace(-SPAN, SPAN, GRID), POSITIONS
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    shown = {POINT: panels[0], ORBIT: panels[2], SELECTED: panels[3]}
    for case, axes in shown.items():
        if f"{POINTS[0]}, {case}" not in results:
            continue
        first = results.runs[f"{POINTS[0]}, {case}"][0]
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
    known = len(results.cases) == len(cases(False))

    def mean(way: str, field: str, form: str = "{:.2f}") -> str:
        means = (results.mean(f"{count}, {way}", field) for count in POINTS)
        return " and ".join(cell(value, form) for value in means)

    def each(way: str, field: str) -> list[float]:
        return [v for count in POINTS for v in results.values(f"{count}, {way}", field)]

    cut = [error > 0 for error in each(POINT, "error")]
    selected, shares = (
        each(SELECTED, "error"),
        zip(each(SELECTED, "rows"), each(ORBIT, "rows"), strict=False),
    )
    same = " and ".join(
        cell(agreement(results, f"{count}, {SELECTED}"), "{:.1f}") for count in POINTS
    )
    return [
        Claim(
            "A boundary learned from the points alone misclassifies some of their rotations.",
            "section 3.1, figure 3 (a)",
            judged(sum(cut) > len(cut) / 2 if known else None),
            "a drawing without numbers",
            f"in {sum(cut)} of {len(cut)} draws; on average {mean(POINT, 'error')} % of the "
            f"positions are wrong, and {mean(ORBIT, 'error')} % after learning all",
        ),
        Claim(
            "A few well-chosen positions of each orbit are enough for the invariant boundary.",
            "section 3.1, figure 3 (d)",
            judged(max(selected) < 0.5 and all(a < 0.1 * b for a, b in shares) if known else None),
            "a drawing without numbers",
            f"{mean(SELECTED, 'rows', '{:.0f}')} of {mean(ORBIT, 'rows', '{:.0f}')} rows: "
            f"{mean(SELECTED, 'error')} % of the positions are wrong; same decision as after "
            f"learning all in {same} % of the plane",
        ),
    ]


EXPERIMENT = Experiment(
    "loosli2007",
    "Figure 3",
    "A toy problem with rotations",
    f"{POINTS[0]} or {POINTS[1]} points of each of two classes in the plane, and their rotations "
    f"around the origin by up to {ANGLE:g} degrees, {POSITIONS} positions each (the orbits). The "
    "paper prints no data; our classes differ in their distance from the origin. RBF kernel, "
    "C = 1000, γ = 4. (a) learns the points alone, (c) all positions, and (d) the points and, of "
    "every 50 random positions, the nearest to the current boundary if it lies inside the margin. "
    "Wrong positions are counted on ten times finer orbits. Circles mark support vectors. Five "
    "seeds; the picture shows the first draw with fewer points.",
    cases=cases,
    run=run,
    seeds=5,
    tables=tables,
    draw=draw,
    size=(12, 3.4),
    claims=claims,
)
