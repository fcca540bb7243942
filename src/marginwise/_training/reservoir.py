"""The reservoir: a uniform sample of the rows of a stream, which are learned repeatedly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, Labels

PIECE = 64  # after this many rows of a stream, as many of the reservoir are learned again
_PARTS = {"size", "seen", "seed", "ids", "labels", "costs"}
_DENSE, _LISTS = {"X"}, {"data", "indices", "indptr"}


class Reservoir:
    """A uniform sample of all rows seen so far [vitter1985, algorithm R].

    The sample and the order of draws depend on the seed and the number of rows seen, but not on how
    the stream is divided into calls.

    Parameters
    ----------
    size : int
        Maximum number of stored rows.
    seed : int
        Seed of the sample.

    Attributes
    ----------
    seen : int
        Number of rows seen so far.
    ids, labels, costs : ndarray of shape (n_kept,)
        Ids, class numbers and penalties of the stored rows.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.seen = 0
        self._X: list[Any] = []  # a dense or CSR row per slot; copies of the list share the rows
        self.ids: Ints = np.empty(0, dtype=np.int64)
        self.labels: Labels = np.empty(0, dtype=np.int32)
        self.costs: Float = np.empty(0)

    def copy(self) -> Reservoir:
        """Return a copy that continues exactly as this reservoir would."""
        twin = Reservoir(self.size, self.seed)
        twin.__dict__.update(self.__dict__)
        for name in ("_X", "ids", "labels", "costs"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def pieces(self, n: int) -> Iterator[slice]:
        """Divide the next n rows after every `PIECE` rows of the stream."""
        start = 0
        while start < n:
            end = min(start + PIECE - self.seen % PIECE, n)
            yield slice(start, end)
            start = end

    def offered(self, X: Any, labels: Labels, costs: Float, ids: Ints) -> Reservoir:
        """Return the reservoir after `offer`, and leave this one as it is."""
        if (self._slots(len(ids)) < self.size).any():
            twin = self.copy()
            twin.offer(X, labels, costs, ids)
        else:
            twin = Reservoir(self.size, self.seed)
            twin.__dict__.update(self.__dict__)
            twin.seen += len(ids)
        return twin

    def _slots(self, n: int) -> Ints:
        """Return the slots of the next n rows; those beyond the size are not stored."""
        numbers = np.arange(self.seen, self.seen + n)
        if self.seen + n <= self.size:
            return numbers
        drawn = _uniform(self.seed, numbers, numbers + 1)
        return np.where(numbers < self.size, numbers, drawn)

    def offer(self, X: Any, labels: Labels, costs: Float, ids: Ints) -> None:
        """Add rows of the stream, each of which may replace a stored one."""
        slots = self._slots(len(ids))
        self.seen += len(ids)
        rows = np.flatnonzero(slots < self.size)
        slots, last = np.unique(slots[rows][::-1], return_index=True)  # the last row of a slot wins
        rows = rows[::-1][last]
        if len(rows) == 0:
            return
        taken = _split(X, rows, sp.issparse(self._X[0] if self._X else X))
        grown = int(slots[-1]) + 1 - len(self.ids)
        if grown > 0:
            self.ids = np.concatenate([self.ids, np.zeros(grown, dtype=np.int64)])
            self.labels = np.concatenate([self.labels, np.zeros(grown, dtype=np.int32)])
            self.costs = np.concatenate([self.costs, np.ones(grown)])
            self._X += [None] * grown
        self.ids[slots], self.labels[slots], self.costs[slots] = (
            ids[rows],
            labels[rows],
            costs[rows],
        )
        for slot, row in zip(slots.tolist(), taken, strict=True):
            self._X[slot] = row

    @property
    def is_due(self) -> bool:
        """Whether rows should be learned again now."""
        return self.seen % PIECE == 0

    def draw(self) -> Ints:
        """Return the slots of the next rows to learn again."""
        return np.unique(np.arange(self.seen - PIECE, self.seen) % len(self.ids))

    def rows(self, slots: Ints | None = None) -> tuple[Any, Labels, Float, Ints]:
        """Return features, labels, costs and ids of rows by slot, ordered by id; each id once.

        Each stored row represents several rows of the stream, and its cost is multiplied by their
        number.
        """
        chosen = np.arange(len(self.ids)) if slots is None else slots
        _, first = np.unique(self.ids[chosen], return_index=True)
        chosen = chosen[first]
        X: Any = _stack([self._X[slot] for slot in chosen])
        stands_for = self.seen / len(self.ids)
        return X, self.labels[chosen], stands_for * self.costs[chosen], self.ids[chosen]

    # -- state ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state, from which a reservoir continues without a difference."""
        state: dict[str, Any] = {name: getattr(self, name) for name in sorted(_PARTS)}
        X = _stack(self._X) if self._X else np.empty((0, 0))
        if sp.issparse(X):
            lists: Any = X
            width = np.array([lists.shape[1]], dtype=np.int64)
            return {
                **state,
                "data": lists.data,
                "indices": lists.indices.astype(np.int32),
                "indptr": np.concatenate([lists.indptr, width]).astype(np.int64),
            }
        return {**state, "X": X}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Reservoir:
        """Return the reservoir that had this state."""
        reservoir = cls(int(state["size"]), int(state["seed"]))
        reservoir.seen = int(state["seen"])
        reservoir.ids, reservoir.labels = state["ids"].copy(), state["labels"].copy()
        reservoir.costs = state["costs"].copy()
        if "X" not in state:
            indptr, width = state["indptr"][:-1], int(state["indptr"][-1])
            shape = (len(indptr) - 1, width)
            lists = sp.csr_array((state["data"], state["indices"], indptr), shape=shape)
            reservoir._X = _split(lists, np.arange(shape[0]), True)
        else:
            reservoir._X = list(state["X"].copy())
        return reservoir

    @staticmethod
    def check(state: Any, features: int, classes: int) -> None:
        """Raise ValueError unless an external state is valid for a model of this shape."""
        sparse = isinstance(state, dict) and "X" not in state
        if not isinstance(state, dict) or state.keys() != _PARTS | (_LISTS if sparse else _DENSE):
            raise ValueError("_reservoir must have its parts")
        seen, n = state["seen"], np.shape(state["ids"])[0] if np.ndim(state["ids"]) == 1 else -1
        for name, kind in (("ids", "i"), ("labels", "i"), ("costs", "f")):
            array = state[name]
            if not isinstance(array, np.ndarray) or array.shape != (n,) or array.dtype.kind != kind:
                raise ValueError(f"{name} of _reservoir must have a number for each row")
        if type(seen) is not int or type(state["seed"]) is not int or not n <= seen < 2**62:
            raise ValueError("_reservoir must have seen as many rows as it holds, or more")
        if type(state["size"]) is not int or state["size"] < max(n, 1):
            raise ValueError("_reservoir must not hold more rows than its size")
        if not 0 <= state["seed"] < 2**32:
            raise ValueError("seed of _reservoir must have 32 bits")
        if n and not (state["labels"].min() >= 0 and state["labels"].max() < classes):
            raise ValueError("labels of _reservoir must be numbers of classes")
        if not (np.isfinite(state["costs"]) & (state["costs"] > 0)).all():
            raise ValueError("costs of _reservoir must be above 0")
        if sparse:
            _check_lists(state, n, features)
        elif n:
            X = state["X"]
            fits = isinstance(X, np.ndarray) and X.shape == (n, features) and X.dtype.kind == "f"
            if not fits or not np.isfinite(X).all():
                raise ValueError("X of _reservoir must be finite, with a row for each id")


def _split(X: Any, rows: Ints, as_lists: bool) -> list[Any]:
    """Return copies of some rows, one by one."""
    if as_lists:
        lists = sp.csr_array(X)
        return [lists[[row]] for row in rows]
    some = X[rows].toarray() if sp.issparse(X) else X[rows]
    return [row.copy() for row in some]  # a view would keep the other rows in memory


def _stack(rows: list[Any]) -> Any:
    return sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.stack(rows)


def _check_lists(state: Mapping[str, Any], n: int, features: int) -> None:
    data, indices, indptr = state["data"], state["indices"], state["indptr"]
    arrays = (data, indices, indptr)
    if not all(isinstance(array, np.ndarray) and array.ndim == 1 for array in arrays):
        raise ValueError("lists of _reservoir must be arrays")
    fits = (
        len(indptr) == n + 2
        and indptr.dtype == np.int64
        and indices.dtype == np.int32
        and data.dtype.kind == "f"
        and len(indices) == len(data)
        and indptr[-1] == features
        and indptr[0] == 0
        and indptr[-2] == len(data)
        and bool((np.diff(indptr[:-1]) >= 0).all())
        and bool(np.isfinite(data).all())
        and (len(data) == 0 or (indices.min() >= 0 and indices.max() < features))
    )
    if not fits:
        raise ValueError("lists of _reservoir must be those of its rows")


def _uniform(seed: int, numbers: NDArray[Any], below: NDArray[Any]) -> Ints:
    """Return counter-based random integers below the given bounds [steele2014]."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed) * np.uint64(0xD1B54A32D192ED03) + np.uint64(0x632BE59BD9B4E019)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    unit = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    drawn: Ints = np.minimum((unit * below).astype(np.int64), below.astype(np.int64) - 1)
    return drawn
