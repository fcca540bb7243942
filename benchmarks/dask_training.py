"""Measure training on a Dask cluster: speed, error, memory of the driver, lost workers.

    python benchmarks/dask_training.py                       all works
    python benchmarks/dask_training.py --only digits kdd     some of them
    python benchmarks/dask_training.py --variants 3          fewer variants of each digit

Clusters are `LocalCluster`s of single-threaded workers on this machine. Every measurement runs in
its own process. The file `--out` keeps the results of works that are not run again.

digits    MNIST and its variants from a VirtualSet: DaskOnlineSVC.fit_source with two workers, and
          OnlineSVC.learn_from with the same sift in one process with one thread
kdd       KDD Cup 99, attacks against normal connections, from a Dask data frame of Parquet files;
          the driver never has all rows in memory
kills     SIGKILL of a worker at a random moment of each run; digests of the models
workers   one, two and three workers; digests of the models
vowpal    Vowpal Wabbit, --ksvm --para_active, on MNIST 8 against the rest
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cache import data_folder
from datasets import load
from report import heading, table, write

HERE = Path(__file__).resolve().parent
SHAPE = (28, 28)
DIGITS = {"C": 10, "gamma": 0.02, "random_state": 0, "cache_size": 2000}
KDD_TEST = 20_000
ALLOWED = 300 * 2**20  # bytes of the driver beyond members and two rounds
VOWPAL_ROWS = 10_000
VOWPAL = "--ksvm --kernel rbf --bandwidth 0.02 --l2 0.00001 --reprocess 2"
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
        return {"failed": f"{work.__name__} ended with exit code {process.exitcode}"}
    process.join()
    return found


def _answer(sender: Any, work: Callable[..., Row], *arguments: Any) -> None:
    sender.send(work(*arguments))


def cluster(workers: int) -> Any:
    from distributed import Client, LocalCluster

    local = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
    )
    return Client(local)


def close(client: Any) -> None:
    local = client.cluster
    client.close()
    local.close()


def digest(model: Any) -> str:
    """Return a digest of the members and coefficients of a model."""
    state = model._engine.state()
    found = hashlib.sha256()
    for name in ("X", "ids", "labels", "alpha", "g"):
        found.update(np.ascontiguousarray(state[name]).tobytes())
    return found.hexdigest()


def costs(rounds: list[Row]) -> Row:
    """Return the total costs of rounds."""
    names = ("rows", "returned", "read", "score", "wait", "learn", "ship")
    return {name: round(sum(one[name] for one in rounds), 3) for name in names}


# -- digits ----------------------------------------------------------------------------------------


def _digits(folder: str) -> Any:
    return load("mnist10", folder, form="dense32")


def _virtual(split: Any, variants: int) -> Any:
    from marginwise.invariance import ImageDeformer, VirtualSet

    deformer = ImageDeformer(SHAPE, strength=2.0)
    return VirtualSet(split.X, split.y, deformer, variants, cache_size=0)


def digits_alone(folder: str, variants: int, sift: float) -> Row:
    from marginwise import OnlineSVC

    split = _digits(folder)
    source = _virtual(split, variants)
    began = time.perf_counter()
    model = OnlineSVC(**DIGITS).learn_from(source, sift=sift)
    seconds = time.perf_counter() - began
    error = 100 * (1 - model.score(split.X_test, split.y_test))
    return {"seconds": seconds, "error": error, "members": len(model.ids_), "rows": len(source)}


def digits_on_dask(folder: str, variants: int, sift: float, workers: int) -> Row:
    from marginwise.dask import DaskOnlineSVC

    split = _digits(folder)
    source = _virtual(split, variants)
    client = cluster(workers)
    began = time.perf_counter()
    model = DaskOnlineSVC(client=client, **DIGITS).fit_source(source, sift=sift)
    seconds = time.perf_counter() - began
    close(client)
    error = 100 * (1 - model.to_local().score(split.X_test, split.y_test))
    return {
        "seconds": seconds,
        "error": error,
        "members": len(model.ids_),
        "rows": len(source),
        "workers": workers,
        "costs": costs(model.rounds_),
        "rounds": model.rounds_,
        "digest": digest(model),
    }


def digits(options: argparse.Namespace) -> Row:
    folder, variants, sift = str(options.data), options.variants, options.sift
    dask = in_process(digits_on_dask, folder, variants, sift, 2)
    alone = in_process(digits_alone, folder, variants, sift)
    ratio, gap = dask["seconds"] / alone["seconds"], dask["error"] - alone["error"]
    print(
        table(
            ("", "rows", "seconds", "error, %", "members"),
            [
                [
                    name,
                    f"{one['rows']:,}",
                    f"{one['seconds']:.1f}",
                    f"{one['error']:.2f}",
                    f"{one['members']:,}",
                ]
                for name, one in (("learn_from, one process", alone), ("Dask, 2 workers", dask))
            ],
        )
    )
    print(f"ratio {ratio:.2f} (to reach: 0.75), error {gap:+.3f} points (to reach: 0.05)")
    return {"alone": alone, "dask": dask, "ratio": ratio, "error_gap": gap, "sift": sift}


# -- KDD Cup 99 ------------------------------------------------------------------------------------


def _kdd(folder: str) -> tuple[Any, Any, Any, Any]:
    with np.load(Path(folder) / "kddcup99_10pct.npz") as archive:
        counts = np.log1p(np.abs(archive["X_num_train"])).astype(np.float64)
        codes = archive["X_cat_train"]
        levels = [len(archive[f"{name}_levels"]) for name in ("protocol", "service", "flag")]
        y = (archive["y_train"] != list(archive["classes"]).index("normal.")).astype(np.int64)
    scale = counts.std(axis=0)
    counts = (counts - counts.mean(axis=0)) / np.where(scale == 0, 1, scale)
    hot = [np.eye(n)[codes[:, k]] for k, n in enumerate(levels)]
    X = np.hstack([counts, *hot]).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[:KDD_TEST], np.sort(order[KDD_TEST:])
    return X[train], y[train], X[test], y[test]


def kdd_alone(folder: str, out: str) -> Row:
    """Fit the local estimator, and write the rows to Parquet files."""
    import pandas as pd

    from marginwise import OnlineSVC

    X, y, X_test, y_test = _kdd(folder)
    names = [f"f{k}" for k in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(label=y)
    for k, rows in enumerate(np.array_split(np.arange(len(y)), 20)):
        frame.iloc[rows].to_parquet(f"{out}/part{k:02d}.parquet")
    np.savez(f"{out}/test.npz", X=X_test, y=y_test)
    began = time.perf_counter()
    model = OnlineSVC(C=10, gamma=1 / X.shape[1], random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    error = 100 * (1 - model.score(X_test, y_test))
    return {"rows": len(y), "seconds": seconds, "error": error, "members": len(model.ids_)}


def kdd_on_dask(out: str) -> Row:
    import dask.dataframe as dd

    from marginwise.dask import DaskOnlineSVC

    client = cluster(2)
    frame = dd.read_parquet(f"{out}/part*.parquet")
    X, y = frame.drop(columns="label"), frame["label"]
    width = len(X.columns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    began = time.perf_counter()
    model = DaskOnlineSVC(C=10, gamma=1 / width, random_state=0, client=client).fit(X, y)
    seconds = time.perf_counter() - began
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    close(client)
    held = model.stats_["member_bytes"] + 2 * model.round_rows * width * 4
    with np.load(f"{out}/test.npz") as test:
        error = 100 * np.mean(model.to_local()._labels(model._score(test["X"])) != test["y"])
    return {
        "seconds": seconds,
        "error": float(error),
        "members": len(model.ids_),
        "driver_growth_mb": growth / 2**20,
        "driver_allowed_mb": (held + ALLOWED) / 2**20,
        "driver_before_mb": before / 2**20,
        "costs": costs(model.rounds_),
        "rounds": model.rounds_,
    }


def kdd(options: argparse.Namespace) -> Row:
    with tempfile.TemporaryDirectory() as out:
        alone = in_process(kdd_alone, str(options.data), out)
        dask = in_process(kdd_on_dask, out)
    gap = dask["error"] - alone["error"]
    print(
        f"KDD, {alone['rows']:,} rows: fit {alone['seconds']:.1f} s, {alone['error']:.3f} %; Dask "
        f"{dask['seconds']:.1f} s, {dask['error']:.3f} % ({gap:+.3f} points, to reach: 0.05); "
        f"driver grew by {dask['driver_growth_mb']:.0f} MB (allowed: "
        f"{dask['driver_allowed_mb']:.0f} MB)"
    )
    return {"alone": alone, "dask": dask, "error_gap": gap}


# -- lost workers ----------------------------------------------------------------------------------


def _small(folder: str, rows: int) -> tuple[Any, Any]:
    import dask.array as da

    split = _digits(folder)
    X, y = split.X[:rows], split.y[:rows]
    return da.from_array(X, chunks=(1000, X.shape[1])), da.from_array(y, chunks=1000)


def fit_small(folder: str, rows: int, workers: int) -> Row:
    from marginwise.dask import DaskOnlineSVC

    X, y = _small(folder, rows)
    client = cluster(workers)
    began = time.perf_counter()
    model = DaskOnlineSVC(client=client, round_rows=4096, **DIGITS).fit(X, y)
    seconds = time.perf_counter() - began
    close(client)
    return {"seconds": seconds, "digest": digest(model)}


def _settled(client: Any, killed: list[int]) -> list[int]:
    """Wait until all workers run again; return their process ids."""
    while True:
        nannies = client.cluster.workers.values()
        pids = [one.pid for one in nannies if one.status.name == "running" and one.pid]
        known = len(client.scheduler_info(n_workers=-1)["workers"])
        if len(pids) == known == len(nannies) and not set(pids) & set(killed):
            return pids
        time.sleep(0.2)


def fit_and_kill(folder: str, rows: int, times: int) -> Row:
    """Fit repeatedly, and kill a worker at a random moment of each fit."""
    import dask

    from marginwise.dask import DaskOnlineSVC

    # Otherwise LocalCluster drops a worker that is killed twice within 15 seconds.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    X, y = _small(folder, rows)
    client = cluster(2)
    model = DaskOnlineSVC(client=client, round_rows=4096, **DIGITS)
    model.fit(X, y)  # workers import what they need
    began = time.perf_counter()
    calm = {"digest": digest(model.fit(X, y)), "seconds": time.perf_counter() - began}
    rng, runs, killed = random.Random(0), [], []
    while sum(run["within"] for run in runs) < times:
        victim = rng.choice(_settled(client, killed))
        killed.append(victim)
        moment = rng.uniform(0, 0.8) * calm["seconds"]
        timer = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
        timer.start()
        began = time.perf_counter()
        found = digest(model.fit(X, y))
        seconds = time.perf_counter() - began
        hit = timer.finished.is_set()
        timer.join()
        runs.append({"moment": moment, "seconds": seconds, "digest": found, "within": hit})
        same = found == calm["digest"]
        print(f"killed after {moment:.2f} s of {seconds:.1f} s, the same model: {same}", flush=True)
    close(client)
    return {"calm": calm, "runs": runs}


def kills(options: argparse.Namespace) -> Row:
    found = in_process(fit_and_kill, str(options.data), options.rows, options.kills)
    runs = found["runs"]
    same = sum(run["digest"] == found["calm"]["digest"] for run in runs)
    within = sum(run["within"] for run in runs)
    print(f"{len(runs)} runs, {within} killed during the fit: {same} equal models (to reach: all)")
    return {**found, "same": same, "within": within}


def workers(options: argparse.Namespace) -> Row:
    runs = [in_process(fit_small, str(options.data), options.rows, n) for n in (1, 2, 3)]
    same = len({run["digest"] for run in runs}) == 1
    print(f"1, 2 and 3 workers: the same model: {same}")
    return {"runs": runs, "same": same}


# -- Vowpal Wabbit ---------------------------------------------------------------------------------


def _lines(X: Any, y: Any) -> list[str]:
    return [
        f"{1 if label else -1} | " + " ".join(f"{k}:{x[k]:.6g}" for k in np.flatnonzero(x))
        for x, label in zip(X, y, strict=True)
    ]


def vowpal_alone(folder: str, options: str) -> Row:
    from vowpalwabbit import Workspace

    split = load("mnist8", folder, form="dense32")
    rows = _lines(split.X[:VOWPAL_ROWS], split.y[:VOWPAL_ROWS])
    tests = _lines(split.X_test, split.y_test)
    began = time.perf_counter()
    model = Workspace(f"{VOWPAL} {options} --quiet")
    for row in rows:
        model.learn(row)
    seconds = time.perf_counter() - began
    found = np.array([model.predict(row) for row in tests]) > 0
    model.finish()
    return {"seconds": seconds, "error": float(100 * np.mean(found != split.y_test))}


def vowpal_rival(folder: str) -> Row:
    import dask.array as da

    from marginwise.dask import DaskOnlineSVC

    split = load("mnist8", folder, form="dense32")
    X, y = split.X[:VOWPAL_ROWS], split.y[:VOWPAL_ROWS]
    client = cluster(2)
    began = time.perf_counter()
    blocks = da.from_array(X, chunks=(1000, X.shape[1])), da.from_array(y, chunks=1000)
    model = DaskOnlineSVC(client=client, **DIGITS).fit(*blocks)
    seconds = time.perf_counter() - began
    close(client)
    error = 100 * (1 - model.to_local().score(split.X_test, split.y_test))
    return {"seconds": seconds, "error": error}


def vowpal(options: argparse.Namespace) -> Row:
    """Compare with Vowpal Wabbit, with and without --para_active.

    --para_active may fail without a spanning-tree server; --ksvm alone learns every row.
    """
    ours = in_process(vowpal_rival, str(options.data))
    theirs = {
        extra or "--ksvm alone": in_process(vowpal_alone, str(options.data), extra)
        for extra in ("--para_active", "")
    }
    print(f"MNIST 8, {VOWPAL_ROWS:,} rows: Dask {ours}; Vowpal Wabbit {theirs}")
    return {"vowpal": theirs, "dask": ours, "options": VOWPAL}


# -- the command -----------------------------------------------------------------------------------

WORKS = {"digits": digits, "kdd": kdd, "kills": kills, "workers": workers, "vowpal": vowpal}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--only", nargs="+", choices=WORKS, default=list(WORKS))
    add("--variants", type=int, default=12)
    add("--sift", type=float, default=0.01)
    add("--kills", type=int, default=20)
    add("--rows", type=int, default=20_000, help="of the runs that compare digests")
    add("--out", type=Path, default=HERE / "results" / "dask_training.json")
    return parser.parse_args()


def main() -> None:
    options = parse()
    files = [Path(options.data) / name for name in ("mnist.npz", "kddcup99_10pct.npz")]
    report = json.loads(options.out.read_text()) if options.out.exists() else {"works": {}}
    for name in options.only:
        began = os.getloadavg()[0]
        found = WORKS[name](options)
        report = {**heading(HERE.parent, files), "works": report["works"]}
        report["works"][name] = {**found, "load_before": began}
        write(options.out, report)


if __name__ == "__main__":
    main()
