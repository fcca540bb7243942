"""Compare converged models of each instruction set with those of the baseline.

    python benchmarks/instruction_sets.py

`OnlineSVC(epochs="converge")` is fitted to generated and bundled sets with several values of C and
gamma, in a separate process for each instruction set. Models differ because rounding does. The
differences of their decision values on test rows are stored in `results/instruction_sets.json`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import heading, table, write
from sklearn.datasets import load_breast_cancer, load_digits, make_circles, make_moons
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "instruction_sets.json"
PATHS = ("baseline", "avx2", "avx512")
TEST = 400  # rows of each set whose decision values are compared


def sets() -> Iterator[tuple[str, Any, Any]]:
    """Yield name, features and labels of each set."""
    yield "moons", *make_moons(2400, noise=0.3, random_state=0)
    yield "circles", *make_circles(2400, noise=0.2, factor=0.6, random_state=0)
    X, y = load_digits(return_X_y=True)
    yield "digits, odd or even", X / 16, y % 2
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", StandardScaler().fit_transform(X), y


def decide(out: str) -> None:
    """Fit all models in this process, and store their decision values."""
    from marginwise import OnlineSVC

    found = {}
    for name, X, y in sets():
        rest = len(y) - min(TEST, len(y) // 4)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:rest], order[rest:]
        for C in (0.1, 1.0, 10.0, 100.0):
            for gamma in (0.5, 1.0, 2.0):
                scale = gamma / (X.shape[1] * X.var())
                model = OnlineSVC(C=C, gamma=scale, epochs="converge", random_state=0)
                values = model.fit(X[train], y[train]).decision_function(X[test])
                found[f"{name}, C={C:g}, gamma={gamma:g}"] = values
    np.savez(out, **found)


def available() -> list[str]:
    """Return the instruction sets that this processor supports."""
    code = "import marginwise"
    return [
        path
        for path in PATHS
        if not subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "MARGINWISE_CPU": path},
            capture_output=True,
        ).returncode
    ]


def compare(folder: Path) -> dict[str, dict[str, float]]:
    """Return the number of models and their differences, by instruction set."""
    values: dict[str, Any] = {}
    for path in available():
        out = folder / f"{path}.npz"
        environment = {**os.environ, "MARGINWISE_CPU": path}
        subprocess.run([sys.executable, __file__, "--fit", str(out)], env=environment, check=True)
        with np.load(out) as archive:
            values[path] = dict(archive)
    found = {}
    for path, models in values.items():
        gaps = [np.abs(models[name] - one).max() for name, one in values["baseline"].items()]
        labels = [
            np.mean(np.sign(models[name]) == np.sign(one))
            for name, one in values["baseline"].items()
        ]
        found[path] = {
            "models": len(gaps),
            "largest": float(max(gaps)),
            "median": float(np.median(gaps)),
            "same_signs": float(min(labels)),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.fit:
        decide(options.fit)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = compare(Path(folder))
    write(options.out, {**heading(HERE.parent, []), "paths": found})
    rows = [
        [path, str(one["models"]), f"{one['largest']:.1e}", f"{one['median']:.1e}"]
        for path, one in found.items()
    ]
    print(table(("", "models", "largest difference", "median"), rows))


if __name__ == "__main__":
    main()
