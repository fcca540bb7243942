"""Data source of deformed images that are generated on demand."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import column_or_1d

from marginwise._arrays import Ints, spread_rows
from marginwise._checks import is_integer, is_real
from marginwise.invariance.deformer import ImageDeformer
from marginwise.invariance.fields import Single


class VirtualSet:
    """Data source of images and their deformed variants.

    Pass a virtual set to the `learn_from` method of a classifier. Example ``id`` is variant ``id //
    n`` of image ``id % n``, where n is the number of images; variant 0 is the image itself. The
    same id always gives the same bits. The set stores only the images, their derivatives and the
    fields of the deformer, and generates variants when they are read.

    Parameters
    ----------
    X : array-like of shape (n_images, n_pixels)
        Original images.
    y : array-like of shape (n_images,)
        Class labels.
    deformer : ImageDeformer
        Deformer that generates the variants.
    variants : int
        Number of variants per image, including the image itself.
    bootstrap : sequence of int, default=(1, 5)
        Numbers of variants at which the first training stages end. (1, 5) learns the original
        images first, then four variants of each image, then the rest.
    transform : transformer, default=None
        Fitted transformer that is applied to images and variants before they are learned. Also
        apply it to images before prediction. None learns the pixels themselves.
    cache_size : float, default=64
        Size of the cache of variants, in megabytes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    labels : ndarray of shape (n_images,)
        Label of each image.
    stages : list of int
        Ids at which the training stages end.

    See Also
    --------
    ImageDeformer : Generate variants of images.
    contact_sheet : Picture of images and their variants.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from marginwise import OnlineSVC
    >>> from marginwise.invariance import ImageDeformer, VirtualSet
    >>> X, y = load_digits(return_X_y=True)
    >>> deformer = ImageDeformer((8, 8), strength=0.5, shift=0)
    >>> source = VirtualSet(X[:900] / 16, y[:900], deformer, variants=5)
    >>> len(source)
    4500
    >>> model = OnlineSVC(C=100, gamma=0.5, random_state=0)
    >>> model.learn_from(source).score(X[900:] / 16, y[900:]) > 0.95
    True
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        deformer: ImageDeformer,
        variants: int,
        *,
        bootstrap: Sequence[int] = (1, 5),
        transform: Any = None,
        cache_size: float = 64,
    ) -> None:
        if not is_integer(variants) or variants < 1:
            raise ValueError(f"variants must be an integer of at least 1, got {variants!r}.")
        counts: list[Any] = [*bootstrap] if isinstance(bootstrap, tuple | list) else [None]
        if not all(is_integer(v) and v >= 1 for v in counts) or counts != sorted(set(counts)):
            raise ValueError(
                f"bootstrap must be a tuple or list of increasing integers of at least 1, such as "
                f"(1, 5), got {bootstrap!r}."
            )
        if not is_real(cache_size) or cache_size < 0:
            raise ValueError(f"cache_size must be a number of at least 0, got {cache_size!r}.")
        labels = np.array(column_or_1d(y))
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if len(labels) != n:
            raise ValueError(
                f"X has {n} images, but y has {len(labels)} labels; pass one label per image."
            )
        self.labels = labels
        self.deformer = clone(deformer)
        self.variants = int(variants)
        self.originals = self.deformer.prepare(X)
        self.classes: NDArray[Any] = np.unique(labels)
        self.stages = [len(labels) * v for v in counts if v < variants] + [len(self)]
        self.transform = transform
        self._cache = _Cache(int(cache_size * 2**20))

    def __len__(self) -> int:
        return len(self.labels) * self.variants

    def read(self, ids: Ints) -> tuple[Single, NDArray[Any]]:
        """Return examples by id.

        Parameters
        ----------
        ids : ndarray of shape (n_examples,), dtype=int64
            Ids, in any order.

        Returns
        -------
        X : ndarray of shape (n_examples, n_features)
            Images, transformed if the set has a transformer.
        y : ndarray of shape (n_examples,)
            Class labels.
        """
        ids = self._check_ids(ids)
        return self._cache.fetch(ids, self._make), self.labels[ids % len(self.labels)]

    def _check_ids(self, ids: Ints) -> Ints:
        ids = np.asarray(ids)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise ValueError(
                f"ids must be a sequence of integers, got {ids.dtype} of shape {ids.shape}."
            )
        wrong = np.flatnonzero((ids < 0) | (ids >= len(self)))
        if wrong.size:
            raise ValueError(
                f"ids[{wrong[0]}] is {ids[wrong[0]]}, which is outside this set; its ids are 0 to "
                f"{len(self) - 1}."
            )
        return np.ascontiguousarray(ids, dtype=np.int64)

    def _make(self, ids: Ints) -> NDArray[Any]:
        """Generate examples by id."""
        images = self.images(ids)
        if self.transform is None:
            return images
        made = self.transform.transform(images)
        return np.asarray(made.toarray() if hasattr(made, "toarray") else made)

    def images(self, ids: Ints) -> Single:
        """Return images by id, before the transformer is applied.

        Parameters
        ----------
        ids : ndarray of shape (n_examples,), dtype=int64
            Ids, in any order.

        Returns
        -------
        X : ndarray of shape (n_examples, n_pixels)
            Images.
        """
        ids, n = self._check_ids(ids), len(self.labels)
        out = np.empty((len(ids), self.originals.images.shape[1]), dtype=np.float32)
        self.deformer.write(self.originals, ids % n, ids // n, out)
        return out

    def fingerprint(self) -> str:
        """Return a digest of the images, the labels and everything that determines the variants.

        Returns
        -------
        digest : str
            Hexadecimal SHA-256.
        """
        digest = hashlib.sha256(self.deformer.fingerprint().encode())
        digest.update(f"{self.variants} {self.stages}".encode())
        digest.update(np.ascontiguousarray(self.originals.images).data)
        digest.update(repr(self.labels.tolist()).encode())
        if self.transform is not None:
            some = spread_rows(len(self.labels), 100)
            digest.update(np.ascontiguousarray(self._make(some)).data)
        return digest.hexdigest()


class _Cache:
    """Direct-mapped cache of recently generated rows.

    Parameters
    ----------
    size : int
        Capacity in bytes.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._ids: Ints = np.empty(0, dtype=np.int64)
        self._rows: NDArray[Any] | None = None  # allocated once the width of rows is known
        self._lock = threading.Lock()  # never held while rows are generated

    def __getstate__(self) -> dict[str, Any]:
        return {"_size": self._size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_size"])  # type: ignore[misc]

    def fetch(self, ids: Ints, make: Callable[[Ints], NDArray[Any]]) -> NDArray[Any]:
        """Return rows by id; `make` generates those that are not in the cache."""
        held, rows = self._look_up(ids)
        if rows is None:
            rows = make(ids)
            self._keep(ids, rows)
        elif not held.all():
            rows[~held] = made = make(ids[~held])
            self._keep(ids[~held], made)
        return rows

    def _look_up(self, ids: Ints) -> tuple[NDArray[np.bool_], NDArray[Any] | None]:
        """Return a mask of the cached ids, and an array with their rows (None without a cache)."""
        with self._lock:
            if self._rows is None or len(self._ids) == 0 or len(ids) == 0:
                return np.zeros(len(ids), dtype=bool), None
            at = ids % len(self._ids)
            held = self._ids[at] == ids
            out = np.empty((len(ids), self._rows.shape[1]), dtype=self._rows.dtype)
            out[held] = self._rows[at[held]]
            return held, out

    def _keep(self, ids: Ints, rows: NDArray[Any]) -> None:
        """Store rows in the cache; of several rows with the same slot, the last one is kept."""
        if len(ids) == 0:
            return
        with self._lock:
            if self._rows is None:
                places = self._size // max(rows[:1].nbytes, 1)
                self._ids = np.full(places, -1, dtype=np.int64)
                self._rows = np.empty((places, rows.shape[1]), dtype=rows.dtype)
            if len(self._ids) == 0:
                return
            # For repeated indices, NumPy keeps the last value, of rows and of ids alike.
            at = ids % len(self._ids)
            self._ids[at] = -1  # an interrupt during copying must not leave a wrong row
            self._rows[at] = rows
            self._ids[at] = ids
