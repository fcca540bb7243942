"""Reproduce figure 8 of [loosli2007]: ways to select examples, among variants of 60,000 images.

    python reproduce/loosli2007_selection.py                       all runs
    python reproduce/loosli2007_selection.py --only random         one of them
    python reproduce/loosli2007_selection.py --variants 101        as many as the paper has
    python reproduce/loosli2007_selection.py --resume --plot       measure what lacks, and draw
    python reproduce/loosli2007_selection.py --quick               a smoke test on few images

NT learns the images alone, all of them. The others meet variants: "random" learns all that are
within the margin, "active" the nearest of 50, "autoactive" the nearest of as many as bring five
within the margin, 100 at most. Errors are those of the test set, as in the paper.

It departs from the paper in the number of variants; in that images are smoothed and projected, and
rows sifted, as loosli2007_setup.py says; and in that the images themselves are learned first, then
four variants of each, then the rest. Autoactive takes few of the examples that it meets, and so it
may meet more of them: to compare it with random, look at the first point of its curve that has
random's error or less. Errors of 10,000 images waver by some 0.05 from point to point, and one of
many points may have a small one by chance: look also at the point from which on all have.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import loosli2007_plot as plot
import loosli2007_setup as setup
import numpy as np
from report import judged, verdicts
from works import Check, Results, Work

RUNS: dict[str, dict[str, Any]] = {
    "NT": {"selection": "random"},
    "random": {"selection": "random"},
    "active": {"selection": "active", "pool_size": 50},
    "autoactive": {"selection": "autoactive"},
}
SIFT = 0.01
POINTS = {"NT": 1, "random": 10, "active": 10, "autoactive": 20}  # of a curve, at most
CACHE = 3000  # megabytes
QUICK = 1500


# -- measuring -------------------------------------------------------------------------------------


class Curve:
    """Looks at the test set now and then, without counting the time it takes."""

    def __init__(self, X: Any, y: Any, examples: int, points: int) -> None:
        self._X, self._y = X, y
        self._examples, self._step = examples, examples / points
        self._began, self._began_cpu = time.perf_counter(), time.process_time()
        self.points: list[dict[str, Any]] = []

    def __call__(self, model: Any, moment: Any) -> None:
        due = (len(self.points) + 1) * self._step
        if moment.examples < min(due, self._examples):
            return
        seconds, cpu = self._spent()
        point = self._look(model, moment, seconds, cpu)
        self.points.append(point)
        now, now_cpu = self._spent()
        self._began += now - seconds
        self._began_cpu += now_cpu - cpu
        common.progress(
            f"{point['examples']:>9} examples  {cpu:7.1f} s CPU  {point['error']:.2f} %  "
            f"{point['support_vectors']} support vectors  {point['members']} members"
        )

    def _spent(self) -> tuple[float, float]:
        return time.perf_counter() - self._began, time.process_time() - self._began_cpu

    def _look(self, model: Any, moment: Any, seconds: float, cpu: float) -> dict[str, Any]:
        held = model.dual_coef_ != 0  # a member may be there for other classes only, or for none
        return {
            "examples": moment.examples,
            "error": 100.0 * float(np.mean(model.predict(self._X) != self._y)),
            "support_vectors": int(held.sum()),
            "members": model.stats_["members"],
            "seconds": seconds,
            "cpu_seconds": cpu,
            "hidden": moment.tally.lost,
        }


def variants_of(name: str, options: argparse.Namespace) -> int:
    """Return how many variants of each image a run meets, the image among them."""
    if name == "NT":
        return 1
    if options.quick:
        return 6 if name == "autoactive" else 3
    return int(options.autoactive_variants if name == "autoactive" else options.variants)


def measure(name: str, folder: Path, options: argparse.Namespace) -> dict[str, list[Any]]:
    images = setup.load(folder)
    if options.quick:
        images.X, images.y = images.X[:QUICK], images.y[:QUICK]
    projection = setup.project(images)
    X_test = projection.transform(images.X_test)
    runs = []
    for seed in range(options.seeds):
        common.progress(f"{name}, seed {seed}")
        source = setup.virtual(images, variants_of(name, options), projection, seed=seed)
        model = setup.model(1, CACHE, **RUNS[name]).set_params(random_state=seed)
        curve = Curve(X_test, images.y_test, len(source), POINTS[name])
        model.learn_from(source, sift=SIFT, callback=curve)
        per_class = np.count_nonzero(model.dual_coef_, axis=1).tolist()
        end = {**curve.points[-1], "per_class": per_class, "stats": model.stats_}
        runs.append({"seed": seed, **end, "curve": curve.points})
    return {name: runs}


def settings_of(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    return {
        **RUNS[name],
        "variants": variants_of(name, options),
        "gamma": setup.GAMMA,
        "C": setup.C,
        "reprocess": setup.REPROCESS,
        "strength": setup.STRENGTH,
        "smoothing": setup.SMOOTHING,
        "components": setup.COMPONENTS,
        "sift": SIFT,
        "seeds": options.seeds,
        "quick": options.quick,
        "data": common.digest(folder / setup.FILE),
    }


# -- what it says ----------------------------------------------------------------------------------

Meet = Callable[[list[dict[str, Any]], float], dict[str, Any] | None]
SHARES = (0.3, 0.6)  # of random's curve, at which autoactive is compared with it


def first_as_good(curve: list[dict[str, Any]], error: float) -> dict[str, Any] | None:
    """Return the first point of a curve with this error or less."""
    return next((point for point in curve if point["error"] <= error), None)


def stays_as_good(curve: list[dict[str, Any]], error: float) -> dict[str, Any] | None:
    """Return the first point of a curve from which on all have this error or less."""
    found = None
    for point in reversed(curve):
        if point["error"] > error:
            break
        found = point
    return found


def pairs(
    results: Results, share: float, meet: Meet
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return a point of random's curve and autoactive's that meets it, for each seed."""
    found = []
    curves = (results.take(name, "curve") for name in ("random", "autoactive"))
    for theirs, ours in zip(*curves, strict=False):
        point = theirs[max(round(share * len(theirs)), 1) - 1]
        equal = meet(ours, point["error"])
        if equal is not None:
            found.append((point, equal))
    return found


