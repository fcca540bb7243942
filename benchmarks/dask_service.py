"""Service times of training on Dask, measured on this machine.

Each run is a separate process with a `LocalCluster` of single-threaded workers. The rounds of a run
record their costs. Probes of the same cluster measure what rounds do not record: the scheduler's
time per task, the time per byte of an answer, and the time that a worker needs to unpack a
snapshot.
"""

from __future__ import annotations

import multiprocessing
import pickle
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from datasets import Split, load, standardised

SHAPE = (28, 28)
MODELS: dict[str, dict[str, Any]] = {
    "digits": {"C": 10, "gamma": 0.02, "cache_size": 2000},
    "covtype": {"C": 10, "gamma": 0.1, "cache_size": 2000},
    "kdd": {"C": 10, "gamma": 0.01, "cache_size": 2000},
}
TITLES = {
    "digits": "MNIST, ten classes, deformed",
    "covtype": "covtype, two classes",
    "kdd": "KDD Cup 99, two classes",
}
FILES = {
    "digits": "mnist.npz",
    "covtype": "covtype_subset.npz",
    "kdd": "kddcup99_10pct.npz",
}
TEST_ROWS = 5000  # of covtype
KEPT = (
    *("epoch", "rows", "returned", "members", "bytes"),
    *("read", "score", "slowest", "wait", "learn", "ship", "publish"),
)
PROBES = 400  # empty tasks
ANSWER = 2**23  # bytes
Row = dict[str, Any]


