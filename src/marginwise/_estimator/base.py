"""What all estimators share: parameters, all or nothing, the engine, state.

Every call that changes an estimator works on a draft, and ends with the one assignment that makes
the state of the draft that of the estimator. Whatever stops the call before, an error, Ctrl-C or a
lack of memory, leaves the estimator as it was. What is learned on top of an existing model changes
that model; other threads, and the estimator if the call fails, then have a clone of it.
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
from marginwise._engine.foresight import Foresight
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
    """Base of objects whose `alone` methods wait for each other, whichever thread calls them."""

    __slots__ = ("_turn",)  # not in __dict__: it belongs to the object, not to its state
    _turn: Turn

    def __new__(cls, *_: Any, **__: Any) -> Self:
        self = super().__new__(cls)
        self._turn = Turn()
        return self


def alone(method: _Method) -> _Method:
    """Let a method wait until no other thread is in such a method of the same object."""

    @functools.wraps(method)
    def wrapper(self: Exclusive, /, *args: Any, **kwargs: Any) -> Any:
        return self._turn.run(method, self, *args, **kwargs)

    return cast(_Method, wrapper)


def on_draft(method: _Method) -> _Method:
    """Let a method that returns the estimator change a draft of it, alone.

    When it is done the estimator has the state of the draft. It must not be called from such a
    method of the same estimator.
    """

    @functools.wraps(method)
    def wrapper(self: KernelModel, /, *args: Any, **kwargs: Any) -> Any:
        refuse_reentry(self)
        return self._turn.run(change, self, method, *args, **kwargs)

    return cast(_Method, wrapper)


def change(model: _Model, method: Callable[..., Any], /, *args: Any, **kwargs: Any) -> _Model:
    """Call a method with a draft of a model in its place, and take over the state of the draft."""
    draft = model._copy()
    draft._origin = model
    method(draft, *args, **kwargs)
    draft._tidy()
    draft._report()
    model.__dict__ = draft.__dict__
    return model


def refuse_reentry(model: Exclusive) -> None:
    """Raise if the call that trains a model is the one that runs here."""
    if model._turn.mine:
        raise RuntimeError(
            f"this {type(model).__name__} is being trained by the call that runs here. A kernel "
            "function must compute kernel values from its two blocks alone; a callback must use "
            "the model that it is given."
        )


# -- the base ----------------------------------------------------------------------------------


class KernelModel(SolverAttributes, Exclusive, BaseEstimator):  # type: ignore[misc]
    """Base class of the estimators, which learn a stream of examples one at a time.

    A subclass stores its parameters, extends `_rules`, names its `_algorithm` and implements
    `_settings`.

    Any number of threads may read an estimator at the same time, even while another thread trains
    it; calls that train it wait for each other.
    """

    __slots__ = ("_origin",)  # of a draft: what it is a draft of
    _origin: KernelModel

    _algorithm: ClassVar[Algorithm]
    _engine_class: ClassVar[type[Engine]] = Engine
    _engine: Engine

    tol: float  # of those that finish

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

        Those that shape a model, such as the kernel, apply from the next `fit`; `C`, `n_jobs` and
        the like from the next call.

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
        """Return a view of the estimator as it is, whatever other threads commit meanwhile."""
        view = type(self).__new__(type(self))
        view.__dict__ = self.__dict__
        refuse_reentry(self)
        return view

    def _fitted(self) -> Engine:
        """Return the engine, to be read."""
        refuse_reentry(self)
        check_is_fitted(self)
        return self._engine

    def _step_aside(self) -> None:
        """Leave a clone of the engine, before it changes, to the estimator this is a draft of."""
        origin = self._origin
        if origin.__dict__.get("_engine") is self._engine:  # not yet, in this call
            origin._engine = origin._engine.clone()

    # -- what a subclass may say otherwise -----------------------------------------------------

    def _require_rows(self) -> None:
        """Raise if the model is empty, which only those become that forget rows."""

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the algorithm."""
        raise NotImplementedError

    _centre = staticmethod(centre_for)  # chooses the point that features are measured from

    def _conflict(self) -> str | None:
        """Return what is wrong if parameters, each of them valid, cannot be combined."""
        return None

    def _check_batch(self, batch: Batch) -> None:
        """Raise if the algorithm cannot learn some of the rows."""

    def _check_names(self, names: Ints) -> None:
        """Raise if examples of these ids cannot be learned."""

    def _tidy(self) -> None:
        """Drop what is noted of rows that the model does not store any more."""

    def _report(self) -> None:
        """Warn of what happened in a call that is done."""
        native = self._engine.native
        if self._engine.outgrows_memory():
            warn(
                f"{type(self).__name__} stores {native.size:,} examples, which take "
                f"{native.bytes / 2**30:.1f} GB, half of the memory that they could have. A stream "
                "that continues needs a bound: budget of OnlineSVC and GapSVC, or window of "
                "ExactSVC."
            )
        if not native.unsolved:
            return
        violations, resolutions = native.take_unsolved()
        worst = int(np.argmax(violations))
        violation, resolution = float(violations[worst]), float(resolutions[worst])
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

    # -- the engine ----------------------------------------------------------------------------

    def _make_engine(self, X: Any, weights: Float, *, streaming: bool) -> Engine:
        """Return the engine that the first rows ask for."""
        function, settings = self._function(), self._settings()
        plan = make_plan(
            self, X, weights, function=function, settings=settings, streaming=streaming
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
        """Append to a precomputed kernel row the column that is its own."""
        if self.kernel != "precomputed":
            return X
        dense = X.toarray() if hasattr(X, "toarray") else X
        if names is not None and not ((names >= 0) & (names < X.shape[1])).all():
            raise ValueError("with kernel='precomputed', ids must be columns of X.")
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
            engine.learn_now(batch, len(names))
        else:
            self._step_aside()
            self._trainer.learn(ArrayFeed(batch, names), np.arange(len(names), dtype=np.int64))

    def _settle(self) -> None:
        """Finish the model."""
        self._trainer.finish()

    @property
    def _trainer(self) -> Trainer:
        """The training loop of this model, with those of its parameters that it has."""
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
        """Return the state for a file: without scikit-learn's notes for callbacks."""
        state = {name: v for name, v in self.__getstate__().items() if name not in NOTES}
        if hasattr(state.get("stop"), "check"):  # a rule: files contain no code
            state["stop"] = None
        return state

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state from outside can be one of this class."""
        raise NotImplementedError

    # Parts of a state that only some classes have, and some of their models.
    _own_state: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def _check_own_state(cls, state: Mapping[str, Any], problems: int) -> None:
        """Raise ValueError unless those parts can be of a model of so many problems."""

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
                Foresight(**foresight).give(self._engine.native)
            if given_bias is not None:
                problems = self._engine.plan.problems
                self._engine.given_bias = GivenBias.from_state(given_bias, problems)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _in_memory(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state with arrays in place of the memory maps that joblib may give."""
    return {k: np.asarray(v) if isinstance(v, np.ndarray) else v for k, v in state.items()}
