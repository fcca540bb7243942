"""Compare the probabilities of calibrated models with those of other ways to calibrate them.

    python benchmarks/calibration.py                     all; continues an interrupted run
    python benchmarks/calibration.py --only fit          fits, streams or known cases
    python benchmarks/calibration.py --setting fit/17    one setting, which is not stored
    python benchmarks/calibration.py --quick             a smoke test with a few settings
    python benchmarks/calibration.py --show              tables of the stored results
    python benchmarks/calibration.py --page              writes docs/guide/probabilities.md

Fits are compared with `CalibratedClassifierCV(SVC, cv=5, ensemble=False)` with the same C, gamma
and method; those of estimators without a bias, which solve another problem, with a cross-validation
of the same estimator. Streams are compared with the same model, trained on the same stream with
`calibration=None` and calibrated by `CalibratedClassifierCV(FrozenEstimator(model))` on rows that
are drawn like the test rows. The log losses are of the same test rows.

A setting is beyond the target if its log loss is more than 15 % (streams: 30 %) and 0.01 nats above
the other one, or if accuracy or the recall of a class with less than 10 % of the rows falls by more
than 0.005 and two standard errors. Times are CPU seconds, the best of three. For information, the
table also has median ratios to `ensemble=True`, and those of fits to held-out rows.

Results are stored after each setting. Those of SVC are used again as long as the data and
parameters of the setting are the same, and ours as long as the package is the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import report
import resume
from cache import data_folder
from calibrated import measure
from calibration_cases import KINDS, KNOWN, REAL, Setting, settings
from datasets import files_of

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "guide" / "probabilities.md"
CASES = ("datasets", "random_settings", "paired", "calibration_cases", "calibrated")
COUNTS = {"fit": 140, "stream": 100, "known": len(KNOWN)}
QUICK = {"fit": 6, "stream": 6, "known": 2}
WORST = 10
ABOVE = {"fit": 1.15, "stream": 1.3}  # relative log loss
NATS, LOST = 0.01, -0.005
Report = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """The stored result of a setting."""

    key: str
    about: str
    ours: dict[str, Any]
    peers: dict[str, Any]

    @property
    def kind(self) -> str:
        return "fit" if self.peers else "stream"

    @property
    def estimator(self) -> str:
        return self.about.partition("(")[0]

    @property
    def other(self) -> float | None:
        """Log loss of the other calibration; None if its rows lack a class."""
        if self.kind == "stream":
            return self.ours["held_out"].get("log_loss")
        return float(self.ours.get("folds", self.peers["single"])["log_loss"])

    @property
    def ratio(self) -> float:
        return float(self.ours["log_loss"] / (self.other or float("nan")))

    @property
    def excess(self) -> float:
        return float(self.ours["log_loss"] - (self.other or float("nan")))

    @property
    def beyond(self) -> float:
        """Log loss divided by the largest one that reaches the target."""
        other = self.other or float("nan")
        return float(self.ours["log_loss"] / max(ABOVE[self.kind] * other, other + NATS))

    def against(self, name: str) -> float | None:
        """Return the log loss relative to that of another calibration, for information."""
        other = (self.peers | self.ours).get(name)
        return self.ours["log_loss"] / other["log_loss"] if other else None

    @property
    def added(self) -> float:
        """Relative increase of the time of the fit."""
        return float(self.ours["fit_calibrated"] / self.ours["fit"] - 1)

    @property
    def added_at_all(self) -> float:
        """Relative increase of the time until the first probabilities."""
        return self.added + float(self.ours["first"] / self.ours["fit"])

    def changed(self, what: str) -> tuple[float, float] | None:
        """Return what calibration adds to accuracy or recall, and the standard error."""
        change = self.ours.get(f"{what}_change")
        return None if change is None else (change[0], change[1])

    def loses(self, what: str) -> bool:
        change = self.changed(what)
        return change is not None and change[0] < min(LOST, -2 * change[1])


def main() -> None:
    options = parse()
    if options.setting:
        kind, _, seed = options.setting.partition("/")
        result = measure(Setting(kind, int(seed)), str(options.data), None)
        print(json.dumps(result, indent=1, ensure_ascii=False))
        return
    if options.show or options.page or options.check:
        outcome = json.loads(options.out.read_text(encoding="utf-8"))
    else:
        outcome = opened(options)
        run(outcome, options)
    results = found_of(outcome)
    if options.page or options.check:
        write_page(outcome, results, options)
    else:
        show(results, outcome)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--out", type=Path, help="JSON file (default: results/calibration.json or quick.json)")
    add("--only", nargs="+", choices=KINDS, default=KINDS, metavar="KIND", help=", ".join(KINDS))
    add("--setting", metavar="KIND/SEED", help="repeat one setting, and print its results")
    add("--jobs", type=int, default=1, help="processes at a time (default: 1)")
    add("--quick", action="store_true", help="a smoke test with a few settings")
    add("--show", action="store_true", help="only print the tables of stored results")
    add("--page", nargs="?", type=Path, const=PAGE, help="write the figures into the page")
    add("--check", action="store_true", help="only compare the page with the stored results")
    options = parser.parse_args()
    if options.out is None:
        name = "quick.json" if options.quick else "calibration.json"
        options.out = HERE / "results" / name
    return options


# -- running -------------------------------------------------------------------------------------


def opened(options: argparse.Namespace) -> Report:
    """Return the report with the stored results that are still valid."""
    stored = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    files = [path for name in files_of(REAL) if (path := options.data / name).is_file()]
    made = {**report.heading(HERE.parent, files), "code": resume.code(CASES)}
    cases: dict[str, Any] = stored.get("cases", {})
    if stored.get("code") != made["code"]:
        for case in cases.values():
            case.pop("ours", None)
    return {"quick": options.quick, **made, "cases": cases}


def run(outcome: Report, options: argparse.Namespace) -> None:
    """Measure the settings that are not stored."""
    known = outcome["cases"]
    counts = {kind: (QUICK if options.quick else COUNTS)[kind] for kind in options.only}
    due = [case for case in settings(counts, options.data) if "ours" not in known.get(case.key, {})]
    calls = [(case, str(options.data), known.get(case.key)) for case in due]
    for case, result in resume.results(measure, calls, summary, options.jobs):
        known[case.key] = result
        report.write(options.out, outcome)
    print(f"written to {os.path.relpath(options.out)}", file=sys.stderr)


def summary(result: dict[str, Any]) -> str:
    if "failed" in result["ours"]:
        return f"failed: {result['ours']['failed']}"
    one = Found("", result["about"], result["ours"], result.get("peers", {}))
    return f"{one.ratio:.3f}, {one.excess:+.4f} nats, {one.about}"


def found_of(outcome: Report) -> list[Found]:
    return [
        Found(key, case["about"], case["ours"], case.get("peers", {}))
        for key, case in outcome["cases"].items()
        if "ours" in case and "failed" not in case["ours"]
    ]


# -- tables --------------------------------------------------------------------------------------


def groups(results: list[Found]) -> Iterator[tuple[str, list[Found]]]:
    """Yield parts of the settings by name."""
    for kind in ("fit", "stream"):
        yield f"{kind}s", (own := [one for one in results if one.kind == kind])
        for name in sorted({one.estimator for one in own}):
            yield f"  {name}", [one for one in own if one.estimator == name]
        for method in ("sigmoid", "isotonic"):
            yield f"  {method}", [one for one in own if f", {method};" in one.about]
        yield "  several classes", [one for one in own if ", 2 classes" not in one.about]
    for order in ("random", "sorted", "late"):
        yield f"  {order}", [one for one in own if f", {order} in chunks" in one.about]
    yield "  with replay", [one for one in own if "replay=" in one.about]


HEADER = (
    *("", "settings", "median ratio", "worst ratio", "worst excess", "beyond", "above prior"),
    *("to ensemble", "to held out", "accuracy", "rare recall", "lost"),
    *("fit time added", "worst time", "to 1st proba", "worst of it"),
)


def line(name: str, results: list[Found]) -> list[str]:
    """Return a row of the table."""
    judged = [one for one in results if one.other is not None]
    times = [one.added for one in results], [one.added_at_all for one in results]
    return [
        name,
        str(len(results)),
        f"{statistics.median(one.ratio for one in judged):.3f}",
        f"{max(one.ratio for one in judged):.2f}",
        f"{max(one.excess for one in judged):+.4f}",
        str(sum(one.beyond > 1 for one in judged)),
        str(sum(one.ours["log_loss"] > 1.01 * one.ours["prior"] for one in results)),
        *(
            median_ratio([one.against(name) for one in results])
            for name in ("ensemble", "held_out")
        ),
        least(results, "accuracy"),
        least(results, "recall"),
        str(sum(one.loses("accuracy") or one.loses("recall") for one in results)),
        *(f"{f(values):+.1%}" for values in times for f in (statistics.median, max)),
    ]


def median_ratio(ratios: list[float | None]) -> str:
    known = [ratio for ratio in ratios if ratio is not None]
    return f"{statistics.median(known):.3f}" if known else "–"


def least(results: list[Found], what: str) -> str:
    """Return the smallest change and its standard error; losses beyond the target come first."""
    known = [(not one.loses(what), change) for one in results if (change := one.changed(what))]
    if not known:
        return "–"
    value, error = min(known)[1]
    return f"{value:+.3f} ± {error:.3f}"


def show(results: list[Found], outcome: Report) -> None:
    print(report.table(HEADER, [line(name, some) for name, some in groups(results) if some]))
    for key, case in outcome["cases"].items():
        if "failed" in case.get("ours", {}):
            print(f"failed: {key}: {case['ours']['failed']} {case['about']}")
    judged = [one for one in results if one.other is not None]
    for kind in ("fit", "stream"):
        losses = [one for one in judged if one.kind == kind]
        show_worst(f"Log loss, {kind}s", losses, lambda one: -one.beyond, loss)
    for what in ("accuracy", "recall"):
        known = [one for one in results if one.changed(what)]
        show_worst(f"Change of {what}", known, partial(order, what), partial(changed, what))
    show_worst("Added time of fit", results, lambda one: -one.added, time_added)


def show_worst(
    title: str, results: list[Found], order: Callable[[Found], Any], said: Callable[[Found], str]
) -> None:
    print(f"\n{title}, worst first:\n")
    for one in sorted(results, key=order)[:WORST]:
        print(f"  {said(one)}  --setting {one.key}: {one.about}")


def order(what: str, one: Found) -> tuple[bool, float]:
    """Order settings by the change of accuracy or recall; losses beyond the target come first."""
    return not one.loses(what), (one.changed(what) or (0.0, 0.0))[0]


def changed(what: str, one: Found) -> str:
    value, error = one.changed(what) or (0.0, 0.0)
    said = f"{value:+.4f} ± {error:.4f}"
    return f"{said}, accuracy {one.ours['accuracy_change'][0]:+.4f}" if what == "recall" else said


def loss(one: Found) -> str:
    said = f"{one.ratio:.3f}: {one.ours['log_loss']:.4f}, other {one.other:.4f}"
    held = one.ours["held_out"].get("log_loss")
    said += f", held out {held:.4f}" if one.kind == "fit" and held else ""
    fallback = ", fallback" if one.ours["report"]["fallback"] else ""
    return f"{said}, prior {one.ours['prior']:.4f}{fallback}"


def time_added(one: Found) -> str:
    return f"{one.added:+.1%} of {one.ours['fit']:.3f} s, first call {one.ours['first']:.3f} s"


# -- page ----------------------------------------------------------------------------------------


def write_page(outcome: Report, results: list[Found], options: argparse.Namespace) -> None:
    """Write the figures into the page; with --check, exit if they differ."""
    if outcome["quick"]:
        sys.exit(f"{options.out.name} is of a smoke test: its figures say nothing.")
    page = options.page or PAGE
    before = page.read_text(encoding="utf-8")
    after = report.filled(before, "calibration", figures(results))
    if options.check and before != after:
        sys.exit(
            f"The figures in {page.name} are not those of {options.out.name}: run "
            "`python benchmarks/calibration.py --page`."
        )
    if before != after:
        page.write_text(after, encoding="utf-8")


def figures(results: list[Found]) -> str:
    """Return the table of the page, and what it does not show."""
    fits, streams = ([one for one in results if one.kind == kind] for kind in ("fit", "stream"))
    parts = {
        "`fit`: `CalibratedClassifierCV(SVC)`": [one for one in fits if "folds" not in one.ours],
        "`fit` without a bias: the same with this estimator": [
            one for one in fits if "folds" in one.ours
        ],
        "streams: calibration on held-out rows": streams,
        "streams with `replay`: the same": [one for one in streams if "replay=" in one.about],
    }
    header = ["log loss compared with", "settings", "median", "worst*", "worst, nats"]
    cells = [
        [*header, "accuracy", "rare recall"],
        ["---", *["---:"] * 6],
        *(page_line(name, some) for name, some in parts.items() if some),
    ]
    rows = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([*rows, "", *sentences(fits, streams)])


def page_line(name: str, results: list[Found]) -> list[str]:
    numbers = dict(zip(HEADER, line(name, results), strict=True))
    worst = max((one.ratio for one in results if one.excess > NATS), default=None)
    rest = [numbers[key] for key in ("worst excess", "accuracy", "rare recall")]
    ratios = [f"{numbers['median ratio']} ×", "–" if worst is None else f"{worst:.2f} ×"]
    return [name, numbers["settings"], *ratios, *rest]


def sentences(fits: list[Found], streams: list[Found]) -> Iterator[str]:
    both = [*fits, *streams]
    above = sum(one.other is not None and one.beyond > 1 for one in both)
    harmed = sum(one.loses("accuracy") or one.loses("recall") for one in both)
    yield "\\* Of settings in which the log loss is higher by more than 0.01 nats."
    yield (
        f"In {above} of {len(both)} settings, the log loss is higher by more than 15 % (streams: "
        f"30 %) and 0.01 nats; in {harmed}, accuracy or recall is lower by more than 0.005 and two "
        "standard errors."
    )
    times = [one.added for one in fits], [one.added_at_all for one in fits]
    shares = [f(values) for values in times for f in (statistics.median, max)]
    fit, most, first, most_first = (f"{share:.0%}".replace("%", " %") for share in shares)
    yield f"Calibration adds {fit} to the time of `fit` in the median and {most} at most."
    yield (
        "The first call of `predict_proba` computes the curves; until its result, calibration adds "
        f"{first} in the median and {most_first} at most."
    )


if __name__ == "__main__":
    main()
