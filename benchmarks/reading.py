"""Time reading svmlight text on one core, compared with scikit-learn's reader, in MB/s.

    python benchmarks/reading.py             generated files and sets of the data folder
    python benchmarks/reading.py --quick     a smoke test on few rows

Files are written to a temporary folder and stay in the page cache, so the readers are measured, not
the disk. The contestants alternate, round by round, in one process. Each round compares the values
of `load` with scikit-learn's. If other programs run, MB per CPU second is the better measure.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import report
import scipy.sparse as sp
import speed
from sklearn.datasets import load_svmlight_file
from works import Check, Job, Measurement, Results, Work

from marginwise.data import SvmlightSource

ROUNDS, PEER_ROUNDS = 9, 3
TARGET, TIMES = 200, 10  # MB/s, and times scikit-learn
OURS, CHUNKS, FIRST, PEER = "load", "chunks of 4,096 rows", "first pass", "scikit-learn"

File = tuple[Any, Any, str]  # features, labels, format of values


# -- files ---------------------------------------------------------------------------------------


def _digits(form: str) -> Callable[[int, Path], File]:
    """Return a maker of images like MNIST's: a fifth of the 784 pixels are not black."""

    def make(n: int, folder: Path) -> File:
        rng = np.random.default_rng(0)
        rows = [np.sort(rng.choice(784, size=150, replace=False)) for _ in range(n)]
        pixels = rng.integers(1, 256, size=150 * n).astype(np.float64)
        pixels = pixels if form == "%d" else pixels / 255
        X = sp.csr_array((pixels, np.concatenate(rows), 150 * np.arange(n + 1)), shape=(n, 784))
        return X, rng.integers(10, size=n), form

    return make


def _dense(form: str) -> Callable[[int, Path], File]:
    def make(n: int, folder: Path) -> File:
        rng = np.random.default_rng(0)
        return sp.csr_array(rng.normal(size=(n, 100))), rng.choice([-1, 1], size=n), form

    return make


def _set(name: str, form: str) -> Callable[[int, Path], File]:
    def make(n: int, folder: Path) -> File:
        split = datasets.load(name, str(folder), form="csr64")
        return sp.csr_array(split.X)[:n], split.y[:n], form

    return make


FILES: dict[str, tuple[Callable[[int, Path], File], int]] = {
    "images, integers": (_digits("%d"), 40_000),
    "images, 6 digits": (_digits("%.6g"), 40_000),
    "dense, 6 digits": (_dense("%.6g"), 40_000),
    "dense, 16 digits": (_dense("%.16g"), 20_000),  # as dump_svmlight_file writes
    "mnist": (_set("mnist10", "%.9g"), 60_000),
    "a9a": (_set("a9a", "%d"), 60_000),
    "covtype": (_set("covtype2", "%.9g"), 60_000),
    "letter": (_set("letter", "%.9g"), 60_000),
}
SETS = {"mnist": "mnist10", "a9a": "a9a", "covtype": "covtype2", "letter": "letter"}


