"""
Tangents, displacement fields and variants
==========================================

::

    python examples/invariance_pictures.py [--folder examples/output]

The script draws ten digits. The first figure shows the *tangents* of one of them: its change when
it is shifted or thickened slightly. The second shows two displacement fields and their effect, and
the third shows variants of all ten digits. The guide on images and invariance explains these
figures.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from marginwise.invariance import ImageDeformer, VirtualSet, contact_sheet

FOLDER = Path(sys.argv[0]).resolve().parent / "output"
SIDE = 28  # pixels of an image
PEN = 1.5  # half the width of a stroke, in pixels
EDGE = 1.2  # width of the soft edge of a stroke, in pixels
SHOWN = 3  # digit in the first two pictures
STRENGTH = 3.0  # factor by which the fields are multiplied
FIELDS = slice(8, 10)  # fields to show

# Points of the strokes: x and y (downwards) in percent of the image. A slash ends a stroke.
STROKES = [
    "50,18 32,35 30,65 48,83 68,66 68,34 50,18",
    "40,30 55,18 53,50 50,83",
    "32,32 48,18 66,30 56,55 32,80 / 32,80 70,80",
    "34,22 56,19 64,33 48,48 67,60 60,79 32,78",
    "42,18 30,56 / 30,56 72,56 / 62,36 60,84",
    "66,20 40,20 / 40,20 36,46 / 36,46 56,44 67,62 54,81 32,78",
    "60,18 40,38 33,64 46,82 64,74 62,56 46,53 35,64",
    "30,22 68,22 / 68,22 54,50 46,83",
    "50,48 36,34 50,18 63,33 50,48 34,66 50,83 66,66 50,48",
    "65,34 50,19 36,33 46,49 64,36 62,60 54,83",
]


def drawn(strokes: str) -> NDArray[np.float32]:
    """Return an image with values from 0 (background) to 1 (stroke)."""
    across, down = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
    pixels = np.column_stack([across.ravel(), down.ravel()])
    passed = np.concatenate([line(stroke) for stroke in strokes.split(" / ")]) * (SIDE - 1)
    away = np.sqrt(((pixels[:, np.newaxis] - passed) ** 2).sum(axis=2)).min(axis=1)
    ink = np.clip((PEN - away) / EDGE + 0.5, 0, 1)
    return ink.reshape(SIDE, SIDE).astype(np.float32)


def line(stroke: str) -> NDArray[np.float64]:
    """Return 200 points on a smooth curve through the points of a stroke."""
    points = np.array([point.split(",") for point in stroke.split()], dtype=float) / 100
    steps = np.sqrt(np.sqrt((np.diff(points, axis=0) ** 2).sum(axis=1)))
    knots = np.r_[0, np.cumsum(steps)]
    return np.asarray(CubicSpline(knots, points)(np.linspace(0, knots[-1], 200)))


# %%
# Pictures
# --------
def draw_tangents(path: Path, digits: NDArray[np.float32]) -> None:
    """Draw a digit, its translation tangents and its thickening tangent."""
    originals = ImageDeformer((SIDE, SIDE)).prepare(digits[SHOWN : SHOWN + 1])
    t_x, t_y = originals.tangents.reshape(2, SIDE, SIDE)
    most = float(np.abs(originals.tangents).max())
    figure, axes = panels(4)
    show(axes[0], digits[SHOWN], "the image")
    show(axes[1], t_x, r"$t_x$: left by a pixel", low=-most, high=most)
    show(axes[2], t_y, r"$t_y$: up by a pixel", low=-most, high=most)
    show(axes[3], np.hypot(t_x, t_y), r"$\sqrt{t_x^2 + t_y^2}$: thicker", low=0, high=most)
    keep(figure, path)


def draw_fields(path: Path, digits: NDArray[np.float32]) -> None:
    """Draw two fields as arrows over a digit, and the deformed digits."""
    figure, axes = panels(4)
    for k, (affine, title) in enumerate(
        [(0.0, "smoothed random field"), (1.0, "affine plus noise")]
    ):
        deformer = ImageDeformer((SIDE, SIDE), affine=affine)
        f_x, f_y = STRENGTH * deformer.fields_[FIELDS]
        t_x, t_y = deformer.prepare(digits[SHOWN : SHOWN + 1]).tangents.reshape(2, SIDE, SIDE)
        show(axes[2 * k], 0.35 * digits[SHOWN], title, high=1)
        arrows(axes[2 * k], -f_x, -f_y)  # direction in which the ink moves
        bent = np.clip(digits[SHOWN] + f_x * t_x + f_y * t_y, 0, 1)
        show(axes[2 * k + 1], bent, "deformed digit")
    keep(figure, path)


def panels(count: int) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(1, count, figsize=(2.5 * count, 2.8), layout="constrained")


def show(axes: Any, image: Any, title: str, low: float = 0, high: float | None = None) -> None:
    axes.imshow(image, cmap="gray", vmin=low, vmax=high)
    axes.set_title(title, fontsize=11)
    axes.set(xticks=[], yticks=[])


def arrows(axes: Any, right: Any, down: Any) -> None:
    at = np.arange(1, SIDE, 2)
    axes.quiver(
        at, at, right[1::2, 1::2], down[1::2, 1::2],
        color="#E69F00", angles="xy", scale_units="xy", scale=1, width=0.008,
    )  # fmt: skip


def keep(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=90)
    print(f"picture: {os.path.relpath(path)}")


def show_sheet(path: Path) -> None:
    """Show the sheet as a separate figure."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(9, 7), layout="constrained")
    axes.imshow(plt.imread(path))
    axes.set_axis_off()


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw tangents, fields and variants.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder for the pictures")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    digits = np.stack([drawn(strokes) for strokes in STROKES])
    draw_tangents(folder / "invariance_tangents.png", digits)
    draw_fields(folder / "invariance_fields.png", digits)
    variants = folder / "invariance_variants.png"
    contact_sheet(VirtualSet(digits, range(10), ImageDeformer((SIDE, SIDE)), 12), variants)
    show_sheet(variants)
    print(f"picture: {os.path.relpath(variants)}")


# %%
# Output
# ------
if __name__ == "__main__":
    main()
