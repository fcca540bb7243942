"""Reproduce table 2 and figure 9 of [loosli2007]: ten classes, 8,100,000 virtual examples each.

    python reproduce/loosli2007_final.py --only twelve     the images and 12 variants of each
    python reproduce/loosli2007_final.py --only final      the images and 134 variants of each
    python reproduce/loosli2007_final.py --plot            draw figure 9 of the results at hand

A run that was stopped goes on from its checkpoint (--checkpoints, a folder). The test set plays no
part but to be counted on: parameters were chosen on a part of the training set.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import common
import loosli2007_setup as setup
import numpy as np
from threadpoolctl import threadpool_limits

MINUTES = 3.0  # between two looks at the test set
RUNS: dict[str, dict[str, Any]] = {
    "twelve": {"variants": 13, "finish_every": None, "cache_size": 8000},
    "final": {"variants": 135, "finish_every": 600_000, "cache_size": 10_000},
}
QUICK = 2000  # images of a smoke test


class Curve:
    """What is noted during a run, and where it is kept when the run is stopped."""

    def __init__(self, images: setup.Images, projection: Any) -> None:
        self._X = projection.transform(images.X_test)
        self._y = images.y_test
        self._looked = 0.0
        self._cpu = time.process_time()
        self.aside = 0.0  # seconds spent looking
        self.points: list[dict[str, Any]] = []
        self.members: list[list[int]] = []  # after each chunk: examples met, members

    def __call__(self, model: Any, moment: Any) -> None:
        self.members.append([moment.examples, model.stats_["members"]])
        if moment.seconds - self._looked >= 60 * MINUTES:
            self.look(model, moment)

    def look(self, model: Any, moment: Any) -> dict[str, Any]:
        began = time.perf_counter()
        wrong = int((model.predict(self._X) != self._y).sum())
        stats = model.stats_
        self.aside += time.perf_counter() - began
        self._looked = moment.seconds
        point = {
            "examples": moment.examples,
            "seconds": moment.seconds - self.aside,
            "cpu_seconds": time.process_time() - self._cpu,
            "error": 100.0 * wrong / len(self._y),
            "members": stats["members"],
            "inserted": stats["inserted"],
            "finish_seconds": stats["finish_seconds"],
            "sifted": vars(moment.tally) | {"lost": moment.tally.lost},
        }
        self.points.append(point)
        common.progress(
            f"{point['examples']:>9} examples  {point['seconds'] / 60:6.1f} min  "
            f"{point['error']:.2f} %  {point['members']} members  "
            f"hidden {100 * moment.tally.lost:.1f} %"
        )
        return point


def measure(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    plan = RUNS[name]
    images = setup.load(folder)
    if options.quick:
        images.X, images.y = images.X[:QUICK], images.y[:QUICK]
    variants = 5 if options.quick else plan["variants"]
    with threadpool_limits(1), setup.timed() as spent:
        with setup.timed() as preparing:
            projection = setup.project(images)
            source = setup.virtual(images, variants, projection, n_jobs=options.jobs)
        curve = Curve(images, projection)
        model = setup.model(options.jobs, plan["cache_size"], finish_every=plan["finish_every"])
        last: list[Any] = []

        def note(model: Any, moment: Any) -> None:
            last[:] = [moment]
            curve(model, moment)

        checkpoint = None
        if options.checkpoints is not None:
            options.checkpoints.mkdir(parents=True, exist_ok=True)
            checkpoint = options.checkpoints / f"loosli2007-{name}.mwz"
        model.learn_from(source, sift=options.sift, checkpoint=checkpoint, callback=note)
        end = curve.look(model, last[0])
    coefficients = model.dual_coef_
    return {
        **end,
        "wall_seconds": spent["seconds"],
        "cpu_seconds": spent["cpu_seconds"],
        "preparing_seconds": preparing["seconds"],
        "looking_seconds": curve.aside,
        "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "support_vectors": np.count_nonzero(coefficients, axis=1).tolist(),
        "bounded": int((np.abs(coefficients) >= setup.C).sum()),
        "stats": model.stats_,
        "curve": curve.points,
        "members_over_time": curve.members,
    }


def settings_of(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    return {
        **RUNS[name],
        "gamma": setup.GAMMA,
        "C": setup.C,
        "reprocess": setup.REPROCESS,
        "strength": setup.STRENGTH,
        "smoothing": setup.SMOOTHING,
        "components": setup.COMPONENTS,
        "sift": options.sift,
        "jobs": options.jobs,
        "quick": options.quick,
        "data": common.digest(folder / setup.FILE),
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_options(parser, __file__)
    add = parser.add_argument
    add("--only", nargs="+", choices=RUNS, metavar="RUN", help=f"runs: {', '.join(RUNS)}")
    add("--jobs", type=int, default=2, help="threads (default: 2)")
    add("--sift", type=float, default=0.01, help="see learn_from (default: 0.01)")
    add("--checkpoints", type=Path, help="a folder to keep checkpoints in")
    return parser.parse_args()


def main() -> None:
    options = parse()
    folder, out = common.data_folder(options), common.out_path(options, __file__)
    common.check_files(folder, [setup.FILE])
    report = common.Report(out)
    for name in RUNS:
        if options.only and name not in options.only:
            continue
        settings = settings_of(name, folder, options)
        if options.resume and report.holds(name, settings):
            common.progress(f"{name}: measured before")
            continue
        report.add(name, settings, measure(name, folder, options))
    rows = [
        [
            name,
            f"{m['measurements']['examples']:,}",
            f"{m['measurements']['error']:.2f}",
            f"{m['measurements']['wall_seconds'] / 60:.1f}",
            f"{m['measurements']['cpu_seconds'] / 60:.1f}",
            f"{m['measurements']['members']:,}",
            f"{m['measurements']['peak_gigabytes']:.1f}",
        ]
        for name, m in report.sets.items()
    ]
    header = ("run", "examples", "error, %", "minutes", "CPU minutes", "members", "GB")
    print(common.table(header, rows))


if __name__ == "__main__":
    main()
