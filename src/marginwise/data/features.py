"""Features of single columns of tables."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise.data.columns import LARGEST, CellError, Strings, need_arrow


def measured(
    values: Float, name: str, mean: float, scale: float, fill: float
) -> NDArray[np.float32]:
    """Return a column of numbers as one standardised feature; `fill` replaces missing values."""
    made = (np.where(np.isnan(values), fill, values) - mean) / scale
    wrong = np.flatnonzero(np.abs(made) > LARGEST)
    if wrong.size:
        raise CellError(
            int(wrong[0]),
            name,
            f"{values[wrong[0]]:g} is outside the range of float32 after standardising; "
            f"expected a number near {mean:g}.",
        )
    features: NDArray[np.float32] = made.astype(np.float32)[:, None]
    return features


def one_hot(
    column: Strings, name: str, categories: list[str], missing: bool, strict: bool
) -> sp.csr_array:
    """Return one feature per category, and one for missing values if these are a category.

    Other strings are encoded as zeros, or raise an error with `strict`.
    """
    pa = need_arrow()
    found = pa.compute.index_in(column.values, value_set=pa.array(categories, pa.string()))
    places = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    if missing:
        places[column.values.is_null().to_numpy(zero_copy_only=False)] = len(categories)
    rows = np.flatnonzero(places >= 0)
    if strict and len(rows) < len(places):
        row = int(np.flatnonzero(places < 0)[0])
        raise CellError(
            row,
            name,
            f"the category {column.values[row].as_py()!r:.60} did not occur in fit. Pass "
            "unseen='ignore' to encode it as zeros.",
        )
    shape = (len(places), len(categories) + missing)
    return sp.csr_array((np.ones(len(rows), dtype=np.float32), (rows, places[rows])), shape=shape)
