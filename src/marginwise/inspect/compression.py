"""CompressionDisplay: the error of compressed models against their number of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from marginwise._arrays import Float, Ints
from marginwise._plot import COLOURS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CompressionDisplay:
    """Error of compressed models against their number of vectors.

    The plot shows the error on held-out rows as a curve, the error of the full model as a line, and
    the selected number of vectors as a marker.

    It is recommended to use `from_estimator` to create a display.

    Parameters
    ----------
    n_vectors : array-like of shape (n_sizes,)
        Numbers of vectors.
    error : array-like of shape (n_sizes,)
        Error for each number of vectors, as a fraction of the rows.
    full_error : float, default=None
        Error of the full model. None draws no line.
    chosen : int, default=None
        Number of vectors to mark, one of `n_vectors`. None draws no marker.
    full_n_vectors : int, default=None
        Number of support vectors of the full model, for the legend. None omits it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the axes.
    line_ : matplotlib Line2D
        Curve of the errors.

    See Also
    --------
    marginwise.CompressedSVC : Compressed classifier.
    TuningDisplay : Plot the scores of a search for C and gamma.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> from marginwise.inspect import CompressionDisplay
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = OnlineSVC(C=10, gamma=1.0, random_state=0).fit(X, y)
    >>> small = model.compress(X, y, max_error_increase=0.01, curve=True)
    >>> display = CompressionDisplay.from_estimator(small)
    >>> display.ax_.get_xlabel()
    'vectors'
    """

    def __init__(
        self,
        n_vectors: ArrayLike,
        error: ArrayLike,
        *,
        full_error: float | None = None,
        chosen: int | None = None,
        full_n_vectors: int | None = None,
    ) -> None:
        self.n_vectors = n_vectors
        self.error = error
        self.full_error = full_error
        self.chosen = chosen
        self.full_n_vectors = full_n_vectors

    @classmethod
    def from_estimator(cls, compressed: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot the held-out errors of a compressed model.

        Parameters
        ----------
        compressed : CompressedSVC
            Compressed model whose `error_curve_` is not None: `compress` must have been called with
            rows and with `max_error_increase` or ``curve=True``.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **kwargs : dict
            Keyword arguments passed to `plot`.

        Returns
        -------
        display : CompressionDisplay
            Display object that stores the plot.
        """
        if not hasattr(compressed, "error_curve_"):
            raise TypeError(
                f"{type(compressed).__name__} has no error_curve_; CompressionDisplay needs a "
                "CompressedSVC, which compress of a classifier returns."
            )
        curve = compressed.error_curve_
        if curve is None:
            raise ValueError(
                "this CompressedSVC has no errors to plot: its size was not chosen on held-out "
                "rows. Pass X, y and curve=True to compress."
            )
        display = cls(
            curve["n_vectors"],
            curve["error"],
            full_error=curve["full_error"],
            chosen=curve["chosen"],
            full_n_vectors=compressed.full_n_vectors_,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **kwargs : dict
            Keyword arguments passed to ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        display : CompressionDisplay
            The display, for chaining.
        """
        sizes, percent = self._points()
        ax = new_axes() if ax is None else ax
        style: dict[str, Any] = {
            "color": COLOURS[0],
            "marker": "o",
            "linewidth": 2,
            "label": "compressed",
        }
        (self.line_,) = ax.plot(sizes, percent, **{**style, **kwargs})
        if self.full_error is not None:
            count = "" if self.full_n_vectors is None else f", {self.full_n_vectors:,} vectors"
            ax.axhline(
                100 * self.full_error, color="0.3", linestyle="dashed", label=f"full model{count}"
            )
        if self.chosen is not None:
            at = sizes == self.chosen
            mark: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": COLOURS[1]}
            mark |= {"markersize": 10, "zorder": 3, "label": f"chosen: {self.chosen:,} vectors"}
            ax.plot(sizes[at], percent[at], **mark)
        ax.set_xscale("log")
        ax.set(xlabel="vectors", ylabel="error on held-out rows, %")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _points(self) -> tuple[Ints, Float]:
        """Return sizes and errors in percent, after validation."""
        sizes = np.asarray(self.n_vectors, dtype=np.int64)
        errors = np.asarray(self.error, dtype=np.float64)
        if sizes.ndim != 1 or sizes.shape != errors.shape or len(sizes) == 0:
            raise ValueError(
                f"n_vectors has shape {sizes.shape} and error {errors.shape}; expected one error "
                "for each number of vectors."
            )
        if self.chosen is not None and self.chosen not in sizes:
            raise ValueError(
                f"chosen is {self.chosen!r}, which is not among n_vectors, {sizes.tolist()}."
            )
        return sizes, 100 * errors
