"""Figure 4: PRBEP of the four machines as more examples are learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.ertekin2011.printed import METHODS, printed
from reproduce.ertekin2011.verdicts import NOISY
from reproduce.experiment import Case, Claim, Experiment, Results, Values, judged
from reproduce.rows import ABSENT

SETS = ("adult", "mnist-8", "banana", "reuters", "usps-0", "usps-0-noise")
COMPETITIVE = 0.5  # points of PRBEP
POINTS = 12


def cases(quick: bool) -> dict[str, Case]:
    from reproduce.ertekin2011 import sets

    return {
        f"{name}, {method}": {
            "files": (sets.SETS[name].file,),
            "seeds": 1 if name == "adult" else 3,
        }
        for name in SETS
        for method in METHODS
        if not quick or name == "banana"
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.ertekin2011 import sets
    from reproduce.ertekin2011.methods import curve, machine

    name, method = case["name"].split(", ")
    one = sets.SETS[name]
    split = one.load(data, seed, quick=quick)
    return curve(machine(one, method, seed), split, seed, POINTS)


def last(results: Results, name: str, method: str, what: str) -> float | None:
    """Return the end of a curve."""
    found = results.curve(f"{name}, {method}", what)
    return found[-1] if found else None


def draw(results: Results, figure: Any, what: str = "prbep", label: str = "PRBEP, %") -> None:
    from reproduce.drawing import PAPER, curves

    for axes, name in zip(figure.subplots(2, 3).flat, SETS, strict=True):
        curves(axes, results, {f"{name}, {m}": m for m in METHODS}, "learned", what)
        ends = [results.curve(f"{name}, {m}", "learned")[-1:] for m in METHODS]
        at = [(e[0], printed(what, m, name)) for e, m in zip(ends, METHODS, strict=True) if e]
        if at:
            axes.plot(*zip(*at, strict=True), **PAPER, label="paper, at the end")
        axes.set(xlabel="examples learned", ylabel=label, title=name)
        axes.locator_params(axis="x", nbins=4)
    drawn = [axes for axes in figure.axes if axes.get_lines()]
    for axes in drawn[:1]:
        axes.legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    gaps = {}
    for name in SETS:
        full = last(results, name, "FULL", "prbep")
        for method in ("G", "NC", "I"):
            value = last(results, name, method, "prbep")
            if full is not None and value is not None:
                gaps[f"{method} on {name}"] = value - full
    worst = min(gaps, key=gaps.__getitem__) if gaps else ""
    best = max(gaps, key=gaps.__getitem__) if gaps else ""
    complete = len(gaps) == 3 * len(SETS)
    return [
        Claim(
            "At the end of training, the PRBEP of G, NC and I is competitive with that of FULL: "
            f"at most {COMPETITIVE} points lower.",
            "section 8, figure 4",
            judged(min(gaps.values()) >= -COMPETITIVE if complete else None),
            "−0.37 to +0.30 points",
            f"{gaps[worst]:+.2f} ({worst}) to {gaps[best]:+.2f} points ({best})"
            if gaps
            else ABSENT,
            "Reuters has 179 positive test examples, so one of them is 0.56 points."
            if worst.endswith("reuters") and gaps[worst] < -COMPETITIVE
            else "",
        ),
        _needed(results),
    ]


def _needed(results: Results) -> Claim:
    """Judge how many examples NC and I need, compared with FULL."""
    needed = {
        (name, method): _examples_until(results, name, method)
        for name in NOISY
        for method in ("FULL", "NC", "I")
    }
    known = None not in needed.values()
    said = (
        f"{name} " + ", ".join(f"{needed[name, m]:,.0f}" for m in ("FULL", "NC", "I"))
        for name in NOISY
        if known
    )
    fewer = known and all(
        needed[name, m] < needed[name, "FULL"] for name in NOISY for m in ("NC", "I")
    )
    return Claim(
        "On noisy data, NC and I need fewer examples for good generalization than FULL: an "
        f"accuracy that stays within {COMPETITIVE} points of FULL's at the end.",
        "section 9",
        judged(fewer if known else None),
        "“a significant decrease in the number of examples required for good generalization”",
        f"FULL / NC / I: {'; '.join(said)} examples" if known else ABSENT,
        "The paper gives no figures for this conclusion; it may mean the examples that are learned "
        "rather than those that are seen.",
    )


def _examples_until(results: Results, name: str, method: str) -> float | None:
    """Return after how many examples the accuracy stays near FULL's at the end."""
    goal = last(results, name, "FULL", "accuracy")
    case = f"{name}, {method}"
    at, values = (results.curve(case, what) for what in ("learned", "accuracy"))
    near = [goal is not None and value >= goal - COMPETITIVE for value in values]
    return next((at[k] for k in range(len(near)) if all(near[k:])), None)


EXPERIMENT = Experiment(
    "ertekin2011",
    "Figure 4",
    "PRBEP along the training",
    "One pass in random order with the sets and parameters of table 3, s = −1, scored at "
    f"{POINTS} points. Crosses are the paper's values after all examples. Adult: one seed, others "
    "three; the paper averages ten runs.",
    cases=cases,
    run=run,
    seeds=3,
    draw=draw,
    size=(10, 5.4),
    claims=claims,
)
