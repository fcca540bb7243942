"""Reproduce figures 6 to 10 of "Incremental Support Vector Learning" [laskov2006].

    python reproduce/laskov2006.py                       all parts
    python reproduce/laskov2006.py --only kdd            one of them
    python reproduce/laskov2006.py --resume --plot       measure what is missing, and draw all
    python reproduce/laskov2006.py --quick               a smoke test on small parts of the data

usps-windows (figure 8): the error of ten classes with a window of M rows a class. The paper has
σ² = 0.3 · 256, C = 100 and 274 support vectors a class, and does not say how K and the pixels are
scaled. Of the readings tried, K = exp(-|x - y|² / σ²) on pixels from -1 to 1, smoothed by a
Gaussian of width 0.75, is among the nearest, with 304. Plain pixels have 764, and 460 with 2σ²,
which is shown beside.
kdd (figures 9 and 10): 10 rows by anomaly score and 50 by asking, against anomaly detection alone,
an SVM of all labels, and one reduced to as many support vectors as asking leads to.
forms (figures 6 and 7): sensitivities in gaxpy form against gather-and-multiply, and whole fits
with and without screening.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import common
import laskov2006_forms
import laskov2006_kdd
import laskov2006_usps
from report import judged, verdicts
from works import Results

PICTURES = common.REPOSITORY / "docs" / "images"
PARTS: dict[str, ModuleType] = {
    "usps-windows": laskov2006_usps,
    "kdd": laskov2006_kdd,
    "forms": laskov2006_forms,
}


def settings_of(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures of a part depend on, beside the code."""
    part = PARTS[name]
    given = part.settings(quick=options.quick, seeds=options.seeds)
    data = {file: common.digest(folder / file) for file in part.FILES}
    return {"quick": options.quick, **given, "data": data}


def measure(name: str, folder: Path, options: argparse.Namespace) -> Any:
    return PARTS[name].measure(folder, quick=options.quick, seeds=options.seeds)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_options(parser, __file__)
    add, shown = parser.add_argument, os.path.relpath(PICTURES)
    add("--only", nargs="+", choices=PARTS, metavar="PART", help=f"parts: {', '.join(PARTS)}")
    usual = f"{laskov2006_usps.ORDERS} orders, {laskov2006_kdd.SEEDS} draws"
    add("--seeds", type=int, help=f"orders of usps-windows, draws of kdd (default: {usual})")
    add(
        "--plot",
        nargs="?",
        type=Path,
        const=PICTURES,
        metavar="FOLDER",
        help=f"draw laskov2006-PART.png (default: in {shown})",
    )
    return parser.parse_args()


def main() -> None:
    options = parse()
    report, names, _ = common.measured(
        __file__, options, PARTS, lambda name: PARTS[name].FILES, settings_of, measure
    )
    judgements: list[dict[str, Any]] = []
    for name in names:
        part, results = PARTS[name], Results(report.sets[name]["measurements"])
        print(f"{name}, {part.WORK.title}\n\n{part.shown(results)}\n")
        judgements += judged(part.WORK, results)
        if options.plot:
            picture = options.plot / f"laskov2006-{name}.png"
            part.draw(results, picture)
            print(f"drawn to {os.path.relpath(picture)}\n")
    print(verdicts(judgements))
    print(f"\nwritten to {os.path.relpath(report.path)}")


if __name__ == "__main__":
    main()
