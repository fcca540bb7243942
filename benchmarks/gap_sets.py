"""The sets of `gap_to_svc.py`: those of `speed.py`, and generated ones that are hard to get right.

rare10, rare2   22 features, a tenth or 2.3 % of the rows positive, gamma large
drift           the boundary turns with time; the test rows are later than the training rows
mnist10_dense   MNIST, blurred, inverted and noisy, so that few pixels are zero
usps10_dense    USPS in the same form
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import QUICK_TEST, SOURCES, Split, load
from paired import Problem
from scipy.ndimage import gaussian_filter
from works import (
    A9A,
    BANANA,
    CHECKERBOARD,
    COVTYPE,
    KDD,
    LETTER,
    MNIST8,
    MNIST10,
    REUTERS,
    USPS,
    WAVEFORM,
)

SIZES = (2500, 4000, 4500, 5000, 10_000, 20_000)
QUICK_SIZE = 500
TEST_ROWS = 10_000  # of generated sets

Read = Callable[[str, int], Split]


@dataclass(frozen=True)
class Set:
    """How to read a set, its training rows, and the parameters of its models."""

    read: Read
    rows: int
    params: dict[str, Any]
    drawn: bool = False  # whether the split depends on the seed
    file: str | None = None


@dataclass(frozen=True)
class SetCase:
    """One training set, and the seeds of the models of OnlineSVC fitted to it."""

    name: str
    rows: int
    draw: int
    seeds: tuple[int, ...]
    quick: bool = False

    @property
    def key(self) -> str:
        return f"{self.name}/{self.rows}/{self.draw}"

    def problem(self, folder: str) -> Problem:
        split = read(self.name, folder, self.draw)
        X, y = split.X, split.y
        if self.rows < len(y):
            kept = np.random.default_rng(self.draw).permutation(len(y))[: self.rows]
            X, y = X[kept], y[kept]
        test = slice(QUICK_TEST if self.quick else None)
        return Problem(Split(X, y, split.X_test[test], split.y_test[test]), SETS[self.name].params)


@lru_cache(maxsize=1)  # the subsets of a set follow each other
def read(name: str, folder: str, seed: int) -> Split:
    return SETS[name].read(folder, seed)


def set_cases(names: list[str], seeds: int, *, quick: bool = False) -> list[SetCase]:
    """Return the cases of sets: seed by seed, and at last the largest training sets."""
    cases = [case for name in names for case in cases_of(name, seeds, quick=quick)]
    return sorted(cases, key=lambda case: (case.rows > max(SIZES), case.draw))


def cases_of(name: str, seeds: int, *, quick: bool) -> Iterator[SetCase]:
    """Yield the cases of a set; a training set that is the same for all seeds is one case."""
    chosen = SETS[name]
    sizes = (*(rows for rows in SIZES if rows < chosen.rows), chosen.rows)
    for rows in (QUICK_SIZE,) if quick else sizes:
        if rows == chosen.rows and (not chosen.drawn or rows > max(SIZES)):
            yield SetCase(name, rows, 0, tuple(range(seeds)), quick)
        else:
            yield from (SetCase(name, rows, seed, (seed,), quick) for seed in range(seeds))


# -- generated sets ------------------------------------------------------------------------------


def rare(folder: str, seed: int, *, share: float, rows: int) -> Split:
    """Draw clusters of two classes in 22 features from 0 to 1; `share` of the rows are positive."""
    rng = np.random.default_rng((seed, 22))
    fixed = np.random.default_rng(22)
    centres, mixing = 1.5 * fixed.normal(size=(2, 8, 10)), fixed.normal(size=(10, 6))
    total = rows + TEST_ROWS
    y = (rng.random(total) < share).astype(np.int64)
    informative = centres[y, rng.integers(0, 8, total)] + rng.normal(size=(total, 10))
    noise = rng.normal(size=(total, 6))
    X = np.hstack([informative, informative @ mixing, noise])
    flipped = rng.random(total) < 0.01
    X -= X[:rows].min(axis=0)
    X /= X[:rows].max(axis=0)
    y = np.where(flipped & (rng.random(total) < share), 1 - y, y)
    return Split(X[:rows], y[:rows], X[rows:], y[rows:])


def drift(folder: str, seed: int, *, rows: int = 20_000) -> Split:
    """Draw rows of two classes whose boundary turns; test rows are the last third in time."""
    rng = np.random.default_rng((seed, 10))
    total = rows + TEST_ROWS
    X = rng.normal(size=(total, 10))
    angle = np.linspace(0, np.pi / 3, total)
    side = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 0.5 * X[:, 2] * X[:, 3]
    y = (side + 0.3 * rng.normal(size=total) > 0).astype(np.int64)
    return Split(X[:rows], y[:rows], X[rows:], y[rows:])


def dense_images(folder: str, seed: int, *, file: str) -> Split:
    """Blur and invert the images of ten digits, and add noise to all pixels."""
    archive = np.load(Path(folder) / file)
    rng = np.random.default_rng(10)  # the images are the same for every seed

    def altered(part: str) -> Any:
        X = archive[f"X_{part}"].astype(np.float64)
        X /= X.max()
        side = round(X.shape[1] ** 0.5)
        blurred = gaussian_filter(X.reshape(-1, side, side), (0, 0.7, 0.7)).reshape(len(X), -1)
        return np.clip(1 - blurred + 0.1 * rng.normal(size=X.shape), 0.0, 1.5)

    return Split(altered("train"), archive["y_train"], altered("test"), archive["y_test"])


# -- the table -----------------------------------------------------------------------------------


def of_speed(name: str, rows: int, params: dict[str, Any], form: str = "dense64") -> Set:
    """Return a set of `speed.py`."""

    def read(folder: str, seed: int) -> Split:
        return load(name, folder, form=form, seed=seed)

    drawn = name in ("covtype2", "checkerboard", "kdd", "banana", "waveform")
    return Set(read, rows, params, drawn, SOURCES[name].file)


RARE = {"C": 32, "gamma": 2}
SETS = {
    "banana": of_speed("banana", 4000, BANANA),
    "waveform": of_speed("waveform", 4000, WAVEFORM),
    "satimage": of_speed("satimage", 4435, LETTER),
    "usps0": of_speed("usps0", 7291, USPS),
    "reuters": of_speed("reuters", 7770, REUTERS, "csr64"),
    "letter": of_speed("letter", 16_000, LETTER),
    "checkerboard": of_speed("checkerboard", 50_000, CHECKERBOARD),
    "a9a": of_speed("a9a", 32_561, A9A, "csr64"),
    "covtype2": of_speed("covtype2", 40_000, COVTYPE),
    "rare10": Set(partial(rare, share=0.1, rows=50_000), 50_000, RARE, drawn=True),
    "rare2": Set(partial(rare, share=0.023, rows=50_000), 50_000, RARE, drawn=True),
    "drift": Set(drift, 20_000, {"C": 10, "gamma": 0.1}, drawn=True),
    "usps10_dense": Set(
        partial(dense_images, file="usps.npz"), 7291, {"C": 10, "gamma": 0.02}, file="usps.npz"
    ),
    "kdd": of_speed("kdd", 200_000, KDD),
    "mnist8": of_speed("mnist8", 60_000, MNIST8),
    "mnist10": of_speed("mnist10", 60_000, MNIST10),
    "mnist10_dense": Set(
        partial(dense_images, file="mnist.npz"), 60_000, MNIST10, file="mnist.npz"
    ),
}
