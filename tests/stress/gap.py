"""Gap: the random settings of `benchmarks/gap_to_svc.py`, on test rows.

Invariant: the test error of OnlineSVC with its default options does not exceed that of `SVC` with
the same parameters by more than a percentage point and three standard errors of the paired
difference, or OnlineSVC warns, or it refuses the problem with a ValueError. Settings that the two
solve differently are not judged: the sigmoid kernel, which is not positive semi-definite, and more
than 32 classes, which OnlineSVC separates one-vs-rest.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tests.stress.harness import ROOT, Options, Outcome

TOTAL = 60
BATCH = 10
LIMIT = 300.0
MOST_CLASSES = 32
STANDARD_ERRORS = 3


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    paired, settings = _scripts()
    seed = case + TOTAL * options.seed
    problem = settings.Setting(seed).problem()
    outcome = Outcome()
    if problem.params["kernel"] == "sigmoid" or len(np.unique(problem.split.y)) > MOST_CLASSES:
        return outcome.count("solved differently")
    ours = paired.fit_ours(problem, seed)
    if "failed" in ours:
        return outcome.count("refused or too slow")
    if ours["warnings"]:
        return outcome.count("warned")
    gap = paired.difference(ours, paired.fit_svc(problem))
    if gap.points <= max(1.0, STANDARD_ERRORS * gap.error):
        return outcome.count("as accurate")
    worse = f"{gap.points:.2f} points (standard error {gap.error:.2f}) worse than SVC"
    return outcome.violate(f"setting {seed}, {problem.about}: {worse}")


def _scripts() -> tuple[Any, Any]:
    """Import the modules of the benchmark, which are not part of a package."""
    folder = str(ROOT / "benchmarks")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import paired
    import random_settings

    return paired, random_settings