def at_same_error(
    field: str, what: str, target: float | None, *, share: float = 1.0, meet: Meet = first_as_good
) -> Check:
    """Compare autoactive, where it gets as good as random, with random."""

    def measure(results: Results) -> float | None:
        ratios = [ours[field] / point[field] for point, ours in pairs(results, share, meet)]
        return float(np.mean(ratios)) if ratios else None

    of = "the end" if share == 1 else f"{share:.0%}"
    when = "where it first has" if meet is first_as_good else "from where it keeps"
    name = f"{what}, autoactive over random, {when} the error of random at {of}"
    return Check(name, measure, "≤", target, "{:.2f}")


def after_as_many(field: str, what: str, target: float | None) -> Check:
    """Compare autoactive with random after the same examples, before random is finished."""

    def measure(results: Results) -> float | None:
        ratios = []
        curves = (results.take(name, "curve") for name in ("random", "autoactive"))
        for theirs, ours in zip(*curves, strict=False):
            met = {point["examples"]: point for point in ours}
            both = [(p, met[p["examples"]]) for p in theirs[:-1] if p["examples"] in met]
            ratios += [mine[field] / point[field] for point, mine in both[-1:]]
        return float(np.mean(ratios)) if ratios else None

    name = f"{what}, autoactive over random, after as many examples, neither finished"
    return Check(name, measure, "≤", target, "{:.2f}")


def difference(field: str, what: str, name: str, other: str, target: float | None) -> Check:
    def measure(results: Results) -> float | None:
        one, two = (results.mean(key, field) for key in (name, other))
        return None if one is None or two is None else one - two

    return Check(f"{what}, {name} less {other}", measure, "≤", target, "{:+.2f}")


WORK = Work(
    "figure 8",
    "ways to select examples",
    [],
    [
        difference("error", "error, points", "random", "NT", -0.2),
        difference("error", "error, points", "autoactive", "random", None),
        difference("error", "error, points", "random", "active", None),
        at_same_error("support_vectors", "support vectors", 1 / 3),
        at_same_error("support_vectors", "support vectors", 1 / 3, meet=stays_as_good),
        at_same_error("examples", "examples", None),
        *(at_same_error("support_vectors", "support vectors", None, share=s) for s in SHARES),
        after_as_many("cpu_seconds", "CPU seconds", 1.0),
        after_as_many("support_vectors", "support vectors", 1.0),
        after_as_many("error", "error", None),
    ],
)


def met_as_many(results: Results) -> dict[str, Any] | None:
    """Return autoactive's last point with no more examples than random met; it is not finished."""
    most = results.mean("random", "examples")
    curves = results.take("autoactive", "curve")
    if most is None or not curves:
        return None
    return next((point for point in reversed(curves[0]) if point["examples"] <= most), None)


def ends(results: Results) -> dict[str, dict[str, float]]:
    """Return what each run ends with, and what autoactive has where random ends."""
    fields = ("examples", "error", "support_vectors", "members", "seconds", "cpu_seconds")
    found = {}
    for name in results:
        point = met_as_many(results) if name == "autoactive" else None
        if point is not None:
            found["autoactive, on its way"] = {field: point[field] for field in fields}
        found[name] = {field: results.mean(name, field) or 0.0 for field in fields}
    return found


def shown(results: Results) -> str:
    forms = ("{:,.0f}", "{:.2f}", "{:,.0f}", "{:,.0f}", "{:.0f}", "{:.0f}")
    rows = [
        [
            name,
            *(form.format(value) for value, form in zip(end.values(), forms, strict=True)),
            "{:,.0f}–{:,.0f}".format(*spread(results, name)) if name in results else "–",
        ]
        for name, end in ends(results).items()
    ]
    header = ("", "examples", "error, %", "SVs of all classes", "members", "s", "CPU s")
    return common.table((*header, "SVs of a class"), rows)


def spread(results: Results, name: str) -> tuple[int, int]:
    counts = results.take(name, "per_class")[0]
    return min(counts), max(counts)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common.add_options(parser, __file__)
    add = parser.add_argument
    add("--only", nargs="+", choices=RUNS, metavar="RUN", help=f"runs: {', '.join(RUNS)}")
    add("--variants", type=int, default=20, help="of each image, itself among them (default: 20)")
    add("--autoactive-variants", type=int, default=60, help="... of autoactive (default: 60)")
    add("--seeds", type=int, default=1, help="sets of variants and their orders (default: 1)")
    plot.add_option(parser, "selection")
    return parser.parse_args()


def main() -> None:
    options = parse()
    report, _, _ = common.measured(__file__, options, RUNS, setup.files_of, settings_of, measure)
    results = Results()
    for name in RUNS:
        results.update(report.sets.get(name, {}).get("measurements", {}))
    print(f"{WORK.name}: {WORK.title}\n\n{shown(results)}\n\n{verdicts(judged(WORK, results))}")
    if options.plot:
        print(f"\ndrawn to {plot.selection(results, ends(results), options.plot)}")
    print(f"\nwritten to {os.path.relpath(report.path)}")


if __name__ == "__main__":
    main()
