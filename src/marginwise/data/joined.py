"""Concatenation of sources."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginwise._arrays import Ints
from marginwise.data.errors import DataError
from marginwise.data.rows import check_chunks, check_ids, gather, join_rows, rechunk


class JoinedSource:
    """Concatenation of several sources.

    Parameters
    ----------
    sources : list of ArraySource
        Sources with the same features, all with labels or all without.
    classes : array-like, default=None
        All class labels, if they are known.
    """

    def __init__(self, sources: list[Any], classes: ArrayLike | None = None) -> None:
        first = sources[0]
        self._sources = sources
        self._classes: NDArray[Any] | None = None if classes is None else np.unique(classes)
        self.files = [name for source in sources for name in source.files]
        self.n_features: int = first.n_features
        self.feature_names: list[str] | None = first.feature_names
        for source in sources[1:]:
            if source.n_features != first.n_features:
                raise DataError(
                    f"{source.files[0]}: expected {first.n_features} features as in "
                    f"{first.files[0]}, got {source.n_features}."
                )
            if source.feature_names != first.feature_names:
                raise DataError(
                    f"{source.files[0]}: its features have other names than those of "
                    f"{first.files[0]}; expected the same."
                )
        self.random_access = all(source.random_access for source in sources)
        blocks = [source.block for source in sources if source.block is not None]
        self.block: int | None = min(blocks, default=None)
        self._starts = np.cumsum([0, *map(len, sources)], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def classes(self) -> NDArray[Any] | None:
        """All class labels, sorted, or None without labels."""
        if self._classes is None and self._sources[0].labels is not None:
            found = np.unique(np.concatenate([source.labels for source in self._sources]))
            if len(found) < 2:
                raise DataError(
                    f"{self.files[0]}: all {len(self)} rows of all files have the label "
                    f"{found.tolist()}; expected at least two classes. Pass classes if there are "
                    "more."
                )
            self._classes = found
        return self._classes

    def fingerprint(self) -> str:
        """Return a digest of the digests of the sources."""
        parts = " ".join(source.fingerprint() for source in self._sources)
        return hashlib.sha256(parts.encode()).hexdigest()

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return the features and labels of rows by index."""
        ids = check_ids(ids, len(self))
        of = np.searchsorted(self._starts, ids, side="right") - 1
        places = [np.flatnonzero(of == k) for k in np.unique(of).tolist()] or [ids]
        parts = [
            self._sources[k].read(ids[at] - self._starts[k])
            for k, at in zip(np.unique(of).tolist() or [0], places, strict=True)
        ]
        return gather(parts, places)

    def chunks(self, rows: int = 4096, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Yield features and labels in order, in chunks."""
        rows, start = check_chunks(rows, start)
        return rechunk(self._pieces(rows, start), rows)

    def _pieces(self, rows: int, start: int) -> Iterator[tuple[Any, Any]]:
        for source, first in zip(self._sources, self._starts.tolist(), strict=False):
            yield from source.chunks(rows, max(0, start - first))

    def load(self) -> tuple[Any, Any]:
        """Load all rows into memory."""
        return join_rows([source.load() for source in self._sources])
