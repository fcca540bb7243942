"""Displacement fields and tangents, from which small deformations of images are composed.

The formulas are those of [loosli2007, section 3.2].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

Single = NDArray[np.float32]

FIELD_RMS = 0.3  # root mean square displacement at strength 1, in pixels
AFFINE_SD = 0.03  # standard deviation of the slopes of the affine part, per pixel from the centre
TOGETHER = 4096  # number of images whose tangents are computed at a time


def smoothed_fields(
    n: int, height: int, width: int, smoothing: float, rng: np.random.Generator
) -> Single:
    """Draw independent random displacements, smooth them, and scale them to `FIELD_RMS`.

    Parameters
    ----------
    n : int
        Number of fields.
    height, width : int
        Image size in pixels.
    smoothing : float
        Standard deviation of the Gaussian filter, in pixels.
    rng : Generator
        Random number generator.

    Returns
    -------
    fields : ndarray of shape (n, height, width)
        Displacements in pixels.
    """
    noise = rng.uniform(-1.0, 1.0, (n, height, width))
    smooth = gaussian_filter(noise, (0, smoothing, smoothing), mode="reflect")
    return np.asarray(smooth * (FIELD_RMS / _rms(smooth)), dtype=np.float32)


def affine_fields(n: int, height: int, width: int, rng: np.random.Generator) -> Single:
    """Draw fields that are linear in the position: rotations, scalings and shears.

    Parameters
    ----------
    n : int
        Number of fields.
    height, width : int
        Image size in pixels.
    rng : Generator
        Random number generator.

    Returns
    -------
    fields : ndarray of shape (n, height, width)
        Displacements in pixels.
    """
    slopes = rng.normal(0.0, AFFINE_SD, (2, n, 1, 1))
    down = np.arange(height)[None, :, None] - (height - 1) / 2
    right = np.arange(width)[None, None, :] - (width - 1) / 2
    return np.asarray(slopes[0] * down + slopes[1] * right, dtype=np.float32)


def tangents(images: Single, smoothing: float) -> tuple[Single, Single]:
    """Return t_x and t_y: the changes of images that move left and up by one pixel.

    They are differences of the smoothed images: central ones, and one-sided ones at the edges.

    Parameters
    ----------
    images : ndarray of shape (n, height, width, channels)
        The images.
    smoothing : float
        Standard deviation of the Gaussian filter, in pixels.

    Returns
    -------
    t_x, t_y : ndarray of shape (n, height, width, channels)
        Derivatives.
    """
    t_x, t_y = np.empty_like(images), np.empty_like(images)
    for first in range(0, len(images), TOGETHER):
        part = slice(first, first + TOGETHER)
        smooth = gaussian_filter(images[part], (0, smoothing, smoothing, 0), mode="nearest")
        t_x[part] = _difference(smooth, axis=2)
        t_y[part] = _difference(smooth, axis=1)
    return t_x, t_y


def _difference(images: Single, axis: int) -> Single:
    """Return central differences along an axis, and one-sided differences at its ends."""
    if images.shape[axis] < 2:
        return np.zeros_like(images)
    return np.asarray(np.gradient(images, axis=axis), dtype=np.float32)


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2))) or 1.0
