"""How an estimator learns from Dask collections and from sources that workers read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from distributed import Client, Future
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from marginwise._arrays import spread_rows
from marginwise._checks import (
    Rule,
    check_arguments,
    check_features,
    check_params,
    non_negative,
    plain,
)
from marginwise._estimator.base import on_draft
from marginwise._estimator.classifier import KernelClassifier
from marginwise._estimator.streams import SAMPLE
from marginwise._training.sources import check_source, sample_rows
from marginwise.dask.census import Population, check_known, gather, take_census
from marginwise.dask.clients import check_versions, connected
from marginwise.dask.collections import blocks_of, check_collections
from marginwise.dask.faults import Collector, Published, Task
from marginwise.dask.rounds import Conductor, services_as_dicts
from marginwise.dask.supply import BlockSupply, SourceSupply, Supply, stacked
from marginwise.dask.tasks import Rules, take_labels, take_rows

SAMPLED_BLOCKS = 16  # from which gamma, the centre and the precision are chosen
FEW_ROWS = 4096  # that are learned by the driver as `fit` does
_RUN_RULES: dict[str, Rule] = {
    "sift": non_negative(below=1),
    "checkpoint_minutes": non_negative(),
}


@dataclass(frozen=True)
class Call:
    """What `fit` and `fit_source` are asked for besides the rows.

    Parameters
    ----------
    sift, checkpoint, minutes
        Their arguments.
    """

    sift: float = 0.0
    checkpoint: str | os.PathLike[str] | None = None
    minutes: float = 10.0


class DaskTraining(KernelClassifier):
    """Base of the estimators that learn on a cluster."""

    client: Any
    sift_rounds: int
    round_rows: int

    # -- fit -----------------------------------------------------------------------------------

    @on_draft
    def _fit_blocks(self, X: Any, y: Any, call: Call) -> Self:
        self._check_call(call)
        X, y = check_collections(X, y)
        with connected(self.client) as client:
            check_versions(client)
            blocks = Blocks(client, X, y)
            population = blocks.population
            if population.rows <= min(FEW_ROWS, self.round_rows):
                self._fit_few(blocks)
                return self
            self._begin(population.classes, population, blocks.sample())
            self._engine.native.reserve_ids(population.rows)
            supply = BlockSupply(blocks.xs, blocks.ys, population, 0)
            self._run(client, supply, call, warm=True)
            self._warn_if_constant(self._engine.batch(self._sample), self._sample)
            del self._sample
        return self

    def _fit_few(self, blocks: Blocks) -> None:
        """Learn a few rows as the local estimator does."""
        fit: Any = KernelClassifier._fit
        fit.__wrapped__(self, *blocks.everything(), None)

    def _check_call(self, call: Call) -> None:
        """Check parameters and arguments before anything is asked of a cluster."""
        check_params(self)
        check_arguments(_RUN_RULES, sift=call.sift, checkpoint_minutes=call.minutes)
        name = type(self).__name__
        for parameter, expected, why in (
            ("epochs", 1, "set sift_rounds to the number of passes over the data"),
            ("stop", None, "a stopping rule needs all rows in memory"),
            ("replay", 0, "a reservoir needs all rows, and only some of them travel"),
        ):
            value = getattr(self, parameter, expected)
            if value != expected:
                raise ValueError(
                    f"{name} learns in rounds and needs {parameter}={expected!r}, got "
                    f"{parameter}={plain(value)!r}: {why}."
                )
        if callable(self.kernel) or self.kernel == "precomputed":
            raise ValueError(
                f"{name} needs one of marginwise's own kernels, which workers can compute; got "
                f"kernel={self.kernel!r}."
            )
        if getattr(self, "selection", "random") != "random" and self.pool_size is None:
            raise ValueError(
                "pool_size=None searches all rows for each one that is learned, which needs them "
                "in memory. Set pool_size to an integer."
            )

    def _begin(self, classes: Any, population: Population | None, sample: Any) -> None:
        """Choose classes, weights, gamma and precision, and make an engine."""
        if len(classes) < 2:
            raise ValueError(
                f"y holds the one class {plain(classes[0])!r}; fit needs rows of two classes or "
                "more."
            )
        X, _ = check_features(self, sample, reset=True)
        self._grows = False
        weight, gamma = self.class_weight, self.gamma
        try:
            if population is not None and isinstance(weight, str):
                self.class_weight = population.balance()
            if population is not None and isinstance(gamma, str) and gamma == "scale":
                variance = population.variance()
                self.gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
            self._set_classes(np.asarray(classes), None)
            self._engine = self._make_engine(X, np.ones(X.shape[0]), streaming=False)
        finally:
            self.class_weight, self.gamma = weight, gamma
        self._sample = X

    # -- the rounds ----------------------------------------------------------------------------

    def _run(self, client: Client, supply: Supply, call: Call, *, warm: bool) -> None:
        """Judge and learn all rows."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        plan = self._engine.plan
        rule, size = self._selection()
        rules = Rules(
            classes=self.classes_,
            problems=plan.problems,
            pairs=plan.pairs,
            rule=rule,
            pool_size=size,
            loss=float(call.sift),
            seed=seed,
        )
        conductor = Conductor(client, self, supply, rules)
        rounds = supply.passes(self.shuffle, seed, self.round_rows, self.sift_rounds, warm)
        conductor.run(rounds)
        self.rounds_ = services_as_dicts(conductor.services)
        self._warn_if_far()

    # -- sources -------------------------------------------------------------------------------

    @on_draft
    def _fit_from(self, source: Any, classes: ArrayLike | None, call: Call) -> Self:
        self._check_call(call)
        ends = check_source(source)
        named = getattr(source, "classes", None) if classes is None else classes
        if named is None:
            raise ValueError(
                "fit_source needs all labels that may come: give them as classes, or let the "
                "source name them in source.classes."
            )
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all labels at once; give fit_source a dict of "
                "weights instead."
            )
        with connected(self.client) as client:
            check_versions(client)
            self._begin(
                np.unique(np.asarray(named)),
                None,
                source.read(sample_rows(source, ends[-1], SAMPLE))[0],
            )
            self._engine.native.reserve_ids(ends[-1])
            published = Published(client, source)
            try:
                self._run(client, SourceSupply(source, ends, published, 0), call, warm=True)
            finally:
                published.drop()
            del self._sample
        return self


