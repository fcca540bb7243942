"""Write the model files that every later version must be able to load.

A file is named for its estimator and its format. Write a new one when the format changes, and
keep the old: ``python tests/golden/make_models.py`` writes those of the format in use.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
    save,
)
from marginwise._files.format import FORMAT

MODELS = Path(__file__).parent / "models"


def make_online() -> None:
    """Three classes with names, weights, and a random state."""
    random = np.random.RandomState(0)
    X = random.standard_normal((60, 3)).round(6)
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0])]
    model = OnlineSVC(
        C=10.0,
        gamma=0.5,
        class_weight={"low": 1.0, "middle": 2.0, "high": 1.5},
        random_state=random,
    )
    model.fit(X, y)
    write("online", model, random.standard_normal((20, 3)).round(6))


def make_others() -> None:
    """Two noisy classes, learned in part, so that a later version can go on."""
    random = np.random.RandomState(1)
    X = random.standard_normal((120, 2)).round(6)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * random.standard_normal(120) > 0, 1, -1)
    rows = random.standard_normal((20, 2)).round(6)
    common = {"C": 5.0, "gamma": 1.0, "random_state": 3}
    models = {
        "gap": GapSVC(loss="ramp", clean_every=50, max_idle=5, record=True, **common),
        "tracking": TrackingSVC(**common),
        "exact_ramp": ExactRampSVC(max_idle=20, **common),
        "perceptron": KernelPerceptron(average=True, **common),
    }
    for name, model in models.items():
        write(name, model.partial_fit(X, y, classes=[-1, 1]), rows)


def make_exact() -> None:
    """Rows learned and forgotten, so that factors have holes."""
    random = np.random.RandomState(2)
    X = random.standard_normal((90, 2)).round(6)
    y = np.digitize(X[:, 0] + 0.5 * random.standard_normal(90), [-0.5, 0.5])
    rows = random.standard_normal((20, 2)).round(6)
    exact = ExactSVC(C=5.0, gamma=1.0, record=True)
    write("exact", exact.partial_fit(X, y, classes=[0, 1, 2]).forget(range(0, 60, 3)), rows)
    one_class = ExactOneClassSVM(nu=0.2, gamma=1.0, window=70)
    write("one_class", one_class.partial_fit(X).forget([25, 30]), rows)


def make_compressed() -> None:
    """Four classes in pairs, whose problems share a few centres, with a curve of errors."""
    random = np.random.RandomState(4)
    X = random.standard_normal((200, 2)).round(6)
    y = 2 * (X[:, 0] > 0) + (X[:, 1] > 0)
    model = OnlineSVC(C=5.0, gamma=1.0, random_state=0).fit(X, y)
    small = model.compress(X, y, max_vectors=16, max_error_increase=0.5)
    write("compressed", small, random.standard_normal((20, 2)).round(6))


def make_calibrated() -> None:
    """A stream of three classes, in the middle of it, with what is known for probabilities."""
    random = np.random.RandomState(4)
    X = random.standard_normal((150, 2)).round(6)
    y = np.digitize(X[:, 0] + 0.5 * random.standard_normal(150), [-0.5, 0.5])
    model = OnlineSVC(C=2.0, gamma=1.0, calibration="sigmoid", random_state=3)
    rows = random.standard_normal((20, 2)).round(6)
    write("calibrated", model.partial_fit(X, y, classes=[0, 1, 2]), rows)


def write(name: str, model: Any, rows: np.ndarray) -> None:
    """Write a model, and beside it rows with what it says of them."""
    path = MODELS / f"{name}-v{FORMAT}.mwz"
    save(model, path)
    expected = {
        "rows": rows.tolist(),
        "decision": model.decision_function(rows).tolist(),
        "predicted": model.predict(rows).tolist(),
    }
    if hasattr(model, "predict_proba"):
        expected["probabilities"] = model.predict_proba(rows).tolist()
    path.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    MODELS.mkdir(exist_ok=True)
    make_online()
    make_others()
    make_exact()
    make_compressed()
    make_calibrated()
