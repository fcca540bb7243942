"""Time fits by `cache_size`: how much slower are they if the kernel rows exceed the cache?

    python benchmarks/cache.py                               all sets, 30,000 rows
    python benchmarks/cache.py --rows 60000 --cache 200 8000 the sizes that the target names
    python benchmarks/cache.py --sets letter --rounds 3      one set, three rounds
    python benchmarks/cache.py --intelex                     also time scikit-learn-intelex

The sizes alternate, round by round, and each fit runs in its own process, on one thread. The memory
of the kernel matrix is quadratic in the number of rows: half of the rows with a quarter of the
cache behave like all rows with the whole cache. The working memory of 52 MB is added to
`cache_size`, so tests with few rows show little. The last column is the time divided by that of the
largest cache. Models, and so errors and dual objectives, must not depend on the cache.
scikit-learn-intelex has 2,000 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import report
from contestants import CACHE, environment, intelex, online
from datasets import Split, standardised
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
TEST_ROWS = 5000


def _mnist(archive: Any) -> Split:
    X, X_test = (archive[f"X_{part}"].astype(np.float32) / 255 for part in ("train", "test"))
    return Split(X, archive["y_train"], X_test, archive["y_test"])


def _mnist_noise(archive: Any) -> Split:
    """Give 15 % of the training rows another class; test labels are unchanged."""
    split = _mnist(archive)
    # With the plain seed, the rows drawn for training would be the flipped ones.
    rng = np.random.default_rng((0, 1))
    flipped = rng.permutation(len(split.y))[: round(0.15 * len(split.y))]
    split.y = split.y.astype(np.int64)
    split.y[flipped] = (split.y[flipped] + rng.integers(1, 10, len(flipped))) % 10
    return split


def _covtype(archive: Any) -> Split:
    order = np.random.default_rng(0).permutation(len(archive["y"]))
    X, y = archive["X"][order].astype(np.float32), archive["y"][order]
    return standardised(Split(X[TEST_ROWS:], y[TEST_ROWS:], X[:TEST_ROWS], y[:TEST_ROWS]))


def _letter(archive: Any) -> Split:
    X, X_test = (archive[f"X_{part}"].astype(np.float32) for part in ("train", "test"))
    return standardised(Split(X, archive["y_train"], X_test, archive["y_test"]))


@dataclass(frozen=True)
class Set:
    """A data set and the parameters of its models."""

    file: str
    read: Callable[[Any], Split]
    C: float
    gamma: float


SETS = {
    "mnist10": Set("mnist.npz", _mnist, C=10, gamma=0.02),
    "noise1": Set("mnist.npz", _mnist_noise, C=1, gamma=0.02),
    "noise10": Set("mnist.npz", _mnist_noise, C=10, gamma=0.02),
    "covtype": Set("covtype_subset.npz", _covtype, C=3, gamma=0.1),
    "letter": Set("letter.npz", _letter, C=10, gamma=0.1),
}


@dataclass(frozen=True)
class Job:
    """One fit."""

    name: str
    rows: int
    cache: int  # megabytes
    seed: int
    folder: str
    python: str  # the interpreter whose build is measured
    intelex: bool = False  # fit scikit-learn-intelex's SVC instead


def measure(job: Job) -> dict[str, Any]:
    """Fit, and return time, memory and the test error."""
    import memory

    chosen = SETS[job.name]
    split = chosen.read(np.load(Path(job.folder) / chosen.file))
    rows = np.random.default_rng(job.seed).permutation(len(split.y))[: job.rows]
    X, y = np.ascontiguousarray(split.X[rows]), split.y[rows]
    make = intelex if job.intelex else online
    params = {"C": chosen.C, "gamma": chosen.gamma, "cache_size": job.cache}
    model = make(params, threads=1, seed=job.seed)
    began, held = time.process_time(), memory.peak()
    model.fit(X, y)
    seconds, peak = time.process_time() - began, memory.peak() - held
    return {
        "seconds": seconds,
        "error": 100 * (1 - model.score(split.X_test[:TEST_ROWS], split.y_test[:TEST_ROWS])),
        "megabytes": peak / 2**20,
        **({"members": len(model.support_)} if job.intelex else details(model)),
    }


def details(model: Any) -> dict[str, Any]:
    """Return the statistics of an OnlineSVC."""
    dual: NDArray[np.float64] = np.atleast_1d(model.dual_objective())
    stats = model.stats_
    return {
        "finish": stats["finish_seconds"],
        "misses": stats["cache_misses"],
        "evaluations": stats["kernel_evaluations"],
        "members": len(model.ids_),
        "dual": float(dual.sum()),
    }


def run(job: Job) -> dict[str, Any]:
    command = [job.python, __file__, "--worker", json.dumps(asdict(job))]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment(threads=1)
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


Key = tuple[str, str, int]  # build, set, cache
INTELEX = "intelex"


def table(results: dict[Key, list[dict[str, Any]]], largest: int) -> str:
    """Return medians over the rounds, one line per build, set and cache size."""

    def median(key: Key, field: str) -> float:
        return statistics.median(result.get(field, np.nan) for result in results[key])

    lines = [
        "set      build   cache      CPU s   finish    misses  values/1e9  members  error %"
        "           dual      MB  ratio"
    ]
    for key in sorted(results, key=lambda k: (k[1], k[2], k[0])):
        build, name, cache = key
        whole = ("this" if build == INTELEX else build, name, largest)
        ratio = median(key, "seconds") / median(whole, "seconds")
        lines.append(
            f"{name:8s} {build:7s} {cache:5,} {median(key, 'seconds'):10.2f}"
            f" {median(key, 'finish'):8.2f} {median(key, 'misses'):9,.0f}"
            f" {median(key, 'evaluations') / 1e9:11.2f} {median(key, 'members'):8,.0f}"
            f" {median(key, 'error'):8.2f} {median(key, 'dual'):14.3f}"
            f" {median(key, 'megabytes'):7,.0f} {ratio:6.2f}"
        )
    return "\n".join(lines)


def data_folder() -> Path:
    return Path(os.environ.get("MARGINWISE_DATA", HERE.parent.parent / "shared" / "data"))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    add("--rows", type=int, default=30000, help="training rows (default: 30000)")
    add("--cache", nargs="+", type=int, default=[10, 2000], help="values of cache_size, megabytes")
    add("--rounds", type=int, default=1, help="number of rounds, each with its seed")
    add("--against", metavar="PYTHON", help="also measure the build installed for this interpreter")
    add("--intelex", action="store_true", help="also fit scikit-learn-intelex's SVC")
    add("--out", type=Path, help="JSON file to write (default: none)")
    add("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parse()
    if options.worker:
        print(json.dumps(measure(Job(**json.loads(options.worker)))))
        return
    builds = {"this": sys.executable}
    if options.against:
        builds["other"] = options.against
    outcome = report.heading(HERE.parent, [options.data / SETS[name].file for name in options.sets])
    for name in options.sets:
        results: dict[Key, list[dict[str, Any]]] = {}
        for seed in range(options.rounds):
            for cache in options.cache:
                for build, python in builds.items():
                    job = Job(name, options.rows, cache, seed, str(options.data), python)
                    results.setdefault((build, name, cache), []).append(run(job))
            if options.intelex:
                peer = replace(job, cache=CACHE, python=sys.executable, intelex=True)
                results.setdefault((INTELEX, name, CACHE), []).append(run(peer))
        print(table(results, max(options.cache)), flush=True)
        outcome[name] = [
            {"build": build, "cache": cache, "rows": options.rows, "fits": fits}
            for (build, _, cache), fits in results.items()
        ]
        if options.out:
            report.write(options.out, outcome)


if __name__ == "__main__":
    main()
