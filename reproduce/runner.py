"""Run experiments: skip stored runs, and store each new run as soon as it is measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from reproduce import registry
from reproduce.experiment import Case, Experiment, Results
from reproduce.store import DamagedResultsError, Store, load_average, path_of

INSTALL = "pip install 'marginwise[reproduce]' installs it."


@dataclass(frozen=True)
class Options:
    """How experiments are run; see `python -m reproduce --help`."""

    data: Path | None = None
    out: Path | None = None
    seeds: int | None = None
    only: tuple[str, ...] = ()
    quick: bool = False
    fresh: bool = False
    show_bar: bool = True


class CannotRunError(Exception):
    """An experiment cannot be run; the message says why and what to do."""


@cache
def _digest(path: Path) -> str:
    from reproduce import data

    try:
        return data.digest(data.read(path))[:16]
    except data.DamagedError as error:
        source = data.BY_FILE.get(path.name)
        only = f" --only {source.name}" if source else ""
        raise CannotRunError(
            f"{path} cannot be read: {error}. Make it again with `python -m reproduce.data "
            f"--originals FOLDER --data {path.parent} --force{only}` (`--help` shows how)."
        ) from error


def _folder(options: Options, files: list[str]) -> Path:
    """Return the data folder; raise CannotRunError if it lacks a file."""
    from reproduce import data

    folder = data.data_folder(options.data)
    if not files:
        return folder or Path()
    if folder is None:
        raise CannotRunError(
            f"{', '.join(files)} must be in a data folder: name it by --data or MARGINWISE_DATA. "
            "This makes the files in the folder data from the public originals:\n"
            "  python -m reproduce.data --originals originals --download --data data --only "
            + " ".join(data.BY_FILE[file].name for file in files if file in data.BY_FILE)
        )
    lacking = data.missing(files, folder)
    if lacking:
        raise CannotRunError(lacking)
    return folder


def _cases(name: str, experiment: Experiment, options: Options) -> dict[str, Case]:
    """Return the cases to run, each with its name."""
    if experiment.cases is None:
        raise CannotRunError(f"{name} defines no cases.")
    known = experiment.cases(options.quick)
    unknown = [case for case in options.only if case not in known]
    if unknown:
        expected = ", ".join(map(repr, known))
        raise CannotRunError(f"{name} has no case {unknown[0]!r}; expected {expected}.")
    chosen = options.only or tuple(known)
    return {case: {**known[case], "name": case} for case in chosen}


def _settings(experiment: Experiment, case: Case, folder: Path, quick: bool) -> dict[str, Any]:
    """Return everything except the code that the results of a case depend on."""
    kept = {key: value for key, value in case.items() if key not in ("name", "seeds", "files")}
    files = {file: _digest(folder / file) for file in experiment.files_of(case)}
    return {**kept, "quick": quick, "version": experiment.version, "data": files}


def _measure(
    experiment: Experiment, case: Case, seed: int, folder: Path, quick: bool
) -> dict[str, Any]:
    """Run a case on one thread, timed."""
    from threadpoolctl import threadpool_limits

    assert experiment.run is not None
    before, wall, cpu = load_average(), time.perf_counter(), time.process_time()
    try:
        with threadpool_limits(1):
            values = experiment.run(case, seed, folder, quick)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("reproduce", "benchmarks", "marginwise"):
            raise
        raise CannotRunError(f"it needs {package}: {INSTALL}") from error
    except KeyError as error:
        if "is not a file in the archive" not in str(error):
            raise
        files = ", ".join(experiment.files_of(case))
        raise CannotRunError(
            f"{files} in {folder} has other arrays than the file of the published results "
            f"({error.args[0]}). `python -m reproduce.data --list` compares the files."
        ) from error
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return {**values, "total": {**seconds, "load": before}}


def _turns(experiment: Experiment, cases: dict[str, Case], options: Options) -> Iterator[Any]:
    """Alternate the cases, seed by seed, so that changes of the machine affect all alike."""
    counts = {
        name: experiment.seeds_of(case, options.seeds or (1 if options.quick else None))
        for name, case in cases.items()
    }
    for seed in range(max(counts.values(), default=0)):
        for name, case in cases.items():
            if seed < counts[name]:
                yield case, seed


def run(name: str, options: Options) -> Results:
    """Measure the missing runs of an experiment, and return its results."""
    source = registry.measured(name)
    experiment = registry.load(source)
    cases = _cases(source, experiment, options)
    folder = _folder(options, experiment.all_files(cases.values()))
    store = _store(path_of(source, quick=options.quick, out=options.out), experiment.version)
    due = []
    for case, seed in _turns(experiment, cases, options):
        settings = _settings(experiment, case, folder, options.quick)
        if options.fresh or not store.holds(case["name"], settings, seed):
            due.append((case, seed, settings))
    if due:
        _write(store, store.check_writable)
    with _bar(source, len(due), options.show_bar) as bar:
        for case, seed, settings in due:
            bar.set_postfix_str(f"{case['name']}, seed {seed}")
            values = _measure(experiment, case, seed, folder, options.quick)
            _write(store, partial(store.add, case["name"], settings, seed, values))
            bar.update()
    return store.results()


def _write(store: Store, action: Callable[[], None]) -> None:
    try:
        action()
    except OSError as error:
        raise CannotRunError(
            f"{store.path} cannot be written: {error}. Name another folder with --out."
        ) from error


def _store(path: Path, version: int) -> Store:
    """Open stored results; raise CannotRunError if they are damaged or newer than this checkout."""
    try:
        store = Store(path)
    except DamagedResultsError as error:
        raise CannotRunError(str(error)) from error
    cases = store.content["cases"].values()
    newest = max((case["settings"].get("version", 0) for case in cases), default=0)
    if newest > version:
        raise CannotRunError(
            f"{path} has results of version {newest} of this experiment, and this checkout has "
            f"version {version}: update it, or name another folder with --out."
        )
    return store


def _bar(name: str, total: int, show: bool) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, desc=name, unit="run", file=sys.stderr, disable=not show or not total)
