"""TuningDisplay: scores of a search for C and gamma."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginwise._arrays import Float
from marginwise._plot import COLOURS, new_axes
from marginwise.inspect.results import Table, scores_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_VALUES = 64  # maximum number of cells with scores as numbers
HATCH = "//"


class TuningDisplay:
    """Scores of a search for C and gamma.

    The plot is a heat map for both parameters, or a curve with a band of one standard deviation
    over the folds for one parameter. The selected values are marked. Candidates that the search
    eliminated early, as successive halving does, are hatched in the heat map and drawn as hollow
    points in the curve. Their last scores come from fewer rows and are not comparable with the
    others.

    It is recommended to use `from_estimator` to create a display.

    Parameters
    ----------
    scores : array-like of shape (n_Cs, n_gammas), (n_Cs,) or (n_gammas,)
        Mean test scores, NaN for missing scores.
    Cs : array-like of shape (n_Cs,), default=None
        Values of C. None if the search has only values of gamma.
    gammas : array-like of shape (n_gammas,), default=None
        Values of gamma. None if the search has only values of C.
    deviations : array-like of the shape of `scores`, default=None
        Standard deviations over the folds. None draws no band.
    dropped : array-like of the shape of `scores`, default=None
        Whether the search eliminated each candidate early. None if it eliminated none.
    best : tuple of int, default=None
        Index of the selected values in `scores`. None draws no marker.
    score_name : str, default="mean test score"
        Name of the score for the colour bar or the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the axes.
    image_ : matplotlib AxesImage
        Heat map, or None if the plot is a curve.

    See Also
    --------
    MarginDisplay : Plot the distribution of margins.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.model_selection import GridSearchCV
    >>> from marginwise import OnlineSVC
    >>> from marginwise.inspect import TuningDisplay
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> grid = {"C": [0.1, 1, 10], "gamma": [0.1, 1, 10]}
    >>> search = GridSearchCV(OnlineSVC(random_state=0), grid).fit(X, y)
    >>> display = TuningDisplay.from_estimator(search)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('C', 'gamma')
    """

    def __init__(
        self,
        scores: ArrayLike,
        *,
        Cs: ArrayLike | None = None,
        gammas: ArrayLike | None = None,
        deviations: ArrayLike | None = None,
        dropped: ArrayLike | None = None,
        best: tuple[int, ...] | None = None,
        score_name: str = "mean test score",
    ) -> None:
        self.scores = scores
        self.Cs = Cs
        self.gammas = gammas
        self.deviations = deviations
        self.dropped = dropped
        self.best = best
        self.score_name = score_name

    @classmethod
    def from_estimator(
        cls, search: Any, *, metric: str = "score", ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Plot the scores of a fitted search.

        If the search has other parameters, the best score over them is shown for each pair of C and
        gamma.

        Parameters
        ----------
        search : estimator
            Fitted search with `cv_results_`, such as :class:`sklearn.model_selection.GridSearchCV`,
            over C, gamma or both. Parameter names may have a prefix, as in a pipeline.
        metric : str, default="score"
            Metric to show, of a search with several: the name after ``mean_test_``.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **kwargs : dict
            Keyword arguments passed to `plot`.

        Returns
        -------
        display : TuningDisplay
            Display object that stores the plot.
        """
        table = scores_of(search, metric)
        values = {f"{name}s": table.values[k] for k, name in enumerate(table.names)}
        name = "mean test score" if metric == "score" else f"mean test {metric}"
        display = cls(
            table.scores,
            deviations=table.deviations,
            dropped=table.dropped,
            best=table.best,
            score_name=name,
            **values,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        include_values: bool | None = None,
        values_format: str = ".3f",
        colorbar: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the heat map or the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        include_values : bool, default=None
            Whether to write the scores into the cells. None writes them if there are at most 64
            cells.
        values_format : str, default=".3f"
            Format of the scores in the cells.
        colorbar : bool, default=True
            Whether to add a colour bar to a heat map.
        **kwargs : dict
            Keyword arguments passed to ``matplotlib.axes.Axes.imshow`` for a heat map, or to
            ``matplotlib.axes.Axes.plot`` for a curve.

        Returns
        -------
        display : TuningDisplay
            The display, for chaining.
        """
        table = self._table()
        ax = new_axes() if ax is None else ax
        self.image_ = None
        if table.scores.ndim == 1:
            _draw_curve(ax, table, kwargs)
            ax.set(ylabel=self.score_name)
        else:
            self.image_ = _draw_map(ax, table, kwargs)
            if include_values is None:
                include_values = table.scores.size <= MOST_VALUES
            if include_values:
                _write_values(ax, self.image_, table.scores, values_format)
            if colorbar:
                ax.figure.colorbar(self.image_, ax=ax, label=self.score_name)
        handles, _ = ax.get_legend_handles_labels()
        if handles:
            # Above the axes, so that it hides nothing.
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _table(self) -> Table:
        """Return the data as a table, after validation."""
        scores = np.asarray(self.scores, dtype=np.float64)
        given = {"C": self.Cs, "gamma": self.gammas}
        names = [name for name, values in given.items() if values is not None]
        values = [list(np.asarray(given[name], dtype=object)) for name in names]
        shape = tuple(len(each) for each in values)
        none = {"deviations": np.zeros(scores.shape), "dropped": np.zeros(scores.shape, bool)}
        more = {
            name: empty if getattr(self, name) is None else np.asarray(getattr(self, name))
            for name, empty in none.items()
        }
        for name, array in {"scores": scores, **more}.items():
            if not names or array.shape != shape:
                raise ValueError(
                    f"{name} has shape {array.shape} for the values of {names or 'no parameter'}; "
                    f"expected {shape or 'values of C, gamma or both'}. Pass one score for each "
                    "pair of values."
                )
        _check_best(self.best, shape)
        return Table(names, values, scores, **more, best=self.best)


def _check_best(best: Sequence[int] | None, shape: tuple[int, ...]) -> None:
    if best is None:
        return
    inside = len(best) == len(shape) and all(0 <= k < n for k, n in zip(best, shape, strict=True))
    if not inside:
        raise ValueError(
            f"best is {best!r}, which is outside of scores of shape {shape}. Pass one index per "
            "parameter."
        )


# -- drawing ---------------------------------------------------------------------------------------


def _named(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _chosen(table: Table) -> str:
    """Return the legend entry of the selected values."""
    assert table.best is not None
    pairs = zip(table.names, table.values, table.best, strict=True)
    return "chosen: " + ", ".join(f"{name} = {_named(values[k])}" for name, values, k in pairs)


def _draw_map(ax: Axes, table: Table, kwargs: dict[str, Any]) -> Any:
    """Draw C to the right and gamma upwards."""
    from matplotlib.patches import Rectangle

    scores = np.ma.masked_invalid(table.scores.T)
    image = ax.imshow(scores, **{"origin": "lower", "aspect": "auto", "cmap": "cividis", **kwargs})
    ax.set_facecolor("0.85")  # colour of cells without a score
    for axis, name, values in zip((ax.xaxis, ax.yaxis), table.names, table.values, strict=True):
        axis.set_ticks(range(len(values)), [_named(value) for value in values])
        axis.set_label_text(name)
    for i, j in np.argwhere(table.dropped):
        colour = "0.75" if _is_dark(image, table.scores[i, j]) else "0.4"
        cell = Rectangle((i - 0.5, j - 0.5), 1, 1, fill=False, hatch=HATCH, edgecolor=colour)
        cell.set(linewidth=0)
        ax.add_patch(cell)
    if table.dropped.any():  # an empty cell, for the legend
        early = Rectangle((0, 0), 0, 0, fill=False, hatch=HATCH, edgecolor="0.4")
        early.set(label="dropped early")
        ax.add_patch(early)
    if table.best is not None:
        i, j = table.best
        frame = Rectangle((i - 0.5, j - 0.5), 1, 1, fill=False, edgecolor=COLOURS[1])
        frame.set(linewidth=3, zorder=3, label=_chosen(table))
        ax.add_patch(frame)
    return image


def _is_dark(image: Any, score: float) -> bool:
    """Return whether the cell of a score is dark; cells without a score are light."""
    red, green, blue = image.cmap(image.norm(score))[:3]
    return bool(np.isfinite(score) and 0.299 * red + 0.587 * green + 0.114 * blue < 0.5)


def _write_values(ax: Axes, image: Any, scores: Float, form: str) -> None:
    for (i, j), score in np.ndenumerate(scores):
        if np.isfinite(score):
            colour = "white" if _is_dark(image, score) else "black"
            ax.text(i, j, format(score, form), ha="center", va="center", color=colour, zorder=4)


def _draw_curve(ax: Axes, table: Table, kwargs: dict[str, Any]) -> None:
    (name,), (values,) = table.names, table.values
    numbers = all(not isinstance(value, str) for value in values)
    x: NDArray[Any] = np.array(values if numbers else range(len(values)), dtype=np.float64)
    if not numbers:
        ax.set_xticks(x, [_named(value) for value in values])
    elif (x > 0).all():
        ax.set_xscale("log")
    low, high = table.scores - table.deviations, table.scores + table.deviations
    ax.fill_between(x, low, high, color=COLOURS[0], alpha=0.18, linewidth=0)
    ax.plot(x, table.scores, **{"color": COLOURS[0], "marker": "o", "linewidth": 2, **kwargs})
    for chosen, label in ((table.dropped, "dropped early"), (_at(table), None)):
        if chosen.any():
            style: dict[str, Any] = {"linestyle": "none", "marker": "o", "zorder": 3}
            if label is None:
                style |= {"color": COLOURS[1], "markersize": 10, "label": _chosen(table)}
            else:
                style |= {"color": COLOURS[0], "markerfacecolor": "white", "label": label}
            ax.plot(x[chosen], table.scores[chosen], **style)
    ax.set(xlabel=name)
    ax.grid(alpha=0.25)


def _at(table: Table) -> NDArray[np.bool_]:
    """Return a mask of the selected values."""
    found = np.zeros(table.scores.shape, dtype=np.bool_)
    if table.best is not None:
        found[table.best] = True
    return found
