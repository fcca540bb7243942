"""What tests on Dask need: clusters, data in blocks, digests of models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from tests.support import essence


@contextmanager
def cluster(workers: int, processes: bool = False) -> Iterator[Client]:
    """Start a cluster of single-threaded workers on this machine."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            dashboard_address=":0",
            memory_limit=0,
        ) as local,
        Client(local) as client,
    ):
        yield client


def digest(model: Any) -> str:
    """Return a digest of all that makes a model."""
    found = hashlib.sha256()
    for name, values in essence(model).items():
        found.update(name.encode())
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()
