"""Figure 7: which deformations lower the error of 5,000 digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import (
    NOT_TESTABLE,
    Case,
    Claim,
    Experiment,
    Results,
    Table,
    Values,
    judged,
)
from reproduce.rows import cell, minus

IMAGES, TRANSFORMED = 5000, 10
QUICK = 200
STRENGTHS = (0.0, 1.0, 2.0, 3.0, 4.0)
SHIFTS = (0, 1, 2)
THICKENINGS, THICKENED = (0.5, 1.0), (2.0, 3.0, 4.0)
GAMMA, OTHER_GAMMAS = 0.03, (0.01, 0.02)
PAPER_NONE, PAPER_BEST = 2.52, 1.28
NEAR = 0.1  # points: smaller differences between errors on 10,000 images are not significant


def name_of(strength: float, shift: int, thickening: float = 0.0) -> str:
    return f"strength {strength:g}, shift {shift}, thickening {thickening:g}"


def cases(quick: bool) -> dict[str, Case]:
    grid = [(strength, shift, 0.0) for shift in SHIFTS for strength in STRENGTHS]
    grid += [(strength, 1, thick) for thick in THICKENINGS for strength in THICKENED]
    names = ("strength", "shift", "thickening", "gamma")
    found: dict[str, Case] = {
        name_of(*one): dict(zip(names, (*one, GAMMA), strict=True)) for one in grid
    }
    for gamma in OTHER_GAMMAS:
        found[f"γ {gamma:g}"] = dict(zip(names, (2.0, 1, 0.0, gamma), strict=True))
    kept = (name_of(0, 0), name_of(2, 0), name_of(2, 1), name_of(2, 1, 0.5))
    return {name: found[name] for name in kept} if quick else found


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.loosli2007.setup import load_validation, model, sizes, virtual
    from reproduce.measures import error, timed

    images = load_validation(data).first(QUICK if quick else IMAGES)
    deforming = {name: case[name] for name in ("strength", "shift", "thickening")}
    variants = (2 if quick else TRANSFORMED) + 1 if any(deforming.values()) else 1
    source = virtual(images, variants, bootstrap=(), random_state=seed, **deforming)
    learning = model(seed, gamma=case["gamma"], cache_size=4000)
    learned, seconds = timed(lambda: learning.learn_from(source))
    found = error(learned, images.X_test, images.y_test)
    return {"error": found, **sizes(learned), "fit": seconds}


def lines_of(results: Results) -> dict[str, dict[float, float]]:
    """Return errors by strength, for each shift and thickening."""
    settings = cases(False)
    found: dict[str, dict[float, float]] = {}
    for name in results.cases:
        one = settings[name]
        if name.startswith("γ"):
            continue
        label = f"{one['shift']} pixel{'s' * (one['shift'] != 1)}"
        label += f", thickening {one['thickening']:g}" if one["thickening"] else ""
        error = results.mean(name, "error")
        if error is not None:
            found.setdefault(label, {})[one["strength"]] = error
    return found


def tables(results: Results) -> list[Table]:
    rows = [
        [label, *(cell(errors.get(strength)) for strength in STRENGTHS)]
        for label, errors in lines_of(results).items()
    ]
    header = ["shifts of up to", *(f"strength {strength:g}" for strength in STRENGTHS)]
    best = name_of(2, 1)
    widths = [
        [f"γ = {gamma:g}", cell(results.mean(case, "error")), members(results, case)]
        for gamma, case in [*((g, f"γ {g:g}") for g in OTHER_GAMMAS), (GAMMA, best)]
    ]
    return [
        Table(header, rows, "Error in %, γ = 0.03"),
        Table(["strength 2, 1 pixel", "error, %", "support vectors"], widths, "Kernel width"),
    ]


def members(results: Results, case: str) -> str:
    return cell(results.mean(case, "support_vectors"), "{:,.0f}")


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES, MARKERS, level

    axes = figure.subplots()
    for k, (label, errors) in enumerate(lines_of(results).items()):
        style = {"color": COLOURS[k], "marker": MARKERS[k], "ms": 4, "label": label}
        axes.plot(list(errors), list(errors.values()), LINES[k], **style)
    level(axes, PAPER_NONE, "paper, no deformation")
    level(axes, PAPER_BEST, "paper, best (strength 2, 1 pixel)")
    axes.set(xlabel="strength of elastic deformations", ylabel="validation error, %")
    axes.set(ylim=(0, None), xticks=STRENGTHS)
    axes.legend(fontsize=7, ncols=2, loc="lower left")


def least(results: Results, shift: int, thickening: float, strengths: Any) -> float | None:
    """Return the least error with a shift and a thickening."""
    cases = (name_of(strength, shift, thickening) for strength in strengths)
    errors = [results.mean(case, "error") for case in cases]
    known = [error for error in errors if error is not None]
    return min(known) if len(known) == len(errors) else None


def claims(results: Results) -> list[Claim]:
    best = {shift: least(results, shift, 0, STRENGTHS) for shift in SHIFTS}
    still, elastic = least(results, 1, 0, (0.0,)), least(results, 1, 0, STRENGTHS[1:])
    thick = [one for t in THICKENINGS if (one := least(results, 1, t, THICKENED)) is not None]
    one, two = minus(best[0], best[1]), minus(best[1], best[2])
    bent = minus(still, elastic)
    thicker = minus(best[1], min(thick)) if len(thick) == len(THICKENINGS) else None
    place = "section 4.1, figure 7"
    return [
        Claim(
            "Translations of 1 pixel are very useful.",
            place,
            judged(None if one is None else one > NEAR),
            "“very useful”",
            f"they lower the least error by {cell(one)} points",
        ),
        Claim(
            "Translations of 2 pixels are not necessary.",
            place,
            judged(None if two is None else two <= NEAR),
            "“not necessary”",
            f"they lower the least error by {cell(two)} points more",
        ),
        Claim(
            "Thickening is not a relevant transformation.",
            place,
            judged(None if thicker is None else thicker <= NEAR),
            "“not a relevant transformation”",
            f"it lowers the least error by {cell(thicker)} points",
        ),
        Claim(
            "Elastic deformations lower the error beyond that of translations.",
            place,
            judged(None if bent is None else bent > NEAR),
            "part of the best configuration",
            f"they lower the least error by {cell(bent)} points",
        ),
        Claim(
            "The best strength is 2.",
            place,
            NOT_TESTABLE,
            "strength 2",
            f"strength 2 has {cell(results.mean(name_of(2, 1), 'error'))} %, the best strength "
            f"{cell(elastic)} %",
            "The paper does not state the unit of its strength.",
        ),
    ]


EXPERIMENT = Experiment(
    "loosli2007",
    "Figure 7",
    "Strengths, shifts and thickening",
    f"{IMAGES:,} images of MNIST's training set with {TRANSFORMED} variants each, tested on 10,000 "
    "others of the training set; plain pixels, random selection, γ = 0.03 (the best of three). "
    "Without any deformation the images are learned alone. The division is random; one seed. "
    "The unit of strength is ours. The next experiment looks at the level of the errors.",
    files=("mnist.npz",),
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(7, 4),
    claims=claims,
)
