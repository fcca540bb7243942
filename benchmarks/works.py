"""The rows of the benchmark: jobs and targets."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Params = dict[str, Any]
Measurement = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A task that a worker measures once per round."""

    label: str
    task: str
    options: dict[str, Any]
    threads: int | None = 1  # None: every number of threads requested

    @property
    def contestant(self) -> str:
        return str(self.options.get("contestant", "OnlineSVC"))

    @property
    def key(self) -> str:
        """Key of the job in the results."""
        return self.label if self.threads == 1 else f"{self.label}, {self.threads} threads"


class Results(dict[str, list[Measurement]]):
    """Measurements of one row by job; figures of a job that did not run are None."""

    def take(self, key: str, *path: str) -> list[Any]:
        """Return the values at a path of names in the measurements of a job."""
        found = []
        for measurement in self.get(key, []):
            value: Any = measurement
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if value is not None:
                found.append(value)
        return found

    def median(self, key: str, *path: str) -> float | None:
        values = self.take(key, *path)
        return statistics.median(values) if values else None

    def mean(self, key: str, *path: str) -> float | None:
        values = self.take(key, *path)
        return statistics.fmean(values) if values else None


@dataclass(frozen=True)
class Check:
    """A figure and its target; a figure without a target is only shown."""

    what: str
    measure: Callable[[Results], float | None]
    sense: Literal["≥", "≤"] = "≥"
    target: float | None = None
    form: str = "{:.1f}"

    def reached(self, results: Results) -> bool | None:
        value = self.measure(results)
        if value is None or self.target is None:
            return None
        return value >= self.target if self.sense == "≥" else value <= self.target


@dataclass(frozen=True)
class Work:
    """One row: jobs that alternate, and figures computed from their results."""

    name: str
    title: str
    jobs: list[Job]
    checks: list[Check]
    data: list[str] = field(default_factory=list)
    rounds: int = 3  # each with its own seed


# -- figures -------------------------------------------------------------------------------------

OURS, CONVERGED, SVC = "OnlineSVC", "OnlineSVC, converge", "SVC"
INTELEX = ("intelex float32", "intelex CSR")


def _ratio(slow: float | None, fast: float | None) -> float | None:
    return slow / fast if slow and fast else None


def _difference(ours: float | None, other: float | None) -> float | None:
    return None if ours is None or other is None else ours - other


def times_svc(target: float, phase: str = "fit") -> Check:
    def measure(results: Results) -> float | None:
        return _ratio(results.median(SVC, phase, "wall"), results.median(OURS, phase, "wall"))

    return Check(f"{phase}: times faster than SVC", measure, "≥", target, "{:.1f} ×")


def times_intelex(target: float | None = None) -> Check:
    """Compare with the fastest input format of intelex."""

    def measure(results: Results) -> float | None:
        peers = [results.median(key, "fit", "wall") for key in INTELEX]
        best = min((seconds for seconds in peers if seconds), default=None)
        return _ratio(best, results.median(OURS, "fit", "wall"))

    return Check("fit: times faster than intelex", measure, "≥", target, "{:.1f} ×")


def converged() -> list[Check]:
    """Check that epochs="converge" is at least as fast as the peers, with the error of SVC."""

    def against(peers: Sequence[str]) -> Callable[[Results], float | None]:
        def measure(results: Results) -> float | None:
            times = [results.median(peer, "fit", "wall") for peer in peers]
            best = min((seconds for seconds in times if seconds), default=None)
            return _ratio(best, results.median(CONVERGED, "fit", "wall"))

        return measure

    def off(results: Results) -> float | None:
        ours, svc = results.mean(CONVERGED, "error"), results.mean(SVC, "error")
        difference = _difference(ours, svc)
        return None if difference is None else abs(difference)

    return [
        Check("converge: times faster than SVC", against([SVC]), "≥", 1.0, "{:.1f} ×"),
        Check("converge: times faster than intelex", against(INTELEX), "≥", 1.0, "{:.1f} ×"),
        Check("converge: error off SVC's, points", off, "≤", 0.05, "{:.3f}"),
    ]


