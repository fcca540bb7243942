"""How C and the width of `sets.py` were chosen: cross-validation on training rows.

python -m reproduce.wang2009.tuning DATA_FOLDER [SET ...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from reproduce.wang2009.sets import COSTS, SETS, WIDTHS, Choice

ROWS, FOLDS = 1500, 5


def learners() -> dict[str, Any]:
    from sklearn.svm import SVC

    from marginwise import ExactRampSVC, KernelPerceptron

    return {
        "hinge": SVC(cache_size=500),
        "ramp": ExactRampSVC(shuffle=False),
        "pa": KernelPerceptron(update="pa", shuffle=False),
    }


def best(learner: Any, X: Any, y: Any) -> tuple[Choice, float]:
    """Return the most accurate choice: of equals the smallest C, then the widest kernel."""
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    found = {}
    for C in COSTS:
        for k in WIDTHS:
            model = clone(learner).set_params(**Choice(C, k).params(X.shape[1]))
            found[Choice(C, k)] = float(cross_val_score(model, X, y, cv=folds).mean())
    choice = max(found, key=lambda key: found[key])
    return choice, found[choice]


def main(folder: str, *names: str) -> None:
    for name in names or SETS:
        split = SETS[name].load(Path(folder), 0)
        for key, learner in learners().items():
            choice, accuracy = best(learner, split.X[:ROWS], split.y[:ROWS])
            print(f"{name}: {key}={choice}  accuracy {accuracy:.2%}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
