"""Planted faults: each breaks one line of a copy of the package, and some test must fail.

    python -m tests.faults                   plant every fault that was not tried since it changed
    python -m tests.faults --only NAME       ... some, with the results of before
    python -m tests.faults --list            the faults and the tests that should find them

tests/faults.toml has the faults. Those in Python run the named tests with a copy of the package in
front of the installed one. Those in the core rebuild the named programs of cpp/tests. The exit
status is 1 if a fault is not found, or if a test fails without one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
STORED = ROOT / "build" / "faults.json"
TIMEOUT = 900  # seconds; a test that hangs has found the fault, too
# Every process of the tests begins with this: an editable installation comes before PYTHONPATH.
FIRST = """
import sys
from importlib.machinery import PathFinder
from pathlib import Path
sys.meta_path[:] = [one for one in sys.meta_path if "_editable_" not in type(one).__module__]
found = PathFinder.find_spec("marginwise").origin
assert Path(found).parents[1] == Path(__file__).parent, f"{found} is not the copy"
"""


@dataclass(frozen=True)
class Fault:
    """A line of the package, and what replaces it."""

    name: str
    file: str  # relative to src/marginwise, or to cpp/include/marginwise
    line: str  # the line, or a part of it, that occurs once in the file
    broken: str
    tests: tuple[str, ...]  # of pytest, or the names of programs in cpp/tests

    @property
    def native(self) -> bool:
        return self.file.endswith(".hpp")

    @property
    def path(self) -> Path:
        """The file, relative to the repository."""
        return Path("cpp/include/marginwise" if self.native else "src/marginwise") / self.file

    def applied(self, text: str) -> str:
        """Return the text of the file with the fault."""
        if text.count(self.line) != 1:
            raise ValueError(
                f"fault {self.name}: {self.path} has {text.count(self.line)} lines with "
                f"{self.line!r}; expected one. Adapt the fault in tests/faults.toml."
            )
        return text.replace(self.line, self.broken)

    def fingerprint(self) -> str:
        """Return a digest of the fault, the file and the tests; a stored result is valid for it."""
        tests = {test.partition("::")[0] for test in self.tests}
        files = [f"cpp/tests/{name}.cpp" for name in tests] if self.native else sorted(tests)
        parts = [repr(self).encode(), *(_bytes(ROOT / name) for name in [self.path, *files])]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What the tests of a fault reported."""

    fingerprint: str
    found_by: list[str]
    problem: str = ""  # why the fault could not be tried
    seconds: float = 0.0


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def faults() -> list[Fault]:
    """Return all faults."""
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return [Fault(**{**entry, "tests": tuple(entry["tests"])}) for entry in content["fault"]]


# -- Python ----------------------------------------------------------------------------------------


