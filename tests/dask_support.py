"""What tests on Dask need: clusters, data in blocks, digests of models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits, make_moons

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


def moons(rows: int, block: int, seed: int) -> tuple[Any, Any]:
    """Return rows and labels of two classes, in blocks."""
    X, y = make_moons(rows, noise=0.25, random_state=seed)
    return da.from_array(X, chunks=(block, 2)), da.from_array(y, chunks=block)


def labelled_digits(seed: int, copies: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return images of digits, and noisy copies of them."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    noisy = [X + 0.5 * k * rng.standard_normal(X.shape) for k in range(copies)]
    return np.vstack(noisy) / 16, np.tile(y, copies)
