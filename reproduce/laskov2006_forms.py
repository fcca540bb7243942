"""Figures 6 and 7 of [laskov2006]: sensitivities in gaxpy form, against gathering a matrix first.

MNIST, 8 against the rest. With σ = 30 on pixels from 0 to 255 all rows would be support vectors;
the paper has 15 % of them, which the same σ has on pixels from 0 to 1. C is not told: it is chosen
so that with 10,000 rows about a tenth of them are support vectors.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
from laskov2006_kdd import Float, Ints
from works import Check, Results, Work

from marginwise import ExactSVC
from marginwise._core import sensitivity_seconds

FILES = ("mnist.npz",)
SIZES = (1000, 2000, 3000, 5000, 10_000)
QUICK_SIZES = (300, 600)
TURNS, SLICE = 5, 0.1  # of each form, seconds each
CACHE = 1500
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear", "C": 1.0},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0, "C": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 1 / (2 * 30**2), "C": 100.0},
}


class Unscreened(ExactSVC):
    """Watches every example on the way, as the paper does."""

    def _window_settings(self) -> dict[str, Any]:
        return {**super()._window_settings(), "screen": False}


def settings(*, quick: bool, seeds: int | None) -> dict[str, Any]:
    return {"kernels": KERNELS, "sizes": list(sizes(quick=quick)), "turns": TURNS}


def sizes(*, quick: bool) -> tuple[int, ...]:
    return QUICK_SIZES if quick else SIZES


def key(kernel: str, n: int) -> str:
    return f"{kernel}, {n:,}"


# -- measuring -------------------------------------------------------------------------------------


def measure(folder: Path, *, quick: bool, seeds: int | None) -> dict[str, list[dict[str, Any]]]:
    archive = np.load(folder / FILES[0])
    order = np.random.default_rng(0).permutation(len(archive["y_train"]))
    found = {}
    for n in sizes(quick=quick):
        X = archive["X_train"][order[:n]] / 255.0
        y = (archive["y_train"][order[:n]] == 8).astype(np.int64)
        for kernel in KERNELS:
            one = measure_one(kernel, X, y)
            found[key(kernel, n)] = [one]
            common.progress(
                f"forms, {key(kernel, n)}: gaxpy {one['ratio']:.1f} times faster, "
                f"{one['on_seconds']:.1f} s with screening, {one['off_seconds']:.1f} s without"
            )
    return found


def measure_one(kernel: str, X: Float, y: Ints) -> dict[str, Any]:
    model = ExactSVC(cache_size=CACHE, **KERNELS[kernel])
    unscreened = Unscreened(cache_size=CACHE, **KERNELS[kernel])
    seconds, others = fitted(model, X, y), fitted(unscreened, X, y)
    assert not unscreened._engine.plan.settings["screen"]
    free = model.support_[np.abs(model.dual_coef_[0]) < model.C]
    gaxpy, gather = form_seconds(kernel_rows(kernel, X[free], X), free)
    agree = model.decision_function(X[:500]) - unscreened.decision_function(X[:500])
    return {
        "rows": len(y),
        "support_vectors": len(model.support_),
        "free": len(free),
        "gaxpy_seconds": gaxpy,
        "gather_seconds": gather,
        "ratio": gather / gaxpy,
        "on_seconds": seconds,
        "off_seconds": others,
        "difference": float(np.abs(agree).max()),
    }


def fitted(model: ExactSVC, X: Float, y: Ints) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def kernel_rows(kernel: str, some: Float, X: Float) -> Float:
    params, dots = KERNELS[kernel], some @ X.T
    if kernel == "linear":
        return np.asarray(dots)
    if kernel == "poly":
        return np.asarray((params["gamma"] * dots + params["coef0"]) ** params["degree"])
    squares = (some**2).sum(axis=1)[:, None] + (X**2).sum(axis=1) - 2 * dots
    values: Float = np.exp(-params["gamma"] * squares)
    return values


def form_seconds(rows: Float, free: Ints) -> tuple[float, float]:
    """Time both forms in turns; the median of each, gaxpy first."""
    once = [sensitivity_seconds(rows, free, 1, gather) for gather in (False, True)]
    rounds = [max(1, round(SLICE / seconds)) for seconds in once]
    found: list[list[float]] = [[], []]
    for _ in range(TURNS):
        for gather in (False, True):
            found[gather].append(sensitivity_seconds(rows, free, rounds[gather], gather))
    gaxpy, gathered = (statistics.median(seconds) for seconds in found)
    return gaxpy, gathered


# -- what it says ----------------------------------------------------------------------------------


def of_largest(kernel: str, figure: Callable[[dict[str, Any]], float]) -> Callable[[Results], Any]:
    def measure(results: Results) -> float | None:
        runs = [run for name, (run,) in results.items() if name.startswith(kernel)]
        return figure(max(runs, key=lambda run: run["rows"])) if runs else None

    return measure


WORK = Work(
    "forms",
    "figures 6 and 7: how much sooner the gaxpy form is done, and a fit with screening",
    [],
    [
        *(
            Check(
                f"{kernel}: gaxpy over gathering, most rows (paper: 5 to 20, of whole runs)",
                of_largest(kernel, lambda run: float(run["ratio"])),
                form="{:.1f} ×",
            )
            for kernel in KERNELS
        ),
        *(
            Check(
                f"{kernel}: fit without screening over with, most rows",
                of_largest(kernel, lambda run: float(run["off_seconds"] / run["on_seconds"])),
                form="{:.2f} ×",
            )
            for kernel in KERNELS
        ),
    ],
)


def shown(results: Results) -> str:
    header = ("", "SVs", "free", "gather, ms", "gaxpy, ms", "ratio", "fit, s", "unscreened, s", "")
    rows = [
        [
            name,
            f"{run['support_vectors']:,}",
            f"{run['free']:,}",
            f"{1e3 * run['gather_seconds']:.2f}",
            f"{1e3 * run['gaxpy_seconds']:.3f}",
            f"{run['ratio']:.1f} ×",
            f"{run['on_seconds']:.2f}",
            f"{run['off_seconds']:.2f}",
            f"{run['off_seconds'] / run['on_seconds']:.2f} ×",
        ]
        for name, (run,) in results.items()
    ]
    return common.table(header, rows)


def draw(results: Results, path: Path) -> None:
    from laskov2006_plot import COLOURS, STROKES, picture

    columns = (("ratio", "gaxpy form over gathering"), ("screen", "screening over none"))
    with picture(path, 2) as axes:
        for ax, (what, title) in zip(axes, columns, strict=True):
            for k, kernel in enumerate(KERNELS):
                runs = [run for name, (run,) in results.items() if name.startswith(kernel)]
                values = [
                    run["ratio"] if what == "ratio" else run["off_seconds"] / run["on_seconds"]
                    for run in runs
                ]
                style = {"color": COLOURS[k], "linestyle": STROKES[k], "marker": "o"}
                ax.plot([run["rows"] for run in runs], values, label=kernel, **style)
            ax.set(title=title, xlabel="rows", ylabel="times faster", ylim=(0, None))
            ax.xaxis.set_major_formatter("{x:,.0f}")
            ax.legend(frameon=False)
