"""Plots of active learning (require matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginwise._plot import COLOURS, new_axes
from marginwise.active.scores import closeness

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from marginwise.active.learner import ActiveLearner

Float = NDArray[np.float64]
Run = tuple[ArrayLike, ArrayLike]

# Line styles distinguish curves in print without colour.
STROKES = ("solid", "dashed", "dashdot", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))
TINT = 0.18  # opacity of bands


def learning_curves(
    curves: Mapping[str, Sequence[Run]],
    *,
    ax: Axes | None = None,
    band: tuple[float, float] | None = (0.1, 0.9),
    xlabel: str = "labels",
    ylabel: str = "test error",
) -> Axes:
    """Plot learning curves: the median and a quantile band for each strategy.

    Runs of a strategy may be measured at different numbers of labels. Values are interpolated
    linearly, and a curve ends where its shortest run ends.

    Parameters
    ----------
    curves : dict
        Dictionary from legend entries to lists of runs. A run is a pair of arrays: ascending
        numbers of labels and the values measured after them.
    ax : matplotlib Axes, default=None
        Axes to draw on. None creates a new figure.
    band : tuple of float, default=(0.1, 0.9)
        Lower and upper quantile of the band. None draws no band.
    xlabel : str, default="labels"
        Label of the horizontal axis.
    ylabel : str, default="test error"
        Label of the vertical axis.

    Returns
    -------
    ax : matplotlib Axes
        Axes of the plot; save it with ``ax.figure.savefig("curves.png")``.

    See Also
    --------
    margin_history : Plot the history of one learner.

    Examples
    --------
    >>> from marginwise.active.plot import learning_curves
    >>> runs = [([10, 20, 40], [0.30, 0.20, 0.10]), ([10, 20, 40], [0.26, 0.22, 0.12])]
    >>> ax = learning_curves({"active": runs})
    >>> float(ax.lines[0].get_ydata()[-1])  # the median after 40 labels
    0.11
    """
    _check_curves(curves, band)
    ax = new_axes() if ax is None else ax
    for (name, runs), colour, stroke in zip(
        curves.items(), cycle(COLOURS), cycle(STROKES), strict=False
    ):
        labels, values = _aligned(name, runs)
        median = np.median(values, axis=0)
        ax.plot(labels, median, color=colour, linestyle=stroke, linewidth=2, label=name)
        if band is not None and len(values) > 1:
            low, high = np.quantile(values, band, axis=0)
            ax.fill_between(labels, low, high, color=colour, alpha=TINT, linewidth=0)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, title=_said(curves, band), alignment="left")
    return ax


def margin_history(learner: ActiveLearner, *, ax: Axes | None = None) -> Axes:
    """Plot distances of queried rows and the number of support vectors.

    Points show the distance of each queried row from the boundary at that time: ``abs(f)``, or half
    the lead of the best class for more than two classes. Points below the line at 1 were inside the
    margin. The curve shows the number of support vectors on the right axis.

    Parameters
    ----------
    learner : ActiveLearner
        Learner that was taught some labels.
    ax : matplotlib Axes, default=None
        Axes to draw on. None creates a new figure.

    Returns
    -------
    ax : matplotlib Axes
        Axes of the points. The right axis is the last of ``ax.figure.axes``.

    See Also
    --------
    learning_curves : Compare query strategies.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> from marginwise.active import ActiveLearner
    >>> from marginwise.active.plot import margin_history
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> learner = ActiveLearner(OnlineSVC(C=10, gamma=1.0), X, random_state=0)
    >>> ax = margin_history(learner.run(lambda row: y[row], max_labels=40))
    >>> ax.get_xlabel()
    'labels'
    """
    steps = learner.history_
    if not steps:
        raise ValueError("the learner has no history to plot. Teach it some labels first.")
    labels, distances = _distances(steps)
    ax = new_axes() if ax is None else ax
    ax.plot(
        labels,
        distances,
        "o",
        markersize=4,
        color=COLOURS[0],
        alpha=0.6,
        markeredgewidth=0,
        label="row asked about",
    )
    ax.axhline(1.0, color="0.35", linestyle="dashed", linewidth=1, label="margin, |f| = 1")
    ax.set(xlabel="labels", ylabel="distance from the boundary, |f|", ylim=(0, None))
    ax.grid(alpha=0.25)
    handles, _ = ax.get_legend_handles_labels()
    counts = [step["support_vectors"] for step in steps]
    if None not in counts:
        handles += _draw_counts(ax, counts)
    # Above the axes, so that it hides no points.
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
    return ax


# -- parts -----------------------------------------------------------------------------------------


def _check_curves(curves: Mapping[str, Sequence[Run]], band: tuple[float, float] | None) -> None:
    if not curves:
        raise ValueError("curves is empty; pass the runs of one strategy or more.")
    if band is not None and not 0 <= band[0] < band[1] <= 1:
        raise ValueError(f"band must be two quantiles from 0 to 1, ascending, got {band!r}.")


def _aligned(name: str, runs: Sequence[Run]) -> tuple[Float, Float]:
    """Return the numbers of labels that all runs cover, and the values, with one row per run."""
    known = [_checked_run(name, k, *run) for k, run in enumerate(runs)]
    if not known:
        raise ValueError(f"curves has no runs of {name!r}; pass one run or more.")
    first, last = max(x[0] for x, _ in known), min(x[-1] for x, _ in known)
    every = np.unique(np.concatenate([x for x, _ in known]))
    labels = every[(every >= first) & (every <= last)]
    if not len(labels):
        raise ValueError(
            f"the runs of {name!r} cover no common number of labels; pass overlapping runs."
        )
    return labels, np.array([np.interp(labels, x, values) for x, values in known])


def _checked_run(name: str, k: int, labels: ArrayLike, values: ArrayLike) -> tuple[Float, Float]:
    x, y = np.asarray(labels, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise ValueError(
            f"run {k} of {name!r} must have one value for each number of labels, got arrays of "
            f"shapes {x.shape} and {y.shape}."
        )
    if (np.diff(x) <= 0).any():
        raise ValueError(
            f"run {k} of {name!r} must have ascending numbers of labels; sort its measurements."
        )
    return x, y


def _said(curves: Mapping[str, Sequence[Run]], band: tuple[float, float] | None) -> str:
    """Return the title of the legend, which explains lines and bands."""
    counts = sorted({len(runs) for runs in curves.values()})
    if counts == [1]:
        return ""
    runs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    if band is None:
        return f"median of {runs} runs"
    return f"median of {runs} runs, {100 * band[0]:g}–{100 * band[1]:g} % band"


def _distances(steps: Sequence[Mapping[str, Any]]) -> tuple[NDArray[np.int64], Float]:
    """Return the numbers of the labels with a score, and their distances from the boundary."""
    asked = [(k, step["score"]) for k, step in enumerate(steps, 1) if step["score"] is not None]
    labels = np.array([k for k, _ in asked], dtype=np.int64)
    # One at a time, because scores become longer once a third class appears.
    near = [closeness(np.array([score], dtype=np.float64)).item() for _, score in asked]
    return labels, np.array(near, dtype=np.float64)


def _draw_counts(ax: Axes, counts: Sequence[int]) -> list[Any]:
    """Plot the numbers of support vectors on the right axis; return its lines."""
    right = ax.twinx()
    lines = right.plot(
        np.arange(1, len(counts) + 1),
        counts,
        color=COLOURS[1],
        linewidth=2,
        label="support vectors (right)",
    )
    right.set(ylabel="support vectors", ylim=(0, None))
    right.yaxis.label.set_color(COLOURS[1])
    right.tick_params(axis="y", colors=COLOURS[1])
    return list(lines)
