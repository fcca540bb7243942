"""The command line."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from marginwise.invariance import ImageDeformer, VirtualSet, contact_sheet

IMAGES, LABELS = ("X", "X_train"), ("y", "y_train")  # names of arrays in an .npz


def parsed_shape(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Return the sizes that ``--shape`` names."""
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,6}(x[0-9]{1,6}){1,2}", value):
        raise click.BadParameter(f"{value!r} is not like 28x28 or 32x32x3.")
    return tuple(int(size) for size in value.split("x"))


@click.group()
@click.version_option(package_name="marginwise", prog_name="marginwise")
def main() -> None:
    """Kernel machines that learn one example at a time."""


@main.command(context_settings={"show_default": True})
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--shape",
    metavar="HEIGHTxWIDTH[xCHANNELS]",
    callback=parsed_shape,
    help="Of an image; not needed if images are square, or arrays of their shape.",
)
@click.option("--strength", default=2.0, help="How much images are bent.")
@click.option("--thickening", default=0.0, help="How much strokes may gain or lose.")
@click.option("--shift", default=1, help="The largest shift, in pixels.")
@click.option("--seed", "random_state", default=0, help="Chooses the variants.")
@click.option("--images", default=10, help="How many images: rows of the sheet.")
@click.option("--variants", default=12, help="How many of each: columns, the image itself first.")
@click.option("--zoom", default=2, help="Pixels of the sheet for a pixel of an image.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="virtual.png",
    help="Where to write the sheet, a PNG.",
)
def virtual(
    file: Path,
    shape: tuple[int, ...] | None,
    images: int,
    variants: int,
    zoom: int,
    out: Path,
    **deforming: Any,
) -> None:
    """Show images and variants of them on one sheet.

    FILE is an .npz with X (or X_train) and, so that all classes are shown, y (or y_train); or an
    .npy of images. Images are rows, or arrays of their shape.
    """
    try:
        X, y = read_images(file)
        deformer = ImageDeformer(shape or guessed_shape(X), **deforming)
        source = VirtualSet(X, y, deformer, variants)
        sheet = contact_sheet(source, out, images=images, variants=variants, zoom=zoom)
    except (ValueError, OSError, ImportError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{out}: {sheet.shape[1]} x {sheet.shape[0]} pixels")


def read_images(file: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the images in a file and their labels, which are all alike if there are none."""
    try:
        with file.open("rb") as content:
            data = np.load(content)
            arrays = {"X": data} if isinstance(data, np.ndarray) else data
            names = list(arrays)
            X = next((arrays[name] for name in IMAGES if name in names), None)
            y = next((arrays[name] for name in LABELS if name in names), None)
    except Exception as error:  # of a damaged file, whatever NumPy stumbles over
        raise ValueError(f"{file} is no .npz or .npy of numbers, or it is damaged.") from error
    if X is None:
        held = ", ".join(names) or "nothing"
        raise ValueError(f"{file} has no array {' or '.join(IMAGES)}; it holds {held}.")
    if X.ndim < 2:
        raise ValueError(f"images need an array of two dimensions or more, got one of {X.ndim}.")
    return X, np.zeros(len(X)) if y is None else y


def guessed_shape(X: NDArray[Any]) -> tuple[int, ...]:
    """Return the shape of images, if they have one or are square."""
    if X.ndim > 2:
        return X.shape[1:]
    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1]:
        raise ValueError(f"rows of {X.shape[1]} columns are no square images: give --shape.")
    return side, side
