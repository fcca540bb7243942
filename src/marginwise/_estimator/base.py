"""Base class of the estimators: parameters, atomic updates, engine and state.

Every call that changes an estimator works on a draft and ends with a single assignment that commits
the state of the draft. If the call is interrupted earlier by an error, Ctrl-C or a lack of memory,
the estimator does not change. A call that continues to train an existing model changes that model
in place; other threads, and the estimator if the call fails, then use a clone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from marginwise._algorithm import Algorithm
from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import (
    MOST_DEGREE,
    MOST_MEGABYTES,
    Rule,
    boolean,
    current,
    either,
    integer,
    none,
    one_of,
    positive,
    real,
    threads,
)
from marginwise._core import Batch, Turn
from marginwise._engine.engine import Engine
from marginwise._engine.foresight import TYPES, Foresight
from marginwise._engine.given import GivenBias
from marginwise._engine.plan import (
    KERNELS,
    BlockFunction,
    centre_for,
    checked,
    make_plan,
    precomputed,
    upgraded,
)
from marginwise._estimator.attributes import SolverAttributes
from marginwise._estimator.callbacks import NOTES
from marginwise._files.engine_state import check_machine
from marginwise._training.loop import ArrayFeed, Trainer
from marginwise._warn import warn, warn_unconverged

_Method = TypeVar("_Method", bound=Callable[..., Any])
_Model = TypeVar("_Model", bound="KernelModel")


# -- one thread at a time, and all or nothing --------------------------------------------------


class Exclusive:
    """Base of objects whose `alone` methods exclude each other across threads."""

    __slots__ = ("_turn",)  # not in __dict__: it belongs to the object, not to its state
    _turn: Turn

    def __new__(cls, *_: Any, **__: Any) -> Self:
        self = super().__new__(cls)
        self._turn = Turn()
        return self


def alone(method: _Method) -> _Method:
    """Decorate a method to wait for other `alone` methods of the same object."""

    @functools.wraps(method)
    def wrapper(self: Exclusive, /, *args: Any, **kwargs: Any) -> Any:
        return self._turn.run(method, self, *args, **kwargs)

    return cast(_Method, wrapper)


def on_draft(method: _Method) -> _Method:
    """Decorate a method that returns the estimator to work on a draft of it.

    When the method returns, the estimator takes over the state of the draft. Such a method must not
    call another one of the same estimator.
    """

    @functools.wraps(method)
    def wrapper(self: KernelModel, /, *args: Any, **kwargs: Any) -> Any:
        refuse_reentry(self)
        return self._turn.run(change, self, method, *args, **kwargs)

    return cast(_Method, wrapper)


def change(model: _Model, method: Callable[..., Any], /, *args: Any, **kwargs: Any) -> _Model:
    """Call a method on a draft of a model and commit the state of the draft."""
    draft = model._copy()
    draft._origin = model
    method(draft, *args, **kwargs)
    draft._tidy()
    draft._report()
    model.__dict__ = draft.__dict__
    return model


def refuse_reentry(model: Exclusive) -> None:
    """Raise if this thread is already training the model."""
    if model._turn.mine:
        raise RuntimeError(
            f"this {type(model).__name__} is already being trained by the current thread. A "
            "kernel function must only use its two arguments, and a callback must use the model "
            "that it receives."
        )


# -- the base ----------------------------------------------------------------------------------


class KernelModel(SolverAttributes, Exclusive, BaseEstimator):  # type: ignore[misc]
    """Base class of the estimators.

    A subclass stores its parameters, extends `_rules`, sets `_algorithm` and implements
    `_settings`.

    Any number of threads may read an estimator at the same time, even while another thread trains
    it. Training calls wait for each other.
    """

    __slots__ = ("_origin",)  # the model that a draft belongs to
    _origin: KernelModel

    _algorithm: ClassVar[Algorithm]
    _engine_class: ClassVar[type[Engine]] = Engine
    _engine: Engine

    tol: float  # if the estimator has `finish`

    _rules: ClassVar[dict[str, Rule]] = {
        "kernel": either(one_of(*KERNELS), (callable, "a function of two blocks")),
        "gamma": either(one_of("scale", "auto"), positive()),
        "degree": integer(1, MOST_DEGREE),
        "coef0": real(),
        "cache_size": either(one_of("auto"), positive(MOST_MEGABYTES)),
        "n_jobs": either(none(), threads()),
        "verbose": either(boolean(), integer(0)),
    }

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of the estimator.

        Parameters that determine the structure of a model, such as the kernel, take effect in the
        next `fit`. Others, such as `C` and `n_jobs`, take effect in the next training call.

        Parameters
        ----------
        **params : dict
            Names and values of the parameters.

        Returns
        -------
        self : object
            The estimator.
        """
        refuse_reentry(self)
        self._turn.run(self._set_params, params)
        return self

    def _set_params(self, params: dict[str, Any]) -> None:
        draft = self._copy()
        super(KernelModel, draft).set_params(**params)
        self.__dict__ = draft.__dict__

    # -- copies --------------------------------------------------------------------------------

    def _copy(self) -> Self:
        """Return a copy that shares the engine."""
        copy = type(self).__new__(type(self))
        copy.__dict__ = dict(self.__dict__)
        return copy

    def _now(self) -> Self:
        """Return a view of the current state that other threads do not change."""
        view = type(self).__new__(type(self))
        view.__dict__ = self.__dict__
        refuse_reentry(self)
        return view

    def _fitted(self) -> Engine:
        """Return the engine for reading."""
        refuse_reentry(self)
        check_is_fitted(self)
        return self._engine

    def _step_aside(self) -> None:
        """Replace the engine of the original estimator by a clone before it changes."""
        origin = self._origin
        if origin.__dict__.get("_engine") is self._engine:  # not yet replaced in this call
            origin._engine = origin._engine.clone()
        if self._engine.plan.foresees:
            self._engine.keep_foresight()

    # -- methods that subclasses may override --------------------------------------------------

    def _require_rows(self) -> None:
        """Raise if the model is empty; only exact estimators can be."""

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the algorithm."""
        raise NotImplementedError

    _centre = staticmethod(centre_for)  # returns the point that is subtracted from features

    def _conflict(self) -> str | None:
        """Return a message if parameters that are valid separately conflict."""
        return None

    def _check_batch(self, batch: Batch) -> None:
        """Raise if the algorithm cannot learn some of the rows."""

    def _check_names(self, names: Ints) -> None:
        """Raise if examples with these ids cannot be learned."""

    def _tidy(self) -> None:
        """Drop records of rows that the model no longer stores."""

    def _report(self) -> None:
        """Issue warnings after a training call."""
        native = self._engine.native
        if self._engine.outgrows_memory():
            warn(
                f"{type(self).__name__} stores {native.size:,} examples, which take "
                f"{native.bytes / 2**30:.1f} GB, half of the available memory. Limit the model "
                "on long streams: set budget in OnlineSVC and GapSVC, or window in ExactSVC."
            )
        if not native.unsolved:
            return
        violations, resolutions = native.take_unsolved()
        worst = int(np.argmax(violations))
        violation, resolution = float(violations[worst]), float(resolutions[worst])
        why = (
            f"double precision cannot resolve violations below {resolution:.2g} for this kernel"
            if violation <= resolution
            else "the maximum number of steps was reached"
        )
        warn_unconverged(
            f"{type(self).__name__} stopped at a violation of {violation:.3g}, above "
            f"tol={self.tol:g}: {why}. Scale the features, lower C or raise tol."
        )

    @property
    def _starts_over(self) -> bool:
        """Whether all rows are forgotten, so that the next rows determine gamma again."""
        return False

    def _begin_again(self, X: Any, weights: Float, labels: Labels) -> None:
        """Create an engine for the first rows after all rows were forgotten."""

    # -- the engine ----------------------------------------------------------------------------

    def _make_engine(
        self, X: Any, weights: Float, *, streaming: bool, rows: int | None = None
    ) -> Engine:
        """Return an engine for the first rows."""
        function, settings = self._function(), self._settings()
        plan = make_plan(
            self,
            X,
            weights,
            function=function,
            settings=settings,
            streaming=streaming,
            rows=rows,
        )
        return self._engine_class(plan, function, self.n_jobs)

    def _function(self) -> BlockFunction | None:
        if self.kernel == "precomputed":
            return precomputed
        if not callable(self.kernel):
            return None
        objects = self.__dict__.get("_objects")
        return checked(self.kernel if objects is None else objects.kernel(self.kernel))

    def _augmented(self, X: Any, names: Ints | None) -> Any:
        """Append its own column index to each precomputed kernel row."""
        if self.kernel != "precomputed":
            return X
        dense = X.toarray() if hasattr(X, "toarray") else X
        if names is not None and not ((names >= 0) & (names < X.shape[1])).all():
            raise ValueError(
                "ids are not columns of X, which kernel='precomputed' requires. Pass ids between "
                "0 and n_columns - 1, or ids=None."
            )
        column = np.full(dense.shape[0], -1.0) if names is None else names.astype(np.float64)
        return np.ascontiguousarray(np.column_stack([dense, column]), dtype=np.float64)

    def _labelled(self, X: Any, labels: Labels, costs: Float, names: Ints) -> Batch:
        """Return rows as a batch of the core."""
        self._check_names(names)
        if "_objects" in self.__dict__:
            self._objects.keep(X, lambda: self._engine.state()["X"])
        batch = self._engine.labelled(self._augmented(X, names), labels, costs, names)
        self._check_batch(batch)
        return batch

    # -- learning ------------------------------------------------------------------------------

    def _learn_rows(self, batch: Batch, names: Ints) -> None:
        """Learn all rows of a batch in the order given."""
        engine = self._engine
        if getattr(self, "finish_every", None) is None and engine.learns_at_once(batch, len(names)):
            if engine.plan.foresees:
                engine.keep_foresight()
            engine.learn_now(batch, len(names))
        else:
            self._step_aside()
            self._trainer.learn(ArrayFeed(batch, names), np.arange(len(names), dtype=np.int64))

    def _settle(self) -> None:
        """Finish the model."""
        self._trainer.finish()

    @property
    def _trainer(self) -> Trainer:
        """Training loop with the parameters of this model."""
        return Trainer(
            self._engine,
            tol=getattr(self, "tol", 0.0),
            finish_at_end=bool(getattr(self, "finish_at_end", False)),
            finish_every=getattr(self, "finish_every", None),
            epochs=1 if (epochs := getattr(self, "epochs", 1)) == "converge" else epochs,
            shuffle=getattr(self, "shuffle", False),
            verbose=int(self.verbose),
        )

    # -- state ---------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        refuse_reentry(self)
        state: dict[str, Any] = dict(self.__dict__)
        engine = state.pop("_engine", None)
        if engine is not None:
            state.update(engine.stored())
            if "_objects" in state:
                state["_objects"] = state["_objects"].only(state["_machine"]["X"])
        return state

    def _stored_state(self) -> dict[str, Any]:
        """Return the state for a file, without scikit-learn's callback attributes."""
        state = {name: v for name, v in self.__getstate__().items() if name not in NOTES}
        if hasattr(state.get("stop"), "check"):  # a rule: files contain no code
            state["stop"] = None
        return state

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        """Raise ValueError unless an untrusted state is valid for this class."""
        raise NotImplementedError

    # Optional parts of a state that are specific to a class.
    _own_state: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def _check_own_state(cls, state: Mapping[str, Any], problems: int) -> None:
        """Raise ValueError unless the state specific to this class is valid."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = current(state, type(self))
        stored = state.pop("_machine", None)
        seen, since_finish = state.pop("_seen", 0), state.pop("_since_finish", 0)
        foresight, given_bias = state.pop("_foresight", None), state.pop("_given_bias", None)
        super().__setstate__(_in_memory(state))
        if stored is not None:
            stored = _in_memory(stored)
            check_machine(upgraded(stored), len(getattr(self, "classes_", (-1, 1))))
            self._engine = self._engine_class.from_state(stored, self._function(), self.n_jobs)
            self._engine.native.reserve_ids(seen)
            self._engine.native.count_since_finish(since_finish)
            if foresight is not None:
                self._engine.early_curves = "form" not in foresight
                parts = {name: foresight[name].astype(kind) for name, kind in TYPES.items()}
                Foresight(**parts).give(self._engine.native)
            if given_bias is not None:
                problems = self._engine.plan.problems
                self._engine.given_bias = GivenBias.from_state(given_bias, problems)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _in_memory(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state in which arrays replace memory maps created by joblib."""
    return {k: np.asarray(v) if isinstance(v, np.ndarray) else v for k, v in state.items()}
