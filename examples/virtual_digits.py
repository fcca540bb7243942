"""
Learning from deformed images
=============================

::

    python examples/virtual_digits.py [--images 300] [--variants 10] [--seeds 10]

A digit that is slightly shifted, rotated or bent is the same digit. OnlineSVC learns a few of
scikit-learn's digits (8 × 8 pixels) alone, with variants generated on demand, and with many more
variants, among which autoactive selection learns only the informative ones. The table shows means
over random splits; all other images are test images. The figure shows some variants.

The parameters were chosen on splits of the same digits. The errors are good for comparing the rows
of the table, but too optimistic as estimates.

This page shows ``python examples/virtual_digits.py --images 200 --variants 6 --seeds 3``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from marginwise import OnlineSVC
from marginwise.invariance import ImageDeformer, VirtualSet, contact_sheet

PICTURE = Path(sys.argv[0]).resolve().parent / "output" / "virtual_digits.png"
SHAPE = (8, 8)
SAME: dict[str, Any] = {"C": 100.0, "gamma": 0.2, "multiclass": "ovr"}  # for all
BENT: dict[str, Any] = {"strength": 1.0, "shift": 1}  # small images allow only small changes
MORE = 5  # factor by which the variants are increased, for selection to choose from


class Way(NamedTuple):
    """A way to learn the images."""

    name: str
    variants: int
    selection: str


def ways(variants: int) -> list[Way]:
    return [
        Way("the images alone", 1, "random"),
        Way(f"{variants} variants, all", variants, "random"),
        Way(f"{variants} variants, autoactive", variants, "autoactive"),
        Way(f"{MORE * variants} variants, all", MORE * variants, "random"),
        Way(f"{MORE * variants} variants, autoactive", MORE * variants, "autoactive"),
    ]


def split(images: int, seed: int) -> list[NDArray[Any]]:
    X, y = load_digits(return_X_y=True)
    found: list[NDArray[Any]] = train_test_split(
        X / 16, y, train_size=images, stratify=y, random_state=seed
    )
    return found


def one_run(way: Way, images: int, seed: int) -> tuple[float, float, float, float]:
    """Return error in percent, rows learned and support vectors of one class, and seconds."""
    X, X_test, y, y_test = split(images, seed)
    source = VirtualSet(X, y, ImageDeformer(SHAPE, random_state=seed, **BENT), way.variants)
    model = OnlineSVC(selection=way.selection, random_state=seed, **SAME)
    start = time.perf_counter()
    model.learn_from(source)
    seconds = time.perf_counter() - start
    learned = model.stats_["chosen"] / 10 if way.selection != "random" else len(source)
    support = np.count_nonzero(model.dual_coef_, axis=1).mean()
    return 100 * (1 - model.score(X_test, y_test)), learned, float(support), seconds


def show(path: Path) -> None:
    """Show the sheet as a separate figure."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(9, 7), layout="constrained")
    axes.imshow(plt.imread(path))
    axes.set_axis_off()


def main() -> None:
    parser = argparse.ArgumentParser(description="Learn digits from deformed variants.")
    parser.add_argument("--images", type=int, default=300, help="number of training digits")
    parser.add_argument("--variants", type=int, default=10, help="variants per digit, with itself")
    parser.add_argument("--seeds", type=int, default=10, help="number of random splits")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="PNG file for the sheet")
    options = parser.parse_args()
    print(f"means over {options.seeds} splits with {options.images} training images;")
    print("rows learned and support vectors are per class\n")
    print(f"{'':28}{'error':>8}{'learned':>11}{'support vectors':>18}{'time':>9}")
    for way in ways(options.variants):
        runs = [one_run(way, options.images, seed) for seed in range(options.seeds)]
        error, learned, support, seconds = np.mean(runs, axis=0)
        print(f"{way.name:28}{error:>6.2f} %{learned:>11,.0f}{support:>18,.0f}{seconds:>7.2f} s")
    if importlib.util.find_spec("matplotlib") is None:
        print("\nno picture: matplotlib is not installed (pip install 'marginwise[plot]')")
        return
    X, _, y, _ = split(options.images, 0)
    source = VirtualSet(X, y, ImageDeformer(SHAPE, **BENT), options.variants)
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet(source, options.picture, zoom=6)
    show(options.picture)
    print(f"\npicture: {os.path.relpath(options.picture)}")


# %%
# Output
# ------
if __name__ == "__main__":
    main()
