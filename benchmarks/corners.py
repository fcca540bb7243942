"""Cases in which earlier versions were slower than scikit-learn's SVC or gave larger models.

    python benchmarks/corners.py                 all cases
    python benchmarks/corners.py function        one case

function    the Laplacian kernel as a function, satimage (6 classes)
classes     300 classes, 9,000 rows
duplicates  8,000 binary rows, of which at most 1,500 are distinct

OnlineSVC and SVC alternate, three fits each. Times are medians of CPU seconds on one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from cache import data_folder
from datasets import Split, standardised
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

from marginwise import OnlineSVC

ROUNDS = 3


def laplacian(A: Any, B: Any) -> Any:
    return laplacian_kernel(A, B, gamma=0.05)


def function(folder: Path) -> tuple[Split, dict[str, Any]]:
    archive = np.load(folder / "satimage.npz")
    X, X_test = (archive[f"X_{part}"].astype(np.float64) for part in ("train", "test"))
    split = standardised(Split(X, archive["y_train"], X_test, archive["y_test"]))
    return split, {"C": 10, "kernel": laplacian}


def classes(folder: Path) -> tuple[Split, dict[str, Any]]:
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(300, 20))
    y = rng.integers(0, 300, 10_000)
    X = centres[y] + rng.normal(size=(10_000, 20))
    return Split(X[:9000], y[:9000], X[9000:], y[9000:]), {"C": 10, "gamma": 0.02}


def duplicates(folder: Path) -> tuple[Split, dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = (rng.random((1500, 40)) < 0.15).astype(np.float64)
    X = rows[rng.integers(0, len(rows), 10_000)]
    y = (X @ rng.normal(size=40) + rng.normal(scale=0.7, size=10_000) > 0).astype(int)
    return Split(X[:8000], y[:8000], X[8000:], y[8000:]), {"C": 10, "gamma": 0.1}


CASES: dict[str, Callable[[Path], tuple[Split, dict[str, Any]]]] = {
    "function": function,
    "classes": classes,
    "duplicates": duplicates,
}


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    began = time.process_time()
    result = call(*arguments)
    return time.process_time() - began, result


def race(name: str, folder: Path) -> None:
    """Fit the models of a case alternately, and print a line for each."""
    split, params = CASES[name](folder)
    models = {
        "OnlineSVC": OnlineSVC(random_state=0, n_jobs=1, **params),
        "SVC": SVC(cache_size=2000, **params),
    }
    fits: dict[str, list[float]] = {label: [] for label in models}
    for _ in range(ROUNDS):
        for label, model in models.items():
            fits[label].append(timed(model.fit, split.X, split.y)[0])
    for label, model in models.items():
        seconds, predicted = timed(model.predict, split.X_test)
        error = 100 * np.mean(predicted != split.y_test)
        print(
            f"{name:11s} {label:11s} {statistics.median(fits[label]):8.3f} {seconds:11.3f}"
            f" {error:9.2f} {len(model.support_):16,}",
            flush=True,
        )


def parse_cases(about: str | None, cases: Iterable[str], **more: Any) -> argparse.Namespace:
    """Parse the command line of a script with cases; `more` are the script's own options."""
    names = list(cases)
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("cases", nargs="*", metavar="CASE", help=f"cases to run: {', '.join(names)}")
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    for name, settings in more.items():
        add(f"--{name}", **settings)
    options = parser.parse_args()
    if unknown := set(options.cases) - set(names):
        parser.error(f"unknown case {min(unknown)!r}: choose from {', '.join(names)}")
    options.cases = options.cases or names
    return options


def main() -> None:
    options = parse_cases(__doc__, CASES)
    print("case        model         fit, s  predict, s  error, %  support vectors")
    for name in options.cases:
        race(name, options.data)


if __name__ == "__main__":
    main()
