"""The native model, together with its plan and its state, from which it can be rebuilt."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, Self, TypeVar

import joblib
import numpy as np
import scipy.sparse as sp

from marginwise._algorithm import ALGORITHMS
from marginwise._arrays import Float, Ints, Labels
from marginwise._core import FEW_ROWS, MOST_THREADS, Batch, Learner32, Learner64, cpu
from marginwise._engine import memory
from marginwise._engine.foresight import FORM, Foresight, LeftOut
from marginwise._engine.given import GivenBias
from marginwise._engine.growth import grown, sources
from marginwise._engine.memory import AUTO, auto_bytes
from marginwise._engine.plan import (
    SINGLE_LIMIT,
    BlockFunction,
    Plan,
    check_range,
    precomputed,
    signs,
    upgraded,
)

HARD_COST = 1e100  # a C that no coefficient reaches, regardless of the size of kernel values
MOST_COST = 1e120  # ... times weights
HARD = 1e20  # a cost that no coefficient reaches if kernel values are about 1
VERIFY_WORK = 2_000_000  # multiplications to verify a restored gradient
VERIFY_LEAST = 8  # members to verify, even if that takes more multiplications
VERIFY_TOLERANCE = 1e-3  # relative: another instruction set may have computed the gradient
TRIES = 3  # attempts to read several parts of a model without a change in between
_FIRST = np.zeros(1, dtype=np.int64)
_Read = TypeVar("_Read")
COUNTERS = (
    "kernel_evaluations",
    "process",
    "reprocess",
    "inserted",
    "removed",
    "cache_hits",
    "cache_misses",
    "sampled",
    "chosen",
    "projections",
    "projected",
)
# What `record=True` stores for every example.
HISTORY = ("gap", "members", "kernel_evaluations")
EARLY_COUNTERS = (7, 9)  # numbers of counters in states of earlier versions
# These counters include work that is repeated after a time limit, so they may differ between two
# otherwise equal fits. Like the times, they refer to this process and are not stored.
UNSTORED = tuple(COUNTERS.index(name) for name in ("cache_hits", "cache_misses"))
EVALUATIONS = COUNTERS.index("kernel_evaluations")  # likewise, unless it continues a record
PHASES = ("product_seconds", "learn_seconds", "finish_seconds")


class Engine:
    """Wrapper of a native model that converts to and from the units of the caller.

    Parameters
    ----------
    plan : Plan
        Fixed properties of the model.
    function : callable or None
        Kernel function of two blocks of rows if ``plan.kernel`` is "callable".
    jobs : int or None
        `n_jobs` of the estimator; not part of the state.

    Attributes
    ----------
    native : Learner32 or Learner64
        The native model. Methods that do not involve units may be called directly.
    """

    most_steps = 0  # limit of ExactRampSVC per example, which tests lower; 0: the usual limit

    def __init__(self, plan: Plan, function: BlockFunction | None, jobs: int | None) -> None:
        self.plan = plan
        self.algorithm = ALGORITHMS[plan.algorithm]
        self.function = function
        self.threads = thread_count(jobs)
        self.native = self._build()
        self.given_bias: GivenBias | None = None
        self._class_costs: tuple[Float, Float] | None = None
        self._watched: float = memory.WATCHED
        self._calibrator: tuple[Any, Any] = None, None
        self.early_curves = False  # whether probabilities are those of an earlier version
        self.left_out: LeftOut | None = None  # rows of a fit whose foresight is not computed yet
        self._without: tuple[int, Foresight] | None = None  # that foresight, and `changes`

    def _build(self) -> Learner32 | Learner64:
        kind = Learner64 if self.plan.double else Learner32
        return kind(self._spec(), self.plan.settings)

    def _spec(self) -> dict[str, Any]:
        """Return the arguments that the native models of all algorithms have in common."""
        plan = self.plan
        single_rbf = plan.kernel == "rbf" and not plan.double
        auto = plan.cache_bytes == AUTO
        cache_bytes = auto_bytes(os.getpid()) if auto else plan.cache_bytes
        return {
            "algorithm": plan.algorithm,
            "kernel": plan.kernel,
            "coef0": plan.coef0 / plan.root,
            "degree": plan.degree,
            "callable": self._scaled_function(),
            "problems": plan.problems,
            "pairs": plan.pairs,
            "features": plan.features,
            "sparse": plan.sparse,
            "biased": self.algorithm.biased,
            "cache_bytes": cache_bytes,
            "center": plan.center,
            "scale": plan.scale,
            "norm_limit": SINGLE_LIMIT if single_rbf else 1e300,
            "threads": self.threads,
            "record": plan.record,
            "budget": plan.budget,
            "foresees": plan.foresees,
            "most_steps": self.most_steps,
        }

    def _scaled_function(self) -> BlockFunction | None:
        function, unit = self.function, self.plan.unit
        if function is None or unit == 1:
            return function
        return lambda A, B: function(A, B) / unit

    def clone(self) -> Self:
        """Return a copy that continues to learn exactly as this engine would.

        A clone costs little more memory than the coefficients: it shares the features until one of
        the two engines changes them, and cached kernel rows are not copied.
        """
        twin = type(self).__new__(type(self))
        twin.__dict__ = {**self.__dict__, "native": self.native.clone()}
        twin._calibrator, twin._without = (None, None), None  # a clone counts its changes from 0
        return twin

    def blank(self) -> Self:
        """Return an untrained engine with the same plan, which does not reuse ids of this one."""
        twin = type(self).__new__(type(self))
        twin.__dict__ = dict(self.__dict__)
        twin.native = twin._build()
        twin.given_bias = twin.left_out = None
        twin.native.reserve_ids(self.native.next_id)
        return twin

    def at_once(self, read: Callable[[Self], _Read]) -> _Read:
        """Return the result of `read` on a consistent state, even if other threads train it."""
        for _ in range(TRIES):
            changes = self.native.changes
            try:
                result = read(self)
            except (ValueError, IndexError, KeyError):  # `read` mixed parts of two states
                if self.native.changes == changes:
                    raise
                continue
            if self.native.changes == changes:
                return result
        return read(self.clone())

    # -- rows ----------------------------------------------------------------------------------

    def labelled(self, X: Any, labels: Labels, costs: Float, ids: Ints) -> Batch:
        """Return rows with labels, penalties and ids, ready to be learned."""
        check_range(self.plan, X)
        batch = self.batch(X)
        batch.label(labels, self.costs(costs), ids)
        return batch

    def batch(self, X: Any) -> Batch:
        """Convert features to the form in which this engine stores its members."""
        if isinstance(X, np.ndarray):
            return _lists(sp.csr_array(X)) if self.plan.sparse else Batch(X)
        if self.plan.center or self.plan.kernel == "callable":
            return Batch(X.toarray())
        return _lists(X)

    def class_costs(self, key: Float, penalties: Callable[[], Float]) -> Float:
        """Return `costs` of the penalties of the classes, cached until `key` is another object."""
        if self._class_costs is None or self._class_costs[0] is not key:
            self._class_costs = key, self.costs(penalties())
        return self._class_costs[1]

    def costs(self, costs: Float) -> Float:
        """Return costs in the unit of the kernel; infinite ones become very large."""
        with np.errstate(over="ignore", under="ignore"):
            hard = MOST_COST if self.algorithm.exact else HARD
            scaled: Float = np.minimum(np.ascontiguousarray(costs) * self.plan.unit, hard)
            # A hard margin remains hard, however small the unit is.
            scaled = np.where(costs >= HARD_COST / 1e20, np.maximum(scaled, HARD), scaled)
        if not (scaled > 0).all():
            raise ValueError(
                f"C times weight is as small as {np.min(costs):.3g}, and the kernel about "
                f"{self.plan.unit:.3g}: their product is beyond double precision; scale the "
                "features, or raise C."
            )
        return scaled

    # -- learning ------------------------------------------------------------------------------

    def learns_at_once(self, batch: Batch, rows: int) -> bool:
        """Return whether `learn_now` can learn all of these rows in one call."""
        return rows <= FEW_ROWS and self.function is None and self.native.within_limit(batch)

    def learn_now(self, batch: Batch, rows: int) -> None:
        """Learn a few rows of a labelled batch in order, with one native call."""
        self.native.learn(batch, _FIRST if rows == 1 else np.arange(rows, dtype=np.int64), 1e9)

    def to_double(self) -> None:
        """Switch to double precision, because single precision cannot represent a new example."""
        if self.plan.double:
            raise ValueError("features are too large: |x|^2 overflows; scale them down.")
        self.keep_foresight()
        before, state = self.native, self._whole_state()
        self.plan = replace(self.plan, double=True)
        self._restore(state)
        self.native.regrade()
        self.native.set_records(*before.records())
        Foresight.of(before).give(self.native)
        self.native.reserve_ids(before.next_id)
        self.native.count_since_finish(before.since_finish)

    def grow(self, numbers: Ints, classes: int, pairs: bool) -> None:
        """Add classes; `numbers` are the new numbers of the existing classes."""
        self.keep_foresight()
        before = self.native
        self.plan, state = grown(self._whole_state(), self.plan, numbers, classes, pairs)
        self._restore(state)
        self.given_bias = None
        self._class_costs = None
        Foresight.of(before).grown(sources(numbers, self.plan)).give(self.native)
        self.native.reserve_ids(before.next_id)
        self.native.count_since_finish(before.since_finish)

    # -- what the model says -------------------------------------------------------------------

    def decision(self, X: Any) -> Float:
        """Return f(x) of rows, one column per problem."""
        if self.given_bias is None:
            return self.native.decision(self.batch(X))
        batch = self.batch(X)
        return self.at_once(lambda one: one.native.decision(batch) + (one.bias - one.native.bias()))

    @property
    def bias(self) -> Float:
        """Constant term of each decision function, for centred features."""
        own = self.native.bias()
        return own if self.given_bias is None else self.given_bias(own)

    def expansion(self, centres: Any, coefficients: Float, rows: Any) -> Float:
        """Return the sums of ``coefficients[c, m] K(centre m, x)``, one column per problem c."""
        scaled = np.ascontiguousarray(coefficients * self.plan.unit)
        return self.native.expansion(self.batch(centres), scaled, rows)

    def diagonal(self, batch: Batch) -> Float:
        """Return K(x, x) of the rows of a batch."""
        return self.native.diagonal(batch) * self.plan.unit

    @property
    def weights(self) -> Float:
        """Coefficients of the decision functions for all members, problem by problem."""
        return self.native.weights() / self.plan.unit

    @property
    def coefficients(self) -> tuple[Ints, Labels, Float]:
        """Ids, classes and coefficients (problem by problem) of the support vectors."""
        ids, labels, alpha = self.native.coefficients()
        return ids, labels, alpha / self.plan.unit

    @property
    def objective(self) -> Float:
        """The dual objective of each problem."""
        return self.native.objective() / self.plan.unit

    @property
    def penalty(self) -> Float:
        """The sum of C over the examples of each problem: its primal objective at w = 0."""
        return self.native.penalty() / self.plan.unit

    @property
    def duality_gap(self) -> Float:
        """Primal minus dual objective of each problem over its examples, without a bias."""
        return self.native.duality_gap() / self.plan.unit

    @property
    def delta(self) -> float:
        """Largest remaining violation over all problems."""
        return float(np.max(self.native.delta()))

    def signs(self, labels: Labels) -> Float:
        """Return labels as +1 and -1, one column per problem; 0 if the problem excludes a row."""
        return signs(labels, self.plan.problems, self.plan.pairs)

    @property
    def records(self) -> tuple[Float, Ints, Ints]:
        """Gap, members and kernel evaluations after each example, if they are recorded."""
        gap, members, evaluations = self.native.records()
        return gap / self.plan.unit, members, evaluations

    def set_records(self, gap: Float, members: Ints, evaluations: Ints) -> None:
        self.native.set_records(gap * self.plan.unit, members, evaluations)

    @property
    def counters(self) -> dict[str, int]:
        """Counts of the work done so far."""
        return dict(zip(COUNTERS, self.native.counters().tolist(), strict=True))

    @property
    def stats(self) -> dict[str, Any]:
        """Counters, seconds per phase, and facts about the computation."""
        return {
            **self.counters,
            **dict(zip(PHASES, self.native.seconds().tolist(), strict=True)),
            "members": self.native.size,
            "member_bytes": self.native.bytes,
            "precision": "double" if self.plan.double else "single",
            "centred": bool(self.plan.center),
            "cpu": cpu(),
        }

    def outgrows_memory(self) -> bool:
        """Return whether members use more memory than remains available; true only once."""
        size = self.native.bytes
        if size < self._watched or self.plan.budget:
            return False
        outgrown = size > memory.available()
        self._watched = math.inf if outgrown else 2 * size
        return outgrown

    @property
    def foresight(self) -> Foresight:
        """Decision values of rows by a model that had not learned them."""
        if self.left_out is None:
            return Foresight.of(self.native)
        changes = self.native.changes
        if self._without is None or self._without[0] != changes:
            self._without = changes, self.left_out.foresight(self.native)
        return self._without[1]

    def keep_foresight(self) -> None:
        """Compute and store the foresight before the model changes."""
        self.early_curves = False
        if self.left_out is not None:
            self.foresight.give(self.native)
            self.left_out = None

    def calibrator(self, kind: str, fit: Callable[[str], _Read]) -> _Read:
        """Return `fit(kind)`, cached until the model changes."""
        key = kind, self.native.changes
        known, calibrator = self._calibrator
        if known != key:
            calibrator = fit(kind)
            self._calibrator = key, calibrator
        return calibrator  # type: ignore[no-any-return]

    # -- state ---------------------------------------------------------------------------------

    def features_of(self, state: dict[str, Any]) -> Any:
        """Return the members' features as the caller passed them, up to rounding."""
        unit = 1.0 / self.plan.scale
        if self.plan.sparse:
            shape = (len(state["ids"]), self.plan.features)
            parts = (state["data"] * unit, state["indices"], state["indptr"])
            return sp.csr_array(parts, shape=shape)
        X = state["X"] * unit
        return X + np.asarray(self.plan.center) if self.plan.center else X

    def state(self) -> dict[str, Any]:
        """Return the plan and all arrays, from which training continues without a difference.

        Equal examples give equal states: whatever depends on time is left out.
        """
        state = self._whole_state()
        del state["seconds"]
        counters = state["counters"].copy()
        counters[[*UNSTORED]] = 0
        if not self.plan.record or self.algorithm.exact:
            counters[EVALUATIONS] = 0
        return {**state, "counters": counters}

    def stored(self) -> dict[str, Any]:
        """Return the engine's part of an estimator's state, consistent at one point in time."""
        return self.at_once(lambda engine: engine._stored())

    def _stored(self) -> dict[str, Any]:
        native = self.native
        stored = {
            "_machine": self.state(),
            "_seen": native.next_id,
            "_since_finish": native.since_finish,
        }
        if self.plan.record:
            stored["_history"] = dict(zip(HISTORY, self.records, strict=True))
        if self.plan.foresees:
            form = {} if self.early_curves else {"form": FORM}
            stored["_foresight"] = {**vars(self.foresight), **form}
        if self.given_bias is not None:
            stored["_given_bias"] = self.given_bias.state()
        return stored

    def _whole_state(self) -> dict[str, Any]:
        """Return the state including the times and counters of this process."""
        return {"plan": asdict(self.plan), **self.native.state()}

    @classmethod
    def from_state(
        cls, state: dict[str, Any], function: BlockFunction | None, jobs: int | None
    ) -> Self:
        """Return the engine that had this state."""
        state = upgraded(state)
        engine = cls(Plan(**state["plan"]), function, jobs)
        engine._restore(state)
        if function is None or function is precomputed:  # a user's function may be slow
            engine.verify()
        return engine

    def _restore(self, state: dict[str, Any]) -> None:
        plan = self.plan
        real = np.float64 if plan.double else np.float32
        values: Any = np.ascontiguousarray(state["data" if plan.sparse else "X"], dtype=real)
        if plan.sparse:
            batch = Batch(values, state["indices"], state["indptr"], plan.features)
        else:
            batch = Batch(values)
        batch.label(state["labels"], state["costs"], state["ids"])
        counters = np.zeros(len(COUNTERS), dtype=np.int64)
        counters[: len(state["counters"])] = state["counters"]
        core = self._build()
        core.restore(batch, {"seconds": np.zeros(len(PHASES)), **state, "counters": counters})
        self.native = core

    def verify(self) -> None:
        """Raise ValueError unless the gradient of a restored state matches its coefficients.

        All members of a small model are checked, and a few evenly spaced ones of a large model.
        """
        core = self.native
        size = core.size
        if size == 0 or self.plan.features > 2**20 + 16 * core.bytes:
            return  # empty, or so wide that reading one row would take more memory
        cost = size * (core.bytes // (4 * size) + self.plan.problems)  # of one member
        most = max(VERIFY_WORK // cost, VERIFY_LEAST)
        core.verify(most, VERIFY_TOLERANCE)


def _lists(X: Any) -> Batch:
    """Wrap a CSR matrix for the core; indices are copied only if their width differs."""
    indices = np.ascontiguousarray(X.indices, dtype=np.int32)
    return Batch(
        np.ascontiguousarray(X.data), indices, X.indptr.astype(np.int64, copy=False), X.shape[1]
    )


def runs_elsewhere() -> bool:
    """Return whether joblib is configured for a cluster, for example with ``backend="dask"``."""
    backend, _ = joblib.parallel.get_active_backend()
    return not type(backend).__module__.startswith("joblib._parallel_backends")


def thread_count(jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` requests, by joblib's rules.

    Negative numbers count down from the processors that this process may use, which its CPU
    affinity and its cgroup limit. None means 1 unless in a ``joblib.parallel_config`` context; the
    number of workers of a cluster backend, such as Dask's, is ignored.
    """
    # In a daemonic process, joblib warns and returns 1, because it cannot start processes; threads
    # are possible. With a cluster backend, joblib counts the processors of all machines.
    if multiprocessing.current_process().daemon or runs_elsewhere():
        wanted = 1 if jobs is None else jobs if jobs > 0 else joblib.cpu_count() + 1 + jobs
    else:
        wanted = joblib.effective_n_jobs(jobs)
    return min(max(1, int(wanted)), MOST_THREADS)
