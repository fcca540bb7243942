"""Fits of a search on the workers of a cluster, where joblib was configured for one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import joblib

from marginwise._engine.engine import runs_elsewhere as runs_elsewhere


def each(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Generator[Any, None, None]:
    """Give the results of a function for each tuple of arguments, in order.

    Arrays that several tasks share are sent once.
    """
    parallel = joblib.Parallel(n_jobs=-1, return_as="generator")
    yield from parallel(joblib.delayed(function)(*task) for task in tasks)
