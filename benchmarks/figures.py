"""Write the measured figures of the benchmark into README.md, or check that they stand there.

python benchmarks/figures.py            rewrite what is between the markers
python benchmarks/figures.py --check    only say whether it agrees with the results
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
    before = options.page.read_text(encoding="utf-8")
    after = filled(before, "speed", figures(report))
    if options.check:
        if before != after:
            sys.exit(
                f"The figures in {options.page.name} are not those of {options.results.name}: run "
                "`python benchmarks/figures.py`."
            )
    elif before != after:
        options.page.write_text(after, encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--results", type=Path, default=HERE / "results" / "speed.json", help="of speed.py (JSON)")
    add("--page", type=Path, default=HERE.parent / "README.md", help="where the figures go")
    add("--check", action="store_true", help="change nothing; exit with 1 where they differ")
    return parser.parse_args()


def figures(report: dict[str, Any]) -> str:
    """Return what the page shows: a table of the races, a few more figures, how it was measured."""
    results = {
        work.name: Results(report["works"][work.name]["measurements"])
        for work in WORKS
        if work.name in report["works"]
    }
    peers = (SVC, *INTELEX)
    races = [n for n in results if OURS in results[n] and any(p in results[n] for p in peers)]
    rows = [race(report["works"][name]["title"], results[name]) for name in races]
    lines = [row(HEADER), row(["---", *["---:"] * (len(HEADER) - 1)]), *map(row, rows), ""]
    more = [f"- {line}" for line in notes(report, results)]
    return "\n".join([*lines, *more, *([""] if more else []), source(report)])


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
    """Yield the figures that are of no race, where they were measured."""
    measured = {(f["work"], f["what"]): f["measured"] for f in report["figures"]}
    if faster := measured.get(("mnist10", times_svc(0, "predict").what)):
        rows = results["mnist10"].take(OURS, "rows")[0][1]
        yield f"`predict` of {rows:,} MNIST rows, ten classes: {faster:.0f} × faster than SVC's."
    if faster := measured.get(("threads", "fit: times faster on two threads")):
        share = measured.get(("threads", "rounds with the same model, bit for bit"))
        same = ", with the same model, bit for bit" if share == 1 else ""
        yield f"Two threads on MNIST 8 vs rest: {faster:.1f} × faster than one{same}."
    if microseconds := measured.get(("learn_one", call_time().what)):
        yield f"`learn_one`: {microseconds:.0f} µs a call (2 features, about 200 members)."


def source(report: dict[str, Any]) -> str:
    """Say where the figures come from and what they mean."""
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
        "[All figures](benchmarks/results/speed.json) are kept in the repository, together with "
        "targets and machine load; `make bench` reproduces them."
    )


if __name__ == "__main__":
    main()