def error_above_svc(points: float) -> Check:
    def measure(results: Results) -> float | None:
        return _difference(results.mean(OURS, "error"), results.mean(SVC, "error"))

    return Check("error above SVC's, points", measure, "≤", points, "{:+.3f}")


def floor_ratio(target: float | None = None) -> Check:
    def measure(results: Results) -> float | None:
        return _ratio(results.median(OURS, "fit", "wall"), results.median(OURS, "floor_seconds"))

    return Check("floor ratio: fit over bare product", measure, "≤", target, "{:.2f}")


def batch_gap(target: float) -> Check:
    def measure(results: Results) -> float | None:
        return max(results.take(OURS, "batch_gap"), default=None)

    return Check("decision value alone and in batches, gap", measure, "≤", target, "{:.1e}")


def no_dense_copy() -> Check:
    """Compare the growth of memory during fit with the size of a dense float32 copy."""

    def measure(results: Results) -> float | None:
        growth, dense = (results.median(OURS, name) for name in ("growth_mb", "dense_mb"))
        return None if growth is None or not dense else growth / dense

    return Check("memory growth over a dense float32 copy", measure, "≤", 1.0, "{:.2f}")


def speedup(
    slow: str, fast: str, what: str, sense: Literal["≥", "≤"], target: float | None
) -> Check:
    def measure(results: Results) -> float | None:
        return _ratio(results.median(slow, "fit", "wall"), results.median(fast, "fit", "wall"))

    return Check(what, measure, sense, target, "{:.2f} ×")


def same_model(one: str, other: str) -> Check:
    """Compute the fraction of rounds in which two jobs have the same fingerprint."""

    def measure(results: Results) -> float | None:
        pairs = list(
            zip(
                results.take(one, "fingerprint"),
                results.take(other, "fingerprint"),
                strict=False,
            )
        )
        return sum(a == b for a, b in pairs) / len(pairs) if pairs else None

    return Check("rounds with the same model, bit for bit", measure, "≥", 1.0, "{:.0%}")


def memory_excess(key: str, cache_mb: float) -> Check:
    """Compute the growth of memory beyond members and cache, in megabytes."""

    def measure(results: Results) -> float | None:
        excess = [
            m["growth_mb"] - m["stats"]["member_bytes"] / 2**20 - cache_mb
            for m in results.get(key, [])
            if "stats" in m
        ]
        return max(excess, default=None)

    what = f"{key}: peak above data, members and cache, MB"
    return Check(what, measure, "≤", 150.0, "{:.0f}")


def equal_share(label: str) -> Check:
    def measure(results: Results) -> float | None:
        shares = results.take(label, "equal_percent")
        return min((min(share.values()) for share in shares), default=None)

    return Check(f"{label}: equal predictions, worst case, %", measure, "≥", 99.9, "{:.2f}")


def shortfall(label: str) -> Check:
    def measure(results: Results) -> float | None:
        return max(results.take(label, "shortfall"), default=None)

    return Check(f"{label}: dual objective off SVC's, relative", measure, "≤", 1e-5, "{:.1e}")


def call_time() -> Check:
    def measure(results: Results) -> float | None:
        return results.median("learn_one", "microseconds")

    return Check("microseconds a call, median", measure, "≤", 20.0, "{:.1f}")


# -- jobs ----------------------------------------------------------------------------------------


def race(
    data: str, params: Params, *, ours: str, svc: str, intelex: dict[str, str], extras: list[str]
) -> list[Job]:
    """Fit all contestants to one data set, each with the named input format."""

    def job(label: str, contestant: str, form: str, threads: int | None) -> Job:
        options = {"data": data, "contestant": contestant, "form": form, "params": params}
        if contestant == "OnlineSVC":
            options["extras"] = extras
        return Job(label, "fit", options, threads)

    peers = [job(label, "intelex", form, None) for label, form in intelex.items()]
    to_the_end = {**params, "epochs": "converge"}
    options = {"data": data, "contestant": "OnlineSVC", "form": ours, "params": to_the_end}
    own = [job(OURS, "OnlineSVC", ours, None), Job(CONVERGED, "fit", options)]
    return [*own, *peers, job(SVC, "SVC", svc, 1)]


