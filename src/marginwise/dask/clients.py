"""The connection to a cluster: the caller's, the current one, or one that is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
from distributed import Client, LocalCluster, get_client

from marginwise.dask.faults import ClusterError
from marginwise.progress import log


@contextmanager
def connected(client: Any) -> Iterator[Client]:
    """Give a client: the one given, the current one, or one of a cluster on this machine."""
    if client is not None:
        yield _running(client)
        return
    try:
        current = get_client()
    except ValueError:
        with _started() as own:
            yield own
        return
    yield _running(current)


def _running(client: Any) -> Client:
    if not isinstance(client, Client):
        raise TypeError(
            f"client must be a distributed.Client or None, got {type(client).__name__}."
        )
    if client.asynchronous:
        raise ValueError(
            "client is asynchronous, but training waits for answers. Pass a synchronous Client."
        )
    if client.status != "running":
        raise ClusterError(
            f"the client is {client.status}, not running. Connect to a scheduler, and pass the new "
            "Client."
        )
    return client


@contextmanager
def _started() -> Iterator[Client]:
    """Start a cluster on this machine, say so, and close it at the end."""
    workers = int(joblib.cpu_count())
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        log(
            f"no Dask client: started a LocalCluster of {workers} worker"
            f"{'' if workers == 1 else 's'} for this call. Pass client, or create a "
            "distributed.Client first, to use another."
        )
        yield client
