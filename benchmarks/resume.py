"""Measure cases in worker processes, and recognize stored results of another version."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from contestants import environment

import marginwise
from marginwise import _core

HERE = Path(__file__).resolve().parent
Result = dict[str, Any]


def code(modules: Iterable[str]) -> str:
    """Hash the package and the modules of this folder that define the cases."""
    package = Path(marginwise.__file__).parent
    files = [Path(_core.__file__), *package.rglob("*.py")]  # the core may be in another folder
    files += [HERE / f"{name}.py" for name in modules]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


def results(
    measure: Callable[..., Result],
    calls: list[tuple[Any, ...]],
    summary: Callable[[Result], str],
    jobs: int,
) -> Iterator[tuple[Any, Result]]:
    """Yield cases and their results, each measured in a worker process on one thread.

    A call contains the arguments of `measure`. The first of them is the case, which has a `key`.
    """
    began = time.monotonic()
    os.environ.update(environment(threads=1))
    pool = ProcessPoolExecutor(jobs, get_context("spawn"))
    try:
        futures = {pool.submit(measure, *call): call[0] for call in calls}
        for number, future in enumerate(as_completed(futures), start=1):
            case, result = futures[future], future.result()
            yield case, result
            minutes = (time.monotonic() - began) / 60
            where = f"{minutes:5.1f} min, {number} of {len(calls)}"
            print(f"  {where}: {case.key}: {summary(result)}", file=sys.stderr, flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # an interrupt does not wait for the other cases