def nystroem(data: str, params: Params, *components: int) -> list[Job]:
    """Fit Nystroem with given numbers of components."""
    return [
        Job(
            f"Nystroem({n})",
            "fit",
            {
                "data": data,
                "contestant": "Nystroem",
                "form": "dense32",
                "params": {"gamma": params["gamma"], "n_components": n},
            },
        )
        for n in components
    ]


def dense_race(data: str, params: Params, extras: list[str]) -> list[Job]:
    """Fit all contestants to large dense data, in single precision if they support it."""
    intelex = {INTELEX[0]: "dense32"}
    return race(data, params, ours="dense32", svc="dense64", intelex=intelex, extras=extras)


def small_race(data: str, params: Params) -> list[Job]:
    """Fit all contestants to dense data, in double precision except for intelex."""
    intelex = {INTELEX[0]: "dense32"}
    return race(data, params, ours="dense64", svc="dense64", intelex=intelex, extras=[])


def variant(label: str, threads: int = 1, **params: Any) -> Job:
    """Fit OnlineSVC to MNIST 8 with changed parameters or threads."""
    options = {"data": "mnist8", "contestant": "OnlineSVC", "form": "dense32"}
    return Job(label, "fit", {**options, "params": {**MNIST8, **params}}, threads)


def small_work(name: str, title: str, params: Params) -> Work:
    checks = [times_svc(3.0), times_intelex(3.0), error_above_svc(0.05), *converged()]
    return Work(name, title, small_race(name, params), checks, [name], rounds=10)


# -- the table -----------------------------------------------------------------------------------

MNIST8 = {"C": 1000, "gamma": 0.02}
MNIST10 = {"C": 10, "gamma": 0.02}
A9A = {"C": 100, "gamma": 0.005}
REUTERS = {"C": 1, "gamma": 1}
BANANA = {"C": 316, "gamma": 0.5}
WAVEFORM = {"C": 1, "gamma": 0.05}
# [bordes2005, fig. 7] prints gamma = 2 but not the scale of the pixels. On pixels from -1 to 1,
# this gamma makes nearly every row a support vector. We assume that the 256 pixels were divided by
# 16: gamma = 2/256 gives about the paper's error (0.45 % instead of 0.41 %).
USPS = {"C": 1000, "gamma": 2 / 256}
DIGITS = {"C": 10, "gamma": 0.1}
COVTYPE = {"C": 3, "gamma": 0.1}
CHECKERBOARD = {"C": 10, "gamma": 10}
KDD = {"C": 10, "gamma": 1 / 119}
LETTER = {"C": 10, "gamma": 0.1}
SPARSE_FORMS = {INTELEX[0]: "dense32", INTELEX[1]: "csr64"}

