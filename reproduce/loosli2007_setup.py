"""What the reproductions of [loosli2007] share: the images, their variants and the model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from loosli2007_features import StrokeDirections
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import threadpool_limits

from marginwise import OnlineSVC
from marginwise.invariance import ImageDeformer, VirtualSet

FILE = "mnist.npz"
SHAPE = (28, 28)

# Chosen on 10,000 images of the training set, learning from the others: loosli2007_settings.py.
SMOOTHING = 0.7  # pixels
COMPONENTS = 100
GAMMA = 0.03
STRENGTH = 2.0
DIRECTIONS_GAMMA = 0.16  # where directions of strokes are learned, of images as they are
C = 1000.0  # the paper's
REPROCESS = 4  # the paper's table 1 and ours: 4R/1P and 5R/1P are the quickest
FAINT = 1 / 255

Rows = NDArray[np.float32]
Labels = NDArray[np.int64]


def files_of(_: str) -> list[str]:
    """Return the files that a run needs, whichever it is."""
    return [FILE]


@dataclass
class Images:
    """Images to learn and images to be judged by, smoothed."""

    X: Rows
    y: Labels
    X_test: Rows
    y_test: Labels


def smooth(pixels: NDArray[np.uint8], smoothing: float = SMOOTHING) -> Rows:
    """Return images from 0 to 1, smoothed by a Gaussian filter."""
    images = (pixels.reshape(-1, *SHAPE) / np.float32(255)).astype(np.float32)
    if smoothing > 0:
        images = gaussian_filter(images, (0, smoothing, smoothing), mode="constant")
        images[images < FAINT] = 0.0
    return np.ascontiguousarray(images.reshape(len(images), -1))


def load(folder: Path, *, validation: int = 0, smoothing: float = SMOOTHING) -> Images:
    """Read the images; with `validation`, so many of the training set are those to be judged by."""
    with np.load(folder / FILE) as data:
        X, y = smooth(data["X_train"], smoothing), data["y_train"].astype(np.int64)
        if not validation:
            return Images(X, y, smooth(data["X_test"], smoothing), data["y_test"].astype(np.int64))
    order = np.random.RandomState(1).permutation(len(X))
    known, asked = order[:-validation], order[-validation:]
    return Images(X[known], y[known], X[asked], y[asked])


def project(images: Images, components: int = COMPONENTS) -> PCA:
    """Return the projection to the first principal components of the images to learn.

    Distances between projected images are what the kernel sees, and cost a fifth.
    """
    with threadpool_limits(1):
        return PCA(components, svd_solver="covariance_eigh").fit(images.X)


def project_directions(images: Images, jobs: int) -> Pipeline:
    """Return the same of the directions of strokes in place of pixels."""
    last = PCA(COMPONENTS, svd_solver="covariance_eigh")
    with threadpool_limits(1):
        return make_pipeline(StrokeDirections(SHAPE[0], n_jobs=jobs), last).fit(images.X)


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Measure the time and the processor time of what is done within."""
    spent: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield spent
    spent["seconds"] = time.perf_counter() - wall
    spent["cpu_seconds"] = time.process_time() - cpu


def model(jobs: int, cache: float, **more: Any) -> OnlineSVC:
    """Return the model of the paper: C = 1000, autoactive selection."""
    settings = {"C": C, "gamma": GAMMA, "selection": "autoactive", "reprocess": REPROCESS, **more}
    settings["multiclass"] = "ovr"
    return OnlineSVC(**settings, n_jobs=jobs, cache_size=cache, random_state=0, verbose=1)


def virtual(
    images: Images, variants: int, projection: PCA | Pipeline | None, **deforming: Any
) -> VirtualSet:
    """Return the images with their variants."""
    deformer = ImageDeformer(SHAPE, **{"strength": STRENGTH, **deforming})
    return VirtualSet(images.X, images.y, deformer, variants, transform=projection, cache_size=0)
