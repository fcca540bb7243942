"""Reproduce table 3 of "Ignorance is Bliss" [ertekin2011], and compare its machines with SVC.

    python reproduce/ertekin2011.py                          all rows, ten seeds
    python reproduce/ertekin2011.py --only banana reuters    some of them
    python reproduce/ertekin2011.py --resume                 go on with a run that was stopped
    python reproduce/ertekin2011.py --quick                  a smoke test on small parts of the data

Table 3: FULL, G, NC and I, which are GapSVC without cleaning, with it, with loss="ramp" and with
loss="filter", one epoch each on six sets.
adult-svc: how much sooner than SVC the robust two are done on Adult, and how much smaller.
banana-turned, usps-0-turned: a fifth of the training labels is wrong; the robust two against SVC,
each at the C that cross-validation on the wrong labels chooses.

The methods take turns, seed by seed, on one thread. SVC on Adult is fitted once and kept in the
JSON.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
from datasets import SOURCES, Split
from ertekin2011_paper import METHODS
from ertekin2011_sets import SETS, DataSet
from ertekin2011_tables import SPEED, SVC_KEY, Measurements, shown
from ertekin2011_turned import LOSSES, TURNED, measure_turned, settings_of_turned
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from marginwise import GapSVC
from marginwise.metrics import g_mean_score, prbep_score

PARAMS: dict[str, dict[str, Any]] = {
    "FULL": {"clean_every": None},
    "G": {},
    "NC": {"loss": "ramp"},
    "I": {"loss": "filter"},
}
ROBUST = ("NC", "I")
NAMES = (*SETS, SPEED, *TURNED)


# -- measuring -------------------------------------------------------------------------------------


def measure(model: Any, split: Split) -> dict[str, Any]:
    """Fit a model, and score it on the test rows, in percent."""
    start = time.perf_counter()
    model.fit(split.X, split.y)
    seconds = time.perf_counter() - start
    scores, predicted = model.decision_function(split.X_test), model.predict(split.X_test)
    return {
        "accuracy": 100 * float((predicted == split.y_test).mean()),
        "prbep": 100 * prbep_score(split.y_test, scores),
        "auc": 100 * float(roc_auc_score(split.y_test, scores)),
        "g_mean": 100 * g_mean_score(split.y_test, predicted),
        "support_vectors": int(model.n_support_.sum()),
        "seconds": seconds,
    }


def measure_gap(
    data: DataSet, method: str, split: Split, seed: int, *, finish: bool
) -> dict[str, Any]:
    params = {"C": data.C, "gamma": data.gamma, "finish_at_end": finish, **PARAMS[method]}
    model = GapSVC(**params, n_jobs=1, random_state=seed)
    found = {"seed": seed, **measure(model, split)}
    found["kernel_evaluations"] = model.stats_["kernel_evaluations"] / 1e6
    found["reprocess"] = model.stats_["reprocess"]
    return found


def measure_row(name: str, folder: Path, options: argparse.Namespace) -> Measurements:
    """Let the methods take turns, seed by seed."""
    seeds = range(seeds_of(name, options))
    if name in TURNED:
        return measure_turned(name, folder, seeds, LOSSES, quick=options.quick)
    data, methods = data_of(name), ROBUST if name == SPEED else METHODS
    found: Measurements = {method: [] for method in methods}
    for seed in seeds:
        split = data.load(folder, seed, quick=options.quick)
        for method in methods:
            measured = measure_gap(data, method, split, seed, finish=name == SPEED)
            found[method].append(measured)
            common.progress(
                f"{name}, seed {seed}, {method}: {measured['accuracy']:.2f} %, "
                f"{measured['support_vectors']} support vectors, {measured['seconds']:.2f} s"
            )
    return found


def measure_svc(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    data = data_of(SPEED)
    common.progress(f"{SPEED}: SVC is fitted once")
    model = SVC(C=data.C, gamma=data.gamma)  # with the default cache
    return [measure(model, data.load(folder, 0, quick=options.quick))]


# -- settings: what the figures of a row depend on, beside the code --------------------------------


def data_of(name: str) -> DataSet:
    return SETS["adult" if name == SPEED else TURNED.get(name, name)]


def file_of(name: str) -> str:
    file = SOURCES[data_of(name).source].file
    assert file is not None
    return file


def seeds_of(name: str, options: argparse.Namespace) -> int:
    usual = 3 if name == SPEED else data_of(name).seeds
    return int(options.seeds or (1 if options.quick else usual))


def settings_of_svc(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    data, file = data_of(SPEED), file_of(SPEED)
    return {
        "quick": options.quick,
        "C": data.C,
        "gamma": data.gamma,
        "features": data.features,
        "scikit-learn": version("scikit-learn"),
        "data": {file: common.digest(folder / file)},
    }


def settings_of(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    data, file = data_of(name), file_of(name)
    return {
        "quick": options.quick,
        "seeds": seeds_of(name, options),
        "C": data.C,
        "gamma": data.gamma,
        "features": data.features,
        **(settings_of_turned(quick=options.quick) if name in TURNED else {}),
        **({"finish": True} if name in TURNED or name == SPEED else {}),  # table 3 does not
        "data": {file: common.digest(folder / file)},
    }


# -- the command -----------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_options(parser, __file__)
    add = parser.add_argument
    add("--only", nargs="+", choices=NAMES, metavar="ROW", help=f"rows: {', '.join(NAMES)}")
    add("--seeds", type=int, help=f"seeds of each row (default: 10, {SPEED}: 3)")
    return parser.parse_args()


def measured_rows(out: Path, options: argparse.Namespace) -> dict[str, Measurements]:
    """Measure the rows that are asked for, and return the measurements of each."""
    folder = common.data_folder(options)
    names = [name for name in NAMES if not options.only or name in options.only]
    common.check_files(folder, map(file_of, names))
    report = common.Report(out)
    given: dict[str, Any] = {"folder": folder, "options": options}
    common.measure_sets(
        report,
        names,
        partial(settings_of, **given),
        partial(measure_row, **given),
        resume=options.resume,
    )
    rows = {name: dict(report.sets[name]["measurements"]) for name in names}
    if SPEED in rows:
        once = partial(measure_svc, **given)
        rows[SPEED][SVC_KEY] = report.once(f"{SPEED}: SVC", settings_of_svc(**given), once)
    for name in set(TURNED) & set(rows):  # SVC takes long, and does not change
        seeds = range(seeds_of(name, options))
        turned = partial(measure_turned, name, folder, seeds, ["SVC"], quick=options.quick)
        settings = {**settings_of(name, **given), "scikit-learn": version("scikit-learn")}
        rows[name] |= report.once(f"{name}: SVC", settings, turned)
    return rows


def main() -> None:
    options = parse()
    out = common.out_path(options, __file__)
    rows = measured_rows(out, options)
    if options.quick:
        print("A smoke test on small parts of the data: its figures say nothing about the paper.\n")
    print(shown(rows))
    print(f"\nwritten to {os.path.relpath(out)}")


if __name__ == "__main__":
    main()
