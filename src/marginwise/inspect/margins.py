"""MarginDisplay: histogram of margins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import check_arguments, integer, plain
from marginwise._plot import COLOURS, new_axes
from marginwise.inspect.decisions import distances, margins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Parts of the distribution: colour, hatching (for print without colour) and opacity.
PARTS = {
    "misclassified": (COLOURS[1], "////", 0.85),
    "inside the margin": (COLOURS[5], None, 0.85),
    "beyond the margin": (COLOURS[0], None, 0.85),
}
LINES = ((0, "solid", "boundary, 0"), (1, "dashed", "margin, ±1"), (-1, "dashed", None))


class MarginDisplay:
    """Histogram of the margins of rows.

    The margin of a row is ``y f(x)`` for two classes and half the lead of the true class over the
    best other class for more classes. It is negative for misclassified rows and between 0 and 1 for
    correctly classified rows inside the margin of the classifier. The histogram shows misclassified
    rows, rows inside the margin and rows beyond it in different colours, with lines at the boundary
    and at the margins on both sides.

    It is recommended to use `from_estimator` or `from_predictions` to create a display.

    Parameters
    ----------
    margin : array-like of shape (n_samples,)
        Margins of the rows.
    several : bool, default=False
        Whether there are more than two classes, which determines the axis label.
    estimator_name : str, default=None
        Name of the classifier for the title. None draws no title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the histogram.
    figure_ : matplotlib Figure
        Figure of the axes.
    bars_ : list of matplotlib BarContainer
        Bars of the misclassified rows, the rows inside the margin and the rows beyond it.

    See Also
    --------
    find_label_errors : Find label errors by cross-validation.
    TuningDisplay : Plot the scores of a search for C and gamma.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> from marginwise.inspect import MarginDisplay
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = OnlineSVC(gamma=1.0).fit(X, y)
    >>> display = MarginDisplay.from_estimator(model, X, y)
    >>> display.ax_.get_xlabel()
    'margin, y f(x)'
    """

    def __init__(
        self, margin: ArrayLike, *, several: bool = False, estimator_name: str | None = None
    ) -> None:
        self.margin = margin
        self.several = several
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the margins of rows under a fitted classifier.

        Use rows that the classifier was not trained on, because margins of training rows are too
        optimistic.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with `decision_function`, possibly in a pipeline or a search.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.
        y : array-like of shape (n_samples,)
            Labels of the rows.
        name : str, default=None
            Name for the title. None uses the name of the class.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **kwargs : dict
            Keyword arguments passed to `plot`.

        Returns
        -------
        display : MarginDisplay
            Display object that stores the plot.
        """
        if not hasattr(estimator, "decision_function"):
            raise TypeError(
                f"{type(estimator).__name__} has no decision_function; MarginDisplay needs a "
                "fitted classifier that has one. Pass an OnlineSVC, for example."
            )
        check_is_fitted(estimator)
        return cls.from_predictions(
            y,
            distances(estimator, X),
            classes=estimator.classes_,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        decision: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the margins of rows from their decision values.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of the rows.
        decision : array-like of shape (n_samples,) or (n_samples, n_classes)
            Decision values returned by `decision_function`, or out-of-fold decision values such as
            ``LabelErrors.decision``.
        classes : array-like of shape (n_classes,), default=None
            Class labels in the order of the columns. None uses the sorted labels of `y_true`.
        name : str, default=None
            Name for the title. None draws no title.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **kwargs : dict
            Keyword arguments passed to `plot`.

        Returns
        -------
        display : MarginDisplay
            Display object that stores the plot.
        """
        labels = column_or_1d(y_true)
        values = np.asarray(decision, dtype=np.float64)
        known = np.unique(labels) if classes is None else column_or_1d(classes)
        _check_shapes(labels, values, known)
        found = margins(values, _codes(labels, known))
        display = cls(found, several=len(known) > 2, estimator_name=name)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, bins: int = 50, **kwargs: Any) -> Self:
        """Draw the histogram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        bins : int, default=50
            Approximate number of bins. Edges are aligned with the boundary and the margin.
        **kwargs : dict
            Keyword arguments passed to ``matplotlib.axes.Axes.hist``.

        Returns
        -------
        display : MarginDisplay
            The display, for chaining.
        """
        check_arguments({"bins": integer(1)}, bins=bins)
        margin = _checked(self.margin)
        ax = new_axes() if ax is None else ax
        wrong = margin < 0
        parts = [margin[wrong], margin[~wrong & (margin < 1)], margin[margin >= 1]]
        colours = [colour for colour, _, _ in PARTS.values()]
        kwargs = {"bins": _edges(margin, bins), "color": colours, "stacked": True, **kwargs}
        bars: Any = ax.hist(parts, **kwargs)[2]
        for bar, part, (name, (_, hatch, opacity)) in zip(bars, parts, PARTS.items(), strict=True):
            share = 100 * len(part) / len(margin)
            labelled = bar if hasattr(bar, "set_label") else bar[0]  # bars, or an outline
            labelled.set_label(f"{name}, {share:.1f} %")
            for patch in bar:
                patch.set(hatch=hatch, alpha=opacity)
        for place, stroke, label in LINES:
            ax.axvline(place, color="0.25", linestyle=stroke, linewidth=1, label=label)
        ax.set(xlabel="margin of the true class" if self.several else "margin, y f(x)")
        ax.set(ylabel="rows", title=self.estimator_name or "")
        ax.legend(framealpha=0.9, edgecolor="none")
        self.ax_, self.figure_, self.bars_ = ax, ax.figure, list(bars)
        return self


def _checked(margin: ArrayLike) -> Float:
    values = np.asarray(margin, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"margin has shape {values.shape}; expected one value for each of one row or more. "
            "Pass decision values to from_predictions."
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"margin is {values[bad[0]]} at row {bad[0]}; every margin must be a finite number. "
            "Leave such rows out."
        )
    return values


def _edges(margin: Float, bins: int) -> Float:
    """Return the edges of about `bins` bins; -1, 0 and 1 are edges if the width is below 1."""
    low, high = min(margin.min(), -0.1), max(margin.max(), 1.1)
    width = (high - low) / bins
    width = 1 / round(1 / width) if width < 1 else float(np.ceil(width))
    return np.arange(np.floor(low / width), np.ceil(high / width) + 1) * width


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    numbers = {label: k for k, label in enumerate(classes.tolist())}
    for row, label in enumerate(labels.tolist()):
        if label not in numbers:
            raise ValueError(
                f"y has the label {plain(label)!r} at row {row}, which is not among the classes "
                f"{plain(classes.tolist())}. Pass rows of these classes only."
            )
    return np.array([numbers[label] for label in labels.tolist()], dtype=np.intp)


def _check_shapes(labels: NDArray[Any], decision: Float, classes: NDArray[Any]) -> None:
    if len(decision) != len(labels):
        raise ValueError(
            f"decision has {len(decision)} rows, but y has {len(labels)} labels; expected one "
            "label per row. Pass the labels of these rows."
        )
    if decision.shape[1:] != (() if len(classes) == 2 else (len(classes),)):
        raise ValueError(
            f"decision has shape {decision.shape} for the classes {plain(classes.tolist())}; "
            "expected one value per row for two classes, else one per row and class. If y lacks a "
            "class, pass classes."
        )
