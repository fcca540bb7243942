"""Fits of a search on the workers of a cluster, if joblib is configured for one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any

import joblib

from marginwise._engine.engine import runs_elsewhere as runs_elsewhere


def each(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Generator[Any, None, None]:
    """Yield the results of a function for each tuple of arguments, in order.

    Arrays that several tasks share are sent once. Closing the generator cancels the remaining
    tasks.
    """
    parallel = joblib.Parallel(n_jobs=-1, return_as="generator")
    results = parallel(joblib.delayed(function)(*task) for task in tasks)
    try:
        # Not `yield from`, which would close the results outside the filter for the warning below.
        for result in results:  # noqa: UP028
            yield result
    finally:
        with warnings.catch_warnings():
            # joblib warns about tasks that it cancels.
            warnings.simplefilter("ignore", UserWarning)
            results.close()
