"""Figure 5: test error and support vectors for values of s, the end of the ramp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import ABSENT, mean_cell

SETS = ("banana", "reuters", "usps-0", "usps-0-noise")
RAMPS = (-4.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5)
ROBUST = ("NC", "I")


def cases(quick: bool) -> dict[str, Case]:
    from reproduce.ertekin2011 import sets

    found: dict[str, Case] = {}
    for name in SETS[:1] if quick else SETS:
        files = (sets.SETS[name].file,)
        found |= {f"{name}, {m}": {"files": files} for m in ("FULL", "G")}
        ramps = (-1.0, 0.5) if quick else RAMPS
        found |= {f"{name}, {m}, {s:g}": {"ramp": s, "files": files} for m in ROBUST for s in ramps}
    return found


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.ertekin2011 import sets
    from reproduce.ertekin2011.methods import machine, measured

    name, method = case["name"].split(", ")[:2]
    more = {"ramp": case["ramp"]} if "ramp" in case else {}
    split = sets.SETS[name].load(data, seed, quick=quick)
    found = measured(machine(sets.SETS[name], method, seed, **more), split)
    return {"error": 100 - found["accuracy"], "support_vectors": found["support_vectors"]}


def tables(results: Results) -> list[Table]:
    rows = [
        [
            case,
            mean_cell(results, case, "error"),
            mean_cell(results, case, "support_vectors", form="{:,.0f}"),
        ]
        for case in results.cases
    ]
    return [Table(["set, machine, s", "error, %", "support vectors"], rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES, MARKERS

    for axes, name in zip(figure.subplots(1, len(SETS)), SETS, strict=True):
        for k, method in enumerate(("NC", "I", "FULL", "G")):
            found = [c for c in results.cases if c.split(", ")[:2] == [name, method]]
            at = [results.mean(case, "support_vectors") for case in found]
            height = [results.mean(case, "error") for case in found]
            line = LINES[k] if k < 2 else ""
            axes.plot(at, height, line + MARKERS[k], color=COLOURS[k], label=method, ms=4)
            for case, x, y in zip(found, at, height, strict=True):
                if case.endswith((", -1", ", 0.5")):
                    axes.annotate(case.split(", ")[2], (x, y), fontsize=7)
        axes.set(xlabel="support vectors", ylabel="test error, %", title=name)
    figure.axes[0].legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    rise, worse = {}, []
    for name in SETS:
        for method in ROBUST:
            low, high = (results.mean(f"{name}, {method}, {s}", "error") for s in ("-1", "0.5"))
            if low is not None and high is not None:
                rise[f"{method} on {name}"] = high - low
    for s in RAMPS:
        pair = [
            [results.mean(f"banana, {m}, {s:g}", what) for what in ("error", "support_vectors")]
            for m in ROBUST
        ]
        if None not in (*pair[0], *pair[1]):
            worse.append(pair[0][0] <= pair[1][0] and pair[0][1] <= pair[1][1])
    said = ", ".join(f"{name} {value:+.2f}" for name, value in rise.items())
    return [
        Claim(
            "Positive s harms: examples inside the margin are lost.",
            "section 8, figure 5",
            judged(min(rise.values()) > 0 if len(rise) == 2 * len(SETS) else None),
            "read from the figure",
            f"points of error from s = −1 to s = 0.5: {said}" if said else ABSENT,
        ),
        Claim(
            "On Banana, NC has a lower error with fewer support vectors than I for all s.",
            "section 8, figure 5",
            judged(all(worse) if len(worse) == len(RAMPS) else None),
            "for all s",
            f"for {sum(worse)} of {len(worse)} values of s" if worse else ABSENT,
            "The errors of both differ by less than the spread between seeds.",
        ),
    ]


EXPERIMENT = Experiment(
    "ertekin2011",
    "Figure 5",
    "Error and support vectors for values of s",
    f"s from {RAMPS[0]:g} to {RAMPS[-1]:g}; the numbers in the figure are values of s. Sets and "
    "parameters are those of table 3, without Adult and MNIST to save time. Three seeds.",
    cases=cases,
    run=run,
    seeds=3,
    tables=tables,
    draw=draw,
    size=(11, 3.4),
    claims=claims,
)
