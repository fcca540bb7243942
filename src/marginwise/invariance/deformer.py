"""Images that a small change leaves what they are: shifted, bent, thickened."""

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
    share,
    threads,
)
from marginwise._core import deform
from marginwise._engine.engine import thread_count
from marginwise.invariance.fields import Single, affine_fields, smoothed_fields, tangents

MOST_SHIFT = 2**20  # pixels


@dataclass(frozen=True)
class Originals:
    """Images, with all that their deformations are computed from.

    Parameters
    ----------
    images
        The images, a row each.
    tangents
        Their t_x and t_y, likewise.
    ranges
        Least and greatest value of each image.
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
    """Makes variants of images: elastic deformations, thickening and shifts [loosli2007].

    A variant of image x is x + s (f_x t_x + f_y t_y) + β sqrt(t_x² + t_y²), moved by whole pixels.
    Fields f_x and f_y, the shift and β are drawn at random by (random_state, variant, example)
    alone, so that a variant is the same bits in whatever order, batch or thread it is made.

    Parameters
    ----------
    shape
        (height, width) of the images, or (height, width, channels), the channels of a pixel side by
        side.
    strength
        s, the strength of elastic deformations. 1 moves pixels by 0.3, root mean square, and
        turns, scales and shears by 0.03, standard deviation.
    thickening
        The largest |β|; 0 for none.
    shift
        The largest shift in pixels, in each direction.
    affine
        The share of fields that have an affine part.
    fields
        How many fields to draw; any of them serves for x and for y.
    field_smoothing
        Standard deviation of the filter that makes the fields smooth, in pixels.
    smoothing
        ... and of the one that images pass through before tangents are taken.
    random_state
        Chooses the fields and all variants.
    n_jobs
        Threads; None for 1, or what ``joblib.parallel_config`` sets; -1 for one per processor that
        the process may use. Images are the same for any number.

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
        "affine": either(share(), (lambda v: v == 0, "0")),
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

    # -- what deformations are made of ---------------------------------------------------------

    @property
    def full_shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        height, width, channels = (*self.shape, 1)[:3]
        return int(height), int(width), int(channels)

    @property
    def fields_(self) -> Single:
        """The displacement fields, in pixels, of shape (fields, height, width)."""
        height, width, channels = self.full_shape
        flat = self._flat_fields().reshape(-1, height, width, channels)
        return np.ascontiguousarray(flat[..., 0])

    def _flat_fields(self) -> Single:
        """Return the fields as rows, each value once for each channel; made when first needed."""
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
        """Check images and compute their tangents.

        Parameters
        ----------
        X
            Images, a row each or of the deformer's shape.
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
                f"images of shape {wanted} have {size} columns a row; got an array of shape "
                f"{X.shape}."
            )
        images = check_array(X, dtype=np.float32, order="C", ensure_all_finite=False)
        check_finite(images)
        shared = images is X or np.may_share_memory(images, X)
        own: Single = images.copy() if shared else images
        return own

    # -- deforming -----------------------------------------------------------------------------

    def deform(self, X: Any, variants: ArrayLike = 1, examples: ArrayLike | None = None) -> Single:
        """Return a variant of each image, as rows.

        Parameters
        ----------
        X
            Images, a row each; or what `prepare` made of them, which saves the tangents.
        variants
            Which variant, of each image or of all; 0 is the image itself.
        examples
            The numbers of the images to deform, as often as one likes; by default, each once.
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
        originals
            What `prepare` returned.
        examples
            Numbers of the images, one for each row of `out`.
        variants
            ... and of the variants.
        out
            Where to write.
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
        """Return a digest of all that shapes the images: the parameters but `n_jobs`."""
        numbers = (float(self.strength), float(self.thickening), float(self.smoothing))
        shaping = (self.full_shape, *numbers, int(self.shift), int(self.random_state))
        digest = hashlib.sha256(repr(shaping).encode())
        digest.update(self._flat_fields().data)
        return digest.hexdigest()


def _numbers(given: ArrayLike, n: int, limit: int | None, name: str) -> Ints:
    """Return n integers, of which one may stand for all."""
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (n,)):
        raise ValueError(f"{name} must be an integer, or one for each of {n} images.")
    numbers = np.ascontiguousarray(np.broadcast_to(numbers, (n,)), dtype=np.int64)
    wrong = np.flatnonzero((numbers < 0) | (numbers >= (np.inf if limit is None else limit)))
    if wrong.size:
        most = "" if limit is None else f" and below {limit}"
        raise ValueError(
            f"{name} must be at least 0{most}, got {numbers[wrong[0]]} at place {wrong[0]}."
        )
    return numbers
