"""Base class of the exact estimators: forgetting, window, path and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from marginwise._algorithm import Algorithm
from marginwise._arrays import Float, Ints
from marginwise._checks import (
    Rule,
    boolean,
    count,
    either,
    integer,
    none,
    obey,
    one_of,
    one_value,
    positive,
)
from marginwise._engine.exact import FREE_SET, ExactEngine, check_free_sets, free_set_sizes
from marginwise._engine.plan import WITH_GAMMA, centre_for, is_offset, resolve_gamma
from marginwise._estimator.base import KernelModel, on_draft
from marginwise._estimator.grouped import Grouped, check_group_table
from marginwise._files.engine_state import check_array, require_names
from marginwise._warn import warn, warn_unconverged

LARGE_EXPONENT = 1e4  # gamma |x|^2 beyond which a stream's first row becomes the centre
SETS = ("idle", "free", "bounded", "gone")  # in the order of the core's codes
MIGRATION = np.dtype(
    [("cause", "i8"), ("id", "i8"), ("problem", "i4"), ("source", "U7"), ("target", "U7")]
)

ALGORITHM = Algorithm(
    name="exact",
    settings={
        "sphere": boolean(),
        "nu": either(positive(1), one_value(0)),
        "window": count(),
        "oldest": boolean(),
        "screen": boolean(),
    },
    counts=2,
    numbers=4,
    biased=True,
    exact=True,
    arrays=FREE_SET,
    sizes=free_set_sizes,
    check=check_free_sets,
)


class ExactModel(Grouped):
    """Base class of the exact estimators."""

    window: int | None
    evict: Literal["lightest", "oldest"]
    record: bool
    gamma: Literal["scale", "auto"] | float
    _balance: Float
    _costs: Float

    _algorithm = ALGORITHM
    _engine_class = ExactEngine
    _engine: ExactEngine
    _rules: ClassVar[dict[str, Rule]] = {
        **KernelModel._rules,
        "window": either(none(), integer(2)),
        "evict": one_of("lightest", "oldest"),
        "record": boolean(),
    }

    @on_draft
    def forget(
        self,
        ids: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        gamma: Literal["recompute", "keep"] = "recompute",
    ) -> Self:
        """Remove the influence of rows from the model exactly.

        Afterwards, the model is the one that was never trained on these rows. With a kernel that is
        not positive semi-definite, it may be another local solution. Pass either `ids` or `groups`.
        If any id or group is unknown, no row is forgotten.

        If forgotten rows contributed to ``gamma="scale"``, ``class_weight="balanced"`` or the
        centre of the features, these values are recomputed from the remaining rows that contributed
        to them, or from all stored rows if none remains. The problem is then solved again, starting
        from the current solution, which takes longer than forgetting rows that did not contribute.

        A model whose rows are all forgotten is empty and cannot predict until `fit` or
        `partial_fit` is called.

        Parameters
        ----------
        ids : array-like of int, default=None
            Ids of stored rows (see `ids_`). After `fit`, ids are row indices of `X`.
        groups : array-like of str or int, default=None
            Groups to forget (see `groups_`). All stored rows of these groups are removed; rows
            without a group are not affected.
        gamma : {"recompute", "keep"}, default="recompute"
            Whether to recompute values that forgotten rows contributed to. "keep" does not change
            gamma, class weights and the centre; a warning reports by how much gamma and the class
            weights would change.

        Returns
        -------
        self : object
            The updated estimator.

        Raises
        ------
        KeyError
            If an id or group is not stored. The model does not change.
        """
        check_is_fitted(self)
        if gamma not in ("recompute", "keep"):
            raise ValueError(
                f"gamma={gamma!r} is not supported by forget. Pass 'recompute' or 'keep'."
            )
        names = self._chosen(ids, groups)
        self._step_aside()
        self._engine.native.forget(names)
        self._forget_basis(names, keep=gamma == "keep")
        self._drop_groups(names)
        return self

    def _chosen(self, ids: ArrayLike | None, groups: ArrayLike | None) -> Ints:
        """Return the sorted ids of the stored rows to forget."""
        if (ids is None) == (groups is None):
            given = "neither" if ids is None else "both"
            raise ValueError(
                f"forget got {given} of ids and groups. Pass either ids, which are integers, or "
                "groups."
            )
        if groups is not None:
            return self._ids_of_groups(groups)
        names = np.atleast_1d(np.asarray(ids))
        if names.ndim != 1 or (names.size and names.dtype.kind not in "iu"):
            raise ValueError(f"ids must be integers, got {names.dtype} of shape {names.shape}.")
        names = np.unique(names)
        self._check_held(names)
        return names.astype(np.int64)

    def _check_held(self, names: NDArray[Any]) -> None:
        """Raise unless all ids are stored."""
        known = names <= np.iinfo(np.int64).max  # larger ids cannot be stored
        known[known] = self._engine.native.holds(names[known].astype(np.int64))
        unknown = names[~known]
        if unknown.size:
            listed = ", ".join(str(name) for name in unknown[:5].tolist())
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise KeyError(
                f"ids not stored in the model: {listed}{more}. No row was forgotten. Pass ids "
                "from ids_."
            )

    # -- values computed from rows -------------------------------------------------------------

    def _make_engine(
        self, X: Any, weights: Float, *, streaming: bool, rows: int | None = None
    ) -> ExactEngine:
        engine: Any = super()._make_engine(X, weights, streaming=streaming, rows=rows)
        self.__dict__.pop("_basis_ids", None)
        self.__dict__.pop("_basis_weights", None)
        self.__dict__.pop("_groups", None)
        self._adapts = self._adaptive(engine)
        if engine.plan.center or self._adapts:
            self._basis_weights = np.array(weights, dtype=np.float64)  # ids follow later
        return engine  # type: ignore[no-any-return]

    def _adaptive(self, engine: ExactEngine) -> str:
        """Return which of "gamma" and "balance" are computed from rows."""
        scales = self.gamma == "scale" and engine.plan.kernel in WITH_GAMMA
        return " ".join(["gamma"] * scales + ["balance"] * self._balances())

    def _centre(self, X: Any, kernel: str, *, streaming: bool) -> list[float]:
        """Centre features only if double precision would lose their variation.

        A centre contains information about rows, which must be removed when they are forgotten.
        """
        if sp.issparse(X) or kernel not in ("rbf", "linear"):
            return []
        if kernel == "rbf" and streaming:
            first = np.asarray(X[0], dtype=np.float64)
            large = resolve_gamma(self.gamma, X, np.ones(X.shape[0])) * (first @ first)
            return centre_for(X, kernel, streaming=True) if large > LARGE_EXPONENT else []
        return centre_for(X, kernel, streaming=streaming) if is_offset(X) else []

    def _balances(self) -> bool:
        """Return whether class weights are computed from rows."""
        return False

    def _rebalanced(self, labels: NDArray[np.int32]) -> Float | None:
        """Return class weights computed from the labels of rows, or None."""
        return None

    def _forget_basis(self, gone: Ints, *, keep: bool) -> None:
        """Recompute values that forgotten rows contributed to, and solve again."""
        engine = self._engine
        if "_adapts" not in self.__dict__:  # loaded from an earlier format
            self._adapts = self._adaptive(engine)
        if not (engine.plan.center or self._adapts):
            return
        ids = self.__dict__.get("_basis_ids")
        if ids is not None and not np.isin(ids, gone).any():
            return
        state = engine.state()
        rows = np.flatnonzero((state["rank"] >= 0).any(axis=0))
        weights = np.ones(len(rows))
        left = np.isin([] if ids is None else ids, state["ids"][rows])
        if ids is not None and left.any():  # otherwise, all stored rows replace them
            order = np.argsort(ids[left])
            basis, weights = ids[left][order], self._basis_weights[left][order]
            rows = rows[np.isin(state["ids"][rows], basis)]
            weights = weights[np.searchsorted(basis, state["ids"][rows])]
        if len(rows) == 0 and not keep:
            self._start_over()
            return
        if len(rows):
            engine = self._adapted(state, rows, weights, keep=keep)
        self._basis_ids, self._basis_weights = state["ids"][rows], weights
        self._engine = engine

    def _start_over(self) -> None:
        """Discard values computed from forgotten rows."""
        engine = self._engine
        gamma = 1.0 if "gamma" in self._adapts else engine.plan.gamma
        plan = replace(engine.plan, gamma=gamma, center=[])
        self._engine = engine.rebuilt(plan, engine.state()["costs"])
        self.__dict__.pop("_basis_ids", None)
        self._basis_weights = np.empty(0)
        if "balance" in self._adapts:
            self._costs, self._balance = self._costs / self._balance, np.ones_like(self._balance)

    @property
    def _starts_over(self) -> bool:
        """Whether the next rows determine gamma, centre and class weights again."""
        if "_basis_ids" in self.__dict__:  # even if empty, after gamma="keep"
            return False
        weights = self.__dict__.get("_basis_weights")
        return weights is not None and len(weights) == 0

    def _begin_again(self, X: Any, weights: Float, labels: NDArray[np.int32]) -> None:
        """Create an engine for the first rows after all rows were forgotten."""
        following = self._engine.native.next_id
        self._engine = self._make_engine(X, weights, streaming=True)
        self._engine.native.reserve_ids(following)
        balance = self._rebalanced(labels) if "balance" in self._adapts else None
        if balance is not None:
            self._costs, self._balance = self._costs / self._balance * balance, balance

    def _adapted(
        self, state: dict[str, Any], rows: Ints, weights: Float, *, keep: bool
    ) -> ExactEngine:
        """Return an engine with gamma, centre and class weights computed from rows."""
        engine = self._engine
        X = engine.features_of(state)[rows]
        scales, balances = ("gamma" in self._adapts), ("balance" in self._adapts)
        gamma = resolve_gamma("scale", X, weights) if scales else engine.plan.gamma
        balance = self._rebalanced(state["labels"][rows]) if balances else None
        if keep:
            self._report_kept(gamma, balance)
            return engine
        kernel = engine.plan.kernel
        centre = self._centre(X, kernel, streaming=False) if engine.plan.center else []
        costs = state["costs"]
        if balance is not None:
            costs = costs * (balance / self._balance)[state["labels"]]
        same = gamma == engine.plan.gamma and centre == engine.plan.center and balance is None
        if same:
            return engine
        rebuilt = engine.rebuilt(replace(engine.plan, gamma=gamma, center=centre), costs)
        if balance is not None:
            self._costs = self._costs / self._balance * balance
            self._balance = balance
        return rebuilt

    def _report_kept(self, gamma: float, balance: Float | None) -> None:
        before = self._engine.plan.gamma
        changes = []
        if gamma != before:
            share = abs(gamma - before) / before
            changes.append(f"gamma stays {before:.6g} instead of {gamma:.6g} ({share:.2g} of it)")
        if balance is not None:
            share = float(np.max(np.abs(balance / self._balance - 1)))
            changes.append(f"class weights stay as they were (up to {share:.2g} of them)")
        if changes:
            warn(
                f"{type(self).__name__}: the model still depends on the forgotten rows, because "
                f"{' and '.join(changes)}. Use forget(..., gamma='recompute')."
            )

    @property
    def path_(self) -> NDArray[Any]:
        """Transitions of rows between the sets of the solution path, in order.

        Only available with ``record=True``. The structured array has the fields "cause", the id of
        the row that was learned or forgotten (the first one if there were several) or -1 for
        `set_C`; "id", the row that moved; "problem", the index of the binary problem; "source" and
        "target", the sets: "idle" (not a support vector), "free" (on the margin), "bounded" (at its
        upper bound) and "gone" (forgotten).
        """
        engine: Any = self._fitted()
        if not engine.plan.record:
            raise AttributeError(
                "path_ was not recorded. Set record=True and train the model again."
            )
        steps = engine.native.path()
        path = np.empty(len(steps), dtype=MIGRATION)
        path["cause"], path["id"], path["problem"] = steps[:, :3].T
        names = np.array(SETS)
        path["source"], path["target"] = names[steps[:, 3]], names[steps[:, 4]]
        return path

    def _report(self) -> None:
        engine = self._engine
        resolved, violation = engine.take_resolved(), float(np.max(engine.native.shortfall()))
        if violation > 0:
            message = (
                "the model is not the exact solution: the optimality conditions are violated by "
                f"{violation:.2g} of the margin, because the range of kernel values is too large "
                "for double precision. Scale the features, limit outliers, or lower C."
            )
        elif resolved == 0:
            return
        elif engine.native.indefinite().any():
            message = (
                "the kernel is not positive semi-definite, so the solution path does not exist. "
                "The problem was solved by coordinate descent on pairs instead. Use a positive "
                "semi-definite kernel."
            )
        else:
            message = (
                "the solution path could not be followed numerically. The problem was solved by "
                "coordinate descent on pairs instead, and the optimality conditions hold."
            )
        warn_unconverged(f"{type(self).__name__}: {message}")

    def _check_names(self, names: Ints) -> None:
        self._check_new(names)
        weights = self.__dict__.get("_basis_weights")
        if weights is not None and "_basis_ids" not in self.__dict__:
            self._basis_ids = np.array(names[: len(weights)], dtype=np.int64)
            self._basis_weights = weights[: len(names)]

    def _check_new(self, names: Ints) -> None:
        known, counts = np.unique(names, return_counts=True)
        twice = known[counts > 1]
        held = names[self._engine.native.holds(names).astype(bool)]
        if twice.size or held.size:
            name = int((twice if twice.size else held)[0])
            what = "given twice" if twice.size else "learned already"
            raise ValueError(
                f"id {name} is already in use: its example is {what}. Forget it first, or pass a "
                "new id."
            )

    def _window_settings(self) -> dict[str, Any]:
        return {
            "window": 0 if self.window is None else int(self.window),
            "oldest": self.evict == "oldest",
            "screen": True,
        }

    _own_state = frozenset({"_steps", "_basis_ids", "_basis_weights", "_adapts", "_groups"})

    @classmethod
    def _check_own_state(cls, state: Mapping[str, Any], problems: int) -> None:
        obey({"_adapts": one_of("", "gamma", "balance", "gamma balance")}, state)
        if "_steps" in state:
            steps = state["_steps"]
            check_array("_steps", steps, "int64", (np.shape(steps)[0], 5))
            if not ((steps[:, 2] >= 0) & (steps[:, 2] < problems)).all():
                raise ValueError("_steps must name problems")
            if not np.isin(steps[:, 3:], range(len(SETS))).all():
                raise ValueError("_steps must go from set to set")
        weights = state.get("_basis_weights", np.empty(0))
        check_array("_basis_weights", weights, "float64", (np.size(weights),))
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError("_basis_weights must be finite and not negative")
        if "_basis_ids" in state:
            require_names({"_basis_weights"}, {"_basis_weights"} & set(state), "rows of gamma")
            check_array("_basis_ids", state["_basis_ids"], "int64", (np.size(weights),))
        if "_groups" in state:
            check_group_table(state["_groups"])

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        steps = state.pop("_steps", None)
        super().__setstate__(state)
        if steps is not None:
            self._engine.native.set_path(steps)
