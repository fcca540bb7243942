"""Table 1 and figure 4a of [wang2009]: our figures, and what the paper says of its own.

The copy of the paper at hand has lost the numbers of table 1, but not the text about them.
"""

from __future__ import annotations

import math
import statistics
import textwrap

from common import table
from report import judged, verdicts
from wang2009_sets import SETS
from works import Check, Results, Work

HINGE, PA, RAMP, ASVM, OFFLINE = "LibSVM", "PA", "OnlineSVM^R", "OnlineASVM^R", "offline"
LEARNERS = (HINGE, PA, RAMP, ASVM)
# All but those of next to no weight: no step is made that gains less than 1e-5 in the dual.
INSIDE = 0.995


def tables(sets: dict[str, Results]) -> str:
    """Return the tables of the sets that were measured, the targets, and notes."""
    figures = [figure for name, found in sets.items() for figure in judged(work(name), found)]
    parts = [
        "Table 1. Accuracy in %, mean and deviation over the seeds.",
        _table(sets, LEARNERS, "accuracy", "{:.2f}"),
        "Table 1. Support vectors.",
        _table(sets, LEARNERS, "support_vectors", "{:,.0f}"),
        "Share of the support vectors with |f| ≤ 1, in %, and of the labels that were asked for.",
        _shares(sets),
        "Figure 4a. Kernel evaluations in millions, of one offline ramp SVM in the last column.",
        _table(sets, (PA, RAMP, ASVM, OFFLINE), "kernel_evaluations", "{:,.2f}", 1e-6),
        "Seconds.",
        _table(sets, (*LEARNERS, OFFLINE), "seconds", "{:,.1f}"),
        _counts(sets),
        verdicts(figures),
        _notes(sets),
    ]
    return "\n\n".join(filter(None, parts))


# -- tables ----------------------------------------------------------------------------------------


def spread(values: list[float], form: str) -> str:
    """Show the mean, and the deviation where there are several."""
    if not values:
        return "–"
    mean = form.format(statistics.fmean(values))
    return mean if len(values) == 1 else f"{mean} ± {form.format(statistics.stdev(values))}"


def _table(
    sets: dict[str, Results], learners: tuple[str, ...], name: str, form: str, unit: float = 1.0
) -> str:
    rows = [
        [
            f"{known} ({found.take(HINGE, 'rows')[0]:,})",
            *(spread([unit * value for value in found.take(key, name)], form) for key in learners),
            str(len(found[HINGE])),
        ]
        for known, found in sets.items()
    ]
    return table(("set (rows)", *learners, "seeds"), rows)


def _shares(sets: dict[str, Results]) -> str:
    rows = []
    for known, found in sets.items():
        inside = [100 * statistics.fmean(found.take(key, "inside")) for key in (HINGE, RAMP, ASVM)]
        labels = 100 * statistics.fmean(found.take(ASVM, "labels")) / found.take(ASVM, "rows")[0]
        rows.append([known, *(f"{share:.2f}" for share in inside), f"{labels:.1f}"])
    return table(("", HINGE, RAMP, ASVM, f"labels, {ASVM}"), rows)


def _counts(sets: dict[str, Results]) -> str:
    """Count sets as the paper does in words."""
    own = [found for name, found in sets.items() if not SETS[name].added]
    ahead, behind, near = (
        sum(surely(found, RAMP, HINGE) for found in own),
        sum(surely(found, RAMP, PA) for found in own),
        sum(abs(above(found, ASVM, RAMP) or 0.0) <= 1 for found in own),
    )
    return "\n".join(
        [
            f"Of {len(own)} sets of the paper, by two standard errors of the difference:",
            f"  {RAMP} is more accurate than {HINGE} on {ahead} (paper: 5 of 9);",
            f"  PA is less accurate than {RAMP} on {behind} (paper: than the others on 7 of 9);",
            f"  {ASVM} is within one point of {RAMP} on {near} (paper: usually).",
        ]
    )


def _notes(sets: dict[str, Results]) -> str:
    notes = {name: SETS[name].note for name in sets if SETS[name].note}
    return "\n".join(textwrap.fill(f"{name}: {note}", 100) for name, note in notes.items())


# -- targets ---------------------------------------------------------------------------------------


def above(results: Results, key: str, other: str) -> float | None:
    """Return by how many points the mean accuracy of one exceeds that of the other."""
    ours, theirs = results.mean(key, "accuracy"), results.mean(other, "accuracy")
    return None if ours is None or theirs is None else ours - theirs


def surely(results: Results, key: str, other: str) -> bool:
    """Tell whether one is more accurate than the other by two standard errors of the difference."""
    pairs = zip(results.take(key, "accuracy"), results.take(other, "accuracy"), strict=True)
    differences = [ours - theirs for ours, theirs in pairs]
    mean = statistics.fmean(differences)
    if len(differences) == 1:
        return mean > 0
    return bool(mean > 2 * statistics.stdev(differences) / math.sqrt(len(differences)))


def ratio(results: Results, key: str, other: str, name: str) -> float | None:
    ours, theirs = results.mean(key, name), results.mean(other, name)
    return ours / theirs if ours and theirs else None


def work(name: str) -> Work:
    """Return the figures of one set."""
    noisy, gauss = SETS[name].noisy, name == "gauss"
    checks = [
        Check(
            f"{RAMP} more accurate than {HINGE}, points",
            lambda found: above(found, RAMP, HINGE),
            target=0.01 if noisy else None,
            form="{:+.2f}",
        ),
        Check(
            f"{ASVM} off {RAMP}, points",
            lambda found: None if (d := above(found, ASVM, RAMP)) is None else abs(d),
            "≤",
            1.0,
            "{:.2f}",
        ),
        Check(
            "support vectors inside the ramp, worst seed",
            lambda found: min(found.take(RAMP, "inside"), default=None),
            target=INSIDE,
            form="{:.2%}",
        ),
        Check(
            "support vectors that are wrong by more than the ramp",
            lambda found: max(found.take(RAMP, "wrong"), default=None),
            "≤",
            0.0,
            "{:.2%}",
        ),
        Check(
            f"times sparser than {HINGE}",
            lambda found: ratio(found, HINGE, RAMP, "support_vectors"),
            target=10.0 if gauss else None,
            form="{:.1f} ×",
        ),
        Check(
            "kernel evaluations over those offline",
            lambda found: ratio(found, RAMP, OFFLINE, "kernel_evaluations"),
            "≤",
            2.0 if gauss else None,
            "{:.2f}",
        ),
    ]
    return Work(name, name, [], checks)
