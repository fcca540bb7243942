"""Cross-validation splits of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, check_cv

from marginwise._arrays import Ints, Labels
from marginwise._checks import is_integer, plain


@dataclass(frozen=True)
class Fold:
    """Rows to fit on, and rows to score, both ascending."""

    train: Ints
    test: Ints


def splits_any_rows(cv: Any) -> bool:
    """Return whether cv can split any rows, instead of being a list of fixed splits."""
    if isinstance(cv, PredefinedSplit):
        return False
    return cv is None or is_integer(cv) or hasattr(cv, "split")


def make_folds(
    cv: Any, X: Any, y: NDArray[Any], labels: Labels, classes: NDArray[Any], places: Ints
) -> list[Fold]:
    """Split rows, and check that every training part contains every class.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        Cross-validation strategy, as in scikit-learn.
    X, y : array-like
        The rows and their labels.
    labels : ndarray of int32
        The labels as numbers.
    classes : ndarray
        Class labels of the numbers.
    places : ndarray of int
        Position among these rows of each row that cv refers to; -1 if it is not one of them.
    """
    try:
        parts = list(check_cv(cv, y, classifier=True).split(X, y))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cv could not split the rows: {str(error).rstrip('.')}. Pass a number of folds, a "
            "scikit-learn splitter or a list of pairs of train and test indices, such as "
            "list(splitter.split(X, y, groups)) for a splitter that needs groups."
        ) from error
    if not parts:
        raise ValueError("cv yields no split; pass a number of folds, or at least one split.")
    folds = []
    for number, (train, test) in enumerate(parts):
        fold = Fold(
            _indices(train, places, number, "train"), _indices(test, places, number, "test")
        )
        counts = np.bincount(labels[fold.train], minlength=len(classes))
        if (counts == 0).any():
            missing = plain(classes[int(np.argmin(counts))])
            raise ValueError(
                f"split {number} of cv leaves no row of class {missing!r} to fit on. Use a "
                "stratified splitter, fewer folds, or drop classes with so few rows."
            )
        folds.append(fold)
    return folds


def _indices(part: Any, places: Ints, number: int, name: str) -> Ints:
    """Return a part of a split as sorted indices."""
    indices, n = np.asarray(part), len(places)
    if indices.dtype == bool and indices.shape == (n,):
        indices = np.flatnonzero(indices)
    usual = indices.ndim == 1 and len(indices) > 0 and indices.dtype.kind in "iu"
    if not usual or indices.min() < -n or indices.max() >= n:
        raise ValueError(
            f"split {number} of cv has no usable {name} indices: expected integers from 0 to "
            f"{n - 1}, at least one. Check the splitter."
        )
    found: Ints = places[np.unique(indices % n)]
    if (found < 0).all():
        raise ValueError(
            f"all {name} rows of split {number} of cv have weight zero. Leave this split out, or "
            "give some of them a weight."
        )
    return found[found >= 0]
