"""Results on disk: one JSON file per experiment, written after every run of a case."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from reproduce.experiment import Results, Values

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "reproduce" / "results"
QUICK_RESULTS = REPOSITORY / "build" / "quick"  # smoke tests never replace real results
PACKAGES = ("marginwise", "numpy", "scipy", "scikit-learn", "imbalanced-learn")
DIGITS = 6  # significant digits of stored values


# -- how results were made -----------------------------------------------------------------------


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def load_average() -> float | None:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


@cache
def circumstances() -> dict[str, Any]:
    """Return the machine, the versions and the commit."""
    found = {name: release for name in PACKAGES if (release := _version(name))}
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "python": platform.python_version(),
        **found,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


# -- content -------------------------------------------------------------------------------------


def rounded(value: Any) -> Any:
    """Convert a value for JSON, with floats rounded to DIGITS significant digits."""
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        value = value.tolist()
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {str(name): rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


class DamagedResultsError(ValueError):
    """A file of results cannot be read."""


def _load(path: Path) -> dict[str, Any]:
    """Return the content of a file; raise DamagedResultsError if no `Store` wrote it."""
    if not path.is_file():
        return {"made": [], "cases": {}}
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        valid = isinstance(content["made"], list) and all(
            isinstance(case["settings"].get("version", 0), int)
            and all(isinstance(run, dict) and int(seed) >= 0 for seed, run in case["runs"].items())
            for case in content["cases"].values()
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DamagedResultsError(_damage(path, f"{type(error).__name__}: {error}")) from error
    if not valid:
        raise DamagedResultsError(_damage(path, "its runs are not those of cases and seeds"))
    return content


def _damage(path: Path, reason: str) -> str:
    return f"{path} cannot be read ({reason}). Restore it with git, or delete it to measure again."


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the files of a folder against changes by other processes, if the system can."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class Store:
    """The results of one experiment: runs by case and seed, each with its settings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = _load(path)

    def check_writable(self) -> None:
        """Raise OSError if results cannot be written, before anything is measured."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=self.path.parent) as file:
            file.write(b" " * (len(_compact(self.content)) + 4096))

    def holds(self, case: str, settings: dict[str, Any], seed: int) -> bool:
        """Return whether a run with these settings is stored."""
        stored = self.content["cases"].get(case)
        return (
            stored is not None
            and stored["settings"] == rounded(settings)
            and str(seed) in stored["runs"]
        )

    def add(self, case: str, settings: dict[str, Any], seed: int, values: Values) -> None:
        """Store a run; drop runs of the case with other settings, keep those of other processes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.path.parent):
            self.content = _load(self.path)
            self._insert(case, rounded(settings), seed, values)
            self._write()

    def _insert(self, case: str, settings: dict[str, Any], seed: int, values: Values) -> None:
        made = circumstances()
        if made not in self.content["made"]:
            self.content["made"].append(made)
        stored = self.content["cases"].setdefault(case, {"settings": None, "runs": {}})
        if stored["settings"] != settings:
            stored |= {"settings": settings, "runs": {}}
        values = {**values, "made": self.content["made"].index(made)}
        stored["runs"][str(seed)] = rounded(values)

    def results(self) -> Results:
        """Return everything that is stored, by case and in the order of the seeds."""
        cases = self.content["cases"]
        return Results(
            {
                case: [runs[seed] for seed in sorted(runs, key=int)]
                for case, runs in ((name, one["runs"]) for name, one in cases.items())
            }
        )

    def _write(self) -> None:
        unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        try:
            unfinished.write_text(_compact(self.content), encoding="utf-8")
            unfinished.replace(self.path)
        finally:
            unfinished.unlink(missing_ok=True)


def _compact(content: dict[str, Any]) -> str:
    """Return JSON with one line per run, so that diffs are readable and files small."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))

    cases = []
    for name, case in content["cases"].items():
        runs = ",\n".join(f"   {line(seed)}: {line(run)}" for seed, run in case["runs"].items())
        settings = line(case["settings"])
        cases.append(f'  {line(name)}: {{"settings": {settings}, "runs": {{\n{runs}}}}}')
    made = ",\n".join(f"  {line(one)}" for one in content["made"])
    return f'{{\n "made": [\n{made}],\n "cases": {{\n' + ",\n".join(cases) + "}}\n"


def path_of(name: str, *, quick: bool, out: Path | None = None) -> Path:
    """Return the file of an experiment's results."""
    return (out or (QUICK_RESULTS if quick else RESULTS)) / f"{name}.json"


def stored(name: str) -> Results:
    """Return the committed results of an experiment."""
    return Store(path_of(name, quick=False)).results()
