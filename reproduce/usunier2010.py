"""Reproduce figures 2 to 4 of "Guarantees for Approximate Incremental SVMs" [usunier2010].

    python reproduce/usunier2010.py                     all of a9a, three seeds
    python reproduce/usunier2010.py --plot              the same, and draw docs/images/tracking.png
    python reproduce/usunier2010.py --resume --plot     measure what is missing, and draw
    python reproduce/usunier2010.py --quick             a smoke test on 800 rows

Adult, C=1, γ=0.005: the duality gap after each example, divided by C and by the number of examples
so far, as TrackingSVC goes once over the rows. Algorithm 1 takes K steps on examples at random,
algorithm 2 one on the new example before. The random teacher is `fit`; the active one, which takes
the nearest to the boundary of 50 unseen examples, is ActiveLearner. The paper averages ten runs.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from datasets import Split, _first, load
from report import judged, verdicts
from usunier2010_setups import SETUPS, WORK, Setup
from works import Results

from marginwise import TrackingSVC
from marginwise.active import ActiveLearner

PICTURE = common.REPOSITORY / "docs" / "images" / "tracking.png"
C, GAMMA, POOL_SIZE = 1.0, 0.005, 50
SEEDS, QUICK_ROWS, POINTS = 3, 800, 200  # points of a curve


# -- measuring -------------------------------------------------------------------------------------


def learn(setup: Setup, split: Split, seed: int) -> Any:
    """Go once over the rows, in the order of the teacher."""
    model = TrackingSVC(
        C=C,
        gamma=GAMMA,
        steps=setup.K,
        process=setup.algorithm == 2,
        record=True,
        random_state=seed,
    )
    if setup.teacher == "random":
        return model.fit(split.X, split.y)
    teacher = ActiveLearner(
        model, split.X, strategy=setup.teacher, pool_size=POOL_SIZE, stop=None, random_state=seed
    )
    return teacher.run(lambda row: split.y[row]).estimator_


def measure(setup: Setup, split: Split, seed: int) -> dict[str, Any]:
    """Learn, and measure the normalised gap all along; error in percent."""
    start = time.perf_counter()
    model = learn(setup, split, seed)
    seconds = time.perf_counter() - start
    gaps = np.ravel(model.history_["gap"]) / (C * np.arange(1, len(split.y) + 1))
    parts = np.array_split(gaps, min(POINTS, len(gaps)))
    return {
        "seed": seed,
        "gap": float(gaps.mean()),
        "quarters": [float(part.mean()) for part in np.array_split(gaps, 4)],
        "curve": [round(float(part.mean()), 6) for part in parts],
        "rows": len(gaps),
        "bound": float(model.bound_),
        "error": 100 * float(np.mean(model.predict(split.X_test) != split.y_test)),
        "support_vectors": len(model.support_),
        "kernel_evaluations": int(model.stats_["kernel_evaluations"]),
        "seconds": seconds,
    }


def measure_setup(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    found = []
    for seed in range(options.seeds):
        split = load("a9a", str(folder), form="csr64")
        if options.quick:
            split.X, split.y = _first(split.X, split.y, QUICK_ROWS)
        found.append(measure(SETUPS[name], split, seed))
        common.progress(
            f"{name}, seed {seed}: gap {found[-1]['gap']:.4f}, bound {found[-1]['bound']:.3f}, "
            f"{found[-1]['seconds']:.1f} s"
        )
    return {name: found}


def settings_of(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures of a setup depend on, beside the code."""
    return {
        "quick": options.quick,
        "seeds": options.seeds,
        "C": C,
        "gamma": GAMMA,
        "pool_size": POOL_SIZE,
        "setup": SETUPS[name]._asdict(),
        "data": {"a9a.npz": common.digest(folder / "a9a.npz")},
    }


# -- the command -----------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_options(parser, __file__)
    add, shown = parser.add_argument, os.path.relpath(PICTURE)
    add("--seeds", type=int, help=f"runs of each setup (default: {SEEDS})")
    add(
        "--plot",
        nargs="?",
        type=Path,
        const=PICTURE,
        metavar="PNG",
        help=f"draw (default: {shown})",
    )
    options = parser.parse_args()
    options.seeds = options.seeds or (1 if options.quick else SEEDS)
    return options


def rows_of(name: str, results: Results) -> list[str]:
    """Return the row of a setup: means over the seeds, medians of times."""
    columns = (
        ("gap", "{:.4f}"),
        ("bound", "{:.3f}"),
        ("error", "{:.2f}"),
        ("support_vectors", "{:,.0f}"),
    )
    quarters = np.mean(results.take(name, "quarters"), axis=0)
    return [
        name,
        *(form.format(results.mean(name, column) or 0) for column, form in columns),
        *(f"{value:.4f}" for value in quarters),
        f"{(results.mean(name, 'kernel_evaluations') or 0) / 1e6:,.0f}",
        f"{results.median(name, 'seconds') or 0:,.1f}",
    ]


def show(results: Results, *, quick: bool) -> None:
    if quick:
        print("A smoke test on a few rows: its figures say nothing about the paper.\n")
    columns = ("gap", "bound", "error, %", "SVs", "1st quarter", "2nd", "3rd", "4th", "K, M", "s")
    print(f"{WORK.title}; gap is the mean over the pass, of the quarters too\n")
    print(common.table(("", *columns), [rows_of(name, results) for name in results]))
    print(f"\n{verdicts(judged(WORK, results))}")


def main() -> None:
    options = parse()
    folder, out = common.data_folder(options), common.out_path(options, __file__)
    common.check_files(folder, ["a9a.npz"])
    report = common.Report(out)
    common.measure_sets(
        report,
        SETUPS,
        partial(settings_of, folder=folder, options=options),
        partial(measure_setup, folder=folder, options=options),
        resume=options.resume,
    )
    results = Results()
    for name in SETUPS:
        results.update(report.sets[name]["measurements"])
    show(results, quick=options.quick)
    print(f"\nwritten to {os.path.relpath(out)}")
    if options.plot:
        from usunier2010_plot import draw

        draw(results, options.plot)
        print(f"drawn to {os.path.relpath(options.plot)}")


if __name__ == "__main__":
    main()
