"""Time ImageDeformer: variants of images per second.

    python benchmarks/deform.py              digits and colour images, on one thread and on two
    python benchmarks/deform.py --resume     keep the stored rounds, and add what is missing
    python benchmarks/deform.py --quick      a smoke test on few images

Deformations have strength 2 and shifts of 1 pixel. The images are noise, because the cost does not
depend on their content. The contestants alternate, round by round, in one process. If other
programs run, the rate per CPU second on one thread is more reliable than that per second.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import report
import speed
from works import Check, Job, Measurement, Results, Work

from marginwise.invariance import ImageDeformer, Originals

IMAGES = 20_000  # more than the processor's caches hold
TOGETHER = 16_384  # variants per call, as in training
ROUNDS, CALLS = 15, 4
QUICK = 500
TARGET = 150_000  # per second, on one thread

GRAY, COLOUR = (28, 28), (32, 32, 3)
SETTINGS: dict[str, dict[str, Any]] = {
    "28 x 28": {"shape": GRAY, "thickening": 0.0},
    "28 x 28, thickening": {"shape": GRAY, "thickening": 1.0},
    "32 x 32 x 3": {"shape": COLOUR, "thickening": 0.0},
    "32 x 32 x 3, thickening": {"shape": COLOUR, "thickening": 1.0},
}
JOBS = [Job(name, "deform", SETTINGS[name], threads) for name in SETTINGS for threads in (1, 2)]


def rate(name: str, target: float | None = None, clock: str = "wall", threads: int = 1) -> Check:
    def measure(results: Results) -> float | None:
        return results.median(Job(name, "deform", {}, threads).key, clock)

    of = {"wall": "a second", "cpu": "a second of processor time"}[clock]
    on = "one thread" if threads == 1 else f"{threads} threads"
    return Check(f"{name}: images {of}, {on}", measure, "≥", target, "{:,.0f}")


WORK = Work(
    "deform",
    "images that ImageDeformer.write makes in a second",
    JOBS,
    [
        rate("28 x 28", TARGET),
        rate("28 x 28", clock="cpu"),
        rate("28 x 28", threads=2),
        rate("28 x 28, thickening", TARGET),
        rate("28 x 28, thickening", clock="cpu"),
        rate("32 x 32 x 3"),
    ],
    rounds=ROUNDS,
)


def prepared(*, quick: bool) -> dict[tuple[int, ...], Originals]:
    """Return images of each shape with their tangents."""
    rng, n = np.random.default_rng(0), QUICK if quick else IMAGES
    return {
        shape: ImageDeformer(shape).prepare(rng.random((n, int(np.prod(shape))), dtype=np.float32))
        for shape in (GRAY, COLOUR)
    }


def measure(
    deformer: ImageDeformer, originals: Originals, seed: int, *, quick: bool
) -> Measurement:
    """Time some calls, after one that draws the fields and touches the memory."""
    rng, n = np.random.default_rng(seed), QUICK if quick else TOGETHER
    examples = rng.integers(len(originals), size=n)
    out = np.empty((n, originals.images.shape[1]), dtype=np.float32)
    deformer.write(originals, examples, np.ones(n, dtype=np.int64), out)
    before = speed.load()
    wall, cpu = time.perf_counter(), time.process_time()
    for call in range(CALLS):
        deformer.write(originals, examples, np.full(n, call + 2), out)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    made = CALLS * n
    return {"wall": made / wall, "cpu": made / cpu, "seed": seed, "load": before}


def run(results: Results, rounds: int, *, quick: bool) -> None:
    """Alternate the jobs until each has its rounds."""
    originals = prepared(quick=quick)
    deformers = {
        job.key: ImageDeformer(**job.options, strength=2.0, shift=1, n_jobs=job.threads)
        for job in JOBS
    }
    for seed in range(rounds):
        for job in JOBS:
            done = results.setdefault(job.key, [])
            if len(done) > seed:
                continue
            images = originals[job.options["shape"]]
            done.append(measure(deformers[job.key], images, seed, quick=quick))
            speed.progress(f"round {seed + 1} of {rounds}, {job.key}: {done[-1]['wall']:,.0f}")


def shown(results: Results) -> str:
    rows = []
    for key in results:
        wall, cpu = sorted(results.take(key, "wall")), results.take(key, "cpu")
        rows.append(
            [
                key,
                f"{statistics.median(wall):,.0f}",
                f"{wall[0]:,.0f} to {wall[-1]:,.0f}",
                f"{statistics.median(cpu):,.0f}",
            ]
        )
    return report.table(("", "a second", "range", "a second of processor time"), rows)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, help="JSON file to write (default: results/deform.json or quick.json)")
    add("--rounds", "--seeds", type=int, help=f"rounds (default: {ROUNDS}; 1 with --quick)")
    add("--resume", action="store_true", help="keep the rounds stored in the JSON, of any commit")
    add("--quick", action="store_true", help="a smoke test on few images")
    options = parser.parse_args()
    name = "quick" if options.quick else WORK.name
    options.out = options.out or speed.HERE / "results" / f"{name}.json"
    return options


def main() -> None:
    options = parse()
    outcome = speed.new_report([WORK], speed.HERE, options)
    results = Results(early(options.out) if options.resume else {})
    if options.quick:
        print("A smoke test on few images: its figures say nothing about the targets.")
    run(results, options.rounds or (1 if options.quick else ROUNDS), quick=options.quick)
    outcome["works"][WORK.name] = {"title": WORK.title, "measurements": results}
    outcome["figures"] = report.judged(WORK, results)
    report.write(options.out, outcome)
    print(f"{WORK.title}\n\n{shown(results)}\n\n{report.verdicts(outcome['figures'])}")
    print(f"\nwritten to {os.path.relpath(options.out)}")


def early(path: Path) -> dict[str, list[Measurement]]:
    """Return the rounds stored in a report of this benchmark."""
    if not path.is_file():
        return {}
    works = json.loads(path.read_text(encoding="utf-8"))["works"]
    found: dict[str, list[Measurement]] = works.get(WORK.name, {}).get("measurements", {})
    return found


if __name__ == "__main__":
    main()
