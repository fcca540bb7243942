"""What all estimators share: parameters, the engine, the stream, fitted attributes, state.

Every call that changes an estimator works on a draft, and ends with the one assignment that makes
the state of the draft that of the estimator. Whatever stops the call before, an error, Ctrl-C or a
lack of memory, leaves the estimator as it was. What is learned on top of an existing model changes
that model; other threads, and the estimator if the call fails, then have a clone of it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from marginwise._algorithm import Algorithm
from marginwise._arrays import Float, Ints
from marginwise._engine.engine import Engine
from marginwise._engine.kernel import (
    KERNELS,
    BlockFunction,
    checked,
    precomputed,
    resolve_gamma,
    warn_if_few,
)
from marginwise._engine.plan import (
    Plan,
    centre_for,
    check_range,
    keeps_lists,
    needs_double,
    unit_for,
    upgraded,
)
from marginwise._estimator.attributes import SolverAttributes
from marginwise._estimator.callbacks import NOTES
from marginwise._estimator.exclusive import Exclusive, alone_once, refuse_reentry
from marginwise._files.state import check_machine
from marginwise._params import (
    MOST_DEGREE,
    MOST_MEGABYTES,
    Rule,
    boolean,
    check_params,
    current,
    either,
    integer,
    none,
    one_of,
    positive,
    real,
    thread_count,
    threads,
)
from marginwise._training.feeds import ArrayFeed
from marginwise._training.loop import EveryRow, Step, Trainer
from marginwise._warn import warn_unconverged

Labels = NDArray[np.int32]


def scalar_or_array(values: Float) -> float | Float:
    return float(values[0]) if len(values) == 1 else values


class KernelModel(SolverAttributes, Exclusive, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that learn a stream of examples one at a time.

    A subclass stores its parameters, extends `_rules`, names its `_algorithm` and writes
    `_settings`.

    Any number of threads may read an estimator at the same time, also while another one trains it;
    calls that train it wait for each other.
    """

    _algorithm: ClassVar[Algorithm]
    _trusting = True  # learn_many checks shape and type only
    _engine: Engine
    tol: float  # of those that finish

    _rules: ClassVar[dict[str, Rule]] = {
        "kernel": either(one_of(*KERNELS), (callable, "a function of two blocks")),
        "gamma": either(one_of("scale", "auto"), positive()),
        "degree": integer(1, MOST_DEGREE),
        "coef0": real(),
        "cache_size": positive(MOST_MEGABYTES),
        "n_jobs": either(none(), threads()),
        "verbose": either(boolean(), integer(0)),
    }

    @alone_once
    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; they apply from the next call on.

        Parameters
        ----------
        **params
            The new values.
        """
        draft = self._draft()
        super(KernelModel, draft).set_params(**params)
        self._take(draft)
        return self

    # -- threads, and all or nothing -----------------------------------------------------------

    def _fitted(self) -> Engine:
        """Return the engine, to be read."""
        refuse_reentry(self)
        check_is_fitted(self)
        return self._engine

    def _now(self) -> Self:
        """Return a view of the estimator as it is, whatever other threads commit meanwhile."""
        view = type(self).__new__(type(self))
        view.__dict__ = self.__dict__
        refuse_reentry(self)
        return view

    def _draft(self) -> Self:
        """Return a copy to work on; `_take` makes its state that of this estimator."""
        draft = type(self).__new__(type(self))
        draft.__dict__ = dict(self.__dict__)
        return draft

    def _take(self, draft: Self) -> None:
        self.__dict__ = draft.__dict__

    def _step_aside(self) -> None:
        """Leave the engine to a draft that is about to change it, and keep a clone."""
        if "_engine" in self.__dict__:
            self._engine = self._engine.clone()

    # -- looking inside ------------------------------------------------------------------------

    @property
    def support_(self) -> Ints:
        """Ids of the support vectors: row numbers after `fit`."""
        return self._fitted().coefficients[0]

    @property
    def ids_(self) -> Ints:
        """Ids of all examples that the model holds, support vectors or not."""
        state = self._fitted().state()
        ids: Ints = state["ids"][(state["rank"] >= 0).any(axis=0)]
        return ids

    @property
    def support_vectors_(self) -> Any:
        """Features of the support vectors (none with ``kernel="precomputed"``).

        If rows are objects, for a kernel that is a function, these are the objects.
        """
        model = self._now()
        if model.kernel == "precomputed":
            model._fitted()
            return np.empty((0, 0))
        vectors = model._fitted().at_once(
            lambda engine: engine.features_of(engine.state())[(engine.weights != 0).any(axis=0)]
        )
        objects = model.__dict__.get("_objects")
        return vectors if objects is None else objects.block(vectors)

    @property
    def dual_coef_(self) -> Float:
        """Signed coefficients of the support vectors, one row per binary problem."""
        return self._fitted().coefficients[2]

    @property
    def intercept_(self) -> Float:
        """The bias of each binary problem; 0 if the algorithm has none."""
        return self._fitted().bias

    @property
    def stats_(self) -> dict[str, Any]:
        """Counters of the work done so far, seconds by phase, and how values are computed."""
        return self._fitted().stats

    def dual_objective(self) -> float | Float:
        """Return W(alpha) over the examples held; one value per class where there are several."""
        return scalar_or_array(self._fitted().objective)

    # -- state ---------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        refuse_reentry(self)
        state: dict[str, Any] = dict(self.__dict__)
        engine = state.pop("_engine", None)
        if engine is not None:
            state.update(engine.at_once(self._engine_state))
            if "_objects" in state:
                state["_objects"] = state["_objects"].only(state["_machine"]["X"])
        return state

    def _stored_state(self) -> dict[str, Any]:
        """Return the state for a file: without scikit-learn's notes for callbacks."""
        return {name: v for name, v in self.__getstate__().items() if name not in NOTES}

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state from outside can be one of this class."""
        raise NotImplementedError

    @staticmethod
    def _engine_state(engine: Engine) -> dict[str, Any]:
        """Return what an estimator's state has of its engine."""
        return {
            "_machine": engine.state(),
            "_seen": engine.next_id,
            "_since_finish": engine.since_finish,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = current(state)
        stored = state.pop("_machine", None)
        seen, since_finish = state.pop("_seen", 0), state.pop("_since_finish", 0)
        super().__setstate__(state)
        if stored is not None:
            # joblib may give memory maps.
            stored = {
                k: np.asarray(v) if isinstance(v, np.ndarray) else v for k, v in stored.items()
            }
            check_machine(upgraded(stored), 2 if self._problems == 1 else self._problems)
            self._engine = Engine.from_state(stored, self._function(), self._threads())
            self._engine.reserve_ids(seen)
            self._engine.count_since_finish(since_finish)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    # -- what a subclass may say otherwise -----------------------------------------------------

    @property
    def _finishes(self) -> bool:
        """Whether `fit` ends with finishing."""
        return False

    @property
    def _finish_every(self) -> int | None:
        """After how many rows to finish, too."""
        return None

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the algorithm."""
        raise NotImplementedError

    def _centre(self, X: Any, kernel: str, *, streaming: bool) -> list[float]:
        """Choose the point that features are measured from."""
        return centre_for(X, kernel, first_row_only=streaming)

    def _check_batch(self, batch: Any) -> None:
        """Raise if the algorithm cannot learn some of the rows."""

    def _check_names(self, names: Ints) -> None:
        """Raise if examples of these ids cannot be learned."""

    def _report(self) -> None:
        """Warn of what happened in a call that is done."""
        engine = self.__dict__.get("_engine")
        violation, resolution = engine.take_unsolved() if engine is not None else (0.0, 0.0)
        if violation == 0:
            return
        why = (
            f"double precision resolves no violation below {resolution:.2g} here"
            if violation <= resolution
            else "the limit of steps was reached"
        )
        warn_unconverged(
            f"{type(self).__name__} stopped at a violation of {violation:.3g}, above "
            f"tol={self.tol:g}: {why}. Scale the features, lower C or raise tol."
        )

    @property
    def _starts_over(self) -> bool:
        """Whether the next rows decide what the first ones did, because all are forgotten."""
        return False

    def _begin_again(self, X: Any, weights: Float, labels: Labels) -> None:
        """Make the engine that the first rows after all others were forgotten ask for."""

    def _check_together(self) -> None:
        """Raise if parameters do not go together."""

    @property
    def _problems(self) -> int:
        """How many binary problems there are."""
        return 1

    # -- parts ---------------------------------------------------------------------------------

    def _check_params(self) -> None:
        check_params(self, self._rules)
        self._check_together()

    def _make_engine(self, X: Any, weights: Float, *, streaming: bool) -> Engine:
        if streaming:
            warn_if_few(self.gamma, self.kernel, X.shape[0])
        gamma = resolve_gamma(self.gamma, X, weights)
        if not gamma > 0:
            raise ValueError(
                f"gamma={self.gamma!r} is 0 for these rows: their variance overflows. Scale the "
                "features down, or give gamma."
            )
        function = self._function()
        name = "callable" if function is not None else str(self.kernel)
        plan = Plan(
            kernel=name,
            gamma=gamma,
            coef0=float(self.coef0),
            degree=int(self.degree),
            problems=self._problems,
            features=int(X.shape[1]) + (self.kernel == "precomputed"),
            sparse=keeps_lists(X) and function is None,
            double=self._algorithm.exact or needs_double(X, name),
            cache_bytes=int(self.cache_size * 2**20),
            algorithm=self._algorithm.name,
            settings=self._settings(),
            center=self._centre(X, name, streaming=streaming),
            record=bool(getattr(self, "record", False)),
        )
        if not self._algorithm.exact:
            plan.unit = unit_for(plan, X)
        engine = Engine(plan, function, self._threads())
        engine.measure(X)
        return engine

    def _function(self) -> BlockFunction | None:
        if self.kernel == "precomputed":
            return precomputed
        if not callable(self.kernel):
            return None
        objects = self.__dict__.get("_objects")
        return checked(self.kernel if objects is None else objects.kernel(self.kernel))

    def _threads(self) -> int:
        return thread_count(self.n_jobs)

    def _augmented(self, X: Any, names: Ints | None) -> Any:
        """Append to a precomputed kernel row the column that is its own."""
        if self.kernel != "precomputed":
            return X
        dense = X.toarray() if hasattr(X, "toarray") else X
        column = np.full(dense.shape[0], -1.0) if names is None else names.astype(np.float64)
        return np.ascontiguousarray(np.column_stack([dense, column]), dtype=np.float64)

    def _check_columns(self, X: Any, names: Ints) -> None:
        if self.kernel != "precomputed":
            return
        inside = (names >= 0) & (names < X.shape[1])
        if not inside.all():
            raise ValueError("with kernel='precomputed', ids must be columns of X.")

    def _labelled(self, X: Any, labels: Labels, costs: Float, names: Ints) -> Any:
        """Return rows as a batch of the core."""
        self._check_names(names)
        if "_objects" in self.__dict__:
            self._objects.keep(X, lambda: self._engine.state()["X"])
        check_range(self._engine.plan, X)
        batch = self._engine.batch(self._augmented(X, names))
        self._check_batch(batch)
        batch.label(labels, self._engine.costs(costs), names)
        return batch

    def _learn_rows(self, draft: Self, batch: Any, names: Ints) -> None:
        """Learn all rows of a batch in the order given, and take over the draft that does it."""
        engine = draft._engine
        if draft._finish_every is None and engine.learns_at_once(batch, len(names)):
            engine.learn_now(batch, len(names))
        else:
            self._step_aside()
            draft._stream(ArrayFeed(batch, names), np.arange(len(names), dtype=np.int64))
        draft._report()
        self._take(draft)

    @property
    def _trainer(self) -> Trainer:
        """The training loop of this model, with its parameters as they are."""
        return Trainer(
            self._engine, getattr(self, "tol", 0.0), self._finish_every, int(self.verbose)
        )

    def _stream(self, feed: ArrayFeed, rows: Ints) -> None:
        """Learn rows in their order."""
        self._trainer.train(feed, [Step(rows)], EveryRow(), total=len(rows))
