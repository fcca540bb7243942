"""Figure 7: the data sets, and which reading of them comes nearest to the paper's figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Experiment, Results, Table, Values
from reproduce.rows import mean_cell

PAPER = {"Waveform": ("8.82", "1,006"), "USPS": ("0.41", "236"), "MNIST": ("1.42", "–")}
CHOSEN = ("Waveform, class 1, standardised", "USPS, 0 to 1, γ 2/256, pooled", "MNIST, γ 0.02")
USPS = {
    "-1 to 1, γ 2/256": (True, 2 / 256, False),
    "-1 to 1, γ 0.02": (True, 0.02, False),
    "-1 to 1, γ 0.03": (True, 0.03, False),
    "-1 to 1, γ 2": (True, 2.0, False),
    "-1 to 1, γ 2/256, pooled": (True, 2 / 256, True),
    "0 to 1, γ 2/256": (False, 2 / 256, False),
    "0 to 1, γ 2/256, pooled": (False, 2 / 256, True),
}


def cases(quick: bool) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for label in (0, 1, 2):
        for scaled in (False, True):
            name = f"Waveform, class {label}, {'standardised' if scaled else 'plain'}"
            found[name] = {"label": label, "scaled": scaled, "files": ["waveform_uci.npz"]}
    for name, (signed, gamma, pooled) in USPS.items():
        found[f"USPS, {name}"] = {"signed": signed, "gamma": gamma, "pooled": pooled}
        found[f"USPS, {name}"] |= {"files": ["usps.npz"], **({} if pooled else {"seeds": 1})}
    for gamma in (0.005, 0.02):
        found[f"MNIST, γ {gamma}"] = {"gamma": gamma, "files": ["mnist.npz"], "seeds": 1}
    return found


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from sklearn.svm import SVC

    from marginwise import OnlineSVC
    from reproduce.measures import error, load

    name = case["name"].partition(",")[0]
    if name == "MNIST":
        split = load("mnist10", data, quick=quick, form="dense32")
        model: Any = OnlineSVC(C=1000, gamma=case["gamma"], multiclass="ovr", random_state=seed)
    elif name == "USPS":
        split = usps(case, data, seed, quick)
        model = SVC(C=1000, gamma=case["gamma"])
    else:
        split = waveform(case, data, seed, quick)
        model = SVC(C=1, gamma=0.05)
    model.fit(split.X, split.y)
    found = error(model, split.X_test, split.y_test)
    return {"error": found, "support_vectors": len(model.support_)}


def usps(case: Case, data: Path, seed: int, quick: bool) -> Any:
    from reproduce.measures import load, redrawn

    split = load("usps0", data, quick=quick)
    if not case["signed"]:
        split.X, split.X_test = (split.X + 1) / 2, (split.X_test + 1) / 2
    return redrawn(split, seed) if case["pooled"] else split


def waveform(case: Case, data: Path, seed: int, quick: bool) -> Any:
    import numpy as np

    from benchmarks.datasets import _drawn, standardised

    with np.load(data / "waveform_uci.npz") as archive:
        X, y = archive["X"].astype(np.float64), (archive["y"] == case["label"]).astype(np.int64)
    sizes = (1000, 250) if quick else (4000, 1000)
    split = _drawn(X[: sum(sizes)], y[: sum(sizes)], *sizes, seed)
    return standardised(split) if case["scaled"] else split


def tables(results: Results) -> list[Table]:
    rows = []
    for case in results.cases:
        error, vectors = PAPER[case.partition(",")[0]]
        ours = mean_cell(results, case, "error")
        count = mean_cell(results, case, "support_vectors", form="{:,.0f}")
        chosen = " (chosen)" if case in CHOSEN else ""
        rows.append([f"{case}{chosen}", error, ours, vectors, count])
    return [Table(["", "error, %: paper", "here", "support vectors: paper", "here"], rows)]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 7",
    "Data sets and how they are read",
    "Figure 7 lists sizes, C and γ, but not how features are scaled, which class of Waveform is "
    "positive and how USPS is divided. These are the variants that we tried for Waveform (C = 1, "
    "γ = 0.05), USPS (C = 1000) and MNIST (C = 1000, pixels from 0 to 1). We chose those whose "
    "errors and support vectors on the test rows are near the paper's, so agreement on these sets "
    "is partly by choice. The paper's values are those of figure 8 and, for MNIST, of figure 4. "
    "For MNIST, 0.02 for pixels from 0 to 1 is the paper's 0.005 for pixels from -1 to 1.",
    cases=cases,
    run=run,
    seeds=3,
    tables=tables,
)
