"""Measure the cost of sharing a model between threads, compared with another build.

    python benchmarks/threads.py                          this build only
    python benchmarks/threads.py --against PYTHON         also the package of another interpreter
    python benchmarks/threads.py --data FOLDER            folder of a9a and MNIST
    python benchmarks/threads.py --quick                  a smoke test

Each round of a build runs in its own process, and the two builds alternate. The table shows CPU
milliseconds of the fastest round, because other work on the machine only adds to them, and the
ratio of the two builds. The last rows show wall times of predictions while another thread trains
the same model.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from datasets import load

RESULT = Path(__file__).parent / "results" / "threads.json"
DATA = Path(__file__).parents[2] / "shared" / "data"
ROUNDS = 9
ROWS = 6000


def data(n: int = ROWS, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 0.3 * rng.normal(size=n)).astype(int)


def measure(quick: bool, folder: Path) -> dict[str, float]:
    """Return CPU seconds of each work in this interpreter."""
    from marginwise import ExactSVC, OnlineSVC

    X, y = data(600 if quick else ROWS)
    found: dict[str, float] = {}

    def cpu(name: str, repeats: int, work: Any) -> None:
        work(0)  # warm the caches
        began = time.process_time()
        for k in range(repeats):
            work(k)
        found[name] = (time.process_time() - began) / repeats

    for name, gamma in (("a9a", 0.005), ("mnist8", 0.005)):
        if (folder / f"{name.rstrip('8')}.npz").exists():
            split = load(name, str(folder), form="csr64" if name == "a9a" else "dense32")
            split.X, split.y = split.X[:10_000], split.y[:10_000]
            real = OnlineSVC(C=100, gamma=gamma, random_state=0)
            cpu(f"fit, 10,000 rows of {name}", 1, lambda _, m=real, s=split: m.fit(s.X, s.y))
            cpu(f"predict, {name}", 1, lambda _, m=real, s=split: m.predict(s.X_test))

    model = OnlineSVC(C=10, gamma=0.1, random_state=0)
    cpu("fit", 3, lambda _: model.fit(X, y))
    cpu("predict, all rows", 10, lambda _: model.predict(X))
    cpu("predict, one row", 1000, lambda k: model.predict(X[k % len(X)][None]))
    cpu("learn_one", 500, lambda k: model.learn_one(X[k] + 0.01, y[k]))
    cpu("partial_fit, 100 rows", 20, lambda k: model.partial_fit(X[:100] + k, y[:100]))
    exact = ExactSVC(C=10, gamma=0.1)
    cpu("exact fit", 1, lambda _: exact.fit(X[:800], y[:800]))
    cpu("exact learn_one", 100, lambda k: exact.learn_one(X[k] + 0.01, y[k]))
    cpu("exact predict, all rows", 3, lambda _: exact.predict(X))
    return found


def waits(quick: bool) -> dict[str, float]:
    """Return the longest and median time of predictions while another thread trains."""
    from marginwise import OnlineSVC

    X, y = data(600 if quick else ROWS)
    found: dict[str, float] = {}
    for rows in (1, 200):
        model = OnlineSVC(C=10, gamma=0.1, random_state=0).fit(X[:2000], y[:2000])
        done = threading.Event()

        def train(model: Any = model, rows: int = rows, done: threading.Event = done) -> None:
            for start in range(0, min(len(X), 400 * rows) - rows, rows):
                model.partial_fit(X[start : start + rows], y[start : start + rows])
            done.set()

        trainer = threading.Thread(target=train)
        trainer.start()
        times = []
        while not done.is_set():
            began = time.perf_counter()
            model.predict(X[:10])
            times.append(time.perf_counter() - began)
        trainer.join()
        name = f"predict of 10 rows beside partial_fit of {rows}"
        found[f"{name}, median"] = statistics.median(times)
        found[f"{name}, longest"] = max(times)
    return found


def in_process(python: str, quick: bool, folder: Path) -> dict[str, float]:
    command = [python, str(Path(__file__).resolve()), "--worker", "--data", str(folder)]
    # Waiting threads of BLAS spin, which would count as CPU time.
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command += ["--quick"] if quick else []
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    values: dict[str, float] = json.loads(done.stdout)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="PYTHON", help="interpreter with another build")
    given = os.environ.get("MARGINWISE_DATA", DATA)
    parser.add_argument("--data", type=Path, default=Path(given), help="folder of the data files")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.quick, options.data)))
        return
    import report

    builds = {"this": sys.executable, **({"other": options.against} if options.against else {})}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in builds}
    for _ in range(1 if options.quick else ROUNDS):
        for name, python in builds.items():
            rounds[name].append(in_process(python, options.quick, options.data))
    fastest = {
        name: {work: min(r[work] for r in found) for work in found[0]}
        for name, found in rounds.items()
    }
    waiting = waits(options.quick)
    for work, seconds in fastest["this"].items():
        other = fastest.get("other", {}).get(work)
        ratio = "" if other is None else f"{1e3 * other:12.3f} ms {seconds / other:8.3f}"
        print(f"{work:28} {1e3 * seconds:12.3f} ms {ratio}")
    for work, seconds in waiting.items():
        print(f"{work:56} {1e3 * seconds:8.2f} ms")
    if not options.quick:
        facts = {"machine": report.machine(), "versions": report.versions()}
        facts |= report.commit(Path(__file__).parents[1])
        report.write(RESULT, {**facts, "rounds": rounds, "fastest": fastest, "waits": waiting})


if __name__ == "__main__":
    main()