class Blocks:
    """The blocks of a training set, and what they hold.

    Parameters
    ----------
    client : Client
        The connection to the cluster.
    X, y : Dask collections
        Features and labels, divided alike.
    """

    def __init__(self, client: Client, X: Any, y: Any) -> None:
        self._client = client
        self._collector = Collector(client)
        self.xs, self.ys = blocks_of(client, X, y)
        tasks = [
            self._task(f"block {k} of X", take_census, x, y)
            for k, (x, y) in enumerate(zip(self.xs, self.ys, strict=True))
        ]
        self.population = gather(self._collector.collect(self._collector.begin(tasks)))

    def _task(self, name: str, function: Any, *arguments: Any) -> Task:
        def submit(attempt: int, workers: list[str] | None) -> Future:
            return self._client.submit(function, *arguments, workers=workers, pure=False)

        return Task(name, submit)

    def _collect(self, tasks: Sequence[Task]) -> list[Any]:
        return self._collector.collect(self._collector.begin(tasks))

    def sample(self) -> Any:
        """Return some rows of some blocks, from which gamma, centre and precision are chosen."""
        filled = [k for k, block in enumerate(self.population.blocks) if block.rows]
        some = [filled[k] for k in spread_rows(len(filled), SAMPLED_BLOCKS)]
        each = -(-SAMPLE // len(some))
        return stacked(
            self._collect(
                [
                    self._task(
                        f"block {k} of X",
                        take_rows,
                        self.xs[k],
                        spread_rows(self.population.blocks[k].rows, each),
                    )
                    for k in some
                ]
            )
        )

    def everything(self) -> tuple[Any, Any]:
        """Return all rows and their labels."""
        filled = [k for k, block in enumerate(self.population.blocks) if block.rows]
        rows = [self._task(f"block {k} of X", take_rows, self.xs[k], None) for k in filled]
        labels = [self._task(f"block {k} of y", take_labels, self.ys[k]) for k in filled]
        return stacked(self._collect(rows)), np.concatenate(self._collect(labels))


def known_classes(population: Population, known: Any) -> None:
    """Raise unless all labels are known; name the block and the row of the first that is not."""
    check_known(population, known)
