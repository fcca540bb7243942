"""Figure 8 of [laskov2006]: the ten digits of USPS, learned with a window."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from works import Check, Results, Work

from marginwise import ExactSVC

FILES = ("usps.npz",)
C, SIDE, WIDTH = 100.0, 16, 0.75
WINDOWS = (50, 75, 100, 150, 200, 300, 500, 750, 1000, None)
QUICK_WINDOWS = (50, 150, None)
QUICK_ROWS = 800
ORDERS = 3  # that of the file, and shuffles

# What |x - y|² is divided by, pixels from -1 to 1.
READINGS = {"smoothed": 0.3 * 256, "plain": 2 * 0.3 * 256}
HEADLINE = "smoothed"

Float = NDArray[np.float64]


def settings(*, quick: bool, seeds: int | None) -> dict[str, Any]:
    return {
        "C": C,
        "divisors": READINGS,
        "width": WIDTH,
        "windows": list(QUICK_WINDOWS if quick else WINDOWS),
        "orders": orders_of(quick=quick, seeds=seeds),
    }


def orders_of(*, quick: bool, seeds: int | None) -> int:
    return seeds or (1 if quick else ORDERS)


def key(reading: str, window: int | None) -> str:
    return f"{reading}, M={'all' if window is None else window}"


# -- measuring -------------------------------------------------------------------------------------


def pixels(values: NDArray[np.float32], reading: str) -> Float:
    """Bring pixels to -1..1, and smooth them where the reading says so."""
    X = 2 * values.astype(np.float64) - 1
    if reading == "plain":
        return X
    images = X.reshape(-1, SIDE, SIDE)
    # Beyond its edge an image is white.
    smooth: Float = gaussian_filter(images, (0, WIDTH, WIDTH), mode="constant", cval=-1)
    return smooth.reshape(X.shape)


def measure(folder: Path, *, quick: bool, seeds: int | None) -> dict[str, list[dict[str, Any]]]:
    archive = np.load(folder / FILES[0])
    cut = slice(QUICK_ROWS if quick else None)
    y, y_test = archive["y_train"][cut], archive["y_test"][cut]
    found: dict[str, list[dict[str, Any]]] = {}
    for reading in READINGS:
        X, X_test = (pixels(archive[f"X_{part}"][cut], reading) for part in ("train", "test"))
        for name, order in orders(len(y), orders_of(quick=quick, seeds=seeds), reading):
            for window in QUICK_WINDOWS if quick else WINDOWS:
                model = ExactSVC(C=C, gamma=1 / READINGS[reading], window=window)
                start = time.perf_counter()
                model.fit(X[order], y[order])
                seconds = time.perf_counter() - start
                one = {
                    "order": name,
                    "error": 100 * float(np.mean(model.predict(X_test) != y_test)),
                    "support_vectors": float((model.dual_coef_ != 0).sum(axis=1).mean()),
                    "seconds": seconds,
                }
                found.setdefault(key(reading, window), []).append(one)
                common.progress(
                    f"usps, {key(reading, window)}, order {name}: {one['error']:.2f} %, "
                    f"{one['support_vectors']:.0f} support vectors, {seconds:.1f} s"
                )
    return found


def orders(n: int, count: int, reading: str) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Give the rows as they are in the file, then shuffled; the other reading is looked at once."""
    yield "file", np.arange(n)
    for seed in range(1, count if reading == HEADLINE else 1):
        yield f"shuffle {seed}", np.random.default_rng(seed).permutation(n)


# -- what it says ----------------------------------------------------------------------------------


def worse(reading: str, window: int, *, file: bool) -> Check:
    """Compare the error with a window with that of all rows, in the order of the file or any."""

    def measure(results: Results) -> float | None:
        errors = [
            [one["error"] for one in results.get(key(reading, M), []) if not file or is_file(one)]
            for M in (window, None)
        ]
        return float(np.mean(errors[0]) / np.mean(errors[1])) if all(errors) else None

    order = "order of the file" if file else "mean of all orders"
    what = f"{reading}: error at M={window} over that of all rows, {order} (paper: about 1.1)"
    return Check(what, measure, "≤", 1.1 if reading == HEADLINE and file else None, "{:.3f}")


def is_file(one: dict[str, Any]) -> bool:
    return bool(one["order"] == "file")


def support_vectors(reading: str) -> Check:
    def measure(results: Results) -> float | None:
        return results.mean(key(reading, None), "support_vectors")

    return Check(
        f"{reading}: support vectors a class, all rows (paper: 274)", measure, form="{:.0f}"
    )


WORK = Work(
    "usps-windows",
    "figure 8: error of ten classes with a window of M rows a class, the lightest makes room",
    [],
    [
        *(worse(HEADLINE, 150, file=file) for file in (True, False)),
        worse("plain", 150, file=True),
        *(support_vectors(reading) for reading in READINGS),
    ],
)


def shown(results: Results) -> str:
    header = ("", "orders", "error, %: file", "mean", "range", "SVs a class", "s")
    rows = []
    for name, runs in results.items():
        errors = [one["error"] for one in runs]
        span = f"{min(errors):.2f} to {max(errors):.2f}" if len(errors) > 1 else "–"
        rows.append(
            [
                name,
                str(len(runs)),
                *(f"{value:.2f}" for value in (errors[0], np.mean(errors))),
                span,
                f"{results.mean(name, 'support_vectors') or 0:.0f}",
                f"{results.median(name, 'seconds') or 0:.1f}",
            ]
        )
    return common.table(header, rows)


def draw(results: Results, path: Path) -> None:
    from laskov2006_plot import COLOURS, STROKES, picture

    with picture(path, 1) as (ax,):
        for k, reading in enumerate(READINGS):
            windows = [M for M in WINDOWS if M and key(reading, M) in results]
            errors = [results[key(reading, M)] for M in windows]
            style = {"color": COLOURS[k], "linestyle": STROKES[k]}
            label = f"{reading} pixels, order of the file"
            ax.plot(windows, [one[0]["error"] for one in errors], marker="o", label=label, **style)
            low = [min(run["error"] for run in runs) for runs in errors]
            high = [max(run["error"] for run in runs) for runs in errors]
            ax.fill_between(windows, low, high, color=COLOURS[k], alpha=0.15, linewidth=0)
            unlimited = results[key(reading, None)][0]["error"]
            ax.axhline(unlimited, linewidth=1, label=f"{reading} pixels, all rows", **style)
        ax.set(title="Fig. 8: USPS with a window", xlabel="M, rows a class", ylabel="error, %")
        ax.set(xscale="log", ylim=(0, 12))
        ticks = [M for M in WINDOWS if M]
        ax.set_xticks(ticks, [str(M) for M in ticks], minor=False)
        ax.set_xticks([], minor=True)
        ax.legend(frameon=False)
