"""Images, variants and models that the experiments share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILE = "mnist.npz"
SHAPE = (28, 28)
FAINT = 1 / 255

C = 1000.0  # the paper's
PAPER_GAMMA = 0.024  # the paper's 0.006, for pixels from 0 to 1 in place of -1 to 1
STRENGTH = 2.0  # the paper's, in our unit
REPROCESS = 4  # the paper's table 1 and ours: among the fastest
VALIDATION = 10_000  # images of the training set that models are judged by
SIFT = 0.01  # see learn_from

# Chosen on 10,000 images of the training set: table2_settings.py.
SMOOTHING = 0.7  # pixels
COMPONENTS = 100
GAMMA = 0.03
DIRECTIONS_GAMMA = 0.16


@dataclass
class Images:
    """Images to learn and images to test, with pixels from 0 to 1."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    def first(self, count: int) -> Images:
        """Return the first of the images to learn."""
        return Images(self.X[:count], self.y[:count], self.X_test, self.y_test)


def smooth(pixels: Any, smoothing: float) -> Any:
    """Return images as rows of numbers from 0 to 1, after a Gaussian filter."""
    from scipy.ndimage import gaussian_filter

    images = (pixels.reshape(-1, *SHAPE) / np.float32(255)).astype(np.float32)
    if smoothing > 0:
        images = gaussian_filter(images, (0, smoothing, smoothing), mode="constant")
        images[images < FAINT] = 0.0
    return np.ascontiguousarray(images.reshape(len(images), -1))


def load(folder: Path, *, smoothing: float = 0.0) -> Images:
    """Load the training set and the test set."""
    with np.load(folder / FILE) as data:
        X, X_test = (smooth(data[f"X_{part}"], smoothing) for part in ("train", "test"))
        return Images(X, data["y_train"], X_test, data["y_test"])


def load_validation(folder: Path, *, smoothing: float = 0.0, order: Any = None) -> Images:
    """Load the training set, divided: its last 10,000 images in a given order are for testing."""
    with np.load(folder / FILE) as data:
        pixels, y = data["X_train"], data["y_train"]
    if order is None:
        order = np.random.RandomState(1).permutation(len(y))
    known, asked = order[:-VALIDATION], order[-VALIDATION:]
    X = smooth(pixels, smoothing)
    return Images(X[known], y[known], X[asked], y[asked])


def features_of(images: Images, kind: str) -> Any:
    """Return a fitted transformer to the features that are learned; None learns the pixels."""
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline

    from reproduce.loosli2007.features import StrokeDirections

    if kind == "plain":
        return None
    last = PCA(COMPONENTS, svd_solver="covariance_eigh")
    first = [StrokeDirections(SHAPE[0])] if kind == "directions" else []
    return make_pipeline(*first, last).fit(images.X)


def model(seed: int, **more: Any) -> Any:
    """Return a new model with the settings of the paper."""
    from marginwise import OnlineSVC

    given = {"C": C, "gamma": PAPER_GAMMA, "reprocess": REPROCESS, "cache_size": 3000}
    given |= {"multiclass": "ovr", **more}
    return OnlineSVC(**given, n_jobs=1, random_state=seed)


def virtual(images: Images, variants: int, transform: Any = None, **more: Any) -> Any:
    """Return the images and their variants; `variants` counts the image itself."""
    from marginwise.invariance import ImageDeformer, VirtualSet

    staged = {name: more.pop(name) for name in ("bootstrap",) if name in more}
    deformer = ImageDeformer(SHAPE, **{"strength": STRENGTH, **more})
    return VirtualSet(
        images.X, images.y, deformer, variants, transform=transform, cache_size=0, **staged
    )


def sizes(model: Any) -> dict[str, Any]:
    """Return the members, and the support vectors summed over the ten classes."""
    per_class = np.count_nonzero(model.dual_coef_, axis=1).tolist()
    members = int(model.stats_["members"])
    return {"members": members, "support_vectors": sum(per_class), "per_class": per_class}
