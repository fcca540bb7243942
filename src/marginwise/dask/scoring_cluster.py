"""Clusters for scoring: connecting to one, starting one, and which versions its workers have."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import joblib

from marginwise._warn import warn

CONNECT_SECONDS = 5.0


def need_distributed() -> Any:
    """Return the module distributed, or raise ImportError with the command that installs it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "clusters need dask and distributed, which are not installed. Run "
            "pip install 'marginwise[dask]'."
        ) from error
    return distributed


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a scheduler, or start workers on this machine for the length of a block.

    Parameters
    ----------
    address : str
        Address of a scheduler such as "tcp://10.0.0.1:8786"; "local" for one worker per processor
        of this machine, or "local:2" for two.

    Returns
    -------
    client : context manager
        Gives a `distributed.Client`, which is closed at the end of the block.
    """
    found = re.fullmatch(r"local(?::(\d+))?", address)
    if found is None:
        with _client(address) as client:
            yield client
        return
    workers = int(found[1] or joblib.cpu_count())
    if workers < 1:
        raise ValueError(f"{address!r} has no workers; expected 'local', or 'local:2' for two.")
    with _local(workers) as client:
        yield client


@contextlib.contextmanager
def current_client(client: Any) -> Iterator[Any]:
    """Give a client: the one that was passed, the current one, or one of new local workers."""
    distributed = need_distributed()
    if client is None:
        with contextlib.suppress(ValueError):
            client = distributed.get_client()
    if client is not None:
        yield client
        return
    workers = joblib.cpu_count()
    warn(
        f"there is no Dask client: {workers} workers are started on this machine until all files "
        "are scored. Pass client to use a cluster."
    )
    with _local(workers) as client:
        yield client


@contextlib.contextmanager
def _local(workers: int) -> Iterator[Any]:
    distributed = need_distributed()
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _client(address: str) -> Any:
    """Return a client of a scheduler."""
    distributed = need_distributed()
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address!r} within {CONNECT_SECONDS:g} seconds. Start "
            "one with `dask scheduler`, correct the address, or use 'local'."
        ) from error


def check_workers(client: Any) -> int:
    """Raise unless all workers have this version of marginwise; return how many there are."""

    def release() -> str | None:  # sent as code, since workers may lack marginwise
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("marginwise")
        except PackageNotFoundError:
            return None

    own, found = version("marginwise"), client.run(release)
    for worker, theirs in sorted(found.items()):
        if theirs != own:
            has = "does not have marginwise" if theirs is None else f"has marginwise {theirs}"
            raise RuntimeError(
                f"this process has marginwise {own}, but the worker {worker} {has}. Install the "
                "same version on both sides."
            )
    return len(found)
