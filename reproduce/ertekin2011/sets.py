"""The data sets of [ertekin2011, table 2]: its C and gamma, features to match.

The paper does not say how it scaled features. We chose the scaling with which SVC has about as many
support vectors, and about the accuracy, of the paper's FULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import datasets
from benchmarks.datasets import Split

NOISE = 0.1  # share of wrong labels in usps-0-noise
USPS_FEATURES = "pixels from -1/16 to 1/16, smoothed by 0.75"


@dataclass(frozen=True)
class DataSet:
    """A set of two classes, 1 the positive one, and how it is learned."""

    source: str  # in the catalogue of the benchmarks
    form: str
    features: str
    C: float
    gamma: float
    change: Callable[[Split, int], None] | None = None  # in place, by seed
    seeds: int = 10
    departs: str = ""  # known reasons why results differ from the paper's

    @property
    def file(self) -> str:
        """The data file."""
        file = datasets.SOURCES[self.source].file
        assert file is not None
        return file

    def load(self, folder: Path, seed: int, *, quick: bool) -> Split:
        """Read the rows; `seed` draws the parts and the wrong labels where they are drawn."""
        split = datasets.load(self.source, str(folder), form=self.form, seed=seed, quick=quick)
        split.y, split.y_test = ((y > 0).astype(np.int64) for y in (split.y, split.y_test))
        if self.change is not None:
            self.change(split, seed)
        return split


def turn_labels(split: Split, share: float, seed: int) -> None:
    """Flip a share of the training labels; those of the test rows stay right."""
    # A stream of its own: parts are drawn by the plain seed.
    order = np.random.default_rng((seed, 1)).permutation(len(split.y))
    turned = order[: round(share * len(order))]
    split.y[turned] = 1 - split.y[turned]


def _smooth(X: np.ndarray) -> np.ndarray:
    """Smooth images of 16 × 16 pixels, then divide by the root of the number of pixels."""
    from scipy.ndimage import gaussian_filter

    images = gaussian_filter(X.reshape(-1, 16, 16), (0, 0.75, 0.75))
    return np.ascontiguousarray(images.reshape(X.shape) / 16)


def _usps(split: Split, seed: int) -> None:
    """Draw the parts again from all rows, as many as in the paper."""
    X, y = np.concatenate([split.X, split.X_test]), np.concatenate([split.y, split.y_test])
    drawn = datasets._drawn(_smooth(X), y, 7329, 1969, seed)
    split.X, split.y, split.X_test, split.y_test = drawn.X, drawn.y, drawn.X_test, drawn.y_test


def _usps_noise(split: Split, seed: int) -> None:
    _usps(split, seed)
    turn_labels(split, NOISE, seed)


SETS = {
    # SVC has 11,331 support vectors, the paper's FULL 11,831.
    "adult": DataSet(
        "a9a",
        "csr64",
        "0 and 1",
        100,
        0.005,
        departs="the encoding has 123 columns, the paper's 122. SVC itself has PRBEP 67.08 % with "
        "ours, the paper's FULL has 67.55 %.",
    ),
    # From 0 to 1: OnlineSVC then has 3039 support vectors and 99.39 %, the paper's FULL 3412 and
    # 99.25 %. From -1 to 1 it has 2607 and 99.50 %, with rows of unit length 7381 and 96.55 %.
    "mnist-8": DataSet("mnist8", "dense32", "pixels from 0 to 1", 100, 0.001, seeds=3),
    # SVC has 909 support vectors, the paper's FULL 947.
    "banana": DataSet("banana", "dense64", "raw", 10, 1),
    # The very file of the paper: SVC has 1109 support vectors, the paper's FULL 1122.
    "reuters": DataSet("reuters", "csr64", "tf-idf, unit length", 1, 0.5),
    # Smoothed as in the experiments of Cortes and Vapnik (1995) on this set: SVC then has 357
    # support vectors and 99.53 %, the paper's FULL 384 and 99.54 %. Without smoothing no multiple
    # of the pixels gives less than 424, and rows of unit length give 483 or, from -1 to 1, 579.
    # The paper's 7329 and 1969 rows are as many as the canonical parts have together. On the
    # canonical test rows SVC has 99.25 % and AUC 99.75 %; with parts drawn again, AUC 99.9 % as in
    # the paper.
    "usps-0": DataSet("usps0", "dense64", USPS_FEATURES, 1, 2, _usps),
    # As noisy as in [bordes2005, figure 7]: SVC has 2308 support vectors, the paper's FULL 2455.
    "usps-0-noise": DataSet(
        "usps0", "dense64", f"{USPS_FEATURES}; {NOISE:.0%} of labels wrong", 1, 2, _usps_noise
    ),
}
