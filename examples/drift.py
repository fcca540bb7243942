"""
Streams that drift
==================

::

    python examples/drift.py [--rows 5000] [--window 200] [--picture drift.png]
    python examples/drift.py --streams [--rows 6000] [--seeds 3] [--plot streams.png]
    python examples/drift.py --late [--rows 6000] [--seeds 3]
    python examples/drift.py --flip [--rows 6000] [--seeds 3]

How do classifiers follow a change? The first command generates two classes on either side of a
centre. They stay in place, rotate around the centre by half a circle, and stay in place again. The
models predict ten rows at a time, and then learn them. ExactSVC stores all rows, or a window of
them. ``evict="lightest"`` drops the row with the smallest coefficient, so old support vectors
remain; ``evict="oldest"`` follows the change. ExactOneClassSVM sees no labels: the share of rows
outside its sphere rises during the change.

The other commands compare estimators on a checkerboard by the prequential error: each batch of 50
rows is predicted, then learned. With ``--streams``, the board rotates by 45 degrees halfway through
the stream, gradually, or back and forth. With ``--late``, it rotates after 3,000, 10,000 and 30,000
rows. With ``--flip``, all labels are flipped.

This page shows ``python examples/drift.py --rows 3000``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginwise import ExactOneClassSVM, ExactRampSVC, ExactSVC, GapSVC, OnlineSVC
from marginwise.metrics import prequential_error

PICTURE = Path(sys.argv[0]).resolve().parent / "output" / "drift.png"
CHUNK = 10  # rows that are predicted, then learned
SMOOTH = 200  # rows in the moving average of a curve
START, END = 0.4, 0.6  # fractions of the stream between which the classes rotate
SHOWN = (0.4, 0.5, 0.6, 1.0)  # fractions of the stream after which models are drawn
SIDE = 4.2  # half the side of the square that is drawn
NU = 0.05
SEED = 0

# Of the comparisons.
BATCH = 50  # rows that are predicted, then learned
LAST = 1000  # rows at the end whose error is printed separately
CELL, WRONG = 0.7, 0.05  # side of a square of the board; fraction of wrong labels
FADING = 0.998  # of the prequential errors that are drawn
SAME: dict[str, Any] = {"C": 3.0, "gamma": 10.0}  # for all kernels

Floats = NDArray[np.float64]


class Stream(NamedTuple):
    X: Floats
    y: NDArray[np.int64]


class Shot(NamedTuple):
    """Decision values of the models on a grid, after a number of rows."""

    rows: int
    f: dict[str, Floats]
    inside: Floats


class Run(NamedTuple):
    wrong: dict[str, NDArray[np.bool_]]
    outside: dict[str, NDArray[np.bool_]]
    shots: list[Shot]


def classifiers(window: int) -> dict[str, ExactSVC]:
    same: dict[str, Any] = {"C": 1.0, "gamma": 0.3}
    return {
        "all rows": ExactSVC(**same),
        f'window={window}, evict="lightest"': ExactSVC(window=window, **same),
        f'window={window}, evict="oldest"': ExactSVC(window=window, evict="oldest", **same),
    }


def detectors(window: int) -> dict[str, ExactOneClassSVM]:
    return {
        "all rows": ExactOneClassSVM(nu=NU, gamma=0.15),
        f"window={5 * window}": ExactOneClassSVM(nu=NU, gamma=0.15, window=5 * window),
    }


def turning(rows: int) -> Stream:
    rng = np.random.default_rng(SEED)
    time = np.arange(rows) / rows
    angle = np.pi * np.clip((time - START) / (END - START), 0, 1)
    y = rng.integers(0, 2, rows)
    towards = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(y == 1, 2.2, -1.0)[:, np.newaxis] * towards + 0.8 * rng.normal(size=(rows, 2))
    return Stream(X, y)


def grid() -> tuple[Floats, Floats]:
    line = np.linspace(-SIDE, SIDE, 81)
    a, b = np.meshgrid(line, line)
    return a, b


def shot(rows: int, models: dict[str, ExactSVC], detector: ExactOneClassSVM) -> Shot:
    a, b = grid()
    points = np.column_stack([a.ravel(), b.ravel()])
    f = {name: model.decision_function(points).reshape(a.shape) for name, model in models.items()}
    return Shot(rows, f, detector.decision_function(points).reshape(a.shape))


def run(stream: Stream, window: int) -> Run:
    """Predict and learn the stream, a few rows at a time."""
    X, y = stream
    models, watchers = classifiers(window), detectors(window)
    first = slice(0, CHUNK)
    for model in models.values():
        model.partial_fit(X[first], y[first], classes=[0, 1])
    for watcher in watchers.values():
        watcher.partial_fit(X[first])
    wrong = {name: np.zeros(len(y), dtype=bool) for name in models}
    outside = {name: np.zeros(len(y), dtype=bool) for name in watchers}
    shots, due = [], [round(share * len(y)) for share in SHOWN]
    for start in range(CHUNK, len(y), CHUNK):
        now = slice(start, start + CHUNK)
        for name, model in models.items():
            wrong[name][now] = model.predict(X[now]) != y[now]
            model.learn_many(X[now], y[now])
        for name, watcher in watchers.items():
            outside[name][now] = watcher.predict(X[now]) < 0
            watcher.partial_fit(X[now])
        if due and start + CHUNK >= due[0]:
            due.pop(0)
            shots.append(shot(start + CHUNK, models, watcher))
    return Run(wrong, outside, shots)


def table(title: str, found: dict[str, NDArray[np.bool_]]) -> str:
    """Return a table of the means before, during and after the rotation, in percent."""
    lines = [f"{title:32}{'before':>10}{'during':>10}{'after':>10}"]
    for name, flags in found.items():
        start, end = (round(share * len(flags)) for share in (START, END))
        parts = flags[SMOOTH:start], flags[start:end], flags[end:]
        lines.append(f"{name:32}" + "".join(f"{part.mean():>10.1%}" for part in parts))
    return "\n".join(lines)


# %%
# Picture
# -------
ZERO, ONE = "#E69F00", "#0072B2"  # the classes
LINES = (("0.55", "dotted"), ("#AA3377", "dashed"), ("black", "solid"))
WATCHERS = (("0.55", "dotted"), ("#009E73", "solid"))


def draw(path: Path, stream: Stream, done: Run) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10, 7.8), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[1, 1.9])
    for axes, shot in zip(parts[0].subplots(1, len(SHOWN)), done.shots, strict=True):
        draw_shot(axes, stream, shot)
    parts[0].supxlabel(
        "the last rows of both classes, and the boundaries, in the line styles of the legends",
        fontsize=10,
    )
    upper, lower = parts[1].subplots(2, 1, sharex=True)
    draw_curves(upper, done.wrong, LINES, "ExactSVC: errors before learning, %")
    draw_curves(lower, done.outside, WATCHERS, "ExactOneClassSVM: rows outside, %")
    lower.axhline(100 * NU, color="0.8", linewidth=1, zorder=0)
    lower.set_xlabel(f"rows (each point is the mean of the last {SMOOTH})")
    for axes in (upper, lower):
        axes.axvspan(START * len(stream.y), END * len(stream.y), color="0.94", zorder=-1)
        for shot in done.shots:
            axes.axvline(shot.rows, color="0.75", linewidth=0.8, zorder=0)
    upper.text(
        (START + END) / 2 * len(stream.y), 0.97, "the classes rotate",
        ha="center", va="top", color="0.4", transform=upper.get_xaxis_transform(),
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


def draw_shot(axes: Any, stream: Stream, shot: Shot) -> None:
    """Draw the last rows and the boundaries."""
    rows = slice(shot.rows - 150, shot.rows)
    X, y = stream.X[rows], stream.y[rows]
    for label, colour, marker in ((0, ZERO, "s"), (1, ONE, "o")):
        axes.scatter(*X[y == label].T, s=11, c=colour, marker=marker, alpha=0.6, linewidths=0)
    a, b = grid()
    for f, (colour, style) in zip(shot.f.values(), LINES, strict=True):
        axes.contour(a, b, f, levels=[0], colors=colour, linestyles=style, linewidths=1.8)
    colour, style = WATCHERS[-1]
    axes.contour(a, b, shot.inside, levels=[0], colors=colour, linestyles=style, linewidths=1.2)
    axes.set(title=f"after {shot.rows:,} rows", aspect="equal", xticks=[], yticks=[])
    axes.set(xlim=(-SIDE, SIDE), ylim=(-SIDE, SIDE))


def draw_curves(axes: Any, found: dict[str, Any], styles: Any, title: str) -> None:
    for (name, flags), (colour, style) in zip(found.items(), styles, strict=True):
        sums = np.cumsum(np.r_[0.0, flags])
        means = 100 * (sums[SMOOTH:] - sums[:-SMOOTH]) / SMOOTH
        ends = np.arange(SMOOTH, len(flags) + 1)
        axes.plot(
            ends[SMOOTH::CHUNK], means[SMOOTH::CHUNK], color=colour, linestyle=style, label=name
        )
    axes.set_title(title, loc="left")
    axes.set_xlim(2 * SMOOTH, len(flags))
    axes.set_ylim(0, None)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", frameon=False)


# %%
# Contestants
# -----------
class Refit:
    """OnlineSVC that is fitted from scratch to the last rows, every so many rows."""

    def __init__(self, every: int, rows: int) -> None:
        self.every, self.rows, self.seen = every, rows, 0
        self.X, self.y = np.empty((0, 2)), np.empty(0, dtype=np.int64)

    def partial_fit(self, X: Floats, y: NDArray[np.int64], classes: list[int]) -> None:
        self.X, self.y = np.r_[self.X, X][-self.rows :], np.r_[self.y, y][-self.rows :]
        self.seen += len(y)
        if self.seen < self.every or self.seen % self.every < len(y):
            self.model = OnlineSVC(random_state=SEED, **SAME).fit(self.X, self.y)

    def predict(self, X: Floats) -> Any:
        return self.model.predict(X)


class River:
    """A classifier of river, which takes one row at a time, as a dict."""

    def __init__(self, module: str, name: str) -> None:
        self.model: Any = getattr(importlib.import_module(module), name)(seed=SEED)

    def partial_fit(self, X: Floats, y: NDArray[np.int64], classes: list[int]) -> None:
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(row)), label)

    def predict(self, X: Floats) -> Any:
        return np.array([self.model.predict_one(dict(enumerate(row))) for row in X.tolist()])


class Contestant(NamedTuple):
    make: Callable[..., Any]
    settings: dict[str, Any]
    colour: str
    style: str


ONLINE, GAP, RAMP, EXACT, TREES = "#0072B2", "#D55E00", "#AA3377", "black", "#009E73"


def contestants(*, trees: bool = True) -> dict[str, Contestant]:
    seeded = {"random_state": SEED, **SAME}
    oldest = {"window": 500, "evict": "oldest", **SAME}
    found = {
        "`OnlineSVC()`": Contestant(OnlineSVC, seeded, ONLINE, "solid"),
        "`OnlineSVC(replay=1000)`": Contestant(
            OnlineSVC, {"replay": 1000, **seeded}, ONLINE, "dashed"
        ),
        "`OnlineSVC(budget=200)`": Contestant(
            OnlineSVC, {"budget": 200, **seeded}, ONLINE, "dotted"
        ),
        "`OnlineSVC`, refitted": Contestant(
            Refit, {"every": 500, "rows": 1000}, "#56B4E9", "solid"
        ),
        "`GapSVC(budget=200)`": Contestant(GapSVC, {"budget": 200, **seeded}, GAP, "solid"),
        "`ExactRampSVC()`": Contestant(ExactRampSVC, seeded, RAMP, "solid"),
        "`ExactSVC(window=500)`": Contestant(ExactSVC, {"window": 500, **SAME}, EXACT, "dotted"),
        '`ExactSVC(window=500, evict="oldest")`': Contestant(ExactSVC, oldest, EXACT, "solid"),
    }
    if not trees:
        return found
    if importlib.util.find_spec("river") is None:
        print("river is not installed (pip install river): no trees", file=sys.stderr)
        return found
    tree = {"module": "river.tree", "name": "HoeffdingAdaptiveTreeClassifier"}
    forest = {"module": "river.forest", "name": "ARFClassifier"}
    found["Hoeffding adaptive tree (river)"] = Contestant(River, tree, TREES, "dotted")
    found["adaptive random forest (river)"] = Contestant(River, forest, TREES, "solid")
    return found


# %%
# Drifting streams
# ----------------
def board(X: Floats, angle: float) -> NDArray[np.int64]:
    """Return the colours of a checkerboard that is rotated by an angle."""
    cos, sin = np.cos(angle), np.sin(angle)
    squares = np.floor(X @ np.array([[cos, -sin], [sin, cos]]) / CELL + 0.5)
    colours: NDArray[np.int64] = squares.sum(axis=1).astype(np.int64) % 2
    return colours


def drifting(chance: Floats, seed: list[int], *, flip: bool = False) -> Stream:
    """Return a stream; `chance` is the probability that the second concept labels a row."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(len(chance), 2))
    first = board(X, 0.0)
    second = 1 - first if flip else board(X, np.pi / 4)
    y = np.where(rng.random(len(X)) < chance, second, first)
    return Stream(X, np.where(rng.random(len(X)) < WRONG, 1 - y, y))


