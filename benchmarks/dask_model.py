"""A discrete-event simulation of training on Dask: W workers, one driver, a network.

It follows the loop of `marginwise.dask`. Rounds 0 and 1 are judged before there is a model. The
driver collects the answers of round t, learns them, and publishes a snapshot that judges round
t + 2. A round consists of tasks, which workers take in order. Before its first task of a round, a
worker receives and unpacks the snapshot of the round.

If `cores` is given, computing processes share them: if there are more processes than cores, all
slow down equally. Transfers take time, but no core.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

DELAY = 2  # rounds that are judged or learned at a time, as in marginwise.dask


@dataclass(frozen=True)
class Round:
    """Costs of a round.

    Parameters
    ----------
    tasks : tuple of float
        Seconds that a worker needs to read and score the rows of each task.
    learn : float
        Seconds that the driver needs to learn the selected rows.
    ship : float, default=0.0
        Seconds that the driver needs to prepare the next snapshot and to submit tasks.
    unpack : float, default=0.0
        Seconds that a worker needs to unpack the snapshot that judges the round.
    snapshot : float, default=0.0
        Bytes of the snapshot that judges the round.
    answers : float, default=0.0
        Bytes of the selected rows.
    """

    tasks: tuple[float, ...]
    learn: float
    ship: float = 0.0
    unpack: float = 0.0
    snapshot: float = 0.0
    answers: float = 0.0


@dataclass(frozen=True)
class Network:
    """Speed of data transfers.

    Parameters
    ----------
    bandwidth : float, default=inf
        Bytes per second of each machine.
    latency : float, default=0.0
        Seconds from sending a message to its arrival.
    hops : int, default=2
        Transfers between driver and worker: data pass through the scheduler.
    fan_out : int, default=50
        Number of workers that fetch a snapshot from the same worker at a time, which Dask limits.
    """

    bandwidth: float = math.inf
    latency: float = 0.0
    hops: int = 2
    fan_out: int = 50

    def transfer(self, size: float) -> float:
        """Return the seconds that `size` bytes take between driver and worker."""
        return self.hops * (self.latency + size / self.bandwidth)

    def arrivals(self, workers: int, size: float) -> list[float]:
        """Return when each worker has a snapshot, in seconds after the first worker has it.

        Each worker that has the snapshot sends it to up to `fan_out` others, which share its
        bandwidth.
        """
        times, now = [0.0], 0.0
        while len(times) < workers:
            holders, missing = len(times), workers - len(times)
            each = min(self.fan_out, math.ceil(missing / holders))
            now += self.latency + each * size / self.bandwidth
            times += [now] * min(missing, holders * each)
        return times


@dataclass
class Outcome:
    """Result of a simulated run.

    Parameters
    ----------
    seconds : float
        Time from the first task until the last round is learned.
    driver : float
        Seconds in which the driver learned rows or published snapshots.
    workers : float
        Total seconds in which workers computed.
    waits : list of float
        Seconds in which the driver waited for each round.
    """

    seconds: float = 0.0
    driver: float = 0.0
    workers: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def utilisation(self) -> float:
        """Fraction of the time in which the driver is busy."""
        return self.driver / self.seconds if self.seconds else 0.0


class Clock:
    """Two calendars: of computing jobs, which share cores, and of delays.

    All computing jobs advance at the same speed, so the job with the least remaining work ends
    first. `_worked` is the work that a job started at time 0 would have done.

    Parameters
    ----------
    cores : int or None
        Cores that jobs share. With None, each job has its own.
    """

    def __init__(self, cores: int | None) -> None:
        self._cores = math.inf if cores is None else cores
        self.now = 0.0
        self._worked = 0.0
        self._jobs: list[tuple[float, int, Callable[[], None]]] = []
        self._delays: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def compute(self, seconds: float, then: Callable[[], None]) -> None:
        """Call a function after a job that takes `seconds` on a core of its own."""
        heapq.heappush(self._jobs, (self._worked + seconds, next(self._number), then))

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        """Call a function after `seconds`."""
        heapq.heappush(self._delays, (self.now + seconds, next(self._number), then))

    def run(self) -> None:
        """Advance from event to event until there are none."""
        while self._jobs or self._delays:
            speed = min(1.0, self._cores / len(self._jobs)) if self._jobs else 1.0
            ends = math.inf
            if self._jobs:
                ends = self.now + max(self._jobs[0][0] - self._worked, 0.0) / speed
            starts = self._delays[0][0] if self._delays else math.inf
            if starts <= ends:
                self._worked += (starts - self.now) * speed
                self.now, _, then = heapq.heappop(self._delays)
            else:
                self._worked, _, then = heapq.heappop(self._jobs)
                self.now = ends
            then()


class Simulation:
    """A run of some rounds; see `simulate`."""

    def __init__(
        self, rounds: Sequence[Round], workers: int, network: Network, clock: Clock, dispatch: float
    ) -> None:
        self._rounds, self._network, self._clock = rounds, network, clock
        self._dispatch = dispatch
        self._free = list(range(workers))  # a heap: the first worker takes the next task
        self._queue: deque[tuple[int, float]] = deque()
        self._open = [len(one.tasks) for one in rounds]
        self._published: dict[int, tuple[float, list[float]]] = {}
        self._unpacked: set[tuple[int, int]] = set()
        self._workers = workers
        self._awaited = -1  # the round that the driver waits for
        self._since = 0.0
        self.outcome = Outcome()

    def start(self) -> None:
        """Submit the first rounds, and wait for round 0."""
        for number in range(min(DELAY, len(self._rounds))):
            self._submit(number, judged=False)
        self._await(0)

    # -- the driver --------------------------------------------------------------------------------

    def _await(self, number: int) -> None:
        if number == len(self._rounds):
            self.outcome.seconds = self._clock.now
            return
        self._awaited, self._since = number, self._clock.now
        if self._open[number] == 0:
            self._collect()

    def _collect(self) -> None:
        number, self._awaited = self._awaited, -1
        self._clock.after(
            self._network.transfer(self._rounds[number].answers), lambda: self._learn(number)
        )

    def _learn(self, number: int) -> None:
        current, coming = self._rounds[number], number + DELAY
        self.outcome.waits.append(self._clock.now - self._since)
        work = current.learn + current.ship
        size = self._rounds[coming].snapshot if coming < len(self._rounds) else 0.0
        sent = self._network.transfer(size) if size else 0.0
        self.outcome.driver += sent
        began = self._clock.now

        def learned() -> None:
            self.outcome.driver += self._clock.now - began
            self._clock.after(sent, lambda: self._publish(number))

        self._clock.compute(work, learned)

    def _publish(self, number: int) -> None:
        if number + DELAY < len(self._rounds):
            self._submit(number + DELAY, judged=True)
        self._await(number + 1)

    def _submit(self, number: int, *, judged: bool) -> None:
        current = self._rounds[number]
        size = current.snapshot if judged else 0.0
        arrivals = self._network.arrivals(self._workers, size) if size else [0.0] * self._workers
        self._published[number] = self._clock.now, arrivals
        for k, seconds in enumerate(current.tasks):
            self._clock.after(k * self._dispatch, partial(self._enqueue, number, seconds))

    # -- the workers -------------------------------------------------------------------------------

    def _enqueue(self, number: int, seconds: float) -> None:
        self._queue.append((number, seconds))
        self._assign()

    def _assign(self) -> None:
        while self._free and self._queue:
            self._take(heapq.heappop(self._free), *self._queue.popleft())

    def _take(self, worker: int, number: int, seconds: float) -> None:
        """Start a task on a worker as soon as it has the snapshot of the round."""
        published, arrivals = self._published[number]
        if (worker, number) not in self._unpacked:
            self._unpacked.add((worker, number))
            seconds += self._rounds[number].unpack
        missing = max(published + arrivals[worker] - self._clock.now, 0.0)
        self._clock.after(missing, lambda: self._work(worker, number, seconds))

    def _work(self, worker: int, number: int, seconds: float) -> None:
        self.outcome.workers += seconds
        self._clock.compute(seconds, lambda: self._done(worker, number))

    def _done(self, worker: int, number: int) -> None:
        heapq.heappush(self._free, worker)
        self._open[number] -= 1
        if number == self._awaited and self._open[number] == 0:
            self._collect()
        self._assign()


def simulate(
    rounds: Sequence[Round],
    workers: int,
    *,
    network: Network | None = None,
    cores: int | None = None,
    dispatch: float = 0.0,
) -> Outcome:
    """Simulate a run.

    Parameters
    ----------
    rounds : sequence of Round
        Costs of each round.
    workers : int
        Number of workers, each of which runs one task at a time.
    network : Network, default=None
        Speed of transfers. By default, they take no time.
    cores : int, default=None
        Cores that the driver and all workers share. By default, each has its own.
    dispatch : float, default=0.0
        Seconds that the scheduler needs for each task.

    Returns
    -------
    outcome : Outcome
        Times of the run.
    """
    clock = Clock(cores)
    simulation = Simulation(rounds, workers, network or Network(), clock, dispatch)
    simulation.start()
    clock.run()
    return simulation.outcome
