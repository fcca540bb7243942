"""A discrete-event simulation of training on Dask: W workers, one driver, a network.

It follows the loop of `marginwise.dask`. Rounds 0 and 1 are judged before there is a model. The
driver collects the answers of round t, learns them, and publishes a snapshot, by which round t + 2
is judged. A round consists of tasks, which workers take in order. A worker that takes its first
task of a round needs the snapshot of the round, and unpacks it.

Processes that compute share `cores`, if that is given: where more of them compute than there are
cores, all become slower alike. Transfers take time, but no core.
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
    """What one round costs.

    Parameters
    ----------
    tasks : tuple of float
        Seconds in which a worker reads and scores the rows of each task.
    learn : float
        Seconds in which the driver learns the rows that were picked.
    ship : float, default=0.0
        Seconds in which the driver prepares the snapshot that follows, and submits tasks.
    unpack : float, default=0.0
        Seconds in which a worker unpacks the snapshot that judges the round.
    snapshot : float, default=0.0
        Bytes of the snapshot that judges the round.
    answers : float, default=0.0
        Bytes of the rows that were picked.
    """

    tasks: tuple[float, ...]
    learn: float
    ship: float = 0.0
    unpack: float = 0.0
    snapshot: float = 0.0
    answers: float = 0.0


@dataclass(frozen=True)
class Network:
    """What it takes to move data.

    Parameters
    ----------
    bandwidth : float, default=inf
        Bytes per second of each machine.
    latency : float, default=0.0
        Seconds until a message arrives.
    hops : int, default=2
        Transfers between driver and worker: data pass through the scheduler.
    fan_out : int, default=50
        Workers that fetch a snapshot from one other at a time: Dask's limit on connections.
    """

    bandwidth: float = math.inf
    latency: float = 0.0
    hops: int = 2
    fan_out: int = 50

    def transfer(self, size: float) -> float:
        """Return the seconds in which so many bytes travel between driver and worker."""
        return self.hops * (self.latency + size / self.bandwidth)

    def arrivals(self, workers: int, size: float) -> list[float]:
        """Return when each worker has a snapshot, in seconds after the first one has it.

        Those that have it share their bandwidth between up to `fan_out` workers each.
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
    """What a simulated run took.

    Parameters
    ----------
    seconds : float
        Time from the first task to the last round that is learned.
    driver : float
        Seconds in which the driver learned, or published snapshots.
    workers : float
        Seconds in which workers computed, all together.
    waits : list of float
        Seconds in which the driver waited for each round.
    """

    seconds: float = 0.0
    driver: float = 0.0
    workers: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def utilisation(self) -> float:
        """The share of the time in which the driver is busy."""
        return self.driver / self.seconds if self.seconds else 0.0


class Clock:
    """Two calendars: of jobs that compute and share cores, and of delays.

    All jobs that compute advance at one speed, so that the first to end is the one with the least
    work left. `_worked` is the work that a job would have done that had begun at time 0.

    Parameters
    ----------
    cores : int or None
        Cores that jobs share; None for one per job.
    """

    def __init__(self, cores: int | None) -> None:
        self._cores = math.inf if cores is None else cores
        self.now = 0.0
        self._worked = 0.0
        self._jobs: list[tuple[float, int, Callable[[], None]]] = []
        self._delays: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def compute(self, seconds: float, then: Callable[[], None]) -> None:
        """Call a function after a job of so many seconds on a core of its own."""
        heapq.heappush(self._jobs, (self._worked + seconds, next(self._number), then))

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        """Call a function after some time."""
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
        """Submit the first rounds, and wait for the first of them."""
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
        """Let a worker begin a task, once it has the snapshot of the round."""
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
        What each round costs.
    workers : int
        Number of workers, each of which runs one task at a time.
    network : Network, default=None
        By default, transfers take no time.
    cores : int, default=None
        Cores that the driver and all workers share. By default, each has its own.
    dispatch : float, default=0.0
        Seconds that the scheduler needs for each task.

    Returns
    -------
    outcome : Outcome
        What the run took.
    """
    clock = Clock(cores)
    simulation = Simulation(rounds, workers, network or Network(), clock, dispatch)
    simulation.start()
    clock.run()
    return simulation.outcome
