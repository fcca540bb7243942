"""Parts of pictures: colours that colour-blind readers can distinguish, curves, bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduce.experiment import Experiment, Results

# Okabe and Ito's colours; values printed in the paper are always black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":", "-", "--", "-.")
PAPER = {"color": "black", "linestyle": "none", "marker": "x", "markersize": 7, "zorder": 5}
DPI = 100


def curves(
    axes: Any, results: Results, cases: Mapping[str, str], x: str, y: str, *, marks: bool = False
) -> None:
    """Draw the mean curve of each case, labelled; `cases` maps names of cases to labels."""
    for k, (case, label) in enumerate(cases.items()):
        at, height = results.curve(case, x), results.curve(case, y)
        if at:
            marker = MARKERS[k] if marks else None
            axes.plot(at, height, LINES[k], color=COLOURS[k], label=label, marker=marker, ms=4)


def level(axes: Any, value: float | None, label: str, colour: str = "black") -> None:
    """Draw a horizontal line, for example for a solver that has no curve."""
    if value is not None:
        axes.axhline(value, color=colour, linewidth=1, linestyle=(0, (1, 2)), label=label)


def bars(
    axes: Any, groups: Sequence[str], heights: Mapping[str, Sequence[float | None]], **paper: Any
) -> None:
    """Draw bars side by side; `paper` maps labels of series to the printed values."""
    width = 0.8 / len(heights)
    for k, (label, values) in enumerate(heights.items()):
        at = [g + (k - (len(heights) - 1) / 2) * width for g in range(len(groups))]
        axes.bar(at, [value or 0 for value in values], width, color=COLOURS[k], label=label)
        theirs = paper.get(label)
        if theirs:
            known = [(x, v) for x, v in zip(at, theirs, strict=True) if v is not None]
            axes.plot(*zip(*known, strict=True), **PAPER)
    if paper:
        axes.plot([], [], **PAPER, label="paper")
    axes.set_xticks(range(len(groups)), groups)


def plain_ticks(figure: Any) -> None:
    """Label logarithmic axes with plain numbers, few enough not to overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                low, high = sorted(axis.get_view_interval())
                wide = low <= 0 or high / low > 300
                axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
                axis.set_major_formatter(lambda value, _: f"{value:,.6g}")
                axis.set_minor_formatter(NullFormatter())


def save(experiment: Experiment, results: Results, path: Path) -> None:
    """Draw an experiment as a small PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    assert experiment.draw is not None
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context({**style, "axes.grid": True, "grid.alpha": 0.3}):
        figure = Figure(figsize=experiment.size, dpi=DPI, layout="constrained")
        experiment.draw(results, figure)
        plain_ticks(figure)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Software": None}, pil_kwargs={"optimize": True})
