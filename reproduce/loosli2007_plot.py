"""The pictures of [loosli2007].

    python reproduce/loosli2007_plot.py            figure 9, of the run of loosli2007_final.py
    python reproduce/loosli2007_plot.py --in FILE  ... of a JSON that is not in results/

Figures 7 and 8 are drawn by `--plot` of the scripts that measure them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import common
from laskov2006_plot import COLOURS, STROKES, picture
from works import Results

PICTURES = common.REPOSITORY / "docs" / "images"
RUN = "final"


def add_option(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the option to draw."""
    parser.add_argument(
        "--plot",
        nargs="?",
        type=Path,
        const=PICTURES,
        metavar="FOLDER",
        help=f"draw loosli2007-{name}.png (default: in {os.path.relpath(PICTURES)})",
    )


def _note(ax: Any, label: str, error: float) -> None:
    """Draw a level that the paper has."""
    ax.axhline(error, linewidth=1, color="0.45", linestyle=(0, (1, 1)))
    across = ("axes fraction", "data")
    small: dict[str, Any] = {"ha": "right", "fontsize": 8, "color": "0.35"}
    ax.annotate(label, (1, error), (-4, 3), across, "offset points", **small)


# -- figure 7 --------------------------------------------------------------------------------------


def settings(lines: dict[str, list[tuple[float, float]]], paper: dict[str, float], to: Path) -> str:
    """Draw errors over strengths, a line for each shift and each thickening.

    Parameters
    ----------
    lines
        Strengths and errors by what they are of.
    paper
        Errors of the paper by what they are of.
    to
        A folder.
    """
    path = to / "loosli2007-settings.png"
    with picture(path, 1) as (ax,):
        for k, (label, points) in enumerate(lines.items()):
            style = {"color": COLOURS[k], "linestyle": STROKES[k % len(STROKES)]}
            ax.plot(*zip(*points, strict=True), marker="o", markersize=4, label=label, **style)
        for label, error in paper.items():
            _note(ax, label, error)
        strengths = sorted({strength for points in lines.values() for strength, _ in points})
        ax.set_xticks(strengths, [f"{strength:g}" for strength in strengths])
        ax.set(
            title="Fig. 7: deformations of 5,000 digits", xlabel="strength of elastic deformation"
        )
        ax.set(ylabel="error on 10,000 others, %", ylim=(0, None))
        ax.legend(frameon=False, fontsize=9)
    return os.path.relpath(path)


# -- figure 8 --------------------------------------------------------------------------------------

BARS = (
    ("error", "test error, %", 1.0, "{:.2f}"),
    ("support_vectors", "support vectors of ten classes, thousands", 1e-3, "{:.0f}"),
    ("cpu_seconds", "CPU minutes", 1 / 60, "{:.1f}"),
)


def selection(results: Results, ends: dict[str, dict[str, float]], to: Path) -> str:
    """Draw bars of what each way ends with, and the error over support vectors.

    Parameters
    ----------
    results
        Measurements by way.
    ends
        What the bars show: examples, errors and so on, by way or by "way, remark".
    to
        A folder.
    """
    colours = dict(zip(results, COLOURS, strict=False))
    names = [
        f"{name.partition(',')[0]}\n{end['examples'] / 1e6:.2f} M" for name, end in ends.items()
    ]
    faces = [colours[name.partition(",")[0]] for name in ends]
    path = to / "loosli2007-selection.png"
    with picture(path, 2, 2) as axes:
        for ax, (field, title, scale, form) in zip(axes, BARS, strict=False):
            values = [scale * end[field] for end in ends.values()]
            bars = ax.bar(names, values, color=faces, width=0.65)
            for bar, name in zip(bars, ends, strict=True):
                bar.set_alpha(1.0 if name in results else 0.5)
            ax.bar_label(bars, [form.format(value) for value in values], padding=2, fontsize=9)
            ax.set_title(f"Fig. 8: {title}", fontsize=11)
            ax.margins(y=0.12)
            ax.set_axisbelow(True)
            ax.grid(visible=False, axis="x")
            ax.tick_params(axis="x", labelsize=9)
        ax = axes[3]
        for k, name in enumerate(results):
            for curve in results.take(name, "curve"):
                size = [point["support_vectors"] / 1000 for point in curve]
                error = [point["error"] for point in curve]
                style = {"color": COLOURS[k], "linestyle": STROKES[k], "marker": "o"}
                ax.plot(size, error, markersize=4, label=name, **style)
        ax.set_title("error while learning", fontsize=11)
        ax.set(xlabel="support vectors of ten classes, thousands", ylabel="test error, %")
        ax.set(xlim=(0, None))
        ax.legend(frameon=False)
    return os.path.relpath(path)


# -- figure 9 --------------------------------------------------------------------------------------


def members(run: dict[str, Any], to: Path) -> str:
    """Draw the members of a model over the examples it met, and its error over minutes."""
    path = to / "loosli2007-members.png"
    with picture(path, 2) as (left, right):
        met, held = zip(*run["members_over_time"], strict=True)
        left.plot([n / 1e6 for n in met], [n / 1000 for n in held], color=COLOURS[0], linewidth=1)
        left.set(title="Fig. 9: the size of the model", xlabel="examples, millions")
        left.set(ylabel="members, thousands", xlim=(0, None), ylim=(0, None))
        minutes = [point["seconds"] / 60 for point in run["curve"]]
        errors = [point["error"] for point in run["curve"]]
        right.plot(minutes, errors, color=COLOURS[1], marker="o", markersize=3)
        _note(right, "paper, after 8 days", 0.67)
        right.set(title="the error meanwhile", xlabel="minutes", ylabel="test error, %")
        right.set(xlim=(0, None))
    return os.path.relpath(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--in", dest="file", type=Path, default=common.RESULTS / "loosli2007_final.json")
    add("--run", default=RUN, help=f"which of its runs (default: {RUN})")
    add("--out", type=Path, default=PICTURES, help="folder (default: docs/images)")
    options = parser.parse_args()
    if not options.file.is_file():
        sys.exit(f"There is no {options.file}: run loosli2007_final.py, or name a JSON with --in.")
    sets = json.loads(options.file.read_text(encoding="utf-8"))["sets"]
    if options.run not in sets:
        sys.exit(f"{options.file} has no run {options.run}: --run takes one of {', '.join(sets)}.")
    print(f"drawn to {members(sets[options.run]['measurements'], options.out)}")


if __name__ == "__main__":
    main()
