"""Write model files by LIBSVM itself, with what it predicts.

``pip install libsvm-official``, then ``python tests/golden/make_libsvm.py``. The files were written
by LIBSVM 3.37.
"""

import json
from pathlib import Path

import numpy as np
from libsvm.svmutil import svm_load_model, svm_predict, svm_save_model, svm_train

FOLDER = Path(__file__).parent / "libsvm"
OPTIONS = {
    "binary": "-c 2 -g 0.5",
    "weights": "-c 2 -g 0.5 -w1 3",
    "linear": "-t 0 -c 0.5",
    "poly": "-t 1 -d 2 -g 0.5 -r 1 -c 0.5",
    "sigmoid": "-t 3 -g 0.1 -r -0.2",
    "nu_svc": "-s 1 -n 0.4 -g 0.5",
    "probabilities": "-c 2 -g 0.5 -b 1",
    "one_class": "-s 2 -n 0.3 -g 0.5",
    "one_class_linear": "-s 2 -n 0.3 -t 0",
    "five_classes": "-c 2 -g 0.5",
}


def rows(n: int, seed: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clouds; most of the third feature is 0, and labels are not in order."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(classes, size=n)
    angle = 2 * np.pi * numbers / classes
    X = rng.normal(size=(n, 3)).round(4)
    X[:, 2] *= X[:, 2] > 1
    X[:, 0] += (2 * np.cos(angle)).round(4)
    X[:, 1] += (2 * np.sin(angle)).round(4)
    labels = np.array([1, -1] if classes == 2 else [7, -3, 20, 0, 5])
    return X, labels[numbers]


def features(X: np.ndarray) -> list[dict[int, float]]:
    return [{j + 1: value for j, value in enumerate(row) if value} for row in X.tolist()]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for seed, (name, options) in enumerate(OPTIONS.items()):
        X, y = rows(120, seed, 5 if name == "five_classes" else 2)
        path = FOLDER / f"{name}.model"
        svm_save_model(str(path), svm_train(y.tolist(), features(X), f"{options} -q"))
        labels, _, values = svm_predict([], features(X), svm_load_model(str(path)), "-q")
        expected = {
            "X": X.tolist(),
            "y": y.tolist(),
            "values": values,
            "labels": [int(label) for label in labels],
        }
        path.with_suffix(".json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
