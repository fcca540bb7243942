"""Sorted streams, classes that appear late, and active selection that puts rows back.

    python benchmarks/streams.py               all cases
    python benchmarks/streams.py replay        sorted streams with and without a reservoir
    python benchmarks/streams.py classes       a class that first appears after half of the stream
    python benchmarks/streams.py putback       Adult: error and support vectors of active selection
    python benchmarks/streams.py early         rare classes: early stopping of active selection

Errors are test errors in %, and times CPU seconds on one thread. Figures of putback and early are
means over --seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from corners import parse_cases, timed
from datasets import Split, load, standardised
from sklearn.datasets import load_digits

from marginwise import OnlineSVC
from marginwise.active import SupportVectorPlateau
from marginwise.metrics import prbep_score

PART = 2000  # rows per call


def error(model: Any, split: Split) -> float:
    return 100 * float(np.mean(model.predict(split.X_test) != split.y_test))


def learned(model: OnlineSVC, split: Split, order: Any, classes: Any) -> tuple[float, OnlineSVC]:
    """Learn a stream in the given order, and finish the model."""

    def learn() -> None:
        for first in range(0, len(order), PART):
            rows = order[first : first + PART]
            model.partial_fit(split.X[rows], split.y[rows], classes=classes)
        model.finish()

    return timed(learn)[0], model


def replay(folder: Path, seeds: int) -> None:
    print("| set | replay | sorted | shuffled |\n|---|---|---|---|")
    banana = load("banana", str(folder))
    one, other = (np.flatnonzero(banana.y == label) for label in np.unique(banana.y)[::-1])
    cases: list[tuple[str, Split, Any, dict[str, Any], int]] = [
        (
            "banana",
            banana,
            np.concatenate([one[:200], other, one[200:]]),
            {"C": 10, "gamma": 1.0},
            1000,
        )
    ]
    mnist = load("mnist10", str(folder), form="dense32")
    order = np.argsort(mnist.y, kind="stable")
    cases.append(("mnist, by digit", mnist, order, {"C": 10, "gamma": 0.02}, 5000))
    for name, split, order, params, size in cases:
        for kept in (0, size):
            cells = []
            for rows in (order, np.random.default_rng(0).permutation(len(order))):
                model = OnlineSVC(**params, replay=kept, random_state=0, n_jobs=1)
                seconds, _ = learned(model, split, rows, np.unique(split.y))
                cells.append(f"{error(model, split):.2f} %, {seconds:.2f} s")
            print(f"| {name} | {kept:,} | {' | '.join(cells)} |", flush=True)


def _digits(folder: Path) -> Split:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    return Split(X[:1200], y[:1200], X[1200:], y[1200:])


def _letter(folder: Path) -> Split:
    return load("letter", str(folder), form="dense32")


def _attacks(folder: Path) -> Split:
    """Connection types of KDD Cup 99 that have at least 200 rows, at most 3,000 of each."""
    with np.load(folder / "kddcup99_10pct.npz") as archive:
        X, y = archive["X_num_train"], archive["classes"][archive["y_train"]]
    rng = np.random.default_rng(0)
    kinds, counts = np.unique(y, return_counts=True)
    rows = [
        rng.permutation(np.flatnonzero(y == kind))[:3000]
        for kind, count in zip(kinds, counts, strict=True)
        if count >= 200
    ]
    order = rng.permutation(np.concatenate(rows))
    X, y = np.log1p(np.abs(X[order])), y[order]
    half = len(y) // 2
    return standardised(Split(X[:half], y[:half], X[half:], y[half:]))


LATE: dict[str, tuple[Callable[[Path], Split], dict[str, Any]]] = {
    "digits": (_digits, {"C": 10, "gamma": 0.2}),
    "letter": (_letter, {"C": 10, "gamma": 0.0625}),
    "attacks": (_attacks, {"C": 10, "gamma": 0.02}),
}


def classes(folder: Path, seeds: int) -> None:
    print("| set | late class | announced | not announced |\n|---|---|---|---|")
    for name, (read, params) in LATE.items():
        split = read(folder)
        names, counts = np.unique(split.y, return_counts=True)
        for late in names[np.argsort(-counts)[[0, len(names) // 2, -1]]]:
            rng = np.random.default_rng(0)
            rows = rng.permutation(len(split.y))
            first = rows[: len(rows) // 2]
            first = first[split.y[first] != late]
            order = np.concatenate([first, rng.permutation(np.setdiff1d(rows, first))])
            cells = []
            for known in (names, None):
                model = OnlineSVC(**params, multiclass="ovr", random_state=0, n_jobs=1)
                learned(model, split, order, known)
                cells.append(f"{error(model, split):.2f} %")
            print(f"| {name} | {late} | {' | '.join(cells)} |", flush=True)


def putback(folder: Path, seeds: int) -> None:
    split = load("a9a", str(folder), form="csr64")
    print("| selection | stop | error | support vectors | seconds |\n|---|---|---|---|---|")
    ways: list[tuple[str, Any]] = [("random", None), ("active", None), ("autoactive", None)]
    ways += [("active", rows) for rows in (1000, 2000, 3000, 5000)]
    ways += [("autoactive", 3000), ("active", SupportVectorPlateau(window=300))]
    for selection, stop in ways:
        runs = []
        for seed in range(seeds):
            model = OnlineSVC(
                C=100, gamma=0.005, selection=selection, stop=stop, random_state=seed, n_jobs=1
            )
            seconds, _ = timed(model.fit, split.X, split.y)
            runs.append((error(model, split), len(model.support_), seconds))
        mean, vectors, seconds = np.mean(runs, axis=0)
        said = stop if stop is None or isinstance(stop, int) else type(stop).__name__
        print(
            f"| {selection} | {said} | {mean:.2f} % | {vectors:,.0f} | {seconds:.2f} |", flush=True
        )


RARE: dict[str, dict[str, float]] = {
    "mnist8": {"C": 10, "gamma": 0.02},
    "usps0": {"C": 1000, "gamma": 1 / 128},
    "reuters": {"C": 1000, "gamma": 1.0},
    "letter": {"C": 10, "gamma": 0.0625},  # its first class against the rest
}


def early(folder: Path, seeds: int) -> None:
    print("| set | rows | learned | PRBEP | PRBEP of all rows |\n|---|---|---|---|---|")
    for name, params in RARE.items():
        split = load(name, str(folder), form="csr64" if name == "reuters" else "dense32")
        positive = np.unique(split.y)[0 if name == "letter" else -1]
        y, truth = (np.where(labels == positive, 1, 0) for labels in (split.y, split.y_test))
        runs = []
        for seed in range(seeds):
            model = OnlineSVC(**params, random_state=seed, n_jobs=1)
            every = prbep_score(truth, model.fit(split.X, y).decision_function(split.X_test))
            model.set_params(selection="active", stop=SupportVectorPlateau()).fit(split.X, y)
            found = prbep_score(truth, model.decision_function(split.X_test))
            runs.append((model.stats_["process"], 100 * found, 100 * every))
        learned_rows, found, every = np.mean(runs, axis=0)
        print(
            f"| {name} | {len(y):,} | {learned_rows:,.0f} | {found:.2f} | {every:.2f} |", flush=True
        )


CASES = {"early": early, "replay": replay, "classes": classes, "putback": putback}


def main() -> None:
    seeds = {"type": int, "default": 10, "help": "number of seeds"}
    options = parse_cases(__doc__, CASES, seeds=seeds)
    for name in options.cases:
        CASES[name](options.data, options.seeds)


if __name__ == "__main__":
    main()
