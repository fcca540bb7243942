"""The census: workers validate and summarize the blocks of a collection.

Every block is validated once before training starts. Faults are returned rather than raised, so
that the reported block is always the first bad one, regardless of which worker answers first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._checks import check_finite, plain
from marginwise._engine.plan import Plan, check_squares, squared_norms
from marginwise._estimator.classifier import check_label_type
from marginwise._sparse import check_sparse
from marginwise.dask.tasks import features_of, labels_of
from marginwise.dask.versions import check_version

NUMBERS = "biuf"  # supported kinds of feature dtypes


@dataclass
class Census:
    """Summary of one block.

    Parameters
    ----------
    rows, columns : int
        Shape of the block.
    classes : ndarray
        The labels that occur, sorted.
    counts : ndarray of int
        Number of rows with each label.
    places : ndarray of int
        First row with each label.
    mean, squares : float
        Mean of all entries, and the sum of their squared deviations from it.
    names : tuple of str or None
        Column names of a data frame; None for arrays.
    digest : str
        Digest of the rows and their labels, in order.
    largest : float
        Largest squared norm |x|² of a row.
    largest_row : int
        Row with this norm.
    fault : str or None
        Error message if the block is invalid.
    """

    rows: int
    columns: int
    classes: NDArray[Any]
    counts: NDArray[Any]
    places: NDArray[Any]
    mean: float = 0.0
    squares: float = 0.0
    names: tuple[Any, ...] | None = None
    digest: str = ""
    largest: float = 0.0
    largest_row: int = 0
    fault: str | None = None


def take_census(version: str, x: Any, y: Any) -> Census:
    """Validate a block, and count its rows and classes."""
    check_version(version)
    nothing = np.empty(0, dtype=np.int64)
    shape = tuple(getattr(x, "shape", ()))
    try:
        if len(shape) != 2:
            raise ValueError(f"it has {len(shape)} dimensions; rows of features need 2.")
        names = tuple(x.columns) if hasattr(x, "iloc") else None
        X, labels = _checked(x), _checked_labels(y, shape[0])
        largest, row = _largest(X)
        classes, places, counts = np.unique(labels, return_index=True, return_counts=True)
    except (ValueError, TypeError) as error:
        rows, columns = shape if len(shape) == 2 else (0, 0)
        return Census(rows, columns, nothing, nothing, nothing, fault=str(error))
    mean, squares = _spread(X)
    digest = _digest(X, labels, classes)
    counted = shape[0], shape[1], classes, counts, places
    return Census(*counted, mean, squares, names, digest, largest, row)


def _checked(x: Any) -> Any:
    """Return the features of a block; raise if they are not finite numbers."""
    if hasattr(x, "iloc"):
        for name, kind in x.dtypes.items():
            if getattr(kind, "kind", "O") not in NUMBERS:
                raise ValueError(
                    f"column {name!r} has dtype {kind}; features must be numbers. Encode or drop "
                    "the column."
                )
    elif not hasattr(x, "dtype") or x.dtype.kind not in NUMBERS:
        kind = getattr(x, "dtype", type(x).__name__)
        raise ValueError(
            f"it has dtype {kind}; features must be numbers. Convert it, for example with "
            "X.astype(float)."
        )
    elif sp.issparse(x):
        check_sparse(x)
    _check_mask(x, "X")
    X = features_of(x)
    check_finite(X)
    return X


def _check_mask(values: Any, name: str) -> None:
    """Raise if an array has masked values, which training would treat as known values."""
    if np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0, 0])
        raise ValueError(
            f"row {row} of {name} has a masked value. Impute masked values, or drop their rows."
        )


def _largest(X: Any) -> tuple[float, int]:
    """Return the largest squared norm |x|² of a row, and the row; raise if it overflows."""
    if X.shape[0] == 0:
        return 0.0, 0
    with np.errstate(over="ignore"):
        squares = squared_norms(X)
    row = int(np.argmax(squares))
    if not np.isfinite(squares[row]):
        raise ValueError(
            f"the features of row {row} are too large: |x|² overflows. Scale the features down."
        )
    return float(squares[row]), row


def _checked_labels(y: Any, rows: int) -> NDArray[Any]:
    """Return the labels of a block; raise unless there is one per row."""
    labels = labels_of(y)
    if labels.ndim != 1:
        raise ValueError(f"its labels have shape {labels.shape}; expected one label per row.")
    if len(labels) != rows:
        raise ValueError(
            f"X has {rows} rows there, but y has {len(labels)} labels; X and y must be divided "
            "into blocks alike."
        )
    _check_mask(y, "y")
    missing = _missing(labels)
    if missing.any():
        raise ValueError(
            f"the label of row {int(np.argmax(missing))} is missing. Drop rows without a label."
        )
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        row = int(np.argmax(np.isinf(labels)))
        raise ValueError(f"the label of row {row} is infinite. Pass class labels.")
    return labels


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels are None, NaN, NaT or pandas' NA (comparing NA yields no boolean)."""
    if labels.dtype.kind != "O":
        return np.asarray(labels != labels)
    same = [label is not None and label == label for label in labels]
    return np.array([not isinstance(one, bool | np.bool_) or not one for one in same], dtype=bool)


