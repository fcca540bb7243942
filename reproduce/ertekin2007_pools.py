"""Reproduce figure 2 of "Learning on the Border" [ertekin2007]: 59 rows are as good as all.

    python reproduce/ertekin2007_pools.py                    grain, ship and USPS, three seeds
    python reproduce/ertekin2007_pools.py --only usps-0      one of them
    python reproduce/ertekin2007_pools.py --resume           go on with a run that was stopped
    python reproduce/ertekin2007_pools.py --quick            a smoke test on small parts of the data

The next row to label is the nearest to the boundary, of 59 sampled ones or of the whole pool. All
stop by the rule of ertekin2007.py. The paper's full search computes the scores of the whole pool
anew for each label, and so does ours; "near_boundary" asks for the same rows, but keeps the scores
and corrects them, so that it is timed besides. Needs imbalanced-learn.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Any

import common
import ertekin2007
import numpy as np
from report import judged, verdicts
from works import Check, Results, Work

from marginwise import OnlineSVC
from marginwise.active import ActiveLearner, closeness

POOL, KEPT, ANEW = "59 rows", "whole pool, scores kept", "whole pool, scores anew"
SEEDS = 3
# Seconds until saturation, of the full search and of pools of 59.
PAPER = {"grain": (272, 50), "ship": (142, 32), "usps-0": (126, 13)}


# -- the methods -----------------------------------------------------------------------------------


def search_anew(trial: ertekin2007.Trial) -> tuple[OnlineSVC, int]:
    """Score the whole pool from nothing for each label, as the paper's full search does."""
    split, learner = trial.split, ertekin2007.learner_for(trial, "near_boundary")
    unseen = np.ones(len(split.y), dtype=bool)
    while not learner.should_stop():
        row = nearest(learner, split.X, unseen) if learner.has_model_ else learner.ask()
        unseen[row] = False
        learner.teach(row, split.y[row])
    return learner.estimator_.finish(), len(learner.history_)


def nearest(learner: ActiveLearner, X: Any, unseen: Any) -> int:
    distances = closeness(learner.estimator_.decision_function(X))
    return int(np.where(unseen, distances, np.inf).argmin())


LEARN: dict[str, ertekin2007.Learn] = {
    POOL: ertekin2007.active,
    KEPT: partial(ertekin2007.active, strategy="near_boundary"),
    ANEW: search_anew,
}


# -- figures ---------------------------------------------------------------------------------------


def times_faster(other: str, what: str, target: float | None = None) -> Check:
    def measure(results: Results) -> float | None:
        slow, fast = (results.median(key, "seconds") for key in (other, POOL))
        return slow / fast if slow and fast else None

    return Check(what, measure, "≥", target, "{:.1f} ×")


def prbep_off(other: str) -> Check:
    def measure(results: Results) -> float | None:
        found = [results.mean(key, "prbep") for key in (other, POOL)]
        return None if None in found else abs(found[0] - found[1])

    return Check("PRBEP off the full search's, points", measure, "≤", 0.5, "{:.2f}")


def work(name: str) -> Work:
    slow, fast = PAPER[name]
    checks = [
        times_faster(ANEW, f"times faster than full search (paper: {slow / fast:.1f})", 4.0),
        prbep_off(ANEW),
        times_faster(KEPT, "times faster than full search with scores kept"),
    ]
    return Work(name, name, [], checks)


def methods(name: str, results: Results) -> list[list[str]]:
    """Return the rows of a set in the table of methods: means over the seeds, medians of times."""
    columns = (("prbep", "{:.2f}"), ("g_mean", "{:.2f}"), ("learned", "{:,.0f}"))
    return [
        [
            f"{name}: {key}",
            *(form.format(results.mean(key, column)) for column, form in columns),
            "{:,.2f}".format(results.median(key, "seconds")),
            str(len(results[key])),
        ]
        for key in results
    ]


# -- the command -----------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_options(parser, __file__)
    names = ", ".join(PAPER)
    parser.add_argument("--only", nargs="+", choices=PAPER, metavar="SET", help=f"sets: {names}")
    parser.add_argument("--seeds", type=int, help=f"seeds of each set (default: {SEEDS})")
    options = parser.parse_args()
    options.seeds = options.seeds or (1 if options.quick else SEEDS)
    return options


def show(sets: dict[str, Results], out: Path, *, quick: bool) -> None:
    if quick:
        print("A smoke test on small parts of the data: its figures say nothing about the paper.")
    rows = [row for name, results in sets.items() for row in methods(name, results)]
    print(common.table(("", "PRBEP, %", "g-means, %", "labels", "seconds", "seeds"), rows))
    figures = [figure for name, results in sets.items() for figure in judged(work(name), results)]
    print(f"\n{verdicts(figures)}\n\nwritten to {os.path.relpath(out)}")


def main() -> None:
    options = parse()
    out = common.out_path(options, __file__)
    sets = ertekin2007.measured(PAPER, out, options, methods=LEARN)
    show({name: Results(found) for name, found in sets.items()}, out, quick=options.quick)


if __name__ == "__main__":
    main()
