"""ImageDeformer: class-preserving deformations of images."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from marginwise._arrays import Ints
from marginwise._checks import (
    Rule,
    check_finite,
    check_params,
    either,
    integer,
    non_negative,
    none,
    one_value,
    positive,
    threads,
)
from marginwise._core import deform
from marginwise._engine.engine import thread_count
from marginwise.invariance.fields import Single, affine_fields, smoothed_fields, tangents

MOST_SHIFT = 2**20  # pixels


@dataclass(frozen=True)
class Originals:
    """Images with the derivatives that determine their deformations.

    Parameters
    ----------
    images : ndarray of shape (n_images, n_pixels)
        The images, one per row.
    tangents : ndarray of shape (2, n_images, n_pixels)
        Derivatives t_x and t_y of the images.
    ranges : ndarray of shape (2, n_images)
        Minimum and maximum of each image.

    See Also
    --------
    ImageDeformer.prepare : Compute the derivatives of images.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise.invariance import ImageDeformer
    >>> originals = ImageDeformer((5, 5)).prepare(np.eye(25))
    >>> len(originals), originals.tangents.shape
    (25, (2, 25, 25))
    """

    images: Single
    tangents: Single
    ranges: Single

    def __len__(self) -> int:
        return len(self.images)


def _up_to(most: float) -> Rule:
    return lambda v: non_negative()[0](v) and v <= most, f"a number from 0 to {most:g}"


def _whole(most: int) -> Rule:
    return integer(0, most)


def _shape() -> Rule:
    def holds(value: Any) -> bool:
        sizes = value if isinstance(value, tuple | list) else ()
        return len(sizes) in (2, 3) and all(integer(1)[0](size) for size in sizes)

    return holds, "(height, width) or (height, width, channels), integers above 0"


class ImageDeformer(BaseEstimator):  # type: ignore[misc]
    """Generate variants of images by elastic deformation, thickening and shifts.

    A variant of image x is ``x + s (f_x t_x + f_y t_y) + β sqrt(t_x² + t_y²)``, shifted by whole
    pixels [loosli2007]_. The fields f_x and f_y, the shift and β depend only on `random_state`, the
    number of the variant and the number of the image. A variant is therefore reproducible bit by
    bit, independently of order, batches and threads.

    Parameters
    ----------
    shape : tuple of int
        Image shape: (height, width) or (height, width, channels). The channels of a pixel are
        adjacent.
    strength : float, default=2.0
        Strength s of elastic deformations. With 1, pixels move by 0.3 (root mean square), and
        rotations, scalings and shears have a standard deviation of 0.03.
    thickening : float, default=0.0
        Largest abs(β); 0 disables thickening.
    shift : int, default=1
        Largest shift in pixels, in each direction.
    affine : float, default=1.0
        Fraction of the fields that have an affine part.
    fields : int, default=2000
        Number of displacement fields to generate. Each field can serve as f_x and as f_y.
    field_smoothing : float, default=5.0
        Standard deviation in pixels of the Gaussian filter that smooths the fields.
    smoothing : float, default=0.7
        Standard deviation in pixels of the Gaussian filter applied to images before their
        derivatives are computed.
    random_state : int, default=0
        Seed for the fields and for all variants.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a ``joblib.parallel_config`` context. -1 means
        using all processors available to the process. The images do not depend on the number of
        threads.

    Attributes
    ----------
    fields_ : ndarray of shape (fields, height, width)
        Displacement fields in pixels.

    See Also
    --------
    VirtualSet : Data source of images and their variants.
    contact_sheet : Picture of images and their variants.

    References
    ----------
    .. [loosli2007] G. Loosli, S. Canu and L. Bottou, "Training Invariant Support Vector Machines
       using Selective Sampling", Large Scale Kernel Machines, MIT Press, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise.invariance import ImageDeformer
    >>> bar = np.zeros((5, 5))
    >>> bar[1:4, 2] = 1.0
    >>> right = ImageDeformer((5, 5), strength=0, shift=1, random_state=2)
    >>> right.deform(bar.reshape(1, -1), variants=3).reshape(5, 5).astype(int)
    array([[0, 0, 0, 0, 0],
           [0, 0, 0, 0, 0],
           [0, 0, 1, 0, 0],
           [0, 0, 1, 0, 0],
           [0, 0, 1, 0, 0]])
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "shape": _shape(),
        "strength": _up_to(1e6),
        "thickening": _up_to(1e6),
        "shift": _whole(MOST_SHIFT),
        "affine": either(positive(1), one_value(0)),
        "fields": integer(1),
        "field_smoothing": _up_to(1e4),
        "smoothing": _up_to(1e4),
        "random_state": _whole(2**63 - 1),
        "n_jobs": either(none(), threads()),
    }

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        strength: float = 2.0,
        thickening: float = 0.0,
        shift: int = 1,
        affine: float = 1.0,
        fields: int = 2000,
        field_smoothing: float = 5.0,
        smoothing: float = 0.7,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.shape = shape
        self.strength = strength
        self.thickening = thickening
        self.shift = shift
        self.affine = affine
        self.fields = fields
        self.field_smoothing = field_smoothing
        self.smoothing = smoothing
        self.random_state = random_state
        self.n_jobs = n_jobs
        check_params(self, self._rules)

    # -- components of deformations ------------------------------------------------------------

    @property
    def full_shape(self) -> tuple[int, int, int]:
        """Height, width and number of channels."""
        height, width, channels = (*self.shape, 1)[:3]
        return int(height), int(width), int(channels)

    @property
    def fields_(self) -> Single:
        """Displacement fields in pixels, of shape (fields, height, width)."""
        height, width, channels = self.full_shape
        flat = self._flat_fields().reshape(-1, height, width, channels)
        return np.ascontiguousarray(flat[..., 0])

    def _flat_fields(self) -> Single:
        """Return the fields as rows, with each value repeated per channel; computed on demand."""
        made = tuple(self.get_params()[name] for name in self._OF_FIELDS)
        if getattr(self, "_made", None) != made:
            height, width, channels = self.full_shape
            rng = np.random.default_rng([self.random_state, 1])
            fields = smoothed_fields(self.fields, height, width, self.field_smoothing, rng)
            turned = round(self.affine * self.fields)
            fields[:turned] += affine_fields(turned, height, width, rng)
            flat = fields.reshape(self.fields, -1)
            self._flat = np.ascontiguousarray(np.repeat(flat, channels, axis=1))
            self._made = made
        return self._flat

    _OF_FIELDS = ("shape", "affine", "fields", "field_smoothing", "random_state")

    def prepare(self, X: Any) -> Originals:
        """Validate images and compute their derivatives.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels) or (n_images, height, width[, channels])
            Images to prepare.

        Returns
        -------
        originals : Originals
            Images and their derivatives, for `deform` and `write`.
        """
        check_params(self, self._rules)
        images = self._check(X)
        height, width, channels = self.full_shape
        t_x, t_y = tangents(images.reshape(-1, height, width, channels), self.smoothing)
        flat = np.stack([t_x.reshape(len(images), -1), t_y.reshape(len(images), -1)])
        return Originals(images, flat, np.stack([images.min(axis=1), images.max(axis=1)]))

    def _check(self, X: Any) -> Single:
        size = int(np.prod(self.full_shape))
        X = np.asarray(X) if not hasattr(X, "toarray") else X.toarray()
        if X.ndim > 2 and X.shape[1:] in (tuple(self.shape), self.full_shape):
            X = X.reshape(len(X), -1)
        if X.ndim != 2 or X.shape[1] != size:
            wanted = " x ".join(str(k) for k in self.shape)
            raise ValueError(
                f"X must have {size} columns, one per pixel of images of shape {wanted}, got an "
                f"array of shape {X.shape}. Pass the shape of these images to ImageDeformer."
            )
        images = check_array(X, dtype=np.float32, order="C", ensure_all_finite=False)
        check_finite(images)
        shared = images is X or np.may_share_memory(images, X)
        own: Single = images.copy() if shared else images
        return own

    # -- deforming -----------------------------------------------------------------------------

    def deform(self, X: Any, variants: ArrayLike = 1, examples: ArrayLike | None = None) -> Single:
        """Generate a variant of each image.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels), or Originals
            Images, or the result of `prepare`, which avoids computing the derivatives again.
        variants : int or array-like of int, default=1
            Number of the variant, for all images or for each image. 0 is the image itself.
        examples : array-like of int, default=None
            Indices of the images to deform, possibly with repetitions. By default, each image once.

        Returns
        -------
        X_deformed : ndarray of shape (n_examples, n_pixels)
            One variant per row.
        """
        originals = X if isinstance(X, Originals) else self.prepare(X)
        n = len(originals)
        given = np.arange(n) if examples is None else np.asarray(examples)
        rows = _numbers(given, given.size, n, "examples")
        out = np.empty((len(rows), originals.images.shape[1]), dtype=np.float32)
        self.write(originals, rows, _numbers(variants, len(rows), None, "variants"), out)
        return out

    def write(self, originals: Originals, examples: Ints, variants: Ints, out: Single) -> None:
        """Write variants of prepared images to the rows of an array.

        Parameters
        ----------
        originals : Originals
            Result of `prepare`.
        examples : ndarray of shape (n_rows,), dtype=int64
            Number of the image in each row of `out`.
        variants : ndarray of shape (n_rows,), dtype=int64
            Number of the variant in each row of `out`.
        out : ndarray of shape (n_rows, n_pixels), dtype=float32
            Array to write the variants to.
        """
        deform(
            originals.images,
            originals.tangents,
            originals.ranges,
            self._flat_fields(),
            list(self.full_shape),
            float(self.strength),
            float(self.thickening),
            int(self.shift),
            int(self.random_state),
            examples,
            variants,
            thread_count(self.n_jobs),
            out,
        )

    def fingerprint(self) -> str:
        """Return a digest of everything that determines the variants.

        Returns
        -------
        digest : str
            Hexadecimal SHA-256.
        """
        numbers = (float(self.strength), float(self.thickening), float(self.smoothing))
        shaping = (self.full_shape, *numbers, int(self.shift), int(self.random_state))
        digest = hashlib.sha256(repr(shaping).encode())
        digest.update(self._flat_fields().data)
        return digest.hexdigest()


def _numbers(given: ArrayLike, n: int, limit: int | None, name: str) -> Ints:
    """Return n integers; a single integer is repeated."""
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (n,)):
        raise ValueError(
            f"{name} must be an integer, or one for each of {n} images, got {numbers.dtype} of "
            f"shape {numbers.shape}."
        )
    numbers = np.ascontiguousarray(np.broadcast_to(numbers, (n,)), dtype=np.int64)
    wrong = np.flatnonzero((numbers < 0) | (numbers >= (np.inf if limit is None else limit)))
    if wrong.size:
        most = "" if limit is None else f" and below {limit}"
        raise ValueError(
            f"{name} must be at least 0{most}, got {numbers[wrong[0]]} at index {wrong[0]}."
        )
    return numbers
