"""Fault tolerance: lost workers, unresponsive workers, lost data, a lost scheduler.

The scheduler recomputes lost tasks. If it cannot, because it has lost data that a task needs, the
task is submitted again. Tasks are pure functions, so that a repeated task returns the same result.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from distributed import Client, Future, KilledWorker

from marginwise.dask.versions import installed_version
from marginwise.progress import log

LEAST_PATIENCE = 30.0  # seconds without an answer after which tasks are submitted again
PATIENCE = 20.0  # the same as a multiple of the longest task's duration; the maximum counts
SILENT = 60.0  # seconds without a heartbeat after which a worker is restarted
MOST_TRIES = 5  # per task
LOOK = 1.0  # seconds between checks of the connection


class ClusterError(RuntimeError):
    """Training cannot continue, because the cluster failed."""


def persevere(client: Client, call: Callable[[], Awaitable[Any]]) -> Any:
    """Return the result of a client call; retry if a worker is lost during the call."""
    for attempt in range(MOST_TRIES):
        check_connection(client)
        try:
            return _attended(client, call)
        except (OSError, TimeoutError) as error:  # includes Dask's connection errors
            last = error
        time.sleep(2.0**attempt / 4)
    raise ClusterError(
        f"the cluster did not answer {MOST_TRIES} times: {last}. The estimator is as it was before "
        "the call. Start workers and call again; with a checkpoint, training continues from it."
    ) from last


def _attended(client: Client, call: Callable[[], Awaitable[Any]]) -> Any:
    """Run a call on the client's event loop; if it takes long, look for silent workers."""

    async def made() -> Any:
        return await call()

    pending = asyncio.run_coroutine_threadsafe(made(), client.loop.asyncio_loop)
    try:
        while not concurrent.futures.wait([pending], timeout=LEAST_PATIENCE).done:
            check_connection(client)
            restart_silent(client)
        return pending.result()
    finally:
        pending.cancel()


def restart_silent(client: Client) -> None:
    """Restart workers that no longer send heartbeats; remove those that have no nanny.

    Dask does so only after `distributed.scheduler.worker-ttl`, five minutes by default. Until then,
    every task that needs a result of such a worker has to wait. A failure is logged, and the next
    call tries again.
    """
    pending = asyncio.run_coroutine_threadsafe(_restart_silent(client), client.loop.asyncio_loop)
    try:
        pending.result(timeout=LEAST_PATIENCE + LOOK)
    except Exception as error:
        log(f"could not restart silent Dask workers: {error!r}")
    finally:
        pending.cancel()


async def _restart_silent(client: Client) -> None:
    # Call the scheduler directly: Client.restart_workers refuses workers without a nanny.
    workers = (await client.scheduler.identity(n_workers=-1))["workers"]
    seen = {address: worker["last_seen"] for address, worker in workers.items()}
    limit = max(SILENT, 10 + len(workers) / 20)  # workers of large clusters send fewer heartbeats
    silent = [address for address in seen if max(seen.values()) - seen[address] > limit]
    if silent:
        await client.scheduler.restart_workers(
            workers=silent,
            timeout=LEAST_PATIENCE,
            wait_for_workers=False,
            on_error="return",
            stimulus_id=f"marginwise-silent-{time.time()}",
        )


def check_connection(client: Client) -> None:
    """Raise if there is no connection to the scheduler."""
    if client.status != "running":
        raise ClusterError(
            f"the connection to the scheduler was lost (the client is {client.status}). The "
            "estimator is as it was before the call. Connect to a scheduler and call again with "
            "the same arguments; with a checkpoint, training then continues from it."
        )


class Task:
    """A call on the cluster that is repeated if it is lost.

    Parameters
    ----------
    name : str
        Name of the data that it processes, for messages.
    submit : callable
        Submits the call and returns its future. Its argument is a list of the workers that may run
        the call, or None for any worker.
    """

    def __init__(self, name: str, submit: Callable[[list[str] | None], Future]) -> None:
        self.name = name
        self._submit = submit
        self.futures: list[Future] = []
        self.answer: Future | None = None

    def start(self, done: queue.SimpleQueue[Any], workers: list[str] | None = None) -> None:
        """Submit the call, for the first time or again."""
        future = self._submit(workers)
        self.futures.append(future)
        future.add_done_callback(lambda one: done.put((self, one)))

    def cancel(self) -> None:
        """Release the futures of the call."""
        for future in self.futures:
            future.release()


