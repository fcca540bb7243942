"""Reproduce table 1 and figure 4a of "Fast Online Training of Ramp Loss SVMs" [wang2009].

    python reproduce/wang2009.py                          all sets, ten seeds (the large ones three)
    python reproduce/wang2009.py --only gauss banana      some of them
    python reproduce/wang2009.py --resume                 go on with a run that was stopped
    python reproduce/wang2009.py --quick                  a smoke test on small parts of the data
    python reproduce/wang2009.py --tune                   print how C and the width were chosen

LibSVM is SVC, the hinge SVM that is solved offline; PA the passive-aggressive perceptron.
OnlineSVM^R is ExactRampSVC, which sees each row once; OnlineASVM^R is the same, but asks for the
label of a row only if |f| ≤ 1. "offline" is one ramp SVM by CCCP, for its cost.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from datasets import Split
from sklearn.svm import SVC
from wang2009_offline import OfflineRamp
from wang2009_sets import SETS, Choice, DataSet
from wang2009_tables import ASVM, HINGE, OFFLINE, PA, RAMP, tables
from works import Results

from marginwise import ExactRampSVC, KernelPerceptron

SLACK = 0.01  # by which |f| of a support vector may exceed 1 and count as inside the ramp
OFFLINE_SEEDS = 3


@dataclass
class Trial:
    """One seed of one set."""

    split: Split
    data: DataSet

    def params(self, choice: Choice) -> dict[str, Any]:
        return choice.params(self.split.X.shape[1])


# -- the learners: each returns its model and the rows of which it has seen the label --------------

Learned = tuple[Any, int]


def libsvm(trial: Trial) -> Learned:
    model = SVC(**trial.params(trial.data.hinge), cache_size=500)
    return model.fit(trial.split.X, trial.split.y), len(trial.split.y)


def passive_aggressive(trial: Trial) -> Learned:
    model = KernelPerceptron(**trial.params(trial.data.pa), update="pa", shuffle=False)
    return model.fit(trial.split.X, trial.split.y), len(trial.split.y)


def online(trial: Trial) -> Learned:
    model = ExactRampSVC(**trial.params(trial.data.ramp), shuffle=False)
    return model.fit(trial.split.X, trial.split.y), len(trial.split.y)


def online_active(trial: Trial) -> Learned:
    """Ask about one row after the other; calls, not kernels, take most of the time."""
    X, y = trial.split.X, trial.split.y
    model = ExactRampSVC(**trial.params(trial.data.ramp), shuffle=False)
    model.partial_fit(X[:1], y[:1], classes=np.unique(y), ids=[0])
    asked = 1
    for row in range(1, len(y)):
        one = slice(row, row + 1)
        if model.wants(X[one])[0]:
            model.partial_fit(X[one], y[one], ids=[row])
            asked += 1
    return model, asked


def offline(trial: Trial) -> Learned:
    model = OfflineRamp(**trial.params(trial.data.ramp))
    return model.fit(trial.split.X, trial.split.y), len(trial.split.y)


LEARN: dict[str, Callable[[Trial], Learned]] = {
    HINGE: libsvm,
    PA: passive_aggressive,
    RAMP: online,
    ASVM: online_active,
    OFFLINE: offline,
}


# -- measuring -------------------------------------------------------------------------------------


def measure(learn: Callable[[Trial], Learned], trial: Trial, seed: int) -> dict[str, Any]:
    """Learn, and measure the model; accuracy in percent, shares from 0 to 1."""
    start = time.perf_counter()
    model, labels = learn(trial)
    seconds = time.perf_counter() - start
    split, support = trial.split, np.asarray(model.support_)
    found: dict[str, Any] = {
        "seed": seed,
        "accuracy": 100 * float(np.mean(model.predict(split.X_test) == split.y_test)),
        "support_vectors": len(support),
        "labels": labels,
        "rows": len(split.y),
        "seconds": seconds,
    }
    margins = (2 * split.y[support] - 1) * model.decision_function(split.X[support])
    found["inside"] = float(np.mean(np.abs(margins) <= 1 + SLACK))
    found["wrong"] = float(np.mean(margins < -1 - SLACK))
    if hasattr(model, "stats_"):
        found["kernel_evaluations"] = int(model.stats_["kernel_evaluations"])
    if hasattr(model, "ramp_objective"):
        found["objective"] = float(model.ramp_objective())
    return found


def measure_set(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Let the learners take turns, seed by seed."""
    found: dict[str, Any] = {key: [] for key in LEARN}
    for seed in range(seeds_of(name, options)):
        trial = Trial(SETS[name].load(folder, seed, quick=options.quick), SETS[name])
        for key, learn in LEARN.items():
            if key == OFFLINE and seed >= OFFLINE_SEEDS:
                continue
            found[key].append(measure(learn, trial, seed))
            common.progress(
                f"{name}, seed {seed}, {key}: {found[key][-1]['accuracy']:.2f} %, "
                f"{found[key][-1]['support_vectors']} support vectors, "
                f"{found[key][-1]['seconds']:.1f} s"
            )
    return found


def seeds_of(name: str, options: argparse.Namespace) -> int:
    return int(options.seeds or (1 if options.quick else SETS[name].seeds))


def settings_of(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures of a set depend on, beside the code."""
    data = SETS[name]
    choices = {key: list(getattr(data, key)) for key in ("hinge", "ramp", "pa")}
    files = {} if data.file is None else {data.file: common.digest(folder / data.file)}
    return {
        "quick": options.quick,
        "seeds": seeds_of(name, options),
        "offline_seeds": OFFLINE_SEEDS,
        "choices": choices,
        "data": files,
    }


# -- the command -----------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_options(parser, __file__)
    names = ", ".join(SETS)
    add = parser.add_argument
    add("--only", nargs="+", choices=SETS, metavar="SET", help=f"sets: {names}")
    add("--seeds", type=int, help="seeds of each set (default: 10, of the large ones 3)")
    add("--tune", action="store_true", help="print the best C and k of each learner, and leave")
    return parser.parse_args()


def main() -> None:
    options = parse()
    out = common.out_path(options, __file__)
    names = [name for name in SETS if not options.only or name in options.only]
    files = [file for name in names if (file := SETS[name].file)]
    folder = common.data_folder(options) if files else Path()  # some sets are made up
    common.check_files(folder, files)
    if options.tune:
        from wang2009_tune import tune

        tune(names, folder, quick=options.quick)
        return
    report = common.Report(out)
    common.measure_sets(
        report,
        names,
        partial(settings_of, folder=folder, options=options),
        partial(measure_set, folder=folder, options=options),
        resume=options.resume,
    )
    if options.quick:
        print("A smoke test on small parts of the data: its figures say nothing about the paper.\n")
    print(tables({name: Results(report.sets[name]["measurements"]) for name in names}))
    print(f"\nwritten to {os.path.relpath(out)}")


if __name__ == "__main__":
    main()
