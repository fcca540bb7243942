"""Removal of rows from a model with a receipt."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints
from marginwise._checks import Rule, boolean, check_arguments, plain
from marginwise._engine.plan import WITH_GAMMA
from marginwise._estimator.exact import ExactModel
from marginwise._estimator.grouped import check_groups
from marginwise.removal.digest import model_digest
from marginwise.removal.receipt import FORMAT, Receipt, salted_hashes
from marginwise.removal.solution import compare_with_refit, is_unique, largest_violation

RULES: dict[str, Rule] = {
    "gamma": (lambda v: v in ("recompute", "keep"), "'recompute' or 'keep'"),
    "allow_local": boolean(),
}
SALT_BYTES = 16


def remove(
    model: Any,
    *,
    ids: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    salt: str | None = None,
    compare: bool = False,
    gamma: Literal["recompute", "keep"] = "recompute",
    allow_local: bool = False,
) -> Receipt:
    """Remove rows from an exact model and return a receipt.

    The model forgets the rows (see :meth:`marginwise.ExactSVC.forget`). The receipt states what was
    removed, which other values depended on the removed rows, and how well the remaining model
    satisfies the optimality conditions. With ``record=True``, transitions of removed rows are also
    dropped from `path_`. No other thread may train the model at the same time.

    Parameters
    ----------
    model : ExactSVC, ExactOneClassSVM or Pipeline that ends in one
        Fitted model, which is modified in place. The kernel must not be a Python function. The
        other steps of a pipeline do not change and may still contain categories, words or values of
        removed rows; the receipt lists these steps.
    ids : array-like of int, default=None
        Ids of the rows to remove. Pass either `ids` or `groups`.
    groups : array-like of str or int, default=None
        Groups whose rows to remove.
    salt : str, default=None
        Text that is hashed together with each id and group. It is not stored in the receipt and
        should be secret. None generates 128 random bits, which are stored in the receipt.
    compare : bool, default=False
        Whether to fit a model from scratch to the remaining rows and report the differences in the
        receipt.
    gamma : {"recompute", "keep"}, default="recompute"
        Whether to recompute gamma, centre and class weights that depended on removed rows. "keep"
        does not change them and issues a warning. The model then still depends on the removed rows,
        and the receipt states this.
    allow_local : bool, default=False
        Whether to remove rows although the solution may not be unique, because the kernel is not
        known to be positive semi-definite: "sigmoid", "poly" with a negative `coef0`, or
        precomputed values that are indefinite. The model then satisfies the optimality conditions,
        but may differ from one that was never trained on the rows. The receipt states this in
        `unique`.

    Returns
    -------
    receipt : Receipt
        Receipt of the removal.

    Raises
    ------
    KeyError
        If an id or a group is not stored. No row is removed.
    ValueError
        If there is nothing to remove, if the salt is empty, if the model cannot be saved and
        therefore has no digest, or if the solution may not be unique and `allow_local` is False.
        No row is removed.

    See Also
    --------
    remove_from_file : Remove rows from a model file, with a log.
    ExactSVC.forget : Forget rows without a receipt.

    Examples
    --------
    >>> from marginwise import ExactSVC
    >>> from marginwise.removal import remove, verify_receipt
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> model = ExactSVC(gamma=1.0).fit(X, y, groups=["ann", "bob", "cem", "ann"])
    >>> receipt = remove(model, groups=["ann"], compare=True)
    >>> receipt.rows_removed, receipt.violation < 1e-9
    (2, True)
    >>> receipt.comparison["decision_difference"] < 1e-9
    True
    >>> verify_receipt(receipt, model)
    True
    """
    estimator = final_step(model)
    digest_before = model_digest(model)
    names, unique = rows_to_remove(
        estimator, ids, groups, salt=salt, gamma=gamma, allow_local=allow_local
    )
    before = Sketch.of(estimator)
    start = time.perf_counter()
    estimator.forget(names, gamma=gamma)
    moves = _drop_moves(estimator, names)
    seconds = time.perf_counter() - start
    after = Sketch.of(estimator)
    used = secrets.token_hex(SALT_BYTES) if salt is None else salt
    by_group = [] if groups is None else check_groups(groups).tolist()
    return Receipt(
        format=FORMAT,
        marginwise=version("marginwise"),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        estimator=type(estimator).__name__,
        by="ids" if groups is None else "groups",
        salt=used if salt is None else None,
        row_hashes=salted_hashes(used, names.tolist()),
        group_hashes=salted_hashes(used, by_group),
        rows_removed=len(names),
        rows_left=after.rows,
        support_vectors_before=before.support_vectors,
        support_vectors_after=after.support_vectors,
        digest_before=digest_before,
        digest_after=model_digest(model),
        violation=largest_violation(estimator),
        gamma=gamma,
        dependents=_dependents(model, estimator, before, after, moves),
        comparison=(
            {**compare_with_refit(estimator), "seconds_removal": seconds} if compare else None
        ),
        unique=unique,
    )


def final_step(model: Any) -> ExactModel:
    """Return an exact estimator, or the exact estimator at the end of a pipeline."""
    steps = getattr(model, "steps", None)
    estimator = steps[-1][1] if isinstance(steps, list) and steps else model
    if not isinstance(estimator, ExactModel):
        raise TypeError(
            f"rows cannot be removed from a {type(estimator).__name__}; expected an ExactSVC, an "
            "ExactOneClassSVM or a pipeline that ends in one, because only these forget rows "
            "exactly. Fit such a model, or fit this one again without the rows."
        )
    check_is_fitted(estimator)
    return estimator


def rows_to_remove(
    estimator: ExactModel, ids: Any, groups: Any, *, salt: Any, gamma: Any, allow_local: bool
) -> tuple[Ints, bool]:
    """Check the arguments of `remove` before anything changes.

    Returns the ids of the rows to remove, and whether the solution without them is unique.
    """
    if salt is not None and not isinstance(salt, str):
        raise TypeError(f"salt is a {type(salt).__name__}; expected a string. Pass None or text.")
    if salt == "":
        raise ValueError(
            "salt is empty; expected text that others do not know, because hashes without a salt "
            "can be computed by anyone. Pass None for a random salt."
        )
    check_arguments(RULES, gamma=gamma, allow_local=allow_local)
    names = estimator._chosen(ids, groups)
    if len(names) == 0:
        given = "ids" if groups is None else "groups"
        raise ValueError(f"{given} is empty: there is nothing to remove. Name one or more.")
    unique = is_unique(estimator, names)
    if not (unique or allow_local):
        kernel = estimator._engine.plan.kernel
        kernel = "precomputed" if estimator.kernel == "precomputed" else kernel
        raise ValueError(
            f"the influence of the rows may remain, because kernel={kernel!r} is not positive "
            "semi-definite here: the model is one of possibly several local solutions, and without "
            "the rows another one might have been found. No row was removed. Fit the model again "
            "without the rows or with another kernel, such as 'rbf', or pass allow_local=True for "
            "a receipt that states this."
        )
    return names, unique


@dataclass(frozen=True)
class Sketch:
    """Properties of an estimator that a receipt compares before and after the removal."""

    rows: int
    support_vectors: int
    gamma: float
    centre: list[float]
    class_weights: Float | None

    @classmethod
    def of(cls, estimator: Any) -> Sketch:
        """Return the sketch of an estimator."""
        engine = estimator._engine
        return cls(
            rows=len(estimator.ids_),
            support_vectors=len(estimator.support_),
            gamma=float(engine.plan.gamma),
            centre=list(engine.plan.center),
            class_weights=estimator.__dict__.get("_balance"),
        )


def _drop_moves(estimator: ExactModel, names: Ints) -> int:
    """Drop the entries of removed rows from the recorded path; return the number of entries."""
    native = estimator._engine.native
    if not estimator._engine.plan.record:
        return 0
    path = native.path()
    gone = np.isin(path[:, :2], names).any(axis=1)  # as the row that moved or as its cause
    native.set_path(np.ascontiguousarray(path[~gone]))
    return int(gone.sum())


def _dependents(
    model: Any, estimator: Any, before: Sketch, after: Sketch, moves: int
) -> dict[str, Any]:
    """Return other values that were computed from rows, by name.

    The centre contains features of rows, so the receipt states only whether it changed.
    """
    adapts = estimator.__dict__.get("_adapts", "")
    found: dict[str, Any] = {}
    if "gamma" in adapts and estimator._engine.plan.kernel in WITH_GAMMA:
        found["gamma"] = {"before": before.gamma, "after": after.gamma}
    if before.centre:
        found["centre"] = {"changed": before.centre != after.centre}
    if "balance" in adapts and before.class_weights is not None:
        found["class_weights"] = {
            "classes": [str(label) for label in plain(estimator.classes_)],
            "before": before.class_weights.tolist(),
            "after": estimator._balance.tolist(),
        }
    if estimator.__dict__.get("calibration") is not None:
        found["calibration"] = {"computed": "from the stored rows, whenever it is needed"}
    if estimator._engine.plan.settings["window"]:
        found["window"] = {
            "rows": int(estimator._engine.plan.settings["window"]),
            "evicted_earlier": "not restored",
        }
    if estimator.kernel == "precomputed":
        found["kernel_values"] = {"of_stored_with_removed_rows": "kept in the stored rows"}
    if estimator._engine.plan.record:
        found["path"] = {"moves_dropped": moves}
    if model is not estimator:
        found["steps"] = {"names": [name for name, _ in model.steps[:-1]], "changed": False}
    return found
