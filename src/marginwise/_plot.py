"""Shared helpers of plots: axes and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marginwise._extras import install

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours for the colour-blind [Okabe and Ito].
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def new_axes() -> Axes:
    """Create a figure with one pair of axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"plotting requires matplotlib, which is not installed. Run {install('plot')}."
        ) from error
    _, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    return ax
