"""Compare the test errors of OnlineSVC with those of SVC with the same parameters.

    python benchmarks/gap_to_svc.py                     all; continues an interrupted run
    python benchmarks/gap_to_svc.py --only a9a rare10   some sets
    python benchmarks/gap_to_svc.py --only settings     random parameters on generated rows
    python benchmarks/gap_to_svc.py --setting 17        one of these settings, which is not stored
    python benchmarks/gap_to_svc.py --quick             a smoke test on small training sets

Each training set is fitted once by SVC and by OnlineSVC with its default options, and both predict
the same test rows. The first table shows, by set and number of training rows, the mean difference
of the errors over the seeds, in percentage points, with its standard error. Training sets of more
than 20,000 rows are fitted by scikit-learn-intelex, if it is installed. The second table lists the
random settings in which OnlineSVC is worst. SVC stops after a number of steps there, and a fit
of OnlineSVC that takes more than a minute is given up.

Results are stored after each training set. Those of SVC are used again as long as the data and
parameters of the training set are the same, because SVC takes most of the time. OnlineSVC is fitted
again when the package has changed. To measure another version of the package, copy the JSON file,
name the copy with `--out` and, to omit what SVC has not fitted yet, add `--stored`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import report
import resume
from gap_sets import SETS, SetCase, set_cases
from paired import Difference, averaged, difference, fit_ours, fit_svc, overall
from random_settings import Setting
from speed import data_folder

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
SETTINGS = "settings"
WORST = {"sets": 5, SETTINGS: 10}  # differences to list

CASES = ("datasets", "works", "gap_sets", "random_settings", "paired")  # what defines them
Case = SetCase | Setting
Report = dict[str, Any]
Results = dict[str, dict[str, Any]]  # by case


def main() -> None:
    options = parse()
    if options.setting is not None:
        show_setting(Setting(options.setting))
        return
    sets = [name for name in options.only if name != SETTINGS]
    folder = data_folder(options) if sets else HERE
    outcome = opened(options, sets, folder)
    run(list(chosen_cases(options, sets)), str(folder), outcome, options)
    fitted = {key: case for key, case in outcome["cases"].items() if case["ours"]}
    show_sets({key: case for key, case in fitted.items() if not key.startswith(SETTINGS)})
    show_settings({key: case for key, case in fitted.items() if key.startswith(SETTINGS)})
    print(f"\nwritten to {os.path.relpath(options.out)}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, help="folder of the data files (default: $MARGINWISE_DATA)")
    add("--out", type=Path, help="JSON file (default: results/gap_to_svc.json or quick.json)")
    names = [*SETS, SETTINGS]
    add("--only", nargs="+", choices=names, default=names, metavar="SET", help=", ".join(names))
    add("--seeds", type=int, default=3, help="subsets, or orders of the rows (default: 3)")
    add("--settings", type=int, default=300, help="number of random settings (default: 300)")
    add("--setting", type=int, metavar="SEED", help="repeat one random setting")
    add("--stored", action="store_true", help="only cases for which SVC's result is stored")
    add("--jobs", type=int, default=1, help="processes at a time (default: 1)")
    add("--quick", action="store_true", help="a smoke test on small training sets")
    options = parser.parse_args()
    if options.out is None:
        options.out = HERE / "results" / ("quick.json" if options.quick else "gap_to_svc.json")
    return options


def chosen_cases(options: argparse.Namespace, sets: list[str]) -> Iterator[Case]:
    seeds = 1 if options.quick else options.seeds
    yield from set_cases(sets, seeds, quick=options.quick)
    if SETTINGS in options.only:
        yield from map(Setting, range(3 if options.quick else options.settings))


# -- running -------------------------------------------------------------------------------------


def opened(options: argparse.Namespace, sets: list[str], folder: Path) -> Report:
    """Return the report with the stored results that are still valid."""
    files = sorted({file for name in sets if (file := SETS[name].file) is not None})
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        sys.exit(f"The data folder lacks {', '.join(missing)}; --only SET runs sets without them.")
    stored = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    heading = report.heading(REPOSITORY, [folder / file for file in files])
    made = {**heading, "code": resume.code(CASES)}
    cases: dict[str, Any] = stored.get("cases", {})
    if stored.get("code") == made["code"]:
        made["data"] = {**stored["data"], **made["data"]}
    else:
        for case in cases.values():
            case["ours"] = []
    return {"quick": options.quick, **made, "cases": cases}


def run(cases: list[Case], folder: str, outcome: Report, options: argparse.Namespace) -> None:
    """Measure the cases that are not stored."""
    known = outcome["cases"]
    cases = [case for case in cases if case.key in known or not options.stored]
    due = [case for case in cases if not complete(case, known.get(case.key))]
    calls = [(case, folder, known.get(case.key)) for case in due]
    for case, result in resume.results(measure, calls, summary, options.jobs):
        known[case.key] = result
        report.write(options.out, outcome)


def complete(case: Case, known: dict[str, Any] | None) -> bool:
    return known is not None and [fit["seed"] for fit in known["ours"]] == list(case.seeds)


def measure(case: Case, folder: str, known: dict[str, Any] | None) -> dict[str, Any]:
    """Fit both estimators; SVC only if its stored result is of other data or parameters."""
    problem = case.problem(folder)
    svc = known["svc"] if known else None
    if svc is None or svc["digest"] != problem.digest():
        svc = fit_svc(problem)
    ours = [fit_ours(problem, seed) for seed in case.seeds]
    return {"about": problem.about, "svc": svc, "ours": ours}


def summary(result: dict[str, Any]) -> str:
    svc = result["svc"]
    said = f"SVC {svc['error']:.3f} % in {svc['cpu']:.1f} s"
    for fit in result["ours"]:
        said += "; failed" if "failed" in fit else f"; {fit['error']:.3f} % in {fit['cpu']:.1f} s"
    return said


# -- tables --------------------------------------------------------------------------------------


def differences(result: dict[str, Any]) -> list[Difference]:
    return [difference(fit, result["svc"]) for fit in result["ours"] if "failed" not in fit]


def by_size(cases: Results) -> dict[str, dict[int, Difference]]:
    """Return the mean difference by set and number of training rows."""
    found: dict[tuple[str, int], list[Difference]] = {}
    for key, result in cases.items():
        name, size, _ = key.split("/")
        found.setdefault((name, int(size)), []).extend(differences(result))
    sets: dict[str, dict[int, Difference]] = {}
    for (name, rows), several in sorted(found.items(), key=lambda item: item[0][1]):
        if several:
            sets.setdefault(name, {})[rows] = averaged(several)
    return sets


def points(one: Difference) -> str:
    return f"{one.points:+.3f} ± {one.error:.3f}"


def show_sets(cases: Results) -> None:
    sets = by_size(cases)
    if not sets:
        return
    sizes = sorted({rows for of_a_set in sets.values() for rows in of_a_set})
    lines = [
        [name, *(points(known[rows]) if rows in known else "" for rows in sizes)]
        for name, known in sets.items()
    ]
    print("\nError of OnlineSVC above that of SVC, percentage points, by training rows:\n")
    print(report.table(["", *(f"{rows:,}" for rows in sizes)], lines))
    print(f"\nmean of all: {points(overall([list(known.values()) for known in sets.values()]))}")
    cells = [(one, name, rows) for name, known in sets.items() for rows, one in known.items()]
    cells.sort(key=lambda cell: -cell[0].points)
    for one, name, rows in cells[: WORST["sets"]]:
        print(f"  {points(one)}  {name}, {rows:,} rows")


def show_settings(cases: Results) -> None:
    fitted = [(key, case) for key, case in cases.items() if differences(case)]
    if not fitted:
        return
    fitted.sort(key=lambda item: -differences(item[1])[0].points)
    gaps = [differences(case)[0] for _, case in fitted]
    worse = [case for (_, case), gap in zip(fitted, gaps, strict=True) if gap.clearly_worse]
    silent = sum(not case["ours"][0]["warnings"] for case in worse)
    failed = len(cases) - len(fitted)
    print(f"\n{len(cases)} random settings, of which OnlineSVC refuses or is too slow in {failed}:")
    print(f"  mean difference {points(overall([[gap] for gap in gaps]))} percentage points")
    print(f"  {len(worse)} more than a point worse and significant, {silent} of them silently\n")
    others = [(key, case) for key, case in cases.items() if not differences(case)]
    for key, case in fitted[: WORST[SETTINGS]] + others:
        show_case(key, case)


def show_setting(setting: Setting) -> None:
    result = measure(setting, "", None)
    show_case(setting.key, result)
    print(f"  {summary(result)}")


def show_case(key: str, case: dict[str, Any]) -> None:
    """Print a setting, the difference, and what both estimators report about themselves."""
    (ours,) = case["ours"]
    gap = points(difference(ours, case["svc"])) if "failed" not in ours else "failed"
    print(f"{gap}  --setting {key.split('/')[1]}: {case['about']}")
    said = [ours["failed"]] if "failed" in ours else list(ours["warnings"])
    said += [] if case["svc"]["converged"] else ["SVC did not converge."]
    for line in said:
        print(f"    {line}")


if __name__ == "__main__":
    main()
