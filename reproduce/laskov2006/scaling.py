"""What figures 1 and 3 to 7 share: digits of MNIST, learned by four implementations."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Results, Values

MAIN = 8  # the digit that the paper profiles
DIGITS = (MAIN, 0, 1, 2, 3, 4, 5, 6, 7, 9)
SIZES = (1000, 2000, 3000, 5000)
OTHER_SIZES = (1000, 2000, 3000)  # of the other digits
QUICK_SIZES = (100, 200)
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear", "C": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 1 / (2 * 30**2), "C": 100.0},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0, "C": 1.0},
}
NAIVE, DESIGN, WATCHING, EXACT = "naive", "design", "unscreened", "exact"
LABELS = {
    NAIVE: "NumPy, algorithms 1 and 4",
    DESIGN: "NumPy, algorithms 1 and 3",
    WATCHING: "ExactSVC, all rows watched",
    EXACT: "ExactSVC",
}
CACHE = 1500  # megabytes: all kernel rows fit
COMPARED = 500  # rows at which decision values are compared
TEXT = (
    "One digit of MNIST against the rest; pixels from 0 to 1; the linear kernel with C = 1, the "
    "polynomial kernel (x·y + 1)² with C = 1, and the RBF kernel with σ = 30 and C = 100. The "
    "paper prints neither C nor the scale of the pixels; with σ = 30 on pixels from 0 to 255 all "
    "rows would be support vectors. "
)


def name_of(kernel: str, digit: int, n: int) -> str:
    return f"{kernel}, {digit}, {n:,}"


def cases(quick: bool) -> dict[str, Case]:
    digits = DIGITS[:2] if quick else DIGITS
    found: dict[str, Case] = {}
    for digit in digits:
        sizes = QUICK_SIZES if quick else SIZES if digit == MAIN else OTHER_SIZES
        for n in sizes:
            for kernel in KERNELS:
                if digit == MAIN or kernel != "poly":
                    given = {"kernel": kernel, "digit": digit, "rows": n}
                    found[name_of(kernel, digit, n)] = given
    return dict(sorted(found.items(), key=lambda item: item[1]["rows"]))


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    """Learn the same rows in the same order by each implementation, timed by CPU seconds."""
    import numpy as np

    archive = np.load(data / "mnist.npz")
    order = np.random.default_rng(seed).permutation(len(archive["y_train"]))[: case["rows"]]
    X = archive["X_train"][order] / 255.0
    y = np.where(archive["y_train"][order] == case["digit"], 1.0, -1.0)
    settings = KERNELS[case["kernel"]]
    exact, values = fit_exact(X, y, settings, screen=True)
    watching, more = fit_exact(X, y, settings, screen=False)
    decision = exact.decision_function(X[:COMPARED])
    more["difference"] = float(np.abs(watching.decision_function(X[:COMPARED]) - decision).max())
    values["support_vectors"] = len(exact.support_)
    values["free"] = int((np.abs(exact.dual_coef_) < settings["C"]).sum())
    found = {EXACT: values, WATCHING: more}
    return found | {way: fit_numpy(X, y, settings, way, decision) for way in (NAIVE, DESIGN)}


def fit_exact(X: Any, y: Any, settings: dict[str, Any], *, screen: bool) -> tuple[Any, Values]:
    from marginwise import ExactSVC
    from reproduce.measures import timed

    class Watching(ExactSVC):
        """Watches every example along the path, as in the paper."""

        def _window_settings(self) -> dict[str, Any]:
            return {**super()._window_settings(), "screen": False}

    model = (ExactSVC if screen else Watching)(cache_size=CACHE, **settings)
    _, seconds = timed(lambda: model.fit(X, y))
    return model, {"fit": seconds, "iterations": model.n_iter_}


def fit_numpy(X: Any, y: Any, settings: dict[str, Any], way: str, decision: Any) -> Values:
    import numpy as np

    from reproduce.laskov2006.naive import Incremental
    from reproduce.measures import timed

    model, seconds = timed(lambda: Incremental(X, y, storage=way, **settings).fit())
    return {
        "fit": seconds,
        **model.counts,
        **model.least,
        "free": len(model.free),
        "difference": float(np.abs(model.decision(X[:COMPARED]) - decision).max()),
        "operations": model.watch.seconds,
    }


# -- what was measured -----------------------------------------------------------------------------


def sizes_of(results: Results, kernel: str, digit: int) -> list[int]:
    """Return the numbers of rows that were measured."""
    known = (*QUICK_SIZES, *SIZES)
    return [n for n in known if name_of(kernel, digit, n) in results]


def seconds(results: Results, kernel: str, digit: int, n: int, way: str) -> float | None:
    return results.mean(name_of(kernel, digit, n), way, "fit", "cpu")


def speedup(results: Results, kernel: str, digit: int, n: int, way: str) -> float:
    """Return how many times faster than the naive implementation one is."""
    slow, fast = (seconds(results, kernel, digit, n, one) for one in (NAIVE, way))
    return (slow or 0.0) / (fast or 1.0)


def speedups(results: Results, kernel: str, n: int, way: str) -> list[float]:
    """Return the factors of all digits."""
    digits = [digit for digit in DIGITS if name_of(kernel, digit, n) in results]
    return [speedup(results, kernel, digit, n, way) for digit in digits]


def shares(results: Results, kernel: str, n: int, way: str) -> dict[str, float]:
    """Return the share of each operation in the time of the profiled digit, in percent."""
    found = results.values(name_of(kernel, MAIN, n), way, "operations")
    if not found:
        return {}
    total = statistics.fmean(sum(one.values()) for one in found)
    return {name: 100 * statistics.fmean(one[name] for one in found) / total for name in found[0]}
