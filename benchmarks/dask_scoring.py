"""Compare scoring of Parquet files by two Dask workers on this machine with one process.

    python benchmarks/dask_scoring.py                     5,000,000 rows of 100 columns in 40 files
    python benchmarks/dask_scoring.py --rows 400000 --files 8 --repeats 1 --output small.json

Rows are generated as float32 and written to a temporary folder (in `--folder`), which takes 2 GB
and is removed afterwards. The model has a table encoder and `--vectors` support vectors. One
process scores the files with the function that workers call, and workers score them with
`predict_files`. Each process has one thread, and the two ways alternate `--repeats` times. The time
does not include starting processes: each of them first scores one of the files. The predictions
must be equal.

A table is printed, and the results are stored in `results/dask_scoring.json`, with the fraction of
the time that the single process spends in `predict`. Besides wall times, the table shows CPU
seconds, and on Linux also those of other programs during the run. A pair of runs counts as
disturbed if other programs used more than 5 % of the processors' time in one of them. All pairs are
stored, and the ratio is reported twice: over all pairs, and over the undisturbed ones.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from report import commit, machine, table, versions, write
from sklearn.pipeline import Pipeline, make_pipeline

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "dask_scoring.json"
FEATURES = 100
TARGET = 1.7  # times as fast as one process
DISTURBED = 0.05  # of the time of all processors, used by other programs


# -- what is scored --------------------------------------------------------------------------------


def write_files(folder: Path, rows: int, files: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{k}" for k in range(FEATURES)]
    for k in range(files):
        size = rows // files + (k < rows % files)
        X = np.random.default_rng(k).standard_normal((FEATURES, size), dtype=np.float32)
        made = pa.table(dict(zip(names, X, strict=True)))
        pq.write_table(made, folder / f"part-{k:03d}.parquet", compression="none")


def make_model(vectors: int) -> Pipeline:
    """Return a model of random labels with a small C: every row is a support vector."""
    import pyarrow as pa

    from marginwise import OnlineSVC
    from marginwise.data import TableEncoder

    X = np.random.default_rng(1_000_000).standard_normal((vectors, FEATURES), dtype=np.float32)
    names = [f"x{k}" for k in range(FEATURES)]
    rows = pa.table({name: X[:, k] for k, name in enumerate(names)})
    model = make_pipeline(TableEncoder(), OnlineSVC(C=0.1, gamma=1 / FEATURES, random_state=0))
    model.fit(rows, np.arange(vectors) % 2)
    found = int(model[-1].n_support_.sum())
    if found != vectors:
        sys.exit(f"The model has {found} support vectors; expected {vectors}.")
    return model


# -- clocks ----------------------------------------------------------------------------------------


def busy_seconds() -> float:
    """Return the CPU seconds that all programs have used, or NaN if unknown."""
    try:
        fields = Path("/proc/stat").read_text().split()[1:9]
    except OSError:
        return float("nan")
    user, nice, system, _, _, *rest = map(int, fields)
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


class Clock:
    """Wall time, CPU time and CPU time of other programs since its creation."""

    def __init__(self, client: Any = None) -> None:
        self._client = client
        self._start = self._now()

    def _now(self) -> tuple[float, float, float, float]:
        theirs = [] if self._client is None else [*self._client.run(time.process_time).values()]
        own = time.process_time()
        return time.perf_counter(), own + sum(theirs), max(theirs, default=own), busy_seconds()

    def read(self) -> dict[str, float]:
        wall, cpu, longest, busy = (
            now - then for now, then in zip(self._now(), self._start, strict=True)
        )
        known = {"seconds": wall, "cpu_seconds": cpu, "longest_cpu_seconds": longest}
        return {**known, "other_cpu_seconds": max(0.0, busy - cpu)}


# -- one process -----------------------------------------------------------------------------------


def alone(model: str, data: str, out: str) -> dict[str, float]:
    """Score all files in this process; return total seconds and those in `predict`."""
    from marginwise import load
    from marginwise.dask.scoring_tasks import Job, Scorer, score_file
    from marginwise.data.modelled import Layout

    fitted = load(model)
    estimator = fitted[-1].set_params(n_jobs=1)
    predicting, predict = [0.0], estimator.predict

    def timed(X: Any) -> Any:
        began = time.perf_counter()
        labels = predict(X)
        predicting[0] += time.perf_counter() - began
        return labels

    estimator.predict = timed
    paths = sorted(Path(data).glob("*.parquet"))
    for warm in (True, False):
        predicting[0], clock = 0.0, Clock()
        for path in paths[:1] if warm else paths:
            layout, release = Layout(), version("marginwise")
            job = Job(str(path), f"{out}/{path.name}", layout, False, False, release)
            outcome = score_file(job, Scorer(fitted))
            if outcome.error is not None:
                sys.exit(outcome.error)
    return {**clock.read(), "predict_seconds": predicting[0]}


def alone_in_a_process(model: Path, data: Path, out: Path) -> dict[str, float]:
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import pickle, dask_scoring as d; "
    code += f"print(pickle.dumps(d.alone({str(model)!r}, {str(data)!r}, {str(out)!r})).hex())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = pickle.loads(bytes.fromhex(done.stdout.strip()))
    return found


# -- workers ---------------------------------------------------------------------------------------


def on_workers(model: Path, data: Path, out: Path, workers: int) -> dict[str, float]:
    """Score all files on workers of this machine."""
    from marginwise.dask import connected, predict_files

    with connected(f"local:{workers}") as client, tempfile.TemporaryDirectory() as spare:
        first = sorted(data.glob("*.parquet"))[:workers]
        predict_files(model, first, spare, client=client)
        clock = Clock(client)
        report = predict_files(model, data, out, client=client)
        return {**clock.read(), "rows": report.rows}


def check_equal(one: Path, other: Path) -> None:
    import pyarrow.parquet as pq

    for path in sorted(one.glob("*.parquet")):
        if not pq.read_table(path).equals(pq.read_table(other / path.name)):
            sys.exit(f"{path.name}: the predictions of workers differ from those of one process.")


# -- the comparison --------------------------------------------------------------------------------


def compare(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from marginwise import save

    data, model = folder / "data", folder / "model.mwz"
    data.mkdir()
    write_files(data, options.rows, options.files)
    save(make_model(options.vectors), model)
    runs: dict[str, list[dict[str, float]]] = {"one process": [], "workers": []}
    for k in range(options.repeats):
        outs = [folder / f"{name}-{k}" for name in ("one", "workers")]
        outs[0].mkdir()
        runs["one process"].append(alone_in_a_process(model, data, outs[0]))
        runs["workers"].append(on_workers(model, data, outs[1], options.workers))
        check_equal(*outs)
    pairs = list(zip(runs["one process"], runs["workers"], strict=True))
    ratios = [one["seconds"] / other["seconds"] for one, other in pairs]
    calm = [ratio for ratio, pair in zip(ratios, pairs, strict=True) if not any(map(noisy, pair))]
    shares = [run["predict_seconds"] / run["seconds"] for run in runs["one process"]]
    return {
        "runs": runs,
        "ratios": ratios,
        "ratio_of_all": statistics.median(ratios),
        "undisturbed": len(calm),
        "ratio_of_undisturbed": statistics.median(calm) if calm else None,
        "target": TARGET,
        "predict_share": statistics.median(shares),
    }


def noisy(run: dict[str, float]) -> bool:
    capacity = run["seconds"] * (os.cpu_count() or 1)
    return run["other_cpu_seconds"] > DISTURBED * capacity


def show(options: argparse.Namespace, found: dict[str, Any]) -> None:
    rows = []
    for name, runs in found["runs"].items():
        seconds = statistics.median(run["seconds"] for run in runs)
        label = f"{options.workers} workers" if name == "workers" else name
        shown = [f"{seconds:.1f}", f"{options.rows / seconds:,.0f}"]
        for key in ("cpu_seconds", "longest_cpu_seconds", "other_cpu_seconds"):
            shown.append(f"{statistics.median(run[key] for run in runs):.1f}")
        rows.append([label, *shown])
    print(table(("", "seconds", "rows/s", "CPU, s", "of the busiest", "of others"), rows))
    print(
        "Times as fast as one process, by pair: " + ", ".join(f"{r:.2f}" for r in found["ratios"])
    )
    print(f"Median of all {len(found['ratios'])} pairs: {found['ratio_of_all']:.2f}")
    calm = found["ratio_of_undisturbed"]
    if calm is None:
        print(f"Other programs disturbed every pair, so {TARGET} is neither reached nor missed.")
    else:
        verdict = "reached" if calm >= TARGET else "NOT reached"
        print(f"Median of {found['undisturbed']} undisturbed: {calm:.2f}; {TARGET} is {verdict}.")
    print(f"One process spends {found['predict_share']:.0%} of its time on predictions.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--vectors", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", help="where files are written  [default: the system's]")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        load = os.getloadavg()[0]
        found = compare(options, Path(folder))
    sizes = {name: getattr(options, name) for name in ("rows", "files", "vectors", "workers")}
    about = {"machine": machine(), "versions": versions(), **commit(HERE.parent)}
    extra = {name: version(name) for name in ("dask", "distributed", "pyarrow")}
    about["versions"] |= extra
    write(options.output, {**about, "load": load, "features": FEATURES, **sizes, **found})
    show(options, found)


if __name__ == "__main__":
    main()
