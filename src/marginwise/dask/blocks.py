"""The blocks of a training set, which stay on the workers, and their contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from marginwise._arrays import spread_rows
from marginwise._estimator.streams import SAMPLE
from marginwise.dask.census import gather, take_census
from marginwise.dask.collections import blocks_of
from marginwise.dask.faults import Collector, Task
from marginwise.dask.tasks import labels_of, stacked, take_rows
from marginwise.dask.versions import installed_version

SAMPLED_BLOCKS = 16  # blocks whose rows determine gamma, the centre and the precision


class Blocks:
    """The blocks of a training set and their contents.

    Parameters
    ----------
    client : Client
        The connection to the cluster.
    X, y : Dask collections
        Features and labels, divided into the same blocks.
    """

    def __init__(self, client: Client, X: Any, y: Any) -> None:
        self._client = client
        self.xs, self.ys = blocks_of(client, X, y)
        version, pairs = installed_version(), zip(self.xs, self.ys, strict=True)
        tasks = [
            _name(k, "X and y", self._call(take_census, version, *pair))
            for k, pair in enumerate(pairs)
        ]
        self.population = gather(self._collect(tasks))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Callable[..., Future]:
        def submit(workers: list[str] | None) -> Future:
            return self._client.submit(function, *arguments, workers=workers, pure=False)

        return submit

    def _collect(self, tasks: Sequence[Task]) -> list[Any]:
        collector = Collector(self._client)
        return collector.collect(collector.begin(tasks))

    @property
    def _filled(self) -> list[int]:
        return [k for k, block in enumerate(self.population.blocks) if block.rows]

    def sample(self) -> Any:
        """Return a sample of rows, which determines gamma, the centre and the precision."""
        filled = self._filled
        some = [filled[k] for k in spread_rows(len(filled), SAMPLED_BLOCKS)]
        each = -(-SAMPLE // len(some))
        spread = {k: spread_rows(self.population.blocks[k].rows, each) for k in some}
        calls = [_name(k, "X", self._call(take_rows, self.xs[k], spread[k])) for k in some]
        return stacked(self._collect(calls))

    def everything(self) -> tuple[Any, NDArray[Any]]:
        """Return all rows and their labels."""
        filled = self._filled
        rows = [_name(k, "X", self._call(take_rows, self.xs[k], None)) for k in filled]
        labels = [_name(k, "y", self._call(labels_of, self.ys[k])) for k in filled]
        return stacked(self._collect(rows)), np.concatenate(self._collect(labels))


def _name(block: int, what: str, submit: Callable[..., Future]) -> Task:
    return Task(f"block {block} of {what}", submit)
