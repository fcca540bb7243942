"""Sources: labelled rows that are read when they are wanted."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from marginwise._arrays import Ints


class Source(Protocol):
    """Labelled rows that can be read in any order; ids run from 0 to ``len(source) - 1``."""

    def __len__(self) -> int: ...

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return features and labels of these rows, in this order."""


def check_source(source: Any) -> list[int]:
    """Raise unless `source` is one and has rows; return the ids at which its stages end.

    Most sources have one stage.
    """
    if not hasattr(source, "__len__") or not callable(getattr(source, "read", None)):
        if isinstance(source, str | os.PathLike):
            got = f"the path {os.fspath(source)!r}; load the file, or write a class that reads it"
        else:
            got = f"{type(source).__name__}; for arrays use fit or partial_fit"
        raise TypeError(
            "source must be an object with len(source) and source.read(ids), which returns "
            f"features and labels of the rows with these numbers; got {got}."
        )
    n = len(source)
    if n == 0:
        raise ValueError("the source is empty; it must have at least one row.")
    ends = list(getattr(source, "stages", [n]))
    if ends and np.asarray(ends).dtype.kind not in "iu":
        raise ValueError(f"source.stages must be integers, got {ends}.")
    rising = all(a < b for a, b in zip([0, *ends], ends, strict=False))
    if not ends or ends[-1] != n or not rising:
        raise ValueError(f"source.stages must be rising ids that end with {n}, got {ends}.")
    return [int(end) for end in ends]
