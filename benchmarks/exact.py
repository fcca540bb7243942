"""Time ExactSVC, and measure how exact it is.

    python benchmarks/exact.py                              all rows except `large`
    python benchmarks/exact.py --only learn                 one row
    python benchmarks/exact.py --only large                 28,000 and 60,000 rows
    python benchmarks/exact.py --quick                      a smoke test on small parts of the data

learn: one call of learn_one per row, and one call for all rows, compared with a fit of SVC; then
single updates of a model of 10,000 examples by partial_fit, which validates its input.
large: seconds and peak memory. It runs only on request and has its own JSON; --rows sets the sizes.
leave-one-out: compared with refits, 30 of which are timed and scaled to all rows.
soak: random arrivals and removals. arrivals: violations of the optimality conditions after each
row, and the distance to SVC(tol=1e-10), whose kernel values are in single precision, and to its
solution refined in double precision. forget: a random half is forgotten, one by one, and the model
is compared with a fit of the rest.

The JSON keeps the rows that --only excludes. Each measurement runs in its own process, with one
thread (except large), and the contestants alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import memory
import numpy as np
import report
import speed
from contestants import CACHE
from datasets import load
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from tasks import Setting, timed
from works import Check, Job, Measurement, Results, Work

from marginwise import ExactSVC

Float = NDArray[np.float64]
Ints = NDArray[np.int64]
MNIST8: dict[str, Any] = {"C": 10.0, "gamma": 0.02}
BANANA: dict[str, Any] = {"C": 10.0, "gamma": 1.0}
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 1.0},
}


def eights(folder: str, rows: int, seed: int) -> tuple[Float, Ints]:
    """Draw rows of MNIST, 8 against the rest, pixels from 0 to 1, without converting the others."""
    archive = np.load(Path(folder) / "mnist.npz")
    kept = np.random.default_rng(seed).permutation(len(archive["y_train"]))[:rows]
    y = (archive["y_train"][kept] == 8).astype(np.int64)
    return archive["X_train"][kept] / 255.0, y


def milliseconds(calls: list[Callable[[], Any]]) -> dict[str, float]:
    times = [1e3 * timed(call)[1]["wall"] for call in calls]
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {"median": statistics.median(times), "p90": cuts[89], "p99": cuts[98]}


# -- learn -----------------------------------------------------------------------------------------


def learn(setting: Setting, *, how: str, rows: int, updates: int) -> Measurement:
    """Time learning all rows and, after one call for all, single updates."""
    rows, updates = (rows // 10, updates // 10) if setting.quick else (rows, updates)
    X, y = eights(setting.folder, rows + updates, setting.seed)
    first, found = slice(rows), {"rows": rows}
    if how == "SVC":
        model = SVC(cache_size=CACHE, **MNIST8)
        _, seconds = timed(partial(model.fit, X[first], y[first]))
        return {**found, **seconds, "support_vectors": len(model.support_)}
    model = ExactSVC(cache_size=CACHE, n_jobs=setting.threads, **MNIST8)
    one = partial(model.partial_fit, classes=[0, 1])
    if how == "one by one":
        calls = [partial(one, X[:1], y[:1])]
        calls += [partial(model.learn_one, X[k], y[k]) for k in range(1, rows)]
        times = [timed(call)[1] for call in calls]
        seconds = {name: sum(call[name] for call in times) for name in ("wall", "cpu")}
        return {**found, **seconds, "support_vectors": len(model.support_)}
    _, seconds = timed(partial(one, X[first], y[first]))
    later = range(rows, rows + updates)
    gone = np.random.default_rng(setting.seed).permutation(rows)[:updates]
    return {
        **found,
        **seconds,
        "support_vectors": len(model.support_),
        "update_ms": milliseconds([partial(one, X[k : k + 1], y[k : k + 1]) for k in later]),
        "forget_ms": milliseconds([partial(model.forget, [row]) for row in gone]),
    }


def times_svc(how: str, clock: str, target: float | None) -> Check:
    def measure(results: Results) -> float | None:
        ours, svc = (results.median(name, clock) for name in (how, "SVC"))
        return ours / svc if ours and svc else None

    what = f"{how}: {clock} seconds over those of one fit of SVC"
    return Check(what, measure, "≤", target, "{:.2f} ×")


def single(what: str, which: str, target: float | None = None) -> Check:
    def measure(results: Results) -> float | None:
        return results.median("all at once", f"{what}_ms", which)

    return Check(f"one {what}, {which}", measure, "≤", target, "{:.2f} ms")


WAYS = ("one by one", "all at once", "SVC")
LEARN = Work(
    "learn",
    "MNIST, 8 against the rest, 10,000 rows, C=10, γ=0.02",
    [Job(way, "learn", {"how": way, "rows": 10_000, "updates": 300}) for way in WAYS],
    [
        *(times_svc(way, "wall", 6.0) for way in WAYS[:2]),
        *(times_svc(way, "cpu", None) for way in WAYS[:2]),
        single("update", "median", 5.0),
        *(single("update", which) for which in ("p90", "p99")),
        *(single("forget", which) for which in ("median", "p90", "p99")),
    ],
    ["mnist8"],
    rounds=2,
)

# -- large -----------------------------------------------------------------------------------------

# Megabytes for kernel rows, by number of rows. 28,000 rows and two copies of their features must
# stay below 3 GB.
CACHES = {28_000: 1600, 60_000: 6000}


def large(setting: Setting, *, rows: int) -> Measurement:
    """Learn a number of rows; return seconds and peak memory."""
    X, y = eights(setting.folder, rows, setting.seed)
    cache = next((size for most, size in CACHES.items() if rows <= most), max(CACHES.values()))
    model = ExactSVC(cache_size=cache, n_jobs=setting.threads, **MNIST8)
    _, seconds = timed(partial(model.fit, X, y))
    return {
        **seconds,
        "rows": rows,
        "cache_mb": cache,
        "peak_gb": memory.peak() / 1e9,
        "features_gb": X.nbytes / 1e9,
        "support_vectors": len(model.support_),
        "violation": float(model._engine.native.violation().max()),
    }


def large_work(sizes: list[int], threads: int) -> Work:
    jobs = [Job(f"{rows:,} rows", "large", {"rows": rows}, threads) for rows in sizes]

    def peak(job: Job) -> Check:
        target = 3.0 if job.options["rows"] == min(CACHES) else None
        what = f"{job.label}: most memory held"
        return Check(what, lambda r: r.median(job.key, "peak_gb"), "≤", target, "{:.2f} GB")

    def wall(job: Job) -> Check:
        return Check(job.label, lambda r: r.median(job.key, "wall"), form="{:,.0f} s")

    checks = [check(job) for job in jobs for check in (peak, wall)]
    return Work("large", "the same, as many as fit", jobs, checks, ["mnist8"], rounds=1)


# -- leave-one-out ---------------------------------------------------------------------------------

REFITS, TRIED = 30, 300


def leave_one_out(setting: Setting, *, data: str, rows: int) -> Measurement:
    """Compare values with refits of ExactSVC without the row, and time with refits of SVC."""
    rows, refits, tried = (rows // 10, 5, 20) if setting.quick else (rows, REFITS, TRIED)
    X, y, params = part_of(setting, data, rows)
    model = ExactSVC(cache_size=CACHE, **params).fit(X, y)
    found, seconds = timed(model.leave_one_out)
    picks = np.random.default_rng(setting.seed).permutation(len(y))
    off = []
    for row in picks[:tried]:
        rest = np.delete(np.arange(len(y)), row)
        other = ExactSVC(cache_size=CACHE, **params).fit(X[rest], y[rest])
        said = found.decision[found.ids == row][0]
        off.append(abs(said - other.decision_function(X[row : row + 1])[0]))
    refit = 0.0
    for row in picks[:refits]:
        rest = np.delete(np.arange(len(y)), row)
        refit += timed(partial(SVC(cache_size=CACHE, **params).fit, X[rest], y[rest]))[1]["wall"]
    return {
        "seconds": seconds["wall"],
        "refit_seconds": refit / refits,
        "ratio": len(y) * refit / refits / seconds["wall"],
        "difference": float(max(off)),
        "tried": len(off),
        "tried_support_vectors": int(np.isin(picks[:tried], model.support_).sum()),
        "support_vectors": len(model.support_),
        "error": 100 * found.error,
    }


def part_of(setting: Setting, data: str, rows: int) -> tuple[Any, Ints, dict[str, Any]]:
    if data == "mnist8":
        return *eights(setting.folder, rows, setting.seed), MNIST8
    split = load(data, setting.folder, seed=setting.seed)
    return split.X[:rows], split.y[:rows], BANANA


def figure(key: str, name: str, what: str, sense: Any, target: float | None, form: str) -> Check:
    return Check(what, lambda results: worst(results, key, name, sense), sense, target, form)


def worst(results: Results, key: str, name: str, sense: str) -> float | None:
    values = results.take(key, *name.split("."))
    return (max if sense == "≤" else min)(values) if values else None


LEFT_OUT = Work(
    "leave-one-out",
    "2,000 rows; equal to 300 refits of ExactSVC, and sooner than refits of SVC",
    [Job(d, "leave_one_out", {"data": d, "rows": 2000}) for d in ("mnist8", "banana")],
    [
        check
        for data in ("mnist8", "banana")
        for check in (
            figure(data, "difference", f"{data}: largest difference", "≤", 1e-6, "{:.1e}"),
            figure(data, "ratio", f"{data}: times faster than all refits", "≥", 100, "{:,.0f} ×"),
        )
    ],
    ["mnist8", "banana"],
    rounds=1,
)

# -- soak ------------------------------------------------------------------------------------------

AROUND, TWINS = 500, 0.1  # stored examples, fraction of arrivals that duplicate one


def soak(setting: Setting, *, kernel: str, C: float, steps: int) -> Measurement:
    """Add and remove random rows; check the optimality conditions after each."""
    steps = steps // 100 if setting.quick else steps
    split = load("banana", setting.folder, seed=setting.seed)
    params = {"C": C, **KERNELS[kernel]}
    rng = np.random.default_rng(setting.seed)
    held: dict[int, int] = {}  # rows by id
    model, most, checked = ExactSVC(**params), 0.0, 0.0
    for step in range(steps + AROUND):
        comes = step < AROUND or rng.random() < 0.5 + (AROUND - len(held)) / AROUND
        if comes:
            twin = held and rng.random() < TWINS
            row = int(rng.choice(list(held.values())) if twin else rng.integers(len(split.y)))
            given = split.X[row : row + 1], split.y[row : row + 1]
            model.partial_fit(*given, classes=[-1, 1], ids=[step])
            held[step] = row
        else:
            name = int(rng.choice(list(held)))
            model.forget([name])
            del held[name]
        most = max(most, float(model._engine.native.violation().max()))
        if step % 1000 == 999:
            checked = max(checked, violation(model, split.X, split.y, held, params))
    rows = np.fromiter(held.values(), dtype=np.int64)
    fresh = ExactSVC(**params).fit(split.X[rows], split.y[rows])
    values = fresh.decision_function(split.X)
    return {
        "steps": steps,
        "held": len(held),
        "violation": max(most, checked),
        "recomputed": checked,
        "difference": float(np.abs(model.decision_function(split.X) - values).max()),
        "largest_value": float(np.abs(values).max()),
        "resolved": model._engine.resolved,
    }


def violation(
    model: ExactSVC, X: Float, y: Ints, held: dict[int, int], params: dict[str, Any]
) -> float:
    """Return the violation of the optimality conditions, by scikit-learn's kernel values."""
    names, rows = np.array(list(held)), np.array(list(held.values()))
    alpha = np.zeros(len(rows))
    place = {name: k for k, name in enumerate(names.tolist())}
    alpha[[place[name] for name in model.support_.tolist()]] = model.dual_coef_[0]
    K = gram(X[rows], params)
    return astray(K @ alpha + model.intercept_[0], alpha * y[rows], y[rows], params["C"])


