"""Write the results of the benchmark into the pages, or check that the pages agree with them.

python benchmarks/figures.py            rewrite the text between the markers
python benchmarks/figures.py --check    only check that it agrees with the results

README.md shows a few data sets (marker "headline"), docs/guide/speed.md all (marker "speed").
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from report import filled
from works import INTELEX, OURS, SVC, WORKS, Results, call_time, times_intelex, times_svc

HERE = Path(__file__).resolve().parent
PAGES = (HERE.parent / "README.md", HERE.parent / "docs" / "guide" / "speed.md")
SITE = "https://marginwise.github.io/marginwise"
# The data sets of the README. On letter, the speed-up over SVC is smallest.
SHORT = {
    "mnist10": "MNIST, ten classes, 60,000 rows",
    "mnist8": "MNIST, 8 vs rest, 60,000 rows",
    "a9a": "a9a, 32,561 rows, sparse",
    "covtype2": "covtype, 2 vs rest, 40,000 rows",
    "letter": "letter, 26 classes, 16,000 rows",
}
HEADER = (
    "",
    "OnlineSVC, s",
    "SVC, s",
    "intelex, s",
    "faster than SVC",
    "faster than intelex",
    "error, %",
    "SVC's error, %",
)


def main() -> None:
    options = parse()
    if not options.results.is_file():
        sys.exit(f"There is no {options.results.name} to take figures from: run `make bench`.")
    report = json.loads(options.results.read_text(encoding="utf-8"))
    if report["quick"]:
        sys.exit(f"{options.results.name} is of a smoke test: its figures say nothing.")
    for page in options.page or PAGES:
        bring_up_to_date(page, report, options)


def bring_up_to_date(page: Path, report: dict[str, Any], options: argparse.Namespace) -> None:
    """Rewrite the figures of a page; with --check, exit if they differ."""
    before = after = page.read_text(encoding="utf-8")
    texts = {"headline": headline, "speed": figures}
    names = [name for name in texts if f"<!-- figures: {name} -->" in before]
    for name in names or ["speed"]:
        after = filled(after, name, texts[name](report))
    if options.check and before != after:
        sys.exit(
            f"The figures in {page.name} are not those of {options.results.name}: run "
            "`python benchmarks/figures.py`."
        )
    if before != after:
        page.write_text(after, encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--results", type=Path, default=HERE / "results" / "speed.json", help="JSON of speed.py")
    add("--page", type=Path, action="append", help="page with markers; may be repeated")
    add("--check", action="store_true", help="change nothing; exit with status 1 if they differ")
    return parser.parse_args()


def headline(report: dict[str, Any]) -> str:
    """Return the table of the README, and the smallest speed-ups over all sets."""
    results = races(report)
    header = ["time of `fit`", *HEADER[1:4], "error, %", "SVC's error, %"]
    rows = [row(header), row(["---", *["---:"] * (len(header) - 1)])]
    for name in filter(results.__contains__, SHORT):
        cells = race(SHORT[name], results[name])
        rows.append(row([*cells[:4], *cells[6:]]))
    least = [
        min(filter(None, map(check.measure, results.values())), default=None)
        for check in (times_svc(0), times_intelex())
    ]
    return "\n".join(
        [
            *rows,
            "",
            "One thread; intelex is scikit-learn-intelex. "
            f"On every set measured, `OnlineSVC` is at least {shown(least[0], '{:.1f}')} times as "
            f"fast as `SVC` and {shown(least[1], '{:.1f}')} times as fast as intelex: "
            f"see [all figures and how they were measured]({SITE}/guide/speed.html).",
        ]
    )


def figures(report: dict[str, Any]) -> str:
    """Return the table of all sets, a few more figures, and how they were measured."""
    results = races(report)
    rows = [race(report["works"][name]["title"], found) for name, found in results.items()]
    lines = [row(HEADER), row(["---", *["---:"] * (len(HEADER) - 1)]), *map(row, rows), ""]
    more = [f"- {line}" for line in notes(report, results)]
    return "\n".join([*lines, *more, *([""] if more else []), source(report)])


def races(report: dict[str, Any]) -> dict[str, Results]:
    """Return the results of the data sets on which OnlineSVC and a peer ran."""
    results = {
        work.name: Results(report["works"][work.name]["measurements"])
        for work in WORKS
        if work.name in report["works"]
    }
    peers = (SVC, *INTELEX)
    return {
        name: found
        for name, found in results.items()
        if OURS in found and any(peer in found for peer in peers)
    }


def row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def race(title: str, results: Results) -> list[str]:
    """Return the row of one data set."""
    ours, svc = (results.median(key, "fit", "wall") for key in (OURS, SVC))
    over_svc, over_intelex = (check.measure(results) for check in (times_svc(0), times_intelex()))
    intelex = ours * over_intelex if ours and over_intelex else None
    errors = [results.mean(key, "error") for key in (OURS, SVC)]
    return [
        title,
        *(seconds(value) for value in (ours, svc, intelex)),
        *(shown(value, "{:.1f} ×") for value in (over_svc, over_intelex)),
        *(shown(value, "{:.2f}") for value in errors),
    ]


def seconds(value: float | None) -> str:
    return shown(value, "{:,.0f}" if value and value >= 100 else "{:#.2g}").removesuffix(".")


def shown(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def notes(report: dict[str, Any], results: dict[str, Results]) -> Iterator[str]:
    """Yield further figures, if they were measured."""
    measured = {(f["work"], f["what"]): f["measured"] for f in report["figures"]}
    if faster := measured.get(("mnist10", times_svc(0, "predict").what)):
        rows = results["mnist10"].take(OURS, "rows")[0][1]
        yield f"`predict` of {rows:,} MNIST rows, ten classes: {faster:.0f} × faster than SVC's."
    if faster := measured.get(("threads", "fit: times faster on two threads")):
        share = measured.get(("threads", "rounds with the same model, bit for bit"))
        same = ", with the same model, bit for bit" if share == 1 else ""
        yield f"Two threads on MNIST 8 vs rest: {faster:.1f} × faster than one{same}."
    if microseconds := measured.get(("learn_one", call_time().what)):
        yield f"`learn_one`: {microseconds:.0f} µs per call (2 features, about 200 members)."


def source(report: dict[str, Any]) -> str:
    """Describe how the figures were measured."""
    machine, versions = report["machine"], report["versions"]
    intelex = versions["scikit-learn-intelex"]
    peers = f"scikit-learn {versions['scikit-learn']}"
    if intelex:
        peers += f", scikit-learn-intelex {intelex} (the better of its dense float32 and CSR input)"
    commit = f"{report['commit'] or 'unknown':.10}" + (" with changes" if report["dirty"] else "")
    earlier = [
        f"{row} {at:.10}" for row, at in report.get("commits", {}).items() if at != report["commit"]
    ]
    commit += f" (earlier: {', '.join(earlier)})" if earlier else ""
    return (
        "Times are single-threaded wall times of `fit`: the median over rounds in which the "
        "contestants take turns, each in its own process. Errors are averaged over the rounds. "
        f"Measured {report['started'][:10]} on {machine['cores']} cores of {machine['cpu']}, with "
        f"{peers}; marginwise {versions['marginwise']}, commit {commit}. "
        "`benchmarks/results/speed.json` has all figures, together with targets and machine load; "
        "`make bench` reproduces them."
    )


if __name__ == "__main__":
    main()
