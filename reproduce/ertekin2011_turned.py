"""Wrong training labels: GapSVC with "ramp" and "filter" against SVC, each at a C of its choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np
from datasets import Split
from ertekin2011_sets import SETS, DataSet, turn_labels
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from marginwise import GapSVC

TURNED = {"banana-turned": "banana", "usps-0-turned": "usps-0"}
LOSSES = ("ramp", "filter")
CONTESTANTS = ("SVC", *LOSSES)
SHARE = 0.2  # of labels that are wrong
FOLDS = 5
GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
QUICK_GRID = (1.0, 10.0)


def settings_of_turned(*, quick: bool) -> dict[str, Any]:
    return {"turned": SHARE, "folds": FOLDS, "grid": list(QUICK_GRID if quick else GRID)}


def model_of(contestant: str, data: DataSet, C: float, seed: int) -> Any:
    if contestant == "SVC":
        return SVC(C=C, kernel="precomputed")
    params: dict[str, Any] = {"loss": contestant, "C": C, "gamma": data.gamma}
    return GapSVC(**params, n_jobs=1, random_state=seed)


def kernel_of(split: Split, gamma: float) -> Split:
    """Compute the kernel once for all the fits of SVC, whose times are not measured."""
    K, K_test = (rbf_kernel(X, split.X, gamma=gamma) for X in (split.X, split.X_test))
    return Split(K, split.y, K_test, split.y_test)


def measure_at(model: Any, split: Split, seed: int) -> dict[str, Any]:
    """Cross-validate on the wrong labels, then learn all of them; the test labels are right."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    validated = cross_val_score(model, split.X, split.y, cv=folds)
    model.fit(split.X, split.y)
    return {
        "C": model.C,
        "validated": 100 * float(np.mean(validated)),
        "accuracy": 100 * float(model.score(split.X_test, split.y_test)),
        "support_vectors": int(model.n_support_.sum()),
    }


def measure_turned(
    name: str, folder: Path, seeds: Iterable[int], contestants: Sequence[str], *, quick: bool
) -> dict[str, list[dict[str, Any]]]:
    """Measure each contestant at each C of the grid, seed by seed; it shall choose later."""
    data = SETS[TURNED[name]]
    found: dict[str, list[dict[str, Any]]] = {contestant: [] for contestant in contestants}
    for seed in seeds:
        split = data.load(folder, seed, quick=quick)
        turn_labels(split, SHARE, seed)
        for contestant in contestants:
            rows = kernel_of(split, data.gamma) if contestant == "SVC" else split
            grid = [
                measure_at(model_of(contestant, data, C, seed), rows, seed)
                for C in (QUICK_GRID if quick else GRID)
            ]
            found[contestant].append({"seed": seed, "grid": grid})
            best = chosen(found[contestant][-1])
            common.progress(
                f"{name}, seed {seed}, {contestant}: C={best['C']:g}, {best['accuracy']:.2f} %, "
                f"{best['support_vectors']} support vectors"
            )
    return found


def chosen(measurement: dict[str, Any], by: str = "validated") -> dict[str, Any]:
    """Return the measurement at the C with the best figure, the smallest such C."""
    best: dict[str, Any] = max(measurement["grid"], key=lambda at: at[by])
    return best
