"""Training from Dask collections and from data sources that workers read."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from distributed import Client
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

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
from marginwise._training.loop import FORESEEN
from marginwise._training.sift import Tally
from marginwise._training.sources import check_source, sample_rows
from marginwise.dask.blocks import Blocks
from marginwise.dask.census import Population, check_kernel_range, check_known
from marginwise.dask.checkpoint import RoundCheckpoint, Standing
from marginwise.dask.clients import connected
from marginwise.dask.collections import check_collections
from marginwise.dask.faults import Published
from marginwise.dask.rounds import Conductor
from marginwise.dask.supply import BlockSupply, Course, SourceSupply, Supply
from marginwise.dask.tasks import Picks, Rules
from marginwise.dask.versions import installed_version
from marginwise.progress import Progress

FEW_ROWS = 4096  # up to this number, the driver learns rows with the local `fit`
SAMPLED = 64  # at least one in 64 rows, on average, is returned regardless of its score
MOST_EXTRA = 10  # additional passes while an audit shows that the model misses much loss
_RUN_RULES: dict[str, Rule] = {
    "sift": non_negative(below=1),
    "checkpoint_minutes": non_negative(),
}
# Parameters that require all rows in memory, their only supported value, and the reason.
_UNSUPPORTED: tuple[tuple[str, Any, str], ...] = (
    ("epochs", 1, "sift_rounds is the number of passes over the data"),
    ("stop", None, "a stopping rule needs all rows in memory"),
    ("replay", 0, "a uniform sample needs all rows, but workers return only some of them"),
)


@dataclass(frozen=True)
class Call:
    """Options of a training call.

    Parameters
    ----------
    sift, checkpoint, minutes
        The arguments of `fit` and `fit_source`.
    passes : int
        Number of passes over the rows.
    warm : bool
        Whether the model is new.
    complete : bool
        Whether to finish the model and to audit it for missed rows.
    """

    sift: float = 0.0
    checkpoint: str | os.PathLike[str] | None = None
    minutes: float = 10.0
    passes: int = 1
    warm: bool = True
    complete: bool = True


class DaskTraining(KernelClassifier):
    """Base class of the estimators that train on a cluster."""

    client: Any
    sift_rounds: int
    round_rows: int
    rounds_: list[dict[str, Any]]

    # -- training calls ------------------------------------------------------------------------

    @on_draft
    def _fit_blocks(self, X: Any, y: Any, call: Call, failures: list[OSError]) -> Self:
        self._check_call(call)
        X, y = check_collections(X, y)
        with connected(self.client) as client:
            blocks = Blocks(client, X, y)
            population = blocks.population
            if population.rows <= min(FEW_ROWS, self.round_rows):
                fit: Any = KernelClassifier._fit
                fit.__wrapped__(self, *blocks.everything(), None)
                self.rounds_ = []
                return self
            weights = population.balance() if isinstance(self.class_weight, str) else None
            sample = self._begin(population.classes, blocks.sample(), weights, population)
            check_kernel_range(population, self._engine.plan)
            self._engine.native.reserve_ids(population.rows)
            supply = BlockSupply(blocks.xs, blocks.ys, population, 0)
            failures += self._run(client, supply, call)
            self._warn_if_constant(self._engine.batch(sample), sample)
        return self

    @on_draft
    def _fit_from(
        self, source: Any, classes: ArrayLike | None, call: Call, failures: list[OSError]
    ) -> Self:
        self._check_call(call)
        ends = check_source(source)
        named = getattr(source, "classes", None) if classes is None else classes
        if named is None:
            raise ValueError(
                "fit_source needs all labels that may come: give them as classes, or let the "
                "source name them in source.classes."
            )
        with connected(self.client) as client:
            some = source.read(sample_rows(source, ends[-1], SAMPLE))[0]
            self._begin(np.unique(np.asarray(named)), some)
            self._engine.native.reserve_ids(ends[-1])
            published = Published(client, source)
            try:
                failures += self._run(client, SourceSupply(source, ends, published, 0), call)
            finally:
                published.drop()
        return self

    @on_draft
    def _learn_blocks(self, X: Any, y: Any, classes: ArrayLike | None) -> Self:
        self._check_call(Call())
        X, y = check_collections(X, y)
        with connected(self.client) as client:
            blocks = Blocks(client, X, y)
            new = not hasattr(self, "_engine")
            self._meet(blocks, classes)
            check_kernel_range(blocks.population, self._engine.plan)
            native = self._engine.native
            first, rows = native.next_id, blocks.population.rows
            native.reserve_ids(first + rows)
            self._step_aside()
            supply = BlockSupply(blocks.xs, blocks.ys, blocks.population, first)
            self._run(client, supply, Call(warm=new, complete=False))
        return self

    # -- parts ---------------------------------------------------------------------------------

    def _check_call(self, call: Call) -> None:
        """Check parameters and arguments before connecting to a cluster."""
        check_params(self)
        check_arguments(_RUN_RULES, sift=call.sift, checkpoint_minutes=call.minutes)
        name = type(self).__name__
        for parameter, expected, why in _UNSUPPORTED:
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
        rule, size = self._selection()
        if rule != "random" and size is None:
            raise ValueError(
                "pool_size=None compares all rows before each one is learned, which requires them "
                "in memory. Set pool_size to an integer."
            )

    def _begin(
        self,
        classes: Any,
        sample: Any,
        weights: dict[Any, float] | None = None,
        population: Population | None = None,
    ) -> Any:
        """Set classes, weights, gamma and precision, and create an engine; return the sample."""
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {plain(classes[0])!r}; training requires rows of two "
                "classes or more."
            )
        X, _ = check_features(self, sample, reset=True)
        self._grows = self._weighs = False
        shaped: Any = self._copy()  # with numeric weights and gamma
        if weights is not None:
            shaped.class_weight = weights
        if population is not None and isinstance(self.gamma, str) and self.gamma == "scale":
            variance = population.variance()
            shaped.gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        shaped._set_classes(np.asarray(classes), None)
        self._engine = shaped._make_engine(X, np.ones(X.shape[0]), streaming=False)
        for name in ("classes_", "_index", "_balance", "_costs"):
            setattr(self, name, getattr(shaped, name))
        return X

    def _meet(self, blocks: Blocks, classes: ArrayLike | None) -> None:
        """Prepare a new or fitted model for more rows and their classes."""
        population = blocks.population
        if not hasattr(self, "_engine"):
            named = population.classes if classes is None else np.unique(np.asarray(classes))
            check_known(population, named)
            self._begin(named, blocks.sample(), population=population)
            self._grows = self._may_grow and classes is None
            return
        check_features(self, blocks.sample(), reset=False)
        self._check_classes(classes, first=False)
        if self._grows and not np.isin(population.classes, self.classes_).all():
            self._grow_classes(population.classes)
        check_known(population, self.classes_)

    # -- the rounds ----------------------------------------------------------------------------

    def _run(self, client: Client, supply: Supply, call: Call) -> list[OSError]:
        """Evaluate and learn all rows; if the last checkpoint fails, return the error."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        file = kept = None
        if call.checkpoint is not None:
            rows = supply.fingerprint()
            file = RoundCheckpoint(call.checkpoint, call.minutes, self, rows, call.sift)
            kept = file.read_standing()
        if kept is not None and kept.done:
            self.rounds_ = []
            return []
        seed = seed if kept is None else kept.seed
        rules = self._judging(call, seed)
        with Progress(call.passes * len(supply), int(self.verbose)) as progress:
            conductor = Conductor(client, self, supply, rules, file, progress, call.passes)
            try:
                epochs = self._pass_over(conductor, supply, call, kept)
            finally:
                conductor.close()
        self.rounds_ = [asdict(service) for service in conductor.services]
        self._warn_if_far()
        if file is None:
            return []
        nothing = self._nothing(rules)
        last = Standing(seed, epochs, 0, nothing, conductor.sketch, done=True)
        failure = file.write_standing(last, last=True)
        return [] if failure is None else [failure]

    def _pass_over(
        self, conductor: Conductor, supply: Supply, call: Call, kept: Standing | None
    ) -> int:
        """Make passes over all rows; return the number of passes.

        Additional passes follow as long as a sample shows that the model has missed many rows.
        """
        course = Course(conductor.rules.seed, self.round_rows, bool(self.shuffle))
        epoch = 0 if kept is None else kept.epoch
        conductor.sketch = None if kept is None else kept.sketch
        while True:
            rounds = supply.rounds(course, epoch, warm=call.warm and epoch == 0)
            if not call.complete:
                rounds = (replace(one, finish=False) for one in rounds)
            conductor.run(rounds, kept)
            kept, epoch = None, epoch + 1
            if epoch < call.passes:
                continue
            looks = call.complete and conductor.rules.rule == "random"
            if not looks or epoch >= call.passes + MOST_EXTRA or not conductor.has_missed(epoch):
                return epoch

    def _judging(self, call: Call, seed: int) -> Rules:
        """Return the rules by which a run evaluates rows."""
        plan = self._engine.plan
        rule, size = self._selection()
        return Rules(
            classes=self.classes_,
            features=plan.features,
            problems=plan.problems,
            pairs=plan.pairs,
            rule=rule,
            pool_size=size,
            loss=float(call.sift),
            seed=seed,
            sampled=max(1, min(SAMPLED, self.round_rows // FORESEEN if plan.foresees else SAMPLED)),
            version=installed_version(),
        )

    @staticmethod
    def _nothing(rules: Rules) -> Picks:
        """Return picks without rows."""
        return Picks(
            X=np.empty((0, rules.features), dtype=np.float32),
            labels=np.empty(0, dtype=np.int32),
            ids=np.empty(0, dtype=np.int64),
            wanted=np.empty((0, rules.problems), dtype=np.uint8),
            sampled=np.empty(0, dtype=bool),
            tally=Tally(),
        )
