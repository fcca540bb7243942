"""The driver's loop: publish the model, collect the rows that workers pick, and learn them.

Round t is evaluated with the model after round t - 2, so that workers evaluate one round while the
driver learns the previous one. The driver learns results in the order of the plan. The model is
therefore a function of the data, the plan and the seed.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future as Promise
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

import numpy as np
from distributed import Client, Future

from marginwise._training.loop import AUDITED, LEAST_AUDITED, class_weights, worth_a_look
from marginwise._training.sift import STALE, WORTH_A_SKETCH, Sketch, Tally
from marginwise.dask.checkpoint import RoundCheckpoint, Standing
from marginwise.dask.faults import Batch, Collector, Published, Task
from marginwise.dask.learning import joined, learn_round
from marginwise.dask.plan import Piece, Round
from marginwise.dask.snapshot import Snapshot, take_snapshot
from marginwise.dask.supply import Supply
from marginwise.dask.tasks import Picks, Rules, audit, draw_sketch, sift, take_labelled
from marginwise.progress import Progress

DELAY = 2  # rounds that are evaluated or learned at the same time
DRAWN, DRAWN_BLOCKS = 8192, 8  # rows to which a sketch is fitted, and the number of their blocks
AUDITED_BLOCKS = 64
URGENT = 10  # priority of tasks that the driver waits for


@dataclass
class Flight:
    """A round that workers are evaluating.

    Parameters
    ----------
    round : Round
        The round.
    published : Published
        Snapshot that evaluates the round.
    batch : concurrent.futures.Future
        Tasks of the round, available once the snapshot is published.
    """

    round: Round
    published: Published
    batch: Promise[Batch]


@dataclass
class Service:
    """Cost of a round: seconds, and counts of rows."""

    epoch: int
    round: int
    rows: int
    returned: int = 0  # rows
    members: int = 0  # stored examples after the round
    bytes: int = 0  # size of the snapshot that evaluated the round
    read: float = 0.0  # sum over all tasks
    score: float = 0.0  # sum over all tasks
    slowest: float = 0.0  # longest task
    wait: float = 0.0  # driver waiting for results
    learn: float = 0.0
    ship: float = 0.0  # driver taking the snapshot after the round
    publish: float = 0.0  # another thread publishing that snapshot
    tally: Tally = field(default_factory=Tally)


class Conductor:
    """Runs the rounds of a plan.

    Parameters
    ----------
    client : Client
        The connection to the cluster.
    model : KernelClassifier
        Draft of the estimator that is trained.
    supply : Supply
        The rows.
    rules : Rules
        Rules by which rows are evaluated.
    file : RoundCheckpoint or None
        Checkpoint to write at intervals.
    progress : Progress
        Display of the progress.
    passes : int
        Planned number of passes over the rows, for the progress display.
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
        self._flying: deque[Flight] = deque()
        self._drawing: Promise[Batch] | None = None
        self._shipper = ThreadPoolExecutor(1)  # publishes snapshots while the driver learns
        self.sketch: Sketch | None = None
        self.services: list[Service] = []
        self.tally = Tally()

    @property
    def repeated(self) -> int:
        """Number of tasks that were submitted again."""
        return self._collector.repeated

    # -- the loop ------------------------------------------------------------------------------

    def run(self, rounds: Iterator[Round], kept: Standing | None = None) -> None:
        """Evaluate and learn the rows of a pass; continue from `kept` if it is given."""
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
        flying = [flight.batch for flight in self._flying]
        for promise in [*flying, *([self._drawing] if self._drawing else [])]:
            promise.cancel()
            promise.add_done_callback(_drop)
        self._flying.clear()
        self._drawing = None

    def close(self) -> None:
        """Stop the thread that publishes snapshots."""
        self._shipper.shutdown(wait=False, cancel_futures=True)

    def _learn_next(self) -> None:
        """Collect the picked rows of the oldest round, and learn them."""
        flight = self._flying.popleft()
        current = flight.round
        service = Service(*_outline(current))
        began = time.monotonic()
        picks: list[Picks] = self._collector.collect(flight.batch.result())
        service.wait = time.monotonic() - began
        self._count(service, picks, flight.published.value)
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
        """Add the times and counts of picks to the cost of a round."""
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

    def _snapshot(self) -> Published:
        """Return a snapshot of the model, not yet published."""
        snapshot: Snapshot | None = None
        if self._model._engine.native.size:
            snapshot = take_snapshot(self._model._engine, self.sketch)
            snapshot = None if snapshot.sees_nothing() else snapshot
        return Published(self._client, snapshot)

    def _submit(self, coming: Sequence[Round]) -> None:
        """Submit rounds for evaluation with the current model."""
        if not coming:
            return
        began = time.monotonic()
        service = self.services[-1] if self.services else None
        self._take_sketch()
        published = self._snapshot()
        for one in coming:
            tasks = self._tasks(sift, one.pieces, published)
            promise = self._shipper.submit(self._ship, tasks, published, service)
            self._flying.append(Flight(one, published, promise))
        if published.value is not None:
            self._begin_sketch(published)
        if service is not None:
            service.ship += time.monotonic() - began

    def _ship(self, tasks: Sequence[Task], published: Published, service: Service | None) -> Batch:
        """Publish a snapshot, and submit the tasks that use it."""
        began = time.monotonic()
        if published.value is not None:
            published()
        batch = self._collector.begin(tasks)
        if service is not None:
            service.publish += time.monotonic() - began
        return batch

    def _tasks(
        self, function: Callable[..., Any], pieces: Sequence[Piece], published: Published
    ) -> list[Task]:
        """Return one task per piece."""
        return [
            self._task(self._supply.name(piece), function, self._judging(piece, published))
            for piece in pieces
        ]

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
        """Return a task; `arguments` is called at every submission, because futures may be lost."""

        def submit(workers: list[str] | None) -> Future:
            key = f"marginwise-{function.__name__}-{self._token}-{uuid.uuid4().hex[:12]}"
            return self._client.submit(
                function, *arguments(), key=key, workers=workers, priority=priority, pure=False
            )

        return Task(name, submit)

    # -- the sketch ----------------------------------------------------------------------------

    def _begin_sketch(self, published: Published) -> None:
        """Submit a new sketch of the model if `sift` requires one and the current one is stale.

        The new sketch is used from the next snapshot on.
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
        self._drawing = self._shipper.submit(self._collector.begin, [task])

    def _take_sketch(self) -> None:
        if self._drawing is not None:
            drawing, self._drawing = self._drawing, None
            (self.sketch,) = self._collector.collect(drawing.result())
            self.tally.sketches += 1

    # -- the audit -----------------------------------------------------------------------------

    def has_missed(self, epoch: int) -> bool:
        """Return whether the model misses much loss, estimated on a random sample of all rows."""
        rows = min(AUDITED, max(LEAST_AUDITED, len(self._supply) // 32))
        published = self._snapshot()
        if published.value is None:
            return False
        pieces = self._supply.sample([self.rules.seed, epoch, 4], rows, AUDITED_BLOCKS)
        batch = self._collector.begin(self._tasks(audit, pieces, published))
        counts, loss = np.sum(self._collector.collect(batch), axis=0)
        # A pass costs the driver little, because workers evaluate its rows.
        most = worth_a_look(len(self._supply), self._model._engine.native.size) / 3
        return bool(class_weights(counts) @ loss >= most * counts.sum())


def _drop(promise: Promise[Batch]) -> None:
    """Release tasks that were submitted before the promise could be cancelled."""
    if not promise.cancelled() and promise.exception() is None:
        promise.result().cancel()


def _outline(current: Round) -> tuple[int, int, int]:
    return current.epoch, current.number, len(current)


def _add(total: Tally, more: Tally) -> None:
    for item in fields(Tally):
        setattr(total, item.name, getattr(total, item.name) + getattr(more, item.name))