WORKS = [
    Work(
        "mnist8",
        "MNIST 8 vs rest, 60,000 rows, C=1000, γ=0.02",
        dense_race("mnist8", MNIST8, ["floor"]),
        [times_svc(90), times_intelex(9), error_above_svc(0.05), floor_ratio(1.6), *converged()],
        ["mnist8"],
    ),
    Work(
        "a9a",
        "a9a, 32,561 rows, CSR, C=100, γ=0.005",
        [
            *race("a9a", A9A, ours="csr64", svc="csr64", intelex=SPARSE_FORMS, extras=["floor"]),
            *nystroem("a9a", A9A, 200, 2000),
        ],
        [times_svc(32), times_intelex(5), error_above_svc(0.08), floor_ratio(), *converged()],
        ["a9a"],
    ),
    Work(
        "mnist10",
        "MNIST ten classes, 60,000 rows, C=10, γ=0.02",
        dense_race("mnist10", MNIST10, ["batches", "floor"]),
        [
            times_svc(38),
            times_intelex(8.5),
            error_above_svc(0.05),
            times_svc(90, "predict"),
            batch_gap(1e-6),
            floor_ratio(),
            *converged(),
        ],
        ["mnist10"],
    ),
    Work(
        "covtype2",
        "covtype, class 2 vs rest, 40,000 rows, standardised, C=3, γ=0.1",
        [
            *dense_race("covtype2", COVTYPE, ["floor"]),
            *nystroem("covtype2", COVTYPE, 200, 2000),
        ],
        [times_svc(28), times_intelex(5), error_above_svc(0.05), floor_ratio(), *converged()],
        ["covtype2"],
    ),
    Work(
        "checkerboard",
        "checkerboard, 50,000 rows, 15 % of the labels flipped, C=10, γ=10",
        [
            *small_race("checkerboard", CHECKERBOARD),
            *nystroem("checkerboard", CHECKERBOARD, 200, 1000),
        ],
        [times_svc(10), times_intelex(), error_above_svc(0.05), *converged()],
        ["checkerboard"],
    ),
    Work(
        "kdd",
        "KDD Cup 99, attack vs normal, 200,000 rows, log counts standardised, C=10, γ=1/119",
        [job for job in dense_race("kdd", KDD, ["floor"]) if job.contestant != "SVC"],
        [times_intelex(13), floor_ratio()],
        ["kdd"],
    ),
    Work(
        "reuters",
        "Reuters money-fx, 7,770 rows × 8,315 features, CSR, C=1, γ=1",
        race("reuters", REUTERS, ours="csr64", svc="csr64", intelex=SPARSE_FORMS, extras=[]),
        [
            times_svc(25),
            times_intelex(3),
            error_above_svc(0.05),
            no_dense_copy(),
            *converged(),
        ],
        ["reuters"],
    ),
    small_work("banana", "banana, 4,000 of 5,300 rows, C=316, γ=0.5", BANANA),
    small_work("waveform", "waveform, class 0 vs rest, 4,000 of 5,000 rows, C=1, γ=0.05", WAVEFORM),
    small_work("usps0", "USPS 0 vs rest, pixels from -1 to 1, C=1000, γ=2/256", USPS),
    small_work("letter", "letter, 26 classes, 16,000 rows, standardised, C=10, γ=0.1", LETTER),
    small_work("satimage", "satimage, six classes, standardised, C=10, γ=0.1", LETTER),
    Work(
        "offset",
        "features + 1e4 (RBF) or × 1e-3, 1e3, 1e6 (RBF; poly of degree 3, C=1, coef0=1)",
        [
            Job(name, "offset", {"data": name, "params": params})
            for name, params in (("banana", BANANA), ("waveform", WAVEFORM), ("usps0", USPS))
        ],
        [equal_share(name) for name in ("banana", "waveform", "usps0")],
        ["banana", "waveform", "usps0"],
    ),
    Work(
        "converge",
        "epochs doubled until the dual stands still (tol=1e-5) against SVC(tol=1e-6)",
        [
            Job("banana", "converge", {"data": "banana", "params": BANANA}),
            Job("a9a[:8000]", "converge", {"data": "a9a", "params": A9A, "rows": 8000}),
            Job("digits", "converge", {"data": "digits", "params": DIGITS}),
        ],
        [shortfall(name) for name in ("banana", "a9a[:8000]", "digits")],
        ["banana", "a9a", "digits"],
        rounds=1,
    ),
    Work(
        "threads",
        "MNIST 8 vs rest, two threads against one",
        [variant(OURS), variant(OURS, threads=2)],
        [
            speedup(OURS, f"{OURS}, 2 threads", "fit: times faster on two threads", "≥", 1.7),
            same_model(OURS, f"{OURS}, 2 threads"),
        ],
        ["mnist8"],
    ),
    Work(
        "cache",
        "MNIST 8 vs rest, cache_size=8 against 500",
        [variant("cache 500 MB", cache_size=500), variant("cache 8 MB", cache_size=8)],
        [
            speedup("cache 8 MB", "cache 500 MB", "fit: time against 500 MB", "≤", 2.0),
            memory_excess("cache 8 MB", 8),
            memory_excess("cache 500 MB", 500),
        ],
        ["mnist8"],
    ),
    Work(
        "learn_one",
        "learn_one, 2 features, about 200 members (crescents, C=1, γ=2)",
        [
            Job(
                "learn_one",
                "learn_one",
                {"params": {"C": 1, "gamma": 2.0}, "noise": 0.15, "start": 2000, "calls": 3000},
            )
        ],
        [call_time()],
    ),
]
