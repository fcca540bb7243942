"""Figure 7: ROC curves of AL, of RS with as many examples, and of RS with all examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import ABSENT, cell

SETS = ("interest", "satimage-4", "adult")
WAYS = {"AL": "AL", "early": "RS, as many examples", "all": "RS, all examples"}
PAPER = {"AL": 89.80, "early": 87.25, "all": 89.10}  # AUC on Adult


def cases(quick: bool) -> dict[str, Case]:
    from reproduce.ertekin2007 import sets

    known = {**sets.SETS, **sets.MORE}
    return {name: {"files": (known[name].file,)} for name in (SETS[1:2] if quick else SETS)}


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    import numpy as np

    from reproduce.ertekin2007 import sets
    from reproduce.ertekin2007.methods import active, classifier

    one = {**sets.SETS, **sets.MORE}[case["name"]]
    split = one.load(data, seed, quick=quick)
    model, count = active(split, one, seed)
    rows = np.random.default_rng((seed, 5)).permutation(len(split.y))[:count]
    return {
        "learned": count,
        "AL": roc(model, split),
        "early": roc(classifier(one, seed).fit(split.X[rows], split.y[rows]), split),
        "all": roc(classifier(one, seed).fit(split.X, split.y), split),
    }


def roc(model: Any, split: Any) -> Values:
    """Return the true positive rate at 60 false positive rates, and the AUC."""
    import numpy as np
    from sklearn.metrics import roc_auc_score, roc_curve

    scores = model.decision_function(split.X_test)
    false, true, _ = roc_curve(split.y_test, scores)
    at = np.linspace(0, 1, 60) ** 2
    heights = np.interp(at, false, true)
    return {
        "false": at.tolist(),
        "true": heights.tolist(),
        "auc": 100 * float(roc_auc_score(split.y_test, scores)),
    }


def tables(results: Results) -> list[Table]:
    rows = [
        [
            name,
            *(cell(results.mean(name, way, "auc")) for way in WAYS),
            cell(results.mean(name, "learned"), "{:,.0f}"),
        ]
        for name in results.cases
    ]
    rows.append(["adult, paper", *(f"{PAPER[way]:.2f}" for way in WAYS), ABSENT])
    return [Table(["AUC, %", *WAYS.values(), "examples of AL"], rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES

    for axes, name in zip(figure.subplots(1, len(SETS)), SETS, strict=True):
        for k, (way, label) in enumerate(WAYS.items()):
            at, height = results.curve(name, way, "false"), results.curve(name, way, "true")
            axes.plot(at, height, LINES[k], color=COLOURS[k], label=label)
        axes.set(xlabel="false positive rate", ylabel="true positive rate", title=name)
    figure.axes[0].legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    auc = {
        name: [results.mean(name, way, "auc") for way in WAYS] for name in SETS if name in results
    }
    said = "; ".join(
        f"{name} {al:.2f}, {early:.2f}, {full:.2f}" for name, (al, early, full) in auc.items()
    )
    complete = len(auc) == len(SETS)
    return [
        Claim(
            "The AUC of AL is similar to or above that of RS with all training data: at most 0.1 "
            "points lower.",
            "section 6, figure 7",
            judged(all(a[0] > a[2] - 0.1 for a in auc.values()) if complete else None),
            "Adult 89.80 against 89.10",
            f"AUC of AL, RS stopped as early, RS with all: {said}" if said else ABSENT,
        ),
        Claim(
            "On Adult, RS stopped as early as AL has a markedly lower AUC.",
            "section 6, figure 7",
            judged(auc["adult"][1] < auc["adult"][0] - 1 if "adult" in auc else None),
            "87.25 against 89.80",
            f"{auc['adult'][1]:.2f} against {auc['adult'][0]:.2f}" if "adult" in auc else ABSENT,
            "Our stopping rule asks for so many labels of Adult that random selection has reached "
            "its final AUC by then.",
        ),
    ]


EXPERIMENT = Experiment(
    "ertekin2007",
    "Figure 7",
    "ROC curves of AL and RS",
    "AL stops by the rule of table 3. RS learns as many random examples, or all. C and γ of Adult "
    "are those of bordes2005. One seed.",
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(10, 3.4),
    claims=claims,
)