def in_process(work: Callable[..., Row], *arguments: Any) -> Row:
    """Call a function in a new process, and return its result."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, work, *arguments))
    process.start()
    sender.close()
    try:
        found: Row = receiver.recv()
    except EOFError:
        process.join()
        sys.exit(f"{work.__name__} ended with exit code {process.exitcode}.")
    process.join()
    return found


def _answer(sender: Any, work: Callable[..., Row], *arguments: Any) -> None:
    sender.send(work(*arguments))


def measure(name: str, folder: str, variants: int, workers: int) -> Row:
    """Train with a number of workers; return the costs of rounds and the results of the probes."""
    from distributed import Client, LocalCluster

    from marginwise.dask import DaskOnlineSVC

    train, test = _data(name, folder, variants)
    options = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": 0}
    with LocalCluster(dashboard_address=":0", **options) as cluster, Client(cluster) as client:
        model = DaskOnlineSVC(client=client, random_state=0, n_jobs=1, **MODELS[name])
        before, began = _cpu(), time.perf_counter()
        train(model)
        seconds = time.perf_counter() - began
        own, all_of_them = (now - then for now, then in zip(_cpu(), before, strict=True))
        probes = {**probe_tasks(client), **probe_answers(client), **probe_snapshot(model)}
    local = model.to_local()
    return {
        "work": name,
        "workers": workers,
        "seconds": seconds,
        "cpu": own,
        "cpu_of_others": max(all_of_them - own, 0.0),  # which disturb the measurement
        "rows": sum(one["rows"] for one in model.rounds_ if one["epoch"] == 0),
        "row_bytes": 4 * model.n_features_in_,
        "round_rows": model.round_rows,
        "members": len(model.ids_),
        "error": 100 * (1 - float(local.score(*test))),
        "probes": probes,
        "rounds": [{key: one[key] for key in KEPT} for one in model.rounds_],
    }


def _cpu() -> tuple[float, float]:
    """Return the CPU seconds of this process and the workers, and those of all processes."""
    me = psutil.Process()
    own = sum(sum(one.cpu_times()[:2]) for one in [me, *me.children(recursive=True)])
    machine = psutil.cpu_times()
    return own, sum(getattr(machine, name) for name in ("user", "nice", "system"))


def count_returned(name: str, folder: str, variants: int, round_rows: int) -> Row:
    """Train with rounds of a given size; return the fraction of rows that workers returned."""
    from distributed import Client, LocalCluster

    from marginwise.dask import DaskOnlineSVC

    train, test = _data(name, folder, variants)
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0}
    with LocalCluster(dashboard_address=":0", **options) as cluster, Client(cluster) as client:
        model = DaskOnlineSVC(
            client=client, random_state=0, n_jobs=1, round_rows=round_rows, **MODELS[name]
        )
        train(model)
    rows, returned = (sum(one[key] for one in model.rounds_) for key in ("rows", "returned"))
    return {
        "work": name,
        "round_rows": round_rows,
        "share": returned / rows,
        "members": len(model.ids_),
        "error": 100 * (1 - float(model.to_local().score(*test))),
    }


def _data(name: str, folder: str, variants: int) -> tuple[Callable[[Any], Any], Any]:
    """Return a function that trains a model on the rows of a work, and the test rows."""
    if name == "digits":
        from marginwise.invariance import ImageDeformer, VirtualSet

        split = load("mnist10", folder, form="dense32")
        deformer = ImageDeformer(SHAPE, strength=2.0)
        source = VirtualSet(split.X, split.y, deformer, variants, cache_size=0)
        return (lambda model: model.fit_source(source)), (split.X_test, split.y_test)
    split = load("kdd", folder, form="dense32") if name == "kdd" else _covtype(folder)
    return _blocks(split.X, split.y), (split.X_test, split.y_test)


def _blocks(X: Any, y: Any) -> Callable[[Any], Any]:
    import dask
    import dask.array as da

    def train(model: Any) -> None:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
            blocks = da.from_array(X, chunks=(10_000, X.shape[1])), da.from_array(y, chunks=10_000)
            model.fit(*blocks)

    return train


def _covtype(folder: str) -> Split:
    """Class 2 against the rest, columns standardised."""
    with np.load(Path(folder) / FILES["covtype"]) as archive:
        X, y = archive["X"].astype(np.float64), (archive["y"] == 2).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(y))
    test, rows = order[:TEST_ROWS], order[TEST_ROWS:]
    split = standardised(Split(X[rows], y[rows], X[test], y[test]))
    split.X, split.X_test = split.X.astype(np.float32), split.X_test.astype(np.float32)
    return split


# -- probes ----------------------------------------------------------------------------------------


def _nothing(k: int) -> int:
    return k


def _zeros(size: int, k: int) -> Any:
    return np.full(size, k, dtype=np.uint8)


def probe_tasks(client: Any) -> Row:
    """Measure what an empty task costs.

    The driver needs "submit" seconds to submit it. The scheduler is a thread of the driver here;
    "dispatch" is the CPU time of both. The remaining time until the next task can run is spent on
    the worker ("start").
    """
    submits, works, runs = [], [], []
    workers = len(client.scheduler_info(n_workers=-1)["workers"])
    for attempt in range(3):
        cpu, began = time.process_time(), time.perf_counter()
        futures = [client.submit(_nothing, k, key=f"p{attempt}-{k}") for k in range(PROBES)]
        submits.append((time.perf_counter() - began) / PROBES)
        client.gather(futures)
        runs.append((time.perf_counter() - began) / PROBES)
        works.append((time.process_time() - cpu) / PROBES)
    submit, dispatch, run = map(statistics.median, (submits, works, runs))
    return {"submit": submit, "dispatch": dispatch, "start": max(workers * run - dispatch, 0.0)}


def probe_answers(client: Any) -> Row:
    """Measure the seconds per byte that the driver needs to gather answers over the loopback."""
    from distributed import wait

    times = []
    for attempt in range(3):
        futures = [client.submit(_zeros, ANSWER // 8, 8 * attempt + k) for k in range(8)]
        wait(futures)
        began = time.perf_counter()
        client.gather(futures)
        times.append((time.perf_counter() - began) / ANSWER)
        del futures
    return {"gather_byte": statistics.median(times)}


def probe_snapshot(model: Any) -> Row:
    """Measure the seconds per byte of unpacking the last snapshot."""
    from marginwise.dask.snapshot import take_snapshot

    data = pickle.dumps(take_snapshot(model._engine, None))
    times = []
    for _ in range(3):
        began = time.perf_counter()
        snapshot = pickle.loads(data)
        assert snapshot.judge is not None
        times.append(time.perf_counter() - began)
    return {"unpack_byte": statistics.median(times) / snapshot.nbytes}
