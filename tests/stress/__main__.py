"""Run the attacks: ``python -m tests.stress --help``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from tests.stress.harness import ATTACKS, Options, reproduction, run_attack, table, work


def main() -> int:
    arguments = _arguments()
    if arguments.worker is not None:
        told = json.loads(arguments.worker)
        work(told["name"], told["cases"], Options(**told["options"]))
        return 0
    options = Options(arguments.seed, arguments.scale, arguments.thread_seconds)
    reports = []
    for name in arguments.only or ATTACKS:
        report = run_attack(name, options, arguments.case, arguments.jobs, announce=True)
        print(table([report], options, arguments.show), "\n", flush=True)
        reports.append(report)
    if len(reports) > 1:
        print(table(reports, options, 0))
    if arguments.json is not None:
        said = [vars(report) for report in reports]
        for report in said:
            for violation in report["violations"]:
                violation["command"] = reproduction(report["name"], violation["case"], options)
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({"options": vars(options), "reports": said}, indent=1))
    return 1 if any(report.violations for report in reports) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.stress",
        description="Attack the package and count violations; the exit status is 1 if there are.",
    )
    parser.add_argument("--only", action="append", choices=ATTACKS, help="attack; repeatable")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases to run")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument("--case", type=int, action="append", help="only this case; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--thread-seconds", type=float, default=5.0, help="length of a thread run")
    parser.add_argument("--show", type=int, default=10, help="violations to print per attack")
    parser.add_argument("--json", type=Path, help="write counts and violations to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
