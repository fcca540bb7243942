"""The driver's loop: publish the model, collect what workers pick, learn it.

Round t is judged by the model as it was after round t - 2, so that workers judge one round while
the driver learns the round before. What they return is applied in the order of the plan. The model
is thus a function of the data, the plan and the seed.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from distributed import Client, Future

from marginwise._arrays import Ints, Labels
from marginwise._engine.engine import Engine
from marginwise._training.loop import ArrayFeed, EveryRow, LookAhead, SLICE_SECONDS, Step, Trainer
from marginwise._training.sift import Flags, Tally
from marginwise.dask.faults import Batch, Collector, Published, Task
from marginwise.dask.plan import Piece, Round
from marginwise.dask.snapshot import Snapshot, take_snapshot
from marginwise.dask.supply import Supply, stacked
from marginwise.dask.tasks import Picks, Rules

DELAY = 2  # rounds that are judged or learned at a time


@dataclass
class Service:
    """How long the parts of a round took, in seconds, and what was counted."""

    round: int
    rows: int
    returned: int = 0
    members: int = 0
    bytes: int = 0  # of the snapshot that judged it
    read: float = 0.0  # by workers, all together
    score: float = 0.0  # likewise
    wait: float = 0.0  # of the driver, for answers
    learn: float = 0.0
    ship: float = 0.0  # to take and publish the snapshot after it
    tally: Tally = field(default_factory=Tally)


class RoundFeed(ArrayFeed):
    """The rows of a round that were picked, as the training loop reads them.

    Parameters
    ----------
    model : KernelClassifier
        The estimator that learns them.
    picks : sequence of Picks
        What workers returned, in the order of the plan.
    """

    labels: Labels
    wanted: Flags
    sampled: Ints

    def __init__(self, model: Any, picks: Sequence[Picks]) -> None:
        ids = np.concatenate([one.ids for one in picks])
        _, first = np.unique(ids, return_index=True)
        kept = np.sort(first)
        X = stacked([one.X for one in picks if len(one)] or [picks[0].X])
        self.labels = np.concatenate([one.labels for one in picks])
        self.wanted = np.concatenate([one.wanted for one in picks])
        self.sampled = np.concatenate([one.sampled for one in picks])
        if len(kept) < len(ids):
            X, self.labels, ids = X[kept], self.labels[kept], ids[kept]
            self.wanted, self.sampled = self.wanted[kept], self.sampled[kept]
        self.ids = ids
        costs = model._penalties()[self.labels]
        self.batch = model._new_rows(X, self.labels, costs, ids)

    def __len__(self) -> int:
        return len(self.ids)


class Ahead(LookAhead):
    """Looks ahead among the picked rows of a round, as `fit` does among all rows."""


class Wanted(EveryRow):
    """Learns the picked rows of a round in the problems that want them.

    Parameters
    ----------
    wanted : ndarray of shape (rows, problems)
        Which problems those are.
    """

    def __init__(self, wanted: Flags) -> None:
        self._wanted = np.ascontiguousarray(wanted)

    def choose(self, engine: Engine, batch: Any, rows: Ints) -> Ints:
        chosen = np.flatnonzero(self._wanted.any(axis=1)).astype(np.int64)
        self._wanted = np.ascontiguousarray(self._wanted[chosen])
        return chosen

    def learn(self, engine: Engine, batch: Any, rows: Ints) -> int:
        wanted = self._wanted[len(self._wanted) - len(rows) :]
        return engine.native.learn_wanted(batch, rows, wanted, SLICE_SECONDS)


class Conductor:
    """Runs the rounds of a plan.

    Parameters
    ----------
    client : Client
        The connection to the cluster.
    model : KernelClassifier
        The draft of the estimator that learns.
    supply : Supply
        The rows.
    rules : Rules
        How they are judged.
    """

    def __init__(self, client: Client, model: Any, supply: Supply, rules: Rules) -> None:
        self._client = client
        self._model = model
        self._supply = supply
        self._rules = rules
        self._collector = Collector(client)
        self._token = uuid.uuid4().hex[:12]
        self._flying: deque[tuple[Round, Batch, Published]] = deque()
        self.services: list[Service] = []
        self.tally = Tally()

    # -- the loop ------------------------------------------------------------------------------

    def run(self, rounds: Iterator[Round]) -> None:
        """Judge and learn the rows of all rounds."""
        try:
            published = self._publish()
            for coming in _first(rounds, DELAY):
                self._submit(coming, published)
            while self._flying:
                self._learn_next()
                coming = next(rounds, None)
                if coming is not None:
                    self._submit(coming, self._publish(self.services[-1]))
        finally:
            while self._flying:
                _, batch, _ = self._flying.popleft()
                batch.cancel()

    def _learn_next(self) -> None:
        """Collect what was picked of the oldest round, and learn it."""
        current, batch, published = self._flying.popleft()
        service = Service(current.number, len(current))
        waited = self._collector.waited
        picks: list[Picks] = self._collector.collect(batch)
        service.wait = self._collector.waited - waited
        self._count(service, picks, published.value)
        began = time.monotonic()
        self._learn(current, picks)
        service.learn = time.monotonic() - began
        service.members = self._model._engine.native.size
        self.services.append(service)

    def _learn(self, current: Round, picks: Sequence[Picks]) -> None:
        feed = RoundFeed(self._model, picks)
        trainer: Trainer = self._model._trainer
        finish = current.finish and trainer.finish_at_end
        if len(feed) == 0:
            if finish:
                self._quiet(trainer).finish()
            return
        rows = np.arange(len(feed), dtype=np.int64)
        chooser: EveryRow = (
            LookAhead(feed.labels) if self._rules.rule == "random" else Wanted(feed.wanted)
        )
        step = Step(rows, finish, look_again=True, fresh=current.epoch == 0)
        self._quiet(trainer).train(feed, [step], chooser, total=len(rows), in_chunks=True)

    @staticmethod
    def _quiet(trainer: Trainer) -> Trainer:
        from dataclasses import replace

        return replace(trainer, verbose=0)

    def _count(self, service: Service, picks: Sequence[Picks], snapshot: Snapshot | None) -> None:
        """Note what a round has cost, and what was counted."""
        for one in picks:
            service.read += one.read_seconds
            service.score += one.score_seconds
            service.returned += len(one)
            self._collector.note(one.read_seconds + one.score_seconds)
            _add(service.tally, one.tally)
        service.bytes = 0 if snapshot is None else snapshot.__sizeof__()
        _add(self.tally, service.tally)

    # -- tasks ---------------------------------------------------------------------------------

    def _publish(self, service: Service | None = None) -> Published:
        """Make a snapshot of the model available to all workers."""
        began = time.monotonic()
        snapshot: Snapshot | None = None
        if self._model._engine.native.size:
            snapshot = take_snapshot(self._model._engine, None)
            snapshot = None if snapshot.sees_nothing() else snapshot
        published = Published(self._client, snapshot)
        if snapshot is not None:
            published()
        if service is not None:
            service.ship = time.monotonic() - began
        return published

    def _submit(self, coming: Round, published: Published) -> None:
        tasks = [
            self._task(coming, number, piece, published)
            for number, piece in enumerate(coming.pieces)
        ]
        self._flying.append((coming, self._collector.begin(tasks), published))

    def _task(self, coming: Round, number: int, piece: Piece, published: Published) -> Task:
        def submit(attempt: int, workers: list[str] | None) -> Future:
            function, needed = self._supply.call(piece)
            snapshot = None if published.value is None else published()
            return self._client.submit(
                function,
                piece,
                self._rules,
                snapshot,
                *needed,
                key=f"marginwise-sift-{self._token}-{coming.number}-{number}-{attempt}",
                workers=workers,
                pure=False,
            )

        return Task(self._supply.name(piece), submit)


def _first(rounds: Iterator[Round], count: int) -> Iterator[Round]:
    for _ in range(count):
        coming = next(rounds, None)
        if coming is None:
            return
        yield coming


def _add(total: Tally, more: Tally) -> None:
    for item in fields(Tally):
        setattr(total, item.name, getattr(total, item.name) + getattr(more, item.name))


def services_as_dicts(services: Sequence[Service]) -> list[dict[str, Any]]:
    """Return services as plain values."""
    return [asdict(service) for service in services]
