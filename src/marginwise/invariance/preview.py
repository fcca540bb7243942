"""Contact sheets of deformed images, to inspect the images before learning."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._checks import is_integer
from marginwise._extras import install
from marginwise.invariance.virtual import VirtualSet

GAP = 2  # pixels between two images


def contact_sheet(
    source: VirtualSet,
    path: str | os.PathLike[str] | None = None,
    *,
    images: int = 10,
    variants: int = 12,
    zoom: int = 2,
) -> NDArray[np.uint8]:
    """Arrange images and their variants on one sheet.

    Each row shows an image followed by its variants. Writing the sheet to a file requires
    matplotlib.

    Parameters
    ----------
    source : VirtualSet
        Virtual set to show.
    path : str or path-like, default=None
        PNG file to write. None writes no file.
    images : int, default=10
        Number of images to show, from as many classes as possible.
    variants : int, default=12
        Number of variants per image, including the image itself, at most the number of variants in
        the set.
    zoom : int, default=2
        Pixels of the sheet per pixel of an image.

    Returns
    -------
    sheet : ndarray of shape (height, width) or (height, width, 3), dtype=uint8
        Pixels of the sheet, in three channels for colour images.

    See Also
    --------
    VirtualSet : Data source of images and their variants.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from marginwise.invariance import ImageDeformer, VirtualSet, contact_sheet
    >>> X, y = load_digits(return_X_y=True)
    >>> source = VirtualSet(X[:20], y[:20], ImageDeformer((8, 8)), variants=5)
    >>> contact_sheet(source, images=3, zoom=1).shape
    (28, 48)
    """
    for name, value in {"images": images, "variants": variants, "zoom": zoom}.items():
        if not is_integer(value) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
    n = len(source.originals)
    shown = _one_of_each(source, min(images, n))
    columns = min(variants, source.variants)
    ids = (shown[:, None] + n * np.arange(columns)).ravel()
    shape = source.deformer.full_shape
    pictures = _as_bytes(source.images(ids)).reshape(len(shown), columns, *shape)
    sheet = _laid_out(np.repeat(np.repeat(pictures, zoom, axis=2), zoom, axis=3))
    if path is not None:
        _write(path, sheet)
    return sheet


def _one_of_each(source: VirtualSet, count: int) -> NDArray[np.int64]:
    """Select images from the classes in turn, in the order of the set within each class."""
    turn = np.zeros(len(source.labels), dtype=np.int64)
    for label in source.classes:
        its = np.flatnonzero(source.labels == label)
        turn[its] = np.arange(len(its))
    place = np.searchsorted(source.classes, source.labels)
    return np.lexsort((place, turn))[:count].astype(np.int64)


def _as_bytes(images: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Scale values to the range 0 to 255, based on the minimum and maximum of all images."""
    low, high = float(images.min()), float(images.max())
    scaled = (images - low) * (255.0 / (high - low) if high > low else 0.0)
    return np.asarray(np.rint(scaled), dtype=np.uint8)


def _laid_out(pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Arrange pictures of shape (rows, columns, height, width, channels) on one sheet."""
    rows, columns, height, width, channels = pictures.shape
    size = (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, channels)
    sheet = np.full(size, 96, dtype=np.uint8)
    for r in range(rows):
        for c in range(columns):
            down, right = r * (height + GAP), c * (width + GAP)
            sheet[down : down + height, right : right + width] = pictures[r, c]
    if channels == 1:
        return sheet[..., 0]
    return sheet if channels == 3 else sheet.mean(axis=2).astype(np.uint8)


def _write(path: str | os.PathLike[str], sheet: Any) -> None:
    try:
        from matplotlib.image import imsave
    except ImportError as error:
        raise ImportError(
            f"writing a sheet requires matplotlib, which is not installed. Run {install('plot')}."
        ) from error
    imsave(os.fspath(path), sheet, cmap="gray", vmin=0, vmax=255, format="png")