def gram(X: Any, params: dict[str, Any]) -> Float:
    given = {name: value for name, value in params.items() if name not in ("C", "kernel")}
    K: Float = pairwise_kernels(X, metric=params["kernel"], **given)
    return K


def astray(f: Float, weights: Float, y: Ints, C: float) -> float:
    short = 1 - y * f  # must be 0 where free, ≤ 0 at 0, ≥ 0 at C
    return float(max(short[weights < C].max(initial=0), -short[weights > 0].min(initial=0)))


SOAKS = [(kernel, C) for kernel in ("rbf", "poly", "linear") for C in (0.1, 10.0, 1e4)]


def soak_name(kernel: str, C: float) -> str:
    return f"{kernel}, C={C:g}"


SOAK = Work(
    "soak",
    "banana: 20,000 arrivals and removals at random around 500 examples, a tenth of them twins",
    [
        Job(soak_name(*one), "soak", {"kernel": one[0], "C": one[1], "steps": 20_000})
        for one in SOAKS
    ],
    [
        figure(soak_name(*one), name, f"{soak_name(*one)}: {what}", "≤", 1e-6, "{:.1e}")
        for one in SOAKS
        for name, what in (("violation", "worst violation"), ("difference", "off a fresh fit"))
    ],
    ["banana"],
    rounds=1,
)

