"""What the reproductions share: the data folder, and reports that a later run can take up.

Facts about the machine, tables and the reading of files are those of the benchmarks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Behind the folder of the script, before the installed packages.
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import report
from datasets import sha256
from report import table
from speed import data_folder, progress
from threadpoolctl import threadpool_limits

__all__ = [
    "Report",
    "add_options",
    "check_files",
    "data_folder",
    "digest",
    "measure_sets",
    "measured",
    "out_path",
    "progress",
    "table",
]

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "reproduce" / "results"

digest = cache(sha256)


def add_options(parser: argparse.ArgumentParser, script: str) -> None:
    """Add the options of every reproduction."""
    add = parser.add_argument
    add("--data", type=Path, help="folder of the data files (default: $MARGINWISE_DATA)")
    add(
        "--out",
        type=Path,
        help=f"where JSON is written (default: results/{Path(script).stem}.json)",
    )
    add("--resume", action="store_true", help="skip what is in the JSON with the same settings")
    add("--quick", action="store_true", help="a smoke test on small parts of the data")


def out_path(options: argparse.Namespace, script: str) -> Path:
    """Return where the report goes; that of a smoke test never replaces a real one."""
    name = Path(script).stem + ("-quick" if options.quick else "")
    return Path(options.out or RESULTS / f"{name}.json")


def check_files(folder: Path, files: Iterable[str]) -> None:
    """Leave, and name the files that the data folder lacks."""
    missing = sorted({file for file in files if not (folder / file).is_file()})
    if missing:
        sys.exit(f"The data folder lacks {', '.join(missing)}; --only SET runs sets without them.")


class Report:
    """Measurements by data set, each with its settings and how it was made.

    The file is written after each set. Sets that it held before stay until they are measured anew.
    """

    def __init__(self, path: Path, *packages: str) -> None:
        self.path = path
        self.made = {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": report.machine(),
            "versions": report.versions() | {name: version(name) for name in packages},
            **report.commit(REPOSITORY),
        }
        self.sets: dict[str, dict[str, Any]] = {}
        if path.is_file():
            self.sets = json.loads(path.read_text(encoding="utf-8"))["sets"]

    def holds(self, name: str, settings: dict[str, Any]) -> bool:
        """Tell whether a set was measured with these settings, at whatever commit."""
        return name in self.sets and self.sets[name]["settings"] == settings

    def add(self, name: str, settings: dict[str, Any], measurements: Any) -> None:
        """Take the measurements of a set in, and write the file."""
        self.sets[name] = {"settings": settings, "made": self.made, "measurements": measurements}
        report.write(self.path, {"sets": self.sets})

    def once(self, name: str, settings: dict[str, Any], measure: Callable[[], Any]) -> Any:
        """Return measurements that need no repetition: those of an earlier run will do."""
        if not self.holds(name, settings):
            self.add(name, settings, measure())
        return self.sets[name]["measurements"]


def measured(
    script: str,
    options: argparse.Namespace,
    known: Iterable[str],
    files: Callable[[str], Iterable[str]],
    settings_of: Callable[..., dict[str, Any]],
    measure: Callable[..., Any],
) -> tuple[Report, list[str], dict[str, Any]]:
    """Measure those of the known sets that ``--only`` names.

    Returns the report, the names, and what `settings_of` and `measure` were given beside a name:
    the data folder and the options.
    """
    folder = data_folder(options)
    names = [name for name in known if not options.only or name in options.only]
    check_files(folder, (file for name in names for file in files(name)))
    sets = Report(out_path(options, script))
    given: dict[str, Any] = {"folder": folder, "options": options}
    measure_sets(
        sets,
        names,
        partial(settings_of, **given),
        partial(measure, **given),
        resume=options.resume,
    )
    if options.quick:
        print("A smoke test on small parts of the data: its figures say nothing about the paper.\n")
    return sets, names, given


def measure_sets(
    sets: Report,
    names: Iterable[str],
    settings_of: Callable[[str], dict[str, Any]],
    measure: Callable[[str], Any],
    *,
    resume: bool,
) -> None:
    """Measure one set after the other on one thread; to resume is to skip those at hand."""
    for name in names:
        settings = settings_of(name)
        if resume and sets.holds(name, settings):
            progress(f"{name}: measured before")
            continue
        with threadpool_limits(1):
            sets.add(name, settings, measure(name))
