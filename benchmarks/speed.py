"""Compare the speed of OnlineSVC with the SVCs of scikit-learn and scikit-learn-intelex.

    python benchmarks/speed.py                          all rows
    python benchmarks/speed.py --only mnist8 learn_one  some rows
    python benchmarks/speed.py --quick                  a smoke test on small parts of the data

The contestants alternate, round by round. Each measurement runs in its own process, so that threads
and memory are not shared. Ratios are those of median wall times on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import report
from contestants import environment, has_intelex
from works import WORKS, Job, Measurement, Results, Work

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
PEERS = ("SVC", "intelex", "Nystroem")
SLOW_PEER = 60.0  # seconds after which a peer is not run again


def main(rows: list[Work] = WORKS, about: str | None = __doc__, name: str = "speed") -> None:
    """Measure rows; `about` describes the script, `name` names the JSON file."""
    options = parse(rows, about, name)
    if options.worker:
        work_for_parent()
        return
    works = [w for w in rows if not options.only or w.name in options.only]
    folder = data_folder(options) if any(w.data for w in works) else HERE
    outcome = new_report(works, folder, options)
    if options.quick:
        print("A smoke test on small parts of the data: its figures say nothing about the targets.")
    for work in works:
        print(f"\n{work.name}: {work.title}", flush=True)
        results = run(work, folder, options)
        judgements = report.judged(work, results)
        races = any(job.task == "fit" for job in work.jobs)
        print(report.fits(results) if races else report.details(results), flush=True)
        outcome["works"][work.name] = {"title": work.title, "measurements": results}
        outcome["figures"] += judgements
        report.write(options.out, outcome)
    print("\n" + report.verdicts(outcome["figures"]))
    print(f"\nwritten to {os.path.relpath(options.out)}")
    if any("failed" in m for work in outcome["works"].values() for m in measurements(work)):
        sys.exit("Some measurements failed; see above.")


def parse(rows: list[Work], about: str | None, name: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, help="folder of the data files (default: $MARGINWISE_DATA)")
    add("--out", type=Path, help=f"JSON file to write (default: results/{name}.json or quick.json)")
    names = [work.name for work in rows]
    add("--only", nargs="+", choices=names, metavar="ROW", help=f"rows to run: {', '.join(names)}")
    add(
        "--rounds",
        "--seeds",
        type=int,
        help="rounds of each row (default: by row, mostly 3; 1 with --quick)",
    )
    add("--peer-rounds", type=int, help=f"rounds of peers, even of fits over {SLOW_PEER:.0f} s")
    add("--threads", nargs="+", type=int, default=[1, 2], help="numbers of threads (default: 1 2)")
    add("--no-svc", action="store_true", help="exclude scikit-learn's SVC")
    add("--no-intelex", action="store_true", help="exclude scikit-learn-intelex")
    add("--quick", action="store_true", help="a smoke test on small parts of the data")
    add("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(here=False)
    options = parser.parse_args()
    if options.out is None:
        options.out = HERE / "results" / ("quick.json" if options.quick else f"{name}.json")
    return options


def data_folder(options: argparse.Namespace) -> Path:
    """Return the data folder, or exit with a message on how to name it."""
    given = options.data or os.environ.get("MARGINWISE_DATA")
    folder = Path(given) if given else REPOSITORY.parent / "shared" / "data"
    if folder.is_dir():
        return folder.resolve()
    sys.exit(
        f"There is no folder {folder}: name the one that holds mnist.npz, a9a.npz and the others "
        "with --data or in MARGINWISE_DATA."
    )


def new_report(works: list[Work], folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    from datasets import files_of, sha256

    files = files_of(name for work in works for name in work.data)
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        sys.exit(f"The data folder lacks {', '.join(missing)}; --only ROW runs rows without them.")
    return {
        "quick": options.quick,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": report.machine(),
        "versions": report.versions(),
        **report.commit(REPOSITORY),
        "data": {file: sha256(folder / file) for file in files},
        "works": {},
        "figures": [],
    }


def measurements(work: dict[str, Any]) -> Iterator[Measurement]:
    for of_a_job in work["measurements"].values():
        yield from of_a_job


# -- running -------------------------------------------------------------------------------------


def jobs_of(work: Work, options: argparse.Namespace) -> Iterator[Job]:
    """Yield the jobs of a row that are installed and not excluded, one per number of threads."""
    for job in work.jobs:
        if job.contestant == "SVC" and options.no_svc:
            continue
        if job.contestant == "intelex" and (options.no_intelex or not has_intelex()):
            continue
        for threads in options.threads if job.threads is None else [job.threads]:
            yield replace(job, threads=threads)


def run(work: Work, folder: Path, options: argparse.Namespace) -> Results:
    """Alternate the jobs of a row; each round has its seed."""
    rounds = options.rounds or (1 if options.quick else work.rounds)
    jobs = list(jobs_of(work, options))
    results = Results({job.key: [] for job in jobs})
    for seed in range(rounds):
        for job in jobs:
            if due(job, seed, results[job.key], options):
                measurement = measure(job, seed, folder, options)
                results[job.key].append(measurement)
                progress(f"round {seed + 1} of {rounds}, {job.key}: {summary(measurement)}")
    return results


def due(job: Job, done: int, so_far: list[Measurement], options: argparse.Namespace) -> bool:
    """Return whether a job runs in another round; slow peers run once without --peer-rounds."""
    if job.contestant not in PEERS:
        return True
    if options.peer_rounds is not None:
        return bool(done < options.peer_rounds)
    return all(m.get("fit", {}).get("wall", 0.0) <= SLOW_PEER for m in so_far)


def summary(measurement: Measurement) -> str:
    if "failed" in measurement:
        return f"failed: {measurement['failed']}"
    if "fit" in measurement:
        return f"{measurement['fit']['wall']:.3g} s, error {measurement['error']:.3f} %"
    return "done"


def progress(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)


def measure(job: Job, seed: int, folder: Path, options: argparse.Namespace) -> Measurement:
    """Run a job in a new process, or in this one; add the load before and after."""
    threads = job.threads or 1
    setting = {"folder": str(folder), "seed": seed, "threads": threads, "quick": options.quick}
    request = {"task": job.task, "setting": setting, "options": job.options}
    before = load()
    answer = perform(**request) if options.here else ask_worker(request, threads)
    return {**answer, "seed": seed, "load": {"before": before, "after": load()}}


def ask_worker(request: dict[str, Any], threads: int, script: str = __file__) -> Measurement:
    """Run a job in a new process of a script."""
    done = subprocess.run(
        [sys.executable, str(Path(script).resolve()), "--worker"],
        input=json.dumps(request),
        env=environment(threads),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {"failed": reason[-1]}
    answer: Measurement = json.loads(done.stdout.splitlines()[-1])
    return answer


def load() -> list[float] | None:
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None


def work_for_parent() -> None:
    """Read a job from stdin, run it, and write its result to stdout."""
    print(json.dumps(perform(**json.load(sys.stdin))))


def perform(task: str, setting: dict[str, Any], options: dict[str, Any]) -> Measurement:
    import asking
    import tasks

    known = {**tasks.TASKS, **asking.TASKS}
    return known[task](tasks.Setting(**setting), **options)


if __name__ == "__main__":
    main()
