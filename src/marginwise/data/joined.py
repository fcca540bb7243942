"""Several sources as one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints
from marginwise.data.errors import DataError
from marginwise.data.rows import check_ids, gather, join_rows, rechunk


class JoinedSource:
    """Sources whose rows follow each other.

    Parameters
    ----------
    sources : list of sources
        Sources with the same features.
    """

    def __init__(self, sources: list[Any]) -> None:
        first = sources[0]
        self._sources = sources
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
        """All class labels, sorted; None without labels."""
        found = [source.labels for source in self._sources]
        if any(labels is None for labels in found):
            return None
        known: NDArray[Any] = np.unique(np.concatenate(found))
        return known

    def fingerprint(self) -> str:
        """Return a digest of those of the sources."""
        parts = " ".join(source.fingerprint() for source in self._sources)
        return hashlib.sha256(parts.encode()).hexdigest()

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return features and labels of rows by their numbers."""
        ids = check_ids(ids, len(self))
        of = np.searchsorted(self._starts, ids, side="right") - 1
        places = [np.flatnonzero(of == k) for k in np.unique(of).tolist()] or [ids]
        parts = [
            self._sources[k].read(ids[at] - self._starts[k])
            for k, at in zip(np.unique(of).tolist() or [0], places, strict=True)
        ]
        return gather(parts, places)

    def chunks(self, rows: int = 4096, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Give features and labels in order, in chunks of some rows."""
        return rechunk(self._pieces(rows, start), rows)

    def _pieces(self, rows: int, start: int) -> Iterator[tuple[Any, Any]]:
        for source, first in zip(self._sources, self._starts.tolist(), strict=False):
            yield from source.chunks(rows, max(0, start - first))

    def load(self) -> tuple[Any, Any]:
        """Return all rows, in memory."""
        return join_rows([source.load() for source in self._sources])
