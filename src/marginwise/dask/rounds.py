"""The driver's loop: publish the model, collect what workers pick, learn it.

Round t is judged by the model as it was after round t - 2, so that workers judge one round while
the driver learns the round before. What they return is applied in the order of the plan. The model
is thus a function of the data, the plan and the seed.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

import numpy as np
from distributed import Client, Future

from marginwise._training.loop import AUDITED, FEW_MISSED, LEAST_AUDITED, MISSED
from marginwise._training.sift import STALE, WORTH_A_SKETCH, Sketch, Tally
from marginwise.dask.checkpoint import RoundCheckpoint, Standing
from marginwise.dask.faults import Batch, Collector, Published, Task
from marginwise.dask.learning import joined, learn_round
from marginwise.dask.plan import Piece, Round
from marginwise.dask.snapshot import Snapshot, take_snapshot
from marginwise.dask.supply import Supply
from marginwise.dask.tasks import Picks, Rules, audit, draw_sketch, sift, take_labelled
from marginwise.progress import Progress

DELAY = 2  # rounds that are judged or learned at a time
DRAWN, DRAWN_BLOCKS = 8192, 8  # rows that a sketch is fitted to, and the blocks they are from
AUDITED_BLOCKS = 64
URGENT = 10  # priority of tasks that the driver waits for


@dataclass
class Service:
    """What a round has cost: seconds, and counts of rows."""

    epoch: int
    round: int
    rows: int
    returned: int = 0  # rows
    members: int = 0  # after it
    bytes: int = 0  # of the snapshot that judged it
    read: float = 0.0  # by workers, all together
    score: float = 0.0  # likewise
    slowest: float = 0.0  # task
    wait: float = 0.0  # of the driver, for answers
    learn: float = 0.0
    ship: float = 0.0  # to take and publish the snapshot after it
    tally: Tally = field(default_factory=Tally)


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
    file : RoundCheckpoint or None
        Where to write the state from time to time.
    progress : Progress
        Where to show it.
    passes : int
        Passes over the rows that are planned, and shown.
    """

    def __init__(
        self,
        client: Client,
        model: Any,
        supply: Supply,
        rules: Rules,
        file: RoundCheckpoint | None,
        progress: Progress,
        passes: int,
    ) -> None:
        self._client = client
        self._model = model
        self._supply = supply
        self.rules = rules
        self._file = file
        self._progress = progress
        self._passes = passes
        self._collector = Collector(client)
        self._token = uuid.uuid4().hex[:12]
        self._flying: deque[tuple[Round, Batch, Published]] = deque()
        self._drawing: Batch | None = None
        self.sketch: Sketch | None = None
        self.services: list[Service] = []
        self.tally = Tally()

    @property
    def repeated(self) -> int:
        """How many tasks were submitted again."""
        return self._collector.repeated

    # -- the loop ------------------------------------------------------------------------------

    def run(self, rounds: Iterator[Round], kept: Standing | None = None) -> None:
        """Judge and learn the rows of a pass; continue where `kept` was written."""
        try:
            if kept is None:
                self._submit(list(islice(rounds, DELAY)))
            else:
                current = next(one for one in rounds if one.number == kept.round)
                self._submit(list(islice(rounds, DELAY - 1)))
                self._learn(current, kept.picks, Service(*_outline(current)))
                self._submit(list(islice(rounds, 1)))
            while self._flying:
                self._learn_next()
                self._submit(list(islice(rounds, 1)))
        finally:
            self._drop_tasks()

    def _drop_tasks(self) -> None:
        while self._flying:
            _, batch, _ = self._flying.popleft()
            batch.cancel()
        if self._drawing is not None:
            self._drawing.cancel()
            self._drawing = None

    def _learn_next(self) -> None:
        """Collect what was picked of the oldest round, and learn it."""
        current, batch, published = self._flying.popleft()
        service = Service(*_outline(current))
        waited = self._collector.waited
        picks: list[Picks] = self._collector.collect(batch)
        service.wait = self._collector.waited - waited
        self._count(service, picks, published.value)
        together = joined(picks)
        if self._file is not None and time.monotonic() >= self._file.due:
            self._write(current, together)
        self._learn(current, together, service)

    def _learn(self, current: Round, picks: Picks, service: Service) -> None:
        began = time.monotonic()
        learn_round(self._model, current, picks, self.rules.rule)
        service.learn = time.monotonic() - began
        engine = self._model._engine
        service.members = engine.native.size
        self.services.append(service)
        planned = len(current) if current.epoch < self._passes else 0
        self._progress.learned(planned, engine.native.size, engine.delta)

    def _write(self, current: Round, picks: Picks) -> None:
        assert self._file is not None
        standing = Standing(self.rules.seed, current.epoch, current.number, picks, self.sketch)
        self._file.write_standing(standing, last=False)

    def _count(self, service: Service, picks: Sequence[Picks], snapshot: Snapshot | None) -> None:
        """Note what a round has cost, and what was counted."""
        for one in picks:
            service.read += one.read_seconds
            service.score += one.score_seconds
            service.slowest = max(service.slowest, one.read_seconds + one.score_seconds)
            service.returned += len(one)
            _add(service.tally, one.tally)
        self._collector.note(service.slowest)
        service.bytes = 0 if snapshot is None else snapshot.nbytes
        _add(self.tally, service.tally)

    # -- tasks ---------------------------------------------------------------------------------

    def _publish(self) -> Published:
        """Make a snapshot of the model available to all workers."""
        snapshot: Snapshot | None = None
        if self._model._engine.native.size:
            snapshot = take_snapshot(self._model._engine, self.sketch)
            snapshot = None if snapshot.sees_nothing() else snapshot
        published = Published(self._client, snapshot)
        if snapshot is not None:
            published()
        return published

    def _submit(self, coming: Sequence[Round]) -> None:
        """Have rounds judged by the model as it is."""
        if not coming:
            return
        began = time.monotonic()
        self._take_sketch()
        published = self._publish()
        for one in coming:
            tasks = [
                self._task(self._supply.name(piece), sift, self._judging(piece, published))
                for piece in one.pieces
            ]
            self._flying.append((one, self._collector.begin(tasks), published))
        if published.value is not None:
            self._begin_sketch(published)
        if self.services:
            self.services[-1].ship = time.monotonic() - began

    def _judging(self, piece: Piece, published: Published) -> Callable[[], list[Any]]:
        def arguments() -> list[Any]:
            snapshot = None if published.value is None else published()
            return [piece, self.rules, snapshot, *self._supply.held(piece)]

        return arguments

    def _task(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Callable[[], list[Any]],
        priority: int = 0,
    ) -> Task:
        """Return a task; its arguments are found when it is submitted, the first time or again."""

        def submit(workers: list[str] | None) -> Future:
            key = f"marginwise-{function.__name__}-{self._token}-{uuid.uuid4().hex[:12]}"
            return self._client.submit(
                function, *arguments(), key=key, workers=workers, priority=priority, pure=False
            )

        return Task(name, submit)

    # -- the sketch ----------------------------------------------------------------------------

    def _begin_sketch(self, published: Published) -> None:
        """Have a sketch of the model drawn, if rows are sifted by one and it is out of date.

        It judges rows from the next snapshot on.
        """
        engine = self._model._engine
        size, inserted = engine.native.size, engine.counters["inserted"]
        if not self.rules.loss or engine.plan.sparse or size < WORTH_A_SKETCH:
            return
        if self.sketch is not None and inserted - self.sketch.inserted <= STALE * size:
            return
        pieces = self._supply.sample([self.rules.seed, inserted, 2], DRAWN, DRAWN_BLOCKS)

        def arguments() -> list[Any]:
            parts = [
                self._client.submit(
                    take_labelled,
                    piece,
                    self.rules,
                    *self._supply.held(piece),
                    pure=False,
                    priority=URGENT,
                )
                for piece in pieces
            ]
            return [self.rules, published(), inserted, parts]

        task = self._task("the sketch of the model", draw_sketch, arguments, URGENT)
        self._drawing = self._collector.begin([task])

    def _take_sketch(self) -> None:
        if self._drawing is not None:
            drawing, self._drawing = self._drawing, None
            (self.sketch,) = self._collector.collect(drawing)
            self.tally.sketches += 1

    # -- the audit -----------------------------------------------------------------------------

    def has_missed(self, epoch: int) -> bool:
        """Return whether the model has missed many rows, judged by a random sample of all rows."""
        rows = min(AUDITED, max(LEAST_AUDITED, len(self._supply) // 32))
        published = self._publish()
        if published.value is None:
            return False
        pieces = self._supply.sample([self.rules.seed, epoch, 4], rows, AUDITED_BLOCKS)
        tasks = [
            self._task(self._supply.name(piece), audit, self._judging(piece, published))
            for piece in pieces
        ]
        try:
            counts = np.sum(self._collector.collect(self._collector.begin(tasks)), axis=0)
        finally:
            self._drop_tasks()
        return bool((counts[1] > np.maximum(MISSED * counts[0], FEW_MISSED)).any())


def _outline(current: Round) -> tuple[int, int, int]:
    return current.epoch, current.number, len(current)


def _add(total: Tally, more: Tally) -> None:
    for item in fields(Tally):
        setattr(total, item.name, getattr(total, item.name) + getattr(more, item.name))
