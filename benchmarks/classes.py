"""Time, memory and error of a fit with many classes: one-vs-one, one-vs-rest and SVC.

    python benchmarks/classes.py                                50, 100 and 200 classes
    python benchmarks/classes.py 100 --rows 500 --noise 0.2
    python benchmarks/classes.py 4000 --rows 1 --models ovr     takes minutes and gigabytes

Classes are Gaussian clusters in 10 dimensions, and `noise` is the share of training labels that are
drawn at random; test labels are right. Each fit runs in its own process. Memory is that of the fit
alone. The table is Markdown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import memory
import numpy as np
from corners import timed

FEATURES, SPREAD, TESTED = 10, 1.5, 20  # rows per class that are tested


def draw(classes: int, rows: int, noise: float) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(classes, FEATURES))
    y, y_test = (np.repeat(np.arange(classes), n) for n in (rows, TESTED))
    X, X_test = (
        (centres[of] + SPREAD * rng.normal(size=(len(of), FEATURES))).astype(np.float32)
        for of in (y, y_test)
    )
    y = np.where(rng.random(len(y)) < noise, rng.integers(classes, size=len(y)), y)
    order = rng.permutation(len(y))
    return X[order], y[order], X_test, y_test


def measure(name: str, classes: int, rows: int, noise: float) -> None:
    """Fit, and print CPU seconds, peak memory, the time of predictions and the error."""
    from sklearn.svm import SVC

    from marginwise import OnlineSVC

    X, y, X_test, y_test = draw(classes, rows, noise)
    gamma = 1 / (FEATURES * X.var())
    online: dict[str, Any] = {"gamma": gamma, "random_state": 0, "n_jobs": 1}
    model = SVC(gamma=gamma) if name == "SVC" else OnlineSVC(**online, multiclass=name)
    before = memory.peak()
    seconds, _ = timed(model.fit, X, y)
    held = (memory.peak() - before) / 2**20
    asked, found = timed(model.predict, X_test)
    cells = f"{seconds:.2f} s | {held:,.0f} MB | {1000 * asked / len(y_test):.3f} ms"
    wrong = 100 * np.mean(found != y_test)
    print(f"| {classes} | {rows} | {noise:g} | {name} | {cells} | {wrong:.2f} % |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("classes", nargs="*", type=int, default=[50, 100, 200])
    add("--rows", nargs="+", type=int, default=[100], help="training rows per class")
    add("--noise", nargs="+", type=float, default=[0.0, 0.2], help="share of random labels")
    add("--models", nargs="+", default=["ovo", "ovr", "SVC"], choices=["ovo", "ovr", "SVC"])
    add("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        measure(options.models[0], options.classes[0], options.rows[0], options.noise[0])
        return
    print("| classes | rows per class | noise | model | fit | memory | prediction | error |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for classes in options.classes:
        for rows in options.rows:
            for noise in options.noise:
                for name in options.models:
                    one = [f"{classes}", "--rows", f"{rows}", "--noise", f"{noise}"]
                    command = [sys.executable, __file__, *one, "--models", name, "--worker"]
                    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
