"""Rows of a pool, in memory, on disk or from a source, and their status."""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from marginwise._arrays import Ints, spread_rows
from marginwise._checks import canonical, check_finite, check_rows
from marginwise.active.frames import is_frame, joined, rows_of

UNSEEN, TAUGHT, SKIPPED = 0, 1, 2
LARGE = 1 << 28  # bytes; rows of larger arrays are validated when they are read
PRINTS = 64  # number of rows in a fingerprint


class Joined:
    """Source of the rows of two pools, which are read on demand.

    Parameters
    ----------
    one, other : Pool
        The pools.
    """

    def __init__(self, one: Pool, other: Pool) -> None:
        self._one, self._other = one, other

    def __len__(self) -> int:
        return self._one.n + self._other.n

    def read(self, rows: Ints) -> Any:
        """Return the features of some rows."""
        early = rows < self._one.n
        if early.all():
            return self._one.take(rows)
        if not early.any():
            return self._other.take(rows - self._one.n)
        both = stacked(self._one.take(rows[early]), self._other.take(rows[~early] - self._one.n))
        back = np.empty(len(rows), dtype=np.int64)
        back[np.concatenate([np.flatnonzero(early), np.flatnonzero(~early)])] = np.arange(len(rows))
        return both[back]


def stacked(one: Any, other: Any) -> Any:
    """Concatenate rows; the result is sparse if any of them is sparse."""
    if not sp.issparse(one) and not sp.issparse(other):
        return np.concatenate([one, other])
    return canonical(sp.csr_array(sp.vstack([one, other], format="csr")))


@contextlib.contextmanager
def unchanged_on_error(pool: Pool) -> Iterator[None]:
    """Restore a pool if the block that extends it fails."""
    before = dict(pool.__dict__)
    try:
        yield
    except BaseException:
        pool.__dict__.clear()
        pool.__dict__.update(before)
        raise


class Pool:
    """Unlabelled rows and their status.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features), or source
        An array, CSR matrix, memory map, data frame or list of rows, or an object with ``__len__``
        and ``read(rows)``, whose labels are ignored.
    """

    is_raw = False  # whether only the user's estimator can read the rows

    def __init__(self, X: Any) -> None:
        self._source = X if hasattr(X, "read") and hasattr(X, "__len__") else None
        self.given = X
        self._rows: Any = None
        self._checked = True
        if self._source is None:
            self._rows = self._accept(X)
        self.n = len(X) if self._source is not None else self._rows.shape[0]
        if self.n == 0:
            raise ValueError("X_pool is empty; pass one row or more.")
        self.first = self.n  # initial number of rows
        self.status: NDArray[np.uint8] = np.zeros(self.n, dtype=np.uint8)
        self.n_unseen = self.n
        self.features = int(self.take(np.zeros(1, dtype=np.int64)).shape[1])

    def copy(self) -> Pool:
        """Return a pool of the same rows with an independent copy of the status."""
        twin = copy.copy(self)
        twin.status = self.status.copy()
        return twin

    def extended(self, X: Any) -> Pool:
        """Return a pool with additional rows; the status of existing rows is kept."""
        more = Pool(X)
        if more.features != self.features:
            raise ValueError(
                f"X_new has {more.features} features, but the pool has {self.features}; pass the "
                "same columns."
            )
        both = copy.copy(self)
        both.n = self.n + more.n
        both.n_unseen = self.n_unseen + more.n
        both.status = np.concatenate([self.status, more.status])
        if self._source is not None or more._source is not None:
            both._source = both.given = Joined(self.copy(), more)
            both._rows = None
            return both
        both._rows = stacked(self._rows, more._rows)
        both._checked = self._checked and more._checked
        both.given = joined(self.given, X) if is_frame(self.given) else both._rows
        return both

    def _accept(self, X: Any) -> Any:
        """Validate rows in memory; rows of large arrays are validated when they are read."""
        large = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.char in "fd"
        if large and X.dtype.isnative and X.nbytes > LARGE:
            self._checked = False
            return X
        return canonical(check_rows(X, "X_pool"))

    @property
    def in_memory(self) -> bool:
        """Whether all rows can be scored in a single call."""
        return self._rows is not None

    @property
    def rows(self) -> Any:
        """All rows, after validation."""
        if not self._checked:
            check_finite(self._rows)
            self._checked = True
        return self._rows if sp.issparse(self._rows) else np.ascontiguousarray(self._rows)

    def take(self, rows: Ints) -> Any:
        """Return the features of some rows."""
        if self._source is None:
            X = self._rows[rows]
            if not self._checked:
                check_finite(X, rows)
            return X
        X = self._source.read(np.ascontiguousarray(rows))
        X = X[0] if isinstance(X, tuple) else X
        X = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
        )
        if X.shape[0] != len(rows):
            raise ValueError(
                f"X_pool.read returned {X.shape[0]} rows for {len(rows)} row numbers; it must "
                "return one row for each."
            )
        check_finite(X, rows)
        return canonical(X)

    def take_given(self, rows: Ints) -> Any:
        """Return rows in the original format, which may be a data frame."""
        framed = self._source is None and is_frame(self.given)
        return rows_of(self.given, rows) if framed else self.take(rows)

    def require(self, rows: Ints) -> None:
        """Raise if rows cannot be read or contain invalid values."""
        if self._source is not None or not self._checked:
            self.take(rows)

    def spread(self, most: int) -> Any:
        """Return up to `most` of the initial rows, evenly spaced, in the original format."""
        return self.take_given(spread_rows(self.first, most))

    def mark(self, rows: Ints, status: int) -> None:
        """Set the status of rows."""
        self.n_unseen += int(np.count_nonzero(self.status[rows] != UNSEEN) * (status == UNSEEN))
        self.n_unseen -= int(np.count_nonzero(self.status[rows] == UNSEEN) * (status != UNSEEN))
        self.status[rows] = status

    def set_answers(self, statuses: dict[int, int]) -> None:
        """Set the status of some rows; all others become unseen."""
        self.status[:] = UNSEEN
        self.status[np.fromiter(statuses, dtype=np.int64, count=len(statuses))] = np.fromiter(
            statuses.values(), dtype=np.uint8, count=len(statuses)
        )
        self.n_unseen = self.n - len(statuses)

    def unseen(self) -> Ints:
        """Return all rows that were neither taught nor skipped."""
        return np.flatnonzero(self.status == UNSEEN).astype(np.int64)

    def sample(self, size: int, rng: np.random.Generator) -> Ints:
        """Draw up to `size` unseen rows without replacement."""
        if size >= self.n_unseen:
            return rng.permutation(self.unseen())
        if 16 * max(size, 1) > self.n_unseen or 16 * self.n_unseen < self.n:
            return rng.choice(self.unseen(), size, replace=False)
        found: Ints = np.empty(0, dtype=np.int64)
        while len(found) < size:  # for small samples, faster than listing all unseen rows
            drawn = rng.integers(self.n, size=2 * size)
            both = np.concatenate([found, drawn[self.status[drawn] == UNSEEN]])
            _, first = np.unique(both, return_index=True)
            found = both[np.sort(first)][:size]
        return found

    def fingerprint(self, n: int | None = None) -> str:
        """Return a digest of the shape and of some rows of the pool, or of its first n rows."""
        n = self.n if n is None else n
        X = self.take(spread_rows(n, PRINTS))
        digest = hashlib.sha256(f"{n} {self.features}".encode())
        parts = (X.indptr, X.indices, X.data) if sp.issparse(X) else (X,)
        for part in parts:
            digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        return digest.hexdigest()
