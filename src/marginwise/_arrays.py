"""Array types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.int32]  # class indices


def spread_rows(n: int, most: int) -> Ints:
    """Return up to `most` of the rows 0 to n - 1, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