def _spread(X: Any) -> tuple[float, float]:
    """Return the mean of all entries and the sum of their squared deviations from it."""
    size = X.shape[0] * X.shape[1]
    if size == 0:
        return 0.0, 0.0
    if sp.issparse(X):
        values = X.data.astype(np.float64)
        mean = float(values.sum()) / size
        return mean, max(float(values @ values) - size * mean * mean, 0.0)
    mean = float(X.mean(dtype=np.float64))
    squares = 0.0
    for first in range(0, X.shape[0], 4096):
        part = X[first : first + 4096].astype(np.float64) - mean
        squares += float(np.einsum("ij,ij->", part, part))
    return mean, squares


def _digest(X: Any, labels: NDArray[Any], classes: NDArray[Any]) -> str:
    """Return a digest of rows and labels, which depends on their order."""
    held = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    places = np.searchsorted(classes, labels).astype(np.int64)
    found = hashlib.blake2b(str(X.dtype).encode(), digest_size=16)
    for part in [*held, places]:
        found.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


@dataclass
class Population:
    """Summary of all blocks.

    Parameters
    ----------
    blocks : sequence of Census
        Summary of each block.
    classes : ndarray
        The labels that occur in any block, sorted.
    """

    blocks: Sequence[Census]
    classes: NDArray[Any]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(block.rows for block in self.blocks)

    def balance(self) -> dict[Any, float]:
        """Return class weights inversely proportional to class frequencies."""
        counts = np.zeros(len(self.classes), dtype=np.int64)
        for block in self.blocks:
            counts[np.searchsorted(self.classes, block.classes)] += block.counts
        weights = self.rows / (len(self.classes) * counts)
        return dict(zip(self.classes.tolist(), weights.tolist(), strict=True))

    def variance(self) -> float:
        """Return the variance of all entries."""
        size, mean, squares = 0, 0.0, 0.0
        for block in self.blocks:
            own = block.rows * block.columns
            if own == 0:
                continue
            apart = block.mean - mean
            squares += block.squares + apart * apart * size * own / (size + own)
            mean += apart * own / (size + own)
            size += own
        return squares / size if size else 0.0

    def in_block(self, block: int) -> frozenset[int]:
        """Return the classes that occur in a block, by number."""
        return frozenset(np.searchsorted(self.classes, self.blocks[block].classes).tolist())


def gather(censuses: Sequence[Census]) -> Population:
    """Combine the summaries of blocks; raise if a block is invalid or inconsistent with others."""
    for number, census in enumerate(censuses):
        if census.fault is not None:
            raise ValueError(f"block {number} of X and y: {census.fault}")
    filled = [(number, census) for number, census in enumerate(censuses) if census.rows]
    if not filled:
        raise ValueError(f"X has no rows: all of its {len(censuses)} blocks are empty.")
    first, model = filled[0]
    for number, census in filled:
        if census.columns != model.columns:
            raise ValueError(
                f"block {number} of X has {census.columns} features, but block {first} has "
                f"{model.columns}; all blocks must have the same columns."
            )
        if census.names != model.names:
            raise ValueError(
                f"block {number} of X has the columns {list(census.names or ())!r:.200}, but block "
                f"{first} has {list(model.names or ())!r:.200}; all blocks must have the same "
                "columns."
            )
        if not _alike(census.classes, model.classes):
            raise ValueError(
                f"block {number} of y has labels such as {plain(census.classes[0])!r}, but block "
                f"{first} has {plain(model.classes[0])!r}; all labels must be of one type."
            )
    classes = np.unique(np.concatenate([census.classes for _, census in filled]))
    check_label_type(classes)
    return Population(censuses, classes)


def _alike(some: NDArray[Any], others: NDArray[Any]) -> bool:
    """Return whether the labels of two blocks can be sorted together."""
    if (some.dtype.kind in "OSUT") != (others.dtype.kind in "OSUT"):
        return False
    try:
        np.unique(np.concatenate([some, others]))
    except TypeError:
        return False
    return True


def check_kernel_range(population: Population, plan: Plan) -> None:
    """Raise if kernel values of a row would overflow; name the block and the row."""
    for number, census in enumerate(population.blocks):
        try:
            check_squares(plan, np.array([census.largest * plan.scale * plan.scale]))
        except ValueError as error:
            said = str(error).replace("row 0", f"row {census.largest_row}", 1)
            raise ValueError(f"block {number} of X: {said}") from None


def check_known(population: Population, known: NDArray[Any]) -> None:
    """Raise if a block has a label that is not a known class; name the block and the row."""
    for number, census in enumerate(population.blocks):
        unknown = ~np.isin(census.classes, known)
        if unknown.any():
            at = int(np.flatnonzero(unknown)[np.argmin(census.places[unknown])])
            raise ValueError(
                f"block {number} of y has the label {plain(census.classes[at])!r} at row "
                f"{int(census.places[at])}, which is unknown; the known classes are "
                f"{plain(known)}."
            )
