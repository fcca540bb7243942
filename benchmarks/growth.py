"""Measure how the time of fit grows with the number of rows.

    python benchmarks/growth.py                          all sets, 7,500 to 60,000 rows
    python benchmarks/growth.py --sets covtype           one set
    python benchmarks/growth.py --plot growth.png        also draw the curves

Each fit runs in its own process, on one thread, with `cache_size=2000`. The exponent is the slope
of a least-squares line through the logarithms of rows and time: with exponent 1, twice the rows
take twice the time, and with exponent 2, four times the time.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from cache import Job, data_folder, run

HERE = Path(__file__).resolve().parent
CACHE = 2000
TITLES = {
    "mnist10": "MNIST, ten classes",
    "noise1": "MNIST, 15 % of the labels flipped, C=1",
    "noise10": "MNIST, 15 % of the labels flipped, C=10",
    "covtype": "covtype, seven classes",
}

Curves = dict[str, list[dict[str, Any]]]  # by set: measurements, each with its number of rows


def exponent(curve: list[dict[str, Any]]) -> float:
    """Return the slope of log(seconds) over log(rows)."""
    rows, seconds = ([fit[name] for fit in curve] for name in ("rows", "seconds"))
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def draw(curves: Curves, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        label = f"{TITLES[name]}: exponent {exponent(curve):.2f}"
        axes.loglog(
            [fit["rows"] for fit in curve], [fit["seconds"] for fit in curve], "o-", label=label
        )
    rows = sorted({fit["rows"] for curve in curves.values() for fit in curve})
    axes.set_xticks(rows, [f"{n:,}" for n in rows])
    seconds = [fit["seconds"] for curve in curves.values() for fit in curve]
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200) if min(seconds) / 2 < t < max(seconds)]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set(xlabel="training rows", ylabel="time of fit, seconds")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--sets", nargs="+", choices=TITLES, default=list(TITLES), help=", ".join(TITLES))
    add("--rows", nargs="+", type=int, default=[7500, 15000, 30000, 60000], help="training rows")
    add("--out", type=Path, default=HERE / "results" / "growth.json", help="JSON file to write")
    add("--plot", type=Path, help="picture to write")
    return parser.parse_args()


def main() -> None:
    options = parse()
    curves: Curves = {}
    for name in options.sets:
        curve = curves.setdefault(name, [])
        for rows in options.rows:
            job = Job(name, rows, CACHE, 0, str(options.data), sys.executable)
            curve.append({"rows": rows, **run(job)})
            last = curve[-1]
            print(
                f"{name:8s} {rows:7,} rows {last['seconds']:8.2f} s  "
                f"{last['members']:7,} members  error {last['error']:5.2f} %",
                flush=True,
            )
        print(f"{name:8s} exponent {exponent(curve):.2f}", flush=True)
    options.out.write_text(json.dumps(curves, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        draw(curves, options.plot)


if __name__ == "__main__":
    main()