def chances(rows: int) -> dict[str, Floats]:
    time = np.arange(rows) / rows
    return {
        "abrupt": np.where(time < 0.5, 0.0, 1.0),
        "gradual": np.clip(3 * time - 1, 0, 1),  # rises during the middle third
        "recurring": np.floor(4 * time) % 2,
    }


def follow(model: Any, stream: Stream) -> tuple[Any, float]:
    """Learn each batch after predicting it, except the first; return predictions and seconds."""
    X, y = stream
    predicted = []
    start = time.perf_counter()
    for first in range(0, len(y), BATCH):
        now = slice(first, first + BATCH)
        if first:
            predicted.append(model.predict(X[now]))
        model.partial_fit(X[now], y[now], classes=[0, 1])
    return np.concatenate(predicted), time.perf_counter() - start


def markdown(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def heading(cells: list[str]) -> None:
    markdown(cells)
    markdown(["---", *["---:"] * (len(cells) - 1)])


# %%
# Comparisons
# -----------
def compare(rows: int, seeds: int) -> dict[str, dict[str, Floats]]:
    """Print mean errors and seconds; return the fading errors of each contestant and stream."""
    kinds = chances(rows)
    print(f"error in percent, mean of {seeds} streams of {rows:,} rows\n")
    heading(["", *(title for kind in kinds for title in (kind, f"last {LAST:,}")), "seconds"])
    curves: dict[str, dict[str, Floats]] = {}
    for name, who in contestants().items():
        cells, seconds, curves[name] = [], [], {}
        for k, (kind, chance) in enumerate(kinds.items()):
            means, ends, faded = [], [], []
            for seed in range(seeds):
                stream = drifting(chance, [seed, k])
                predicted, spent = follow(who.make(**who.settings), stream)
                y = stream.y[BATCH:]
                means.append(prequential_error(y, predicted)[-1])
                ends.append(prequential_error(y, predicted, window=LAST)[-1])
                faded.append(prequential_error(y, predicted, fading=FADING))
                seconds.append(spent)
            cells += [f"{100 * np.mean(values):.1f}" for values in (means, ends)]
            curves[name][kind] = np.mean(faded, axis=0)
        markdown([name, *cells, f"{np.mean(seconds):.2f}"])
    return curves


def late_contestants() -> dict[str, Contestant]:
    """Return those that are fast enough for long streams, with more budgets and windows."""
    found = contestants(trees=False)
    larger = {"budget": 1000, "random_state": SEED, **SAME}
    found["`OnlineSVC(budget=1000)`"] = Contestant(OnlineSVC, larger, ONLINE, "solid")
    for window in (200, 1000):
        name = f'`ExactSVC(window={window}, evict="oldest")`'
        settings = {"window": window, "evict": "oldest", **SAME}
        found[name] = Contestant(ExactSVC, settings, EXACT, "solid")
    del found["`ExactRampSVC()`"], found["`ExactSVC(window=500)`"]
    kinds = (OnlineSVC, GapSVC, Refit, ExactSVC)
    size = {name: who.settings.get("window", 0) for name, who in found.items()}
    order = sorted(found, key=lambda name: (kinds.index(found[name].make), size[name]))
    return {name: found[name] for name in order}


def compare_late(rows: int, seeds: int) -> None:
    """Print errors in the rows after the board is rotated, for later and later rotations."""
    starts, after = [rows // 2, 5 * rows // 3, 5 * rows], rows // 4
    print(f"error in percent, in the {after:,} rows after a change; before: in {LAST:,} rows\n")
    heading(["", *(f"after {n:,}" for n in starts), "before", "support vectors"])
    for name, who in late_contestants().items():
        cells = []
        for start in starts:
            before, later = [], []
            for seed in range(seeds):
                stream = drifting(np.repeat([0.0, 1.0], [start, after]), [seed, start])
                model = who.make(**who.settings)
                predicted, _ = follow(model, stream)
                y = stream.y[BATCH:]
                before.append(prequential_error(y, predicted, window=LAST)[-after - 1])
                later.append(prequential_error(y, predicted, window=after)[-1])
            cells.append(f"{100 * np.mean(later):.1f}")
        size = len(getattr(model, "model", model).support_)
        markdown([name, *cells, f"{100 * np.mean(before):.1f}", f"{size:,}"])


def compare_flipped(rows: int, seeds: int) -> None:
    """Print accuracies before and after all labels are flipped."""
    half = rows // 2
    print(f"accuracy, mean of {seeds} streams whose labels are flipped after {half:,} rows\n")
    heading(["", f"last {LAST:,} before", f"{half:,} after", f"last {LAST:,}"])
    for name, who in contestants().items():
        found = []
        for seed in range(seeds):
            stream = drifting(np.repeat([0.0, 1.0], [half, rows - half]), [seed, 0], flip=True)
            predicted, _ = follow(who.make(**who.settings), stream)
            y = stream.y[BATCH:]
            latest = 1 - prequential_error(y, predicted, window=LAST)
            later = 1 - prequential_error(y, predicted, window=rows - half)
            found.append((latest[half - BATCH - 1], later[-1], latest[-1]))
        markdown([name, *(f"{value:.2f}" for value in np.mean(found, axis=0))])


def draw_comparison(path: Path, curves: dict[str, dict[str, Floats]], rows: int) -> None:
    """Draw the fading errors, one panel per stream."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    figure, panels = plt.subplots(
        3, 1, figsize=(9.5, 8.6), dpi=80, sharex=True, layout="constrained"
    )
    styles = contestants(trees=len(curves) > len(contestants(trees=False)))
    for axes, (kind, chance) in zip(panels, chances(rows).items(), strict=True):
        extent = (0, rows, 0, 1)
        axes.imshow(
            np.round(10 * chance)[np.newaxis], extent=extent, aspect="auto", cmap="Greys",
            vmin=0, vmax=70, interpolation="nearest", transform=axes.get_xaxis_transform(),
            zorder=-1,
        )  # fmt: skip
        for name, found in curves.items():
            axes.plot(
                np.arange(BATCH, rows)[BATCH::25], 100 * found[kind][BATCH::25],
                color=styles[name].colour, linestyle=styles[name].style,
                label=name.replace("`", ""), linewidth=1.4,
            )  # fmt: skip
        axes.set_title(kind, loc="left")
        axes.set(xlim=(0, rows), ylim=(0, 60), ylabel="prequential error, %")
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel(f"rows (fading {FADING}); grey where the board is rotated")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas: Any = figure.canvas
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    # A palette makes the file much smaller.
    picture.quantize(256).save(path, format="PNG", optimize=True)


# %%
# Main program
# ------------
def turn(rows: int, window: int, picture: Path) -> None:
    """Print and draw how windows follow classes that rotate."""
    stream = turning(rows)
    done = run(stream, window)
    print(f"{rows:,} rows; the classes rotate from {START:.0%} to {END:.0%} of the stream\n")
    print(table("errors of ExactSVC", done.wrong) + "\n")
    print(table("rows outside, ExactOneClassSVM", done.outside))
    if importlib.util.find_spec("matplotlib") is None:
        print("\nno picture: matplotlib is not installed (pip install 'marginwise[plot]')")
        return
    draw(picture, stream, done)
    print(f"\npicture: {os.path.relpath(picture)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Compare windows and estimators on streams that drift."
    )
    parser.add_argument("--rows", type=int, default=None, help="length of the stream")
    parser.add_argument("--window", type=int, default=200, help="rows per window")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="PNG file to write")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--streams", action="store_true", help="compare on three kinds of drift")
    modes.add_argument("--late", action="store_true", help="compare on later and later changes")
    modes.add_argument("--flip", action="store_true", help="compare on flipped labels")
    parser.add_argument("--seeds", type=int, default=3, help="number of streams of each kind")
    parser.add_argument("--plot", type=Path, help="PNG file in which --streams draws the errors")
    options = parser.parse_args()
    rows = options.rows or 6000
    if (options.streams or options.late or options.flip) and rows < 8 * BATCH:
        parser.error(f"--rows must be at least {8 * BATCH}, got {rows}")
    if options.streams:
        curves = compare(rows, options.seeds)
        if options.plot and importlib.util.find_spec("matplotlib") is None:
            print("\nno picture: matplotlib is not installed (pip install 'marginwise[plot]')")
        elif options.plot:
            draw_comparison(options.plot, curves, rows)
            print(f"\npicture: {os.path.relpath(options.plot)}")
    elif options.late:
        compare_late(rows, options.seeds)
    elif options.flip:
        compare_flipped(rows, options.seeds)
    else:
        turn(options.rows or 5000, options.window, options.picture)


# %%
# Output
# ------
if __name__ == "__main__":
    main()
