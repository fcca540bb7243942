"""`virtual`: contact sheets of deformed images."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from marginwise.cli.group import main, usage
from marginwise.cli.output import check_free
from marginwise.invariance import ImageDeformer, VirtualSet, contact_sheet

IMAGES, LABELS = ("X", "X_train"), ("y", "y_train")  # names of arrays in a .npz file
SQUARE = (28, 28)
COUNT = click.IntRange(min=1)


def parsed_shape(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Parse the value of ``--shape``."""
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,6}(x[0-9]{1,6}){1,2}", value):
        raise click.BadParameter(f"expected HEIGHTxWIDTH[xCHANNELS], such as 28x28, got {value!r}.")
    return tuple(int(size) for size in value.split("x"))


@main.command(
    example=["marginwise virtual digits.npz --images 5 --out sheet.png"],
    context_settings={"show_default": True},
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--shape",
    metavar="HEIGHTxWIDTH[xCHANNELS]",
    callback=parsed_shape,
    help="Image shape. Not needed for square images or for arrays of images.",
)
@click.option("--strength", default=2.0, help="Strength of the elastic deformations.")
@click.option("--thickening", default=0.0, help="Largest change of stroke thickness.")
@click.option("--shift", default=1, help="Largest shift in pixels.")
@click.option("--seed", "random_state", default=0, help="Seed for the variants.")
@click.option("--images", type=COUNT, default=10, help="Number of images, the rows of the sheet.")
@click.option(
    "--variants",
    type=COUNT,
    default=12,
    help=("Number of variants per image, the columns of the sheet, including the image itself."),
)
@click.option("--zoom", type=COUNT, default=2, help="Pixels of the sheet per pixel of an image.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="virtual.png",
    help="PNG file to write.",
)
@click.option("--force", is_flag=True, default=False, help="Replace an existing file.")
def virtual(
    file: Path,
    shape: tuple[int, ...] | None,
    images: int,
    variants: int,
    zoom: int,
    out: Path,
    force: bool,
    **deforming: Any,
) -> None:
    """Write a contact sheet of images and their deformed variants.

    FILE is an .npz archive with the array X (or X_train), or an .npy array of images. If the
    archive has the array y (or y_train), images of all classes are shown. Images are rows, or
    arrays of the image shape.
    """
    check_free(out, force)
    with usage():  # checks the options; the actual shape is checked with the images
        ImageDeformer(shape or SQUARE, **deforming)
    X, y = read_images(file)
    deformer = ImageDeformer(shape or guessed_shape(X), **deforming)
    source = VirtualSet(X, y, deformer, variants)
    sheet = contact_sheet(source, out, images=images, variants=variants, zoom=zoom)
    click.echo(f"{out}: {sheet.shape[1]} x {sheet.shape[0]} pixels")


def read_images(file: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the images in a file and their labels; without labels, all labels are 0."""
    try:
        with file.open("rb") as content:
            data = np.load(content)
            arrays = {"X": data} if isinstance(data, np.ndarray) else data
            names = list(arrays)
            X = next((arrays[name] for name in IMAGES if name in names), None)
            y = next((arrays[name] for name in LABELS if name in names), None)
    except OSError:
        raise
    except Exception as error:  # NumPy raises various errors for damaged files
        raise ValueError(
            f"{file} is not an .npz or .npy file of numbers, or it is damaged."
        ) from error
    if X is None:
        held = ", ".join(names) or "nothing"
        raise ValueError(f"{file} has no array {' or '.join(IMAGES)}; it contains {held}.")
    if X.ndim < 2:
        raise ValueError(f"{file}: images must be an array of at least 2 dimensions, got {X.ndim}.")
    return X, np.zeros(len(X)) if y is None else y


def guessed_shape(X: NDArray[Any]) -> tuple[int, ...]:
    """Return the shape of images that are stored as arrays or as rows of square images."""
    if X.ndim > 2:
        return X.shape[1:]
    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1]:
        raise ValueError(f"rows of {X.shape[1]} columns are not square images: pass --shape.")
    return side, side
