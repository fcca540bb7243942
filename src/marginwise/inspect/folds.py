"""Cross-validation folds in which each row is held out once, and fits on the other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import has_fit_parameter

from marginwise._arrays import Float, Ints
from marginwise._checks import is_integer, plain
from marginwise.inspect.decisions import distances

Fold = tuple[Ints, Ints]  # training rows and held-out rows


def make_folds(cv: Any, X: Any, y: NDArray[Any], groups: Any, random_state: Any) -> list[Fold]:
    """Return the folds of `cv`; raise unless each row is held out exactly once."""
    if is_integer(cv):
        if not 2 <= cv <= len(y):
            raise ValueError(
                f"cv must be an integer from 2 to the number of rows, {len(y)}, a splitter or an "
                f"iterable of (train, test) pairs, got {cv!r}. Pass 5, for example."
            )
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    try:
        splits = list(check_cv(cv, y, classifier=True).split(X, y, groups))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cv could not split the rows: {str(error).rstrip('.')}. Pass a number of folds, a "
            "splitter, with groups if it needs them, or a list of pairs (train, test)."
        ) from error
    folds = [
        (_rows(train, k, "training", len(y)), _rows(test, k, "held-out", len(y)))
        for k, (train, test) in enumerate(splits)
    ]
    _check_once(folds, len(y))
    return folds


def _rows(given: Any, fold: int, part: str, n: int) -> Ints:
    rows = np.asarray(given)
    if rows.dtype.kind == "b" and rows.shape == (n,):
        return np.flatnonzero(rows).astype(np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise ValueError(
            f"cv gives {part} rows of type {rows.dtype} and shape {rows.shape} in fold {fold}; "
            "expected a list of one or more row numbers, or one boolean per row. Pass pairs "
            "(train, test) of integer arrays."
        )
    outside = rows[(rows < 0) | (rows >= n)]
    if len(outside):
        raise ValueError(
            f"cv names row {outside[0]} in fold {fold}, but X has the rows 0 to {n - 1}. Split the "
            "rows of this X."
        )
    return rows.astype(np.int64)


def _check_once(folds: Sequence[Fold], n: int) -> None:
    """Raise unless each row is held out once, by a fold that is not trained on it."""
    times = np.zeros(n, dtype=np.int64)
    for k, (train, test) in enumerate(folds):
        np.add.at(times, test, 1)
        seen = np.intersect1d(train, test)
        if len(seen):
            raise ValueError(
                f"cv holds out row {seen[0]} in fold {k}, whose training rows contain it; each "
                "row must be scored by a model that was not trained on it. Remove it from the "
                "training rows."
            )
    wrong = np.flatnonzero(times != 1)
    if len(wrong):
        often = "never" if times[wrong[0]] == 0 else f"{times[wrong[0]]} times"
        raise ValueError(
            f"cv holds out row {wrong[0]} {often}; every row must be held out exactly once. Use a "
            "partition such as StratifiedKFold, not repeated or random splits."
        )


def check_classes(folds: Sequence[Fold], codes: NDArray[Any], weights: Float, classes: Any) -> None:
    """Raise unless the training rows of each fold contain all classes with positive weight."""
    for k, (train, _) in enumerate(folds):
        mass = np.bincount(codes[train], weights=weights[train], minlength=len(classes))
        if not mass.all():
            absent = classes[np.argmin(mass)]
            count = int((codes == np.argmin(mass)).sum())
            raise ValueError(
                f"the training rows of fold {k} lack the class {plain(absent)!r}, which has "
                f"{count} {'row' if count == 1 else 'rows'} in all; every fit needs rows of every "
                "class with positive weight. Use fewer or stratified folds, or leave out that "
                "class."
            )


# -- fits ------------------------------------------------------------------------------------------


def weight_name(estimator: Any) -> str:
    """Return the name of the `fit` parameter for sample weights."""
    name = ""
    inner = estimator
    while isinstance(inner, Pipeline | BaseSearchCV):
        if isinstance(inner, Pipeline):
            name += f"{inner.steps[-1][0]}__"
            inner = inner.steps[-1][1]
        else:  # a search passes weights to its estimator
            inner = inner.estimator
    if not has_fit_parameter(inner, "sample_weight"):
        raise ValueError(
            f"sample_weight was given, but fit of {type(inner).__name__} does not support it. Use "
            "another classifier, or leave sample_weight out."
        )
    return f"{name}sample_weight"


def seeded(estimator: Any, random_state: Any) -> Any:
    """Return an unfitted clone in which random states of None are drawn from `random_state`."""
    twin = clone(estimator)
    if random_state is not None:
        draw = check_random_state(random_state)
        params = twin.get_params(deep=True)
        unset = [
            name
            for name in sorted(params)
            if name.rpartition("__")[2] == "random_state" and params[name] is None
        ]
        twin.set_params(**{name: int(draw.randint(2**31 - 1)) for name in unset})
    return twin


def held_out_decision(
    estimator: Any, X: Any, y: NDArray[Any], fold: Fold, weights: dict[str, Float]
) -> Float:
    """Fit a clone to the training rows of a fold; return the decision values of held-out rows."""
    train, test = fold
    model = clone(estimator)
    X_train, y_train = _safe_split(model, X, y, train)
    X_test, _ = _safe_split(model, X, None, test, train)
    model.fit(X_train, y_train, **{name: values[train] for name, values in weights.items()})
    return distances(model, X_test)