class Collector:
    """Collects the results of tasks.

    Parameters
    ----------
    client : Client
        The connection to the cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._longest = 0.0
        self.waited = 0.0  # seconds
        self.repeated = 0  # tasks that were submitted again

    def note(self, seconds: float) -> None:
        """Record the duration of a task."""
        self._longest = max(self._longest, seconds)

    @property
    def patience(self) -> float:
        """Seconds without an answer after which tasks are submitted again."""
        return max(LEAST_PATIENCE, PATIENCE * self._longest)

    def begin(self, tasks: Sequence[Task]) -> Batch:
        """Submit tasks, and return them as a batch to collect."""
        batch = Batch(tasks)
        for task in tasks:
            task.start(batch.done)
        return batch

    def collect(self, batch: Batch) -> list[Any]:
        """Wait for the results of a batch, and return them in the order of its tasks."""
        began = time.monotonic()
        try:
            while True:
                self._wait(batch)
                try:
                    return self._gather(batch)
                except Exception:
                    if not self._forget_lost(batch):
                        raise
        finally:
            self.waited += time.monotonic() - began
            batch.cancel()

    def _gather(self, batch: Batch) -> list[Any]:
        answers = [task.answer for task in batch.tasks]
        return list(persevere(self._client, lambda: self._client.gather(answers)))

    def _wait(self, batch: Batch) -> None:
        """Wait until every task has a result."""
        last = time.monotonic()
        while batch.open:
            try:
                task, future = batch.done.get(timeout=min(LOOK, self.patience))
            except queue.Empty:
                check_connection(self._client)
                if time.monotonic() - last > self.patience:
                    self._ask_others(batch)
                    last = time.monotonic()
                continue
            last = time.monotonic()
            if task.answer is None:
                self._take(batch, task, future)

    def _take(self, batch: Batch, task: Task, future: Future) -> None:
        """Handle a future that is done: a result, an error or a lost task."""
        if future.status == "finished":
            task.answer = future
        elif future.status == "error":
            self._raise(task, future.exception())
        else:
            check_connection(self._client)
            self._again(batch, task, None)

    def _again(self, batch: Batch, task: Task, workers: list[str] | None) -> None:
        if len(task.futures) >= MOST_TRIES:
            raise ClusterError(
                f"{task.name} was lost {MOST_TRIES} times: the cluster has lost its rows and "
                "cannot compute them again. Pass collections that are computed from files or "
                "arrays, not from scattered data, or add memory to the workers."
            )
        self.repeated += 1
        task.start(batch.done, workers)

    def _ask_others(self, batch: Batch) -> None:
        """Submit the open tasks again, to workers other than the unresponsive ones."""
        restart_silent(self._client)
        processing = persevere(self._client, self._client.processing)
        workers = list(processing)
        for task in batch.open:
            keys = {future.key for future in task.futures}
            silent = {worker for worker, held in processing.items() if keys & set(held)}
            others = [worker for worker in workers if worker not in silent]
            if others and len(task.futures) < MOST_TRIES:
                self._again(batch, task, others)

    def _forget_lost(self, batch: Batch) -> bool:
        """Submit tasks again whose results were lost in transit; return whether there were any."""
        check_connection(self._client)
        lost = [t for t in batch.tasks if t.answer is not None and t.answer.status != "finished"]
        for task in lost:
            task.answer = None
            self._again(batch, task, None)
        return bool(lost)

    def _raise(self, task: Task, error: BaseException | None) -> None:
        if isinstance(error, KilledWorker):
            raise ClusterError(
                f"{task.name}: the workers that worked on it died {error.allowed_failures + 1} "
                "times, most likely because they ran out of memory. Use smaller blocks, fewer "
                "threads per worker, or workers with more memory."
            ) from error
        if isinstance(error, ModuleNotFoundError) and str(error.name).startswith("marginwise"):
            raise ClusterError(
                f"{task.name}: a worker cannot import {error.name}. Install marginwise[dask]=="
                f"{installed_version()}, the version of this process, on all workers."
            ) from error
        assert error is not None
        error.add_note(f"It was raised by a worker, in a task of {task.name}.")
        raise error


class Batch:
    """Tasks that are collected together.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks, in the order of the returned results.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()

    @property
    def open(self) -> list[Task]:
        """The tasks that have no result yet."""
        return [task for task in self.tasks if task.answer is None]

    def cancel(self) -> None:
        """Release the tasks and their results."""
        for task in self.tasks:
            task.cancel()


class Published:
    """A value that every worker can fetch, published again if all copies are lost.

    Parameters
    ----------
    client : Client
        The connection to the cluster.
    value : object
        The value.
    """

    def __init__(self, client: Client, value: Any) -> None:
        self._client = client
        self.value = value
        self._future: Future | None = None
        self.seconds = 0.0  # spent on publishing

    def __call__(self) -> Future:
        """Return the future of the value."""
        if self._future is None or self._future.status != "finished":
            began = time.monotonic()
            self._future = persevere(self._client, self._scatter)
            self.seconds += time.monotonic() - began
        return self._future

    def _scatter(self) -> Future:
        # Scatter to one worker, from which the others fetch the value: if a worker is lost during
        # replication, the scheduler waits forever.
        return self._client.scatter(self.value, hash=False)

    def drop(self) -> None:
        """Release the copies of the workers."""
        if self._future is not None:
            self._future.release()
