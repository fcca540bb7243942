"""The connection to a cluster: the caller's client, the current one, or a new local cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
from distributed import Client, LocalCluster, get_client

from marginwise.dask.faults import ClusterError
from marginwise.progress import log

CONNECT_SECONDS = 5.0


@contextmanager
def connected(cluster: Client | str | None = None) -> Iterator[Client]:
    """Connect to a cluster for the duration of a ``with`` block.

    Parameters
    ----------
    cluster : distributed.Client, str or None, default=None
        A client, or the address of a scheduler, such as "tcp://10.0.0.1:8786". "local" starts one
        worker per processor of this machine, and "local:2" starts two workers. None uses the
        current client or, if there is none, starts workers on this machine and logs a message.

    Returns
    -------
    client : context manager
        Returns a `distributed.Client`. Clients and workers that were started for the block are
        closed at its end.
    """
    if isinstance(cluster, str):
        with _addressed(cluster) as client:
            yield client
        return
    try:
        client = get_client() if cluster is None else cluster
    except ValueError:
        workers = int(joblib.cpu_count())
        with _started(workers) as client:
            log(
                f"no Dask client: started a LocalCluster of {workers} worker"
                f"{'' if workers == 1 else 's'} for this call. Pass client, or create a "
                "distributed.Client first, to use another."
            )
            yield client
        return
    yield _running(client)


def _running(client: Any) -> Client:
    if not isinstance(client, Client):
        raise TypeError(
            "client must be a distributed.Client, the address of a scheduler or None, got "
            f"{type(client).__name__}."
        )
    if client.asynchronous:
        raise ValueError(
            "client is asynchronous, but this call waits for answers. Pass a synchronous Client."
        )
    if client.status != "running":
        raise ClusterError(
            f"the client is {client.status}, not running. Connect to a scheduler, and pass the new "
            "Client."
        )
    return client


@contextmanager
def _addressed(address: str) -> Iterator[Client]:
    """Connect to the scheduler at an address, or start the requested local workers."""
    found = re.fullmatch(r"local(?::(\d+))?", address)
    if found is None:
        with _client(address) as client:
            yield client
        return
    workers = int(found[1] or joblib.cpu_count())
    if workers < 1:
        raise ValueError(f"{address!r} has no workers; expected 'local', or 'local:2' for two.")
    with _started(workers) as client:
        yield client


def _client(address: str) -> Client:
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address!r} within {CONNECT_SECONDS:g} seconds. Start "
            "one with `dask scheduler`, correct the address, or use 'local'."
        ) from error


@contextmanager
def _started(workers: int) -> Iterator[Client]:
    """Start a cluster on this machine, and close it at the end of the block."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
