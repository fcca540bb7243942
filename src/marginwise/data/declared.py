"""A source with given classes, or without labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginwise._arrays import Ints


class DeclaredSource:
    """A source with given classes, or without labels.

    Parameters
    ----------
    source : object
        The source.
    classes : array-like or None
        All class labels; None uses the classes of the source.
    labelled : bool
        Whether rows have labels. If False, y is None.
    """

    def __init__(self, source: Any, classes: ArrayLike | None, labelled: bool) -> None:
        self.source, self._labelled = source, labelled
        self._declared = None if classes is None else np.unique(np.asarray(classes))
        self.block: int | None = source.block
        self.random_access: bool = source.random_access
        self.feature_names: list[str] | None = source.feature_names

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.source.n_features)

    @property
    def classes(self) -> NDArray[Any] | None:
        """All class labels, sorted, or None without labels."""
        if self._labelled and self._declared is None:
            found: NDArray[Any] = self.source.classes
            return found
        return self._declared if self._labelled else None

    def fingerprint(self) -> str:
        """Return a digest of the source and the declared classes."""
        labels = None if self._declared is None else self._declared.tolist()
        text = f"{self.source.fingerprint()} {labels} {self._labelled}"
        return hashlib.sha256(text.encode()).hexdigest()

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return the features and labels of rows by index."""
        return self._labels(*self.source.read(ids))

    def chunks(self, rows: int = 4096, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Yield features and labels in order, in chunks."""
        for X, y in self.source.chunks(rows, start):
            yield self._labels(X, y)

    def load(self) -> tuple[Any, Any]:
        """Load all rows into memory."""
        return self._labels(*self.source.load())

    def _labels(self, X: Any, y: Any) -> tuple[Any, Any]:
        return X, y if self._labelled else None
