"""Snapshots: the part of the model that workers need to evaluate rows."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints
from marginwise._core import Batch
from marginwise._engine.engine import Engine
from marginwise._engine.features import caller_features
from marginwise._engine.plan import Plan
from marginwise._training.sift import Single, Sketch, widths

LITTLE = 2**20  # bytes of the kernel cache of engines that only evaluate rows


@dataclass
class Snapshot:
    """The support vectors of a model, their coefficients, and the margins of its problems.

    Parameters
    ----------
    plan : Plan
        Configuration of the engine.
    features : dict
        The support vectors in the storage format of engines: "X", or the arrays of a CSR matrix.
    ids : ndarray of int64
        Ids of the support vectors, ascending.
    coefficients : ndarray of shape (problems, n), float32
        Signed coefficients of the support vectors.
    bias : ndarray of shape (problems,)
        The constant terms.
    margin : ndarray of shape (problems,)
        Value of y f(x) below which a row is inside the margin; minus infinity for problems that
        cannot evaluate rows yet.
    sketch : Sketch or None
        Coarse approximation of the model, if rows are sifted with one.
    """

    plan: Plan
    features: dict[str, Any]
    ids: Ints
    coefficients: Single
    bias: Float
    margin: Float
    sketch: Sketch | None = None
    _judge: Judge | None = field(default=None, repr=False)
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        own = ("_judge", "_lock")  # built by each process
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._judge, self._lock = None, threading.Lock()

    @property
    def nbytes(self) -> int:
        """Size of the large arrays in bytes."""
        return sum(array.nbytes for array in [*self.features.values(), self.coefficients])

    def __sizeof__(self) -> int:  # used by Dask to estimate the cost of transfers
        return self.nbytes

    @property
    def judge(self) -> Judge:
        """The object that computes decision values; built once per process."""
        with self._lock:
            if self._judge is None:
                self._judge = Judge(self)
            return self._judge

    def sees_nothing(self) -> bool:
        """Return whether no problem can evaluate rows yet."""
        return not np.isfinite(self.margin).any()


def take_snapshot(engine: Engine, sketch: Sketch | None) -> Snapshot:
    """Return a snapshot of the model of an engine."""
    weights = engine.native.weights()
    state = engine.native.state()
    ids = state["ids"]
    used = np.flatnonzero(weights.any(axis=0))
    used = used[np.argsort(ids[used], kind="stable")]
    plan = replace(engine.plan, cache_bytes=LITTLE, record=False, foresees=False)
    return Snapshot(
        plan=plan,
        features=_some(plan, state, used),
        ids=np.ascontiguousarray(ids[used]),
        coefficients=np.ascontiguousarray(weights[:, used], dtype=np.float32),
        bias=engine.bias,
        margin=1.0 + widths(engine) / 2,
        sketch=sketch,
    )


def _some(plan: Plan, state: dict[str, Any], used: NDArray[np.intp]) -> dict[str, Any]:
    """Return the stored features of the members `used`."""
    if not plan.sparse:
        return {"X": np.ascontiguousarray(state["X"][used])}
    parts = state["data"], state["indices"], state["indptr"]
    lists = sp.csr_array(parts, shape=(len(state["ids"]), plan.features))[used]
    return {
        "data": np.ascontiguousarray(lists.data),
        "indices": np.ascontiguousarray(lists.indices, dtype=np.int32),
        "indptr": lists.indptr.astype(np.int64),
    }


class Judge:
    """Computes decision values of rows with a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
        The support vectors and their coefficients.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.engine = Engine(snapshot.plan, None, 1)
        self.vectors = _caller_rows(snapshot)
        self._coefficients = snapshot.coefficients
        self._bias = np.ascontiguousarray(snapshot.bias, dtype=np.float64)
        self._weights = snapshot.coefficients.astype(np.float64)
        self._all = self.pack(self.vectors)
        self._own: dict[int, tuple[Any, Float]] = {}
        self._sketch = snapshot.sketch
        self._centres: Any = None if self._sketch is None else self.pack(self._sketch.centres)

    def pack(self, rows: Any) -> Any:
        """Return rows in the packed format that the core uses for many kernel evaluations."""
        return self.engine.native.pack_rows(self.engine.batch(rows))

    def values(self, batch: Batch, rows: Ints) -> Single:
        """Return f(x) of rows, with one column per problem."""
        return self.engine.native.rough_expansion(self._all, self._weights, self._bias, batch, rows)

    def rough_values(self, batch: Batch, rows: Ints) -> Single:
        """Return approximate values of f(x), computed with the sketch."""
        sketch = self._sketch
        assert sketch is not None
        return self.engine.native.rough_expansion(
            self._centres, sketch.coefficients, sketch.bias, batch, rows
        )

    def values_where(self, batch: Batch, asked: NDArray[np.bool_]) -> Single:
        """Return f(x) for the requested pairs of rows and problems, and inf elsewhere.

        Each problem evaluates only its own support vectors.
        """
        f = np.full(asked.shape, np.inf, dtype=np.float32)
        for c in range(asked.shape[1]):
            rows = np.flatnonzero(asked[:, c]).astype(np.int64)
            if len(rows):
                vectors, weights = self._own_vectors(c)
                bias = self._bias[c : c + 1]
                values = self.engine.native.rough_expansion(vectors, weights, bias, batch, rows)
                f[rows, c] = values[:, 0]
        return f

    def _own_vectors(self, c: int) -> tuple[Any, Float]:
        """Return the support vectors of a problem, packed, and their coefficients."""
        found = self._own.get(c)
        if found is None:
            own = np.flatnonzero(self._coefficients[c])
            weights = np.ascontiguousarray(self._weights[c : c + 1, own])
            found = self._own[c] = self.pack(self.vectors[own]), weights
        return found


def _caller_rows(snapshot: Snapshot) -> Any:
    """Return the support vectors in the caller's units, like the rows to evaluate."""
    plan = snapshot.plan
    if plan.sparse or plan.center or plan.double:
        return caller_features(plan, {**snapshot.features, "ids": snapshot.ids})
    return snapshot.features["X"] * np.float32(1.0 / plan.scale)
