"""How C and the width were chosen for `wang2009_sets.py`: cross-validation on training rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import common
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from wang2009_sets import COSTS, SETS, WIDTHS, Choice

from marginwise import ExactRampSVC, KernelPerceptron

ROWS, QUICK_ROWS, FOLDS = 1500, 150, 5
LEARNERS: dict[str, Any] = {
    "hinge": SVC(cache_size=500),
    "ramp": ExactRampSVC(shuffle=False),
    "pa": KernelPerceptron(update="pa", shuffle=False),
}


def best(learner: Any, X: Any, y: Any) -> tuple[Choice, float]:
    """Return the most accurate choice: of equals the smallest C, then the widest kernel."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    found = {}
    for C in COSTS:
        for k in WIDTHS:
            model = clone(learner).set_params(**Choice(C, k).params(X.shape[1]))
            found[Choice(C, k)] = float(cross_val_score(model, X, y, cv=folds).mean())
    choice = max(found, key=lambda key: found[key])
    return choice, found[choice]


def tune(names: list[str], folder: Path, *, quick: bool) -> None:
    """Print the best choice of each learner on each set."""
    rows = QUICK_ROWS if quick else ROWS
    for name in names:
        split = SETS[name].load(folder, 0)
        for key, learner in LEARNERS.items():
            start = time.perf_counter()
            with threadpool_limits(1):
                choice, accuracy = best(learner, split.X[:rows], split.y[:rows])
            seconds = time.perf_counter() - start
            common.progress(f"{name}, {key}: {seconds:.0f} s")
            print(f"{name}: {key}={choice}  accuracy {accuracy:.2%}", flush=True)
