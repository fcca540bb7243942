"""Dask collections as blocks of features and labels."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from distributed import Client, Future


def is_frame(collection: Any) -> bool:
    """Return whether an object is a Dask data frame or series."""
    # Test the class, because an instance of Delayed accepts any attribute name.
    return is_dask_collection(collection) and hasattr(type(collection), "divisions")


def is_array(collection: Any) -> bool:
    """Return whether an object is a Dask array."""
    return isinstance(collection, da.Array)


def is_collection(X: Any) -> bool:
    """Return whether an object is a Dask array or data frame."""
    return is_array(X) or is_frame(X)


def check_collections(X: Any, y: Any) -> tuple[Any, Any]:
    """Return features and labels with matching blocks, as far as block lengths are known.

    If the lengths are known, labels with other blocks are rechunked to the blocks of the features.
    """
    if not is_collection(X):
        raise TypeError(
            f"X must be a Dask array or data frame, got {type(X).__name__}. Use dask.array."
            "from_array or dask.dataframe.from_pandas, or the local estimator for data in memory."
        )
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, rows and features, got {X.ndim}. Reshape it to "
            "(n_samples, n_features)."
        )
    if is_array(X) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    y = _labels(X, y)
    here, there = _lengths(X), _lengths(y)
    known = not any(map(math.isnan, (*here, *there)))
    if known and sum(here) != sum(there):
        raise ValueError(
            f"X has {int(sum(here))} rows, but y has {int(sum(there))} labels; pass one label per "
            "row."
        )
    if known and here != there:
        y = y.rechunk((here,))
    elif len(here) != len(there):
        hint = ""
        if is_array(X) and is_array(y):
            hint = ", or call compute_chunk_sizes() of both, so that y can be divided as X is"
        raise ValueError(
            f"X has {len(here)} blocks, but y has {len(there)}, of unknown lengths. Divide both "
            f"alike{hint}."
        )
    return X, y


def _labels(X: Any, y: Any) -> Any:
    """Return labels as a one-dimensional Dask array or series."""
    if is_collection(y):
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[y.columns[0]] if is_frame(y) else y[:, 0]
        if y.ndim != 1:
            raise ValueError(
                f"y must have one dimension, got {y.ndim}. Pass one class label per row."
            )
        return y
    if y is None:
        raise ValueError("y is missing; pass a Dask array or series of class labels.")
    labels = np.asarray(y)
    lengths = _lengths(X)
    if labels.ndim != 1 or any(map(math.isnan, lengths)):
        raise TypeError(
            f"y must be a Dask array or series of class labels, got {type(y).__name__} of shape "
            f"{labels.shape}. Build it with dask.array.from_array, in blocks as long as those of X."
        )
    if len(labels) != sum(lengths):
        raise ValueError(
            f"X has {int(sum(lengths))} rows, but y has {len(labels)} labels; pass one label per "
            "row."
        )
    return da.from_array(labels, chunks=(lengths,))


def _lengths(collection: Any) -> tuple[float, ...]:
    """Return the number of rows of each block, NaN if unknown."""
    if is_array(collection):
        return tuple(collection.chunks[0])
    return (math.nan,) * int(collection.npartitions)


def blocks_of(client: Client, X: Any, y: Any) -> tuple[list[Future], list[Future]]:
    """Compute the blocks of two collections, and return them as futures.

    While the futures exist, the blocks stay in the workers' memory, or are spilled to disk.
    """
    rows, labels = delayed_blocks(X), delayed_blocks(y)
    futures = client.compute([*rows, *labels])
    return futures[: len(rows)], futures[len(rows) :]


def delayed_blocks(collection: Any) -> list[Any]:
    """Return the blocks of a collection as delayed objects, one per block."""
    if is_array(collection):
        return list(collection.to_delayed().ravel())
    # Optimization may merge partitions, and not in the same way for rows and labels.
    return list(collection.to_delayed(optimize_graph=False))
