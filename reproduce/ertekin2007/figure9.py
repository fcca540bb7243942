"""Figure 9: g-means of the five methods as more examples are learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.ertekin2007.figure2 import last, tables
from reproduce.experiment import Case, Claim, Experiment, Results, Values, judged
from reproduce.rows import ABSENT

SETS = ("wheat", "satimage-4", "letter-A")
METHODS = ("AL", "Batch", "US", "SMOTE", "DC")
LABELS = 3000


def cases(quick: bool) -> dict[str, Case]:
    from reproduce.ertekin2007 import sets

    return {
        f"{name}, {method}": {"labels": 200 if quick else LABELS, "files": (sets.SETS[name].file,)}
        for name in SETS
        for method in METHODS
        if not quick or name == "satimage-4"
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.ertekin2007 import sets
    from reproduce.ertekin2007.curves import active_curve, random_curve
    from reproduce.ertekin2007.methods import classifier, resampled
    from reproduce.ertekin2007.printed import TABLE1

    name, method = case["name"].split(", ")
    one = sets.SETS[name]
    split = one.load(data, seed, quick=quick)
    if method == "AL":
        return active_curve(split, one, seed, "active", case["labels"])
    X, y, more = resampled(split, method, seed, TABLE1[name].ratio)
    return random_curve(classifier(one, seed, **more), X, y, split, seed)


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    for axes, name in zip(figure.subplots(1, len(SETS)), SETS, strict=True):
        curves(axes, results, {f"{name}, {m}": m for m in METHODS}, "learned", "g_mean")
        stopped = results.mean(f"{name}, AL", "stopped")
        if stopped is not None:
            axes.axvspan(axes.get_xlim()[0], stopped, color="#CC79A7", alpha=0.12, zorder=0)
        axes.set(xscale="log", xlabel="examples learned", ylabel="g-means, %", title=name)
    if figure.axes[0].has_data():
        figure.axes[0].legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    said, ahead = [], []
    for name in SETS:
        goal = last(results, f"{name}, Batch", "g_mean")
        if goal is None:
            continue
        reached = {m: _reached(results, f"{name}, {m}", goal - 1) for m in ("AL", "Batch")}
        if reached["AL"] is None or reached["Batch"] is None:
            ahead.append(False)
            said.append(f"{name} never")
            continue
        ahead.append(reached["AL"] < reached["Batch"])
        said.append(f"{name} {reached['AL']:,.0f} against {reached['Batch']:,.0f}")
    return [
        Claim(
            "AL reaches the final g-means of Batch with fewer examples than random sampling.",
            "section 6, figure 9",
            judged(all(ahead) if ahead else None),
            "“no early stopping criteria would achieve a comparable training time”",
            "examples until within 1 point for good: " + ", ".join(said) if said else ABSENT,
        ),
        _others(results),
    ]


def _others(results: Results) -> Claim:
    """Judge how many of their rows the other methods need to converge."""
    shares: dict[str, list[float]] = {}
    for name in SETS:
        for method in METHODS[1:]:
            case = f"{name}, {method}"
            learned, values = (results.curve(case, what) for what in ("learned", "g_mean"))
            near = [abs(value - values[-1]) <= 1 for value in values]
            since = [learned[k] for k in range(len(near)) if all(near[k:])]
            if since:
                shares.setdefault(name, []).append(100 * since[0] / learned[-1])
    complete = sum(map(len, shares.values())) == len(SETS) * (len(METHODS) - 1)
    said = (f"{name} {', '.join(f'{s:.0f}' for s in found)} %" for name, found in shares.items())
    return Claim(
        "The other methods converge only when nearly all training examples are used: they come "
        "within 1 point of their final g-means after at least 75 % of them.",
        "section 6, figure 9",
        judged(min(map(min, shares.values())) >= 75 if complete else None),
        "“when nearly all training instances are used”",
        f"{' / '.join(METHODS[1:])}: {'; '.join(said)}" if shares else ABSENT,
        "On letter-A, g-means exceeds 98 % early, so the last point is soon within reach.",
    )


def _reached(results: Results, case: str, goal: float) -> float | None:
    """Return from how many examples on a curve stays above a goal."""
    found = None
    pairs = zip(results.curve(case, "learned"), results.curve(case, "g_mean"), strict=True)
    for count, value in pairs:
        found = (count if found is None else found) if value >= goal else None
    return found


EXPERIMENT = Experiment(
    "ertekin2007",
    "Figure 9",
    "g-means of five methods along the training",
    "AL continues beyond its early stopping point, the right border of the shaded area, until "
    f"{LABELS:,} labels. The other methods learn their rows in random order; undersampling keeps "
    "the ratio of the paper's table 1. One seed instead of ten runs.",
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(10, 3.4),
    claims=claims,
)
