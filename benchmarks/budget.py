"""Measure the cost of a budget of members, and check that a long stream stays within it.

    python benchmarks/budget.py                  errors on data sets, means of three seeds
    python benchmarks/budget.py --stream         2,000,000 generated rows, quarter by quarter

The stream has two classes in 20 dimensions. Each class is a mixture of ten clusters, and 2 % of the
labels are wrong.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from cache import data_folder
from corners import timed
from datasets import load

from marginwise import OnlineSVC

SETS: dict[str, dict[str, float]] = {
    "mnist8": {"C": 10, "gamma": 0.02},
    "a9a": {"C": 100, "gamma": 0.005},
    "covtype2": {"C": 3, "gamma": 0.1},
    "checkerboard": {"C": 1, "gamma": 1.0},
}
BUDGETS = (250, 1000, 4000, None)
ROWS, PART, BUDGET = 2_000_000, 10_000, 500


def errors(folder: Path) -> None:
    print("| set | budget | error, % | seconds | members | left |\n|---|---|---|---|---|---|")
    for name, params in SETS.items():
        split = load(name, str(folder), form="dense32")
        for budget in BUDGETS:
            runs = []
            for seed in range(3):
                model = OnlineSVC(**params, budget=budget, random_state=seed, n_jobs=1)
                seconds, _ = timed(model.fit, split.X, split.y)
                error = 100 * np.mean(model.predict(split.X_test) != split.y_test)
                runs.append((error, seconds, model.stats_["members"], model.stats_["projected"]))
            error, seconds, members, left = np.mean(runs, axis=0)
            cells = f"{error:.2f} | {seconds:.2f} | {members:,.0f} | {left:,.0f}"
            print(f"| {name} | {budget} | {cells} |", flush=True)


def generated(rng: np.random.Generator, centres: Any, n: int) -> tuple[Any, Any]:
    cluster = rng.integers(len(centres), size=n)
    X = centres[cluster] + rng.normal(size=(n, centres.shape[1]))
    y = cluster % 2
    return X.astype(np.float32), np.where(rng.random(n) < 0.02, 1 - y, y)


def stream() -> None:
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(20, 20))
    model = OnlineSVC(C=10, gamma=0.02, budget=BUDGET, random_state=0)
    test = generated(rng, centres, 20_000)
    began, seen = time.process_time(), 0
    print("rows        µs per row   members   peak memory, MB   error, %")
    for end in range(ROWS // 4, ROWS + 1, ROWS // 4):
        spent = 0.0
        for _ in range((end - seen) // PART):
            X, y = generated(rng, centres, PART)
            seconds, _ = timed(model.partial_fit, X, y, [0, 1])
            spent += seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        error = 100 * np.mean(model.predict(test[0]) != test[1])
        rate = 1e6 * spent / (end - seen)
        members = model.stats_["members"]
        print(f"{end:9,}   {rate:10.2f}   {members:7,}   {peak:15,.0f}   {error:8.2f}", flush=True)
        seen = end
    print(f"{time.process_time() - began:.0f} s in all, with making the rows")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--stream", action="store_true", help="run the stream instead of the data sets")
    options = parser.parse_args()
    if options.stream:
        stream()
    else:
        errors(options.data)


if __name__ == "__main__":
    main()
