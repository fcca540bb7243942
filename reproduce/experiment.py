"""Definition of an experiment: its cases, their measurement, and the use of the results.

This module imports nothing heavy, so that experiments can be listed without data or matplotlib.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Case = dict[str, Any]  # settings of a case; "name" is added by the runner
Values = dict[str, Any]  # measurements of one run of a case, as JSON values
Verdict = Literal["confirmed", "not confirmed", "not testable here"]

CONFIRMED: Verdict = "confirmed"
NOT_CONFIRMED: Verdict = "not confirmed"
NOT_TESTABLE: Verdict = "not testable here"


@dataclass(frozen=True)
class Paper:
    """A paper whose experiments are repeated; the `PAPER` of each folder."""

    key: str
    citation: str
    summary: str  # what the paper shows and what is repeated here, in a paragraph or two

    @property
    def title(self) -> str:
        """The title, which is in quotation marks in the citation."""
        return self.citation.partition("“")[2].partition("”")[0].rstrip(",.")


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and its verdict."""

    claim: str  # one sentence
    place: str  # "section 3.3, figure 1"
    verdict: Verdict
    theirs: str  # the paper's figure
    ours: str
    reason: str = ""  # one sentence on the likely reason


def judged(holds: bool | None) -> Verdict:
    """Convert a comparison to a verdict; None stands for missing results."""
    if holds is None:
        return NOT_TESTABLE
    return CONFIRMED if holds else NOT_CONFIRMED


@dataclass(frozen=True)
class Table:
    """Rows to print; cells are strings."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


class Results:
    """Measurements by case, one per seed. Missing measurements are None or empty."""

    def __init__(self, runs: Mapping[str, Sequence[Values]]) -> None:
        self.runs = {case: list(values) for case, values in runs.items() if values}

    def __contains__(self, case: str) -> bool:
        return case in self.runs

    def __bool__(self) -> bool:
        return bool(self.runs)

    @property
    def cases(self) -> list[str]:
        """Names of the cases that were measured."""
        return list(self.runs)

    def seeds(self, case: str) -> int:
        """Return how many seeds of a case were measured."""
        return len(self.runs.get(case, ()))

    def paired(self, *cases: str) -> Results:
        """Keep only the seeds that all of these cases have, so that means are comparable."""
        count = min((self.seeds(case) for case in cases), default=0)
        return Results({case: self.runs[case][:count] for case in cases if case in self.runs})

    def values(self, case: str, *path: str) -> list[Any]:
        """Return the values at a path of names, one per seed that has it."""
        found = []
        for run in self.runs.get(case, ()):
            value: Any = run
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if value is not None:
                found.append(value)
        return found

    def mean(self, case: str, *path: str) -> float | None:
        """Return the mean over the seeds."""
        values = self.values(case, *path)
        return statistics.fmean(values) if values else None

    def median(self, case: str, *path: str) -> float | None:
        """Return the median over the seeds, the measure for times."""
        values = self.values(case, *path)
        return statistics.median(values) if values else None

    def sd(self, case: str, *path: str) -> float | None:
        """Return the standard deviation over the seeds; None for a single seed."""
        values = self.values(case, *path)
        return statistics.stdev(values) if len(values) > 1 else None

    def curve(self, case: str, *path: str) -> list[float]:
        """Return the mean over the seeds of a list, up to the length of the shortest list."""
        curves = [value for value in self.values(case, *path) if isinstance(value, list)]
        return [statistics.fmean(at) for at in zip(*curves, strict=False)]


def _nothing(results: Results) -> list[Any]:
    return []


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    `cases(quick)` returns the settings of each case by name. The setting "seeds" limits the number
    of seeds of a case, for example to 1 if nothing is random. The setting "files" replaces the
    files of the experiment. `run(case, seed, data, quick)` measures a case with one seed. An
    experiment with `shares` has no cases of its own: it shows the results of another experiment of
    the same paper.
    """

    paper: str
    what: str  # "Figure 5"
    title: str
    text: str  # what is measured, with which parameters, and every departure from the paper
    files: tuple[str, ...] = ()
    cases: Callable[[bool], Mapping[str, Case]] | None = None
    run: Callable[[Case, int, Path, bool], Values] | None = None
    seeds: int = 1
    version: int = 1  # increase it when a change of `run` invalidates stored results
    shares: str | None = None  # name of the measured experiment in the same folder
    tables: Callable[[Results], list[Table]] = _nothing
    draw: Callable[[Results, Any], None] | None = None  # on a matplotlib figure
    size: tuple[float, float] = (8.0, 4.0)  # of the figure, in inches
    claims: Callable[[Results], list[Claim]] = _nothing

    def files_of(self, case: Case) -> tuple[str, ...]:
        """Return the data files that a case reads."""
        return tuple(case.get("files", self.files))

    def seeds_of(self, case: Case, asked: int | None) -> int:
        """Return how many seeds of a case are run."""
        return min(asked or self.seeds, case.get("seeds", 10**9))

    def all_files(self, cases: Iterable[Case]) -> list[str]:
        """Return the files that the cases read."""
        return sorted({file for case in cases for file in self.files_of(case)})
