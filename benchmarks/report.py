"""Facts about the machine and the code, and the tables of a run."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from datasets import sha256
from works import Results, Work

PACKAGES = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "marginwise")


def machine() -> dict[str, Any]:
    memory = None
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20)
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_mb": memory,
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def commit(repository: Path) -> dict[str, Any]:
    """Return the commit, and whether tracked files other than results differ from it."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=repository, capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    changed = git(
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ".",
        ":!benchmarks/results",
        ":!reproduce/results",
    )
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if changed is None else bool(changed)}


def heading(repository: Path, data: Iterable[Path]) -> dict[str, Any]:
    """Return machine, versions, commit and hashes of the data, for a report."""
    files = {path.name: sha256(path) for path in data}
    return {"machine": machine(), "versions": versions(), **commit(repository), "data": files}


def write(path: Path, report: dict[str, Any]) -> None:
    """Write JSON atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unfinished.replace(path)


def filled(page: str, name: str, text: str) -> str:
    """Return a page with a text between the markers of the named figures."""
    start, end = f"<!-- figures: {name} -->", "<!-- end -->"
    head, begins, rest = page.partition(start)
    _, ends, tail = rest.partition(end)
    if not begins or not ends:
        sys.exit(f"The page lacks the markers {start} and {end}.")
    return f"{head}{start}\n\n{text}\n\n{end}{tail}"


# -- tables --------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, the others to the right."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]

    def line(row: Sequence[str]) -> str:
        first = row[0].ljust(widths[0])
        return "  ".join([first, *(row[k].rjust(widths[k]) for k in range(1, len(row)))]).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def _span(values: list[float]) -> str:
    """Format the median, and the range of several values."""
    if not values:
        return "failed"
    middle = statistics.median(values)
    if len(values) == 1:
        return f"{middle:.3g}"
    return f"{middle:.3g} ({min(values):.3g} to {max(values):.3g})"


def fits(results: Results) -> str:
    """Tabulate times, errors and sizes of the contestants' models."""
    rows = []
    for key in results:
        error, support, growth = (
            results.mean(key, name) for name in ("error", "support_vectors", "growth_mb")
        )
        rows.append(
            [
                key,
                _span(results.take(key, "fit", "wall")),
                _span(results.take(key, "fit", "cpu")),
                _span(results.take(key, "predict", "wall")),
                "–" if error is None else f"{error:.3f}",
                "–" if support is None else f"{support:,.0f}",
                "–" if growth is None else f"{growth:,.0f}",
            ]
        )
    header = ("", "fit, s", "fit CPU, s", "predict, s", "error, %", "support vectors", "growth, MB")
    return table(header, rows)


def details(results: Results) -> str:
    """List the measurements of a row without fits."""
    shown = []
    for key, measurements in results.items():
        for measurement in measurements:
            facts = {name: value for name, value in measurement.items() if name != "load"}
            shown.append(f"{key}: {json.dumps(_rounded(facts), ensure_ascii=False)}")
    return "\n".join(shown)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def judged(work: Work, results: Results) -> list[dict[str, Any]]:
    """Return the figures of a row with their targets."""
    return [
        {
            "work": work.name,
            "what": check.what,
            "measured": check.measure(results),
            "sense": check.sense,
            "target": check.target,
            "reached": check.reached(results),
            "form": check.form,
        }
        for check in work.checks
    ]


def verdicts(judgements: Sequence[dict[str, Any]]) -> str:
    """Tabulate figures, targets and whether they are reached."""

    def shown(value: float | None, form: str) -> str:
        return "not available" if value is None else form.format(value)

    words = {True: "yes", False: "NO", None: "–"}
    rows = [
        [
            f"{j['work']}: {j['what']}",
            shown(j["measured"], j["form"]),
            "–" if j["target"] is None else f"{j['sense']} {shown(j['target'], j['form'])}",
            words[j["reached"]],
        ]
        for j in judgements
    ]
    return table(("figure", "measured", "to reach", "reached"), rows)
