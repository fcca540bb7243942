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

    The plot is a curve of the error on held-out rows, with a line at the error of the model that
    was not compressed, and a mark at the chosen size.

    It is best to use `from_estimator` to create it.

    Parameters
    ----------
    n_vectors : array-like of shape (n_sizes,)
        Numbers of vectors.
    error : array-like of shape (n_sizes,)
        Error of each, as a fraction of rows.
    full_error : float, default=None
        Error of the model that was not compressed. None draws no line.
    chosen : int, default=None
        Number of vectors to mark, one of `n_vectors`. None marks none.
    full_n_vectors : int, default=None
        Number of support vectors of the model that was not compressed, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the axes.
    line_ : matplotlib Line2D
        The curve.

    See Also
    --------
    marginwise.CompressedSVC : A compressed model.
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
        """Plot the held-out errors by which the size of a compressed model was chosen.

        Parameters
        ----------
        compressed : CompressedSVC
            Model made by `compress` with rows and `max_error_increase` or ``curve=True``.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : CompressionDisplay
            Display whose `plot` was called.
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
            Passed to ``Axes.plot`` of the curve.

        Returns
        -------
        display : CompressionDisplay
            The display itself.
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
        """Return sizes and errors, in percent, as arrays of one length."""
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
