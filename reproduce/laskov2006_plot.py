"""The frame of the pictures of [laskov2006]."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from marginwise.active.plot import COLOURS, STROKES

__all__ = ["COLOURS", "STROKES", "picture"]


@contextmanager
def picture(path: Path, columns: int, rows: int = 1) -> Iterator[list[Any]]:
    """Give axes to draw on, row by row, and write them to a file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (6.4 if columns == 1 else 4.8 * columns, 4.4 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.flat:
        ax.grid(alpha=0.25)
    yield list(axes.flat)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)
