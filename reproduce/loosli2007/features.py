"""Directions of strokes as features: what is learned in place of pixels in the run "gradients".

The gradient of an image at each pixel is split between the two nearest of eight directions, and the
strengths of each direction are summed, with Gaussian weights, over a grid of cells
[liu2003, gradient feature]. Square roots make the features' distribution less skewed, as there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

Rows = NDArray[np.float32]

DIRECTIONS = 8
TOGETHER = 1024  # images at a time, so that what is in between stays in the processor's caches


class StrokeDirections(TransformerMixin, BaseEstimator):
    """Turns square grey images into strengths of eight directions in a grid of cells.

    Parameters
    ----------
    size
        Height and width of an image.
    cells
        Cells along each.
    reach
        Standard deviation of a cell's weights, in pixels.
    n_jobs
        Threads.
    """

    def __init__(self, size: int = 28, cells: int = 7, reach: float = 2.0, n_jobs: int = 1) -> None:
        self.size = size
        self.cells = cells
        self.reach = reach
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        return self

    def transform(self, X: Rows) -> Rows:
        """Return a row of features for each image."""
        out = np.empty((len(X), DIRECTIONS * self.cells**2), dtype=np.float32)
        weights = self._weights()
        parts = [slice(k, k + TOGETHER) for k in range(0, len(X), TOGETHER)]
        with ThreadPoolExecutor(self.n_jobs) as crew:
            list(crew.map(lambda part: self._write(X[part], weights, out[part]), parts))
        return out

    def _weights(self) -> Rows:
        """Return what the pixels of a line count in each cell."""
        centres = (np.arange(self.cells) + 0.5) * self.size / self.cells - 0.5
        away = (np.arange(self.size) - centres[:, None]) / self.reach
        weights = np.exp(-0.5 * away**2)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)

    def _write(self, X: Rows, weights: Rows, out: Rows) -> None:
        images = X.reshape(-1, self.size, self.size)
        for k, strength in enumerate(directions(images)):
            cells = np.matmul(np.matmul(weights, strength), weights.T)
            np.sqrt(cells.reshape(len(X), -1), out=out[:, k * self.cells**2 :][:, : self.cells**2])


def directions(images: Rows) -> list[Rows]:
    """Split the gradient of each pixel between the two nearest of eight directions."""
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    across, along = wide[:, :, 2:] - wide[:, :, :-2], wide[:, 2:] - wide[:, :-2]
    g_x = across[:, :-2] + 2 * across[:, 1:-1] + across[:, 2:]  # Sobel's
    g_y = along[:, :, :-2] + 2 * along[:, :, 1:-1] + along[:, :, 2:]
    x, y = np.abs(g_x), np.abs(g_y)
    diagonal = np.minimum(x, y) * np.float32(np.sqrt(2))
    x, y = x - np.minimum(x, y), y - np.minimum(x, y)
    right, down = g_x > 0, g_y > 0
    straight = [x * right, x * ~right, y * down, y * ~down]
    return straight + [diagonal * ((right == r) & (down == d)) for r in (1, 0) for d in (1, 0)]
