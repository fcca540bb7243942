"""Images: validation of files, conversion for browsers, and features."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints
from marginwise._extras import install

IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")  # other formats are rejected
SERVED = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
MOST_PIXELS = 50_000_000  # of an image; larger ones could exhaust memory
MOST_BYTES = 50_000_000  # of a file
SMALL = 4096  # images with at most this many values use their pixels as features
GREY, EDGES, CELL, ANGLES = 32, 64, 8, 9  # sides of resized images and of cells; directions

Singles = NDArray[np.float32]


def need_pillow() -> Any:
    """Return the module PIL.Image, or raise ImportError with the command that installs it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"images are read with Pillow, which is not installed. Run {install('label')}."
        ) from error
    return Image


def inside(path: Path, folder: Path) -> bool:
    """Return whether a path is inside a folder, after resolving symbolic links."""
    try:
        return path.resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except (OSError, ValueError, RuntimeError):
        return False


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open an image of a supported format and size."""
    Image = need_pillow()
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path}: the file has more than {MOST_BYTES:,} bytes.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns about sizes, which are checked here
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{path}: the image has more than {MOST_PIXELS:,} pixels.")
            yield image


def readable(path: Path, folder: Path) -> bool:
    """Return whether a path is inside a folder and is an image that can be decoded."""
    need_pillow()
    if not inside(path, folder) or not path.is_file():
        return False
    try:
        with opened(path) as image:
            image.draft("L", (GREY, GREY))
            image.load()
    except Exception:  # decoders of damaged files can raise any exception
        return False
    return True


def served(path: Path, folder: Path) -> tuple[bytes, str]:
    """Return an image and its media type; formats that browsers do not support become PNG."""
    if not inside(path, folder):
        raise FileNotFoundError(f"{path} is not within {folder}.")
    with opened(path) as image:
        kind = SERVED.get(image.format or "")
        if kind is not None:
            return path.read_bytes(), kind
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, "PNG")
    return buffer.getvalue(), "image/png"


@dataclass
class ImageContent:
    """Image files within a folder, and their digests."""

    paths: Sequence[Path]
    hashes: Sequence[bytes]
    folder: Path
    kind = "image"

    def __len__(self) -> int:
        return len(self.paths)

    def show(self, row: int) -> dict[str, Any]:
        """Return the name of the file."""
        path = self.paths[row]
        within = path.is_relative_to(self.folder)
        return {"title": (path.relative_to(self.folder) if within else path).as_posix()}

    def values(self) -> list[Any]:
        """Return the paths."""
        return list(self.paths)

    def digests(self) -> Sequence[bytes]:
        """Return the digests of the files."""
        return self.hashes

    def take(self, rows: Ints) -> ImageContent:
        """Return the images of some rows."""
        kept = rows.tolist()
        paths, hashes = [self.paths[k] for k in kept], [self.hashes[k] for k in kept]
        return ImageContent(paths, hashes, self.folder)

    def path(self, row: int) -> Path | None:
        """Return the file of an image."""
        return self.paths[row]


# -- features --------------------------------------------------------------------------------------


def image_features(paths: Sequence[Path], count: Any = None) -> Singles:
    """Return the pixels if all images are small and of equal shape, otherwise a descriptor.

    The descriptor concatenates three vectors of unit length: the centred 32 x 32 grey image, a
    histogram of edge directions in each of 8 x 8 cells, and a histogram of colours.

    Parameters
    ----------
    paths : sequence of Path
        Image files.
    count : callable, default=None
        Called with 1 after each image.

    Returns
    -------
    X : ndarray of shape (n_images, n_features)
        The features.
    """
    shapes = {_shape(path) for path in paths}
    shape = shapes.pop() if len(shapes) == 1 else None
    small = (
        shape is not None and shape[0] * shape[1] * (1 if shape[2] in ("1", "L") else 3) <= SMALL
    )
    rows = []
    for path in paths:
        with opened(path) as image:
            rows.append(_pixels(image) if small else descriptor(image))
        if count is not None:
            count(1)
    return np.stack(rows)


def _shape(path: Path) -> tuple[int, int, str]:
    with opened(path) as image:
        return image.width, image.height, image.mode


def _pixels(image: Any) -> Singles:
    grey = image.mode in ("1", "L")
    values = np.asarray(image.convert("L" if grey else "RGB"), dtype=np.float32)
    return (values / 255).ravel().astype(np.float32)


def descriptor(image: Any) -> Singles:
    """Return the descriptor of one image."""
    image.draft("RGB", (2 * EDGES, 2 * EDGES))  # decodes large JPEG files at a reduced size
    colour = image.convert("RGB")
    grey, small = (
        np.asarray(colour.convert("L").resize((side, side)), dtype=np.float32) / np.float32(255)
        for side in (EDGES, GREY)
    )
    tiny = np.asarray(colour.resize((GREY, GREY)), dtype=np.int64) // 64
    codes = (tiny * np.array([16, 4, 1])).sum(axis=2).ravel()
    colours = np.sqrt(np.bincount(codes, minlength=64)).astype(np.float32)
    parts = ((small - small.mean()).ravel(), edge_histograms(grey).ravel(), colours)
    return np.concatenate([_unit(part) for part in parts]).astype(np.float32)


def edge_histograms(grey: Singles) -> Singles:
    """Return histograms of edge directions in the cells of a square image.

    Parameters
    ----------
    grey : ndarray of shape (side, side)
        Brightness; `side` is a multiple of 8.

    Returns
    -------
    cells : ndarray of shape (side / 8, side / 8, 9)
        Sums of gradient magnitudes by direction (0 to 180 degrees). The norm of each cell is at
        most 1.
    """
    down, right = np.gradient(grey)
    length = np.hypot(down, right)
    angle = np.mod(np.arctan2(down, right), np.pi)
    bins = np.minimum((angle * (ANGLES / np.pi)).astype(np.int64), ANGLES - 1)
    side = grey.shape[0] // CELL
    cell = np.arange(grey.shape[0]) // CELL
    place = (cell[:, None] * side + cell[None, :]) * ANGLES + bins
    sums = np.bincount(place.ravel(), length.ravel(), minlength=side * side * ANGLES)
    cells = sums.reshape(side, side, ANGLES)
    norms = np.linalg.norm(cells, axis=2, keepdims=True)
    found: Singles = (cells / (norms + 0.1)).astype(np.float32)
    return found


def _unit(part: Singles) -> Singles:
    norm = float(np.linalg.norm(part))
    return part / norm if norm > 0 else part
