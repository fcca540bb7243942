"""Reproduce table 2 and figure 9 of [loosli2007]: ten classes, 8,100,000 virtual examples each.

    python reproduce/loosli2007_final.py --only twelve     the images and 12 variants of each
    python reproduce/loosli2007_final.py --only final      the images and 134 variants of each
    python reproduce/loosli2007_final.py --only directions the same, of directions of strokes
    python reproduce/loosli2007_final.py --only twelve-directions

A run that was stopped goes on from its checkpoint (--checkpoints, a folder). The test set plays no
part but to be counted on: parameters were chosen on a part of the training set.
"""

from __future__ import annotations

import argparse
import hashlib
import json
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
    "twelve-directions": {"variants": 13, "finish_every": None, "cache_size": 6000},
    "directions": {"variants": 135, "finish_every": 600_000, "cache_size": 6000},
}
OF_DIRECTIONS = ("twelve-directions", "directions")
QUICK = 2000  # images of a smoke test


class Curve:
    """What is noted during a run; kept beside the checkpoint, so that it goes on with the run."""

    def __init__(self, images: setup.Images, projection: Any, path: Path | None) -> None:
        self._path = path
        self._X = projection.transform(images.X_test)
        self._y = images.y_test
        self._looked = 0.0
        self._cpu = time.process_time()
        self.aside = 0.0  # seconds spent looking
        self.points: list[dict[str, Any]] = []
        self.members: list[list[int]] = []  # after each chunk: examples met, members

    def __call__(self, model: Any, moment: Any) -> None:
        if not self.members and moment.seconds > 0 and self._path and self._path.is_file():
            self._take_up(moment.examples)
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
        if self._path is not None:
            kept = {"points": self.points, "members": self.members, "aside": self.aside}
            self._path.write_text(json.dumps(kept), encoding="utf-8")
        common.progress(
            f"{point['examples']:>9} examples  {point['seconds'] / 60:6.1f} min  "
            f"{point['error']:.2f} %  {point['members']} members  "
            f"hidden {100 * moment.tally.lost:.1f} %"
        )
        return point

    def _take_up(self, examples: int) -> None:
        kept = json.loads(self._path.read_text(encoding="utf-8"))
        self.points = [point for point in kept["points"] if point["examples"] <= examples]
        self.members = [pair for pair in kept["members"] if pair[0] < examples]
        self.aside = kept["aside"]
        self._looked = self.points[-1]["seconds"] + self.aside if self.points else 0.0


def measure(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    plan = RUNS[name]
    directions = name in OF_DIRECTIONS
    images = setup.load(folder, smoothing=0.0 if directions else setup.SMOOTHING)
    if options.quick:
        images.X, images.y = images.X[:QUICK], images.y[:QUICK]
    variants = 5 if options.quick else plan["variants"]
    with threadpool_limits(1), setup.timed() as spent:
        with setup.timed() as preparing:
            if directions:
                projection = setup.project_directions(images, options.jobs)
            else:
                projection = setup.project(images)
            source = setup.virtual(images, variants, projection, n_jobs=options.jobs)
        checkpoint = None
        if options.checkpoints is not None:
            options.checkpoints.mkdir(parents=True, exist_ok=True)
            checkpoint = options.checkpoints / f"loosli2007-{name}.mwz"
        curve = Curve(images, projection, checkpoint and checkpoint.with_suffix(".json"))
        model = setup.model(
            options.jobs,
            plan["cache_size"],
            gamma=_gamma(name),
            finish_every=plan["finish_every"],
        )
        last: list[Any] = []

        def note(model: Any, moment: Any) -> None:
            last[:] = [moment]
            curve(model, moment)

        model.learn_from(
            source,
            sift=options.sift,
            checkpoint=checkpoint,
            checkpoint_minutes=options.minutes,
            callback=note,
        )
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
        "digest": hashlib.sha256(coefficients.tobytes() + model.support_.tobytes()).hexdigest(),
        "bounded": int((np.abs(coefficients) >= setup.C).sum()),
        "stats": model.stats_,
        "curve": curve.points,
        "members_over_time": curve.members,
    }


def _gamma(name: str) -> float:
    return setup.DIRECTIONS_GAMMA if name in OF_DIRECTIONS else setup.GAMMA


def settings_of(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    return {
        **RUNS[name],
        "gamma": _gamma(name),
        "C": setup.C,
        "reprocess": setup.REPROCESS,
        "strength": setup.STRENGTH,
        "smoothing": 0.0 if name in OF_DIRECTIONS else setup.SMOOTHING,
        "components": setup.COMPONENTS,
        "sift": options.sift,
        "jobs": options.jobs,
        "quick": options.quick,
        "data": common.digest(folder / setup.FILE),
    }


def shown(runs: dict[str, dict[str, Any]]) -> str:
    header = ("run", "examples", "error, %", "CPU minutes", "minutes", "GB", "members")
    rows = [
        [
            name,
            f"{run['examples']:,}",
            f"{run['error']:.2f}",
            f"{run['cpu_seconds'] / 60:.1f}",
            f"{run['wall_seconds'] / 60:.1f}",
            f"{run['peak_gigabytes']:.1f}",
            f"{run['members']:,}",
            f"{sum(run['support_vectors']):,}",
            f"{100 * run['sifted']['lost']:.1f}",
        ]
        for name, run in runs.items()
    ]
    return common.table((*header, "SVs of all classes", "hidden, %"), rows)


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
    add("--minutes", type=float, default=10.0, help="between two checkpoints (default: 10)")
    return parser.parse_args()


def main() -> None:
    options = parse()
    report, _, _ = common.measured(__file__, options, RUNS, setup.files_of, settings_of, measure)
    print(shown({name: one["measurements"] for name, one in report.sets.items()}))


if __name__ == "__main__":
    main()
