"""Kernel values between rows and a few vectors, in the units of the native model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints
from marginwise._engine.engine import Engine

Single = NDArray[np.float32]

BLOCK_VALUES = 2**23  # kernel values per call, which signals cannot interrupt


@dataclass
class KernelBlocks:
    """The kernel of an engine, block by block.

    Parameters
    ----------
    engine : Engine
        Has the kernel.
    vectors : {ndarray, csr_array}
        Second argument of the kernel in all blocks.
    """

    engine: Engine
    vectors: Any

    def __post_init__(self) -> None:
        self._packed: Any = self.engine.native.pack_rows(self.engine.batch(self.vectors))

    def each(self, X: Any, order: Ints) -> Iterator[tuple[slice, Single]]:
        """Yield the kernel values of rows `order` of X, in blocks of rows."""
        batch = self.engine.batch(X)
        step = max(BLOCK_VALUES // max(self.vectors.shape[0], 1), 1)
        for first in range(0, len(order), step):
            part = slice(first, min(first + step, len(order)))
            yield part, self.engine.native.cross_values(self._packed, batch, order[part])

    def square(self) -> NDArray[np.float64]:
        """Return the kernel matrix of the vectors."""
        n = self.vectors.shape[0]
        values = np.empty((n, n))
        for part, block in self.each(self.vectors, np.arange(n, dtype=np.int64)):
            values[part] = block
        return (values + values.T) / 2
