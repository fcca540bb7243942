"""Repeat the tables and figures of the papers, and compare them with the printed values.

    python -m reproduce                                list the experiments
    python -m reproduce bordes2005/figure10            run one
    python -m reproduce bordes2005 usunier2010         run those of two papers
    python -m reproduce all --quick                    smoke tests on small parts of the data

Results are stored as they are measured: an interrupted run continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reproduce import registry, rows
from reproduce.experiment import Experiment, Results
from reproduce.runner import INSTALL, CannotRunError, Options, run
from reproduce.store import DamagedResultsError, path_of, stored

SMOKE = "Smoke test on a small part of the data: these figures say nothing about the paper."


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    made = argparse.ArgumentParser(
        prog="python -m reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("names", nargs="*", metavar="NAME", help="all, a paper, or paper/experiment")
    add("--quick", action="store_true", help="smoke test on small data; results go to build/quick")
    add("--seeds", type=int, metavar="N", help="number of seeds (default: the experiment's)")
    add("--only", nargs="+", default=(), metavar="CASE", help="run only these cases")
    add("--fresh", action="store_true", help="measure stored results again")
    add("--data", type=Path, help="folder of the data files (default: $MARGINWISE_DATA)")
    add("--out", type=Path, help="folder of the results (default: reproduce/results)")
    add("--plot", type=Path, metavar="FOLDER", help="also draw the figures into a folder")
    add("--json", action="store_true", help="list the experiments as JSON")
    add("--quiet", "-q", action="store_true", help="show no progress bar")
    return made


def main(given: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    options = parser().parse_args(given)
    if options.seeds is not None and options.seeds < 1:
        parser().error("--seeds must be at least 1.")
    if not options.names:
        if any((options.quick, options.seeds, options.only, options.fresh, options.plot)):
            parser().error("name the experiments to run, for example all or bordes2005/figure10.")
        print(json.dumps(states(options.data)) if options.json else listing(options.data))
        return 0
    if options.json:
        parser().error("--json lists the experiments; a run stores its results as JSON files.")
    if options.plot:
        check_plot(options.plot)
    how = Options(
        options.data,
        options.out,
        options.seeds,
        tuple(options.only),
        options.quick,
        options.fresh,
        show_bar=not options.quiet,
    )
    try:
        chosen = registry.select(options.names)
    except LookupError as problem:
        print(f"error: {problem.args[0]}", file=sys.stderr)
        return 2
    try:
        return run_all(chosen, how, options.plot)
    except KeyboardInterrupt:
        print("interrupted: what was measured is stored; run again to continue.", file=sys.stderr)
        return 130


def check_plot(folder: Path) -> None:
    """Exit with a message unless pictures can be drawn into a folder."""
    if find_spec("matplotlib") is None:
        parser().error(f"--plot needs matplotlib: {INSTALL}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        parser().error(f"--plot {folder} cannot be written: {problem}.")


def run_all(names: list[str], options: Options, plot: Path | None) -> int:
    """Run experiments one after the other; those that cannot be run do not stop the others."""
    unable = 0
    for name in names:
        try:
            results = run(name, options)
        except CannotRunError as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            unable += 1
            continue
        experiment = registry.load(name)
        path = path_of(registry.measured(name), quick=options.quick, out=options.out)
        print("\n".join(report(name, experiment, results, quick=options.quick)))
        print(f"stored in {path}\n", flush=True)
        if plot is not None and experiment.draw is not None:
            from reproduce.drawing import save

            save(experiment, results, plot / f"{name.replace('/', '-')}.png")
    return 1 if unable else 0


def report(name: str, experiment: Experiment, results: Results, *, quick: bool) -> list[str]:
    """Return the report of an experiment: tables, and verdicts unless it is a smoke test."""
    text = [f"{name}: {experiment.what}. {experiment.title}", *([SMOKE] if quick else [])]
    for table in experiment.tables(results):
        text += ["", *rows.lines(table)]
    for claim in [] if quick else experiment.claims(results):
        text += ["", f"{claim.verdict}: {claim.claim} ({claim.place})"]
        text += [f"  paper: {claim.theirs}", f"  here:  {claim.ours}"]
        text += [f"  {claim.reason}"] if claim.reason else []
    return [*text, ""]


def state(name: str, folder: Path | None) -> dict[str, Any]:
    """Return the files that an experiment lacks, and the number of its stored cases."""
    experiment, source = registry.load(name), registry.load(registry.measured(name))
    cases = source.cases(False) if source.cases else {}
    needed = source.all_files(cases.values())
    lacking = [file for file in needed if folder is None or not (folder / file).is_file()]
    try:
        results = stored(registry.measured(name))
        due = {case: source.seeds_of(settings, None) for case, settings in cases.items()}
        done = sum(min(results.seeds(case), count) for case, count in due.items())
        done = f"{done} of {sum(due.values())} runs"
    except DamagedResultsError:
        done = "unreadable results"
    return {
        "what": experiment.what,
        "title": experiment.title,
        "lacking": lacking,
        "stored": done,
    }


def states(data: Path | None) -> dict[str, dict[str, Any]]:
    """Return the state of every experiment by name."""
    from reproduce.data import data_folder

    folder = data_folder(data)
    return {name: state(name, folder) for name in registry.names()}


def listing(data: Path | None) -> str:
    """Return the list of experiments by paper."""
    text, paper = [], ""
    for name, found in states(data).items():
        if name.partition("/")[0] != paper:
            paper = name.partition("/")[0]
            text += ["", f"{paper}: {registry.paper(paper).citation}"]
        lacking = ", ".join(found["lacking"])
        has = f"lacks {lacking}" if lacking else "data available"
        text += [f"  {name}  {found['what']}. {found['title']}"]
        text += [f"      {has}; {found['stored']} stored"]
    return "\n".join([*text[1:], "", "Where the data come from: python -m reproduce.data --list"])