def written(name: str, temporary: Path, folder: Path, *, quick: bool) -> Path:
    make, n = FILES[name]
    X, y, form = make(500 if quick else n, folder)
    path = temporary / f"{name}.svm"
    with path.open("w", encoding="ascii") as file:
        for r, label in enumerate(y.tolist()):
            stored = slice(X.indptr[r], X.indptr[r + 1])
            numbers = [label] * (1 + 2 * (stored.stop - stored.start))
            numbers[1::2] = (X.indices[stored] + 1).tolist()
            numbers[2::2] = X.data[stored].tolist()
            file.write(("%d" + f" %d:{form}" * (len(numbers) // 2) + "\n") % tuple(numbers))
    return path


# -- contestants ---------------------------------------------------------------------------------


def _load(path: Path) -> Any:
    return SvmlightSource(path, zero_based=False).load()


def _chunks(path: Path) -> None:
    for rows in SvmlightSource(path, zero_based=False).chunks():  # includes the first pass
        del rows


def _first_pass(path: Path) -> Any:
    return SvmlightSource(path, zero_based=False).index


def _peer(path: Path) -> Any:
    return load_svmlight_file(str(path), dtype=np.float32, zero_based=False)


READERS: dict[str, Callable[[Path], Any]] = {
    OURS: _load,
    CHUNKS: _chunks,
    FIRST: _first_pass,
    PEER: _peer,
}


def measure(reader: str, path: Path) -> tuple[Measurement, Any]:
    before = speed.load()
    wall, cpu = time.perf_counter(), time.process_time()
    found = READERS[reader](path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    size = path.stat().st_size / 1e6
    return {"wall": size / wall, "cpu": size / cpu, "megabytes": size, "load": before}, found


def same(ours: Any, peers: Any) -> bool:
    """Return whether two readers returned identical values."""
    (X, y), (Z, z) = ours, peers
    pairs = ((X.data, Z.data), (X.indices, Z.indices), (X.indptr, Z.indptr), (y, z))
    return X.shape == Z.shape and all(np.array_equal(a, b) for a, b in pairs)


# -- the row -------------------------------------------------------------------------------------


def rate(name: str) -> Check:
    def measured(results: Results) -> float | None:
        return results.median(f"{name}: {OURS}", "wall")

    return Check(f"{name}: MB per second", measured, "≥", TARGET, "{:,.0f}")


def processor_rate(name: str) -> Check:
    def measured(results: Results) -> float | None:
        return results.median(f"{name}: {OURS}", "cpu")

    return Check(f"{name}: MB per second of processor time", measured, form="{:,.0f}")


def times(name: str) -> Check:
    def measured(results: Results) -> float | None:
        ours, peer = (results.median(f"{name}: {who}", "cpu") for who in (OURS, PEER))
        return ours / peer if ours and peer else None

    what = f"{name}: times faster than scikit-learn, processor time"
    return Check(what, measured, "≥", TIMES, "{:.1f} ×")


def agreement(name: str) -> Check:
    def measured(results: Results) -> float | None:
        found = results.take(f"{name}: {OURS}", "same")
        return 100.0 * sum(found) / len(found) if found else None

    return Check(f"{name}: rounds with the same values, %", measured, "≥", 100, "{:.0f}")


WORK = Work(
    "reading",
    "reading svmlight text on one core, MB/s",
    [Job(f"{name}: {reader}", "read", {}) for name in FILES for reader in READERS],
    [check(name) for name in FILES for check in (rate, processor_rate, times, agreement)],
    data=list(SETS.values()),
    rounds=ROUNDS,
)


def run(results: Results, folder: Path, rounds: int, *, quick: bool) -> None:
    """Alternate the readers, file by file."""
    with tempfile.TemporaryDirectory() as temporary:
        for name in FILES:
            path = written(name, Path(temporary), folder, quick=quick)
            expected = _peer(path)
            for seed in range(rounds):
                for reader in READERS:
                    if reader == PEER and seed >= PEER_ROUNDS:
                        continue
                    measurement, found = measure(reader, path)
                    if reader == OURS:
                        measurement["same"] = same(found, expected)
                    results.setdefault(f"{name}: {reader}", []).append(measurement)
                    del found
            speed.progress(f"{name}: {results.median(f'{name}: {OURS}', 'wall'):,.0f} MB/s")
            path.unlink()


def shown(results: Results) -> str:
    rows = []
    for key in results:
        wall, cpu = sorted(results.take(key, "wall")), results.take(key, "cpu")
        rows.append(
            [
                key,
                f"{results.take(key, 'megabytes')[0]:,.1f}",
                f"{statistics.median(wall):,.0f}",
                f"{wall[0]:,.0f} to {wall[-1]:,.0f}",
                f"{statistics.median(cpu):,.0f}",
            ]
        )
    return report.table(("", "MB", "MB/s", "range", "MB/s of processor time"), rows)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, help="folder of the data files (default: $MARGINWISE_DATA)")
    add("--out", type=Path, help="JSON file to write (default: results/reading.json or quick.json)")
    add("--rounds", type=int, help=f"rounds (default: {ROUNDS}; 1 with --quick)")
    add("--quick", action="store_true", help="a smoke test on few rows")
    options = parser.parse_args()
    name = "quick" if options.quick else WORK.name
    options.out = options.out or speed.HERE / "results" / f"{name}.json"
    return options


def main() -> None:
    options = parse()
    folder = speed.data_folder(options)
    outcome = speed.new_report([WORK], folder, options)
    if options.quick:
        print("A smoke test on few rows: its figures say nothing about the targets.")
    results = Results()
    run(results, folder, options.rounds or (1 if options.quick else ROUNDS), quick=options.quick)
    outcome["works"][WORK.name] = {"title": WORK.title, "measurements": results}
    outcome["figures"] = report.judged(WORK, results)
    report.write(options.out, outcome)
    print(f"{WORK.title}\n\n{shown(results)}\n\n{report.verdicts(outcome['figures'])}")
    print(f"\nwritten to {os.path.relpath(options.out)}")


if __name__ == "__main__":
    main()
