"""The native model with what is needed to build it again: its plan and its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._algorithm import ALGORITHMS, Algorithm
from marginwise._arrays import Float, Ints, batch_of
from marginwise._core import (
    Batch,
    ExactLearner,
    Kernel,
    Laid32,
    Laid64,
    Learner32,
    Learner64,
    cpu,
)
from marginwise._engine.kernel import BlockFunction, precomputed
from marginwise._engine.plan import SINGLE_LIMIT, Plan, typical, unit_near, upgraded

HARD_COST = 1e100  # a C that no coefficient reaches, whatever the size of kernel values
MOST_COST = 1e120  # ... times weights
HARD = 1e20  # a cost that no coefficient reaches, where kernel values are about 1
VERIFY_WORK = 2_000_000  # multiplications by which a restored gradient is checked,
VERIFY_LEAST = 8  # ... or more for so many members
VERIFY_TOLERANCE = 1e-3  # relative: kernel values may be those of another instruction set
SLICE_SECONDS = 0.25  # between chances to answer Ctrl-C and to move the progress bar
FEW_ROWS = 32  # so few are learned in one native call, for which memory is reserved beforehand
TRIES = 3  # at reading several parts of a model between two changes
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
)
EARLY_COUNTERS = 7  # states of 0.1.0 and before end there
# Counters of work that is repeated where a call was cut by the clock, so that two equal fits may
# differ in them. They count the work of this process, as the seconds do, and are not stored.
UNSTORED = tuple(COUNTERS.index(name) for name in ("cache_hits", "cache_misses"))
EVALUATIONS = COUNTERS.index("kernel_evaluations")  # likewise, unless a record continues it
PHASES = ("product_seconds", "learn_seconds", "finish_seconds")


class Engine:
    """A learner over one stream of examples.

    Parameters
    ----------
    plan
        Its blueprint.
    function
        The kernel as a function of blocks, where ``plan.kernel`` is "callable".
    threads
        Threads to learn and predict with; not part of the state.
    """

    def __init__(self, plan: Plan, function: BlockFunction | None, threads: int) -> None:
        self.plan = plan
        self.function = function
        self.threads = threads
        self._core = self._build()
        self._class_costs: tuple[Float, Float] | None = None
        self._reported = 0  # of the paths that could not be followed
        self._pass: tuple[str, int, NDArray[np.uint8]] | None = None

    @property
    def algorithm(self) -> Algorithm:
        """What is known of the algorithm."""
        return ALGORITHMS[self.plan.algorithm]

    def _build(self) -> Learner32 | Learner64 | ExactLearner:
        plan = self.plan
        common: dict[str, Any] = {
            "settings": plan.settings,
            "kernel": Kernel(plan.kernel, 1.0, plan.coef0 / plan.root, plan.degree),
            "callable": self._scaled_function(),
            "problems": plan.problems,
            "features": plan.features,
            "sparse": plan.sparse,
            "cache_bytes": plan.cache_bytes,
            "center": plan.center,
            "scale": plan.scale,
            "threads": self.threads,
            "record": plan.record,
        }
        if self.algorithm.exact:
            return ExactLearner(**common)
        kind = Learner64 if plan.double else Learner32
        single_rbf = plan.kernel == "rbf" and not plan.double
        return kind(
            algorithm=plan.algorithm,
            biased=self.algorithm.biased,
            norm_limit=SINGLE_LIMIT if single_rbf else 1e300,
            **common,
        )

    def _scaled_function(self) -> BlockFunction | None:
        function, unit = self.function, self.plan.unit
        if function is None or unit == 1:
            return function
        return lambda A, B: function(A, B) / unit

    def measure(self, X: Any) -> None:
        """Choose the unit of a kernel that is a function by its values for a few rows.

        Call before anything is learned. A kernel matrix has its largest values in its diagonal.
        """
        plan = self.plan
        if plan.kernel != "callable" or self.algorithm.exact or X.shape[0] == 0:
            return
        if X.shape[1] < plan.features:  # precomputed
            sizes = np.abs(X[:1000]).max(axis=1)
            sizes = np.asarray(sizes.todense() if sp.issparse(sizes) else sizes).ravel()
        else:
            sizes = np.abs(self.diagonal(self.batch(X[:8])))
        plan.unit = unit_near(typical(sizes))
        if plan.unit != 1:
            self._core = self._build()

    def class_costs(self, key: Float, penalties: Callable[[], Float]) -> Float:
        """Return what `costs` makes of the penalties of the classes, again if `key` is another."""
        if self._class_costs is None or self._class_costs[0] is not key:
            self._class_costs = key, self.costs(penalties())
        return self._class_costs[1]

    def costs(self, costs: Float) -> Float:
        """Return costs in the unit of the kernel; infinite ones become very large."""
        with np.errstate(over="ignore", under="ignore"):
            hard = MOST_COST if self.algorithm.exact else HARD
            scaled: Float = np.minimum(np.ascontiguousarray(costs) * self.plan.unit, hard)
            # A hard margin stays one, however small the unit is.
            scaled = np.where(costs >= HARD_COST / 1e20, np.maximum(scaled, HARD), scaled)
        if not (scaled > 0).all():
            raise ValueError(
                f"C times weight is as small as {np.min(costs):.3g}, and the kernel about "
                f"{self.plan.unit:.3g}: their product is beyond double precision; scale the "
                "features, or raise C."
            )
        return scaled

    def take_unsolved(self) -> tuple[float, float]:
        """Return the violation at which learning gave up since the last call, 0 if it did not.

        With it comes what double precision can tell from rounding there.
        """
        if not self._core.unsolved:
            return 0.0, 0.0
        violations, resolutions = self._core.take_unsolved()
        worst = int(np.argmax(violations))
        return float(violations[worst]), float(resolutions[worst])

    def batch(self, X: Any) -> Batch:
        """Bring features to the form in which this engine keeps its members."""
        if isinstance(X, np.ndarray):
            return batch_of(sp.csr_array(X)) if self.plan.sparse else Batch(X)
        if self.plan.center or self.plan.kernel == "callable":
            return Batch(X.toarray())
        return batch_of(X)

    def learn(self, batch: Batch, order: Ints) -> Iterator[int]:
        """Learn rows of a labelled batch in order; yield, a few times a second, how many more."""
        return self._in_slices(lambda rows: self._core.learn(batch, rows, SLICE_SECONDS), order)

    def begin_pass(self, rule: str, pool_size: int, seen: NDArray[np.uint8]) -> None:
        """Start a pass of `select`; ``seen[c, id]`` tells what problem c has learned."""
        self._pass = rule, pool_size, seen
        self._core.begin_pass(*self._pass)

    def end_pass(self) -> None:
        """Learn the best of pools that the pass left incomplete."""
        self._core.end_pass()
        self._pass = None

    def select(self, batch: Batch, order: Ints) -> Iterator[int]:
        """Look at rows of a labelled batch in order, learning those chosen; yield as `learn`."""
        return self._in_slices(lambda rows: self._core.select(batch, rows, SLICE_SECONDS), order)

    def _in_slices(self, go_on: Callable[[Ints], int], order: Ints) -> Iterator[int]:
        done = 0
        while done < len(order):
            step = go_on(order[done:])
            if self._core.beyond:
                self._to_double()
            done += step
            yield step

    def learn_wanted(self, batch: Batch, order: Ints, wanted: NDArray[np.uint8]) -> Iterator[int]:
        """Learn rows in order, each in the problems that want it; yield as `learn`."""

        def go_on(rows: Ints) -> int:
            left = wanted[len(order) - len(rows) :]
            return self._core.learn_wanted(batch, rows, left, SLICE_SECONDS)

        return self._in_slices(go_on, order)

    def learns_at_once(self, batch: Batch, rows: int) -> bool:
        """Return whether `learn_now` can learn these rows: all of them, or none."""
        return rows <= FEW_ROWS and self.function is None and self._core.within_limit(batch)

    def learn_now(self, batch: Batch, rows: int) -> None:
        """Learn a few rows of a labelled batch in their order, in one native call."""
        self._core.learn(batch, _FIRST if rows == 1 else np.arange(rows, dtype=np.int64), 1e9)

    def finish(self, tol: float) -> Iterator[float]:
        """Remove all violating pairs; yield δ, as it was before, a few times a second."""
        delta = self.delta
        try:
            while not self._core.finish(tol, SLICE_SECONDS):
                yield delta
        finally:
            self._core.settle()

    def _to_double(self) -> None:
        """Continue in double precision: an example came that single precision cannot place."""
        if self.plan.double:
            raise ValueError("features are too large: |x|^2 overflows; scale them down.")
        if self._pass is not None:
            self._core.end_pass()  # pools do not outlive the core they are in
        before, state = self._core, self._whole_state()
        self.plan = replace(self.plan, double=True)
        self._restore(state)
        self._core.regrade()
        self._core.set_records(*before.records())
        self._core.reserve_ids(before.next_id)
        self._core.count_since_finish(before.since_finish)
        if self._pass is not None:
            self._core.begin_pass(*self._pass)

    def decision(self, X: Any) -> Float:
        return self.decide(self.batch(X))

    def decide(self, batch: Batch, rows: Ints | None = None) -> Float:
        """Return f(x) of some rows of a batch, of all by default, a column for each problem."""
        return self._core.decision(batch) if rows is None else self._core.decision_of(batch, rows)

    def lay_out(self, batch: Batch) -> Laid32 | Laid64:
        """Return rows in the form that `expansion` reads."""
        return self._core.lay_out(batch)

    def rough_decision(self, batch: Batch, rows: Ints) -> NDArray[np.float32]:
        """Return f(x) of some rows, a column for each problem, in single precision."""
        return self._core.rough_decision(batch, rows)

    def rough_decision_where(
        self, batch: Batch, asked: NDArray[np.uint8], out: NDArray[np.float32]
    ) -> None:
        """Write f(x) of the pairs of a row and a problem that are asked for."""
        self._core.rough_decision_where(batch, asked, out)

    def rough_expansion(
        self, laid: Any, coefficients: Float, bias: Float, batch: Batch, rows: Ints
    ) -> NDArray[np.float32]:
        """Return what `rough_decision` would with other members, which were laid out."""
        return self._core.rough_expansion(laid, coefficients, bias, batch, rows)

    def cross_values(self, laid: Any, batch: Batch, rows: Ints) -> NDArray[np.float32]:
        """Return kernel values of some rows with those that were laid out."""
        return self._core.cross_values(laid, batch, rows)

    def some_members(self, places: Ints) -> Any:
        """Return the features of some members, as the caller gave them, up to rounding."""
        return self.features_of(self.state())[places]

    def expansion(self, centres: Any, coefficients: Float, laid: Any) -> Float:
        """Return the sums of ``coefficients[c, m] K(centre m, x)``, a column for each problem c."""
        scaled = np.ascontiguousarray(coefficients * self.plan.unit)
        return self._core.expansion(self.batch(centres), scaled, laid)

    def diagonal(self, batch: Batch) -> Float:
        """Return K(x, x) of the rows of a batch."""
        return self._core.diagonal(batch) * self.plan.unit

    @property
    def records(self) -> tuple[Float, Ints, Ints]:
        """Gap, members and kernel evaluations after each example, where they are recorded."""
        gap, members, evaluations = self._core.records()
        return gap / self.plan.unit, members, evaluations

    def set_records(self, gap: Float, members: Ints, evaluations: Ints) -> None:
        self._core.set_records(gap * self.plan.unit, members, evaluations)

    @property
    def next_id(self) -> int:
        """The least id that is larger than those of all examples seen."""
        return self._core.next_id

    def reserve_ids(self, following: int) -> None:
        """Let `next_id` be at least `following`."""
        self._core.reserve_ids(following)

    @property
    def since_finish(self) -> int:
        """Examples seen since the model was last finished."""
        return self._core.since_finish

    def count_since_finish(self, count: int) -> None:
        self._core.count_since_finish(count)

    def clone(self) -> Engine:
        """Return a engine that continues as this one would.

        It costs little more than the coefficients: features are shared until one of the two
        machines changes them, and cached kernel rows are left behind.
        """
        twin = Engine.__new__(Engine)
        twin.__dict__ = {**self.__dict__, "_core": self._core.clone(), "_pass": None}
        return twin

    def at_once(self, read: Callable[[Engine], _Read]) -> _Read:
        """Return what `read` makes of several parts of one state, whatever other threads learn."""
        for _ in range(TRIES):
            changes = self._core.changes
            try:
                result = read(self)
            except (ValueError, IndexError, KeyError):  # parts of two states do not fit together
                if self._core.changes == changes:
                    raise
                continue
            if self._core.changes == changes:
                return result
        return read(self.clone())

    # -- of exact models only ------------------------------------------------------------------

    @property
    def _exact(self) -> ExactLearner:
        if not isinstance(self._core, ExactLearner):
            raise TypeError(f"a {self.plan.algorithm} model is not exact")
        return self._core

    def holds(self, ids: Ints) -> NDArray[np.bool_]:
        """Tell of which ids there are examples."""
        held: NDArray[np.bool_] = self._exact.holds(ids).astype(bool)
        return held

    def forget(self, ids: Ints) -> None:
        """Forget examples that are held."""
        self._exact.forget(ids)

    def rebuilt(self, plan: Plan, costs: Float) -> Engine:
        """Return the solution for the same examples with another scale, centre or other costs.

        Parameters
        ----------
        plan
            The blueprint of the new engine.
        costs
            The new costs of the members.
        """
        state = self.state()
        held = (state["rank"] >= 0).any(axis=0)
        if plan.sparse:
            features = {"data": state["data"] * (plan.scale / self.plan.scale)}
        else:
            centre = np.asarray(plan.center) if plan.center else 0.0
            X = (self.features_of(state) - centre) * plan.scale
            features = {"X": np.where(held[:, None], X, 0.0)}
        alpha = state["alpha"] * (costs / state["costs"])  # what is at a bound stays there
        bounds = np.abs(costs)
        known = {
            **state,
            **features,
            "costs": costs,
            "alpha": np.clip(alpha, -bounds, bounds),
        }
        engine = Engine(plan, self.function, self.threads)
        engine._restore(known)  # with a gradient of the old kernel, which solve() replaces
        engine.take_resolved()
        engine.reserve_ids(self.next_id)
        engine.count_since_finish(self.since_finish)
        if plan.record:
            engine.set_path(self.path)
        engine._exact.solve()
        return engine

    def leave_one_out(self) -> Float:
        """Return what the model would say of each member without it, a column a problem."""
        decision: Float = self._exact.leave_one_out()
        return decision

    def scale_costs(self, factor: float) -> None:
        """Multiply all costs, and move the solution."""
        while factor != 1.0:  # by so much at a time that the events along a line can be told apart
            step = min(max(factor, 1e-6), 1e6)
            self._exact.scale_costs(step)
            factor /= step

    @property
    def path(self) -> Ints:
        """The migrations so far, where they are recorded: cause, id, problem, from and to."""
        path: Ints = self._exact.path()
        return path

    def set_path(self, path: Ints) -> None:
        self._exact.set_path(path)

    @property
    def violation(self) -> float:
        """How far the conditions of the solution are violated, at most."""
        return float(np.max(self._exact.violation()))

    @property
    def shortfall(self) -> float:
        """The largest violation, relative to the targets, of problems that are not solved; or 0."""
        return float(np.max(self._exact.shortfall()))

    @property
    def resolved(self) -> int:
        """How often a path could not be followed."""
        return int(np.sum(self._exact.resolved()))

    def take_resolved(self) -> int:
        """Return how often a path could not be followed since the last call."""
        before, self._reported = self._reported, self.resolved
        return self._reported - before

    @property
    def indefinite(self) -> bool:
        """Whether the kernel was found not to be positive semi-definite."""
        return bool(np.any(self._exact.indefinite()))

    @property
    def total(self) -> float:
        """What the coefficients add up to."""
        return float(self._exact.total()[0])

    # -- of all models -------------------------------------------------------------------------

    @property
    def weights(self) -> Float:
        """The coefficients that decide, of all members, problem by problem."""
        return self._core.weights() / self.plan.unit

    @property
    def coefficients(self) -> tuple[Ints, NDArray[np.int32], Float]:
        """Ids, classes and coefficients (problem by problem) of the support vectors."""
        ids, labels, alpha = self._core.coefficients()
        return ids, labels, alpha / self.plan.unit

    def state(self) -> dict[str, Any]:
        """Return the blueprint and all arrays: enough to continue as if never stopped.

        Equal examples give equal states: what depends on the clock is left out.
        """
        state = self._whole_state()
        del state["seconds"]
        counters = state["counters"].copy()
        counters[[*UNSTORED]] = 0
        if not self.plan.record or self.algorithm.exact:
            counters[EVALUATIONS] = 0
        return {**state, "counters": counters}

    def _whole_state(self) -> dict[str, Any]:
        """Return the state with the clocks and counters of this process."""
        return {"plan": asdict(self.plan), **self._core.state()}

    @classmethod
    def from_state(
        cls, state: dict[str, Any], function: BlockFunction | None, threads: int
    ) -> Engine:
        state = upgraded(state)
        engine = cls(Plan(**state["plan"]), function, threads)
        engine._restore(state)
        if function is None or function is precomputed:  # a user's function may be slow
            engine.verify()
        if engine.algorithm.exact:
            engine.take_resolved()
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
        self._core = core

    def verify(self) -> None:
        """Raise ValueError unless the gradient of a restored state is that of its coefficients.

        Looks at all members of a small model, and at a few, spread evenly, of a large one.
        """
        size, core = self.size, self._core
        if size == 0 or self.plan.features > 2**20 + 16 * core.bytes:
            return  # nothing to look at, or so wide that reading one row would take more memory
        cost = size * (core.bytes // (4 * size) + self.plan.problems)  # of one member
        most = max(VERIFY_WORK // cost, VERIFY_LEAST)
        if isinstance(core, ExactLearner):
            core.verify_exact(most, VERIFY_TOLERANCE, self.plan.settings["sphere"])
        else:
            core.verify(most, VERIFY_TOLERANCE)

    def check(self, tolerance: float) -> None:
        """Raise if an invariant of the state does not hold (for tests)."""
        self._core.check(tolerance)

    @property
    def size(self) -> int:
        return self._core.size

    @property
    def delta(self) -> float:
        return float(np.max(self._core.delta()))

    @property
    def deltas(self) -> Float:
        """By how much each margin is wider; minus infinity where none can be told yet.

        It is δ, or the width of the interval that the bias lies in while no member is free.
        """
        return np.where(self._core.judges(), np.abs(self._core.delta()), -np.inf)

    def signs(self, labels: NDArray[np.int32]) -> Float:
        """Return labels as +1 and -1, a column for each problem."""
        problems = self.plan.problems
        positive = np.ones(1) if problems == 1 else np.arange(problems)
        return np.where(labels[:, None] == positive, 1.0, -1.0)

    @property
    def bias(self) -> Float:
        return self._core.bias()

    @property
    def objective(self) -> Float:
        return self._core.objective() / self.plan.unit

    @property
    def penalty(self) -> Float:
        """The sum of C over the examples of each problem: its primal objective at w = 0."""
        return self._core.penalty() / self.plan.unit

    @property
    def duality_gap(self) -> Float:
        """Primal minus dual objective of each problem over its examples, without a bias."""
        return self._core.duality_gap() / self.plan.unit

    @property
    def counters(self) -> dict[str, int]:
        """What has been done so far."""
        return dict(zip(COUNTERS, self._core.counters().tolist(), strict=True))

    @property
    def stats(self) -> dict[str, Any]:
        return {
            **self.counters,
            **dict(zip(PHASES, self._core.seconds().tolist(), strict=True)),
            "members": self.size,
            "member_bytes": self._core.bytes,
            "precision": "double" if self.plan.double else "single",
            "centred": bool(self.plan.center),
            "cpu": cpu(),
        }

    def features_of(self, state: dict[str, Any]) -> Any:
        """Return the members' features as the caller gave them, up to rounding."""
        unit = 1.0 / self.plan.scale
        if self.plan.sparse:
            shape = (len(state["ids"]), self.plan.features)
            parts = (state["data"] * unit, state["indices"], state["indptr"])
            return sp.csr_array(parts, shape=shape)
        X = state["X"] * unit
        return X + np.asarray(self.plan.center) if self.plan.center else X
