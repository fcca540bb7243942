"""The model is a function of the data, its blocks and the seed, whatever the cluster is like."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")

import dask.array as da
from sklearn.datasets import make_moons

from marginwise.dask import DaskOnlineSVC
from tests.dask_support import cluster, digest

ROWS, BLOCK = 9000, 1000


def moons(seed: int) -> tuple[da.Array, da.Array]:
    X, y = make_moons(ROWS, noise=0.25, random_state=seed)
    return da.from_array(X, chunks=(BLOCK, 2)), da.from_array(y, chunks=BLOCK)


def model(**more: object) -> DaskOnlineSVC:
    return DaskOnlineSVC(C=10, gamma=1.0, random_state=0, round_rows=2048, **more)


def test_the_number_of_workers_does_not_matter(seed: int) -> None:
    X, y = moons(seed)
    found = set()
    for workers in (1, 2, 3):
        with cluster(workers):
            found.add(digest(model().fit(X, y)))
    assert len(found) == 1
