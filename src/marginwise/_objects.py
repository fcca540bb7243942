"""Rows that are arbitrary objects, for callable kernels.

The core stores numeric rows. Each object is registered under a number, its handle, which is the
only feature of its row. The kernel is called with the objects of the handles.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Handles = NDArray[np.float64]  # one column
Blocks = NDArray[np.object_]

SLACK = 1000  # number of unused objects that are tolerated before a search for them


class _Loan:
    """Handles of one call, which are dropped with this object."""

    def __init__(self, lent: dict[int, Any], handles: range) -> None:
        self._lent = lent
        self._handles = handles

    def __del__(self) -> None:
        for handle in self._handles:
            self._lent.pop(handle, None)


class Objects:
    """Objects of a model, by handle.

    Objects are lent for a call: a loan ends when its thread requests another one or terminates.
    Objects that are learned are kept until they are no longer members.
    """

    def __init__(self, kept: dict[int, Any] | None = None) -> None:
        self._kept: dict[int, Any] = dict(kept or {})
        self._before: dict[int, Any] = {}
        self._lent: dict[int, Any] = {}
        self._next = max(self._kept, default=-1) + 1
        self._guard = threading.Lock()
        self._local = threading.local()
        self._limit = 2 * len(self._kept) + SLACK

    def __len__(self) -> int:
        return len(self._kept)

    def lend(self, rows: Iterable[Any]) -> Handles:
        """Return handles of objects, which are valid until this thread requests others."""
        objects = list(rows)
        with self._guard:
            first = self._next
            self._next = first + len(objects)
        handles = range(first, first + len(objects))
        self._lent.update(zip(handles, objects, strict=True))
        self._local.loan = _Loan(self._lent, handles)
        return np.arange(handles.start, handles.stop, dtype=np.float64).reshape(-1, 1)

    def keep(self, handles: Handles, held: Callable[[], Handles]) -> None:
        """Keep objects that are about to be learned, and drop those that are no longer members.

        Parameters
        ----------
        handles
            Handles to keep.
        held
            Returns the handles of the members of the model. It is called rarely.
        """
        wanted = handles[:, 0].astype(np.int64).tolist()
        self._kept.update({handle: self._of(handle) for handle in wanted})
        if len(self._kept) > self._limit:
            still = {*wanted, *held()[:, 0].astype(np.int64).tolist()}
            self._before = self._kept  # for threads that still read an earlier model
            self._kept = {handle: self._of(handle) for handle in sorted(still)}
            self._limit = 2 * len(self._kept) + SLACK

    def only(self, handles: Handles) -> Objects:
        """Return only the objects of the given handles, for pickling."""
        wanted = handles[:, 0].astype(np.int64).tolist()
        return Objects({handle: self._of(handle) for handle in wanted})

    def block(self, handles: Handles) -> Blocks:
        """Return the objects of handles, as an array of objects."""
        found = np.empty(len(handles), dtype=object)
        for k, handle in enumerate(handles[:, 0].astype(np.int64).tolist()):
            found[k] = self._of(handle)
        return found

    def kernel(self, function: Callable[[Any, Any], Any]) -> Callable[[Handles, Handles], Any]:
        """Return a kernel function of handles."""
        return lambda A, B: function(self.block(A), self.block(B))

    def _of(self, handle: int) -> Any:
        for objects in (self._kept, self._lent, self._before):
            if handle in objects:
                return objects[handle]
        raise KeyError(f"no object has the handle {handle}")

    def __getstate__(self) -> dict[str, Any]:
        return {"kept": self._kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["kept"])  # type: ignore[misc]


def are_objects(X: Any, *, expected: bool) -> bool:
    """Return whether rows are objects instead of rows of numbers.

    Parameters
    ----------
    X
        Rows given by the caller.
    expected
        Whether earlier rows were objects, in which case any sequence is a sequence of objects.
    """
    if hasattr(X, "ndim"):
        return X.ndim == 1 and (expected or np.asarray(X).dtype.kind not in "biufc")
    if not isinstance(X, Sequence) or isinstance(X, str | bytes) or len(X) == 0:
        return False
    if expected or isinstance(X[0], str | bytes):
        return True
    try:
        np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return True
    return False


def lend(estimator: Any, X: Any, *, reset: bool) -> Handles:
    """Register rows for a call of an estimator; return their handles as numeric rows."""
    if reset:
        estimator._objects = Objects()
        estimator.n_features_in_ = 1
    elif "_objects" not in estimator.__dict__:
        raise ValueError(
            f"X is a sequence of objects, but {type(estimator).__name__} was fitted with rows of "
            f"{estimator.n_features_in_} numbers. Pass rows of the same kind as in fit."
        )
    objects: Objects = estimator._objects
    return objects.lend(np.asarray(X).tolist() if hasattr(X, "ndim") else X)
