"""Reproduce section 4 of "Fast Kernel Classifiers" [bordes2005]: choosing what to learn.

    python reproduce/bordes2005_selection.py                        all rows
    python reproduce/bordes2005_selection.py --only reuters-500     one of them
    python reproduce/bordes2005_selection.py --resume               go on with a stopped run
    python reproduce/bordes2005_selection.py --quick                a smoke test

adult (figures 11 and 12): noisy data, the ways to select against all rows at random.
mnist-noise (figures 14 and 15): a tenth of the training labels is wrong.
reuters-500 (figure 16): 500 labels, by LASVM steps and by fitting anew after each.

The contestants take turns, seed by seed, each in a process of its own on one thread. SVC on the
whole data is fitted once and kept in the JSON: only its error and its support vectors count.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import speed
from bordes2005_rows import WORKS, references
from datasets import files_of
from report import fits, judged, verdicts
from works import Job, Measurement, Results, Work

BY_NAME = {work.name: work for work in WORKS}


# -- measuring -------------------------------------------------------------------------------------


def measure_row(name: str, folder: Path, options: argparse.Namespace) -> Results:
    """Let the jobs of a row take turns; a row of which one has failed is none."""
    common.progress(f"{name}: {BY_NAME[name].title}")
    results = speed.run(BY_NAME[name], folder, options)
    failed = [m["failed"] for measured in results.values() for m in measured if "failed" in m]
    if failed:
        sys.exit(f"{name}: a measurement failed: {failed[0]}")
    return results


def measure_reference(job: Job, folder: Path, options: argparse.Namespace) -> list[Measurement]:
    common.progress(f"{job.key}: fitted once")
    measured = speed.measure(job, 0, folder, options)
    if "failed" in measured:
        sys.exit(f"{job.key}: the measurement failed: {measured['failed']}")
    common.progress(f"{job.key}: {speed.summary(measured)}")
    return [measured]


def with_references(
    work: Work, report: common.Report, folder: Path, options: argparse.Namespace
) -> Results:
    """Return the measurements of a row and those that it is compared with."""
    results = Results(report.sets[work.name]["measurements"])
    for job in references(work.name, svc=not options.no_svc):
        settings = {
            **settings_of_jobs([job], work, folder, options),
            "scikit-learn": version("scikit-learn"),
        }
        measure = partial(measure_reference, job, folder, options)
        results[job.key] = report.once(f"{work.name}: {job.key}", settings, measure)
    return results


# -- settings: what the figures depend on, beside the code -----------------------------------------


def settings_of_jobs(
    jobs: list[Job], work: Work, folder: Path, options: argparse.Namespace
) -> dict[str, Any]:
    return {
        "quick": options.quick,
        "jobs": {job.key: {"task": job.task, **job.options} for job in jobs},
        "data": {file: common.digest(folder / file) for file in files_of(work.data)},
    }


def settings_of(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    work = BY_NAME[name]
    seeds = options.rounds or (1 if options.quick else work.rounds)
    return {"seeds": seeds, **settings_of_jobs(work.jobs, work, folder, options)}


# -- the command -----------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_options(parser, __file__)
    add, names = parser.add_argument, ", ".join(BY_NAME)
    defaults = ", ".join(f"{work.name} {work.rounds}" for work in WORKS)
    add("--only", nargs="+", choices=BY_NAME, metavar="ROW", help=f"rows: {names}")
    add("--seeds", dest="rounds", type=int, help=f"seeds of each row (default: {defaults})")
    add("--no-svc", action="store_true", help="compare with no SVC that takes minutes to fit")
    options = parser.parse_args()
    options.here = options.quick  # where times do not matter, processes only take theirs
    return options


def show(rows: dict[str, Results], out: Path, *, quick: bool) -> None:
    if quick:
        print("A smoke test on small parts of the data: its figures say nothing about the paper.\n")
    for name, results in rows.items():
        print(f"{name}: {BY_NAME[name].title}\n{fits(results)}\n")
    figures = [figure for name, found in rows.items() for figure in judged(BY_NAME[name], found)]
    print(f"{verdicts(figures)}\n\nwritten to {os.path.relpath(out)}")


def main() -> None:
    options = parse()
    folder, out = common.data_folder(options), common.out_path(options, __file__)
    works = [work for work in WORKS if not options.only or work.name in options.only]
    common.check_files(folder, files_of(name for work in works for name in work.data))
    report = common.Report(out)
    given = {"folder": folder, "options": options}
    common.measure_sets(
        report,
        [work.name for work in works],
        partial(settings_of, **given),
        partial(measure_row, **given),
        resume=options.resume,
    )
    rows = {work.name: with_references(work, report, **given) for work in works}
    show(rows, out, quick=options.quick)


if __name__ == "__main__":
    main()
