"""Running attacks: one process per batch of cases, a watchdog, counters and a table.

A worker announces each case before it begins. When it dies or falls silent, the parent knows which
case is to blame, counts it as a violation, and starts another worker with the next case.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
ATTACKS = (
    "threads",
    "interrupts",
    "kills",
    "labelling",
    "commands",
    "mutations",
    "libsvm_files",
    "text_files",
    "problems",
    "gap",
    "forgetting",
    "hostile",
)


@dataclass
class Options:
    """What a run may be told besides the cases to try."""

    seed: int = 0
    scale: float = 1.0
    thread_seconds: float = 5.0


@dataclass
class Outcome:
    """What a case came to: counts of what happened, and which invariants were violated."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    spoiled: bool = False  # whether the process is unfit for further cases

    def count(self, what: str, n: int = 1) -> Outcome:
        self.counts[what] += n
        return self

    def violate(self, message: str) -> Outcome:
        self.violations.append(message)
        return self


@dataclass
class Report:
    """The outcomes of all cases of an attack."""

    name: str
    cases: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[dict[str, Any]] = field(default_factory=list)

    def add(self, case: int, counts: dict[str, int], violations: Sequence[str]) -> None:
        self.cases += 1
        self.counts.update(counts)
        self.violations += [{"case": case, "message": message} for message in violations]


def rng_of(name: str, seed: int, case: int) -> np.random.Generator:
    """The random numbers of a case."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), case])


# -- in the worker -----------------------------------------------------------------------------


def work(name: str, cases: Sequence[int], options: Options) -> None:
    """Run cases, and report each on the standard output that the process was given."""
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the code under attack prints must not disturb the report
    attack = importlib.import_module(f"tests.stress.{name}")
    for case in cases:
        report.write(f"begin {case}\n")
        outcome = attempt(attack, name, case, options)
        done = {"case": case, "counts": outcome.counts, "violations": outcome.violations}
        report.write(f"end {json.dumps(done)}\n")
        if outcome.spoiled:
            os._exit(0)


def attempt(attack: Any, name: str, case: int, options: Options) -> Outcome:
    """Run one case; an exception that it does not handle is a violation."""
    try:
        outcome: Outcome = attack.run(case, rng_of(name, options.seed, case), options)
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return Outcome().violate(f"{type(error).__name__} at {where}: {error}"[:400])
    return outcome


# -- in the parent -----------------------------------------------------------------------------


def run_attack(
    name: str,
    options: Options,
    cases: Sequence[int] | None = None,
    jobs: int = 1,
    *,
    announce: bool = False,
) -> Report:
    """Run an attack in worker processes and return the report."""
    attack = importlib.import_module(f"tests.stress.{name}")
    if cases is None:
        cases = range(max(1, round(attack.TOTAL * options.scale)))
    batches = [cases[i : i + attack.BATCH] for i in range(0, len(cases), attack.BATCH)]
    report, began = Report(name), time.monotonic()

    def carry_out(batch: Sequence[int]) -> None:
        for case, counts, violations in outcomes(name, batch, attack.LIMIT, options):
            with lock:
                report.add(case, counts, violations)
                if announce:
                    _announce(report, len(cases), case, violations)

    lock = threading.Lock()
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(carry_out, batches))
    report.violations.sort(key=lambda violation: violation["case"])
    report.seconds = time.monotonic() - began
    return report


def _announce(report: Report, cases: int, case: int, violations: Sequence[str]) -> None:
    """Show how far an attack is, and what it has found."""
    for message in violations:
        print(f"{report.name}, case {case}: {message}", file=sys.stderr)
    if sys.stderr.isatty():
        print(f"{report.name}: {report.cases:,} of {cases:,}", end="\r", file=sys.stderr)


def outcomes(
    name: str, cases: Sequence[int], limit: float, options: Options
) -> Iterator[tuple[int, dict[str, int], list[str]]]:
    """Give the outcome of each case; a worker that ends early is replaced by another."""
    left = list(cases)
    while left:
        with (
            tempfile.TemporaryFile() as errors,
            _start(name, left, options, errors) as worker,
        ):
            begun, why = left[0], "ended early"
            for line in _lines(worker, limit):
                if line is None:
                    why = f"no answer for {limit:g} s"
                elif line.startswith("begin "):
                    begun = int(line.split()[1])
                else:
                    done = json.loads(line.removeprefix("end "))
                    yield done["case"], done["counts"], done["violations"]
                    left.remove(done["case"])
            code = worker.wait()
            if code < 0 and why == "ended early":
                why = f"killed by {signal.Signals(-code).name}"
            if begun in left and (code or left):
                yield begun, {}, [f"{why}; {_tail(errors)}"]
                left.remove(begun)


def _start(name: str, cases: Sequence[int], options: Options, errors: Any) -> Any:
    # The interpreter option -S is handed on, with which `make tsan` chooses the package to test.
    site = ["-S"] if sys.flags.no_site else []
    told = json.dumps({"name": name, "cases": list(cases), "options": vars(options)})
    return subprocess.Popen(
        [sys.executable, *site, "-m", "tests.stress", "--worker", told],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


def _lines(worker: Any, limit: float) -> Iterator[str | None]:
    """Give the lines that a worker writes; None, once, if it is silent too long and is killed."""
    channel, kept = worker.stdout.fileno(), b""
    silent = 60.0 + limit  # the first line comes after the imports
    while True:
        if not select.select([channel], [], [], silent)[0]:
            _kill(worker)
            yield None
            return
        more = os.read(channel, 65536)
        if not more:
            return
        *whole, kept = (kept + more).split(b"\n")
        yield from (line.decode() for line in whole)
        silent = limit


def _kill(worker: Any) -> None:
    """Have a silent worker write where it is, then kill it and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGABRT)
    try:
        worker.wait(2)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)


def _tail(errors: Any) -> str:
    """Return where a worker was when it died: the innermost lines that faulthandler wrote."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").splitlines()
    start = max((k for k, line in enumerate(lines) if line.startswith("Current thread")), default=0)
    frames = [line.strip() for line in lines[start:] if line.strip().startswith("File ")]
    told = frames[:3] or [line.strip() for line in lines[-3:]]
    return " < ".join(told)[:400]


# -- the report --------------------------------------------------------------------------------


def table(reports: Sequence[Report], options: Options, shown: int = 10) -> str:
    """Return counts and violations as text."""
    lines = [f"{'attack':<12}{'cases':>8}{'seconds':>9}{'violations':>12}   counts"]
    for report in reports:
        counts = ", ".join(f"{what}: {n:,}" for what, n in sorted(report.counts.items()))
        line = f"{report.name:<12}{report.cases:>8,}{report.seconds:>9.0f}"
        lines.append(f"{line}{len(report.violations):>12,}   {counts}")
    for report in reports:
        for violation in report.violations[:shown]:
            lines += ["", f"{report.name}, case {violation['case']}: {violation['message']}"]
            lines.append(f"  {reproduction(report.name, violation['case'], options)}")
        if len(report.violations) > shown:
            lines += ["", f"{report.name}: {len(report.violations) - shown} more (see --json)"]
    return "\n".join(lines)


def reproduction(name: str, case: int, options: Options) -> str:
    """Return the command that repeats a case."""
    command = f"python -m tests.stress --only {name} --seed {options.seed} --case {case}"
    if name == "threads":
        command += f" --thread-seconds {options.thread_seconds:g}"
    return command