# -- arrivals and forget ---------------------------------------------------------------------------

ROWS, CHECKPOINTS, MOST_STEPS = 3000, 20, 1_000_000
SETS: dict[str, dict[str, Any]] = {
    "banana": {"form": "dense64", "C": 10.0, "gamma": 1.0},
    "digits": {"form": "dense64", "C": 10.0, "gamma": 0.05},
    "a9a": {"form": "csr64", "C": 1.0, "gamma": 0.05},
    "reuters": {"form": "csr64", "C": 10.0, "gamma": 1.0},
}


def stream(setting: Setting, data: str, kernel: str) -> tuple[Any, Ints, dict[str, Any]]:
    """Return rows in random order, labels -1 and 1, and parameters."""
    split = load(data, setting.folder, form=SETS[data]["form"], seed=setting.seed)
    rows = np.random.default_rng(setting.seed).permutation(split.X.shape[0])
    rows = rows[: ROWS // 20 if setting.quick else ROWS]
    params = {"C": SETS[data]["C"], **KERNELS[kernel]}
    if kernel != "linear":
        params["gamma"] = SETS[data]["gamma"]
    return split.X[rows], np.where(split.y[rows] == split.y.max(), 1, -1), params


def arrivals(setting: Setting, *, data: str, kernel: str) -> Measurement:
    """Learn row by row; references that are not solutions are counted but not compared."""
    X, y, params = stream(setting, data, kernel)
    K, n = gram(X, params), len(y)
    count = CHECKPOINTS // 5 if setting.quick else CHECKPOINTS
    points = set(np.linspace(n // count, n, count).astype(int).tolist())
    model, most, checked = ExactSVC(**params), 0.0, 0.0
    off_svc, off_refined = [], []
    for k in range(n):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[-1, 1])
        most = max(most, float(model._engine.native.violation().max()))
        if k + 1 not in points or len(set(y[: k + 1].tolist())) < 2:
            continue
        checked = max(checked, violation(model, X, y, {row: row for row in range(k + 1)}, params))
        values = model.decision_function(X)
        peer = strict(X[: k + 1], y[: k + 1], params)
        alpha = np.zeros(n)
        alpha[peer.support_] = dense(peer.dual_coef_)[0]
        if peer.n_iter_[0] < MOST_STEPS:
            off = np.abs(peer.decision_function(X) - values).max()
            off_svc.append(float(off / (np.abs(alpha).sum() * np.abs(K).max())))
        f, short = refined(K, alpha, y, k + 1, params["C"])
        if short < 1e-8:
            off_refined.append(float(np.abs(f - values).max()))
    return {
        "rows": n,
        "violation": max(most, checked),
        "recomputed": checked,
        "off_svc": max(off_svc, default=None),
        "off_refined": max(off_refined, default=None),
        "compared": {"svc": len(off_svc), "refined": len(off_refined), "points": len(points)},
        "support_vectors": len(model.support_),
        "largest_value": float(np.abs(values).max()),
        "resolved": model._engine.resolved,
    }


def strict(X: Any, y: Ints, params: dict[str, Any]) -> SVC:
    """Fit SVC with at most MOST_STEPS steps; in single precision it may never reach `tol`."""
    model = SVC(tol=1e-10, cache_size=CACHE, max_iter=MOST_STEPS, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def dense(values: Any) -> Float:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def refined(K: Float, alpha: Float, y: Ints, n: int, C: float) -> tuple[Float, float]:
    """Solve for the free vectors and the bias in double, from SVC's partition of n rows.

    A partition that is not that of the solution is corrected. Returns the decision values of all
    rows, and the remaining violation of the optimality conditions.
    """
    weights = alpha[:n] * y[:n]
    free = (weights > 1e-8 * C) & (weights < (1 - 1e-8) * C)
    full = weights >= (1 - 1e-8) * C
    K, signs = K[:, :n], y[:n].astype(np.float64)
    for _ in range(50):
        beta = np.where(full, C * signs, 0.0)
        S = np.flatnonzero(free)
        system = np.ones((len(S) + 1, len(S) + 1))
        system[0, 0], system[1:, 1:] = 0, K[np.ix_(S, S)]
        wanted = np.concatenate([[-beta.sum()], signs[S] - K[S] @ beta])
        solution = np.linalg.lstsq(system, wanted, rcond=1e-13)[0]
        beta[S] = solution[1:]
        f = K @ beta + solution[0]
        weights, short = beta * signs, 1 - signs * f[:n]
        low, high = free & (weights < -1e-9 * C), free & (weights > (1 + 1e-9) * C)
        back = (~free & ~full & (short > 1e-9)) | (full & (short < -1e-9))
        if not (low | high | back).any():
            break
        free, full = (free & ~low & ~high) | back, (full | high) & ~back
    return f, astray(f[:n], np.where(full, C, np.where(free, C / 2, 0)), y[:n], C)


def forget(setting: Setting, *, data: str, kernel: str) -> Measurement:
    """Forget a random half, one by one; compare the model with a fit of the rest."""
    X, y, params = stream(setting, data, kernel)
    order = np.random.default_rng((setting.seed, 1)).permutation(len(y))
    model = ExactSVC(**params).fit(X, y)
    start = time.perf_counter()
    for row in order[: len(y) // 2].tolist():
        model.forget([row])
    seconds = time.perf_counter() - start
    rest = np.sort(order[len(y) // 2 :])
    fresh = ExactSVC(**params).fit(X[rest], y[rest])
    values = fresh.decision_function(X)
    return {
        "difference": float(np.abs(model.decision_function(X) - values).max()),
        "largest_value": float(np.abs(values).max()),
        "seconds": seconds,
    }


PAIRS = [(data, kernel) for data in SETS for kernel in KERNELS]


def streams(name: str, title: str, figures: list[tuple[str, str, str, float | None, str]]) -> Work:
    jobs = [Job(f"{d}, {k}", name, {"data": d, "kernel": k}) for d, k in PAIRS]
    checks = [
        figure(job.label, field, f"{job.label}: {what}", sense, target, form)
        for field, what, sense, target, form in figures
        for job in jobs
    ]
    return Work(name, title, jobs, checks, list(SETS), rounds=1)


ARRIVALS = streams(
    "arrivals",
    "after each of 3,000 rows (digits: 1,500), and at 20 points between",
    [
        ("violation", "worst violation", "≤", 1e-7, "{:.1e}"),
        ("off_refined", "off SVC refined in double", "≤", 1e-6, "{:.1e}"),
        ("compared.refined", "points where that is a solution", "≥", None, "{:.0f}"),
        ("off_svc", "off SVC(tol=1e-10), over Σ|α| max|K|", "≤", 1e-6, "{:.1e}"),
        ("compared.svc", "points where SVC came to its end", "≥", None, "{:.0f}"),
    ],
)
FORGET = streams(
    "forget",
    "half of them, one by one",
    [("difference", "off a fresh fit", "≤", 1e-6, "{:.1e}")],
)

TASKS: dict[str, Callable[..., Measurement]] = {
    "learn": learn,
    "large": large,
    "leave_one_out": leave_one_out,
    "soak": soak,
    "arrivals": arrivals,
    "forget": forget,
}


# -- the command -----------------------------------------------------------------------------------

LARGE = "large"  # runs only on request
WORKS = [LEARN, LEFT_OUT, SOAK, ARRIVALS, FORGET]
NAMES = {*(work.name for work in WORKS), LARGE}
MADE = ("started", "machine", "versions", "commit", "dirty")
HERE = Path(__file__).resolve().parent


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    names = sorted(NAMES)
    add("--data", type=Path, help="folder of the data files (default: $MARGINWISE_DATA)")
    add("--out", type=Path, help="JSON file (default: results/exact.json or exact-large.json)")
    add("--only", nargs="+", choices=names, metavar="ROW", help=f"rows to run: {', '.join(names)}")
    add("--rounds", "--seeds", type=int, help="rounds of each row (default: by row)")
    add("--rows", nargs="+", type=int, default=list(CACHES), help="numbers of rows of large")
    add("--threads", type=int, default=2, help="threads of large (default: 2)")
    add("--quick", action="store_true", help="a smoke test on small parts of the data")
    add("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.out is None:
        name = "quick" if options.quick else f"exact{'-large' * (options.only == [LARGE])}"
        options.out = HERE / "results" / f"{name}.json"
    return options


def main() -> None:
    options = parse()
    if options.worker:
        print(json.dumps(answer(json.load(sys.stdin))))
        return
    known = [*WORKS, large_work(options.rows, options.threads)]
    usual = [work.name for work in WORKS]
    works = [work for work in known if work.name in (options.only or usual)]
    folder = speed.data_folder(options)
    outcome = taken_up(speed.new_report(works, folder, options), works, options.out)
    if options.quick:
        print("A smoke test on small parts of the data: its figures say nothing about the targets.")
    for work in works:
        print(f"\n{work.name}: {work.title}", flush=True)
        results = run(work, folder, options)
        print(report.details(results), flush=True)
        outcome["works"][work.name] = {
            "title": work.title,
            "made": {name: outcome[name] for name in MADE},
            "measurements": results,
        }
        outcome["figures"] += report.judged(work, results)
        report.write(options.out, outcome)
    print("\n" + report.verdicts(outcome["figures"]))
    print(f"\nwritten to {os.path.relpath(options.out)}")
    if any("failed" in m for work in outcome["works"].values() for m in speed.measurements(work)):
        sys.exit("Some measurements failed; see above.")


def taken_up(fresh: dict[str, Any], works: list[Work], path: Path) -> dict[str, Any]:
    """Return a report with the stored results of rows that are not measured now."""
    if not path.is_file():
        return fresh
    early = json.loads(path.read_text(encoding="utf-8"))
    if early["quick"] != fresh["quick"] or not early["works"].keys() <= NAMES:
        return fresh
    anew = {work.name for work in works}
    fresh["works"] = {name: one for name, one in early["works"].items() if name not in anew}
    fresh["figures"] = [figure for figure in early["figures"] if figure["work"] not in anew]
    fresh["data"] = {**early["data"], **fresh["data"]}
    return fresh


def run(work: Work, folder: Path, options: argparse.Namespace) -> Results:
    """Alternate the jobs of a row; each round has its seed."""
    rounds = options.rounds or (1 if options.quick else work.rounds)
    results = Results({job.key: [] for job in work.jobs})
    for seed in range(rounds):
        for job in work.jobs:
            before, start = speed.load(), time.perf_counter()
            threads = job.threads or 1
            setting = {"folder": str(folder), "seed": seed, "threads": threads}
            request = {"task": job.task, "setting": {**setting, "quick": options.quick}}
            request["options"] = job.options
            here = options.quick and job.task != LARGE
            found = answer(request) if here else speed.ask_worker(request, threads, __file__)
            found |= {"seed": seed, "load": {"before": before, "after": speed.load()}}
            results[job.key].append(found)
            said = found.get("failed", f"{time.perf_counter() - start:.1f} s")
            speed.progress(f"round {seed + 1} of {rounds}, {work.name}, {job.key}: {said}")
    return results


def answer(request: dict[str, Any]) -> Measurement:
    """Run a job."""
    return TASKS[request["task"]](Setting(**request["setting"]), **request["options"])


if __name__ == "__main__":
    main()