@contextmanager
def package_with(fault: Fault | None) -> Iterator[Path]:
    """Make a copy of the package with a fault; yield the folder that contains it."""
    import marginwise._core

    with tempfile.TemporaryDirectory(prefix="marginwise-fault-") as folder:
        copy = Path(folder, "marginwise")
        ignored = shutil.ignore_patterns("__pycache__", "_core.*")
        shutil.copytree(ROOT / "src" / "marginwise", copy, ignore=ignored)
        core = Path(marginwise._core.__file__)
        (copy / core.name).symlink_to(core)
        Path(folder, "sitecustomize.py").write_text(FIRST, encoding="utf-8")
        if fault is not None:
            path = copy / fault.file
            path.write_text(fault.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        yield Path(folder)


def failures(fault: Fault) -> tuple[list[str], str]:
    """Return the tests that find a fault and pass without it, or why they did not run."""
    with package_with(fault) as folder:
        found, problem = _failed(fault.tests, folder)
    if not found:
        return [], problem
    with package_with(None) as folder:
        sound, problem = _failed(found, folder)
    return ([], f"fails without the fault: {sound}") if sound else (found, problem)


def _failed(tests: Sequence[str], folder: Path) -> tuple[list[str], str]:
    """Run tests with the package of a folder; return those that failed, or why they did not run."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--maxfail=3", "--tb=no"]
    try:
        done = _run([sys.executable, "-m", "pytest", *options, *tests], env)
    except subprocess.TimeoutExpired:
        return list(tests), ""
    if done.returncode in (0, 1):
        return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE), ""
    return [], f"pytest: {done.stdout[-1000:]}{done.stderr[-1000:]}"


def _run(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


# -- the core --------------------------------------------------------------------------------------


class Core:
    """A copy of the core and its test programs, which is built as far as a fault requires."""

    def __init__(self) -> None:
        self.folder = ROOT / "build" / "faults"
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "CMakeLists.txt", self.folder)
        for path in sorted((ROOT / "cpp").rglob("*.[ch]pp")):
            self.write(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        tools = Path(sys.executable).parent
        launcher = shutil.which("ccache")
        # Without sanitizers, they compile several times as fast.
        options = ["-DMARGINWISE_TESTS=ON", "-DMARGINWISE_SANITIZE=none"]
        options += ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1"]
        options += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"]
        options += [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []
        self.cmake = str(tools / "cmake")
        self._sound: set[str] = set()  # programs that pass without a fault
        done = _run(
            [self.cmake, "-S", str(self.folder), "-B", str(self.folder / "build"), *options]
        )
        if done.returncode:
            raise RuntimeError(f"the core cannot be built: {done.stderr}")

    def write(self, name: Path, text: str) -> None:
        """Write a file of the copy, unless it has this text; the build looks at times."""
        path = self.folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def failures(self, fault: Fault) -> tuple[list[str], str]:
        """Return the programs that find a fault and pass without it, or why they did not run."""
        for program in sorted(set(fault.tests) - self._sound):
            failed, problem = self._failed(program)
            if failed or problem:
                return [], problem or f"fails without the fault: {program}"
            self._sound.add(program)
        text = (ROOT / fault.path).read_text(encoding="utf-8")
        self.write(fault.path, fault.applied(text))
        try:
            for program in fault.tests:
                failed, problem = self._failed(program)
                if failed or problem:
                    return failed, problem
            return [], ""
        finally:
            self.write(fault.path, text)

    def _failed(self, program: str) -> tuple[list[str], str]:
        """Build and run a program; return it if it failed, or why it was not built."""
        made = _run([self.cmake, "--build", str(self.folder / "build"), "--target", program])
        if made.returncode:
            return [], f"{program} does not compile: {made.stdout[-2000:]}"
        try:
            done = _run([str(self.folder / "build" / program)])
        except subprocess.TimeoutExpired:
            return [program], ""
        return [program] if done.returncode else [], ""


# -- the run ---------------------------------------------------------------------------------------


class Trial:
    """Plants faults, and stores each outcome at once, so that a run can be resumed."""

    def __init__(self) -> None:
        self._core: Core | None = None
        stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.is_file() else {}
        self.outcomes = {name: Outcome(**outcome) for name, outcome in stored.items()}

    def _core_once(self) -> Core:
        self._core = self._core or Core()
        return self._core

    def known(self, fault: Fault) -> Outcome | None:
        """Return the stored outcome of a fault that has not changed since."""
        outcome = self.outcomes.get(fault.name)
        valid = outcome is not None and outcome.fingerprint == fault.fingerprint()
        return outcome if valid else None

    def plant(self, fault: Fault) -> Outcome:
        """Try a fault."""
        began = time.perf_counter()
        found, problem = self._core_once().failures(fault) if fault.native else failures(fault)
        seconds = round(time.perf_counter() - began, 1)
        self.outcomes[fault.name] = Outcome(fault.fingerprint(), found, problem, seconds)
        self._store()
        return self.outcomes[fault.name]

    def _store(self) -> None:
        STORED.parent.mkdir(exist_ok=True)
        stored = {name: asdict(one) for name, one in self.outcomes.items()}
        STORED.write_text(json.dumps(stored, indent=1), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="fault; repeatable")
    parser.add_argument("--list", action="store_true", help="print the faults and their tests")
    options = parser.parse_args()
    wanted = [fault for fault in faults() if options.only is None or fault.name in options.only]
    if options.list:
        for fault in wanted:
            print(f"{fault.name:28} {fault.path}: {', '.join(fault.tests)}")
        return 0
    trial, missed = Trial(), []
    for fault in wanted:
        outcome = (None if options.only else trial.known(fault)) or trial.plant(fault)
        if not outcome.found_by:
            missed.append(fault.name)
        told = outcome.problem or ", ".join(outcome.found_by) or "NOT FOUND"
        print(f"{fault.name:28} {outcome.seconds:6.1f} s  {told}", flush=True)
    print(f"{len(wanted) - len(missed)} of {len(wanted)} faults found", *missed, sep="\n  ")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
