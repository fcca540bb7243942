"""A stream whose classes turn: what a window forgets, and how a change is noticed.

    python examples/drift.py [--rows 5000] [--window 200] [--picture drift.png]

Two classes lie on either side of a centre, stand still for a while, turn by half a circle, and
stand still again. Rows are predicted before they are learned, ten at a time. ExactSVC keeps all
rows, or a window of them: evict="lightest" lets the row of least weight go, which keeps what the
boundary rests on, old as it may be; evict="oldest" follows. ExactOneClassSVM, which sees no labels,
notices the change by the rows that fall outside, and with a window gets used to it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginwise import ExactOneClassSVM, ExactSVC

PICTURE = Path(__file__).resolve().parent / "output" / "drift.png"
CHUNK = 10  # rows that are predicted, then learned
SMOOTH = 200  # rows that a point of a curve is the mean of
START, END = 0.4, 0.6  # of the stream: when the classes turn
SHOWN = (0.4, 0.5, 0.6, 1.0)  # where models are drawn
SIDE = 4.2  # of the square that is drawn, from its centre
NU = 0.05
SEED = 0

Floats = NDArray[np.float64]


class Stream(NamedTuple):
    X: Floats
    y: NDArray[np.int64]


class Shot(NamedTuple):
    """How things stood after so many rows: boundaries as values of f on a grid."""

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
    """Return the means before, during and after the turn, in percent."""
    lines = [f"{title:32}{'before':>10}{'during':>10}{'after':>10}"]
    for name, flags in found.items():
        start, end = (round(share * len(flags)) for share in (START, END))
        parts = flags[SMOOTH:start], flags[start:end], flags[end:]
        lines.append(f"{name:32}" + "".join(f"{part.mean():>10.1%}" for part in parts))
    return "\n".join(lines)


# -- picture ---------------------------------------------------------------------------------------

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
        "the last rows of both classes, and the boundaries, in the styles below", fontsize=10
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
        (START + END) / 2 * len(stream.y), 0.97, "the classes turn",
        ha="center", va="top", color="0.4", transform=upper.get_xaxis_transform(),
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)


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


def main() -> None:
    parser = argparse.ArgumentParser(description="Windows on a stream that turns.")
    parser.add_argument("--rows", type=int, default=5000, help="length of the stream")
    parser.add_argument("--window", type=int, default=200, help="rows that a window holds")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where it is drawn (PNG)")
    options = parser.parse_args()
    stream = turning(options.rows)
    done = run(stream, options.window)
    print(f"{options.rows:,} rows, of which the classes turn during {END - START:.0%}\n")
    print(table("errors of ExactSVC", done.wrong) + "\n")
    print(table("rows outside, ExactOneClassSVM", done.outside))
    if importlib.util.find_spec("matplotlib") is None:
        print("\nno picture: matplotlib is not installed (pip install 'marginwise[plot]')")
        return
    draw(options.picture, stream, done)
    print(f"\npicture: {os.path.relpath(options.picture)}")


if __name__ == "__main__":
    main()
